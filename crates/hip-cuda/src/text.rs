//! Names and texts of HIP error codes.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};

use hip_sys::hipError_t;
use parking_lot::Mutex;

use crate::error::{INVALID, calls, store};

calls! {
    /// Names and texts.
    pub(crate) fn fill;

    fn hipDrvGetErrorName(code: hipError_t, out: *mut *const c_char) {
        store(out, known(code, Text::Name).map_or(std::ptr::null(), CStr::as_ptr))?;
        known(code, Text::Name).map(|_| ()).ok_or(INVALID)
    }
    fn hipDrvGetErrorString(code: hipError_t, out: *mut *const c_char) {
        store(out, known(code, Text::Meaning).map_or(std::ptr::null(), CStr::as_ptr))?;
        known(code, Text::Meaning).map(|_| ()).ok_or(INVALID)
    }
}

pub(crate) unsafe extern "C" fn get_error_name(code: hipError_t) -> *const c_char {
    known(code, Text::Name).unwrap_or(c"hipErrorUnknown").as_ptr()
}

pub(crate) unsafe extern "C" fn get_error_string(code: hipError_t) -> *const c_char {
    known(code, Text::Meaning).unwrap_or(c"unknown error").as_ptr()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(code: hipError_t, of: unsafe extern "C" fn(hipError_t) -> *const c_char) -> String {
        // SAFETY: both functions take any code and answer a terminated string.
        unsafe { CStr::from_ptr(of(code)) }.to_string_lossy().into_owned()
    }

    #[test]
    fn every_code_has_a_name_and_a_text() {
        let memory = hipError_t::hipErrorOutOfMemory;
        assert_eq!(text(memory, get_error_name), "hipErrorOutOfMemory");
        assert_eq!(text(memory, get_error_string), "out of memory");
        assert_eq!(text(hipError_t(4711), get_error_name), "hipErrorUnknown");
    }
}
