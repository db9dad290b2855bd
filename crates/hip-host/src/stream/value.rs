//! Words in memory that a stream waits for or writes.
//!
//! On ROCm a wait is a kernel that reads the word over and over (rocclr/utils/flags.hpp, `GPU_STREAMOPS_CP_WAIT`), so
//! memory of every kind can hold it, OpenCL's too; ours is the stream's thread doing the same.

use std::cell::Cell;
use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use hip_sys::{
    hipError_t, hipStream_t, hipStreamWaitValueAnd, hipStreamWaitValueEq, hipStreamWaitValueGte, hipStreamWaitValueNor,
};

use super::{Stream, find};
use crate::ending::COMMANDS;
use crate::error::{Result, entry};
use crate::log;
use crate::memory::reach::reaches;
use crate::memory::registry::{self, Allocation};
use crate::memory::sealed;

const GREATER_OR_EQUAL: c_uint = hipStreamWaitValueGte;
const EQUAL: c_uint = hipStreamWaitValueEq;
const AND: c_uint = hipStreamWaitValueAnd;
const NOR: c_uint = hipStreamWaitValueNor;

/// A word that was checked, and the memory it lies in.
struct Word {
    address: usize,
    wide: bool,
    _memory: Arc<Allocation>,
}

impl Word {
    /// The word must be one that kernels of the stream's device reach: a kernel reads or writes it.
    fn find(call: &str, stream: &Stream, ptr: *mut c_void, bytes: usize) -> Result<Self> {
        let address = ptr as usize;
        let memory = registry::device_range(address, bytes)
            .ok()
            .filter(|memory| reaches(stream.device(), memory));
        let (Some(memory), true) = (memory, address.is_multiple_of(bytes)) else {
            log::refused(
                call,
                format_args!("{ptr:p} is not an aligned word of memory that the device can access"),
            );
            return Err(hipError_t::hipErrorInvalidValue);
        };
        Ok(Self {
            address,
            wide: bytes == 8,
            _memory: memory,
        })
    }

    fn load(&self) -> u64 {
        // SAFETY: an aligned word in memory that is held; code that shares it with a stream uses atomic accesses too.
        unsafe {
            if self.wide {
                AtomicU64::from_ptr(self.address as *mut u64).load(Ordering::Acquire)
            } else {
                u64::from(AtomicU32::from_ptr(self.address as *mut u32).load(Ordering::Acquire))
            }
        }
    }

    fn store(&self, value: u64) {
        // SAFETY: as in `load`.
        unsafe {
            if self.wide {
                AtomicU64::from_ptr(self.address as *mut u64).store(value, Ordering::Release);
            } else {
                AtomicU32::from_ptr(self.address as *mut u32).store(value as u32, Ordering::Release);
            }
        }
    }
}

/// Turns that only yield before the waiting thread begins to sleep.
const EAGER_TURNS: u32 = 1000;
const SLEEP: Duration = Duration::from_micros(50);

/// Reads until `done`, eagerly at first.
pub(crate) fn poll(done: impl Fn() -> bool) {
    let mut turns = 0;
    while !done() {
        if turns < EAGER_TURNS {
            turns += 1;
            std::thread::yield_now();
        } else {
            std::thread::sleep(SLEEP);
        }
    }
}

/// Waits until `is_reached`, which is not asked any more once the commands have ended: OpenCL's memory, in which the word
/// may lie, is freed next.
fn wait_before(ended: impl Fn() -> bool, is_reached: impl Fn() -> bool) -> Result {
    let outcome = Cell::new(Ok(()));
    poll(|| {
        if ended() {
            outcome.set(Err(hipError_t::hipErrorDeinitialized));
            return true;
        }
        is_reached()
    });
    outcome.get()
}

fn wait(
    call: &'static str,
    stream: hipStream_t,
    (ptr, bytes): (*mut c_void, usize),
    value: u64,
    flags: c_uint,
    mask: u64,
) -> hipError_t {
    entry(call, || {
        if ptr.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let stream = find(stream)?;
        let word = Word::find(call, &stream, ptr, bytes)?;
        // The wait's kinds and their meaning: hip_runtime_api.h, `hipStreamWaitValue32`.
        let reached: fn(u64, u64, u64) -> bool = match flags {
            GREATER_OR_EQUAL => |seen, value, _| seen >= value,
            EQUAL => |seen, value, _| seen == value,
            AND => |seen, value, _| seen & value != 0,
            NOR => |seen, value, mask| !(seen | value) & mask != 0,
            _ => return Err(hipError_t::hipErrorInvalidValue),
        };
        let work = Box::new(move || {
            let is_reached = || {
                let _open = sealed::open();
                reached(word.load() & mask, value, mask)
            };
            wait_before(|| COMMANDS.have_ended(), is_reached)
        });
        stream.submit_waiting(call, Vec::new(), work).map(|_| ())
    })
}

fn write(call: &'static str, stream: hipStream_t, (ptr, bytes): (*mut c_void, usize), value: u64) -> hipError_t {
    entry(call, || {
        if ptr.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let stream = find(stream)?;
        let word = Word::find(call, &stream, ptr, bytes)?;
        let work = Box::new(move || {
            word.store(value);
            Ok(())
        });
        stream.submit(call, Vec::new(), work).map(|_| ())
    })
}

pub(crate) unsafe extern "C" fn stream_wait_value32(
    stream: hipStream_t,
    ptr: *mut c_void,
    value: u32,
    flags: c_uint,
    mask: u32,
) -> hipError_t {
    let (value, mask) = (u64::from(value), u64::from(mask));
    wait("hipStreamWaitValue32", stream, (ptr, 4), value, flags, mask)
}

pub(crate) unsafe extern "C" fn stream_wait_value64(
    stream: hipStream_t,
    ptr: *mut c_void,
    value: u64,
    flags: c_uint,
    mask: u64,
) -> hipError_t {
    wait("hipStreamWaitValue64", stream, (ptr, 8), value, flags, mask)
}

pub(crate) unsafe extern "C" fn stream_write_value32(
    stream: hipStream_t,
    ptr: *mut c_void,
    value: u32,
    _flags: c_uint,
) -> hipError_t {
    write("hipStreamWriteValue32", stream, (ptr, 4), u64::from(value))
}

pub(crate) unsafe extern "C" fn stream_write_value64(
    stream: hipStream_t,
    ptr: *mut c_void,
    value: u64,
    _flags: c_uint,
) -> hipError_t {
    write("hipStreamWriteValue64", stream, (ptr, 8), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_the_end_of_the_process_cuts_short_fails_and_reads_no_memory() {
        let turns = Cell::new(0);
        let ended = || turns.replace(turns.get() + 1) == 3;
        let is_reached = || {
            assert!(turns.get() <= 3, "the memory may be freed");
            false
        };
        assert_eq!(wait_before(ended, is_reached), Err(hipError_t::hipErrorDeinitialized));
        assert_eq!(wait_before(|| false, || turns.replace(turns.get() + 1) == 9), Ok(()));
        assert_eq!(turns.get(), 10);
    }
}
