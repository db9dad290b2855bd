//! NVRTC's functions that are in use.

use std::ffi::{c_char, c_int, c_void};

use super::functions;

/// A program of NVRTC.
pub(crate) type Program = *mut c_void;

functions! {
    /// The run-time compiler.
    pub(crate) struct Nvrtc fails as hip_sys::hiprtcResult, code by crate::rtc::check, absent by crate::rtc::missing;

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
