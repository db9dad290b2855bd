//! Streams share hardware queues: one that waits stops the others of its queue.

mod common;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, channel};

use common::*;
use hip_sys::{hipError_t, hipStream_t};

/// Waits until the sender is gone.
unsafe extern "C" fn wait(gate: *mut c_void) {
    // SAFETY: the box that `closed` made, given to one function.
    let gate = unsafe { Box::from_raw(gate.cast::<Receiver<()>>()) };
    let _ = gate.recv();
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// A stream whose first command ends when the other value is dropped.
fn closed() -> (hipStream_t, std::sync::mpsc::Sender<()>) {
    let (open, gate) = channel();
    let stream = stream();
    let gate = Box::into_raw(Box::new(gate)).cast();
    ok!(hipLaunchHostFunc(stream, Some(wait), gate));
    (stream, open)
}

/// A stream with an event behind its only command.
fn recorded() -> hipStream_t {
    let (stream, mut event) = (stream(), null_mut());
    ok!(hipEventCreate(&mut event));
    ok!(hipEventRecord(event, stream));
    stream
}

#[test]
fn a_stream_that_waits_stops_the_others_of_its_queue_only() {
    const NAME: &str = "a_stream_that_waits_stops_the_others_of_its_queue_only";
    if !is_child() {
        for (environment, queues) in [
            (&[][..], "none"),
            (&[("GPU_MAX_HW_QUEUES", "2")], "2"),
            (&[("GPU_MAX_HW_QUEUES", "3")], "3"),
            (&[("HIP_HOST_STRICT", "2")], "4"),
            (&[("HIP_HOST_STRICT", "2"), ("GPU_MAX_HW_QUEUES", "2")], "2"),
        ] {
            let environment = [environment, &[("QUEUES", queues)]].concat();
            let child = run_child(NAME, &environment);
            assert!(child.status.success(), "{environment:?}: {child:?}");
        }
        let child = run_child(NAME, &[("GPU_MAX_HW_QUEUES", "0"), ("QUEUES", "none")]);
        assert!(child.status.success(), "{child:?}");
        let text = String::from_utf8_lossy(&child.stderr).into_owned();
        assert!(text.contains("GPU_MAX_HW_QUEUES=`0`"), "{text}");
        return;
    }
    let queues: Option<usize> = std::env::var("QUEUES").unwrap().parse().ok();
    let (first, gate) = closed();
    let others: Vec<hipStream_t> = (1..queues.unwrap_or(9)).map(|_| recorded()).collect();
    for &stream in &others {
        ok!(hipStreamSynchronize(stream));
    }
    let shares = recorded();
    if queues.is_some() {
        // Time enough for it to end: another queue goes on.
        for _ in 0..1000 {
            ok!(hipLaunchHostFunc(others[0], Some(nothing), null_mut()));
            ok!(hipStreamSynchronize(others[0]));
        }
        assert_eq!(hip!(hipStreamQuery(shares)), hipError_t::hipErrorNotReady);
    }
    drop(gate);
    ok!(hipStreamSynchronize(shares));
    ok!(hipStreamSynchronize(first));
    // The queue of a destroyed stream is used again.
    for stream in others {
        ok!(hipStreamDestroy(stream));
    }
    let (_, gate) = closed();
    ok!(hipStreamSynchronize(recorded()));
    drop(gate);
}
