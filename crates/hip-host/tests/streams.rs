//! Order within and across streams, events, host functions, and errors that come later.

mod common;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, Sender, channel};

use common::*;
use hip_sys::{hipError_t, hipEvent_t, hipMemcpyKind, hipStream_t};

const NOT_READY: hipError_t = hipError_t::hipErrorNotReady;
const D2H: hipMemcpyKind = hipMemcpyKind::hipMemcpyDeviceToHost;

/// A gate in a stream: what is behind it waits until the gate is opened, or dropped.
struct Gate {
    open: Sender<()>,
    reached: Receiver<()>,
}

impl Gate {
    fn put(stream: hipStream_t) -> Self {
        unsafe extern "C" fn wait(user: *mut c_void) {
            // SAFETY: the box made below, handed over once.
            let (opened, at) = *unsafe { Box::from_raw(user.cast::<(Receiver<()>, Sender<()>)>()) };
            let _ = at.send(());
            let _ = opened.recv();
        }
        let (open, opened) = channel();
        let (at, reached) = channel();
        ok!(hipLaunchHostFunc(
            stream,
            Some(wait),
            Box::into_raw(Box::new((opened, at))).cast()
        ));
        Self { open, reached }
    }

    fn until_reached(&self) {
        self.reached.recv().unwrap();
    }

    fn open(self) {
        let _ = self.open.send(());
    }
}

fn event() -> hipEvent_t {
    let mut event = null_mut();
    ok!(hipEventCreate(&mut event));
    event
}

#[test]
fn a_stream_keeps_its_order() {
    let (s, d) = (stream(), malloc(4));
    for i in 0..1000 {
        ok!(hipMemsetD32Async(d, i, 1, s));
    }
    ok!(hipStreamSynchronize(s));
    assert_eq!(download::<i32>(d, 1), [999]);
}

#[test]
fn work_is_queued_and_seen_as_not_ready() {
    let s = stream();
    assert_eq!(hip!(hipStreamQuery(s)), OK);
    let gate = Gate::put(s);
    assert_eq!(hip!(hipStreamQuery(s)), NOT_READY);
    gate.until_reached();
    gate.open();
    ok!(hipStreamSynchronize(s));
    assert_eq!(hip!(hipStreamQuery(s)), OK);
}

#[test]
fn streams_run_side_by_side() {
    let (a, b) = (stream(), stream());
    let (in_a, in_b) = (Gate::put(a), Gate::put(b));
    in_a.until_reached();
    in_b.until_reached();
    in_b.open();
    ok!(hipStreamSynchronize(b));
    assert_eq!(hip!(hipStreamQuery(a)), NOT_READY);
    in_a.open();
    ok!(hipStreamSynchronize(a));
}

#[test]
fn an_event_orders_one_stream_behind_another() {
    let (a, b, d) = (stream(), stream(), upload(&[0i32]));
    let gate = Gate::put(a);
    ok!(hipMemsetD32Async(d, 1, 1, a));
    let e = event();
    ok!(hipEventRecord(e, a));
    ok!(hipStreamWaitEvent(b, e, 0));
    ok!(hipMemsetD32Async(d, 2, 1, b));
    assert_eq!(hip!(hipEventQuery(e)), NOT_READY);
    assert_eq!(hip!(hipStreamQuery(b)), NOT_READY);
    // Recording anew, or destroying the event, does not move what already waits.
    ok!(hipEventRecord(e, stream()));
    ok!(hipEventDestroy(e));
    gate.open();
    ok!(hipStreamSynchronize(b));
    assert_eq!(download::<i32>(d, 1), [2]);
    assert_eq!(hip!(hipEventQuery(e)), hipError_t::hipErrorInvalidHandle);
    assert_eq!(hip!(hipEventDestroy(e)), hipError_t::hipErrorContextIsDestroyed);
    assert_eq!(hip!(hipStreamWaitEvent(b, e, 0)), hipError_t::hipErrorInvalidHandle);
    assert_eq!(
        hip!(hipStreamWaitEvent(b, null_mut(), 0)),
        hipError_t::hipErrorInvalidHandle
    );
}

#[test]
fn events_measure_time_between_them() {
    let s = stream();
    let (a, b, never, untimed) = (event(), event(), event(), {
        let mut event = null_mut();
        ok!(hipEventCreateWithFlags(&mut event, 2));
        event
    });
    let mut ms = -1f32;
    let invalid = hipError_t::hipErrorInvalidHandle;
    assert_eq!(hip!(hipEventQuery(never)), OK, "never recorded counts as done");
    ok!(hipEventSynchronize(never));
    ok!(hipStreamWaitEvent(s, never, 0));
    ok!(hipEventRecord(a, s));
    let gate = Gate::put(s);
    ok!(hipEventRecord(b, s));
    ok!(hipEventRecord(untimed, s));
    assert_eq!(hip!(hipEventElapsedTime(&mut ms, a, b)), NOT_READY);
    gate.until_reached();
    std::thread::sleep(std::time::Duration::from_millis(5));
    gate.open();
    ok!(hipEventSynchronize(b));
    ok!(hipEventElapsedTime(&mut ms, a, b));
    assert!(ms >= 5.0, "{ms}");
    ok!(hipEventElapsedTime(&mut ms, b, a));
    assert!(ms <= -5.0, "{ms}");
    ok!(hipEventSynchronize(untimed));
    for (from, to) in [(a, never), (never, a), (a, untimed), (untimed, a), (a, null_mut())] {
        assert_eq!(hip!(hipEventElapsedTime(&mut ms, from, to)), invalid);
    }
    assert_eq!(
        hip!(hipEventElapsedTime(null_mut(), a, b)),
        hipError_t::hipErrorInvalidValue
    );
    assert_eq!(
        hip!(hipEventCreateWithFlags(&mut null_mut(), 0x1000)),
        hipError_t::hipErrorInvalidValue
    );
}

#[test]
fn the_null_stream_waits_for_blocking_streams_and_they_for_it() {
    if !is_child() {
        // Alone in a process: the null stream orders the other tests' blocking streams too.
        assert!(
            run_child("the_null_stream_waits_for_blocking_streams_and_they_for_it", &[])
                .status
                .success()
        );
        return;
    }
    let (blocking, other, free, d) = (blocking_stream(), blocking_stream(), stream(), upload(&[0i32]));
    let gate = Gate::put(blocking);
    ok!(hipMemsetD32Async(d, 1, 1, blocking));
    ok!(hipMemsetD32Async(d, 2, 1, null_mut()));
    ok!(hipMemsetD32Async(d, 3, 1, other));
    assert_eq!(hip!(hipStreamQuery(null_mut())), NOT_READY);
    assert_eq!(hip!(hipStreamQuery(other)), NOT_READY);
    ok!(hipMemsetAsync(malloc(4), 0, 4, free));
    ok!(hipStreamSynchronize(free));
    gate.open();
    ok!(hipStreamSynchronize(other));
    assert_eq!(download::<i32>(d, 1), [3]);
    // Work in a non-blocking stream alone does not hold the null stream up.
    let gate = Gate::put(free);
    ok!(hipMemset(d, 0, 4));
    ok!(hipStreamSynchronize(null_mut()));
    assert_eq!(hip!(hipStreamQuery(free)), NOT_READY);
    gate.open();
    ok!(hipDeviceSynchronize());
    assert_eq!(hip!(hipStreamQuery(free)), OK);
    // The per-thread stream is a blocking one.
    let gate = Gate::put(hip_sys::hipStreamPerThread);
    assert_eq!(hip!(hipStreamQuery(hip_sys::hipStreamLegacy)), NOT_READY);
    std::thread::spawn(|| assert_eq!(hip!(hipStreamQuery(hip_sys::hipStreamPerThread)), OK))
        .join()
        .unwrap();
    gate.open();
    ok!(hipStreamSynchronize(hip_sys::hipStreamPerThread));
}

#[test]
fn a_copy_of_pageable_memory_is_done_when_the_call_returns() {
    let (s, d) = (stream(), upload(&[7i32; 64]));
    let mut host = [0i32; 64];
    ok!(hipMemcpyAsync(host.as_mut_ptr().cast(), d, 256, D2H, s));
    assert_eq!(host, [7; 64]);
}

#[test]
fn a_copy_of_pinned_memory_is_queued() {
    let (s, d) = (stream(), upload(&[7i32; 64]));
    let mut pinned = null_mut();
    ok!(hipHostMalloc(&mut pinned, 256, 0));
    let gate = Gate::put(s);
    ok!(hipMemcpyAsync(pinned, d, 256, D2H, s));
    assert_eq!(hip!(hipStreamQuery(s)), NOT_READY);
    gate.open();
    ok!(hipStreamSynchronize(s));
    // SAFETY: 256 bytes of pinned memory, and the stream is idle.
    assert_eq!(unsafe { *pinned.cast::<[i32; 64]>() }, [7; 64]);
}

#[test]
fn freeing_memory_waits_for_its_users() {
    let (s, d) = (stream(), malloc(1 << 20));
    let gate = Gate::put(s);
    ok!(hipMemsetAsync(d, 1, 1 << 20, s));
    let freed = std::thread::spawn({
        let d = d as usize;
        move || ok!(hipFree(d as *mut c_void))
    });
    gate.until_reached();
    assert_eq!(hip!(hipStreamQuery(s)), NOT_READY);
    gate.open();
    freed.join().unwrap();
    assert_eq!(hip!(hipStreamQuery(s)), OK);
}

#[test]
fn a_destroyed_stream_finishes_and_its_handle_is_dead() {
    let (s, d) = (stream(), upload(&[0i32]));
    let gate = Gate::put(s);
    ok!(hipMemsetD32Async(d, 5, 1, s));
    let e = event();
    ok!(hipEventRecord(e, s));
    ok!(hipStreamDestroy(s));
    gate.open();
    ok!(hipEventSynchronize(e));
    assert_eq!(download::<i32>(d, 1), [5]);
    let gone = hipError_t::hipErrorContextIsDestroyed;
    assert_eq!(hip!(hipStreamDestroy(s)), gone);
    assert_eq!(hip!(hipStreamSynchronize(s)), gone);
    assert_eq!(hip!(hipStreamQuery(s)), gone);
    assert_eq!(hip!(hipEventRecord(e, s)), gone);
    assert_eq!(hip!(hipMemsetAsync(d, 0, 4, s)), gone);
    assert_eq!(hip!(hipLaunchHostFunc(s, None, null_mut())), gone);
    assert_eq!(hip!(hipStreamSynchronize(e.cast())), gone, "an event is no stream");
    assert_eq!(hip!(hipStreamDestroy(null_mut())), hipError_t::hipErrorInvalidHandle);
}

#[test]
fn stream_properties_are_those_it_was_made_with() {
    let (mut least, mut greatest, mut flags, mut priority, mut s) = (9, 9, 9, 9, null_mut());
    ok!(hipDeviceGetStreamPriorityRange(&mut least, &mut greatest));
    assert!(greatest < least);
    ok!(hipStreamCreateWithPriority(&mut s, 1, greatest - 100));
    ok!(hipStreamGetPriority(s, &mut priority));
    ok!(hipStreamGetFlags(s, &mut flags));
    assert_eq!((priority, flags), (greatest, 1));
    assert_eq!(
        hip!(hipStreamCreateWithFlags(&mut s, 2)),
        hipError_t::hipErrorInvalidValue
    );
    assert_eq!(hip!(hipStreamCreate(null_mut())), hipError_t::hipErrorInvalidValue);
}

#[test]
fn a_host_function_must_not_call_hip() {
    unsafe extern "C" fn calls_hip(out: *mut c_void) {
        // SAFETY: the array below, which outlives the stream's work.
        let out = unsafe { &mut *out.cast::<[hipError_t; 2]>() };
        out[0] = hip!(hipDeviceSynchronize());
        out[1] = hip!(hipMalloc(&mut null_mut(), 16));
    }
    let (s, mut seen) = (stream(), [OK; 2]);
    ok!(hipLaunchHostFunc(s, Some(calls_hip), (&raw mut seen).cast()));
    ok!(hipStreamSynchronize(s));
    assert_eq!(seen, [hipError_t::hipErrorIllegalState; 2]);
    assert_eq!(
        hip!(hipLaunchHostFunc(s, None, null_mut())),
        hipError_t::hipErrorInvalidValue
    );
}

#[test]
fn a_callback_gets_its_stream_and_status() {
    unsafe extern "C" fn callback(stream: hipStream_t, status: hipError_t, user: *mut c_void) {
        // SAFETY: the tuple below, which outlives the stream's work.
        unsafe { *user.cast::<(hipStream_t, hipError_t)>() = (stream, status) };
    }
    let (s, mut seen) = (stream(), (null_mut::<hip_sys::ihipStream_t>(), NOT_READY));
    ok!(hipStreamAddCallback(s, Some(callback), (&raw mut seen).cast(), 0));
    ok!(hipStreamSynchronize(s));
    assert_eq!(seen, (s, OK));
    assert_eq!(
        hip!(hipStreamAddCallback(s, Some(callback), null_mut(), 1)),
        hipError_t::hipErrorInvalidValue
    );
}

#[test]
fn threads_share_streams_and_events_without_deadlock() {
    let streams: Vec<usize> = (0..4)
        .map(|i| if i % 2 == 0 { stream() } else { blocking_stream() } as usize)
        .collect();
    let events: Vec<usize> = (0..4).map(|_| event() as usize).collect();
    std::thread::scope(|scope| {
        for seed in 0..6usize {
            let (streams, events) = (&streams, &events);
            scope.spawn(move || {
                let d = malloc(64);
                for i in 0..300 {
                    let s = streams[(i * 7 + seed) % 4] as hipStream_t;
                    let e = events[(i * 5 + seed) % 4] as hipEvent_t;
                    match (i + seed) % 6 {
                        0 => ok!(hipEventRecord(e, s)),
                        1 => ok!(hipStreamWaitEvent(s, e, 0)),
                        2 => ok!(hipMemsetAsync(d, 1, 64, s)),
                        3 => ok!(hipMemset(d, 1, 64)),
                        4 if i % 5 == 0 => ok!(hipStreamSynchronize(s)),
                        _ => ok!(hipStreamWaitEvent(null_mut(), e, 0)),
                    }
                }
                ok!(hipFree(d));
            });
        }
    });
    ok!(hipDeviceSynchronize());
}

#[test]
fn a_process_may_end_with_work_in_flight() {
    unsafe extern "C" fn forever(_: *mut c_void) {
        loop {
            std::thread::park();
        }
    }
    if is_child() {
        ok!(hipLaunchHostFunc(stream(), Some(forever), null_mut()));
        ok!(hipLaunchHostFunc(null_mut(), Some(forever), null_mut()));
        return;
    }
    assert!(run_child("a_process_may_end_with_work_in_flight", &[]).status.success());
}
