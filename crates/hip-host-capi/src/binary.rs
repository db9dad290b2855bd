//! What `hipcc` puts into a program: calls that make its device code known before `main`, and those around `<<<>>>`.
//!
//! The device code itself is for AMD's processors, so none of it can run. A program that contains some starts and works
//! all the same; launching one of its kernels, or asking for one of its variables, is `hipErrorNoBinaryForGpu`, ROCm's
//! answer where the code for the card at hand is missing (hipamd/src/hip_fatbin.cpp). Kernels come from HIPRTC.
#![allow(non_snake_case, reason = "C names")]

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use hip_sys::{dim3, hipError_t, hipMemcpyKind, hipStream_t};
use model::registered;

/// The first words of the argument of `__hipRegisterFatBinary` (hipamd/src/hip_platform.cpp).
#[repr(C)]
struct Wrapper {
    magic: c_uint,
    version: c_uint,
}

const MAGIC: c_uint = 0x4849_5046;

/// What the program holds for its code; there is nothing behind it.
static BINARY: u64 = 0;

#[unsafe(no_mangle)]
unsafe extern "C" fn __hipRegisterFatBinary(wrapper: *const c_void) -> *mut *mut c_void {
    // SAFETY: the compiler's own structure, of static lifetime.
    let Wrapper { magic, version } = unsafe { wrapper.cast::<Wrapper>().read() };
    if (magic, version) == (MAGIC, 1) {
        (&raw const BINARY).cast_mut().cast()
    } else {
        null_mut()
    }
}

#[unsafe(no_mangle)]
extern "C" fn __hipUnregisterFatBinary(_binary: *mut *mut c_void) {}

#[allow(clippy::too_many_arguments, reason = "the C signature")]
#[unsafe(no_mangle)]
extern "C" fn __hipRegisterFunction(
    _binary: *mut *mut c_void,
    function: *const c_void,
    _device_function: *mut c_char,
    _device_name: *const c_char,
    _threads: c_uint,
    _thread: *mut c_void,
    _block: *mut c_void,
    _block_size: *mut dim3,
    _grid_size: *mut dim3,
    _warp: *mut c_int,
) {
    registered::add(function);
}

#[allow(clippy::too_many_arguments, reason = "the C signature")]
#[unsafe(no_mangle)]
extern "C" fn __hipRegisterVar(
    _binary: *mut *mut c_void,
    variable: *mut c_void,
    _host_name: *mut c_char,
    _device_name: *mut c_char,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    registered::add(variable);
}

#[unsafe(no_mangle)]
extern "C" fn __hipRegisterSurface(
    _binary: *mut *mut c_void,
    variable: *mut c_void,
    _host_name: *mut c_char,
    _device_name: *mut c_char,
    _kind: c_int,
    _external: c_int,
) {
    registered::add(variable);
}

#[unsafe(no_mangle)]
extern "C" fn __hipRegisterTexture(
    _binary: *mut *mut c_void,
    variable: *mut c_void,
    _host_name: *mut c_char,
    _device_name: *mut c_char,
    _kind: c_int,
    _normalised: c_int,
    _external: c_int,
) {
    registered::add(variable);
}

/// A `__managed__` variable is host memory too, so it gets its place and its first value, as on ROCm.
#[unsafe(no_mangle)]
unsafe extern "C" fn __hipRegisterManagedVar(
    _binary: *mut c_void,
    pointer: *mut *mut c_void,
    initial: *const c_void,
    name: *const c_char,
    bytes: usize,
    _alignment: c_uint,
) {
    const API: hip_sys::Api = model::hip_api();
    let (Some(allocate), Some(copy)) = (API.hipMallocManaged, API.hipMemcpy) else {
        unreachable!("both are built");
    };
    // SAFETY: the compiler's own variables: room for a pointer, and `bytes` bytes of a first value.
    let done = unsafe {
        allocate(pointer, bytes, hip_sys::hipMemAttachGlobal) == hipError_t::hipSuccess
            && copy(*pointer, initial, bytes, hipMemcpyKind::hipMemcpyHostToDevice) == hipError_t::hipSuccess
    };
    if !done {
        // The caller takes no answer, and its variable would be a null pointer. ROCm ends the process too.
        // SAFETY: the compiler's own text.
        let name = unsafe { std::ffi::CStr::from_ptr(name) };
        eprintln!("hip-host: no memory for the managed variable {name:?} of {bytes} bytes");
        std::process::abort();
    }
    registered::add(pointer.cast());
}

/// What stands between `<<<` and `>>>`.
struct Configuration {
    grid: dim3,
    block: dim3,
    shared: usize,
    stream: hipStream_t,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
extern "C" fn __hipPushCallConfiguration(grid: dim3, block: dim3, shared: usize, stream: hipStream_t) -> hipError_t {
    let configuration = Configuration {
        grid,
        block,
        shared,
        stream,
    };
    CONFIGURATIONS.with_borrow_mut(|all| all.push(configuration));
    hipError_t::hipSuccess
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __hipPopCallConfiguration(
    grid: *mut dim3,
    block: *mut dim3,
    shared: *mut usize,
    stream: *mut hipStream_t,
) -> hipError_t {
    let Some(last) = CONFIGURATIONS.with_borrow_mut(Vec::pop) else {
        return hipError_t::hipErrorMissingConfiguration;
    };
    // SAFETY: the compiler's own variables.
    unsafe {
        grid.write(last.grid);
        block.write(last.block);
        shared.write(last.shared);
        stream.write(last.stream);
    }
    hipError_t::hipSuccess
}
