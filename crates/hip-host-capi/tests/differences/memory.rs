//! Memory: allocated, freed, copied, filled and described.

use std::ffi::c_void;
use std::ptr::null_mut;

use hip_sys::{
    hipMemPoolAttr, hipMemPoolProps, hipMemcpyKind, hipMemoryType, hipPointer_attribute, hipPointerAttribute_t,
};

use crate::world::{Kind, Memory, World, call, pick, slot};

pub fn step(w: &mut World) {
    match w.random.below(20) {
        0..=2 => allocate(w),
        3 => register(w),
        4..=5 => free(w),
        6..=8 => copy(w),
        9 => copy_rows(w),
        10..=11 => fill(w),
        12 => fill_rows(w),
        13..=14 => attribute(w),
        15 => attributes(w),
        16 => range(w),
        17 => host_pointer(w),
        18 => pools(w),
        _ => pitched(w),
    }
}

fn allocate(w: &mut World) {
    let mut p = null_mut();
    let bytes = if w.random.once_in(8) {
        w.random.of(&[0, 1 << 50])
    } else {
        w.size()
    };
    let kind = w
        .random
        .of(&[Kind::Device, Kind::Device, Kind::Pinned, Kind::Managed, Kind::Pinned]);
    let code = match kind {
        Kind::Device => {
            w.about("hipMalloc", bytes);
            call!(w.hipMalloc(&mut p, bytes))
        }
        Kind::Pinned => {
            let flags = w.random.of(&[
                0,
                0,
                1,
                2,
                4,
                8,
                0x1000_0000,
                0x2000_0000,
                0x4000_0000,
                0x8000_0000,
                0xc000_0000,
                0x5000_0000,
            ]);
            w.about("hipHostMalloc", format!("{bytes}, {flags:#x}"));
            call!(w.hipHostMalloc(&mut p, bytes, flags))
        }
        _ => {
            let flags = w.random.of(&[1, 1, 1, 2, 0, 4]);
            w.about("hipMallocManaged", format!("{bytes}, {flags}"));
            call!(w.hipMallocManaged(&mut p, bytes, flags))
        }
    };
    w.told(code, if p.is_null() { "null" } else { "" });
    let bytes = if p.is_null() { 0 } else { bytes };
    w.add_memory(p, bytes, kind);
}

fn pitched(w: &mut World) {
    let (mut p, mut pitch) = (null_mut(), 0);
    let (width, height) = (w.random.of(&[0, 1, 64, 256, 257, 1000]), w.random.of(&[0, 1, 4]));
    w.about("hipMallocPitch", format!("{width}, {height}"));
    let code = call!(w.hipMallocPitch(&mut p, &mut pitch, width, height));
    w.told(code, pitch);
    let bytes = if p.is_null() { 0 } else { pitch * height };
    w.add_memory(p, bytes, Kind::Device);
}

fn register(w: &mut World) {
    if w.random.once_in(3) {
        let Some(at) = w.memory(|m| m.kind == Kind::Registered, true) else {
            return;
        };
        w.about("hipHostUnregister", w.named(at));
        let code = call!(w.hipHostUnregister(w.memories[at].address));
        w.answered(code);
        w.memories[at].freed = true;
        return;
    }
    let pages = w.random.of(&[1, 2, 4]);
    let layout = std::alloc::Layout::from_size_align(pages * 4096, 4096).expect("whole pages");
    // SAFETY: the size is not 0. The memory is left to the process, which may have it registered to its end.
    let p = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<c_void>();
    let flags = w.random.of(&[0, 0, 1, 2, 3, 8, 0x10, 0x100]);
    let bytes = w.random.of(&[pages * 4096, pages * 4096, 100, 0]);
    w.about("hipHostRegister", format!("{bytes}, {flags:#x}"));
    let code = call!(w.hipHostRegister(p, bytes, flags));
    w.answered(code);
    w.add_memory(p, bytes, Kind::Registered);
}

fn free(w: &mut World) {
    if w.is_capturing() {
        return;
    }
    let Some(at) = w.memory(|m| m.kind != Kind::Pageable, true) else {
        return;
    };
    let memory = w.memories[at];
    let inside = memory.bytes > 64 && w.random.once_in(15);
    let wrong = w.random.once_in(10);
    let by_host = (memory.kind == Kind::Pinned) != wrong;
    if memory.kind == Kind::Registered {
        return;
    }
    let address = if inside {
        memory.address.wrapping_byte_add(64)
    } else {
        memory.address
    };
    let name = format!("{}{}", w.named(at), if inside { "+64" } else { "" });
    let code = if by_host {
        w.about("hipHostFree", name);
        call!(w.hipHostFree(address))
    } else {
        w.about("hipFree", name);
        call!(w.hipFree(address))
    };
    w.answered(code);
    if !inside {
        w.memories[at].freed = true;
    }
}

/// An ordinary buffer of the host, large enough for every copy.
fn pageable(w: &mut World) -> usize {
    if let Some(at) = w.memory(|m| m.kind == Kind::Pageable, false) {
        return at;
    }
    let buffer = Box::leak(vec![0u8; 4 << 20].into_boxed_slice());
    w.add_memory(buffer.as_mut_ptr().cast(), buffer.len(), Kind::Pageable);
    w.memories.len() - 1
}

fn usable(m: &Memory) -> bool {
    m.bytes > 0 && !m.address.is_null()
}

/// Two sides of a copy, living, and a number of bytes that at most the device's side is too small for.
fn sides(w: &mut World) -> (usize, usize, usize) {
    let host = pageable(w);
    let to = w.memory(usable, false).unwrap_or(host);
    let from = w.memory(usable, false).unwrap_or(host);
    let least = w.memories[to].bytes.min(w.memories[from].bytes);
    let bytes = w.random.of(&[0, 1, least, least, least / 2]);
    (to, from, bytes)
}

/// The direction that the sides have, but for once in a while.
fn direction(w: &mut World, to: usize, from: usize) -> u32 {
    let is_host = |m: &Memory| matches!(m.kind, Kind::Pageable | Kind::Pinned | Kind::Registered);
    let right = match (is_host(&w.memories[to]), is_host(&w.memories[from])) {
        (true, true) => 0,
        (false, true) => 1,
        (true, false) => 2,
        (false, false) => 3,
    };
    if w.random.once_in(8) {
        w.random.of(&[4, 4, 0, 1, 2, 3, 5, 99])
    } else {
        right
    }
}

fn copy(w: &mut World) {
    let (to, from, bytes) = sides(w);
    let kind = direction(w, to, from);
    let (to_address, from_address) = (w.memories[to].address, w.memories[from].address);
    let sides = format!("{}, {}, {bytes}, {kind}", w.named(to), w.named(from));
    if w.random.once_in(2) {
        let (_, stream, name) = w.stream();
        w.about("hipMemcpyAsync", format!("{sides}, {name}"));
        let kind = hipMemcpyKind(kind);
        let code = call!(w.hipMemcpyAsync(to_address, from_address, bytes, kind, stream));
        w.answered(code);
    } else if !w.is_capturing() {
        w.about("hipMemcpy", sides);
        let code = call!(w.hipMemcpy(to_address, from_address, bytes, hipMemcpyKind(kind)));
        w.answered(code);
    }
}

fn copy_rows(w: &mut World) {
    if w.is_capturing() {
        return;
    }
    let (to, from, _) = sides(w);
    let least = w.memories[to].bytes.min(w.memories[from].bytes);
    let (width, height) = (w.random.of(&[0, 1, 16, 64]), w.random.of(&[0, 1, 2]));
    let (to_pitch, from_pitch) = (w.random.of(&[0, 16, 64, 64]), w.random.of(&[16, 64, 64]));
    if least < 64 * 3 {
        return;
    }
    let kind = direction(w, to, from);
    let (to_address, from_address) = (w.memories[to].address, w.memories[from].address);
    w.about(
        "hipMemcpy2D",
        format!(
            "{}, {to_pitch}, {}, {from_pitch}, {width}, {height}, {kind}",
            w.named(to),
            w.named(from)
        ),
    );
    let kind = hipMemcpyKind(kind);
    let code = call!(w.hipMemcpy2D(to_address, to_pitch, from_address, from_pitch, width, height, kind));
    w.answered(code);
}

fn fill(w: &mut World) {
    let Some(at) = w.memory(|m| usable(m) && m.kind != Kind::Pageable, false) else {
        return;
    };
    let memory = w.memories[at];
    let width = w.random.of(&[1, 2, 4]);
    let most = memory.bytes / width;
    let count = w.random.of(&[0, 1, most, most / 2, most + 1]);
    let (_, stream, name) = w.stream();
    let arguments = format!("{}, 7, {count}", w.named(at));
    let queued = w.is_capturing() || w.random.once_in(2);
    let code = match (width, queued) {
        (1, false) => {
            w.about("hipMemset", arguments);
            call!(w.hipMemset(memory.address, 7, count))
        }
        (1, true) => {
            w.about("hipMemsetAsync", format!("{arguments}, {name}"));
            call!(w.hipMemsetAsync(memory.address, 7, count, stream))
        }
        (2, false) => {
            w.about("hipMemsetD16", arguments);
            call!(w.hipMemsetD16(memory.address, 7, count))
        }
        (2, true) => {
            w.about("hipMemsetD16Async", format!("{arguments}, {name}"));
            call!(w.hipMemsetD16Async(memory.address, 7, count, stream))
        }
        (_, false) => {
            w.about("hipMemsetD32", arguments);
            call!(w.hipMemsetD32(memory.address, 7, count))
        }
        (_, true) => {
            w.about("hipMemsetD32Async", format!("{arguments}, {name}"));
            call!(w.hipMemsetD32Async(memory.address, 7, count, stream))
        }
    };
    w.answered(code);
}

fn fill_rows(w: &mut World) {
    if w.is_capturing() {
        return;
    }
    let Some(at) = w.memory(|m| usable(m) && m.bytes >= 256 && m.kind != Kind::Pageable, false) else {
        return;
    };
    let (pitch, width) = (w.random.of(&[16, 64, 64]), w.random.of(&[0, 1, 16, 64]));
    let height = w.random.of(&[0, 1, 2, 4]);
    let address = w.memories[at].address;
    w.about("hipMemset2D", format!("{}, {pitch}, 7, {width}, {height}", w.named(at)));
    let code = call!(w.hipMemset2D(address, pitch, 7, width, height));
    w.answered(code);
}

/// How an address that was told relates to the one that was asked about.
fn related(told: *const c_void, asked: *const c_void, base: *const c_void) -> &'static str {
    if told.is_null() {
        "null"
    } else if told == asked {
        "same"
    } else if told == base {
        "base"
    } else {
        "other"
    }
}

fn attribute(w: &mut World) {
    let Some(at) = w.memory(|m| !m.address.is_null(), true) else {
        return;
    };
    let memory = w.memories[at];
    let offset = if memory.bytes > 100 {
        w.random.of(&[0, 0, 50])
    } else {
        0
    };
    let asked = memory.address.wrapping_byte_add(offset);
    // The context and the buffer's number are each library's own.
    let attribute = w.random.of(&[2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 99]);
    let name = w.named(at);
    w.about("hipPointerGetAttribute", format!("{attribute}, {name}+{offset}"));
    let mut out = [0u64; 8];
    let code = call!(w.hipPointerGetAttribute(out.as_mut_ptr().cast(), hipPointer_attribute(attribute), asked));
    let told = match attribute {
        3 | 4 | 11 => related(out[0] as *const c_void, asked, memory.address).to_owned(),
        17 => String::new(),
        _ => out[0].to_string(),
    };
    w.told(code, told);
}

fn attributes(w: &mut World) {
    let Some(at) = w.memory(|m| !m.address.is_null(), true) else {
        return;
    };
    let memory = w.memories[at];
    w.about("hipPointerGetAttributes", w.named(at));
    let mut out = hipPointerAttribute_t::default();
    let code = call!(w.hipPointerGetAttributes(&mut out, memory.address));
    let kind = match out.type_ {
        hipMemoryType::hipMemoryTypeDevice => "device".to_owned(),
        hipMemoryType::hipMemoryTypeHost => "host".to_owned(),
        other => other.0.to_string(),
    };
    let told = format!(
        "{kind} {} {} {} {} {:#x}",
        out.device,
        related(out.devicePointer, memory.address, memory.address),
        related(out.hostPointer, memory.address, memory.address),
        out.isManaged,
        out.allocationFlags
    );
    w.told(code, told);
}

fn range(w: &mut World) {
    let Some(at) = w.memory(|m| !m.address.is_null(), true) else {
        return;
    };
    let memory = w.memories[at];
    if w.random.once_in(3) {
        let mut bytes = 0;
        w.about("hipMemPtrGetInfo", w.named(at));
        let code = call!(w.hipMemPtrGetInfo(memory.address, &mut bytes));
        return w.told(code, bytes);
    }
    let (mut base, mut bytes) = (null_mut(), 0);
    let offset = memory.bytes / 2;
    w.about("hipMemGetAddressRange", format!("{}+half", w.named(at)));
    let asked = memory.address.wrapping_byte_add(offset);
    let code = call!(w.hipMemGetAddressRange(&mut base, &mut bytes, asked));
    w.told(code, format!("{} {bytes}", related(base, asked, memory.address)));
}

fn host_pointer(w: &mut World) {
    let Some(at) = w.memory(|m| m.bytes > 0, true) else {
        return;
    };
    let memory = w.memories[at];
    if w.random.once_in(2) {
        let mut flags = 0;
        w.about("hipHostGetFlags", w.named(at));
        let code = call!(w.hipHostGetFlags(&mut flags, memory.address));
        return w.told(code, format!("{flags:#x}"));
    }
    let flags = w.random.of(&[0, 0, 0, 1]);
    let mut out = null_mut();
    w.about("hipHostGetDevicePointer", format!("{}, {flags}", w.named(at)));
    let code = call!(w.hipHostGetDevicePointer(&mut out, memory.address, flags));
    w.told(code, related(out, memory.address, memory.address));
}

fn pools(w: &mut World) {
    if w.pools.is_empty() || w.random.once_in(4) {
        let mut pool = null_mut();
        let mut props = hipMemPoolProps::default();
        props.allocType.0 = w.random.of(&[1, 1, 1, 0, 2]);
        props.location.type_.0 = w.random.of(&[1, 1, 1, 0]);
        props.location.id = w.random.of(&[0, 0, 0, 5]);
        w.about(
            "hipMemPoolCreate",
            format!(
                "{}, {}, {}",
                props.allocType.0, props.location.type_.0, props.location.id
            ),
        );
        let code = call!(w.hipMemPoolCreate(&mut pool, &props));
        w.answered(code);
        w.pools.push(slot(pool, 0));
        return;
    }
    let Some(at) = pick(&mut w.random, &w.pools, false) else {
        return;
    };
    let pool = w.pools[at].handle;
    if pool.is_null() {
        return;
    }
    let attribute = w.random.of(&[1, 2, 3, 4, 0, 9]);
    match w.random.below(3) {
        0 => {
            let mut value = 0u64;
            w.about("hipMemPoolGetAttribute", format!("pool{at}, {attribute}"));
            let out = (&raw mut value).cast();
            let code = call!(w.hipMemPoolGetAttribute(pool, hipMemPoolAttr(attribute), out));
            w.told(code, value);
        }
        1 => {
            let mut value = w.random.of(&[0u64, 1, 4096]);
            w.about("hipMemPoolSetAttribute", format!("pool{at}, {attribute}, {value}"));
            let out = (&raw mut value).cast();
            let code = call!(w.hipMemPoolSetAttribute(pool, hipMemPoolAttr(attribute), out));
            w.answered(code);
        }
        _ => {
            w.about("hipMemPoolDestroy", format!("pool{at}"));
            let code = call!(w.hipMemPoolDestroy(pool));
            w.answered(code);
            w.pools[at].gone = true;
        }
    }
}
