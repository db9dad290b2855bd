//! Host functions and futures: called once, after what was queued before, and a panic ends nothing.

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use common::{Gate, device, runtime};
use hip::Error;

struct Counter(AtomicUsize, mpsc::SyncSender<()>);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.send(()).unwrap();
    }
}

fn counter() -> (Arc<Counter>, mpsc::Receiver<()>) {
    let (sender, receiver) = mpsc::sync_channel(16);
    (Arc::new(Counter(AtomicUsize::new(0), sender)), receiver)
}

#[test]
fn host_functions_run_once_and_in_order() {
    let device = device();
    let stream = device.stream().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    for number in 0..100 {
        let seen = seen.clone();
        let push = move || seen.lock().unwrap().push(number);
        stream.host_function(push).unwrap();
    }
    stream.synchronize().unwrap();
    assert!(seen.lock().unwrap().iter().copied().eq(0..100));
    assert_eq!(Arc::strong_count(&seen), 1, "all closures were dropped");
}

#[test]
fn a_panic_in_a_host_function_is_deferred_and_the_stream_goes_on() {
    let device = device();
    let stream = device.stream().unwrap();
    stream.host_function(|| panic!("the reason")).unwrap();
    let mut memory = device.alloc_from(&stream, &[1_u8; 4]).unwrap();
    memory.on_mut(&stream).unwrap().fill_zero().unwrap();
    let mut seen = [1; 4];
    memory.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [0; 4]);
    let deferred = device.runtime().take_deferred_errors();
    assert!(
        matches!(&deferred[..], [Error::HostFunction { message }] if message == "the reason"),
        "{deferred:?}"
    );
}

#[test]
fn a_refused_host_function_is_dropped() {
    unsafe extern "C" fn refuse(
        _: hip_sys::hipStream_t,
        _: hip_sys::hipHostFn_t,
        _: *mut std::ffi::c_void,
    ) -> hip_sys::hipError_t {
        hip_sys::hipError_t::hipErrorInvalidValue
    }
    for slot in [Some(refuse as unsafe extern "C" fn(_, _, _) -> _), None] {
        let api = hip_sys::Api {
            hipLaunchHostFunc: slot,
            ..common::hip_api()
        };
        let stream = runtime(api).device(0).unwrap().stream().unwrap();
        let held = Arc::new(());
        let captured = held.clone();
        assert!(stream.host_function(move || drop(captured)).is_err());
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(stream.completion().is_err());
    }
}

#[test]
fn a_completion_wakes_its_last_waker_once_and_is_ready() {
    let device = device();
    let stream = device.stream().unwrap();
    let gate = Gate::close(&stream);
    let mut completion = pin!(stream.completion().unwrap());
    // Queued after it: does not delay it.
    let later = Gate::close(&stream);
    let ((early, _no), (late, woken)) = (counter(), counter());
    for who in [&early, &late, &late] {
        let waker = Waker::from(who.clone());
        let mut context = Context::from_waker(&waker);
        assert!(completion.as_mut().poll(&mut context).is_pending());
    }
    gate.open();
    woken.recv().unwrap();
    assert_eq!(late.0.load(Ordering::SeqCst), 1);
    assert_eq!(early.0.load(Ordering::SeqCst), 0);
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(completion.as_mut().poll(&mut context), Poll::Ready(Ok(()))));
    assert!(!stream.is_idle().unwrap());
    later.open();
}

#[test]
fn a_completion_may_be_dropped_or_leaked_before_it_is_ready() {
    let device = device();
    let stream = device.stream().unwrap();
    let gate = Gate::close(&stream);
    drop(stream.completion().unwrap());
    std::mem::forget(stream.completion().unwrap());
    gate.open();
    stream.synchronize().unwrap();
    assert!(device.runtime().take_deferred_errors().is_empty());
}
