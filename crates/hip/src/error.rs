use std::fmt;

use hip_sys::hipError_t;

use crate::Rect;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. Each is one line: the call, its key arguments, the code's name and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The loaded library does not have the function.
    #[error(
        "`{symbol}` is missing from the loaded HIP library; install ROCm {} or later",
        introduced(symbol)
    )]
    MissingSymbol {
        /// The C name.
        symbol: &'static str,
    },

    /// No HIP library could be opened.
    #[error(transparent)]
    Library(#[from] rocm_loader::LoadError),

    /// A HIP or HIPRTC function returned an error code.
    #[error("{}", CallText { call, name, code: *code, remedy })]
    Call {
        /// The call with its key arguments.
        call: String,
        /// The code's name.
        name: &'static str,
        /// The code.
        code: i64,
        /// What to do, empty if nothing is known.
        remedy: String,
    },

    /// The runtime has no HIPRTC table.
    #[error("cannot compile `{program}`: {reason}")]
    NoCompiler {
        /// The program's name.
        program: String,
        /// Why there is none, and what to do.
        reason: String,
    },

    /// HIPRTC refused the source.
    #[error("compiling `{program}` for {arch} failed: {first}")]
    Compile {
        /// The program's name.
        program: String,
        /// The device architecture it was compiled for.
        arch: String,
        /// The first line of the log that names an error.
        first: String,
        /// The compiler's whole log.
        log: String,
    },

    /// A compiler option that this crate sets itself, or that loads code into the compiler, hence into the process.
    #[error("option `{option}` is refused: {reason}")]
    CompilerOption {
        /// The option.
        option: String,
        /// Why, and what to do.
        reason: &'static str,
    },

    /// There is no such device.
    #[error(
        "HIP device {ordinal} does not exist: {count} visible; choose a smaller ordinal, or check HIP_VISIBLE_DEVICES"
    )]
    NoSuchDevice {
        /// The requested ordinal.
        ordinal: usize,
        /// How many devices are visible.
        count: usize,
    },

    /// Something was prepared for another stream.
    #[error(
        "{call}: {argument} was taken for another stream; take it with `on` or `on_mut` of the stream that uses it"
    )]
    WrongStream {
        /// The call that refused it.
        call: &'static str,
        /// The argument that does not fit.
        argument: String,
    },

    /// Two objects belong to different devices, or to different HIP libraries.
    #[error("{call}: {argument} belongs to {found}, but {expected} is needed")]
    WrongDevice {
        /// The call that refused it.
        call: &'static str,
        /// The argument that does not fit.
        argument: &'static str,
        /// The device of the argument.
        found: String,
        /// The device it must belong to.
        expected: String,
    },

    /// Source and destination have different lengths.
    #[error("{call}: source has {source_len} elements and destination {destination_len}; they must be equal")]
    LengthMismatch {
        /// The call that refused them.
        call: &'static str,
        /// Elements in the source.
        source_len: usize,
        /// Elements in the destination.
        destination_len: usize,
    },

    /// Memory that cannot be viewed as elements of another type.
    #[error(
        "{call}: {bytes} bytes are not a whole number of {element_bytes}-byte elements aligned to {alignment} bytes"
    )]
    Cast {
        /// The call that refused it.
        call: &'static str,
        /// Bytes of the slice.
        bytes: usize,
        /// Bytes of one element of the other type.
        element_bytes: usize,
        /// The alignment of the other type.
        alignment: usize,
    },

    /// An allocator returned memory that is misaligned for the elements. The memory was
    /// freed.
    #[error(
        "`{call}` returned memory at {address:#x}, which is not a multiple of {alignment}; use a type with a smaller alignment"
    )]
    Alignment {
        /// The call that returned it.
        call: &'static str,
        /// Its start address.
        address: usize,
        /// The alignment of the elements.
        alignment: usize,
    },

    /// A rectangle exceeds the source or the destination, or its rows overlap.
    #[error(
        "{call}: {rect:?} exceeds the source of {source_len} or the destination of {destination_len} elements; each pitch must be at least the width, and (height - 1) x pitch + width at most the length"
    )]
    Rect {
        /// The call that refused it.
        call: &'static str,
        /// The rectangle.
        rect: Rect,
        /// Elements in the source.
        source_len: usize,
        /// Elements in the destination.
        destination_len: usize,
    },

    /// A range exceeds the slice.
    #[error("range {start}..{end} is outside a slice of {len} elements")]
    OutOfRange {
        /// First element.
        start: usize,
        /// One after the last element.
        end: usize,
        /// Length of the slice.
        len: usize,
    },

    /// The size in bytes does not fit an address.
    #[error("{elements} elements of {element_bytes} bytes exceed the address space")]
    TooLarge {
        /// Number of elements.
        elements: usize,
        /// Bytes of one element.
        element_bytes: usize,
    },

    /// A HIP copy or fill of memory that HIP did not allocate or import.
    #[error(
        "{call}: the memory belongs to another runtime, and HIP would access it from the CPU; use a kernel, or import the memory"
    )]
    ForeignMemory {
        /// The call that refused it.
        call: &'static str,
    },

    /// The owner of memory refused access: an error of the layer that it belongs to, see
    /// [`DeviceMemory`](crate::DeviceMemory).
    #[error(transparent)]
    Memory(Box<dyn std::error::Error + Send + Sync>),

    /// A launch that no device of this kind can run.
    #[error("cannot launch `{function}`: {reason}")]
    Launch {
        /// The kernel's name.
        function: String,
        /// Which limit is exceeded and by what.
        reason: String,
    },

    /// A text passed to a C function holds a NUL byte.
    #[error("{what} contains a NUL byte at position {position}; remove it")]
    NulByte {
        /// Which text.
        what: &'static str,
        /// Position of the byte.
        position: usize,
    },

    /// A function that a stream called on the host panicked.
    #[error("a host function of a stream panicked: {message}")]
    HostFunction {
        /// The panic's message.
        message: String,
    },

    /// The platform has no such thing at all.
    #[error("{what} is not supported: {reason}")]
    NotSupported {
        /// What was requested.
        what: &'static str,
        /// Why there is none, and what to use instead.
        reason: &'static str,
    },

    /// The library returned something unintelligible.
    #[error("`{call}` returned `{answer}`, which is not {expected}")]
    Answer {
        /// The call.
        call: &'static str,
        /// What it returned.
        answer: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl Error {
    /// The code that HIP returned, if the error is a failed HIP call.
    #[must_use]
    pub fn code(&self) -> Option<hipError_t> {
        match self {
            // Other libraries of HIP count their codes anew; the name tells whose it is.
            Self::Call { code, name, .. } if name.starts_with("hip") => u32::try_from(*code).ok().map(hipError_t),
            _ => None,
        }
    }
}

/// The release that brought a function this crate uses: of those, ROCm 5.7, the oldest supported, lacks only one.
fn introduced(symbol: &str) -> &'static str {
    match symbol {
        "hipGetDevicePropertiesR0600" => "6.0",
        _ => "5.7",
    }
}

struct CallText<'a> {
    call: &'a str,
    name: &'a str,
    code: i64,
    remedy: &'a str,
}

impl fmt::Display for CallText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` failed: {} ({})", self.call, self.name, self.code)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

/// What a user can do about a code, where something useful is known.
pub(crate) fn remedy(code: hipError_t) -> &'static str {
    match code {
        hipError_t::hipErrorNoDevice => {
            "no GPU is visible: check the amdgpu driver, the groups `render` and `video`, and HIP_VISIBLE_DEVICES"
        }
        hipError_t::hipErrorInvalidDevice => "check HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES",
        hipError_t::hipErrorNotInitialized => "the HIP runtime did not start: run `hipcl doctor`",
        hipError_t::hipErrorInsufficientDriver => "update the amdgpu driver to the installed ROCm release",
        hipError_t::hipErrorNoBinaryForGpu => "compile the code for this device's architecture (see `Device::arch`)",
        hipError_t::hipErrorInvalidImage => "the bytes are not a code object for this device",
        hipError_t::hipErrorNotFound => "check the name; kernels need `extern \"C\" __global__`",
        hipError_t::hipErrorIllegalAddress => {
            "a kernel or copy touched memory outside its buffers; the device may stay unusable until the process ends"
        }
        hipError_t::hipErrorLaunchFailure => {
            "an earlier kernel failed; the device may stay unusable until the process ends"
        }
        hipError_t::hipErrorLaunchOutOfResources => "use smaller blocks, or less shared memory",
        hipError_t::hipErrorNotReady => "synchronise the stream or event first",
        hipError_t::hipErrorNotSupported => "the platform does not support this",
        hipError_t::hipErrorHostMemoryAlreadyRegistered => {
            "the range is registered already: drop the other registration first"
        }
        _ => "",
    }
}
