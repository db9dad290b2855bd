//! The kind of processor a device is.

use std::fmt;

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A host processor.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// A dedicated accelerator.
    Accelerator,
    /// Anything else.
    Other,
}

impl DeviceKind {
    /// The kind that the bits of `CL_DEVICE_TYPE` stand for.
    pub(super) fn of(bits: u64) -> Self {
        match bits {
            bits if bits & opencl_sys::CL_DEVICE_TYPE_GPU != 0 => Self::Gpu,
            bits if bits & opencl_sys::CL_DEVICE_TYPE_CPU != 0 => Self::Cpu,
            bits if bits & opencl_sys::CL_DEVICE_TYPE_ACCELERATOR != 0 => Self::Accelerator,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "CPU",
            Self::Gpu => "GPU",
            Self::Accelerator => "accelerator",
            Self::Other => "other",
        })
    }
}
