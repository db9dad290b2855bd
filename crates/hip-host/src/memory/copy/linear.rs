//! Copies of one row of bytes.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use hip_sys::{hipDeviceptr_t, hipError_t, hipMemcpyKind, hipStream_t};

use super::{Return, Transfer, copy};
use crate::error::entry;
use crate::{device, stream};

macro_rules! plain_copies {
    ($($function:ident $name:literal ($to:ty, $from:ty) $kind:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(to: $to, from: $from, bytes: usize) -> hipError_t {
            entry($name, || {
                let transfer = Transfer::row(to as usize, from as usize, bytes, $kind);
                copy($name, transfer, null_mut(), Return::Done)
            })
        }
    )*};
}

macro_rules! queued_copies {
    ($($function:ident $name:literal ($to:ty, $from:ty) $kind:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(to: $to, from: $from, bytes: usize, stream: hipStream_t) -> hipError_t {
            entry($name, || {
                let transfer = Transfer::row(to as usize, from as usize, bytes, $kind);
                copy($name, transfer, stream, Return::Queued)
            })
        }
    )*};
}

plain_copies! {
    memcpy_htod "hipMemcpyHtoD" (hipDeviceptr_t, *const c_void) hipMemcpyKind::hipMemcpyHostToDevice;
    memcpy_dtoh "hipMemcpyDtoH" (*mut c_void, hipDeviceptr_t) hipMemcpyKind::hipMemcpyDeviceToHost;
    memcpy_dtod "hipMemcpyDtoD" (hipDeviceptr_t, hipDeviceptr_t) hipMemcpyKind::hipMemcpyDeviceToDevice;
}

queued_copies! {
    memcpy_htod_async "hipMemcpyHtoDAsync" (hipDeviceptr_t, *const c_void) hipMemcpyKind::hipMemcpyHostToDevice;
    memcpy_dtoh_async "hipMemcpyDtoHAsync" (*mut c_void, hipDeviceptr_t) hipMemcpyKind::hipMemcpyDeviceToHost;
    memcpy_dtod_async "hipMemcpyDtoDAsync" (hipDeviceptr_t, hipDeviceptr_t) hipMemcpyKind::hipMemcpyDeviceToDevice;
}

pub(crate) unsafe extern "C" fn memcpy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
) -> hipError_t {
    entry("hipMemcpy", || {
        // Nothing is copied in any direction.
        if bytes == 0 {
            return Ok(());
        }
        let transfer = Transfer::row(to as usize, from as usize, bytes, kind);
        copy("hipMemcpy", transfer, null_mut(), Return::Done)
    })
}

pub(crate) unsafe extern "C" fn memcpy_spt(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
) -> hipError_t {
    entry("hipMemcpy_spt", || {
        let transfer = Transfer::row(to as usize, from as usize, bytes, kind);
        let stream = stream::own(null_mut());
        copy("hipMemcpy_spt", transfer, stream, Return::Done)
    })
}

pub(crate) unsafe extern "C" fn memcpy_with_stream(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> hipError_t {
    entry("hipMemcpyWithStream", || {
        let transfer = Transfer::row(to as usize, from as usize, bytes, kind);
        copy("hipMemcpyWithStream", transfer, stream, Return::Done)
    })
}

pub(crate) unsafe extern "C" fn memcpy_async(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> hipError_t {
    entry("hipMemcpyAsync", || {
        let transfer = Transfer::row(to as usize, from as usize, bytes, kind);
        copy("hipMemcpyAsync", transfer, stream, Return::Queued)
    })
}

pub(crate) unsafe extern "C" fn memcpy_async_spt(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> hipError_t {
    entry("hipMemcpyAsync_spt", || {
        let transfer = Transfer::row(to as usize, from as usize, bytes, kind);
        copy("hipMemcpyAsync_spt", transfer, stream::own(stream), Return::Queued)
    })
}

/// A copy between devices. ROCm checks that the two devices exist and then goes by the addresses alone
/// (hipamd/src/hip_peer.cpp, `hipMemcpyPeer`).
fn between(
    call: &'static str,
    (to, to_device): (*mut c_void, c_int),
    (from, from_device): (*const c_void, c_int),
    bytes: usize,
    stream: hipStream_t,
    when: Return,
) -> hipError_t {
    entry(call, || {
        device::by_ordinal(from_device)?;
        device::by_ordinal(to_device)?;
        let kind = hipMemcpyKind::hipMemcpyDeviceToDevice;
        let transfer = Transfer::row(to as usize, from as usize, bytes, kind);
        copy(call, transfer, stream, when)
    })
}

pub(crate) unsafe extern "C" fn memcpy_peer(
    to: *mut c_void,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
) -> hipError_t {
    between(
        "hipMemcpyPeer",
        (to, to_device),
        (from, from_device),
        bytes,
        null_mut(),
        Return::Done,
    )
}

pub(crate) unsafe extern "C" fn memcpy_peer_async(
    to: *mut c_void,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
    stream: hipStream_t,
) -> hipError_t {
    between(
        "hipMemcpyPeerAsync",
        (to, to_device),
        (from, from_device),
        bytes,
        stream,
        Return::Queued,
    )
}
