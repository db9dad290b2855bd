//! Streams and events.

use std::ffi::c_void;
use std::ptr::null_mut;

use hip_sys::{hipError_t, hipStream_t};

use crate::world::{Kind, World, call, pick, slot};

unsafe extern "C" fn nothing(_user: *mut c_void) {}

unsafe extern "C" fn nothing_after(_stream: hipStream_t, _status: hipError_t, _user: *mut c_void) {}

pub fn step(w: &mut World) {
    match w.random.below(18) {
        0..=2 => create(w),
        3 => destroy(w),
        4 => facts(w),
        5..=6 => wait(w),
        7 => host_work(w),
        8..=9 => create_event(w),
        10 => destroy_event(w),
        11..=13 => record(w),
        14 => wait_for_event(w),
        15 => ask_event(w),
        16 => elapsed(w),
        _ => words(w),
    }
}

pub fn create(w: &mut World) {
    let mut stream = null_mut();
    let flags = w.random.of(&[0, 0, 1, 1, 2, 3]);
    let code = match w.random.below(3) {
        0 => {
            w.about("hipStreamCreate", "");
            call!(w.hipStreamCreate(&mut stream))
        }
        1 => {
            w.about("hipStreamCreateWithFlags", flags);
            call!(w.hipStreamCreateWithFlags(&mut stream, flags))
        }
        _ => {
            let priority = w.random.of(&[0, -1, 1, -5, 5]);
            w.about("hipStreamCreateWithPriority", format!("{flags}, {priority}"));
            call!(w.hipStreamCreateWithPriority(&mut stream, flags, priority))
        }
    };
    w.answered(code);
    let mut new = slot(stream, 0);
    new.gone = stream.is_null();
    w.streams.push(new);
}

fn destroy(w: &mut World) {
    if w.random.once_in(8) {
        let raw = w.random.of(&[0usize, 1, 2]);
        w.about("hipStreamDestroy", format!("raw {raw}"));
        let code = call!(w.hipStreamDestroy(raw as hipStream_t));
        return w.answered(code);
    }
    let Some(at) = pick(&mut w.random, &w.streams, true) else {
        return;
    };
    let (gone, captures) = (w.streams[at].gone, w.capturing.contains(&at));
    if w.streams[at].handle.is_null() || captures {
        return;
    }
    w.about("hipStreamDestroy", format!("s{at}{}", if gone { ":gone" } else { "" }));
    let code = call!(w.hipStreamDestroy(w.streams[at].handle));
    w.answered(code);
    w.streams[at].gone = true;
}

fn facts(w: &mut World) {
    let (_, stream, name) = w.stream();
    match w.random.below(3) {
        0 => {
            let mut flags = 77;
            w.about("hipStreamGetFlags", name);
            let code = call!(w.hipStreamGetFlags(stream, &mut flags));
            w.told(code, flags);
        }
        1 => {
            let mut priority = 77;
            w.about("hipStreamGetPriority", name);
            let code = call!(w.hipStreamGetPriority(stream, &mut priority));
            w.told(code, priority);
        }
        _ => {
            let mut device = 77;
            w.about("hipStreamGetDevice", name);
            let code = call!(w.hipStreamGetDevice(stream, &mut device));
            w.told(code, device);
        }
    }
}

fn wait(w: &mut World) {
    if w.random.once_in(4) && !w.is_capturing() {
        w.about("hipDeviceSynchronize", "");
        let code = call!(w.hipDeviceSynchronize());
        return w.answered(code);
    }
    let (_, stream, name) = w.stream();
    if w.random.once_in(3) {
        w.about("hipStreamQuery", name);
        let code = call!(w.hipStreamQuery(stream));
        // Both answers are right for work that is under way.
        let code = match code {
            hipError_t::hipErrorNotReady => hipError_t::hipSuccess,
            code => code,
        };
        return w.answered(code);
    }
    w.about("hipStreamSynchronize", name);
    let code = call!(w.hipStreamSynchronize(stream));
    w.answered(code);
}

fn host_work(w: &mut World) {
    let (_, stream, name) = w.stream();
    if w.random.once_in(2) {
        let none = w.random.once_in(6);
        w.about(
            "hipLaunchHostFunc",
            format!("{name}{}", if none { ", null" } else { "" }),
        );
        let function = (!none).then_some(nothing as unsafe extern "C" fn(*mut c_void));
        let code = call!(w.hipLaunchHostFunc(stream, function, null_mut()));
        return w.answered(code);
    }
    let flags = w.random.of(&[0, 0, 0, 1]);
    w.about("hipStreamAddCallback", format!("{name}, {flags}"));
    let code = call!(w.hipStreamAddCallback(stream, Some(nothing_after), null_mut(), flags));
    w.answered(code);
}

pub fn create_event(w: &mut World) {
    let mut event = null_mut();
    let flags = w.random.of(&[
        0,
        0,
        1,
        2,
        2,
        3,
        4,
        6,
        8,
        0x4000_0000,
        0x8000_0000,
        0xc000_0000,
        0x2000_0000,
    ]);
    w.about("hipEventCreateWithFlags", format!("{flags:#x}"));
    let code = call!(w.hipEventCreateWithFlags(&mut event, flags));
    w.answered(code);
    let mut new = slot(event, flags as usize);
    new.gone = event.is_null();
    w.events.push(new);
}

fn destroy_event(w: &mut World) {
    if w.is_capturing() {
        return;
    }
    // A destroyed event is not looked at again: ROCm follows its address.
    let Some(at) = pick(&mut w.random, &w.events, false) else {
        return;
    };
    w.about("hipEventDestroy", format!("e{at}"));
    let code = call!(w.hipEventDestroy(w.events[at].handle));
    w.answered(code);
    w.events[at].gone = true;
}

fn event(w: &mut World) -> Option<usize> {
    pick(&mut w.random, &w.events, false)
}

fn event_name(w: &World, at: usize) -> String {
    format!("e{at}:{:#x}", w.events[at].note)
}

fn record(w: &mut World) {
    let Some(at) = event(w) else {
        return;
    };
    let (_, stream, name) = w.stream();
    if w.random.once_in(5) {
        let flags = w.random.of(&[0, 1, 2]);
        let named = event_name(w, at);
        w.about("hipEventRecordWithFlags", format!("{named}, {name}, {flags}"));
        let code = call!(w.hipEventRecordWithFlags(w.events[at].handle, stream, flags));
        return w.answered(code);
    }
    let named = event_name(w, at);
    w.about("hipEventRecord", format!("{named}, {name}"));
    let code = call!(w.hipEventRecord(w.events[at].handle, stream));
    w.answered(code);
}

fn wait_for_event(w: &mut World) {
    let Some(at) = event(w) else {
        return;
    };
    let (_, stream, name) = w.stream();
    // Not 1, for events outside of a capture: ROCm ends the process.
    let flags = w.random.of(&[0, 0, 0, 2]);
    let named = event_name(w, at);
    w.about("hipStreamWaitEvent", format!("{name}, {named}, {flags}"));
    let code = call!(w.hipStreamWaitEvent(stream, w.events[at].handle, flags));
    w.answered(code);
}

fn ask_event(w: &mut World) {
    let Some(at) = event(w) else {
        return;
    };
    let named = event_name(w, at);
    if w.random.once_in(2) {
        w.about("hipEventQuery", named);
        let code = call!(w.hipEventQuery(w.events[at].handle));
        let code = match code {
            hipError_t::hipErrorNotReady => hipError_t::hipSuccess,
            code => code,
        };
        return w.answered(code);
    }
    w.about("hipEventSynchronize", named);
    let code = call!(w.hipEventSynchronize(w.events[at].handle));
    w.answered(code);
}

fn elapsed(w: &mut World) {
    if w.is_capturing() {
        return;
    }
    let (Some(from), Some(to)) = (event(w), event(w)) else {
        return;
    };
    // What is under way is waited for, so that the answer does not depend on the machine.
    let _ = call!(w.hipDeviceSynchronize());
    let mut milliseconds = 0.0;
    let names = format!("{}, {}", event_name(w, from), event_name(w, to));
    w.about("hipEventElapsedTime", names);
    let (from, to) = (w.events[from].handle, w.events[to].handle);
    let code = call!(w.hipEventElapsedTime(&mut milliseconds, from, to));
    w.answered(code);
}

/// Words that a stream writes and waits for; a wait comes only after the write.
fn words(w: &mut World) {
    if w.is_capturing() {
        return;
    }
    let Some(at) = w.memory(
        |m| matches!(m.kind, Kind::Device | Kind::Pinned) && m.bytes >= 64,
        false,
    ) else {
        return;
    };
    let (_, stream, name) = w.stream();
    let address = w.memories[at].address;
    let flags = w.random.of(&[0, 0, 0, 1]);
    w.about("hipStreamWriteValue32", format!("{name}, {}, 5, {flags}", w.named(at)));
    let code = call!(w.hipStreamWriteValue32(stream, address, 5, flags));
    w.answered(code);
}
