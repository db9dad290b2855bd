//! Contexts: on ROCm another name for devices. Each thread has a stack of them.
//!
//! The calls that are not here (`hipCtxSynchronize`, `hipCtxGetFlags` and their kin) are `hipErrorNotSupported` on ROCm
//! too (hipamd/src/hip_context.cpp).

use std::cell::RefCell;
use std::ffi::c_uint;
use std::sync::atomic::Ordering;

use hip_sys::{hipCtx_t, hipDevice_t, hipError_t, hipSharedMemConfig};

use super::{Device, all, by_ordinal, current, set_current};
use crate::error::{Result, entry, store};

thread_local! {
    static STACK: RefCell<Vec<&'static Device>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn context_of(device: &'static Device) -> hipCtx_t {
    std::ptr::from_ref(device).cast_mut().cast()
}

/// The device a context is, if it is one; ROCm would follow any pointer.
fn find(context: hipCtx_t) -> Result<&'static Device> {
    all()
        .iter()
        .find(|device| context_of(device) == context)
        .ok_or(hipError_t::hipErrorInvalidContext)
}

/// # Errors
/// `hipErrorInvalidValue` if it is not a context.
pub(crate) fn check_context(context: hipCtx_t) -> Result {
    find(context).map(|_| ()).map_err(|_| hipError_t::hipErrorInvalidValue)
}

/// As [`by_ordinal`], with the code that context calls return for a missing device.
fn device(ordinal: hipDevice_t, otherwise: hipError_t) -> Result<&'static Device> {
    by_ordinal(ordinal).map_err(|_| otherwise)
}

fn replace_top(device: Option<&'static Device>) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        stack.extend(device);
    });
}

pub(crate) unsafe extern "C" fn ctx_create(out: *mut hipCtx_t, flags: c_uint, ordinal: hipDevice_t) -> hipError_t {
    entry("hipCtxCreate", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let device = device(ordinal, hipError_t::hipErrorInvalidValue)?;
        device.contexts.fetch_add(1, Ordering::AcqRel);
        device.keep_flags(flags);
        // The thread stays with the device it has.
        STACK.with_borrow_mut(|stack| stack.push(device));
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, context_of(device)) }
    })
}

pub(crate) unsafe extern "C" fn ctx_destroy(context: hipCtx_t) -> hipError_t {
    entry("hipCtxDestroy", || {
        if context.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let device = find(context)?;
        // One destruction too many is undefined on ROCm.
        let counted = device
            .contexts
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |contexts| contexts.checked_sub(1));
        counted.map_err(|_| hipError_t::hipErrorContextIsDestroyed)?;
        STACK.with_borrow_mut(|stack| {
            if stack.last().is_some_and(|top| std::ptr::eq(*top, device)) {
                stack.pop();
            }
        });
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn ctx_set_current(context: hipCtx_t) -> hipError_t {
    entry("hipCtxSetCurrent", || {
        if context.is_null() {
            // The device stays; only the stack forgets.
            replace_top(None);
            return Ok(());
        }
        let device = find(context)?;
        set_current(device);
        replace_top(Some(device));
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn ctx_get_current(out: *mut hipCtx_t) -> hipError_t {
    // SAFETY: null is refused by `store`; otherwise room for a handle by the C caller's promise.
    entry("hipCtxGetCurrent", || unsafe { store(out, context_of(current()?)) })
}

pub(crate) unsafe extern "C" fn ctx_push_current(context: hipCtx_t) -> hipError_t {
    entry("hipCtxPushCurrent", || {
        let device = find(context)?;
        set_current(device);
        STACK.with_borrow_mut(|stack| stack.push(device));
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn ctx_pop_current(out: *mut hipCtx_t) -> hipError_t {
    entry("hipCtxPopCurrent", || {
        // The thread goes on with the device it has; so does ROCm.
        let device = STACK
            .with_borrow_mut(Vec::pop)
            .ok_or(hipError_t::hipErrorInvalidContext)?;
        if out.is_null() {
            return Ok(());
        }
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, context_of(device)) }
    })
}

pub(crate) unsafe extern "C" fn ctx_get_device(out: *mut hipDevice_t) -> hipError_t {
    // SAFETY: as in `ctx_get_current`.
    entry("hipCtxGetDevice", || unsafe {
        store(out, current()?.ordinal as hipDevice_t)
    })
}

pub(crate) unsafe extern "C" fn ctx_get_shared_mem_config(out: *mut hipSharedMemConfig) -> hipError_t {
    // SAFETY: as in `ctx_get_current`.
    entry("hipCtxGetSharedMemConfig", || unsafe {
        store(out, hipSharedMemConfig::hipSharedMemBankSizeFourByte)
    })
}

pub(crate) unsafe extern "C" fn ctx_enable_peer_access(peer: hipCtx_t, _flags: c_uint) -> hipError_t {
    // On ROCm a success without effect.
    entry("hipCtxEnablePeerAccess", || find(peer).map(|_| ()))
}

pub(crate) unsafe extern "C" fn ctx_disable_peer_access(peer: hipCtx_t) -> hipError_t {
    entry("hipCtxDisablePeerAccess", || find(peer).map(|_| ()))
}

pub(crate) unsafe extern "C" fn device_primary_ctx_retain(out: *mut hipCtx_t, ordinal: hipDevice_t) -> hipError_t {
    entry("hipDevicePrimaryCtxRetain", || {
        let device = device(ordinal, hipError_t::hipErrorInvalidDevice)?;
        // SAFETY: as in `ctx_get_current`.
        unsafe { store(out, context_of(device)) }
    })
}

pub(crate) unsafe extern "C" fn device_primary_ctx_release(ordinal: hipDevice_t) -> hipError_t {
    // The primary context is the device, which stays.
    entry("hipDevicePrimaryCtxRelease", || {
        device(ordinal, hipError_t::hipErrorInvalidDevice).map(|_| ())
    })
}

pub(crate) unsafe extern "C" fn device_primary_ctx_reset(ordinal: hipDevice_t) -> hipError_t {
    // A success without effect on ROCm, for any number; a device that is not there is an error of ours.
    entry("hipDevicePrimaryCtxReset", || {
        device(ordinal, hipError_t::hipErrorInvalidDevice).map(|_| ())
    })
}

pub(crate) unsafe extern "C" fn device_primary_ctx_set_flags(ordinal: hipDevice_t, _flags: c_uint) -> hipError_t {
    entry("hipDevicePrimaryCtxSetFlags", || {
        device(ordinal, hipError_t::hipErrorInvalidDevice)?;
        Err(hipError_t::hipErrorContextAlreadyInUse)
    })
}
