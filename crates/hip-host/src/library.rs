//! What a library needs that computes on the model's streams, as rocBLAS does on a device's.
//!
//! | item | what |
//! |---|---|
//! | [`entry`], [`Code`] | what every C function does around its body: injected faults, no panic across the boundary, the call log |
//! | [`refused`] | why a call was refused, for `HIP_HOST_LOG` |
//! | [`begin`], [`ordinal`], [`check`] | which device a call computes on, and whether it reaches the memory |
//! | [`is_stream`], [`issue`], [`issue_placed`], [`issue_awaited`], [`drain`] | work in the order of a stream |
//! | [`spread`] | work over the device's threads |
//!
//! A call begins with its stream, which says which device computes. From then on the thread that makes the call checks
//! memory for that device, and keeps what it found until the work is put into the stream. The work itself checks what
//! an array of pointers names, on the stream's thread, for the same device.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::{Arc, Weak};

use hip_sys::{hipError_t, hipStream_t};

use crate::device::{self, Device};
use crate::ending::COMMANDS;
pub use crate::frame::{Code, run as entry};
use crate::graph::{Operation, Routine};
pub use crate::log::refused;
use crate::memory::reach::reaches;
use crate::memory::registry::{self, Allocation};
pub use crate::stream::is_valid as is_stream;
use crate::work::{Task, Work};
use crate::{stream, workers};

#[derive(Default)]
struct Call {
    /// The calling thread's device, if none was named.
    device: Option<&'static Device>,
    /// Not kept alive: a call that was refused, or that waits, leaves its list behind.
    touched: Vec<Weak<Allocation>>,
}

thread_local! {
    static CALL: RefCell<Call> = RefCell::default();
}

/// The thread's checks are for the stream's device from now on.
///
/// # Errors
/// The stream's, if it is none. Checks are for the thread's current device then.
pub fn begin(stream: hipStream_t) -> Result<(), hipError_t> {
    let device = stream::find(stream).map(|stream| stream.device());
    begin_on(device.ok());
    device.map(|_| ())
}

fn begin_on(device: Option<&'static Device>) {
    CALL.set(Call {
        device,
        touched: Vec::new(),
    });
}

/// The number of the device that a stream works on.
///
/// # Errors
/// As [`begin`].
pub fn ordinal(stream: hipStream_t) -> Result<usize, hipError_t> {
    stream::find(stream).map(|stream| stream.device().ordinal)
}

/// The memory that was checked since the call began.
fn touched() -> Vec<Arc<Allocation>> {
    let touched = CALL.take().touched;
    touched.iter().filter_map(Weak::upgrade).collect()
}

/// Checks that the call's device reaches all of a range.
///
/// # Errors
/// `hipErrorInvalidValue`: on ROCm the kernel faults, which ends the process.
pub fn check(ptr: *const c_void, bytes: usize) -> Result<(), hipError_t> {
    let allocation = registry::device_range(ptr as usize, bytes)?;
    CALL.with_borrow_mut(|call| {
        let device = match call.device {
            Some(device) => device,
            None => device::current()?,
        };
        if !reaches(device, &allocation) {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        call.touched.push(Arc::downgrade(&allocation));
        Ok(())
    })
}

/// Runs `work` in the order of the stream and returns at once. A stream that captures records it instead, as a kernel,
/// to be run by each launch of the graph: with the memory that was checked, unless that was freed since.
pub fn issue(stream: hipStream_t, call: &'static str, work: impl Fn() + Send + Sync + 'static) -> hipError_t {
    issue_routine(stream, call, |device, touched| {
        let task: Task = Arc::new(move || {
            begin_on(Some(device));
            work();
            CALL.take();
            Ok(())
        });
        Routine::new(call, task, touched)
    })
}

/// As [`issue`], for work that has its place among that of other threads. `begin` gives it that on the thread which
/// queues it: the one that calls this, or later each one that launches the graph. What it returns runs in the stream,
/// or is dropped if it cannot be queued.
pub fn issue_placed<W: FnOnce() + Send + 'static>(
    stream: hipStream_t,
    call: &'static str,
    begin: impl Fn() -> W + Send + Sync + 'static,
) -> hipError_t {
    issue_routine(stream, call, |_, touched| {
        let begin = move || -> Work {
            let work = begin();
            Box::new(move || {
                work();
                Ok(())
            })
        };
        Routine::beginning(call, Arc::new(begin), touched)
    })
}

fn issue_routine(
    stream: hipStream_t,
    call: &'static str,
    routine: impl FnOnce(&'static Device, Vec<Arc<Allocation>>) -> Routine,
) -> hipError_t {
    let touched = touched();
    let issued = stream::find(stream).and_then(|stream| {
        let routine = routine(stream.device(), touched);
        stream.issue(call, Operation::Routine(routine))
    });
    issued.err().unwrap_or(hipError_t::hipSuccess)
}

/// As [`issue`], for work that the calling thread waits for. No graph can hold that: it ends a capture.
pub fn issue_awaited(stream: hipStream_t, call: &'static str, work: impl FnOnce() + Send + 'static) -> hipError_t {
    stream::enqueue(stream, call, Box::new(work))
}

/// Waits for all work on the stream. Errors stay there for the next synchronisation.
pub fn drain(stream: hipStream_t, call: &'static str) {
    let mark = stream::find(stream).and_then(|stream| stream.submit(call, Vec::new(), Box::new(|| Ok(()))));
    // A stream that is gone has nothing left to wait for.
    if let Ok(mark) = mark {
        mark.wait();
    }
}

/// Chunks per thread: enough to even out a core that is slowed down, few enough for their cost not to show.
const CHUNKS_PER_THREAD: usize = 8;

/// Calls `work` once for every index below `count`, on several threads, and returns when all are done.
///
/// # Panics
/// If `work` does, after the others are done.
pub fn spread(count: usize, work: impl Fn(usize) + Sync) {
    let grain = count.div_ceil(CHUNKS_PER_THREAD * workers::width());
    workers::for_each(count as u64, grain as u64, &|range| {
        for index in range {
            COMMANDS.leave_if_ended();
            work(index as usize);
        }
    });
}
