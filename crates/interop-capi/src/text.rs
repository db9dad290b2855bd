//! Texts of any length.

use std::ffi::{CString, c_char};

use crate::call::{Out, call, destroy, optional_out};
use crate::failure::Failure;
use crate::handle::{Object, object};
use crate::status::hipcl_status;

/// What a hipcl_text points to.
pub enum hipcl_text_s {}
/// A text that the library made.
pub type hipcl_text = *mut hipcl_text_s;

pub(crate) struct Text(CString);
object!(Text, hipcl_text_s, Text);

impl Text {
    /// A nul within would end it early, so it becomes a replacement character.
    pub(crate) fn new(text: String) -> Self {
        let clean = text.replace('\0', "\u{FFFD}");
        Self(CString::new(clean).unwrap_or_default())
    }
}

/// The characters of a text: UTF-8, with a nul behind the last.
///
/// @param text    A text.
/// @param chars   Receives the address of the first character. It belongs to the text, and lasts until
///                hipcl_text_destroy().
/// @param bytes   Receives the length in bytes, without the nul. May be null.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE, HIPCL_ERROR_ARGUMENT.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_text_get(
    text: hipcl_text,
    chars: *mut *const c_char,
    bytes: *mut usize,
) -> hipcl_status {
    call("hipcl_text_get", || {
        // SAFETY: the C caller's pointer to a pointer.
        let chars = unsafe { Out::new(chars, "chars") }?;
        let text = Text::of(text, "text")?;
        // SAFETY: null or the C caller's pointer to a size.
        if let Some(bytes) = unsafe { optional_out(bytes, "bytes") }? {
            bytes.set(text.0.as_bytes().len());
        }
        chars.set(text.0.as_ptr());
        Ok(())
    })
}

/// Frees a text. Its characters must not be used any more, by any thread.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_text_destroy(text: hipcl_text) -> hipcl_status {
    destroy::<Text>("hipcl_text_destroy", text, "text")
}

impl Out<hipcl_text> {
    pub(crate) fn text(self, text: String) -> Result<(), Failure> {
        self.publish(Text::new(text))
    }
}
