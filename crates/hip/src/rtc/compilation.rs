use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use hip_sys::{RtcApi, hiprtcProgram};

use super::call::rtc_call;
use super::{Program, Target};
use crate::call::c_text;
use crate::{Error, Result, Runtime};

/// A program of the C API, destroyed when dropped.
pub(super) struct Compilation<'a> {
    runtime: &'a Runtime,
    table: &'a RtcApi,
    raw: hiprtcProgram,
}

impl<'a> Compilation<'a> {
    pub(super) fn create(target: &Target<'a>, program: &Program) -> Result<Self> {
        let Target { runtime, table, .. } = *target;
        let name = c_text(&program.name, "program name")?;
        let source = c_text(&program.source, "program source")?;
        let mut header_names = Vec::new();
        let mut header_texts = Vec::new();
        for (name, text) in &program.headers {
            header_names.push(c_text(name, "header name")?);
            // HIPRTC refuses a header without a character.
            let text = if text.is_empty() { "\n" } else { text };
            header_texts.push(c_text(text, "header source")?);
        }
        let mut header_names = pointers(&header_names);
        let mut header_texts = pointers(&header_texts);
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; all texts end with NUL and outlive the call, which copies
        // them; both lists have as many entries as the count says.
        unsafe {
            rtc_call!(
                table,
                hiprtcCreateProgram(
                    &mut raw,
                    source.as_ptr(),
                    name.as_ptr(),
                    count(header_names.len()),
                    header_texts.as_mut_ptr(),
                    header_names.as_mut_ptr()
                ),
                "hiprtcCreateProgram({})",
                program.name
            )?;
        }
        Ok(Self { runtime, table, raw })
    }

    /// Requests the instance of a template; before compiling.
    pub(super) fn add_name(&self, expression: &str) -> Result<()> {
        let text = c_text(expression, "name expression")?;
        // SAFETY: the program is alive; the text ends with NUL and is copied.
        unsafe {
            rtc_call!(
                self.table,
                hiprtcAddNameExpression(self.raw, text.as_ptr()),
                "hiprtcAddNameExpression({expression})"
            )
        }
    }

    /// The symbol that a name expression became; after compiling.
    pub(super) fn lowered(&self, expression: &str) -> Result<String> {
        let text = c_text(expression, "name expression")?;
        let mut name = ptr::null();
        // SAFETY: the program is alive; the text ends with NUL; writes one pointer to the address given.
        unsafe {
            rtc_call!(
                self.table,
                hiprtcGetLoweredName(self.raw, text.as_ptr(), &mut name),
                "hiprtcGetLoweredName({expression})"
            )?;
        }
        if name.is_null() {
            return Err(Error::Answer {
                call: "hiprtcGetLoweredName",
                answer: "null".to_owned(),
                expected: "a name",
            });
        }
        // SAFETY: not null; a text that belongs to the program, which is alive.
        let name = unsafe { CStr::from_ptr(name) };
        Ok(name.to_string_lossy().into_owned())
    }

    pub(super) fn compile(&self, options: &[CString], name: &str) -> Result<()> {
        let mut list = pointers(options);
        // SAFETY: the program is alive; the list has as many NUL-terminated texts as the count says.
        unsafe {
            rtc_call!(
                self.table,
                hiprtcCompileProgram(self.raw, count(list.len()), list.as_mut_ptr()),
                "hiprtcCompileProgram({name})"
            )
        }
    }

    /// The compiler's log; empty if it cannot be read, for a log must not hide the error it belongs to.
    pub(super) fn log(&self) -> String {
        let mut size = 0;
        // SAFETY: the program is alive; writes one size to the address given.
        let told = unsafe {
            rtc_call!(
                self.table,
                hiprtcGetProgramLogSize(self.raw, &mut size),
                "hiprtcGetProgramLogSize()"
            )
        };
        if told.is_err() || size == 0 {
            return String::new();
        }
        let mut text = vec![0_u8; size];
        // SAFETY: the program is alive; writes as many bytes as it just announced.
        let told = unsafe {
            rtc_call!(
                self.table,
                hiprtcGetProgramLog(self.raw, text.as_mut_ptr().cast::<c_char>()),
                "hiprtcGetProgramLog()"
            )
        };
        if told.is_err() {
            return String::new();
        }
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        String::from_utf8_lossy(&text[..end]).into_owned()
    }

    pub(super) fn code(&self, name: &str) -> Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: the program is alive; writes one size to the address given.
        unsafe {
            rtc_call!(
                self.table,
                hiprtcGetCodeSize(self.raw, &mut size),
                "hiprtcGetCodeSize({name})"
            )?
        };
        let mut code = vec![0_u8; size];
        // SAFETY: the program is alive; writes as many bytes as it just announced.
        unsafe {
            rtc_call!(
                self.table,
                hiprtcGetCode(self.raw, code.as_mut_ptr().cast::<c_char>()),
                "hiprtcGetCode({name})"
            )?;
        }
        Ok(code)
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is alive, and this is its last use.
        let outcome = unsafe {
            rtc_call!(
                self.table,
                hiprtcDestroyProgram(&mut self.raw),
                "hiprtcDestroyProgram()"
            )
        };
        if let Err(error) = outcome {
            self.runtime.defer(error);
        }
    }
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

fn count(len: usize) -> c_int {
    // Each entry is a text in memory: there are never 2^31 of them.
    c_int::try_from(len).unwrap_or(c_int::MAX)
}
