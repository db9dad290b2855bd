//! What code decides by, instead of by a platform's name.

/// What is true of a platform. Each states it in its own file in `platforms`; code above never compares names.
#[derive(Debug)]
#[non_exhaustive]
pub struct Facts {
    /// The name in options, environment variables and reports.
    pub name: &'static str,
    /// Whether an address of OpenCL's SVM means the same memory to HIP, and the other way round. Without it the two
    /// APIs are two contexts on the GPU, which share memory by descriptors only.
    pub one_address_space: bool,
    /// Whether the device is a model in software that runs on this machine's processor and uses its memory. It has no
    /// PCI address, pairs with OpenCL's CPU devices, and computes exactly what is requested: no work is padded for it.
    pub is_model: bool,
    /// Whether the devices are reached through AMD's kernel driver, `/dev/kfd`.
    pub uses_kfd: bool,
    /// The most bytes that OpenCL imports by a file descriptor here, where more would end the process.
    pub import_limit: fn() -> Option<usize>,
    /// How a kernel that OpenCL compiled runs on a HIP stream.
    pub opencl_kernels: OpenClKernels,
    /// What DLPack calls the platform's memory.
    pub dlpack: DlPackNames,
    /// What compiles HIP kernels at run time.
    pub compiler: &'static str,
    /// Its library of collectives.
    pub collectives: &'static str,
    /// The libraries that rocBLAS and the transforms are measured against.
    pub rivals: Rivals,
    /// What to check when no device is found.
    pub(crate) no_device_remedy: &'static str,
    /// What to do about a missing library.
    pub install: Install,
}

/// How a kernel that OpenCL compiled runs on a HIP stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenClKernels {
    /// HIP loads AMD's code object after its description of the parameters was adapted.
    CodeObject,
    /// HIP loads NVIDIA's PTX after its declaration of the parameters was adapted.
    Ptx,
    /// [`ForeignHooks::launch`](crate::ForeignHooks::launch) has OpenCL run it as an operation of the stream.
    Hooks,
}

/// Values of `DLDeviceType` (dlpack/dlpack.h) for memory in its three places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DlPackNames {
    /// The device's own memory.
    pub device: i32,
    /// Pinned memory of the host.
    pub host: i32,
    /// Memory that migrates.
    pub managed: i32,
}

/// Whose libraries are measured beside the platform's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rivals {
    /// None: the platform's own libraries are the field's.
    None,
    /// cuBLAS and cuFFT, called directly.
    Cuda,
    /// OpenBLAS, FFTW and RustFFT on the processor.
    Processor,
}

/// Advice about a missing library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Install {
    /// If HIP's library is missing.
    pub hip: &'static str,
    /// If another library is missing.
    pub other: &'static str,
}
