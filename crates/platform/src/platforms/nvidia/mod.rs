//! HIP's ABI over CUDA.

#[cfg(feature = "nvidia")]
mod tables;

use crate::facts::{DlPackNames, Facts, Install, OpenClKernels, Rivals};
#[cfg(not(feature = "nvidia"))]
use crate::{Error, LibraryReport, Tables, select::Extent};

pub(super) const FACTS: Facts = Facts {
    name: "nvidia",
    one_address_space: false,
    is_model: false,
    uses_kfd: false,
    opencl_kernels: OpenClKernels::Ptx,
    // kDLCUDA, kDLCUDAHost, kDLCUDAManaged.
    dlpack: DlPackNames {
        device: 2,
        host: 3,
        managed: 13,
    },
    compiler: "HIPRTC",
    rivals: Rivals::Cuda,
    no_device_remedy: "check nvidia-smi and CUDA_VISIBLE_DEVICES",
    install: Install {
        hip: "the NVIDIA driver library cannot be loaded, see HIP above: install the driver",
        other: "install its counterpart from the CUDA toolkit",
    },
};

#[cfg(feature = "nvidia")]
pub(super) use tables::tables;

#[cfg(not(feature = "nvidia"))]
pub(super) fn tables(_extent: Extent) -> Result<(Tables, Vec<LibraryReport>), Error> {
    Err(Error::NotBuilt {
        platform: super::Platform::Nvidia,
        remedy: "build with the feature `nvidia`, or select the platform amd or host",
    })
}
