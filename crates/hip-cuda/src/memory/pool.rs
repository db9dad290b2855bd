//! Stream-ordered memory, from pools.

use std::ffi::{c_int, c_void};

use hip_sys::{
    hipMemAccessDesc, hipMemAccessFlags, hipMemLocation, hipMemPool_t, hipMemPoolAttr, hipMemPoolProps, hipStream_t,
};

use super::{address, pointer};
use crate::cuda::cu;
use crate::device::{by_ordinal, here};
use crate::error::{calls, not_null, store};

calls! {
    pub(crate) fn fill;

    fn hipMallocAsync(out: *mut *mut c_void, bytes: usize, stream: hipStream_t) {
        not_null!(out);
        let driver = here()?;
        let mut found = 0;
        if bytes != 0 {
            driver.cuMemAllocAsync(&mut found, bytes, stream)?;
        }
        store(out, pointer(found))
    }
    fn hipMallocFromPoolAsync(out: *mut *mut c_void, bytes: usize, pool: hipMemPool_t, stream: hipStream_t) {
        not_null!(out, pool);
        let driver = here()?;
        let mut found = 0;
        if bytes != 0 {
            driver.cuMemAllocFromPoolAsync(&mut found, bytes, pool, stream)?;
        }
        store(out, pointer(found))
    }
    fn hipFreeAsync(at: *mut c_void, stream: hipStream_t) {
        not_null!(at);
        here()?.cuMemFreeAsync(address(at), stream)
    }
    fn hipDeviceGetDefaultMemPool(out: *mut hipMemPool_t, device: c_int) {
        not_null!(out);
        cu()?.cuDeviceGetDefaultMemPool(out, by_ordinal(device)?.cu)
    }
    fn hipDeviceGetMemPool(out: *mut hipMemPool_t, device: c_int) {
        not_null!(out);
        cu()?.cuDeviceGetMemPool(out, by_ordinal(device)?.cu)
    }
    fn hipDeviceSetMemPool(device: c_int, pool: hipMemPool_t) {
        not_null!(pool);
        cu()?.cuDeviceSetMemPool(by_ordinal(device)?.cu, pool)
    }
    fn hipMemPoolCreate(out: *mut hipMemPool_t, props: *const hipMemPoolProps) {
        not_null!(out, props);
        here()?.cuMemPoolCreate(out, props)
    }
    fn hipMemPoolDestroy(pool: hipMemPool_t) {
        not_null!(pool);
        here()?.cuMemPoolDestroy(pool)
    }
    fn hipMemPoolTrimTo(pool: hipMemPool_t, keep: usize) {
        not_null!(pool);
        here()?.cuMemPoolTrimTo(pool, keep)
    }
    fn hipMemPoolGetAttribute(pool: hipMemPool_t, attribute: hipMemPoolAttr, value: *mut c_void) {
        not_null!(pool, value);
        here()?.cuMemPoolGetAttribute(pool, attribute.0, value)
    }
    fn hipMemPoolSetAttribute(pool: hipMemPool_t, attribute: hipMemPoolAttr, value: *mut c_void) {
        not_null!(pool, value);
        here()?.cuMemPoolSetAttribute(pool, attribute.0, value)
    }
    fn hipMemPoolSetAccess(pool: hipMemPool_t, list: *const hipMemAccessDesc, count: usize) {
        not_null!(pool, list);
        here()?.cuMemPoolSetAccess(pool, list, count)
    }
    fn hipMemPoolGetAccess(flags: *mut hipMemAccessFlags, pool: hipMemPool_t, place: *mut hipMemLocation) {
        not_null!(flags, pool, place);
        here()?.cuMemPoolGetAccess(flags.cast(), pool, place)
    }
}
