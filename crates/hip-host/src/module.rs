//! Modules: compiled kernels, loaded.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::sync::Arc;

use hip_sys::{hipDeviceptr_t, hipError_t, hipFunction_t, hipJitOption, hipModule_t};
use parking_lot::Mutex;

use crate::error::{Result, entry, store};
use crate::handles::Handles;
use crate::kernel::container::{self, Code};
use crate::kernel::{Image, LoadError, function};
use crate::memory::registry::{self, Allocation, Kind};
use crate::{device, log, rtc, stream};

static MODULES: Handles<Module> = Handles::new();

/// A loaded module. Functions and launches keep it loaded.
pub(crate) struct Module {
    image: Arc<Image>,
    /// Handles returned, by name.
    functions: Mutex<Vec<(String, usize)>>,
    /// Addresses of variables returned, which are device memory as long as the module is loaded.
    globals: Mutex<Vec<usize>>,
}

fn load(call: &'static str, out: *mut hipModule_t, code: std::result::Result<Code<'_>, LoadError>) -> Result {
    let image = code.and_then(|code| Image::load(&code)).map_err(|error| {
        log::refused(call, format_args!("{error}"));
        error.code()
    })?;
    let module = Module {
        image: Arc::new(image),
        functions: Mutex::default(),
        globals: Mutex::default(),
    };
    // SAFETY: null was refused by the caller of this function; room for a handle by the C caller's promise.
    unsafe { store(out, MODULES.insert(Arc::new(module)) as hipModule_t) }
}

fn load_data(call: &'static str, out: *mut hipModule_t, image: *const c_void) -> Result {
    if out.is_null() || image.is_null() {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    device::current()?;
    // SAFETY: HIP gives no length; the C caller promises a whole code object, whose own header tells the length.
    let code = unsafe { container::unwrap_at(image.cast(), &rtc::maker()) };
    load(call, out, code)
}

pub(crate) unsafe extern "C" fn module_load_data(out: *mut hipModule_t, image: *const c_void) -> hipError_t {
    entry("hipModuleLoadData", || load_data("hipModuleLoadData", out, image))
}

pub(crate) unsafe extern "C" fn module_load_data_ex(
    out: *mut hipModule_t,
    image: *const c_void,
    _count: c_uint,
    _options: *mut hipJitOption,
    _values: *mut *mut c_void,
) -> hipError_t {
    // The options speak of a further compilation, which this code object does not need.
    entry("hipModuleLoadDataEx", || load_data("hipModuleLoadDataEx", out, image))
}

pub(crate) unsafe extern "C" fn module_load(out: *mut hipModule_t, path: *const c_char) -> hipError_t {
    entry("hipModuleLoad", || {
        if out.is_null() || path.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        device::current()?;
        // SAFETY: not null; the C caller promises a terminated string.
        let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
        if path.is_empty() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let bytes = std::fs::read(&*path).map_err(|_| hipError_t::hipErrorFileNotFound)?;
        load("hipModuleLoad", out, container::unwrap(&bytes, &rtc::maker()))
    })
}

pub(crate) unsafe extern "C" fn module_unload(module: hipModule_t) -> hipError_t {
    entry("hipModuleUnload", || {
        if module.is_null() {
            return Err(hipError_t::hipErrorInvalidResourceHandle);
        }
        let module = MODULES.remove(module as usize).ok_or(hipError_t::hipErrorNotFound)?;
        device::all().iter().for_each(stream::drain_device);
        for (_, token) in module.functions.lock().drain(..) {
            function::retire(token);
        }
        for address in module.globals.lock().drain(..) {
            registry::remove(address);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn module_get_global(
    out: *mut hipDeviceptr_t,
    bytes: *mut usize,
    module: hipModule_t,
    name: *const c_char,
) -> hipError_t {
    entry("hipModuleGetGlobal", || {
        if (out.is_null() && bytes.is_null()) || name.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let module = MODULES
            .get(module as usize)
            .ok_or(hipError_t::hipErrorInvalidResourceHandle)?;
        // SAFETY: not null; the C caller promises a terminated string.
        let name = unsafe { CStr::from_ptr(name) };
        if name.is_empty() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let (address, size) = module.image.variable(name).ok_or(hipError_t::hipErrorNotFound)?;
        let mut globals = module.globals.lock();
        if !globals.contains(&address) {
            let allocation = Allocation::borrowed(address, size, Kind::Device, device::current()?, 0);
            registry::add_borrowed(allocation).map_err(|_| hipError_t::hipErrorUnknown)?;
            globals.push(address);
        }
        // SAFETY: each pointer is null and skipped, or has room for its value by the C caller's promise.
        unsafe {
            if !out.is_null() {
                store(out, address as hipDeviceptr_t)?;
            }
            if !bytes.is_null() {
                store(bytes, size)?;
            }
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn module_get_function(
    out: *mut hipFunction_t,
    module: hipModule_t,
    name: *const c_char,
) -> hipError_t {
    entry("hipModuleGetFunction", || {
        if out.is_null() || name.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let module = MODULES
            .get(module as usize)
            .ok_or(hipError_t::hipErrorInvalidResourceHandle)?;
        // SAFETY: not null; the C caller promises a terminated string.
        let name = unsafe { CStr::from_ptr(name) };
        if name.is_empty() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let index = module.image.index_of(name).ok_or_else(|| {
            log::refused(
                "hipModuleGetFunction",
                format_args!("no kernel {name:?}; C++ names are mangled unless declared extern \"C\""),
            );
            hipError_t::hipErrorNotFound
        })?;
        let name = name.to_string_lossy();
        let mut functions = module.functions.lock();
        let token = match functions.iter().find(|(known, _)| *known == name) {
            Some(&(_, token)) => token,
            None => {
                let token = function::publish(module.image.clone(), index);
                functions.push((name.into_owned(), token));
                token
            }
        };
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, token as hipFunction_t) }
    })
}
