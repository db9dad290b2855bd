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

//! # Templates
//!
//! A template has no name of its own in the code object. [`Program::instance`] requests an instance by its C++ name,
//! and [`Module::function`] finds it by the same:
//!
//! ```
//! # use std::sync::Arc;
//! # // SAFETY: both tables come from one platform.
//! # let runtime = unsafe {
//! #     hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), Some(Arc::new(hip_host::rtc_api())))
//! # }?;
//! # let device = runtime.device(0)?;
//! let module = hip::rtc::Program::new("template <typename T> __global__ void zero(T *x) { *x = T(0); }")
//!     .instance("zero<float>")
//!     .instance("zero<double>")
//!     .compile(&device)?;
//! assert_eq!(module.function("zero<double>")?.name(), "zero<double>");
//! # Ok::<(), hip::Error>(())
//! ```
//!
//! [`Cache`] keeps what was compiled on disk.

mod cache;
mod call;
mod compilation;

use std::collections::HashMap;
use std::ffi::CString;

pub use cache::{Cache, CacheStats};
use compilation::Compilation;
use hip_sys::RtcApi;

use crate::call::c_text;
use crate::{Device, Error, Module, Result, Runtime, report};

/// Source text to compile, with its options.
#[derive(Debug, Clone)]
#[must_use = "a program does nothing until it is compiled"]
pub struct Program {
    source: String,
    name: String,
    options: Vec<String>,
    headers: Vec<(String, String)>,
    instances: Vec<String>,
}

/// The compiler's output: the code object, and the symbols of the [instances](Program::instance).
struct Compiled {
    code: Vec<u8>,
    symbols: Vec<(String, String)>,
}

/// Everything a compilation needs from the device.
struct Target<'a> {
    runtime: &'a Runtime,
    table: &'a RtcApi,
    arch: String,
    options: Vec<CString>,
}

impl Program {
    /// A program of this source. HIP's device built-ins need no include.
    pub fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            name: "program.hip".to_owned(),
            options: Vec::new(),
            headers: Vec::new(),
            instances: Vec::new(),
        }
    }

    /// The file name that the compiler's messages use.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// One option for the compiler, such as `-O3` or `-DSIZE=4`. The device's architecture is added automatically.
    ///
    /// The compiler runs in this process. So [`compile`](Self::compile) refuses what loads code into it (`-fplugin=`,
    /// `-Xclang -load`, ...), starts other programs, or takes options from a file (`@file`, `--config`).
    pub fn option(mut self, option: &str) -> Self {
        self.options.push(option.to_owned());
        self
    }

    /// A text that `#include "name"` finds.
    pub fn header(mut self, name: &str, source: &str) -> Self {
        self.headers.push((name.to_owned(), source.to_owned()));
        self
    }

    /// Also compiles this instance of a template, for example `scale<float, 4>`; [`Module::function`] takes the same
    /// text.
    #[doc(alias("hiprtcAddNameExpression", "hiprtcGetLoweredName"))]
    pub fn instance(mut self, expression: &str) -> Self {
        self.instances.push(expression.to_owned());
        self
    }

    /// Compiles for the architecture of `device` and loads the result there.
    ///
    /// The source is code, and a launch trusts it as code: the host platform runs it on the CPU. Loading runs none of
    /// it: the host platform refuses static initialisers, as compilers for GPUs do.
    ///
    /// # Errors
    ///
    /// [`Error::Compile`] with the compiler's log; [`Error::NoCompiler`]; [`Error::CompilerOption`] for an
    /// [option](Self::option) that is refused or that sets the architecture (the compiler ends the process when it does
    /// not know one); [`Error::NulByte`] in a text.
    #[doc(alias("hiprtcCompileProgram", "hiprtcCreateProgram", "hiprtcGetCode"))]
    pub fn compile(&self, device: &Device) -> Result<Module> {
        let target = self.target(device)?;
        self.run(&target)?.load(device)
    }

    fn target<'a>(&self, device: &'a Device) -> Result<Target<'a>> {
        let table = device.runtime().compiler().map_err(|reason| Error::NoCompiler {
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
                reason: "`compile` targets its device; leave the option out",
            });
        }
        if let Some(option) = kernel_cache::loading(self.options.iter().map(String::as_str)) {
            return Err(Error::CompilerOption {
                option: option.to_owned(),
                reason: "it may load code into the process or hide options that do; leave it out",
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
        Ok(Target {
            runtime: device.runtime(),
            table,
            arch,
            options,
        })
    }

    fn run(&self, target: &Target<'_>) -> Result<Compiled> {
        let program = Compilation::create(target, self)?;
        for instance in &self.instances {
            program.add_name(instance)?;
        }
        let outcome = program.compile(&target.options, &self.name);
        let log = program.log();
        if let Err(error) = outcome {
            let first = first_error(&log).map_or_else(|| error.to_string(), str::to_owned);
            return Err(Error::Compile {
                program: self.name.clone(),
                arch: target.arch.clone(),
                first,
                log,
            });
        }
        if !log.trim().is_empty() {
            report::compiler_words(&self.name, &log);
        }
        let symbol = |instance: &String| Ok((instance.clone(), program.lowered(instance)?));
        Ok(Compiled {
            code: program.code(&self.name)?,
            symbols: self.instances.iter().map(symbol).collect::<Result<_>>()?,
        })
    }
}

impl Compiled {
    fn load(self, device: &Device) -> Result<Module> {
        let symbols: HashMap<_, _> = self.symbols.into_iter().collect();
        // SAFETY: the compiler made this code object, now or earlier: only caches write to a cache's folder, by the
        // contract of `Cache::open_in`. It is complete: a kept one has the digest that was written with it.
        unsafe { Module::load_named(device, &self.code, symbols) }
    }
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
        assert_eq!(first_error("\n linker gave up \nmore"), Some("linker gave up"));
        assert_eq!(first_error(" \n"), None);
    }
}
