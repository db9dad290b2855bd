//! Words that streams wait for and write.

mod common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use common::{Gate, device, hip_api, runtime};
use hip::{Condition, Device, Error};
use hip_sys::{hipError_t, hipStream_t};

/// Whether the library has these functions; the answer of one that has not is the error that names them.
fn supported(device: &Device) -> bool {
    let stream = device.stream().unwrap();
    let flag = device.flag::<u32>().unwrap();
    match stream.write_flag(&flag, 1) {
        Ok(()) => true,
        Err(Error::MissingSymbol { symbol }) => {
            assert_eq!(symbol, "hipStreamWriteValue32");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_stream_goes_on_when_the_host_sets_the_flag() {
    let device = device();
    if !supported(&device) {
        return;
    }
    let stream = device.stream().unwrap();
    for (condition, before, after) in [
        (Condition::AtLeast(5), 4, 6),
        (Condition::Equal(5), 6, 5),
        (Condition::AnyBitOf(6), 1, 2),
        (Condition::Nor(!1), 1, 0),
    ] {
        let flag = device.flag::<u32>().unwrap();
        flag.store(before);
        stream.wait_flag(&flag, condition).unwrap();
        assert!(!stream.is_idle().unwrap(), "{condition:?}");
        flag.store(after);
        stream.synchronize().unwrap();
    }
}

#[test]
fn one_stream_waits_for_the_word_that_another_writes() {
    let device = device();
    if !supported(&device) {
        return;
    }
    if common::on_cuda() {
        common::skipped("CUDA has no mask for waits");
        return;
    }
    let (writer, reader) = (device.stream().unwrap(), device.stream().unwrap());
    let flag = device.flag::<u64>().unwrap();
    let value = 1 << 40 | 3;
    writer.write_flag(&flag, value).unwrap();
    reader.wait_flag_masked(&flag, Condition::Equal(1 << 40), !3).unwrap();
    reader.synchronize().unwrap();
    assert_eq!(flag.load(), value);
}

#[test]
fn a_word_in_device_memory_orders_streams_like_a_flag() {
    let device = device();
    if !supported(&device) {
        return;
    }
    let (writer, reader) = (device.stream().unwrap(), device.stream().unwrap());
    let mut memory = device.alloc_from(&writer, &[4_u64, 9]).unwrap();
    let word = memory.on_mut(&writer).unwrap().as_mut_ptr();
    // SAFETY: an aligned word of memory that lives until the streams have been waited for.
    unsafe { reader.wait_word(word, Condition::AtLeast(5)) }.unwrap();
    assert!(!reader.is_idle().unwrap());
    // SAFETY: as above.
    unsafe { writer.write_word(word, 5) }.unwrap();
    reader.synchronize().unwrap();
    let mut seen = [0; 2];
    memory.copy_to_slice(&writer, &mut seen).unwrap();
    assert_eq!(seen, [5, 9]);
}

#[test]
fn a_flag_that_is_dropped_while_a_stream_waits_for_it_stays_until_the_wait_is_over() {
    let device = device();
    if !supported(&device) {
        return;
    }
    let stream = device.stream().unwrap();
    let flag = device.flag::<u32>().unwrap();
    let other = flag.clone();
    stream.wait_flag(&flag, Condition::Equal(1)).unwrap();
    stream.write_flag(&flag, 2).unwrap();
    drop(flag);
    other.store(1);
    drop(other);
    stream.synchronize().unwrap();
    assert!(device.runtime().take_deferred_errors().is_empty());
}

/// Makes the next waits for a stream fail before they start waiting.
static WAITS_FAIL: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn synchronize_or_fail(stream: hipStream_t) -> hipError_t {
    if WAITS_FAIL.load(Ordering::Relaxed) {
        return hipError_t::hipErrorUnknown;
    }
    // SAFETY: the caller's promise is the callee's demand.
    unsafe { hip_api().hipStreamSynchronize.unwrap()(stream) }
}

static FREES: AtomicU32 = AtomicU32::new(0);

/// Counts the calls. The memory is not freed: on some platforms freeing waits for the streams, which
/// wait for the test.
unsafe extern "C" fn count_free(_: *mut c_void) -> hipError_t {
    FREES.fetch_add(1, Ordering::Relaxed);
    hipError_t::hipSuccess
}

type Meanwhile = Box<dyn FnOnce() + Send>;

/// What happens between the call that queues a write and its execution.
static MEANWHILE: Mutex<Option<Meanwhile>> = Mutex::new(None);

unsafe extern "C" fn write_late(stream: hipStream_t, pointer: *mut c_void, value: u32, flags: u32) -> hipError_t {
    if let Some(meanwhile) = MEANWHILE.lock().unwrap().take() {
        meanwhile();
    }
    // SAFETY: the caller's promise is the callee's demand.
    unsafe { hip_api().hipStreamWriteValue32.unwrap()(stream, pointer, value, flags) }
}

/// A device with a modified table. Tests use it one at a time, because they share its counters and
/// actions.
struct Tampered {
    device: Device,
    _alone: MutexGuard<'static, ()>,
}

fn tampered() -> Tampered {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    WAITS_FAIL.store(false, Ordering::Relaxed);
    let api = hip_sys::Api {
        hipStreamSynchronize: Some(synchronize_or_fail),
        hipHostFree: Some(count_free),
        hipStreamWriteValue32: hip_api().hipStreamWriteValue32.map(|_| write_late as _),
        ..hip_api()
    };
    let device = runtime(api).device(0).unwrap();
    Tampered { device, _alone: alone }
}

/// Flags freed so far.
fn frees() -> u32 {
    FREES.load(Ordering::Relaxed)
}

#[test]
fn a_dropped_flag_is_freed_only_after_a_wait_for_its_work() {
    let Tampered { device, _alone } = tampered();
    if !supported(&device) {
        return;
    }
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let flag = device.flag::<u32>().unwrap();
    let gate = Gate::close(&stream);
    stream.write_flag(&flag, 1).unwrap();
    stream.wait_flag(&flag, Condition::Equal(1)).unwrap();
    let before = frees();
    drop(flag);
    other.synchronize().unwrap();
    assert_eq!(frees(), before, "the write is queued");
    gate.open();
    stream.synchronize().unwrap();
    assert_eq!(frees(), before + 1);
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn a_wait_that_fails_frees_nothing() {
    let Tampered { device, _alone } = tampered();
    if !supported(&device) {
        return;
    }
    let stream = device.stream().unwrap();
    let flag = device.flag::<u32>().unwrap();
    let gate = Gate::close(&stream);
    stream.write_flag(&flag, 1).unwrap();
    let before = frees();
    drop(flag);
    WAITS_FAIL.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        stream.synchronize().unwrap_err();
        assert_eq!(frees(), before, "the write is queued");
    }
    WAITS_FAIL.store(false, Ordering::Relaxed);
    gate.open();
    stream.synchronize().unwrap();
    assert_eq!(frees(), before + 1);
}

#[test]
fn a_wait_on_another_thread_does_not_free_what_is_queued_after_it() {
    let Tampered { device, _alone } = tampered();
    if !supported(&device) {
        return;
    }
    let stream = device.stream().unwrap();
    let flag = device.flag::<u32>().unwrap();
    let (waited, ended) = mpsc::channel();
    let (close, closed) = mpsc::channel();
    let (waiting, held) = (stream.clone(), stream.clone());
    *MEANWHILE.lock().unwrap() = Some(Box::new(move || {
        let waiter = std::thread::spawn(move || {
            waiting.synchronize().unwrap();
            let _ = waited.send(());
        });
        // Only a wait that correctly outlasts the queueing of the write takes this long.
        let _ = ended.recv_timeout(Duration::from_millis(300));
        close.send((Gate::close(&held), waiter)).unwrap();
    }));
    stream.write_flag(&flag, 1).unwrap();
    let (gate, waiter) = closed.recv().unwrap();
    let before = frees();
    drop(flag);
    assert_eq!(frees(), before, "the write is queued behind the gate");
    gate.open();
    waiter.join().unwrap();
    stream.synchronize().unwrap();
    assert_eq!(frees(), before + 1);
}
