//! Where HIP and HIPRTC are found.

use rocm_loader::{Library, Search};

use crate::{Api, RtcApi, versions};

/// Each holds the memory it knows and the streams it made; HSA has the process' one connection to the driver.
const ONCE: &[&str] = &["libamdhip64", "libhsa-runtime64"];

// SAFETY: AMD gives these names to HIP's library alone, which any process may open; the table's slots are of its
// headers.
unsafe impl Library for Api {
    const SEARCH: Search = Search {
        library: "libamdhip64",
        env: "HIPCL_HIP_LIBRARY",
        sonames: &[
            "libamdhip64.so.7",
            "libamdhip64.so.8",
            "libamdhip64.so.6",
            "libamdhip64.so.5",
        ],
        key_symbol: c"hipGetDeviceCount",
        once: ONCE,
        fallback: None,
        floor: Some(versions::FLOOR),
    };
}

rocm_loader::library!(Api);

// SAFETY: AMD gives these names to HIPRTC's library alone, which any process may open; the table's slots are of its
// headers.
unsafe impl Library for RtcApi {
    const SEARCH: Search = Search {
        library: "libhiprtc",
        env: "HIPCL_HIPRTC_LIBRARY",
        sonames: &["libhiprtc.so.7", "libhiprtc.so.8", "libhiprtc.so.6", "libhiprtc.so.5"],
        key_symbol: c"hiprtcCompileProgram",
        once: ONCE,
        // Releases before 7.0 have HIPRTC inside HIP's own library too.
        fallback: Some(&Search {
            key_symbol: c"hiprtcCompileProgram",
            ..Api::SEARCH
        }),
        floor: None,
    };
}

rocm_loader::library!(RtcApi);

#[cfg(all(feature = "linked", unix))]
rocm_loader::linked!(Api, hipGetDeviceCount);
#[cfg(all(feature = "linked", unix))]
rocm_loader::linked!(RtcApi, hiprtcCompileProgram);
