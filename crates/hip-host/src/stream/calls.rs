//! The calls that make, end, ask and wait for streams.

use std::ffi::{c_int, c_uint};

use hip_sys::{hipDevice_t, hipError_t, hipStream_t};

use super::{
    FLAG_DEFAULT, FLAG_NON_BLOCKING, Kind, LEGACY, PER_THREAD, PRIORITY_HIGH, PRIORITY_LOW, STREAMS, Stream, find,
    is_null_handle, own, synchronize_device,
};
use crate::device;
use crate::error::{Result, entry, store};
use crate::graph::capture;

pub(super) fn create(out: *mut hipStream_t, flags: c_uint, priority: c_int) -> Result {
    if out.is_null() {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    let kind = match flags {
        FLAG_DEFAULT => Kind::Blocking,
        FLAG_NON_BLOCKING => Kind::NonBlocking,
        _ => return Err(hipError_t::hipErrorInvalidValue),
    };
    let stream = Stream::new(
        device::current()?,
        kind,
        flags,
        priority.clamp(PRIORITY_HIGH, PRIORITY_LOW),
    );
    let token = stream.token;
    STREAMS.insert_as(token, stream);
    // SAFETY: `out` is not null; the C caller promises room for a handle.
    unsafe { store(out, token as hipStream_t) }
}

pub(crate) unsafe extern "C" fn stream_create(out: *mut hipStream_t) -> hipError_t {
    entry("hipStreamCreate", || create(out, FLAG_DEFAULT, 0))
}

pub(crate) unsafe extern "C" fn stream_create_with_flags(out: *mut hipStream_t, flags: c_uint) -> hipError_t {
    entry("hipStreamCreateWithFlags", || create(out, flags, 0))
}

pub(crate) unsafe extern "C" fn stream_create_with_priority(
    out: *mut hipStream_t,
    flags: c_uint,
    priority: c_int,
) -> hipError_t {
    entry("hipStreamCreateWithPriority", || create(out, flags, priority))
}

pub(crate) unsafe extern "C" fn device_get_stream_priority_range(
    least: *mut c_int,
    greatest: *mut c_int,
) -> hipError_t {
    entry("hipDeviceGetStreamPriorityRange", || {
        // SAFETY: each pointer is null (then skipped, as ROCm does) or the C caller's room for an int.
        unsafe {
            if !least.is_null() {
                store(least, PRIORITY_LOW)?;
            }
            if !greatest.is_null() {
                store(greatest, PRIORITY_HIGH)?;
            }
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn stream_destroy(stream: hipStream_t) -> hipError_t {
    entry("hipStreamDestroy", || match stream as usize {
        0 => Err(hipError_t::hipErrorInvalidHandle),
        LEGACY | PER_THREAD => Err(hipError_t::hipErrorInvalidResourceHandle),
        token => {
            // Work already queued still runs: HIP leaves open whether destruction waits, so the model does not.
            let stream = STREAMS.remove(token).ok_or(hipError_t::hipErrorContextIsDestroyed)?;
            capture::abandon(&stream);
            stream.close();
            Ok(())
        }
    })
}

pub(crate) unsafe extern "C" fn stream_synchronize(stream: hipStream_t) -> hipError_t {
    entry("hipStreamSynchronize", || {
        let found = find(stream)?;
        capture::refuse(&found, "hipStreamSynchronize")?;
        if is_null_handle(stream) {
            found.synchronize_null()
        } else {
            found.synchronize()
        }
    })
}

pub(crate) unsafe extern "C" fn device_synchronize() -> hipError_t {
    entry("hipDeviceSynchronize", || {
        capture::forbid("hipDeviceSynchronize")?;
        synchronize_device(device::current()?)
    })
}

pub(crate) unsafe extern "C" fn stream_query(stream: hipStream_t) -> hipError_t {
    entry("hipStreamQuery", || {
        let found = find(stream)?;
        capture::refuse(&found, "hipStreamQuery")?;
        let waits = if is_null_handle(stream) {
            !found.implicit_waits().is_empty()
        } else {
            false
        };
        if waits || found.pending().is_some() {
            return Err(hipError_t::hipErrorNotReady);
        }
        found.outcome()
    })
}

pub(crate) unsafe extern "C" fn stream_get_flags(stream: hipStream_t, out: *mut c_uint) -> hipError_t {
    entry("hipStreamGetFlags", || {
        if stream.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: null is refused by `store`; otherwise the C caller promises room for one value.
        unsafe { store(out, find(stream)?.flags) }
    })
}

pub(crate) unsafe extern "C" fn stream_get_priority(stream: hipStream_t, out: *mut c_int) -> hipError_t {
    entry("hipStreamGetPriority", || {
        // SAFETY: as in `stream_get_flags`.
        unsafe { store(out, find(stream)?.priority) }
    })
}

pub(crate) unsafe extern "C" fn stream_get_device(stream: hipStream_t, out: *mut hipDevice_t) -> hipError_t {
    entry("hipStreamGetDevice", || {
        // SAFETY: as in `stream_get_flags`.
        unsafe { store(out, find(stream)?.device.ordinal as hipDevice_t) }
    })
}

pub(crate) unsafe extern "C" fn get_stream_device_id(stream: hipStream_t) -> c_int {
    // The only call whose error is a number of its own (hipamd/src/hip_stream.cpp, `hipGetStreamDeviceId`).
    find(stream).map_or(-1, |stream| stream.device.ordinal as c_int)
}

pub(crate) unsafe extern "C" fn ext_stream_create_with_cu_mask(
    out: *mut hipStream_t,
    words: u32,
    mask: *const u32,
) -> hipError_t {
    entry("hipExtStreamCreateWithCUMask", || {
        if out.is_null() || mask.is_null() || words == 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // The mask is a wish about which units run the kernels; results do not depend on it.
        create(out, FLAG_DEFAULT, 0)
    })
}

macro_rules! per_thread {
    ($($function:ident $form:ident($($argument:ident: $ty:ty),*);)*) => {$(
        /// As the call without `_spt`, with the thread's own stream for null.
        pub(crate) unsafe extern "C" fn $function(stream: hipStream_t, $($argument: $ty),*) -> hipError_t {
            // SAFETY: the same contract.
            unsafe { $form(own(stream), $($argument),*) }
        }
    )*};
}

per_thread! {
    stream_synchronize_spt stream_synchronize();
    stream_query_spt stream_query();
    stream_get_flags_spt stream_get_flags(out: *mut c_uint);
    stream_get_priority_spt stream_get_priority(out: *mut c_int);
}
