//! Where the HSA runtime is found.

use rocm_loader::Search;

use crate::Api;

rocm_loader::library! {
    Api,
    Search {
        library: "libhsa-runtime64",
        env: "HIPCL_HSA_LIBRARY",
        sonames: &["libhsa-runtime64.so.1"],
        key_symbol: c"hsa_init",
        // One connection to the driver, one address space: HIP and OpenCL share memory through this single copy.
        once: &["libhsa-runtime64"],
        fallback: None,
        floor: None,
    }
}

#[cfg(all(feature = "linked", unix))]
rocm_loader::linked!(Api, hsa_init);
