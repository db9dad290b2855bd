//! A kernel is found under its source name.

mod common;

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use clmgr::opencl_sys::cl_function_types::{clCreateProgramWithSource_t, clGetPlatformInfo_t};
use clmgr::opencl_sys::{self, cl_context, cl_int, cl_platform_id, cl_platform_info, cl_program, cl_uint};
use clmgr::{Api, Context, Error, Manager, NdRange, Program, ProgramCache, RegularBuffer};

const STEP: &str = "kernel void step(global int *x) { x[0] = 7; }";
const PREFIXED: &str = "kernel void _cl_mine(global int *x) { x[0] = 7; }";

/// What the program's one kernel writes.
fn result_of(context: &Context, program: &Program, name: &str) -> i32 {
    let queue = context.queue().unwrap();
    let mut buffer = RegularBuffer::new(context, 1).unwrap();
    buffer.write(&queue, &[0i32]).unwrap();
    let kernel = program.kernel(name).unwrap();
    assert_eq!(kernel.name(), name);
    // SAFETY: the kernel writes the buffer's one element.
    unsafe { kernel.launch(&queue, NdRange::d1(1), &[buffer.arg()]) }.unwrap();
    let mut result = [0];
    buffer.read(&queue, &mut result).unwrap();
    result[0]
}

fn is_absent(program: &Program, name: &str, there: &str) -> bool {
    matches!(
        program.kernel(name),
        Err(Error::NoKernel { name: asked, have }) if asked == name && have == there
    )
}

fn check(context: &Context) {
    let program = Program::build(context, STEP, "").unwrap();
    assert_eq!(program.kernel_names().unwrap(), ["step"]);
    assert_eq!(result_of(context, &program, "step"), 7);
    assert!(is_absent(&program, "stop", "step"));

    let program = Program::build(context, PREFIXED, "").unwrap();
    assert_eq!(program.kernel_names().unwrap(), ["_cl_mine"]);
    assert_eq!(result_of(context, &program, "_cl_mine"), 7);
    assert!(is_absent(&program, "mine", "_cl_mine"));

    // From disk too, where the driver receives no source.
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        // SAFETY: only the cache writes there.
        let cache = unsafe { ProgramCache::open_in(context, folder.path()) };
        let program = cache.get(STEP, "").unwrap();
        assert_eq!(program.kernel_names().unwrap(), ["step"]);
        assert_eq!(result_of(context, &program, "step"), 7);
    }
}

#[test]
fn a_kernel_named_like_a_built_in_function_keeps_that_name() {
    check(&common::context());
}

static REAL_CREATE: OnceLock<clCreateProgramWithSource_t> = OnceLock::new();
static REAL_INFO: OnceLock<clGetPlatformInfo_t> = OnceLock::new();

/// Like PoCL, which first includes a file of such macros.
unsafe extern "C" fn renaming_create(
    context: cl_context,
    count: cl_uint,
    strings: *mut *const c_char,
    lengths: *const usize,
    code: *mut cl_int,
) -> cl_program {
    assert_eq!(count, 1);
    // SAFETY: the caller gives one text with its length.
    let source = unsafe { std::slice::from_raw_parts((*strings).cast::<u8>(), *lengths) };
    let renamed = [b"#define step _cl_step\n#line 1\n", source].concat();
    let (mut text, length) = (renamed.as_ptr().cast(), renamed.len());
    let create = REAL_CREATE.get().copied().flatten().unwrap();
    // SAFETY: one text with its length; the rest is the caller's.
    unsafe { create(context, 1, &raw mut text, &raw const length, code) }
}

unsafe extern "C" fn pocls_name(
    platform: cl_platform_id,
    what: cl_platform_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    if what != opencl_sys::CL_PLATFORM_NAME {
        let info = REAL_INFO.get().copied().flatten().unwrap();
        // SAFETY: the arguments are passed on as they came.
        return unsafe { info(platform, what, size, value, needed) };
    }
    let name = b"Portable Computing Language\0";
    // SAFETY: the caller's places, of which the first has room for `size` bytes.
    unsafe {
        if !value.is_null() {
            assert!(size >= name.len());
            std::ptr::copy_nonoverlapping(name.as_ptr(), value.cast(), name.len());
        }
        if !needed.is_null() {
            *needed = name.len();
        }
    }
    opencl_sys::CL_SUCCESS
}

#[test]
fn a_kernel_renamed_by_the_driver_is_found() {
    let rename = |api: &mut Api| {
        let _ = REAL_CREATE.set(api.clCreateProgramWithSource);
        let _ = REAL_INFO.set(api.clGetPlatformInfo);
        api.clCreateProgramWithSource = Some(renaming_create);
        api.clGetPlatformInfo = Some(pocls_name);
    };
    // SAFETY: the functions pass on what they are given, with macros before the source.
    let manager = unsafe { Manager::load_with(rename) }.unwrap();
    let device = manager.devices().remove(0);
    assert_eq!(device.platform_name(), "Portable Computing Language");
    check(&Context::new(&device).unwrap());
}
