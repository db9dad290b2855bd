//! What a program may set on a device.

use std::ffi::{c_int, c_uint};

use hip_sys::{
    hipDeviceLmemResizeToMax, hipDeviceMapHost, hipDeviceProp_tR0000, hipDeviceProp_tR0600, hipDeviceScheduleMask,
    hipDeviceScheduleSpin, hipError_t, hipFuncCache_t, hipLimit_t, hipSharedMemConfig,
};

use super::{Device, all, current, peer};
use crate::error::{Result, entry, store};

/// Settings that the model keeps but that change nothing in it: it has no spinning host, and stacks that grow.
pub(super) struct Settings {
    flags: c_uint,
    /// Bytes of a thread's stack, and of the heap of `malloc` in kernels.
    limits: [usize; 2],
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // The host spins, until the program says otherwise.
            flags: hipDeviceScheduleSpin,
            limits: [1024, 8 << 20],
        }
    }
}

impl Device {
    /// Sets what `hipGetDeviceFlags` reports from now on.
    pub(super) fn keep_flags(&self, flags: c_uint) {
        self.settings.lock().flags = flags;
    }

    /// Whether the program has contexts on the device or memory of it.
    pub(crate) fn has_contexts_or_memory(&self) -> bool {
        use std::sync::atomic::Ordering;
        self.contexts.load(Ordering::Acquire) > 0 || self.used_bytes.load(Ordering::Relaxed) > 0
    }

    /// Puts back what was set, and the peers, to what they were at the start.
    pub(crate) fn forget_settings(&self) {
        peer::forget(self);
        *self.settings.lock() = Settings::default();
    }
}

pub(crate) unsafe extern "C" fn set_device_flags(flags: c_uint) -> hipError_t {
    entry("hipSetDeviceFlags", || {
        let schedule = flags & hipDeviceScheduleMask;
        let known = hipDeviceScheduleMask | hipDeviceMapHost | hipDeviceLmemResizeToMax;
        // One way of waiting at a time (hipamd/src/hip_device_runtime.cpp, `hipSetDeviceFlags`).
        if flags & !known != 0 || schedule.count_ones() > 1 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // Only the way of waiting is kept.
        current()?.keep_flags(schedule);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn get_device_flags(out: *mut c_uint) -> hipError_t {
    // SAFETY: null is refused by `store`; otherwise room for the flags by the C caller's promise.
    entry("hipGetDeviceFlags", || unsafe {
        store(out, current()?.settings.lock().flags)
    })
}

const UNSUPPORTED: hipError_t = hipError_t::hipErrorUnsupportedLimit;

/// Where the limit is kept, if a program may query and set it.
///
/// ROCm has no size for `printf` to set, reports the bounds of scratch memory and sets none, and calls anything from
/// `hipLimitRange` on invalid, which it compares as a signed number.
fn limit_index(limit: hipLimit_t) -> Result<usize> {
    match limit {
        hipLimit_t::hipLimitStackSize => Ok(0),
        hipLimit_t::hipLimitMallocHeapSize => Ok(1),
        _ if limit.0.cast_signed() > hipLimit_t::hipExtLimitScratchCurrent.0.cast_signed() => {
            Err(hipError_t::hipErrorInvalidValue)
        }
        _ => Err(UNSUPPORTED),
    }
}

pub(crate) unsafe extern "C" fn device_get_limit(out: *mut usize, limit: hipLimit_t) -> hipError_t {
    entry("hipDeviceGetLimit", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let value = match limit {
            // Stacks grow here, so no scratch memory is set aside.
            hipLimit_t::hipExtLimitScratchMin | hipLimit_t::hipExtLimitScratchCurrent => 0,
            hipLimit_t::hipExtLimitScratchMax => 4 << 30,
            _ => current()?.settings.lock().limits[limit_index(limit)?],
        };
        // SAFETY: not null; room for a size by the C caller's promise.
        unsafe { store(out, value) }
    })
}

pub(crate) unsafe extern "C" fn device_set_limit(limit: hipLimit_t, value: usize) -> hipError_t {
    entry("hipDeviceSetLimit", || {
        if limit == hipLimit_t::hipExtLimitScratchCurrent {
            // Beyond the most that scratch memory may be, or, without any, beyond none.
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let index = limit_index(limit)?;
        if value > current()?.total_bytes {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        current()?.settings.lock().limits[index] = value;
        Ok(())
    })
}

fn check_cache(config: hipFuncCache_t) -> Result {
    if config.0 > hipFuncCache_t::hipFuncCachePreferEqual.0 {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn device_set_cache_config(config: hipFuncCache_t) -> hipError_t {
    // Accepted and without effect, as on AMD's devices, which have no such choice
    // (hipamd/src/hip_device_runtime.cpp).
    entry("hipDeviceSetCacheConfig", || check_cache(config))
}

pub(crate) unsafe extern "C" fn device_get_cache_config(out: *mut hipFuncCache_t) -> hipError_t {
    // SAFETY: as in `get_device_flags`.
    entry("hipDeviceGetCacheConfig", || unsafe {
        store(out, hipFuncCache_t::hipFuncCachePreferNone)
    })
}

pub(crate) unsafe extern "C" fn device_set_shared_mem_config(config: hipSharedMemConfig) -> hipError_t {
    entry("hipDeviceSetSharedMemConfig", || {
        if config.0 > hipSharedMemConfig::hipSharedMemBankSizeEightByte.0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn device_get_shared_mem_config(out: *mut hipSharedMemConfig) -> hipError_t {
    // SAFETY: as in `get_device_flags`.
    entry("hipDeviceGetSharedMemConfig", || unsafe {
        store(out, hipSharedMemConfig::hipSharedMemBankSizeFourByte)
    })
}

/// ROCm's older form for programs that look the function up by its plain name: it checks its arguments and, as the
/// program's wishes are left open, chooses none.
pub(crate) unsafe extern "C" fn choose_device_r0000(out: *mut c_int, wish: *const hipDeviceProp_tR0000) -> hipError_t {
    entry("hipChooseDeviceR0000", || {
        if out.is_null() || wish.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises a structure it has filled.
        let wish = unsafe { wish.read_unaligned() };
        let fits = |device: &&Device| {
            let has = device.properties();
            (has.major, has.minor) >= (wish.major, wish.minor)
                && has.totalGlobalMem >= wish.totalGlobalMem
                && has.sharedMemPerBlock >= wish.sharedMemPerBlock
                && has.maxThreadsPerBlock >= wish.maxThreadsPerBlock
        };
        let wishes =
            wish.major != 0 || wish.totalGlobalMem != 0 || wish.sharedMemPerBlock != 0 || wish.maxThreadsPerBlock != 0;
        current()?;
        if !wishes {
            return Ok(());
        }
        let best = all().iter().find(fits).map_or(0, |device| device.ordinal);
        // SAFETY: not null; room for an int by the C caller's promise.
        unsafe { store(out, best as c_int) }
    })
}

/// The device that fits a wish best: the first with the wanted chip and enough memory, else the first.
pub(crate) unsafe extern "C" fn choose_device(out: *mut c_int, wish: *const hipDeviceProp_tR0600) -> hipError_t {
    entry("hipChooseDeviceR0600", || {
        if out.is_null() || wish.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises a structure it has filled.
        let wish = unsafe { wish.read_unaligned() };
        let fits = |device: &&Device| {
            let has = device.properties();
            (has.major, has.minor) >= (wish.major, wish.minor)
                && has.totalGlobalMem >= wish.totalGlobalMem
                && has.sharedMemPerBlock >= wish.sharedMemPerBlock
                && has.maxThreadsPerBlock >= wish.maxThreadsPerBlock
        };
        let best = all().iter().find(fits).map_or(0, |device| device.ordinal);
        current()?;
        // SAFETY: not null; room for an int by the C caller's promise.
        unsafe { store(out, best as c_int) }
    })
}
