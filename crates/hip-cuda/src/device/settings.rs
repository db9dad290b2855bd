//! Limits, flags and priorities of a device.

use std::ffi::{c_int, c_uint};

use cudarc::driver::sys::CUlimit;
use hip_sys::{hipDevice_t, hipFuncCache_t, hipLimit_t, hipSharedMemConfig};

use super::{by_ordinal, current, here};
use crate::cuda::cu;
use crate::error::{INVALID, Result, calls, not_null, store};

/// HIP's limits by CUDA's numbers.
fn limit(hip: hipLimit_t) -> Result<c_uint> {
    Ok(match hip {
        hipLimit_t::hipLimitStackSize => CUlimit::CU_LIMIT_STACK_SIZE,
        hipLimit_t::hipLimitPrintfFifoSize => CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE,
        hipLimit_t::hipLimitMallocHeapSize => CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE,
        _ => return Err(hip_sys::hipError_t::hipErrorUnsupportedLimit),
    } as c_uint)
}

calls! {
    pub(crate) fn fill;

    fn hipDeviceGetLimit(out: *mut usize, which: hipLimit_t) {
        not_null!(out);
        here()?.cuCtxGetLimit(out, limit(which)?)
    }
    fn hipDeviceSetLimit(which: hipLimit_t, value: usize) {
        here()?.cuCtxSetLimit(limit(which)?, value)
    }
    fn hipSetDeviceFlags(flags: c_uint) {
        // Scheduling (the low three bits) and mapped host memory have CUDA's numbers.
        if flags & !0x1f != 0 {
            return Err(INVALID);
        }
        cu()?.cuDevicePrimaryCtxSetFlags_v2(current()?.cu, flags)
    }
    fn hipGetDeviceFlags(out: *mut c_uint) {
        not_null!(out);
        let mut active = 0;
        cu()?.cuDevicePrimaryCtxGetState(current()?.cu, out, &mut active)
    }
    fn hipDevicePrimaryCtxGetState(device: hipDevice_t, flags: *mut c_uint, active: *mut c_int) {
        not_null!(flags, active);
        cu()?.cuDevicePrimaryCtxGetState(by_ordinal(device)?.cu, flags, active)
    }
    fn hipDeviceSetCacheConfig(config: hipFuncCache_t) {
        here()?.cuCtxSetCacheConfig(config.0)
    }
    fn hipDeviceGetCacheConfig(out: *mut hipFuncCache_t) {
        not_null!(out);
        here()?.cuCtxGetCacheConfig(out.cast())
    }
    /// Banks are of four bytes on every device that CUDA 12 still knows; the setting has no effect there.
    fn hipDeviceSetSharedMemConfig(_config: hipSharedMemConfig) {
        current().map(|_| ())
    }
    fn hipDeviceGetSharedMemConfig(out: *mut hipSharedMemConfig) {
        store(out, hipSharedMemConfig::hipSharedMemBankSizeFourByte)
    }
    fn hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        here()?.cuCtxGetStreamPriorityRange(least, greatest)
    }
}
