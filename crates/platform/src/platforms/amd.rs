//! The real ROCm libraries.

use std::sync::Arc;

use rocm_loader::{LoadError, Loaded};

use crate::facts::{DlPackNames, Facts, Install, OpenClKernels, Rivals};
use crate::select::Extent;
use crate::{Error, LibraryReport, LibraryState, Platform, Tables};

pub(super) const FACTS: Facts = Facts {
    name: "amd",
    one_address_space: true,
    is_model: false,
    uses_kfd: true,
    import_limit: || None,
    opencl_kernels: OpenClKernels::CodeObject,
    // kDLROCM, kDLROCMHost; managed memory has no name of its own.
    dlpack: DlPackNames {
        device: 10,
        host: 11,
        managed: 10,
    },
    compiler: "HIPRTC",
    collectives: "RCCL",
    rivals: Rivals::None,
    no_device_remedy: "check /dev/kfd, the render group and ROCR_VISIBLE_DEVICES",
    install: Install {
        hip: "the HIP library cannot be loaded, see HIP above: install ROCm, or set ROCM_PATH to a complete installation",
        other: "install it from the same ROCm release as HIP, or set ROCM_PATH to a complete one",
    },
};

/// The file that the library's own variable names, else the copy beside HIP.
macro_rules! named_or_beside {
    ($table:ty, $hip:expr) => {
        if std::env::var_os(<$table>::SEARCH.env).is_some_and(|path| !path.is_empty()) {
            <$table>::load()
        } else {
            <$table>::load_beside(&$hip)
        }
    };
}

/// Loads HIP, then what belongs to it from the same installation.
pub(super) fn tables(extent: Extent) -> Result<(Tables, Vec<LibraryReport>), Error> {
    let (hip, file) = hip_sys::Api::load().map_err(|error| Error::NoLibrary {
        platform: Platform::Amd,
        cause: error.to_string(),
    })?;
    let mut set = Set {
        hip: file,
        libraries: Vec::new(),
    };
    set.libraries.push(LibraryReport {
        name: "HIP",
        state: LibraryState::Loaded(set.hip.path().to_path_buf()),
        functions: hip.present().count(),
        release: hip.release(),
    });
    let rtc = hip_sys::RtcApi::load_beside(&set.hip);
    let tables = Tables {
        rtc: set.take("HIPRTC", rtc, |api| api.present().count())?,
        rocblas: match extent.left_out() {
            Some(reason) => set.miss("rocBLAS", reason),
            None => set.take("rocBLAS", named_or_beside!(rocblas_sys::Api, set.hip), |api| {
                api.present().count()
            })?,
        },
        rocsolver: match extent.left_out() {
            Some(reason) => set.miss("rocSOLVER", reason),
            None => set.take("rocSOLVER", named_or_beside!(rocsolver_sys::Api, set.hip), |api| {
                api.present().count()
            })?,
        },
        // HIP is linked against HSA, so the copy to use is the one already in the process.
        hsa: set.take("HSA", hsa_sys::Api::load(), |api| api.present().count())?,
        hip: Arc::new(hip),
        foreign: None,
    };
    Ok((tables, set.libraries))
}

/// Loads RCCL from HIP's installation.
pub(super) fn collectives() -> Result<(rccl_sys::Api, LibraryState), Error> {
    let missing = |error: LoadError| Error::NoCollectives {
        platform: Platform::Amd,
        cause: error.to_string(),
        remedy: "install RCCL from the same ROCm release as HIP (package rccl), or set HIPCL_RCCL_LIBRARY to its file",
    };
    let (_, hip) = hip_sys::Api::load().map_err(missing)?;
    let (api, file) = named_or_beside!(rccl_sys::Api, hip).map_err(missing)?;
    match hip.is_together_with(&file) {
        true => Ok((api, LibraryState::Loaded(file.path().to_path_buf()))),
        false => Err(Error::MixedReleases {
            first: hip.path().to_path_buf(),
            second: file.path().to_path_buf(),
            libraries: Vec::new(),
        }),
    }
}

struct Set {
    hip: Loaded,
    libraries: Vec<LibraryReport>,
}

impl Set {
    /// An absent library is recorded and affects nothing else; one of another installation is an
    /// error.
    fn take<A>(
        &mut self,
        name: &'static str,
        loaded: Result<(A, Loaded), LoadError>,
        count: impl Fn(&A) -> usize,
    ) -> Result<Option<Arc<A>>, Error> {
        match loaded {
            Ok((_, file)) if !self.hip.is_together_with(&file) => Err(Error::MixedReleases {
                first: self.hip.path().to_path_buf(),
                second: file.path().to_path_buf(),
                libraries: std::mem::take(&mut self.libraries),
            }),
            Ok((api, file)) => {
                self.libraries.push(LibraryReport {
                    name,
                    state: LibraryState::Loaded(file.path().to_path_buf()),
                    functions: count(&api),
                    release: None,
                });
                Ok(Some(Arc::new(api)))
            }
            Err(error) => Ok(self.miss(name, error.to_string())),
        }
    }

    /// Records a library that is not loaded, and why.
    fn miss<A>(&mut self, name: &'static str, reason: String) -> Option<Arc<A>> {
        self.libraries.push(LibraryReport {
            name,
            state: LibraryState::Missing(reason),
            functions: 0,
            release: None,
        });
        None
    }
}
