//! Code objects and what is in them.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use hip_sys::{hipDeviceptr_t, hipFunction_attribute, hipFunction_t, hipJitOption, hipModule_t};

use crate::device::here;
use crate::error::{INVALID, UNSUPPORTED, calls, not_null, store};
use crate::memory::pointer;

/// The attributes that both APIs count alike, 0 to 9.
const SHARED_ATTRIBUTES: u32 = 10;

calls! {
    pub(crate) fn fill;

    fn hipModuleLoad(out: *mut hipModule_t, path: *const c_char) {
        not_null!(out, path);
        here()?.cuModuleLoad(out, path)
    }
    fn hipModuleLoadData(out: *mut hipModule_t, image: *const c_void) {
        not_null!(out, image);
        here()?.cuModuleLoadData(out, image)
    }
    /// The options address AMD's linker, where they have no effect, and have none here.
    fn hipModuleLoadDataEx(
        out: *mut hipModule_t, image: *const c_void, _count: c_uint, _options: *mut hipJitOption, _values: *mut *mut c_void,
    ) {
        not_null!(out, image);
        here()?.cuModuleLoadData(out, image)
    }
    fn hipModuleUnload(module: hipModule_t) {
        not_null!(module);
        here()?.cuModuleUnload(module)
    }
    /// HIP loads a function with its module. CUDA would do so at its first launch, and wait for every busy stream then,
    /// also for one that waits for the host.
    fn hipModuleGetFunction(out: *mut hipFunction_t, module: hipModule_t, name: *const c_char) {
        not_null!(out, module, name);
        let driver = here()?;
        let mut found = ptr::null_mut();
        driver.cuModuleGetFunction(&mut found, module, name)?;
        match driver.cuFuncLoad(found) {
            // A driver before CUDA 12.4 cannot be told to.
            Ok(()) | Err(UNSUPPORTED) => store(out, found),
            Err(code) => Err(code),
        }
    }
    fn hipModuleGetGlobal(out: *mut hipDeviceptr_t, bytes: *mut usize, module: hipModule_t, name: *const c_char) {
        not_null!(module, name);
        let (mut found, mut size) = (0, 0);
        here()?.cuModuleGetGlobal_v2(&mut found, &mut size, module, name)?;
        if !out.is_null() {
            store(out, pointer(found))?;
        }
        if !bytes.is_null() {
            store(bytes, size)?;
        }
        Ok(())
    }
    fn hipFuncGetAttribute(out: *mut c_int, attribute: hipFunction_attribute, function: hipFunction_t) {
        not_null!(out, function);
        if attribute.0 >= SHARED_ATTRIBUTES {
            return Err(INVALID);
        }
        here()?.cuFuncGetAttribute(out, attribute.0, function)
    }
}
