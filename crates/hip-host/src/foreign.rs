//! OpenCL's part in the model: its memory, registered with HSA, and its kernels, launched on HIP streams.
//!
//! On ROCm the HSA runtime is shared by HIP and OpenCL, so HIP can ask it about OpenCL's allocations. Here the OpenCL
//! library is a stranger's, so the code that pairs the two informs the model. HIP then treats such memory as ROCm does:
//! good as a kernel or rocBLAS argument, hardly anything else.

use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hip_sys::{hipError_t, hipStream_t};

use crate::ending::COMMANDS;
use crate::error::entry;
use crate::graph::{Operation, Routine};
use crate::memory::backing::Backing;
use crate::memory::registry::{self, Allocation, Kind};
use crate::work::Task;
use crate::{device, log, stream};

/// Where OpenCL's memory lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignKind {
    /// Device memory: coarse-grain SVM, plain buffers.
    Vram,
    /// Host memory the device can reach: fine-grain SVM.
    HostFine,
}

/// Why memory could not be registered or unregistered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No memory, or more than an address space holds.
    #[error("adopt({ptr:#x}, {bytes} bytes): not a memory range; pass the address and size from OpenCL")]
    NotARange {
        /// First address.
        ptr: usize,
        /// Length.
        bytes: usize,
    },
    /// Part of the range is the device's own, registered or adopted already.
    #[error(
        "adopt({ptr:#x}, {bytes} bytes): overlaps memory that is already known; release or unregister that memory first"
    )]
    Known {
        /// First address.
        ptr: usize,
        /// Length.
        bytes: usize,
    },
    /// The address was not passed to `adopt`.
    #[error("release({ptr:#x}): no memory was adopted at this address; pass the address that was passed to adopt")]
    NotAdopted {
        /// The address.
        ptr: usize,
    },
    /// The host platform has fewer devices.
    #[error(
        "adopt: the host platform has no device {ordinal}; set HIP_HOST_DEVICES to at least {}",
        ordinal + 1
    )]
    NoDevice {
        /// The device that owns the memory.
        ordinal: usize,
    },
}

/// Registers `bytes` bytes at `ptr` as OpenCL memory on device 0.
///
/// # Errors
/// [`Error`], if the range is empty, overlaps something known, or there is no device.
///
/// # Safety
/// The range must stay readable and writable until [`release`] has been called for it and all work that uses it is
/// done.
pub unsafe fn adopt(ptr: *mut c_void, bytes: usize, kind: ForeignKind) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe { adopt_on(ptr, bytes, kind, 0) }
}

/// As [`adopt`], for memory of the device with this ordinal: HSA reports the owner, while HIP takes foreign memory for
/// device 0's, whatever its owner (`rocclr/platform/memory.hpp`, user data of the arena).
///
/// # Errors
/// As [`adopt`].
///
/// # Safety
/// As [`adopt`].
pub unsafe fn adopt_on(ptr: *mut c_void, bytes: usize, kind: ForeignKind, ordinal: usize) -> Result<(), Error> {
    let kind = match kind {
        ForeignKind::Vram => Kind::ForeignVram,
        ForeignKind::HostFine => Kind::ForeignHost,
    };
    enter(ptr, bytes, kind, ordinal, None)
}

/// As [`adopt_on`], for device memory that lies in `file` from `offset` on, mapped shared: HSA can export it, as ROCm
/// does any device memory.
///
/// # Errors
/// As [`adopt`].
///
/// # Safety
/// As [`adopt`], and the memory is that part of the file.
pub unsafe fn adopt_in_file(
    ptr: *mut c_void,
    bytes: usize,
    ordinal: usize,
    file: OwnedFd,
    offset: usize,
) -> Result<(), Error> {
    let file = Backing::of(file).at(offset);
    enter(ptr, bytes, Kind::ForeignVram, ordinal, Some(file))
}

/// Ends the work of all streams, because the process ends and OpenCL's memory with it: what is queued fails with
/// `hipErrorDeinitialized` and touches nothing. Waits for what runs now, no longer than `patience`.
pub fn end(patience: Duration) {
    COMMANDS.end(patience);
}

fn enter(ptr: *mut c_void, bytes: usize, kind: Kind, ordinal: usize, file: Option<Backing>) -> Result<(), Error> {
    let start = ptr as usize;
    if ptr.is_null() || bytes == 0 || start.checked_add(bytes).is_none() {
        return Err(Error::NotARange { ptr: start, bytes });
    }
    let device = i32::try_from(ordinal)
        .ok()
        .and_then(|index| device::by_ordinal(index).ok())
        .ok_or(Error::NoDevice { ordinal })?;
    let mut allocation = Allocation::borrowed(start, bytes, kind, device, 0);
    if let Some(file) = file {
        allocation = allocation.keeping(Arc::new(file));
    }
    registry::add_borrowed(allocation).map_err(|_| Error::Known { ptr: start, bytes })
}

/// Whether OpenCL kernels may touch memory of `hipMalloc`: not at `HIP_HOST_STRICT=2`, where such an access ends the
/// process.
#[must_use]
pub fn reaches_hip() -> bool {
    !crate::strict::is_on()
}

/// Forgets memory adopted at `ptr`.
///
/// # Errors
/// [`Error::NotAdopted`] if `ptr` is not an address passed to [`adopt`].
pub fn release(ptr: *mut c_void) -> Result<(), Error> {
    let start = ptr as usize;
    let adopted = registry::find(start).is_some_and(|allocation| {
        allocation.base == start && matches!(allocation.kind, Kind::ForeignVram | Kind::ForeignHost)
    });
    if adopted && registry::remove(start) {
        Ok(())
    } else {
        Err(Error::NotAdopted { ptr: start })
    }
}

/// An OpenCL kernel as work of a stream. The stream's thread calls it once for each run. A failure goes to the log with
/// its reason and becomes the stream's error.
pub type ForeignKernel = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

const LAUNCH: &str = "hipModuleLaunchKernel";

/// Queues an OpenCL kernel on `stream` as `hipModuleLaunchKernel` queues a HIP kernel: in stream order, and recorded if
/// the stream is capturing. `pointers` are its pointer arguments.
///
/// Returns `hipErrorInvalidValue` for a pointer outside the memory that the device knows.
///
/// # Safety
/// `kernel` touches only memory that these pointers lead to, and may do so whenever the stream reaches it.
pub unsafe fn launch(stream: hipStream_t, kernel: ForeignKernel, pointers: &[usize]) -> hipError_t {
    entry(LAUNCH, || {
        let found = stream::find(stream)?;
        let mut touched = Vec::with_capacity(pointers.len());
        for address in pointers {
            let Some(memory) = registry::find(*address) else {
                log::refused(
                    LAUNCH,
                    format_args!(
                        "argument {address:#x} of an OpenCL kernel points outside the memory that the device knows"
                    ),
                );
                return Err(hipError_t::hipErrorInvalidValue);
            };
            touched.push(memory);
        }
        let task: Task = Arc::new(move || {
            kernel().map_err(|reason| {
                log::refused(LAUNCH, format_args!("in the stream: {reason}"));
                hipError_t::hipErrorLaunchFailure
            })
        });
        let routine = Routine::new(LAUNCH, task, touched);
        found.issue(LAUNCH, Operation::Routine(routine)).map(|_| ())
    })
}
