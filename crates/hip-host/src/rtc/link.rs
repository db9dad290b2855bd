//! HIPRTC's linker, as far as there is something to link.
//!
//! The machine's compiler makes whole code objects and no bitcode. So a program has none, as on ROCm unless it was
//! compiled with `-fgpu-rdc`; and a link takes one HIPRTC code object and returns it. Several would have to
//! be compiled together, which is `HIPRTC_ERROR_LINKING`: give `hiprtcCreateProgram` their sources as one.

use std::ffi::{c_char, c_uint, c_void};
use std::sync::Arc;

use hip_sys::{hipJitInputType as Input, hipJitOption, hiprtcLinkState, hiprtcProgram, hiprtcResult};
use parking_lot::Mutex;

use super::{Result, container, find, maker, store, string};
use crate::frame::run as entry;
use crate::handles::Handles;
use crate::log;

const INVALID: hiprtcResult = hiprtcResult::HIPRTC_ERROR_INVALID_INPUT;

static LINKS: Handles<Link> = Handles::new();

#[derive(Default)]
struct Link {
    inputs: Mutex<Vec<Vec<u8>>>,
    /// The link's result, which the program may read until the link is destroyed.
    done: Mutex<Option<Box<[u8]>>>,
}

fn link(state: hiprtcLinkState) -> Result<Arc<Link>> {
    LINKS.get(state as usize).ok_or(INVALID)
}

/// # Errors
/// Always: there is none.
fn no_bitcode(call: &'static str, program: hiprtcProgram, has_room: bool) -> hiprtcResult {
    entry(call, || {
        if !has_room {
            return Err(INVALID);
        }
        find(program)?;
        log::refused(
            call,
            format_args!("the host platform generates no bitcode; use the code"),
        );
        Err(hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM)
    })
}

pub(super) unsafe extern "C" fn get_bitcode_size(program: hiprtcProgram, out: *mut usize) -> hiprtcResult {
    no_bitcode("hiprtcGetBitcodeSize", program, !out.is_null())
}

pub(super) unsafe extern "C" fn get_bitcode(program: hiprtcProgram, out: *mut c_char) -> hiprtcResult {
    no_bitcode("hiprtcGetBitcode", program, !out.is_null())
}

pub(super) unsafe extern "C" fn link_create(
    count: c_uint,
    options: *mut hipJitOption,
    values: *mut *mut c_void,
    out: *mut hiprtcLinkState,
) -> hiprtcResult {
    entry("hiprtcLinkCreate", || {
        if count > 0 && (options.is_null() || values.is_null()) {
            return Err(INVALID);
        }
        if out.is_null() {
            return Err(INVALID);
        }
        // These options configure AMD's code generator, which is absent here.
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, LINKS.insert(Arc::default()) as hiprtcLinkState) }
    })
}

/// Takes an input, if it is one of ours.
fn add(call: &'static str, link: &Link, kind: Input, code: &[u8]) -> Result {
    let known = [
        Input::hipJitInputLLVMBitcode,
        Input::hipJitInputLLVMBundledBitcode,
        Input::hipJitInputLLVMArchivesOfBundledBitcode,
    ];
    if !known.contains(&kind) {
        return Err(INVALID);
    }
    if container::unwrap(code, &maker()).is_err() {
        log::refused(call, format_args!("the input is no code object that HIPRTC made here"));
        return Err(INVALID);
    }
    link.inputs.lock().push(code.to_vec());
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "the C signature")]
pub(super) unsafe extern "C" fn link_add_data(
    state: hiprtcLinkState,
    kind: Input,
    image: *mut c_void,
    bytes: usize,
    _name: *const c_char,
    _count: c_uint,
    _options: *mut hipJitOption,
    _values: *mut *mut c_void,
) -> hiprtcResult {
    const CALL: &str = "hiprtcLinkAddData";
    entry(CALL, || {
        if image.is_null() || bytes == 0 {
            return Err(INVALID);
        }
        let link = link(state)?;
        // SAFETY: not null; the C caller promises that many bytes.
        add(CALL, &link, kind, unsafe {
            std::slice::from_raw_parts(image.cast(), bytes)
        })
    })
}

pub(super) unsafe extern "C" fn link_add_file(
    state: hiprtcLinkState,
    kind: Input,
    path: *const c_char,
    _count: c_uint,
    _options: *mut hipJitOption,
    _values: *mut *mut c_void,
) -> hiprtcResult {
    const CALL: &str = "hiprtcLinkAddFile";
    entry(CALL, || {
        let link = link(state)?;
        // SAFETY: the C caller promises a terminated string.
        let path = unsafe { string(path) }?;
        // ROCm's word for a file that cannot be read.
        let code = std::fs::read(path);
        let code = code.map_err(|_| hiprtcResult::HIPRTC_ERROR_PROGRAM_CREATION_FAILURE)?;
        add(CALL, &link, kind, &code)
    })
}

pub(super) unsafe extern "C" fn link_complete(
    state: hiprtcLinkState,
    out: *mut *mut c_void,
    bytes: *mut usize,
) -> hiprtcResult {
    entry("hiprtcLinkComplete", || {
        if out.is_null() || bytes.is_null() {
            return Err(INVALID);
        }
        let link = link(state)?;
        let inputs = link.inputs.lock();
        let [code] = inputs.as_slice() else {
            log::refused(
                "hiprtcLinkComplete",
                format_args!("{} inputs: the host platform links only one", inputs.len()),
            );
            return Err(hiprtcResult::HIPRTC_ERROR_LINKING);
        };
        let mut done = link.done.lock();
        let code = done.get_or_insert_with(|| code.clone().into_boxed_slice());
        // SAFETY: neither is null; room for a pointer and a size by the C caller's promise.
        unsafe {
            store(out, code.as_mut_ptr().cast())?;
            store(bytes, code.len())
        }
    })
}

pub(super) unsafe extern "C" fn link_destroy(state: hiprtcLinkState) -> hiprtcResult {
    entry("hiprtcLinkDestroy", || {
        LINKS.remove(state as usize).map(|_| ()).ok_or(INVALID)
    })
}
