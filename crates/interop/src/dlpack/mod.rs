//! DLPack: lends shared buffers to tensor libraries without a copy, and takes their tensors, without one where both
//! APIs can use the memory.
//!
//! | item | what |
//! |---|---|
//! | [`Shared::to_dlpack`](crate::Shared::to_dlpack) | lends a buffer out as a `DLManagedTensorVersioned` or a `DLManagedTensor` |
//! | [`Loan`] | brings the buffer back when the consumer has called the deleter |
//! | [`Bridge::from_dlpack`](crate::Bridge::from_dlpack) | takes a tensor of either form as a shared buffer |
//! | [`abi`] | the structures of the specification |
//!
//! # Streams
//! A tensor has no events, so both sides agree on one HIP stream, as `__dlpack__(stream=...)` of Python's array
//! standard does. *Lending*: the consumer names its stream, which then waits for the pending OpenCL and HIP work on the
//! buffer (by the hand-off of the buffer's grade). The buffer's next user waits for what the consumer queues there. The
//! consumer must order work on its other streams after that stream, and before it again when it calls the deleter.
//! *Taking*: the caller names the stream on which the producer has made the data ready, and the first access by any
//! queue or stream comes after the work on it by then.
//!
//! # Devices
//! | platform | device memory | pinned host memory | managed memory |
//! |---|---|---|---|
//! | amd | `kDLROCM` | `kDLROCMHost` | `kDLROCM` (the specification has no type of its own) |
//! | nvidia | `kDLCUDA` | `kDLCUDAHost` | `kDLCUDAManaged` |
//! | host | `kDLExtDev` | `kDLExtDev` | `kDLExtDev` |
//!
//! A tensor library cannot compute on the software device as on ROCm, and its memory has streams, which `kDLCPU` lacks;
//! so it is `kDLExtDev`, for tests of the exchange, which no library takes for one of its own. Memory whose place is
//! unknown is not lent. Tensors are taken from the device memory of this table in place, and from `kDLCPU`,
//! `kDLROCMHost` and `kDLCUDAHost` by a copy.
//!
//! Source: the specification's `include/dlpack/dlpack.h`, version 1.

pub mod abi;
mod element;
mod export;
mod import;
mod layout;

pub use element::Element;
pub use export::{Lent, Loan};
pub use import::Taken;
pub use layout::Layout;

use crate::core::Core;
use crate::{Error, Residency, Result};

fn refused(reason: impl Into<String>) -> Error {
    Error::DlPack { reason: reason.into() }
}

/// The specification's name for memory that lies there.
fn device_type(core: &Core, residency: Residency) -> Result<abi::DeviceType> {
    let names = core.platform.facts().dlpack;
    Ok(abi::DeviceType(match residency {
        Residency::Vram => names.device,
        Residency::HostPinned => names.host,
        Residency::Managed => names.managed,
        Residency::Unknown => {
            return Err(refused(
                "the residency of the memory is unknown, so the tensor has no device; use a route with a known residency (svm-coarse, hip-pointer)",
            ));
        }
    }))
}

/// The matching device number: 0 for memory of no single device.
fn device_id(core: &Core, kind: abi::DeviceType) -> i32 {
    use abi::DeviceType as Of;
    match kind {
        Of::ROCM | Of::CUDA | Of::EXT_DEV => i32::try_from(core.hip_device.ordinal()).unwrap_or(0),
        _ => 0,
    }
}
