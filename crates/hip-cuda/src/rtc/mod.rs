//! HIPRTC on NVRTC: kernels in HIP's dialect, compiled for the device's machine code.

mod options;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hip_sys::{hiprtcProgram, hiprtcResult};
use options::Output;
use parking_lot::Mutex;

use crate::cuda::nvrtc::{self, Nvrtc};
use crate::cuda::opened_nvrtc;
use crate::{device, log};

/// HIP's dialect in CUDA's words.
const PRELUDE: &CStr = crate::cuda::c_name(concat!(include_str!("../../kernels/prelude.cuh"), "\0"));

/// The header that every HIPRTC source includes implicitly.
const PRELUDE_NAME: &CStr = c"hip/hip_runtime.h";

/// Headers that a source may include although their content is built in.
const EMPTY: &[&CStr] = &[
    c"hip/hip_runtime_api.h",
    c"hip/hip_complex.h",
    c"hip/hip_vector_types.h",
    c"hip/math_functions.h",
    c"hip/device_functions.h",
];

type Result<T = ()> = std::result::Result<T, hiprtcResult>;

fn compiler() -> Result<&'static Nvrtc> {
    opened_nvrtc().map_err(|cause| {
        log::driver("hiprtc", cause);
        hiprtcResult::HIPRTC_ERROR_INTERNAL_ERROR
    })
}

/// A program of ours over one of NVRTC's.
struct Program {
    raw: nvrtc::Program,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    output: Output,
    /// What was wrong with the options, which NVRTC never saw.
    complaint: Option<CString>,
}

// SAFETY: NVRTC is thread-safe; what changes in a program is behind the mutex.
unsafe impl Send for Program {}
// SAFETY: as for `Send`.
unsafe impl Sync for Program {}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(nvrtc) = opened_nvrtc() {
            // SAFETY: made by `nvrtcCreateProgram`, destroyed once. A failure leaves nothing to do.
            let _ = unsafe { nvrtc.nvrtcDestroyProgram(&mut self.raw) };
        }
    }
}

/// Living programs by handle, so that a destroyed or invented handle is an error and not a crash.
static PROGRAMS: Mutex<BTreeMap<usize, Arc<Program>>> = Mutex::new(BTreeMap::new());

fn find(program: hiprtcProgram) -> Result<Arc<Program>> {
    let programs = PROGRAMS.lock();
    let found = programs.get(&program.addr()).cloned();
    found.ok_or(hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM)
}

/// Runs the body of one entry point: no panic crosses the C boundary.
fn entry(body: impl FnOnce() -> Result) -> hiprtcResult {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => hiprtcResult::HIPRTC_SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => hiprtcResult::HIPRTC_ERROR_INTERNAL_ERROR,
    }
}

const INVALID: hiprtcResult = hiprtcResult::HIPRTC_ERROR_INVALID_INPUT;

/// Stores a result, refusing null.
///
/// # Safety
/// `out` is null or valid for writing one `T`.
unsafe fn store<T>(out: *mut T, value: T) -> Result {
    // SAFETY: passed on.
    unsafe { crate::error::store(out, value) }.map_err(|_| INVALID)
}

/// The strings of a C list.
///
/// # Safety
/// `list` is null or holds `count` pointers, each null or a terminated string that outlives the result.
unsafe fn strings<'a>(list: *const *const c_char, count: c_int) -> Result<Vec<&'a CStr>> {
    let count = usize::try_from(count).map_err(|_| INVALID)?;
    if count > 0 && list.is_null() {
        return Err(INVALID);
    }
    (0..count)
        .map(|index| {
            // SAFETY: by this function's contract.
            let text = unsafe { *list.add(index) };
            if text.is_null() {
                return Err(INVALID);
            }
            // SAFETY: not null, so terminated by this function's contract.
            Ok(unsafe { CStr::from_ptr(text) })
        })
        .collect()
}

/// The source with the prelude's include before it, and lines counted as the user counts them.
fn with_prelude(source: &CStr, name: &CStr) -> Result<CString> {
    let quoted = name.to_string_lossy().replace(['"', '\\', '\n'], "_");
    let mut text = format!("#include <hip/hip_runtime.h>\n#line 1 \"{quoted}\"\n").into_bytes();
    text.extend_from_slice(source.to_bytes());
    CString::new(text).map_err(|_| INVALID)
}

unsafe extern "C" fn create_program(
    out: *mut hiprtcProgram,
    source: *const c_char,
    name: *const c_char,
    count: c_int,
    headers: *const *const c_char,
    names: *const *const c_char,
) -> hiprtcResult {
    entry(|| {
        if out.is_null() || source.is_null() {
            return Err(INVALID);
        }
        // SAFETY: not null; the C caller promises terminated strings, and as many headers and names as it says.
        let (source, name, given, given_names) = unsafe {
            (
                CStr::from_ptr(source),
                if name.is_null() { c"" } else { CStr::from_ptr(name) },
                strings(headers, count)?,
                strings(names, count)?,
            )
        };
        // As HIPRTC calls what has no name (hipamd/src/hiprtc/hiprtc.cpp, `hiprtcCreateProgram`).
        let name = if name.is_empty() { c"CompileSource" } else { name };
        let source = with_prelude(source, name)?;
        let own = [(PRELUDE_NAME, PRELUDE)]
            .into_iter()
            .chain(EMPTY.iter().map(|name| (*name, c"")));
        let (mut texts, mut titles): (Vec<_>, Vec<_>) = own
            .filter(|(name, _)| !given_names.contains(name))
            .map(|(name, text)| (text.as_ptr(), name.as_ptr()))
            .unzip();
        texts.extend(given.iter().map(|text| text.as_ptr()));
        titles.extend(given_names.iter().map(|name| name.as_ptr()));
        let all = c_int::try_from(texts.len()).map_err(|_| INVALID)?;
        let mut raw = ptr::null_mut();
        // SAFETY: strings and lists live until the call returns, and NVRTC copies them.
        unsafe {
            compiler()?.nvrtcCreateProgram(
                &mut raw,
                source.as_ptr(),
                name.as_ptr(),
                all,
                texts.as_ptr(),
                titles.as_ptr(),
            )
        }?;
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let token = NEXT.fetch_add(1, Ordering::Relaxed);
        let program = Program {
            raw,
            state: Mutex::default(),
        };
        PROGRAMS.lock().insert(token, Arc::new(program));
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, ptr::without_provenance_mut(token)) }
    })
}

unsafe extern "C" fn destroy_program(program: *mut hiprtcProgram) -> hiprtcResult {
    entry(|| {
        if program.is_null() {
            return Err(INVALID);
        }
        // SAFETY: not null; the C caller promises a handle there.
        let token = unsafe { program.read_unaligned() }.addr();
        let removed = PROGRAMS.lock().remove(&token);
        removed.ok_or(hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM)?;
        // SAFETY: as above, for writing.
        unsafe { store(program, ptr::null_mut()) }
    })
}

unsafe extern "C" fn add_name_expression(program: hiprtcProgram, expression: *const c_char) -> hiprtcResult {
    entry(|| {
        let program = find(program)?;
        if expression.is_null() {
            return Err(INVALID);
        }
        let _held = program.state.lock();
        // SAFETY: a live program; the C caller promises a terminated string.
        unsafe { compiler()?.nvrtcAddNameExpression(program.raw, expression) }
    })
}

unsafe extern "C" fn compile_program(program: hiprtcProgram, count: c_int, list: *const *const c_char) -> hiprtcResult {
    entry(|| {
        let program = find(program)?;
        // SAFETY: the C caller promises as many terminated strings as it says.
        let given: Vec<_> = unsafe { strings(list, count) }?
            .iter()
            .map(|option| option.to_string_lossy().into_owned())
            .collect();
        // Held while the compiler runs: a second compilation of the same program waits, others do not.
        let mut state = program.state.lock();
        state.complaint = None;
        let own_architecture = || device::current().and_then(device::Device::architecture).ok();
        let options = match options::translate(&given, own_architecture) {
            Ok(options) => options,
            Err(complaint) => {
                state.complaint = CString::new(format!("{complaint}\n")).ok();
                return Err(hiprtcResult::HIPRTC_ERROR_INVALID_OPTION);
            }
        };
        state.output = options.output;
        let list: Vec<_> = options.list.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(list.len()).map_err(|_| INVALID)?;
        // SAFETY: a live program; the options live until the call returns.
        unsafe { compiler()?.nvrtcCompileProgram(program.raw, count, list.as_ptr()) }
    })
}

unsafe extern "C" fn get_program_log_size(program: hiprtcProgram, out: *mut usize) -> hiprtcResult {
    entry(|| {
        let program = find(program)?;
        let state = program.state.lock();
        if out.is_null() {
            return Err(INVALID);
        }
        match &state.complaint {
            // SAFETY: not null; room for a size by the C caller's promise.
            Some(text) => unsafe { store(out, text.as_bytes_with_nul().len()) },
            // SAFETY: as above, and a live program.
            None => unsafe { compiler()?.nvrtcGetProgramLogSize(program.raw, out) },
        }
    })
}

unsafe extern "C" fn get_program_log(program: hiprtcProgram, out: *mut c_char) -> hiprtcResult {
    entry(|| {
        let program = find(program)?;
        let state = program.state.lock();
        if out.is_null() {
            return Err(INVALID);
        }
        match &state.complaint {
            Some(text) => {
                let bytes = text.as_bytes_with_nul();
                // SAFETY: not null; the C caller promises as many bytes as `hiprtcGetProgramLogSize` says.
                unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len()) };
                Ok(())
            }
            // SAFETY: as above, and a live program.
            None => unsafe { compiler()?.nvrtcGetProgramLog(program.raw, out) },
        }
    })
}

unsafe extern "C" fn get_code_size(program: hiprtcProgram, out: *mut usize) -> hiprtcResult {
    entry(|| {
        let program = find(program)?;
        let state = program.state.lock();
        if out.is_null() {
            return Err(INVALID);
        }
        let nvrtc = compiler()?;
        // SAFETY: a live program; room for a size by the C caller's promise.
        unsafe {
            match state.output {
                Output::MachineCode => nvrtc.nvrtcGetCUBINSize(program.raw, out),
                Output::Assembly => nvrtc.nvrtcGetPTXSize(program.raw, out),
            }
        }?;
        // NVRTC says 0 for what was not made.
        // SAFETY: just written.
        match unsafe { out.read_unaligned() } {
            0 => Err(hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM),
            _ => Ok(()),
        }
    })
}

unsafe extern "C" fn get_code(program: hiprtcProgram, out: *mut c_char) -> hiprtcResult {
    entry(|| {
        let program = find(program)?;
        let state = program.state.lock();
        if out.is_null() {
            return Err(INVALID);
        }
        let nvrtc = compiler()?;
        // SAFETY: a live program; the C caller promises as many bytes as `hiprtcGetCodeSize` says.
        unsafe {
            match state.output {
                Output::MachineCode => nvrtc.nvrtcGetCUBIN(program.raw, out),
                Output::Assembly => nvrtc.nvrtcGetPTX(program.raw, out),
            }
        }
    })
}

unsafe extern "C" fn get_lowered_name(
    program: hiprtcProgram,
    expression: *const c_char,
    out: *mut *const c_char,
) -> hiprtcResult {
    entry(|| {
        let program = find(program)?;
        let _held = program.state.lock();
        if expression.is_null() || out.is_null() {
            return Err(INVALID);
        }
        // SAFETY: a live program, which owns the name; the C caller promises a terminated string and room for a
        // pointer.
        unsafe { compiler()?.nvrtcGetLoweredName(program.raw, expression, out) }
    })
}

/// NVRTC's version, which a cache of compiled code must know.
unsafe extern "C" fn version(major: *mut c_int, minor: *mut c_int) -> hiprtcResult {
    entry(|| {
        if major.is_null() || minor.is_null() {
            return Err(INVALID);
        }
        // SAFETY: neither is null; room for an int at each by the C caller's promise.
        unsafe { compiler()?.nvrtcVersion(major, minor) }
    })
}

unsafe extern "C" fn get_error_string(code: hiprtcResult) -> *const c_char {
    match code.0 {
        0 => c"HIPRTC_SUCCESS",
        1 => c"HIPRTC_ERROR_OUT_OF_MEMORY",
        2 => c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
        3 => c"HIPRTC_ERROR_INVALID_INPUT",
        4 => c"HIPRTC_ERROR_INVALID_PROGRAM",
        5 => c"HIPRTC_ERROR_INVALID_OPTION",
        6 => c"HIPRTC_ERROR_COMPILATION",
        7 => c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        8 => c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        9 => c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        10 => c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        100 => c"HIPRTC_ERROR_LINKING",
        _ => c"HIPRTC_ERROR_INTERNAL_ERROR",
    }
    .as_ptr()
}

/// The machine code of one of our sources, which is in CUDA's own dialect; `options` are NVRTC's and name the
/// architecture.
pub(crate) fn machine_code(source: &CStr, name: &CStr, options: &[&CStr]) -> Result<Vec<u8>> {
    let nvrtc = compiler()?;
    let mut raw = ptr::null_mut();
    let (none, empty) = (ptr::null(), 0);
    // SAFETY: both strings live until the call returns; there are no headers.
    unsafe { nvrtc.nvrtcCreateProgram(&mut raw, source.as_ptr(), name.as_ptr(), empty, none, none) }?;
    let program = Program {
        raw,
        state: Mutex::default(),
    };
    let list: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
    let count = c_int::try_from(list.len()).map_err(|_| INVALID)?;
    let mut bytes = 0;
    // SAFETY: a live program; the options live until the call returns, and the size is written to the address given.
    unsafe {
        nvrtc.nvrtcCompileProgram(program.raw, count, list.as_ptr())?;
        nvrtc.nvrtcGetCUBINSize(program.raw, &mut bytes)?;
    }
    let mut code = vec![0; bytes];
    // SAFETY: as above, and room for as many bytes as the program says.
    unsafe { nvrtc.nvrtcGetCUBIN(program.raw, code.as_mut_ptr().cast()) }?;
    Ok(code)
}

/// The HIPRTC function table.
pub(crate) const fn api() -> hip_sys::RtcApi {
    let mut api = hip_sys::RtcApi::EMPTY;
    api.hiprtcCreateProgram = Some(create_program);
    api.hiprtcDestroyProgram = Some(destroy_program);
    api.hiprtcAddNameExpression = Some(add_name_expression);
    api.hiprtcCompileProgram = Some(compile_program);
    api.hiprtcGetProgramLogSize = Some(get_program_log_size);
    api.hiprtcGetProgramLog = Some(get_program_log);
    api.hiprtcGetCodeSize = Some(get_code_size);
    api.hiprtcGetCode = Some(get_code);
    api.hiprtcGetLoweredName = Some(get_lowered_name);
    api.hiprtcGetErrorString = Some(get_error_string);
    api.hiprtcVersion = Some(version);
    api
}
