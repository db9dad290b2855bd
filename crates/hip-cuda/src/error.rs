//! The calling thread's last error, the texts of codes, and the frame that every HIP entry point runs in.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use hip_sys::hipError_t;
use parking_lot::Mutex;

use crate::{cuda, table};

/// What the bodies of entry points return.
pub(crate) type Result<T = ()> = std::result::Result<T, hipError_t>;

pub(crate) const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;
pub(crate) const UNSUPPORTED: hipError_t = hipError_t::hipErrorNotSupported;

thread_local! {
    static LAST: Cell<hipError_t> = const { Cell::new(hipError_t::hipSuccess) };
    /// The last result that was an error; successes leave it unchanged.
    static LAST_FAILURE: Cell<hipError_t> = const { Cell::new(hipError_t::hipSuccess) };
}

/// Runs the body of one HIP entry point: no panic across the C boundary, and the thread's last error set.
///
/// HIP 6 stores the result of *every* call, a success included (hipamd/src/hip_internal.hpp, `HIP_RETURN`).
pub(crate) fn entry(body: impl FnOnce() -> Result) -> hipError_t {
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => hipError_t::hipSuccess,
        Ok(Err(code)) => code,
        Err(_) => hipError_t::hipErrorUnknown,
    };
    LAST.set(code);
    if !matches!(code, hipError_t::hipSuccess | hipError_t::hipErrorNotReady) {
        LAST_FAILURE.set(code);
    }
    code
}

/// Stores a result at the C caller's pointer, refusing null.
///
/// # Safety
/// `out` is null or valid for writing one `T`.
pub(crate) unsafe fn store<T>(out: *mut T, value: T) -> Result {
    if out.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, so by this function's contract valid for a write; unaligned because C callers may pack.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Refuses null pointers, which CUDA's driver does not do everywhere.
macro_rules! not_null {
    ($($pointer:expr),+) => {
        if $($pointer.is_null())||+ {
            return Err($crate::error::INVALID);
        }
    };
}
pub(crate) use not_null;

table::calls! {
    /// Names and texts, and the last error of a thread.
    pub(crate) fn fill;

    fn hipInit(flags: u32) {
        if flags != 0 {
            return Err(INVALID);
        }
        crate::device::current().map(|_| ())
    }
    fn hipDrvGetErrorName(code: hipError_t, out: *mut *const c_char) {
        store(out, known(code, Text::Name).map_or(std::ptr::null(), CStr::as_ptr))?;
        known(code, Text::Name).map(|_| ()).ok_or(INVALID)
    }
    fn hipDrvGetErrorString(code: hipError_t, out: *mut *const c_char) {
        store(out, known(code, Text::Meaning).map_or(std::ptr::null(), CStr::as_ptr))?;
        known(code, Text::Meaning).map(|_| ()).ok_or(INVALID)
    }
}

pub(crate) unsafe extern "C" fn get_last_error() -> hipError_t {
    LAST.replace(hipError_t::hipSuccess)
}

pub(crate) unsafe extern "C" fn peek_at_last_error() -> hipError_t {
    LAST.get()
}

/// The last failure since the last call, which later successes do not hide (hipamd/src/hip_error.cpp).
pub(crate) unsafe extern "C" fn ext_get_last_error() -> hipError_t {
    LAST_FAILURE.replace(hipError_t::hipSuccess)
}

pub(crate) unsafe extern "C" fn get_error_name(code: hipError_t) -> *const c_char {
    known(code, Text::Name)
        .unwrap_or(c"hipErrorUnknown")
        .as_ptr()
}

pub(crate) unsafe extern "C" fn get_error_string(code: hipError_t) -> *const c_char {
    known(code, Text::Meaning)
        .unwrap_or(c"unknown error")
        .as_ptr()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Text {
    Name,
    Meaning,
}

/// The text of a code that HIP knows, as a string that lives as long as the process.
fn known(code: hipError_t, text: Text) -> Option<&'static CStr> {
    static TEXTS: Mutex<BTreeMap<(u32, Text), &'static CStr>> = Mutex::new(BTreeMap::new());
    let name = code.name()?;
    let mut texts = TEXTS.lock();
    let found = texts.entry((code.0, text)).or_insert_with(|| {
        let words = match text {
            Text::Name => name.to_owned(),
            Text::Meaning => words_of(name),
        };
        // One for each code at most, so that what is kept for good is bounded.
        Box::leak(CString::new(words).unwrap_or_default().into_boxed_c_str())
    });
    Some(found)
}

/// `hipErrorOutOfMemory` as "out of memory".
fn words_of(name: &str) -> String {
    let short = name
        .strip_prefix("hipError")
        .unwrap_or(name.strip_prefix("hip").unwrap_or(name));
    let mut words = String::new();
    let mut after_lower = false;
    for letter in short.chars() {
        if letter.is_uppercase() && after_lower {
            words.push(' ');
        }
        after_lower = letter.is_lowercase();
        words.extend(letter.to_lowercase());
    }
    words
}

/// The version of HIP whose ABI the tables have, in HIP's own way of counting: 6.4.3.
const ABI_VERSION: i32 = 60_443_484;

table::calls! {
    /// Versions.
    pub(crate) fn fill_versions;

    fn hipRuntimeGetVersion(out: *mut i32) {
        store(out, ABI_VERSION)
    }
    fn hipDriverGetVersion(out: *mut i32) {
        not_null!(out);
        cuda::cu()?.cuDriverGetVersion(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(code: hipError_t, of: unsafe extern "C" fn(hipError_t) -> *const c_char) -> String {
        // SAFETY: both functions take any code and answer a terminated string.
        unsafe { CStr::from_ptr(of(code)) }
            .to_string_lossy()
            .into_owned()
    }

    #[test]
    fn every_code_has_a_name_and_a_text() {
        let memory = hipError_t::hipErrorOutOfMemory;
        assert_eq!(text(memory, get_error_name), "hipErrorOutOfMemory");
        assert_eq!(text(memory, get_error_string), "out of memory");
        assert_eq!(text(hipError_t(4711), get_error_name), "hipErrorUnknown");
    }

    #[test]
    fn a_panic_becomes_an_error_and_the_last_failure_outlives_a_success() {
        assert_eq!(entry(|| panic!("on purpose")), hipError_t::hipErrorUnknown);
        assert_eq!(entry(|| Ok(())), hipError_t::hipSuccess);
        // SAFETY: neither takes an argument.
        let (last, failure) = unsafe { (get_last_error(), ext_get_last_error()) };
        assert_eq!(
            (last, failure),
            (hipError_t::hipSuccess, hipError_t::hipErrorUnknown)
        );
    }
}
