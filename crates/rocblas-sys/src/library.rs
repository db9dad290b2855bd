//! Where rocBLAS is found.

use rocm_loader::{Library, Search};

use crate::Api;

// SAFETY: AMD gives these names to rocBLAS' library alone, which any process may open; the table's slots are of its
// headers.
unsafe impl Library for Api {
    const SEARCH: Search = Search {
        library: "librocblas",
        env: "HIPCL_ROCBLAS_LIBRARY",
        sonames: &[
            "librocblas.so.5",
            "librocblas.so.4",
            "librocblas.so.3",
            "librocblas.so.0",
        ],
        key_symbol: c"rocblas_create_handle",
        // rocBLAS works on HIP's streams: a second HIP, brought along by a rocBLAS of another folder, does not know
        // them.
        once: &["librocblas", "libamdhip64", "libhsa-runtime64"],
        fallback: None,
        floor: None,
    };
}

rocm_loader::library!(Api);

#[cfg(all(feature = "linked", unix))]
rocm_loader::linked!(Api, rocblas_create_handle);
