//! Where rocSOLVER is found.

use rocm_loader::Search;

use crate::Api;

rocm_loader::library! {
    Api,
    Search {
        library: "librocsolver",
        env: "HIPCL_ROCSOLVER_LIBRARY",
        sonames: &["librocsolver.so.0"],
        key_symbol: c"rocsolver_cpotrf",
        // rocSOLVER works on rocBLAS' handles and HIP's streams, so each must be the one that made them.
        once: &["librocsolver", "librocblas", "libamdhip64", "libhsa-runtime64"],
        fallback: None,
        floor: None,
    }
}

#[cfg(all(feature = "linked", unix))]
rocm_loader::linked!(Api, rocsolver_cpotrf);
