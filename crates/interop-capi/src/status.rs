//! What a call returns, and the text of a thread's last error.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use crate::failure::Failure;

/// What a call returned: HIPCL_SUCCESS, or an HIPCL_ERROR_... that says what to do about it. The text of
/// hipcl_last_error() names the cause and the remedy. A later version of the library may return values that are not
/// listed here.
pub type hipcl_status = i32;

/// The call did what it says.
pub const HIPCL_SUCCESS: hipcl_status = 0;
/// An argument other than a handle is wrong: a null or misaligned pointer, a size, a range, an unknown value, a text that
/// is not UTF-8, an object that does not belong to the bridge. Call with another one.
pub const HIPCL_ERROR_ARGUMENT: hipcl_status = 1;
/// A handle is null, of another type, or was never returned by this library.
pub const HIPCL_ERROR_HANDLE: hipcl_status = 2;
/// A handle's object was destroyed. Do not use the handle any more.
pub const HIPCL_ERROR_STALE_HANDLE: hipcl_status = 3;
/// An open access, or a call on another thread, has the object; end the access first.
pub const HIPCL_ERROR_BUSY: hipcl_status = 4;
/// Not possible on this platform, device or route, however often it is tried.
pub const HIPCL_ERROR_NOT_SUPPORTED: hipcl_status = 5;
/// Not enough memory, on the device or the host. Free some, or ask for less.
pub const HIPCL_ERROR_OUT_OF_MEMORY: hipcl_status = 6;
/// The memory's owner made it read-only.
pub const HIPCL_ERROR_READ_ONLY: hipcl_status = 7;
/// The program does not build; the text has the compiler's first error, and its log below.
pub const HIPCL_ERROR_BUILD: hipcl_status = 8;
/// OpenCL refused a call, or a command failed; hipcl_last_error_code() is its code.
pub const HIPCL_ERROR_OPENCL: hipcl_status = 9;
/// HIP refused a call, or work on a stream failed; hipcl_last_error_code() is its code.
pub const HIPCL_ERROR_HIP: hipcl_status = 10;
/// rocBLAS or rocSOLVER refused a call; hipcl_last_error_code() is its code.
pub const HIPCL_ERROR_BLAS: hipcl_status = 11;
/// No platform or device can be used, or OpenCL and HIP have no device in common.
pub const HIPCL_ERROR_NO_DEVICE: hipcl_status = 12;
/// Work of one API failed, or did not end in time, before it handed over to the other; the data may be wrong.
pub const HIPCL_ERROR_HANDOFF: hipcl_status = 13;
/// The matrix is singular or not positive definite.
pub const HIPCL_ERROR_NUMERIC: hipcl_status = 14;
/// The operating system refused a call.
pub const HIPCL_ERROR_SYSTEM: hipcl_status = 15;
/// Any other failure; the text says which.
pub const HIPCL_ERROR_FAILED: hipcl_status = 16;
/// A defect of this library: a panic, which was caught. The objects of the call may be unusable.
pub const HIPCL_ERROR_PANIC: hipcl_status = 17;
/// A limit of this library: of the bridges that count copies at once, or of the objects of one type. Destroy some.
pub const HIPCL_ERROR_LIMIT: hipcl_status = 18;

/// A name without spaces for each status, in the order of their values.
const NAMES: [&CStr; 19] = [
    c"HIPCL_SUCCESS",
    c"HIPCL_ERROR_ARGUMENT",
    c"HIPCL_ERROR_HANDLE",
    c"HIPCL_ERROR_STALE_HANDLE",
    c"HIPCL_ERROR_BUSY",
    c"HIPCL_ERROR_NOT_SUPPORTED",
    c"HIPCL_ERROR_OUT_OF_MEMORY",
    c"HIPCL_ERROR_READ_ONLY",
    c"HIPCL_ERROR_BUILD",
    c"HIPCL_ERROR_OPENCL",
    c"HIPCL_ERROR_HIP",
    c"HIPCL_ERROR_BLAS",
    c"HIPCL_ERROR_NO_DEVICE",
    c"HIPCL_ERROR_HANDOFF",
    c"HIPCL_ERROR_NUMERIC",
    c"HIPCL_ERROR_SYSTEM",
    c"HIPCL_ERROR_FAILED",
    c"HIPCL_ERROR_PANIC",
    c"HIPCL_ERROR_LIMIT",
];

struct LastError {
    text: CString,
    code: i32,
}

thread_local! {
    static LAST: RefCell<Option<LastError>> = const { RefCell::new(None) };
}

/// Keeps what `function` failed with for the thread, and returns its status.
pub(crate) fn fail(function: &str, failure: Failure) -> hipcl_status {
    let text = format!("{function}: {}", failure.text).replace('\0', "\u{FFFD}");
    let last = LastError {
        text: CString::new(text).unwrap_or_default(),
        code: failure.code,
    };
    // At the end of a thread the place may be gone.
    let _ = LAST.try_with(|place| place.replace(Some(last)));
    failure.status
}

/// The text of the calling thread's last failed call: one line that begins with the function's name and says what went
/// wrong and what to do; for HIPCL_ERROR_BUILD the compiler's log follows. Empty if no call of this thread has failed;
/// a call that succeeds leaves it as it is.
///
/// The text belongs to the library and lasts until the thread's next call that fails, or the thread's end. Another
/// thread has its own text.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_last_error() -> *const c_char {
    let text = LAST.try_with(|last| last.borrow().as_ref().map(|last| last.text.as_ptr()));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

/// The code with which a driver or library refused the calling thread's last failed call: OpenCL's (negative) after
/// HIPCL_ERROR_OPENCL and HIPCL_ERROR_BUILD, hipError_t after HIPCL_ERROR_HIP, rocblas_status after HIPCL_ERROR_BLAS,
/// errno after HIPCL_ERROR_SYSTEM; with other errors it may be the code of the call that caused them. 0 if there was none.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_last_error_code() -> i32 {
    let code = LAST.try_with(|last| last.borrow().as_ref().map_or(0, |last| last.code));
    code.unwrap_or(0)
}

/// The name of a status, such as "HIPCL_ERROR_BUSY"; "unknown status" for a value that is none. The text is constant.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_status_name(status: hipcl_status) -> *const c_char {
    let name = usize::try_from(status).ok().and_then(|index| NAMES.get(index));
    name.copied().unwrap_or(c"unknown status").as_ptr()
}

/// The version of the library, such as "0.1.0". The text is constant.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no nul"),
    };
    VERSION.as_ptr()
}
