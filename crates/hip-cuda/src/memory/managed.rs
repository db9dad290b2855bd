//! Managed memory: one address, pages that move.

use std::ffi::{c_int, c_uint, c_void};

use hip_sys::{hipMemRangeAttribute, hipMemoryAdvise, hipStream_t};

use super::info::{Place, place};
use super::{address, pointer};
use crate::device::{by_ordinal, here};
use crate::error::{INVALID, Result, UNSUPPORTED, calls, not_null, store};

/// AMD's advice about coherence. It permits less than CUDA always does, so there is nothing to do.
const fn is_amds(advice: hipMemoryAdvise) -> bool {
    matches!(
        advice,
        hipMemoryAdvise::hipMemAdviseSetCoarseGrain | hipMemoryAdvise::hipMemAdviseUnsetCoarseGrain
    )
}

/// The driver's number for a device, or for the host, which both APIs call -1.
fn cuda_number(device: c_int) -> Result<c_int> {
    if device == hip_sys::hipCpuDeviceId {
        Ok(hip_sys::hipCpuDeviceId)
    } else {
        Ok(by_ordinal(device)?.cu)
    }
}

calls! {
    pub(crate) fn fill;

    fn hipMallocManaged(out: *mut *mut c_void, bytes: usize, flags: c_uint) {
        not_null!(out);
        if flags != hip_sys::hipMemAttachGlobal && flags != hip_sys::hipMemAttachHost {
            return Err(INVALID);
        }
        let driver = here()?;
        let mut found = 0;
        if bytes != 0 {
            driver.cuMemAllocManaged(&mut found, bytes, flags)?;
        }
        store(out, pointer(found))
    }
    fn hipMemAdvise(at: *const c_void, bytes: usize, advice: hipMemoryAdvise, device: c_int) {
        if at.is_null() || bytes == 0 {
            return Err(INVALID);
        }
        if is_amds(advice) {
            return match place(at)? {
                Place::Managed => Ok(()),
                _ => Err(INVALID),
            };
        }
        here()?.cuMemAdvise(address(at), bytes, advice.0, cuda_number(device)?)
    }
    fn hipMemPrefetchAsync(at: *const c_void, bytes: usize, device: c_int, stream: hipStream_t) {
        if at.is_null() || bytes == 0 {
            return Err(INVALID);
        }
        here()?.cuMemPrefetchAsync(address(at), bytes, cuda_number(device)?, stream)
    }
    fn hipMemRangeGetAttribute(data: *mut c_void, size: usize, attribute: hipMemRangeAttribute, at: *const c_void, bytes: usize) {
        not_null!(data, at);
        if attribute == hipMemRangeAttribute::hipMemRangeAttributeCoherencyMode {
            return Err(UNSUPPORTED);
        }
        here()?.cuMemRangeGetAttribute(data, size, attribute.0, address(at), bytes)
    }
    fn hipStreamAttachMemAsync(stream: hipStream_t, at: *mut c_void, bytes: usize, flags: c_uint) {
        not_null!(at);
        here()?.cuStreamAttachMemAsync(stream, address(at), bytes, flags)
    }
}
