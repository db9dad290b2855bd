//! The error type.

mod build;
mod code;
mod tried;

pub use build::BuildFailure;
pub(crate) use build::failing_line;
use code::{code_name, hint};
use opencl_sys::cl_int;
pub use tried::Tried;
use tried::list;

use crate::access::BufferAccess;
use crate::ending;

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. Each value displays as one line that names the call, its key arguments, the
/// code and, where one is known, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No library offers an OpenCL device.
    #[error(
        "no OpenCL device found; tried {}; {}",
        list(tried),
        match is_named {
            true => "unset HIPCL_OPENCL, or set it to the path of an OpenCL library",
            false => "install an OpenCL runtime (Debian: pocl-opencl-icd), or set HIPCL_OPENCL to the path of an OpenCL \
                library",
        }
    )]
    NoRuntime {
        /// Every library that was tried, with the reason why it offers none.
        tried: Vec<Tried>,
        /// Whether the variable `HIPCL_OPENCL` names a library, so that no other was looked for.
        is_named: bool,
    },
    /// The library lacks a function.
    #[error("this OpenCL library has no `{symbol}`, which OpenCL {since} introduced; use a newer OpenCL library")]
    MissingFunction {
        /// The function's name.
        symbol: &'static str,
        /// The OpenCL version that introduced it.
        since: &'static str,
    },
    /// OpenCL's answer came when the process had begun to end, and may be wrong.
    #[error("the process is ending, and OpenCL's answers are no longer true: join all threads before `main` returns")]
    ProcessEnds,
    /// A call failed.
    #[error("`{call}` failed: {} ({code}){}", code_name(*code), hint(call, *code))]
    Call {
        /// The function and its key arguments.
        call: String,
        /// OpenCL's code.
        code: cl_int,
    },
    /// An enqueued command ended with an error.
    #[error("the command enqueued by `{call}` ended with {} ({code}){}", code_name(*code), hint(call, *code))]
    Command {
        /// What enqueued the command.
        call: &'static str,
        /// The event's execution status, which is negative.
        code: cl_int,
    },
    /// Build options with which the driver's compiler would load code.
    #[error(
        "the build options `{options}` are refused: they may load code into the process or hide options that do \
         (`-fplugin=`, `-Xclang`, `--config`, `@file`, a macro for `asm`, ...); leave them out"
    )]
    Options {
        /// The options.
        options: String,
    },
    /// A program with code that would run without a launch.
    #[error(
        "the program is refused: its binary has `{mark}`, code that runs without a launch (constructors, destructors); \
         make it a kernel"
    )]
    Unlaunched {
        /// What the binary has.
        mark: &'static str,
    },
    /// A program does not build.
    #[error("{0}")]
    Build(Box<BuildFailure>),
    /// Deferred errors that were not kept.
    #[error(
        "{count} more errors of destructors were not kept; call take_deferred_errors or finish before there are more than 64"
    )]
    MoreDeferred {
        /// How many.
        count: usize,
    },
    /// A size of zero, where memory or work is requested.
    #[error("{what} must not be zero")]
    Zero {
        /// What was zero.
        what: &'static str,
    },
    /// A size exceeds the address space or the device's limit.
    #[error("{what} is {got}, more than the limit of {limit}")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// The requested size.
        got: String,
        /// The limit.
        limit: u64,
    },
    /// Two lengths that must agree do not.
    #[error("{what}: got {got} elements, expected {expected}")]
    LengthMismatch {
        /// Where the lengths meet.
        what: &'static str,
        /// The length that is needed.
        expected: usize,
        /// The actual length.
        got: usize,
    },
    /// A range exceeds a buffer.
    #[error("elements {offset}..{} are outside a buffer of {len} elements", offset.saturating_add(*count))]
    OutOfRange {
        /// The first element.
        offset: usize,
        /// The number of elements.
        count: usize,
        /// The buffer's length.
        len: usize,
    },
    /// A foreign object cannot be adopted.
    #[error("cannot adopt {what}: {reason}")]
    Foreign {
        /// The object.
        what: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// A foreign buffer does not hold a whole number of elements.
    #[error("a buffer of {bytes} bytes does not hold a whole number of elements of {element} bytes")]
    Remainder {
        /// The buffer's size.
        bytes: usize,
        /// The element's size.
        element: usize,
    },
    /// A box or a part does not meet OpenCL's requirements on its position in memory.
    #[error("{what}: {reason}")]
    Region {
        /// Where the box or part is used.
        what: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// A buffer's flags forbid the requested use.
    #[error("{what} is not allowed: the buffer is {access}; create it with flags that allow it")]
    Access {
        /// What was requested.
        what: String,
        /// What the buffer allows.
        access: BufferAccess,
    },
    /// Objects of different contexts were used together.
    #[error("{what} belongs to another OpenCL context; create it from the context that uses it")]
    ContextMismatch {
        /// The foreign object.
        what: &'static str,
    },
    /// A wait for a semaphore that nothing can signal.
    #[error("no signal of the semaphore is enqueued, so the wait would never end; enqueue the signal first")]
    NotSignalled,
    /// A kernel was launched with arguments or a range that it does not accept.
    #[error("kernel `{kernel}`: {reason}")]
    Launch {
        /// The kernel's name.
        kernel: String,
        /// What does not fit.
        reason: String,
    },
    /// The program has no such kernel.
    #[error("the program has no kernel `{name}`; its kernels: {}", if have.is_empty() { "none" } else { have })]
    NoKernel {
        /// The requested name.
        name: String,
        /// The kernels of the program, separated by commas.
        have: String,
    },
    /// The device does not support the request; no substitute was used.
    #[error("{what} is not possible on `{device}`: {reason}")]
    NotSupported {
        /// What was requested.
        what: String,
        /// The device's name.
        device: String,
        /// Why it is not possible.
        reason: String,
    },
    /// A text for OpenCL holds a nul character.
    #[error("{what} contains a NUL character; remove it")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// A program's file cannot be read.
    #[error("cannot read the program in `{}`: {reason}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Earlier releases failed in a `Drop`; the errors were kept until now, oldest first.
    #[error("an earlier release on this queue failed: {}", all(.0))]
    Deferred(Vec<Error>),
}

impl Error {
    /// The OpenCL error code, if this error carries one; the first if there are several.
    #[must_use]
    pub fn code(&self) -> Option<cl_int> {
        match self {
            Self::Call { code, .. } | Self::Command { code, .. } => Some(*code),
            Self::Build(failure) => Some(failure.code),
            Self::Deferred(errors) => errors.iter().find_map(Self::code),
            _ => None,
        }
    }
}

fn all(errors: &[Error]) -> String {
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    texts.join("; and ")
}

/// Turns a code into a result; `call` is only evaluated on failure. Once the process ends, success may mean nothing.
pub(crate) fn check(code: cl_int, call: impl FnOnce() -> String) -> Result<()> {
    still_running()?;
    check_taken(code, call)
}

/// That the process is not ending. After a call: what the driver answered is true.
pub(crate) fn still_running() -> Result<()> {
    match ending::has_begun() {
        true => Err(Error::ProcessEnds),
        false => Ok(()),
    }
}

/// As [`check`], for a call that gives the driver something to keep, such as memory that a command will use. Success
/// says that the driver has it and nothing about results, so it stays success when the process ends.
pub(crate) fn check_taken(code: cl_int, call: impl FnOnce() -> String) -> Result<()> {
    if code == opencl_sys::CL_SUCCESS {
        Ok(())
    } else {
        Err(Error::Call { call: call(), code })
    }
}

/// The bytes of `len` elements of `T`, checked against overflow and zero.
pub(crate) fn bytes_of<T>(what: &'static str, len: usize) -> Result<usize> {
    let size = size_of::<T>();
    if len == 0 || size == 0 {
        return Err(Error::Zero { what });
    }
    len.checked_mul(size)
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or(Error::TooLarge {
            what,
            got: format!("{len} elements of {size} bytes"),
            limit: isize::MAX as u64,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_call_code_and_remedy() {
        let error = Error::Call {
            call: "clSVMAlloc(8589934592 bytes)".to_owned(),
            code: -4,
        };
        let text = error.to_string();
        for part in [
            "clSVMAlloc(8589934592 bytes)",
            "CL_MEM_OBJECT_ALLOCATION_FAILURE",
            "(-4)",
            "free memory",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains('\n'));
    }

    #[test]
    fn sizes_that_overflow_or_are_zero_are_errors() {
        assert!(matches!(bytes_of::<f32>("x", 0), Err(Error::Zero { .. })));
        assert!(matches!(bytes_of::<f32>("x", usize::MAX), Err(Error::TooLarge { .. })));
        assert_eq!(bytes_of::<f32>("x", 3).unwrap(), 12);
    }
}
