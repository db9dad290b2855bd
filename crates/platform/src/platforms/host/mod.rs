//! The software device.

#[cfg(feature = "host")]
mod tables;

use crate::facts::{DlPackNames, Facts, Install, OpenClKernels, Rivals};
use crate::select::Extent;
use crate::{Error, LibraryReport, LibraryState, Tables};

pub(super) const FACTS: Facts = Facts {
    name: "host",
    one_address_space: true,
    is_model: true,
    uses_kfd: false,
    import_limit: || None,
    opencl_kernels: OpenClKernels::Hooks,
    // kDLExtDev: a device that the specification has no name for.
    dlpack: DlPackNames {
        device: 12,
        host: 12,
        managed: 12,
    },
    compiler: "HIPRTC by this machine's C++ compiler",
    collectives: "RCCL",
    rivals: Rivals::Processor,
    no_device_remedy: "check HIP_HOST_DEVICES",
    install: Install {
        hip: "build with the feature `host` of the crate `platform`",
        other: "build with the feature `host` of the crate `platform`",
    },
};

#[cfg(feature = "host")]
pub(super) fn tables(extent: Extent) -> Result<(Tables, Vec<LibraryReport>), Error> {
    Ok(tables::tables(extent))
}

#[cfg(feature = "host")]
pub(super) fn collectives() -> Result<(rccl_sys::Api, LibraryState), Error> {
    Ok((hip_host_rccl::rccl_api(), LibraryState::BuiltIn))
}

#[cfg(not(feature = "host"))]
pub(super) fn tables(_extent: Extent) -> Result<(Tables, Vec<LibraryReport>), Error> {
    Err(not_built())
}

#[cfg(not(feature = "host"))]
pub(super) fn collectives() -> Result<(rccl_sys::Api, LibraryState), Error> {
    Err(not_built())
}

#[cfg(not(feature = "host"))]
fn not_built() -> Error {
    Error::NotBuilt {
        platform: super::Platform::Host,
        remedy: "build with the feature `host` of the crate `platform`",
    }
}
