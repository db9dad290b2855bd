//! What the tests share: the tables, and short forms of the calls they all make.

#![allow(dead_code, unused_imports, unused_macros, reason = "each test file uses a part")]

use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

use hip_sys::{hipError_t, hipFunction_t, hipMemcpyKind, hipModule_t, hipStream_t, hiprtcProgram, hiprtcResult};

pub const OK: hipError_t = hipError_t::hipSuccess;

/// Calls a table's function, which must be there.
macro_rules! hip {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the test passes arguments the function's contract allows, or ones it promises to refuse.
        unsafe { (hip_host::hip_api().$function.expect(stringify!($function)))($($argument),*) }
    };
}

/// As [`hip!`], and the call must succeed.
macro_rules! ok {
    ($function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!($crate::common::hip!($function($($argument),*)), hip_sys::hipError_t::hipSuccess, stringify!($function))
    };
}

/// Calls a HIPRTC function.
macro_rules! rtc {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: as in `hip!`.
        unsafe { (hip_host::rtc_api().$function.expect(stringify!($function)))($($argument),*) }
    };
}

/// The pointer list `kernelParams` wants.
macro_rules! params {
    ($($value:expr),* $(,)?) => { [$((&raw const $value).cast_mut().cast::<std::ffi::c_void>()),*] };
}

pub(crate) use hip;
pub(crate) use ok;
pub(crate) use params;
pub(crate) use rtc;

pub fn malloc(bytes: usize) -> *mut c_void {
    let mut ptr = null_mut();
    ok!(hipMalloc(&mut ptr, bytes));
    ptr
}

pub fn stream() -> hipStream_t {
    let mut stream = null_mut();
    ok!(hipStreamCreateWithFlags(&mut stream, 1));
    stream
}

pub fn blocking_stream() -> hipStream_t {
    let mut stream = null_mut();
    ok!(hipStreamCreate(&mut stream));
    stream
}

pub fn upload<T: Copy>(data: &[T]) -> *mut c_void {
    let ptr = malloc(size_of_val(data));
    ok!(hipMemcpy(
        ptr,
        data.as_ptr().cast(),
        size_of_val(data),
        hipMemcpyKind::hipMemcpyHostToDevice
    ));
    ptr
}

pub fn download<T: Copy + Default>(ptr: *mut c_void, len: usize) -> Vec<T> {
    let mut data = vec![T::default(); len];
    ok!(hipMemcpy(
        data.as_mut_ptr().cast(),
        ptr,
        size_of_val(&data[..]),
        hipMemcpyKind::hipMemcpyDeviceToHost
    ));
    data
}

/// Compiles; the result, the log and the code.
pub fn compile_with(source: &str, headers: &[(&str, &str)], options: &[&str]) -> (hiprtcResult, String, Vec<u8>) {
    let source = CString::new(source).unwrap();
    let c = |texts: Vec<&str>| {
        texts
            .into_iter()
            .map(|text| CString::new(text).unwrap())
            .collect::<Vec<_>>()
    };
    let p = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
    let (names, texts) = (
        c(headers.iter().map(|h| h.0).collect()),
        c(headers.iter().map(|h| h.1).collect()),
    );
    let options = c(options.to_vec());
    let mut program: hiprtcProgram = null_mut();
    let created = rtc!(hiprtcCreateProgram(
        &mut program,
        source.as_ptr(),
        c"user.hip".as_ptr(),
        headers.len() as i32,
        p(&texts).as_mut_ptr(),
        p(&names).as_mut_ptr()
    ));
    assert_eq!(created, hiprtcResult::HIPRTC_SUCCESS);
    let result = rtc!(hiprtcCompileProgram(
        program,
        options.len() as i32,
        p(&options).as_mut_ptr()
    ));
    let mut size = 0;
    assert_eq!(
        rtc!(hiprtcGetProgramLogSize(program, &mut size)),
        hiprtcResult::HIPRTC_SUCCESS
    );
    let mut log = vec![0u8; size];
    assert_eq!(
        rtc!(hiprtcGetProgramLog(program, log.as_mut_ptr().cast())),
        hiprtcResult::HIPRTC_SUCCESS
    );
    let log = CStr::from_bytes_with_nul(&log).unwrap().to_string_lossy().into_owned();
    let mut code = Vec::new();
    if result == hiprtcResult::HIPRTC_SUCCESS {
        assert_eq!(
            rtc!(hiprtcGetCodeSize(program, &mut size)),
            hiprtcResult::HIPRTC_SUCCESS
        );
        code.resize(size, 0);
        assert_eq!(
            rtc!(hiprtcGetCode(program, code.as_mut_ptr().cast())),
            hiprtcResult::HIPRTC_SUCCESS
        );
    }
    assert_eq!(rtc!(hiprtcDestroyProgram(&mut program)), hiprtcResult::HIPRTC_SUCCESS);
    (result, log, code)
}

pub fn compile(source: &str) -> Vec<u8> {
    let (result, log, code) = compile_with(source, &[], &[]);
    assert_eq!(result, hiprtcResult::HIPRTC_SUCCESS, "{log}");
    code
}

pub fn load(code: &[u8]) -> hipModule_t {
    let mut module = null_mut();
    ok!(hipModuleLoadData(&mut module, code.as_ptr().cast()));
    module
}

pub fn function(module: hipModule_t, name: &str) -> hipFunction_t {
    let name = CString::new(name).unwrap();
    let mut function = null_mut();
    ok!(hipModuleGetFunction(&mut function, module, name.as_ptr()));
    function
}

pub fn launch(
    function: hipFunction_t,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: hipStream_t,
    params: &mut [*mut c_void],
) -> hipError_t {
    hip!(hipModuleLaunchKernel(
        function,
        grid[0],
        grid[1],
        grid[2],
        block[0],
        block[1],
        block[2],
        shared,
        stream,
        params.as_mut_ptr(),
        null_mut()
    ))
}

/// Runs this test binary again with only `test`, which sees `HIP_HOST_CHILD`, in the given environment.
pub fn run_child(test: &str, environment: &[(&str, &str)]) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("HIP_HOST_CHILD", "1")
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

pub fn is_child() -> bool {
    std::env::var_os("HIP_HOST_CHILD").is_some()
}

/// Says that `test` could not run here, also to the runner that counts.
pub fn skip(test: &str, reason: &str) {
    println!("skipped: {test}: {reason}");
    if let Some(log) = std::env::var_os("HIPCL_SKIP_LOG") {
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        std::io::Write::write_all(&mut log, format!("{test}: {reason}\n").as_bytes()).unwrap();
    }
}
