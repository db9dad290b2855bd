//! The tables of hip-cuda; NVIDIA's libraries are opened at run time.

use std::path::PathBuf;
use std::sync::Arc;

use crate::select::Extent;
use crate::{Error, LibraryReport, LibraryState, Platform, Tables};

pub(in crate::platforms) fn tables(extent: Extent) -> Result<(Tables, Vec<LibraryReport>), Error> {
    let opened = hip_cuda::open().map_err(|error| Error::NoLibrary {
        platform: Platform::Nvidia,
        cause: error.to_string(),
    })?;
    let mut libraries = vec![LibraryReport {
        name: "HIP",
        state: LibraryState::Loaded(opened.driver),
        functions: opened.hip.present().count(),
        release: None,
    }];
    let tables = Tables {
        rtc: take(&mut libraries, "HIPRTC", opened.rtc, |api| api.present().count()),
        rocblas: take(
            &mut libraries,
            "rocBLAS",
            extent.left_out().map_or(opened.rocblas, Err),
            |api| api.present().count(),
        ),
        rocsolver: take(
            &mut libraries,
            "rocSOLVER",
            extent.left_out().map_or(opened.rocsolver, Err),
            |api| api.present().count(),
        ),
        // HSA is AMD's; what it tells about an address, HIP's own calls tell here.
        hsa: None,
        hip: Arc::new(opened.hip),
        foreign: None,
    };
    Ok((tables, libraries))
}

/// Loads NCCL, which has RCCL's API; hip-cuda's streams and devices are CUDA's own.
pub(in crate::platforms) fn collectives() -> Result<(rccl_sys::Api, LibraryState), Error> {
    let (api, file) = rccl_sys::Api::load_nccl().map_err(|error| Error::NoCollectives {
        platform: Platform::Nvidia,
        cause: error.to_string(),
        remedy: "install NCCL (package libnccl2), or set HIPCL_NCCL_LIBRARY to libnccl.so.2",
    })?;
    Ok((api, LibraryState::Loaded(file.path().to_path_buf())))
}

/// Records where a table's library is, or why there is none.
fn take<A>(
    libraries: &mut Vec<LibraryReport>,
    name: &'static str,
    opened: Result<(A, PathBuf), String>,
    count: impl Fn(&A) -> usize,
) -> Option<Arc<A>> {
    let (state, functions, api) = match opened {
        Ok((api, path)) => (LibraryState::Loaded(path), count(&api), Some(Arc::new(api))),
        Err(cause) => (LibraryState::Missing(cause), 0, None),
    };
    libraries.push(LibraryReport {
        name,
        state,
        functions,
        release: None,
    });
    api
}
