use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use hip_sys::{hipError_t, hipStream_t};

/// Where memory that OpenCL owns lives on the modelled device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignKind {
    /// Device memory: a coarse-grain SVM allocation or a plain `cl_mem`.
    Vram,
    /// Host memory mapped to the device: a fine-grain SVM allocation.
    HostFine,
}

/// An OpenCL kernel as work of a HIP stream; the error text says why a run failed.
pub type ForeignKernel = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// How OpenCL memory and kernels reach a software platform.
///
/// On real hardware the HSA runtime sees OpenCL's allocations by itself, and HIP loads the code of
/// OpenCL's kernels; a model that shares nothing with the OpenCL implementation needs these calls.
#[derive(Clone, Copy, Debug)]
pub struct ForeignHooks {
    /// Registers `bytes` bytes at the pointer as memory of the HIP device with this ordinal. The
    /// memory must stay valid until `release`.
    pub adopt: unsafe fn(*mut c_void, usize, ForeignKind, usize) -> Result<(), String>,
    /// Unregisters an allocation of `adopt`, by the same pointer.
    pub release: fn(*mut c_void) -> Result<(), String>,
    /// Whether OpenCL kernels may touch device memory that HIP allocated, by the model's settings.
    pub reaches_hip: fn() -> bool,
    /// Queues a kernel on a stream, or records it if the stream is capturing. The addresses are its
    /// pointer arguments, each in memory that the platform knows; the kernel touches no other
    /// memory, and may be called whenever the stream reaches it.
    pub launch: unsafe fn(hipStream_t, ForeignKernel, &[usize]) -> hipError_t,
    /// Ends the work of all streams, because the process ends: OpenCL frees its memory next. What is
    /// queued fails and touches nothing; what runs now is waited for, no longer than this time.
    pub end: fn(Duration),
}
