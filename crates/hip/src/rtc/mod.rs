//! Run-time compilation of HIP source.
//!
//! ```
//! # use std::sync::Arc;
//! # // SAFETY: both tables come from one platform.
//! # let runtime = unsafe {
//! #     hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), Some(Arc::new(hip_host::rtc_api())))
//! # }?;
//! # let device = runtime.device(0)?;
//! let error = hip::rtc::Program::new("extern \"C\" __global__ void broken(float *x) { x[0] = y; }")
//!     .name("broken.hip")
//!     .compile(&device)
//!     .unwrap_err();
//! let hip::Error::Compile { log, first, .. } = &error else { panic!("{error}") };
//! assert!(first.contains("y") && log.contains(first.as_str()));
//! # Ok::<(), hip::Error>(())
//! ```

use std::ffi::{CString, c_char, c_int};
use std::ptr;

use hip_sys::{RtcApi, hiprtcProgram, hiprtcResult};

use crate::call::rtc_call;
use crate::module::c_text;
use crate::{Device, Error, Module, Result, report};

/// Source text to compile, with its options.
#[derive(Debug, Clone)]
#[must_use = "a program does nothing until it is compiled"]
pub struct Program {
    source: String,
    name: String,
    options: Vec<String>,
    headers: Vec<(String, String)>,
}

impl Program {
    /// A program of this source. HIP's device built-ins need no include.
    pub fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            name: "program.hip".to_owned(),
            options: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// The file name that the compiler's messages use.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// One option for the compiler, such as `-O3` or `-DSIZE=4`. The device's architecture is added by itself.
    pub fn option(mut self, option: &str) -> Self {
        self.options.push(option.to_owned());
        self
    }

    /// A text that `#include "name"` finds.
    pub fn header(mut self, name: &str, source: &str) -> Self {
        self.headers.push((name.to_owned(), source.to_owned()));
        self
    }

    /// Compiles for the architecture of `device` and loads the result there.
    ///
    /// The source is code, and is trusted as code: the host platform runs it on the CPU, static initialisers included.
    ///
    /// # Errors
    ///
    /// [`Error::Compile`] with the compiler's log; [`Error::NoCompiler`]; [`Error::CompilerOption`] for an option that sets
    /// the architecture (the compiler ends the process when it does not know one); [`Error::NulByte`] in a text.
    #[doc(alias("hiprtcCompileProgram", "hiprtcCreateProgram", "hiprtcGetCode"))]
    pub fn compile(&self, device: &Device) -> Result<Module> {
        let table = device
            .runtime()
            .compiler()
            .map_err(|reason| Error::NoCompiler {
                program: self.name.clone(),
                reason: reason.to_owned(),
            })?;
        const ARCHITECTURE: [&str; 3] = ["--offload-arch", "--gpu-architecture", "-arch"];
        if let Some(option) = self
            .options
            .iter()
            .find(|option| ARCHITECTURE.iter().any(|start| option.starts_with(start)))
        {
            return Err(Error::CompilerOption {
                option: option.clone(),
            });
        }
        let mut options = Vec::new();
        let arch = match device.arch() {
            Ok(arch) => {
                options.push(c_text(&format!("--offload-arch={arch}"), "architecture")?);
                arch
            }
            // A release that cannot tell compiles for the current device by itself.
            Err(Error::MissingSymbol { .. }) => {
                device.make_current()?;
                "the current device".to_owned()
            }
            Err(error) => return Err(error),
        };
        for option in &self.options {
            options.push(c_text(option, "compiler option")?);
        }
        let program = Compilation::create(table, self)?;
        let outcome = program.compile(&options, &self.name);
        let log = program.log();
        if let Err(error) = outcome {
            let first = first_error(&log).map_or_else(|| error.to_string(), str::to_owned);
            return Err(Error::Compile {
                program: self.name.clone(),
                arch,
                first,
                log,
            });
        }
        if !log.trim().is_empty() {
            report::compiler_words(&self.name, &log);
        }
        let code = program.code(&self.name)?;
        // SAFETY: the compiler made this code object, and it is complete.
        unsafe { Module::load(device, &code) }
    }
}

/// A program of the C API, destroyed when dropped.
struct Compilation<'a> {
    table: &'a RtcApi,
    raw: hiprtcProgram,
}

impl<'a> Compilation<'a> {
    fn create(table: &'a RtcApi, program: &Program) -> Result<Self> {
        let name = c_text(&program.name, "program name")?;
        let source = c_text(&program.source, "program source")?;
        let mut header_names = Vec::new();
        let mut header_texts = Vec::new();
        for (name, text) in &program.headers {
            header_names.push(c_text(name, "header name")?);
            header_texts.push(c_text(text, "header source")?);
        }
        let mut header_names = pointers(&header_names);
        let mut header_texts = pointers(&header_texts);
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; all texts end with NUL and outlive the call, which copies them; both
        // lists have as many entries as the count says.
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
        Ok(Self { table, raw })
    }

    fn compile(&self, options: &[CString], name: &str) -> Result<()> {
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

    /// What the compiler said; empty if it will not tell, for a log must not hide the error it belongs to.
    fn log(&self) -> String {
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
        let end = text
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(text.len());
        String::from_utf8_lossy(&text[..end]).into_owned()
    }

    fn code(&self, name: &str) -> Result<Vec<u8>> {
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
            // Nothing of the device hangs on a program, so the log is enough.
            report::while_dropping(&error);
        }
    }
}

#[cold]
pub(crate) fn failure(code: hiprtcResult, call: String) -> Error {
    let name = code.name().unwrap_or("HIPRTC_ERROR of a newer release");
    Error::Call {
        call,
        name,
        code: i64::from(code.0),
        remedy: String::new(),
    }
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

fn count(len: usize) -> c_int {
    // Each entry is a text in memory: there are never 2^31 of them.
    c_int::try_from(len).unwrap_or(c_int::MAX)
}

/// The line of the log that a reader should see first.
fn first_error(log: &str) -> Option<&str> {
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next();
    lines.find(|line| line.contains("error:")).or(first)
}

#[cfg(test)]
mod tests {
    use super::first_error;

    #[test]
    fn the_first_line_with_an_error_is_chosen_over_warnings_and_notes() {
        let log = "a.hip:1:1: warning: unused\n\n  a.hip:3:5: error: use of undeclared identifier 'y'\na.hip:9:9: error: later\n";
        assert_eq!(
            first_error(log),
            Some("a.hip:3:5: error: use of undeclared identifier 'y'")
        );
        assert_eq!(
            first_error("\n linker gave up \nmore"),
            Some("linker gave up")
        );
        assert_eq!(first_error(" \n"), None);
    }
}
