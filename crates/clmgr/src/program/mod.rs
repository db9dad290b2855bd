//! Compiled programs.

mod names;
pub(crate) mod unlaunched;

use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs};

use names::Names;
use opencl_sys::{cl_int, cl_program};

use crate::api::slot;
use crate::context::Context;
use crate::ending::First;
use crate::error::{BuildFailure, Error, Result, check, failing_line, still_running};
use crate::handle::Handle;
use crate::{pocl, query};

/// Makes the compiler keep what [`Kernel`](crate::Kernel) checks arguments by.
pub(crate) const ARGUMENT_INFO: &str = "-cl-kernel-arg-info";

/// A program built for its context's device. Clones name the same program.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    raw: Handle,
    context: Context,
    names: Names,
    /// Source and options, where the driver did not get the source.
    unread: Option<(String, String)>,
}

impl Program {
    /// Compiles and links OpenCL C.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] with the compiler's log and the source line it names; [`Error::Options`] for options with which
    /// the compiler, which runs in this process, would load code or take more options from a file;
    /// [`Error::Unlaunched`] for a module's constructors and destructors, which would run without a launch (on PoCL the
    /// first launch runs them, so nothing is refused). Intel's CPU driver links in this process wherever assembly and
    /// sections lead, so there a source has no word `asm`, `section` or `module`, and options have none of the first two
    /// beside their folders.
    /// [`Error::Nul`], [`Error::Zero`] for a text that OpenCL can't take.
    #[doc(alias = "clCreateProgramWithSource")]
    #[doc(alias = "clBuildProgram")]
    pub fn build(context: &Context, source: &str, options: &str) -> Result<Self> {
        if kernel_cache::loading([options]).is_some() || unlaunched::go_before(context.device(), options) {
            return Err(Error::Options {
                options: options.to_owned(),
            });
        }
        if source.trim().is_empty() {
            return Err(Error::Zero {
                what: "the length of a program's source",
            });
        }
        if source.contains('\0') {
            return Err(Error::Nul {
                what: "the program's source",
            });
        }
        let api = context.api();
        let create = slot!(api, clCreateProgramWithSource)?;
        let parts = [unlaunched::before(context.device()), source];
        let mut texts: [*const c_char; 2] = parts.map(|part| part.as_ptr().cast());
        let lengths = parts.map(str::len);
        // A length of 0 would stand for a text up to its nul.
        let first = usize::from(parts[0].is_empty());
        let count = if first == 0 { 2 } else { 1 };
        let mut code = 0;
        // SAFETY: so many strings are given with their lengths, so they need no nul; OpenCL copies them;
        // `code` is a valid place.
        let raw = unsafe {
            create(
                context.raw(),
                count,
                texts[first..].as_mut_ptr(),
                lengths[first..].as_ptr(),
                &raw mut code,
            )
        };
        check(code, || format!("clCreateProgramWithSource({} bytes)", source.len()))?;
        let program = Self::link(context, raw, source, options)?;
        unlaunched::look(&program)?;
        Ok(program)
    }

    /// Loads what [`binary`](Self::binary) returned: code for this device and driver. A driver may also accept other
    /// code, such as NVIDIA's PTX or an AMD code object from HIPRTC.
    ///
    /// A driver need not keep the parameters' types in a binary. Launches then check less.
    ///
    /// # Errors
    ///
    /// [`Error::Zero`] for an empty binary, `CL_INVALID_BINARY` in [`Error::Call`] for one that is not for
    /// this device or is damaged, [`Error::Build`].
    ///
    /// # Safety
    ///
    /// The binary is complete and what the driver, or a compiler for it, produced: drivers check little and
    /// run what they get.
    #[doc(alias = "clCreateProgramWithBinary")]
    pub unsafe fn from_binary(context: &Context, binary: &[u8], options: &str) -> Result<Self> {
        Self::load_binary(context, binary, "", options)
    }

    /// Loads a binary that the driver made of this source, with these options.
    pub(crate) fn load_binary(context: &Context, binary: &[u8], source: &str, options: &str) -> Result<Self> {
        if binary.is_empty() {
            return Err(Error::Zero {
                what: "the length of a program's binary",
            });
        }
        let api = context.api();
        let create = slot!(api, clCreateProgramWithBinary)?;
        let device = context.device().raw();
        let length = binary.len();
        let mut data = binary.as_ptr();
        let mut status: cl_int = 0;
        let mut code = 0;
        // SAFETY: one device of the context, one length and one binary of that length are given;
        // OpenCL copies it; `status` and `code` are valid places.
        let raw = unsafe {
            create(
                context.raw(),
                1,
                &raw const device,
                &raw const length,
                &raw mut data,
                &raw mut status,
                &raw mut code,
            )
        };
        check(code, || format!("clCreateProgramWithBinary({length} bytes)"))?;
        let mut program = Self::link(context, raw, source, options)?;
        if let Some(inner) = Arc::get_mut(&mut program.0).filter(|_| !source.is_empty()) {
            inner.unread = Some((source.to_owned(), options.to_owned()));
        }
        Ok(program)
    }

    /// Builds a program from SPIR-V.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] if this is not a SPIR-V module or the device accepts none, [`Error::Build`].
    ///
    /// # Safety
    ///
    /// The module is valid SPIR-V for OpenCL's environment: drivers need not check it.
    #[doc(alias = "clCreateProgramWithIL")]
    pub unsafe fn from_spirv(context: &Context, module: &[u8], options: &str) -> Result<Self> {
        let device = context.device();
        let refused = |reason: String| Error::NotSupported {
            what: format!("a program of {} bytes of SPIR-V", module.len()),
            device: device.name().to_owned(),
            reason,
        };
        if !is_spirv(module) {
            let magic = "a SPIR-V module begins with 0x07230203 and consists of whole words";
            return Err(refused(magic.to_owned()));
        }
        let versions = device.ask().text(opencl_sys::CL_DEVICE_IL_VERSION).unwrap_or_default();
        if !versions.contains("SPIR-V") {
            return Err(refused(
                "the device does not accept an intermediate language; build the source, or load a binary".to_owned(),
            ));
        }
        let create = slot!(context.api(), clCreateProgramWithIL)?;
        let mut code = 0;
        // SAFETY: the module is given with its length, and OpenCL copies it; `code` is a valid place.
        let raw = unsafe { create(context.raw(), module.as_ptr().cast(), module.len(), &raw mut code) };
        check(code, || format!("clCreateProgramWithIL({} bytes)", module.len()))?;
        Self::link(context, raw, "", options)
    }

    /// Builds the program in a file: SPIR-V by its first number, a source if it is text without a nul
    /// character, otherwise a binary.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it cannot be read, and the errors of [`build`](Self::build), [`from_spirv`](Self::from_spirv)
    /// and [`from_binary`](Self::from_binary).
    ///
    /// # Safety
    ///
    /// As [`from_spirv`](Self::from_spirv) and [`from_binary`](Self::from_binary).
    pub unsafe fn from_file(context: &Context, path: &Path, options: &str) -> Result<Self> {
        let content = fs::read(path).map_err(|error| Error::File {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        if is_spirv(&content) {
            // SAFETY: the caller's promise.
            return unsafe { Self::from_spirv(context, &content, options) };
        }
        match std::str::from_utf8(&content) {
            Ok(source) if !source.contains('\0') => Self::build(context, source, options),
            // SAFETY: the caller's promise.
            _ => unsafe { Self::from_binary(context, &content, options) },
        }
    }

    /// Builds the program `raw` and owns it.
    fn link(context: &Context, raw: cl_program, source: &str, options: &str) -> Result<Self> {
        let program = Self(Arc::new(Inner {
            raw: Handle(raw),
            context: context.clone(),
            names: Names::new(context.device().platform_name(), source),
            unread: None,
        }));
        let build = slot!(context.api(), clBuildProgram)?;
        // First: behind a `-I` it would be a folder.
        let all = format!("{ARGUMENT_INFO} {options}");
        let all = CString::new(all.trim_end()).map_err(|_| Error::Nul {
            what: "the build options",
        })?;
        let device = context.device().raw();
        // SAFETY: the program is alive; one device of its context is given; the options are a C
        // string; there is no callback, so the call returns when the build has ended.
        let code = unsafe { build(raw, 1, &raw const device, all.as_ptr(), None, std::ptr::null_mut()) };
        still_running()?;
        context.did(First::Build);
        if code == opencl_sys::CL_SUCCESS {
            return Ok(program);
        }
        let log = program.build_log().unwrap_or_default();
        Err(BuildFailure {
            code,
            options: options.to_owned(),
            device: context.device().name().to_owned(),
            source_line: failing_line(&log, source),
            log,
        }
        .into())
    }

    /// The names of the program's kernels, as written in the source.
    ///
    /// # Errors
    ///
    /// An error from `clGetProgramInfo`.
    pub fn kernel_names(&self) -> Result<Vec<String>> {
        let get = slot!(self.0.context.api(), clGetProgramInfo)?;
        let what = opencl_sys::CL_PROGRAM_KERNEL_NAMES;
        let names = query::text("clGetProgramInfo", what, |size, value, needed| {
            // SAFETY: `value` is null with `size` zero, or has room for `size` bytes; `needed` is
            // a valid place or null; the program is alive.
            unsafe { get(self.raw(), what, size, value, needed) }
        })?;
        Ok(names
            .split(';')
            .filter(|name| !name.is_empty())
            .map(|name| self.0.names.written(name).to_owned())
            .collect())
    }

    /// The compiler's log, warnings included.
    ///
    /// # Errors
    ///
    /// An error from `clGetProgramBuildInfo`.
    #[doc(alias = "clGetProgramBuildInfo")]
    pub fn build_log(&self) -> Result<String> {
        self.build_text(opencl_sys::CL_PROGRAM_BUILD_LOG)
    }

    /// The options that it was built with.
    ///
    /// # Errors
    ///
    /// An error from `clGetProgramBuildInfo`.
    pub fn build_options(&self) -> Result<String> {
        self.build_text(opencl_sys::CL_PROGRAM_BUILD_OPTIONS)
    }

    fn build_text(&self, what: opencl_sys::cl_uint) -> Result<String> {
        let get = slot!(self.0.context.api(), clGetProgramBuildInfo)?;
        query::text("clGetProgramBuildInfo", what, |size, value, needed| {
            // SAFETY: as in `kernel_names`, and the device is the context's.
            unsafe { get(self.raw(), self.0.context.device().raw(), what, size, value, needed) }
        })
    }

    /// The device's code for this program; empty where the driver returns none.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] on PoCL, which would run a module's constructors to answer; an error from
    /// `clGetProgramInfo`.
    pub fn binary(&self) -> Result<Vec<u8>> {
        let device = self.context().device();
        if pocl::drives(device) {
            return Err(Error::NotSupported {
                what: "a program's binary".to_owned(),
                device: device.name().to_owned(),
                reason: pocl::TELLS_NO_CODE.to_owned(),
            });
        }
        let get = slot!(self.0.context.api(), clGetProgramInfo)?;
        let mut size = 0usize;
        // SAFETY: the context has one device, so the answer is one `size_t`.
        let code = unsafe {
            get(
                self.raw(),
                opencl_sys::CL_PROGRAM_BINARY_SIZES,
                size_of::<usize>(),
                (&raw mut size).cast(),
                std::ptr::null_mut(),
            )
        };
        check(code, || "clGetProgramInfo(CL_PROGRAM_BINARY_SIZES)".to_owned())?;
        let mut binary = vec![0u8; size];
        if size == 0 {
            return Ok(binary);
        }
        let mut place = binary.as_mut_ptr();
        // SAFETY: the query takes an array of one pointer, which points at room for the binary.
        let code = unsafe {
            get(
                self.raw(),
                opencl_sys::CL_PROGRAM_BINARIES,
                size_of::<*mut u8>(),
                (&raw mut place).cast(),
                std::ptr::null_mut(),
            )
        };
        check(code, || format!("clGetProgramInfo(CL_PROGRAM_BINARIES, {size} bytes)"))?;
        Ok(binary)
    }

    /// The source and the options, where the driver got a binary instead.
    pub(crate) fn unread(&self) -> Option<&(String, String)> {
        self.0.unread.as_ref()
    }

    pub(crate) fn names(&self) -> &Names {
        &self.0.names
    }

    /// The program's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The program's handle, valid for as long as a clone of this value lives.
    #[must_use]
    pub fn raw(&self) -> cl_program {
        self.0.raw.0
    }
}

/// Whether these bytes begin as a SPIR-V module, in the byte order of this machine, and are whole words.
fn is_spirv(bytes: &[u8]) -> bool {
    const MAGIC: u32 = 0x0723_0203;
    bytes.starts_with(&MAGIC.to_ne_bytes()) && bytes.len().is_multiple_of(4)
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("kernels", &self.kernel_names().unwrap_or_default())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(release) = self.context.api().clReleaseProgram {
            // SAFETY: this is the one reference that the creation gave.
            unsafe { release(self.raw.0) };
        }
    }
}
