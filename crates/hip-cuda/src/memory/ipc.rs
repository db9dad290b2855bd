//! Memory and events of other processes.

use std::ffi::{c_uint, c_void};

use hip_sys::{hipEvent_t, hipIpcEventHandle_t, hipIpcMemHandle_t};

use super::{address, pointer};
use crate::device::here;
use crate::error::{INVALID, calls, not_null, store};

calls! {
    pub(crate) fn fill;

    fn hipIpcGetMemHandle(out: *mut hipIpcMemHandle_t, at: *mut c_void) {
        not_null!(out, at);
        here()?.cuIpcGetMemHandle(out, address(at))
    }
    fn hipIpcOpenMemHandle(out: *mut *mut c_void, handle: hipIpcMemHandle_t, flags: c_uint) {
        not_null!(out);
        if flags != hip_sys::hipIpcMemLazyEnablePeerAccess {
            return Err(INVALID);
        }
        let mut found = 0;
        here()?.cuIpcOpenMemHandle_v2(&mut found, handle, flags)?;
        store(out, pointer(found))
    }
    fn hipIpcCloseMemHandle(at: *mut c_void) {
        not_null!(at);
        here()?.cuIpcCloseMemHandle(address(at))
    }
    fn hipIpcGetEventHandle(out: *mut hipIpcEventHandle_t, event: hipEvent_t) {
        not_null!(out, event);
        here()?.cuIpcGetEventHandle(out, event)
    }
    fn hipIpcOpenEventHandle(out: *mut hipEvent_t, handle: hipIpcEventHandle_t) {
        not_null!(out);
        here()?.cuIpcOpenEventHandle(out, handle)
    }
}
