//! HIP's ABI over CUDA.

#[cfg(feature = "nvidia")]
mod tables;

use crate::facts::{DlPackNames, Facts, Install, OpenClKernels, Rivals};
#[cfg(not(feature = "nvidia"))]
use crate::{Error, LibraryReport, LibraryState, Tables, select::Extent};

pub(super) const FACTS: Facts = Facts {
    name: "nvidia",
    one_address_space: false,
    is_model: false,
    uses_kfd: false,
    import_limit,
    opencl_kernels: OpenClKernels::Ptx,
    // kDLCUDA, kDLCUDAHost, kDLCUDAManaged.
    dlpack: DlPackNames {
        device: 2,
        host: 3,
        managed: 13,
    },
    compiler: "HIPRTC",
    collectives: "NCCL",
    rivals: Rivals::Cuda,
    no_device_remedy: "check nvidia-smi and CUDA_VISIBLE_DEVICES",
    install: Install {
        hip: "the NVIDIA driver library cannot be loaded, see HIP above: install the driver",
        other: "install its counterpart from the CUDA toolkit",
    },
};

/// On a machine with several GPUs NVIDIA's OpenCL writes to a null address when it imports 512 MiB or more: plain calls
/// in C, two H200, driver 580.159.04, whichever GPUs are visible and however the memory was made. With one H200 and the
/// same driver it imports any size.
fn import_limit() -> Option<usize> {
    let gpus = std::fs::read_dir("/proc/driver/nvidia/gpus").map_or(0, Iterator::count);
    (gpus > 1).then_some((512 << 20) - 1)
}

#[cfg(feature = "nvidia")]
pub(super) use tables::{collectives, tables};

#[cfg(not(feature = "nvidia"))]
pub(super) fn tables(_extent: Extent) -> Result<(Tables, Vec<LibraryReport>), Error> {
    Err(not_built())
}

#[cfg(not(feature = "nvidia"))]
pub(super) fn collectives() -> Result<(rccl_sys::Api, LibraryState), Error> {
    Err(not_built())
}

#[cfg(not(feature = "nvidia"))]
fn not_built() -> Error {
    Error::NotBuilt {
        platform: super::Platform::Nvidia,
        remedy: "build with the feature `nvidia`, or select the platform amd or host",
    }
}
