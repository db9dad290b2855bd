//! Virtual memory, descriptors, external memory and handles for other processes.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use hip_sys::{
    hipExternalMemoryBufferDesc, hipExternalMemoryHandleDesc, hipExternalMemoryHandleType_enum, hipIpcEventHandle_t,
    hipIpcMemHandle_t, hipMemAccessDesc, hipMemAccessFlags, hipMemAllocationHandleType, hipMemAllocationProp,
    hipMemAllocationType, hipMemLocationType,
};

use crate::world::{Kind, World, call, pick, slot};

const GRANULE: usize = 2 << 20;

pub fn step(w: &mut World) {
    if w.is_capturing() {
        return;
    }
    match w.random.below(12) {
        0..=2 => create(w),
        3 => release(w),
        4..=5 => place(w),
        6..=7 => import(w),
        8..=9 => buffer(w),
        10 => memory_handle(w),
        _ => event_handle(w),
    }
}

fn props(handle: u32) -> hipMemAllocationProp {
    let mut props = hipMemAllocationProp {
        type_: hipMemAllocationType::hipMemAllocationTypePinned,
        ..hipMemAllocationProp::default()
    };
    props.__bindgen_anon_1.requestedHandleType = hipMemAllocationHandleType(handle);
    props.location.type_ = hipMemLocationType::hipMemLocationTypeDevice;
    props
}

fn create(w: &mut World) {
    let bytes = w.random.of(&[GRANULE, GRANULE, 4096, 0, 100]);
    let handle = w.random.of(&[1, 1, 1, 0, 2, 4]);
    let flags = w.random.of(&[0, 0, 0, 0, 1]);
    let mut memory = null_mut();
    w.about("hipMemCreate", format!("{bytes}, handle {handle}, {flags}"));
    let code = call!(w.hipMemCreate(&mut memory, bytes, &props(handle), flags));
    w.answered(code);
    let mut new = slot(memory, bytes);
    new.gone = memory.is_null();
    w.physical.push(new);
}

fn release(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.physical, false) else {
        return;
    };
    w.about("hipMemRelease", format!("p{at}"));
    let code = call!(w.hipMemRelease(w.physical[at].handle));
    w.answered(code);
    w.physical[at].gone = true;
}

/// Addresses, memory put there, access, and all of it taken back.
fn place(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.physical, false) else {
        return;
    };
    let bytes = w.physical[at].note;
    let handle = w.physical[at].handle;
    let mut address = null_mut();
    w.about("hipMemAddressReserve", bytes);
    let code = call!(w.hipMemAddressReserve(&mut address, bytes, 0, null_mut(), 0));
    w.answered(code);
    if address.is_null() {
        return;
    }
    let offset = w.random.of(&[0, 0, 0, 4096]);
    w.about("hipMemMap", format!("{bytes}, {offset}, p{at}"));
    let code = call!(w.hipMemMap(address, bytes, offset, handle, 0));
    w.answered(code);
    let is_mapped = code == hip_sys::hipError_t::hipSuccess;
    if is_mapped {
        let mut access = hipMemAccessDesc::default();
        access.location.type_ = hipMemLocationType::hipMemLocationTypeDevice;
        access.flags = hipMemAccessFlags(w.random.of(&[3, 3, 1, 0]));
        w.about("hipMemSetAccess", format!("{bytes}, {}", access.flags.0));
        let code = call!(w.hipMemSetAccess(address, bytes, &access, 1));
        w.answered(code);
        let mut told = 77;
        w.about("hipMemGetAccess", "");
        let code = call!(w.hipMemGetAccess(&mut told, &access.location, address));
        w.told(code, told);
        let mut again = null_mut();
        w.about("hipMemRetainAllocationHandle", "");
        let code = call!(w.hipMemRetainAllocationHandle(&mut again, address));
        w.told(code, again == handle);
        // Not released: ROCm counts no owners and would free the memory twice.
        w.about("hipMemUnmap", bytes);
        let code = call!(w.hipMemUnmap(address, bytes));
        w.answered(code);
    }
    w.about("hipMemAddressFree", bytes);
    let code = call!(w.hipMemAddressFree(address, bytes));
    w.answered(code);
}

fn import(w: &mut World) {
    let at = pick(&mut w.random, &w.physical, false);
    let mut fd: c_int = -1;
    let mut bytes = GRANULE;
    let mut source = "fd -1".to_owned();
    if let Some(at) = at {
        let handle = w.physical[at].handle;
        let kind = w.random.of(&[1, 1, 1, 0, 2]);
        let flags = w.random.of(&[0, 0, 0, 1]);
        w.about("hipMemExportToShareableHandle", format!("p{at}, {kind}, {flags}"));
        let out = (&raw mut fd).cast();
        let kind = hipMemAllocationHandleType(kind);
        let code = call!(w.hipMemExportToShareableHandle(out, handle, kind, flags));
        w.answered(code);
        bytes = w.physical[at].note;
        source = format!("p{at}");
    }
    if fd < 0 && at.is_some() {
        return;
    }
    let mut desc = hipExternalMemoryHandleDesc {
        type_: hipExternalMemoryHandleType_enum(w.random.of(&[1, 1, 1, 0, 2, 9])),
        size: w.random.of(&[bytes, bytes, bytes / 2, 0]) as u64,
        flags: w.random.of(&[0, 0, 0, 1, 2]),
        ..hipExternalMemoryHandleDesc::default()
    };
    desc.handle.fd = fd;
    let mut memory = null_mut();
    w.about(
        "hipImportExternalMemory",
        format!("{source}, {}, {}, {}", desc.type_.0, desc.size, desc.flags),
    );
    let code = call!(w.hipImportExternalMemory(&mut memory, &desc));
    w.answered(code);
    let mut new = slot(memory, desc.size as usize);
    new.gone = memory.is_null();
    w.external.push(new);
}

fn buffer(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.external, false) else {
        return;
    };
    let memory = w.external[at].handle;
    if w.random.once_in(3) {
        w.about("hipDestroyExternalMemory", format!("x{at}"));
        let code = call!(w.hipDestroyExternalMemory(memory));
        w.answered(code);
        w.external[at].gone = true;
        return;
    }
    let bytes = w.external[at].note as u64;
    let desc = hipExternalMemoryBufferDesc {
        offset: w.random.of(&[0, 0, 0, 4096, bytes]),
        size: w.random.of(&[bytes, bytes, 4096, 0, 2 * bytes]),
        flags: w.random.of(&[0, 0, 0, 1]),
        ..hipExternalMemoryBufferDesc::default()
    };
    let mut p = null_mut();
    w.about(
        "hipExternalMemoryGetMappedBuffer",
        format!("x{at}:{bytes}, {}, {}, {}", desc.offset, desc.size, desc.flags),
    );
    let code = call!(w.hipExternalMemoryGetMappedBuffer(&mut p, memory, &desc));
    w.answered(code);
    if !p.is_null() {
        w.about("hipFree", "the mapped buffer");
        let code = call!(w.hipFree(p));
        w.answered(code);
    }
}

fn memory_handle(w: &mut World) {
    // ROCm follows what it does not find for memory of the host.
    let Some(at) = w.memory(|m| m.bytes > 0 && m.kind == Kind::Device, false) else {
        return;
    };
    let address: *mut c_void = w.memories[at].address;
    if w.random.once_in(4) {
        w.about("hipIpcCloseMemHandle", w.named(at));
        let code = call!(w.hipIpcCloseMemHandle(address));
        return w.answered(code);
    }
    let mut handle = hipIpcMemHandle_t::default();
    w.about("hipIpcGetMemHandle", w.named(at));
    let code = call!(w.hipIpcGetMemHandle(&mut handle, address));
    w.answered(code);
    if code != hip_sys::hipError_t::hipSuccess {
        return;
    }
    let flags = w.random.of(&[1, 1, 0, 2]);
    let mut opened = null_mut();
    w.about("hipIpcOpenMemHandle", format!("own, {flags}"));
    let code = call!(w.hipIpcOpenMemHandle(&mut opened, handle, flags));
    w.answered(code);
}

fn event_handle(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.events, false) else {
        return crate::streams::create_event(w);
    };
    let mut handle = hipIpcEventHandle_t::default();
    w.about("hipIpcGetEventHandle", format!("e{at}:{:#x}", w.events[at].note));
    let code = call!(w.hipIpcGetEventHandle(&mut handle, w.events[at].handle));
    w.answered(code);
    if code != hip_sys::hipError_t::hipSuccess {
        return;
    }
    let mut opened = null_mut();
    w.about("hipIpcOpenEventHandle", "own");
    let code = call!(w.hipIpcOpenEventHandle(&mut opened, handle));
    w.answered(code);
}
