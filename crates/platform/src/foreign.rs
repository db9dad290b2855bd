use std::ffi::c_void;

/// Where memory that OpenCL owns lives on the device that is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignKind {
    /// Device memory: a coarse-grain SVM allocation or a plain `cl_mem`.
    Vram,
    /// Host memory mapped to the device: a fine-grain SVM allocation.
    HostFine,
}

/// How a software platform learns of memory that OpenCL owns.
///
/// On real hardware the HSA runtime sees OpenCL's allocations by itself; a model that shares
/// nothing with the OpenCL implementation has to be told.
#[derive(Clone, Copy)]
pub struct ForeignHooks {
    /// Makes `bytes` bytes at the pointer known, as memory of the HIP device with this ordinal. The
    /// memory must stay valid until `release`.
    pub adopt: unsafe fn(*mut c_void, usize, ForeignKind, usize) -> Result<(), String>,
    /// Forgets an allocation that `adopt` made known; the pointer is the one given there.
    pub release: fn(*mut c_void) -> Result<(), String>,
    /// Whether OpenCL's kernels may touch device memory that HIP allocated, as the model is set.
    pub reaches_hip: fn() -> bool,
}
