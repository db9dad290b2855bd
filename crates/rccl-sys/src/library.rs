//! Where RCCL and NCCL are found.

use rocm_loader::{Library, LoadError, Loaded, Search};

use crate::Api;

// SAFETY: AMD gives these names to RCCL's library alone, which any process may open; the table's slots are of its
// headers.
unsafe impl Library for Api {
    const SEARCH: Search = Search {
        library: "librccl",
        env: "HIPCL_RCCL_LIBRARY",
        sonames: &["librccl.so.1"],
        key_symbol: c"ncclGetUniqueId",
        // RCCL works on HIP's streams: a second HIP, brought along by an RCCL of another folder, does not know them.
        once: &["librccl", "libamdhip64", "libhsa-runtime64"],
        fallback: None,
        floor: None,
    };
}

rocm_loader::library!(Api);

#[cfg(all(feature = "linked", unix))]
rocm_loader::linked!(Api, ncclGetUniqueId);

/// Where NVIDIA's NCCL is found.
///
/// No fallback of [`Api::SEARCH`]: it would be opened on machines with AMD's GPUs too, if RCCL is missing there.
pub const NCCL: Search = Search {
    library: "libnccl",
    env: "HIPCL_NCCL_LIBRARY",
    sonames: &["libnccl.so.2"],
    key_symbol: c"ncclGetUniqueId",
    once: &["libnccl"],
    fallback: None,
    floor: None,
};

impl Api {
    /// Finds and opens NVIDIA's NCCL, whose functions have the same signatures on CUDA's streams; the order is that of
    /// [`rocm_loader::Search`].
    ///
    /// # Errors
    /// As [`Search::load`]: a value, with every path that was tried.
    pub fn load_nccl() -> Result<(Self, Loaded), LoadError> {
        // SAFETY: NVIDIA gives these names to NCCL alone, whose initialisers may run in any process. RCCL declares the
        // functions of both with NCCL's signatures.
        unsafe { NCCL.load() }.map(Self::of)
    }
}
