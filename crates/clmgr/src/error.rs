//! The error type and the names of OpenCL's codes.

use std::fmt;

use opencl_sys::cl_int;

use crate::access::BufferAccess;
use crate::api::Api;
use crate::loader::Tried;

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. Each value displays as one line that names the call, its key arguments, the
/// code and, where one is known, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No library gave an OpenCL device.
    #[error(
        "no OpenCL device found; tried {}; run `cargo xtask setup` to install a CPU runtime into the target folder, \
         or set HIPCL_OPENCL to the path of an OpenCL library",
        list(tried)
    )]
    NoRuntime {
        /// Every library that was tried, with the reason why it gave nothing.
        tried: Vec<Tried>,
    },
    /// The library lacks a function.
    #[error(
        "`{symbol}` is missing in this OpenCL library; it appeared in OpenCL {since}: use a device of a newer version"
    )]
    MissingFunction {
        /// The function's name.
        symbol: &'static str,
        /// The OpenCL version that introduced it.
        since: &'static str,
    },
    /// A call failed.
    #[error("`{call}` failed: {} ({code}){}", code_name(*code), hint(*code))]
    Call {
        /// The function and its key arguments.
        call: String,
        /// OpenCL's code.
        code: cl_int,
    },
    /// An enqueued command ended with an error.
    #[error("the command enqueued by `{call}` ended with {} ({code}){}", code_name(*code), hint(*code))]
    Command {
        /// What enqueued the command.
        call: &'static str,
        /// The event's execution status, which is negative.
        code: cl_int,
    },
    /// A program does not build.
    #[error("{0}")]
    Build(Box<BuildFailure>),
    /// A size of zero, where memory or work is asked for.
    #[error("{what} must not be zero")]
    Zero {
        /// What was zero.
        what: &'static str,
    },
    /// A size does not fit into the address space or into what the device offers.
    #[error("{what} is {got}, more than the limit of {limit}")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// The size asked for.
        got: String,
        /// The limit.
        limit: u64,
    },
    /// Two lengths that must agree do not.
    #[error("{what}: {got} elements given for {expected}")]
    LengthMismatch {
        /// Where the lengths meet.
        what: &'static str,
        /// The length that is needed.
        expected: usize,
        /// The length that was given.
        got: usize,
    },
    /// A range lies outside a buffer.
    #[error("elements {offset}..{} are outside a buffer of {len} elements", offset.saturating_add(*count))]
    OutOfRange {
        /// The first element.
        offset: usize,
        /// The number of elements.
        count: usize,
        /// The buffer's length.
        len: usize,
    },
    /// A foreign object can't be taken.
    #[error("{what} can't be taken: {reason}")]
    Foreign {
        /// The object.
        what: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// A foreign buffer does not hold a whole number of elements.
    #[error(
        "a buffer of {bytes} bytes does not hold a whole number of elements of {element} bytes"
    )]
    Remainder {
        /// The buffer's size.
        bytes: usize,
        /// The element's size.
        element: usize,
    },
    /// A box or a part does not lie in its memory as OpenCL wants it.
    #[error("{what}: {reason}")]
    Region {
        /// Where the box or part is used.
        what: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// A buffer's flags forbid what was asked for.
    #[error("{what} is not allowed: the buffer is {access}; create it with flags that allow it")]
    Access {
        /// What was asked for.
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
    /// A wait for a semaphore that nothing can signal any more.
    #[error(
        "nothing has signalled the semaphore, so that the wait would never end; enqueue its signal first"
    )]
    NotSignalled,
    /// A kernel was launched with arguments or a range that it does not take.
    #[error("kernel `{kernel}`: {reason}")]
    Launch {
        /// The kernel's name.
        kernel: String,
        /// What does not fit.
        reason: String,
    },
    /// The program has no such kernel.
    #[error("the program has no kernel `{name}`; it has: {}", if have.is_empty() { "none" } else { have })]
    NoKernel {
        /// The name asked for.
        name: String,
        /// The kernels of the program, separated by commas.
        have: String,
    },
    /// The device can't do what was asked for; nothing else was done instead.
    #[error("{what} is not possible on `{device}`: {reason}")]
    NotSupported {
        /// What was asked for.
        what: String,
        /// The device's name.
        device: String,
        /// Why it is not possible.
        reason: String,
    },
    /// A text for OpenCL holds a nul character.
    #[error("{what} holds a nul character; remove it")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// An FFT length has a prime factor other than 2, 3 and 5.
    #[error(
        "no FFT of length {len}: it has the factor {factor}; only lengths of the form 2^a*3^b*5^c are supported, the next is {next}"
    )]
    FftFactor {
        /// The length.
        len: usize,
        /// The smallest prime factor that is not supported.
        factor: usize,
        /// The smallest supported length above.
        next: usize,
    },
    /// An asynchronous release failed earlier; the error was kept until now.
    #[error("an earlier release on this queue failed: {0}")]
    Deferred(Box<Error>),
}

impl Error {
    pub(crate) fn missing(symbol: &'static str) -> Self {
        Self::MissingFunction {
            symbol,
            since: Api::since(symbol).unwrap_or("an unknown version"),
        }
    }

    /// OpenCL's code, if this error carries one.
    #[must_use]
    pub fn code(&self) -> Option<cl_int> {
        match self {
            Self::Call { code, .. } | Self::Command { code, .. } => Some(*code),
            Self::Build(failure) => Some(failure.code),
            Self::Deferred(inner) => inner.code(),
            _ => None,
        }
    }
}

/// A program that does not build.
#[derive(Debug)]
pub struct BuildFailure {
    /// OpenCL's code.
    pub code: cl_int,
    /// The options of the build.
    pub options: String,
    /// The device's name.
    pub device: String,
    /// The compiler's whole log.
    pub log: String,
    /// The line number and text of the source line that the log's first error names.
    pub source_line: Option<(usize, String)>,
}

impl fmt::Display for BuildFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`clBuildProgram(options \"{}\")` failed on `{}`: {} ({})",
            self.options,
            self.device,
            code_name(self.code),
            self.code
        )?;
        let first = self
            .log
            .lines()
            .find(|line| line.contains("error"))
            .or_else(|| self.log.lines().find(|line| !line.trim().is_empty()));
        if let Some(message) = first {
            write!(f, "; {}", message.trim())?;
        }
        if let Some((number, text)) = &self.source_line {
            write!(f, "; line {number}: `{}`", text.trim())?;
        }
        Ok(())
    }
}

impl From<BuildFailure> for Error {
    fn from(failure: BuildFailure) -> Self {
        Self::Build(Box::new(failure))
    }
}

/// The source line that the first error of a compiler's log points at.
///
/// The compilers agree on `:LINE:COLUMN:` and differ in what stands around it.
pub(crate) fn failing_line(log: &str, source: &str) -> Option<(usize, String)> {
    log.lines()
        .filter(|message| message.contains("error"))
        .find_map(|message| {
            let mut numbers = message
                .split(':')
                .map(|field| field.parse::<usize>().ok())
                .skip_while(Option::is_none)
                .map_while(|number| number);
            // Intel puts the number of the source text before the line.
            let (first, second, third) = (numbers.next()?, numbers.next()?, numbers.next());
            let line = if third.is_some() { second } else { first };
            let text = source.lines().nth(line.checked_sub(1)?)?;
            Some((line, text.to_owned()))
        })
}

fn list(tried: &[Tried]) -> String {
    if tried.is_empty() {
        return "nothing".to_owned();
    }
    tried
        .iter()
        .map(|attempt| format!("{}: {}", attempt.path.display(), attempt.reason))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Turns a code into a result; `call` is only evaluated on failure.
pub(crate) fn check(code: cl_int, call: impl FnOnce() -> String) -> Result<()> {
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

fn hint(code: cl_int) -> &'static str {
    match code {
        opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE
        | opencl_sys::CL_OUT_OF_RESOURCES
        | opencl_sys::CL_OUT_OF_HOST_MEMORY => "; free memory or use smaller pieces",
        opencl_sys::CL_INVALID_WORK_GROUP_SIZE => "; use a smaller work-group, or none",
        opencl_sys::CL_INVALID_BUFFER_SIZE => "; see the device's largest allocation",
        opencl_sys::CL_PROFILING_INFO_NOT_AVAILABLE => {
            "; use a profiling queue and wait for the event"
        }
        _ => "",
    }
}

/// The name of an OpenCL code, or `unknown code`.
#[must_use]
pub(crate) fn code_name(code: cl_int) -> &'static str {
    macro_rules! names {
        ($($name:ident)*) => {
            match code {
                $(opencl_sys::$name => stringify!($name),)*
                -1001 => "CL_PLATFORM_NOT_FOUND_KHR",
                _ => "unknown code",
            }
        };
    }
    names! {
        CL_SUCCESS CL_DEVICE_NOT_FOUND CL_DEVICE_NOT_AVAILABLE CL_COMPILER_NOT_AVAILABLE
        CL_MEM_OBJECT_ALLOCATION_FAILURE CL_OUT_OF_RESOURCES CL_OUT_OF_HOST_MEMORY
        CL_PROFILING_INFO_NOT_AVAILABLE CL_MEM_COPY_OVERLAP CL_IMAGE_FORMAT_MISMATCH
        CL_IMAGE_FORMAT_NOT_SUPPORTED CL_BUILD_PROGRAM_FAILURE CL_MAP_FAILURE
        CL_MISALIGNED_SUB_BUFFER_OFFSET CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
        CL_COMPILE_PROGRAM_FAILURE CL_LINKER_NOT_AVAILABLE CL_LINK_PROGRAM_FAILURE
        CL_DEVICE_PARTITION_FAILED CL_KERNEL_ARG_INFO_NOT_AVAILABLE CL_INVALID_VALUE
        CL_INVALID_DEVICE_TYPE CL_INVALID_PLATFORM CL_INVALID_DEVICE CL_INVALID_CONTEXT
        CL_INVALID_QUEUE_PROPERTIES CL_INVALID_COMMAND_QUEUE CL_INVALID_HOST_PTR
        CL_INVALID_MEM_OBJECT CL_INVALID_IMAGE_FORMAT_DESCRIPTOR CL_INVALID_IMAGE_SIZE
        CL_INVALID_SAMPLER CL_INVALID_BINARY CL_INVALID_BUILD_OPTIONS CL_INVALID_PROGRAM
        CL_INVALID_PROGRAM_EXECUTABLE CL_INVALID_KERNEL_NAME CL_INVALID_KERNEL_DEFINITION
        CL_INVALID_KERNEL CL_INVALID_ARG_INDEX CL_INVALID_ARG_VALUE CL_INVALID_ARG_SIZE
        CL_INVALID_KERNEL_ARGS CL_INVALID_WORK_DIMENSION CL_INVALID_WORK_GROUP_SIZE
        CL_INVALID_WORK_ITEM_SIZE CL_INVALID_GLOBAL_OFFSET CL_INVALID_EVENT_WAIT_LIST
        CL_INVALID_EVENT CL_INVALID_OPERATION CL_INVALID_GL_OBJECT CL_INVALID_BUFFER_SIZE
        CL_INVALID_MIP_LEVEL CL_INVALID_GLOBAL_WORK_SIZE CL_INVALID_PROPERTY
        CL_INVALID_IMAGE_DESCRIPTOR CL_INVALID_COMPILER_OPTIONS CL_INVALID_LINKER_OPTIONS
        CL_INVALID_DEVICE_PARTITION_COUNT CL_INVALID_PIPE_SIZE CL_INVALID_DEVICE_QUEUE
        CL_INVALID_SPEC_ID CL_MAX_SIZE_RESTRICTION_EXCEEDED
    }
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
    fn the_failing_source_line_is_found_in_every_compilers_log() {
        let source = "kernel void f() {\n  int x = y;\n}\n";
        for log in [
            "1:2:11: error: use of undeclared identifier 'y'",
            "<kernel>:2:11: error: use of undeclared identifier 'y'",
            "/tmp/comgr-1/CompileSource:2:11: error: use of undeclared identifier 'y'",
            "Compilation started\n1:2:11: error: use",
            "warning: 1:1:1: no\nerror: /tmp/cache/tempfile_a.cl:2:11: use of undeclared identifier 'y'",
        ] {
            assert_eq!(
                failing_line(log, source),
                Some((2, "  int x = y;".to_owned())),
                "{log}"
            );
        }
        assert_eq!(failing_line("error: no line here", source), None);
        assert_eq!(failing_line("1:0:1: error: line zero", source), None);
    }

    #[test]
    fn sizes_that_overflow_or_are_zero_are_errors() {
        assert!(matches!(bytes_of::<f32>("x", 0), Err(Error::Zero { .. })));
        assert!(matches!(
            bytes_of::<f32>("x", usize::MAX),
            Err(Error::TooLarge { .. })
        ));
        assert_eq!(bytes_of::<f32>("x", 3).unwrap(), 12);
    }
}
