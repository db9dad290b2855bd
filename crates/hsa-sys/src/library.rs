//! Where the HSA runtime is found.

use rocm_loader::{Library, Search};

use crate::Api;

// SAFETY: AMD gives these names to HSA's library alone, which any process may open; the table's slots are of its
// headers.
unsafe impl Library for Api {
    const SEARCH: Search = Search {
        library: "libhsa-runtime64",
        env: "HIPCL_HSA_LIBRARY",
        sonames: &["libhsa-runtime64.so.1"],
        key_symbol: c"hsa_init",
        // One connection to the driver, one address space: HIP and OpenCL share memory through this single copy.
        once: &["libhsa-runtime64"],
        fallback: None,
        floor: None,
    };
}

rocm_loader::library!(Api);

#[cfg(all(feature = "linked", unix))]
rocm_loader::linked!(Api, hsa_init);
