//! Where rocSOLVER is found.

use rocm_loader::{Library, Search};

use crate::Api;

// SAFETY: AMD gives these names to rocSOLVER's library alone, which any process may open; the table's slots are of its
// headers.
unsafe impl Library for Api {
    const SEARCH: Search = Search {
        library: "librocsolver",
        env: "HIPCL_ROCSOLVER_LIBRARY",
        sonames: &["librocsolver.so.0"],
        key_symbol: c"rocsolver_cpotrf",
        // rocSOLVER works on rocBLAS' handles and HIP's streams, so each must be the one that made them.
        once: &["librocsolver", "librocblas", "libamdhip64", "libhsa-runtime64"],
        fallback: None,
        floor: None,
    };
}

rocm_loader::library!(Api);

#[cfg(all(feature = "linked", unix))]
rocm_loader::linked!(Api, rocsolver_cpotrf);
