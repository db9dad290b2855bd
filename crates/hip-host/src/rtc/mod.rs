//! HIPRTC: kernels compiled at run time by the machine's C++ compiler.

mod cache;
mod compiler;
mod index;
mod kept;
mod link;
mod options;
mod scan;

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Component, Path};
use std::sync::{Arc, LazyLock};

pub(crate) use compiler::CompileError;
use hip_sys::{hiprtcProgram, hiprtcResult};
use index::IndexTypes;
use kernel_cache::KeyBuilder;
use parking_lot::Mutex;

use crate::frame::run as entry;
use crate::handles::Handles;
use crate::kernel::container::{self, Maker, Table};
use crate::kernel::{Image, abi};
use crate::{sanitizer, strict};

const PRELUDE: &str = include_str!("../../kernels/prelude.hpp");

const HALF: &str = include_str!("../../kernels/half.hpp");

/// Headers with half precision, which not every compiler has, so only sources that ask for it need one that does.
const HALF_HEADERS: &[&str] = &["hip/hip_fp16.h", "hip/amd_detail/amd_hip_fp16.h"];

/// Headers a HIPRTC source may include although their content is built in.
const BUILT_IN: &[&str] = &[
    "hip/hip_runtime.h",
    "hip/hip_runtime_api.h",
    "hip/hip_complex.h",
    "hip/hip_bfloat16.h",
    "hip/amd_detail/amd_hip_bfloat16.h",
    "hip/hip_math_constants.h",
    "hip/hip_cooperative_groups.h",
    "hip/amd_detail/amd_hip_cooperative_groups.h",
    "cooperative_groups.h",
    "hip/hip_vector_types.h",
    "hip/math_functions.h",
    "hip/device_functions.h",
    "hip/channel_descriptor.h",
    "hip/driver_types.h",
    "hip/hip_common.h",
];

/// What rewrites a source before the compiler sees it: it decides what the code is, as the compiler does.
const REWRITING: [&str; 3] = [
    include_str!("mod.rs"),
    include_str!("scan.rs"),
    include_str!("index.rs"),
];

/// What decides what a source becomes here: this platform, the compiler with its options, the processor, and whether
/// kernels are checked. Code of another maker is neither taken from a cache nor loaded.
pub(crate) fn maker() -> Maker {
    static PLATFORM: LazyLock<Maker> = LazyLock::new(|| {
        let mut key = KeyBuilder::default();
        key.part(env!("CARGO_PKG_VERSION")).part(abi::VERSION.to_le_bytes());
        key.list(REWRITING).part(PRELUDE).part(HALF).finish().into()
    });
    let mut key = KeyBuilder::default();
    key.part(*PLATFORM)
        .part([u8::from(sanitizer::runtime().is_some())])
        .part(compiler::processor());
    // Without a compiler, nothing was made here.
    if let Ok(compiler) = compiler::find() {
        key.part(&compiler.version)
            .list(&compiler.command)
            .list(compiler.all_options());
    }
    key.finish().into()
}

static PROGRAMS: Handles<Program> = Handles::new();

type Result<T = ()> = std::result::Result<T, hiprtcResult>;

struct Program {
    source: String,
    name: String,
    /// Name and text.
    headers: Vec<(String, String)>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    expressions: Vec<String>,
    compiled: bool,
    log: CString,
    code: Option<Vec<u8>>,
    /// Linker's names of the expressions, in their order; made on demand.
    lowered: Option<Vec<Option<CString>>>,
}

fn find(program: hiprtcProgram) -> Result<Arc<Program>> {
    PROGRAMS
        .get(program as usize)
        .ok_or(hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM)
}

/// Stores a result, refusing null.
///
/// # Safety
/// `out` is null or valid for writing one `T`.
unsafe fn store<T>(out: *mut T, value: T) -> Result {
    // SAFETY: passed on.
    unsafe { crate::error::store(out, value) }.map_err(|_| hiprtcResult::HIPRTC_ERROR_INVALID_INPUT)
}

/// Copies a C string, refusing null.
///
/// # Safety
/// `text` is null or a terminated string.
unsafe fn string(text: *const c_char) -> Result<String> {
    if text.is_null() {
        return Err(hiprtcResult::HIPRTC_ERROR_INVALID_INPUT);
    }
    // SAFETY: not null, so terminated by this function's contract.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Copies `count` C strings.
///
/// # Safety
/// `list` is null or holds `count` pointers, each null or a terminated string.
unsafe fn strings(list: *const *const c_char, count: c_int) -> Result<Vec<String>> {
    let count = usize::try_from(count).map_err(|_| hiprtcResult::HIPRTC_ERROR_INVALID_INPUT)?;
    if count > 0 && list.is_null() {
        return Err(hiprtcResult::HIPRTC_ERROR_INVALID_INPUT);
    }
    // SAFETY: by this function's contract.
    (0..count).map(|index| unsafe { string(*list.add(index)) }).collect()
}

unsafe extern "C" fn create_program(
    out: *mut hiprtcProgram,
    source: *const c_char,
    name: *const c_char,
    count: c_int,
    headers: *const *const c_char,
    names: *const *const c_char,
) -> hiprtcResult {
    entry("hiprtcCreateProgram", || {
        if out.is_null() {
            return Err(hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM);
        }
        // SAFETY: the C caller promises terminated strings, and as many headers and names as it says.
        let (source, name, headers, names) = unsafe {
            let name = if name.is_null() { String::new() } else { string(name)? };
            (string(source)?, name, strings(headers, count)?, strings(names, count)?)
        };
        if source.is_empty() || headers.iter().any(String::is_empty) {
            return Err(hiprtcResult::HIPRTC_ERROR_INVALID_INPUT);
        }
        let name = if name.is_empty() {
            "CompileSource".to_owned()
        } else {
            name
        };
        let program = Program {
            source,
            name,
            headers: names.into_iter().zip(headers).collect(),
            state: Mutex::default(),
        };
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, PROGRAMS.insert(Arc::new(program)) as hiprtcProgram) }
    })
}

unsafe extern "C" fn destroy_program(program: *mut hiprtcProgram) -> hiprtcResult {
    entry("hiprtcDestroyProgram", || {
        if program.is_null() {
            return Err(hiprtcResult::HIPRTC_ERROR_INVALID_INPUT);
        }
        // SAFETY: not null; the C caller promises a handle there, which stays as it is.
        let token = unsafe { program.read() } as usize;
        PROGRAMS
            .remove(token)
            .map(|_| ())
            .ok_or(hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM)
    })
}

unsafe extern "C" fn add_name_expression(program: hiprtcProgram, expression: *const c_char) -> hiprtcResult {
    entry("hiprtcAddNameExpression", || {
        let program = find(program)?;
        // SAFETY: the C caller promises a terminated string.
        let expression = unsafe { string(expression) }?;
        let mut state = program.state.lock();
        // ROCm takes it, and knows no name for it afterwards.
        if state.compiled && !strict::is_off() {
            return Err(hiprtcResult::HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
        }
        if !state.expressions.contains(&expression) {
            state.expressions.push(expression);
        }
        Ok(())
    })
}

unsafe extern "C" fn compile_program(program: hiprtcProgram, count: c_int, list: *const *const c_char) -> hiprtcResult {
    entry("hiprtcCompileProgram", || {
        let program = find(program)?;
        // SAFETY: the C caller promises as many terminated strings as it says.
        let given = unsafe { strings(list, count) }?;
        // Held while the compiler runs: a second compilation of the same program waits, others do not.
        let mut state = program.state.lock();
        state.lowered = None;
        state.code = None;
        let sorted = match options::sort(&given) {
            Ok(sorted) => sorted,
            Err(error) => {
                state.log = terminated(&format!("{error}\n"));
                // ROCm's compiler is the one that does not know an option.
                return Err(hiprtcResult::HIPRTC_ERROR_COMPILATION);
            }
        };
        match build(&program, &state.expressions, &sorted) {
            Ok((code, messages)) => {
                state.log = terminated(&messages);
                state.code = Some(code);
                state.compiled = true;
                Ok(())
            }
            Err(error) => {
                let text = error.to_string();
                state.log = terminated(if text.ends_with('\n') { text } else { text + "\n" }.as_str());
                Err(hiprtcResult::HIPRTC_ERROR_COMPILATION)
            }
        }
    })
}

fn terminated(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Compiles, or finds the result of an earlier compilation of the same.
///
/// If the source provably reads no file, it is the key. Otherwise the key is the output of the preprocessor, which
/// runs first.
fn build(
    program: &Program,
    expressions: &[String],
    options: &options::Options,
) -> std::result::Result<(Vec<u8>, String), CompileError> {
    let compiler = compiler::find()?;
    let checked = sanitizer::wanted(|| compiler.sanitizer_library()).map_err(CompileError::Sanitizer)?;
    let maker = maker();
    let mut key = KeyBuilder::default();
    key.part(maker)
        .part(&program.name)
        .part(&program.source)
        .list(&options.preprocessor)
        .list(&options.both)
        .list(program.headers.iter().flat_map(|(name, text)| [name, text]))
        .list(expressions);
    let early = kept::reads_no_file(program, expressions, options, compiler).is_ok();
    let early = early.then(|| key.finish());
    if let Some(code) = early.and_then(cache::get) {
        return Ok((code, String::new()));
    }
    let folder = tempfile::Builder::new().prefix("hip-host-").tempdir()?;
    let folder = folder.path();
    write_headers(folder, &program.headers)?;
    let source = folder.join("kernel.cpp");
    std::fs::write(
        &source,
        format!(
            "#line 1 \"hip-host prelude\"\n{PRELUDE}\n#line 1 {}\n{}\n",
            quoted(&program.name),
            program.source
        ),
    )?;
    let (text, mut messages) = compiler.preprocess(
        folder,
        &source,
        &options
            .preprocessor
            .iter()
            .chain(&options.both)
            .cloned()
            .collect::<Vec<_>>(),
    )?;
    let late = early.is_none() && kept::is_all_in(&text, program, options, compiler);
    let late = late.then(|| {
        // The folder differs each time, and so do the file names in the text.
        key.part(text.replace(&folder.display().to_string(), "")).finish()
    });
    // Warnings are not cached, so a program with warnings is compiled, and warns, every time.
    if messages.is_empty()
        && let Some(code) = late.and_then(cache::get)
    {
        return Ok((code, messages));
    }
    let scanned = scan::scan(&text);
    let table = Table::of(std::iter::once(&scanned.text).chain(&options.both).chain(expressions));
    let text = format!("{}\n{}", scanned.text, table_of(&scanned, expressions, &table.symbol()));
    let (library, more) = compiler.compile(folder, &text, &options.both, &table.symbol(), checked)?;
    messages.push_str(&more);
    let code = container::wrap(&library, table, &maker);
    if let Some(key) = early.or(late)
        && messages.is_empty()
    {
        // SAFETY: the compiler made it just now, of what is in the key.
        unsafe { cache::put(key, &code) };
    }
    Ok((code, messages))
}

/// A C++ string literal.
fn quoted(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace(['\n', '\r'], " ")
    )
}

fn write_headers(folder: &Path, headers: &[(String, String)]) -> std::io::Result<()> {
    let built_in = folder.join("builtin");
    let given = folder.join("include");
    std::fs::create_dir_all(&given)?;
    let stubs = BUILT_IN.iter().map(|&name| (built_in.join(name), ""));
    let half = HALF_HEADERS.iter().map(|&name| (built_in.join(name), HALF));
    // A name that leads out of the folder is not written; the compiler will report the header as missing.
    let own = headers
        .iter()
        .filter(|(name, _)| is_inside(name))
        .map(|(name, text)| (given.join(name), text.as_str()));
    for (path, text) in stubs.chain(half).chain(own) {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// Whether the headers folder contains a header with this name.
fn is_inside(name: &str) -> bool {
    Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// The table of kernels that goes behind the source, under the name `symbol`.
fn table_of(scanned: &scan::Scan, expressions: &[String], symbol: &str) -> String {
    let plain = scanned
        .kernels
        .iter()
        .map(|kernel| (format!("::{}", kernel.qualified), kernel.traits));
    let named = expressions.iter().map(|expression| {
        let name = expression.trim().trim_start_matches('&').trim();
        (name.to_owned(), scanned.traits_of_expression(name))
    });
    // Aggregates of addresses: what a function returned would be stored when the library is loaded.
    let (mut types, mut entries) = (String::new(), Vec::new());
    for (name, traits) in plain.chain(named) {
        let IndexTypes { index, product } = traits.index;
        let may_wait = traits.may_wait;
        let of = format!("__hipcl_kernel_{}", entries.len());
        types += &format!("typedef __hipcl_kernel<(&{name}), {index}, {product}> {of};\n");
        entries.push(format!(
            "    {{(const void*){of}::kernel, {of}::run_blocks, {of}::run_thread, {of}::packed.at, {of}::packed.count, {may_wait}}},\n"
        ));
    }
    format!(
        "# 1 \"hip-host kernels\"\n\
         {types}static const __hipcl_entry __hipcl_entries[] = {{\n{}    {{}}\n}};\n\
         extern \"C\" __attribute__((visibility(\"default\"))) const __hipcl_table {symbol} = {{{}, {}, __hipcl_entries}};\n",
        entries.concat(),
        abi::VERSION,
        entries.len()
    )
}

unsafe extern "C" fn get_program_log_size(program: hiprtcProgram, out: *mut usize) -> hiprtcResult {
    entry("hiprtcGetProgramLogSize", || {
        let size = find(program)?.state.lock().log.as_bytes_with_nul().len();
        // SAFETY: null is refused; otherwise room for a size by the C caller's promise.
        unsafe { store(out, size) }
    })
}

unsafe extern "C" fn get_program_log(program: hiprtcProgram, out: *mut c_char) -> hiprtcResult {
    entry("hiprtcGetProgramLog", || {
        let program = find(program)?;
        let state = program.state.lock();
        // SAFETY: the C caller promises as many bytes as `hiprtcGetProgramLogSize` says.
        unsafe { copy_out(state.log.as_bytes_with_nul(), out) }
    })
}

unsafe extern "C" fn get_code_size(program: hiprtcProgram, out: *mut usize) -> hiprtcResult {
    entry("hiprtcGetCodeSize", || {
        let program = find(program)?;
        // Before a compilation there are no bytes, which is an answer.
        let size = program.state.lock().code.as_ref().map_or(0, Vec::len);
        // SAFETY: null is refused; otherwise room for a size by the C caller's promise.
        unsafe { store(out, size) }
    })
}

unsafe extern "C" fn get_code(program: hiprtcProgram, out: *mut c_char) -> hiprtcResult {
    entry("hiprtcGetCode", || {
        let program = find(program)?;
        let state = program.state.lock();
        let code = state.code.as_ref().ok_or(hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM)?;
        // SAFETY: the C caller promises as many bytes as `hiprtcGetCodeSize` says.
        unsafe { copy_out(code, out) }
    })
}

/// # Safety
/// `out` is null (refused) or valid for writing `bytes.len()` bytes.
unsafe fn copy_out(bytes: &[u8], out: *mut c_char) -> Result {
    if out.is_null() {
        return Err(hiprtcResult::HIPRTC_ERROR_INVALID_INPUT);
    }
    // SAFETY: not null, so room enough by this function's contract.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len()) };
    Ok(())
}

unsafe extern "C" fn get_lowered_name(
    program: hiprtcProgram,
    expression: *const c_char,
    out: *mut *const c_char,
) -> hiprtcResult {
    entry("hiprtcGetLoweredName", || {
        let program = find(program)?;
        // SAFETY: the C caller promises a terminated string.
        let expression = unsafe { string(expression) }?;
        let mut guard = program.state.lock();
        let state = &mut *guard;
        let Some(code) = &state.code else {
            return Err(hiprtcResult::HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
        };
        let invalid = hiprtcResult::HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
        let index = state
            .expressions
            .iter()
            .position(|known| *known == expression)
            .ok_or(invalid)?;
        let lowered = match &mut state.lowered {
            Some(lowered) => lowered,
            empty => {
                empty.insert(lower(code, state.expressions.len()).ok_or(hiprtcResult::HIPRTC_ERROR_INTERNAL_ERROR)?)
            }
        };
        let name = lowered.get(index).and_then(Option::as_ref).ok_or(invalid)?;
        // SAFETY: null is refused; otherwise room for a pointer. The string lives as long as the program does.
        unsafe { store(out, name.as_ptr()) }
    })
}

/// The linker's names of the last `count` kernels of a code object.
fn lower(code: &[u8], count: usize) -> Option<Vec<Option<CString>>> {
    let image = Image::load(&container::unwrap(code, &maker()).ok()?).ok()?;
    let all = image.entries().len();
    Some(
        (all.checked_sub(count)?..all)
            .map(|index| image.symbol_of(index).and_then(|name| CString::new(name).ok()))
            .collect(),
    )
}

unsafe extern "C" fn version(major: *mut c_int, minor: *mut c_int) -> hiprtcResult {
    entry("hiprtcVersion", || {
        if major.is_null() || minor.is_null() {
            return Err(hiprtcResult::HIPRTC_ERROR_INVALID_INPUT);
        }
        // HIPRTC counts its own versions and has stayed at 9.0 (hipamd/src/hiprtc/hiprtc.cpp, `hiprtcVersion`).
        // SAFETY: neither is null; room for an int at each by the C caller's promise.
        unsafe {
            store(major, 9)?;
            store(minor, 0)
        }
    })
}

unsafe extern "C" fn get_error_string(code: hiprtcResult) -> *const c_char {
    match code {
        hiprtcResult::HIPRTC_SUCCESS => c"HIPRTC_SUCCESS",
        hiprtcResult::HIPRTC_ERROR_OUT_OF_MEMORY => c"HIPRTC_ERROR_OUT_OF_MEMORY",
        hiprtcResult::HIPRTC_ERROR_PROGRAM_CREATION_FAILURE => c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
        hiprtcResult::HIPRTC_ERROR_INVALID_INPUT => c"HIPRTC_ERROR_INVALID_INPUT",
        hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM => c"HIPRTC_ERROR_INVALID_PROGRAM",
        hiprtcResult::HIPRTC_ERROR_INVALID_OPTION => c"HIPRTC_ERROR_INVALID_OPTION",
        hiprtcResult::HIPRTC_ERROR_COMPILATION => c"HIPRTC_ERROR_COMPILATION",
        hiprtcResult::HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE => c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        hiprtcResult::HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION => {
            c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"
        }
        hiprtcResult::HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION => {
            c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"
        }
        hiprtcResult::HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID => c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        hiprtcResult::HIPRTC_ERROR_LINKING => c"HIPRTC_ERROR_LINKING",
        _ => c"HIPRTC_ERROR_INTERNAL_ERROR",
    }
    .as_ptr()
}

/// The HIPRTC function table.
pub(crate) const fn api() -> hip_sys::RtcApi {
    hip_sys::RtcApi {
        hiprtcCreateProgram: Some(create_program),
        hiprtcDestroyProgram: Some(destroy_program),
        hiprtcAddNameExpression: Some(add_name_expression),
        hiprtcCompileProgram: Some(compile_program),
        hiprtcGetProgramLogSize: Some(get_program_log_size),
        hiprtcGetProgramLog: Some(get_program_log),
        hiprtcGetCodeSize: Some(get_code_size),
        hiprtcGetCode: Some(get_code),
        hiprtcGetLoweredName: Some(get_lowered_name),
        hiprtcGetErrorString: Some(get_error_string),
        hiprtcVersion: Some(version),
        hiprtcGetBitcodeSize: Some(link::get_bitcode_size),
        hiprtcGetBitcode: Some(link::get_bitcode),
        hiprtcLinkCreate: Some(link::link_create),
        hiprtcLinkAddData: Some(link::link_add_data),
        hiprtcLinkAddFile: Some(link::link_add_file),
        hiprtcLinkComplete: Some(link::link_complete),
        hiprtcLinkDestroy: Some(link::link_destroy),
    }
}
