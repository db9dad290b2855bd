//! What a program may query and set on a pool.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use hip_sys::{
    hipError_t, hipMemAccessDesc, hipMemAccessFlags, hipMemLocation, hipMemPool_t, hipMemPoolAttr as Attribute,
};

use super::{find, location};
use crate::error::{entry, store};

pub(crate) unsafe extern "C" fn mem_pool_get_attribute(
    pool: hipMemPool_t,
    attribute: Attribute,
    value: *mut c_void,
) -> hipError_t {
    entry("hipMemPoolGetAttribute", || {
        let pool = find(pool)?;
        let number = match attribute {
            Attribute::hipMemPoolReuseFollowEventDependencies
            | Attribute::hipMemPoolReuseAllowOpportunistic
            | Attribute::hipMemPoolReuseAllowInternalDependencies => {
                let reuse = pool.settings.lock().reuse[attribute.0 as usize - 1];
                // SAFETY: null is refused by `store`; otherwise room for an int by the C caller's promise.
                return unsafe { store(value.cast(), reuse) };
            }
            Attribute::hipMemPoolAttrReleaseThreshold => pool.settings.lock().release_threshold,
            Attribute::hipMemPoolAttrReservedMemCurrent => pool.reserved.now.load(Ordering::Acquire) as u64,
            Attribute::hipMemPoolAttrReservedMemHigh => pool.reserved.most.load(Ordering::Acquire) as u64,
            Attribute::hipMemPoolAttrUsedMemCurrent => pool.used.now.load(Ordering::Acquire) as u64,
            Attribute::hipMemPoolAttrUsedMemHigh => pool.used.most.load(Ordering::Acquire) as u64,
            _ => return Err(hipError_t::hipErrorInvalidValue),
        };
        // SAFETY: null is refused by `store`; otherwise room for a 64-bit number by the C caller's promise.
        unsafe { store(value.cast(), number) }
    })
}

pub(crate) unsafe extern "C" fn mem_pool_set_attribute(
    pool: hipMemPool_t,
    attribute: Attribute,
    value: *mut c_void,
) -> hipError_t {
    entry("hipMemPoolSetAttribute", || {
        let pool = find(pool)?;
        if value.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        match attribute {
            Attribute::hipMemPoolReuseFollowEventDependencies
            | Attribute::hipMemPoolReuseAllowOpportunistic
            | Attribute::hipMemPoolReuseAllowInternalDependencies => {
                // SAFETY: not null; an int by the C caller's promise.
                let reuse = unsafe { value.cast::<c_int>().read_unaligned() };
                pool.settings.lock().reuse[attribute.0 as usize - 1] = reuse;
            }
            Attribute::hipMemPoolAttrReleaseThreshold => {
                // SAFETY: not null; a 64-bit number by the C caller's promise.
                pool.settings.lock().release_threshold = unsafe { value.cast::<u64>().read_unaligned() };
            }
            // The marks can be set back, to nothing but zero.
            Attribute::hipMemPoolAttrReservedMemHigh | Attribute::hipMemPoolAttrUsedMemHigh => {
                // SAFETY: as above.
                if unsafe { value.cast::<u64>().read_unaligned() } != 0 {
                    return Err(hipError_t::hipErrorInvalidValue);
                }
                match attribute {
                    Attribute::hipMemPoolAttrReservedMemHigh => pool.reserved.forget_the_most(),
                    _ => pool.used.forget_the_most(),
                }
            }
            _ => return Err(hipError_t::hipErrorInvalidValue),
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn mem_pool_set_access(
    pool: hipMemPool_t,
    list: *const hipMemAccessDesc,
    count: usize,
) -> hipError_t {
    entry("hipMemPoolSetAccess", || {
        let pool = find(pool)?;
        if list.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        for index in 0..count {
            // SAFETY: not null; the C caller promises `count` descriptions.
            let desc = unsafe { list.add(index).read_unaligned() };
            let device = location(&desc.location)?;
            if desc.flags.0 > hipMemAccessFlags::hipMemAccessFlagsProtReadWrite.0 {
                return Err(hipError_t::hipErrorInvalidValue);
            }
            pool.settings.lock().access.insert(device.ordinal, desc.flags);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn mem_pool_get_access(
    out: *mut hipMemAccessFlags,
    pool: hipMemPool_t,
    place: *mut hipMemLocation,
) -> hipError_t {
    entry("hipMemPoolGetAccess", || {
        let pool = find(pool)?;
        if out.is_null() || place.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises a location it has filled.
        let device = location(&unsafe { place.read_unaligned() })?;
        let own = if device.ordinal == pool.device.ordinal {
            hipMemAccessFlags::hipMemAccessFlagsProtReadWrite
        } else {
            hipMemAccessFlags::hipMemAccessFlagsProtNone
        };
        let access = pool.settings.lock().access.get(&device.ordinal).copied();
        // SAFETY: not null; room for the flags by the C caller's promise.
        unsafe { store(out, access.unwrap_or(own)) }
    })
}
