//! Managed memory: advice, prefetching, attributes of ranges.

use std::ffi::{c_int, c_void};

use hip_sys::{hipMemRangeAttribute, hipMemoryAdvise};

use crate::world::{Kind, World, call};

pub fn step(w: &mut World) {
    if w.is_capturing() {
        return;
    }
    let wrong = w.random.once_in(10);
    let fits = |kind: Kind| match wrong {
        false => kind == Kind::Managed,
        true => matches!(kind, Kind::Managed | Kind::Pinned),
    };
    let Some(at) = w.memory(|m| fits(m.kind) && m.bytes > 0, false) else {
        return allocate(w);
    };
    let memory = w.memories[at];
    let bytes = w.random.of(&[memory.bytes, memory.bytes, memory.bytes / 2, 0]);
    let name = w.named(at);
    match w.random.below(6) {
        0 => allocate(w),
        1..=2 => {
            let advice = w.random.of(&[1, 2, 3, 4, 5, 6, 100, 101, 0, 7]);
            let device = w.random.of(&[0, 0, 0, -1, -2, 7]);
            w.about("hipMemAdvise", format!("{name}, {bytes}, {advice}, {device}"));
            let advice = hipMemoryAdvise(advice);
            let code = call!(w.hipMemAdvise(memory.address, bytes, advice, device));
            w.answered(code);
        }
        3 => {
            let device = w.random.of(&[0, 0, -1, -2, 7]);
            let (_, stream, stream_name) = w.stream();
            w.about(
                "hipMemPrefetchAsync",
                format!("{name}, {bytes}, {device}, {stream_name}"),
            );
            let code = call!(w.hipMemPrefetchAsync(memory.address, bytes, device, stream));
            w.answered(code);
            let _ = call!(w.hipStreamSynchronize(stream));
        }
        4 => {
            let attribute = w.random.of(&[1, 2, 3, 4, 100, 0, 9]);
            let room = w.random.of(&[4usize, 4, 4, 8, 0, 3]);
            let mut out: [c_int; 4] = [77; 4];
            w.about(
                "hipMemRangeGetAttribute",
                format!("{room}, {attribute}, {name}, {bytes}"),
            );
            let pointer = out.as_mut_ptr().cast::<c_void>();
            let attribute = hipMemRangeAttribute(attribute);
            let code = call!(w.hipMemRangeGetAttribute(pointer, room, attribute, memory.address, bytes));
            w.told(code, format!("{} {}", out[0], out[1]));
        }
        _ => {
            let flags = w.random.of(&[1, 2, 4, 0, 8]);
            let length = w.random.of(&[0, 0, memory.bytes, memory.bytes / 2]);
            let (_, stream, stream_name) = w.stream();
            w.about(
                "hipStreamAttachMemAsync",
                format!("{stream_name}, {name}, {length}, {flags}"),
            );
            let code = call!(w.hipStreamAttachMemAsync(stream, memory.address, length, flags));
            w.answered(code);
        }
    }
}

fn allocate(w: &mut World) {
    let mut p = std::ptr::null_mut();
    let bytes = w.random.of(&[4096, 8192, 65536, 1000]);
    w.about("hipMallocManaged", format!("{bytes}, 1"));
    let code = call!(w.hipMallocManaged(&mut p, bytes, 1));
    w.answered(code);
    let bytes = if p.is_null() { 0 } else { bytes };
    w.add_memory(p, bytes, Kind::Managed);
}
