//! NVRTC's functions that are in use.

use std::ffi::{c_char, c_int, c_void};

use hip_sys::hiprtcResult;

use super::functions;
use crate::log;

/// A program of NVRTC.
pub(crate) type Program = *mut c_void;

functions! {
    /// The run-time compiler.
    pub(crate) struct Nvrtc fails as hip_sys::hiprtcResult, code by check, absent by missing;

    nvrtcVersion(major: *mut c_int, minor: *mut c_int);
    nvrtcCreateProgram(program: *mut Program, source: *const c_char, name: *const c_char, count: c_int, headers: *const *const c_char, names: *const *const c_char);
    nvrtcDestroyProgram(program: *mut Program);
    nvrtcAddNameExpression(program: Program, expression: *const c_char);
    nvrtcCompileProgram(program: Program, count: c_int, options: *const *const c_char);
    nvrtcGetProgramLogSize(program: Program, bytes: *mut usize);
    nvrtcGetProgramLog(program: Program, text: *mut c_char);
    nvrtcGetCUBINSize(program: Program, bytes: *mut usize);
    nvrtcGetCUBIN(program: Program, code: *mut c_char);
    nvrtcGetPTXSize(program: Program, bytes: *mut usize);
    nvrtcGetPTX(program: Program, code: *mut c_char);
    nvrtcGetLoweredName(program: Program, expression: *const c_char, name: *mut *const c_char);
}

/// The compiler's answer to `function` as a result. NVRTC's and HIPRTC's numbers are the same up to 11.
#[inline]
fn check(code: u32, function: &'static str) -> Result<(), hiprtcResult> {
    if code == 0 {
        return Ok(());
    }
    log::driver(function, format_args!("NVRTC error {code}"));
    Err(match code {
        1..=11 => hiprtcResult(code),
        _ => hiprtcResult::HIPRTC_ERROR_INTERNAL_ERROR,
    })
}

fn missing(function: &'static str) -> hiprtcResult {
    log::driver(function, "the installed NVRTC does not have it");
    hiprtcResult::HIPRTC_ERROR_INTERNAL_ERROR
}
