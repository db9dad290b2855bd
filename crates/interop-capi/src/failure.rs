//! Why a call failed: errors of the layers below as a status, a driver's code and a text.

use interop::{Code, Error, PeerError};

use crate::status::*;

/// What a failed call returns and leaves for `hipcl_last_error`.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: hipcl_status,
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: hipcl_status, text: impl Into<String>) -> Self {
        Self {
            status,
            code: 0,
            text: text.into(),
        }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(HIPCL_ERROR_ARGUMENT, text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = match build_log(&error) {
            Some(log) => format!("{error}\n{log}"),
            None => error.to_string(),
        };
        Self {
            status: status(&error),
            code: match error.code() {
                Some(Code::Cl(code)) => code,
                Some(Code::Hip(code)) => code.0.cast_signed(),
                Some(Code::Blas(code)) => code.0.cast_signed(),
                _ => 0,
            },
            text,
        }
    }
}

/// All that the compiler said about a program that does not build.
fn build_log(error: &Error) -> Option<&str> {
    match error {
        Error::Cl(clmgr::Error::Build(failure)) => Some(&failure.log),
        Error::Hip(hip::Error::Compile { log, .. })
        | Error::Blas(rocblas::Error::Hip(hip::Error::Compile { log, .. })) => Some(log),
        _ => None,
    }
}

impl From<clmgr::Error> for Failure {
    fn from(error: clmgr::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<clmgr_fft::Error> for Failure {
    fn from(error: clmgr_fft::Error) -> Self {
        match error {
            clmgr_fft::Error::Cl(error) => error.into(),
            error => Self::new(HIPCL_ERROR_ARGUMENT, error.to_string()),
        }
    }
}

impl From<hip::Error> for Failure {
    fn from(error: hip::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<rocblas::Error> for Failure {
    fn from(error: rocblas::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<platform::Error> for Failure {
    fn from(error: platform::Error) -> Self {
        let status = match error {
            platform::Error::Unknown { .. } => HIPCL_ERROR_ARGUMENT,
            platform::Error::NotBuilt { .. } => HIPCL_ERROR_NOT_SUPPORTED,
            _ => HIPCL_ERROR_NO_DEVICE,
        };
        Self::new(status, error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::from_io(&error)
    }
}

impl Failure {
    pub(crate) fn from_io(error: &std::io::Error) -> Self {
        Self {
            status: match error.kind() {
                std::io::ErrorKind::OutOfMemory => HIPCL_ERROR_OUT_OF_MEMORY,
                _ => HIPCL_ERROR_SYSTEM,
            },
            code: error.raw_os_error().unwrap_or(0),
            text: error.to_string(),
        }
    }
}

/// One status for each remedy: what a program can do about an error, not where it came from.
fn status(error: &Error) -> hipcl_status {
    match error {
        Error::Cl(error) => of_opencl(error),
        Error::Hip(error) => of_hip(error),
        Error::Blas(error) => of_blas(error),
        // Call it with something else.
        Error::OutOfRange { .. }
        | Error::Pattern { .. }
        | Error::PartsOverlap { .. }
        | Error::PartGrid { .. }
        | Error::SubBufferStart { .. }
        | Error::Alignment { .. }
        | Error::Empty
        | Error::TooLarge { .. }
        | Error::SameBytes { .. }
        | Error::LengthMismatch { .. }
        | Error::OtherOwner { .. }
        | Error::SeveralDevices { .. }
        | Error::ForeignDevice { .. }
        | Error::UnknownAddress { .. }
        | Error::OutsideAllocation { .. }
        | Error::NotOnDevice { .. }
        | Error::OtherDevice { .. }
        | Error::NoSlots => HIPCL_ERROR_ARGUMENT,
        Error::ReadOnly => HIPCL_ERROR_READ_ONLY,
        // Let go of what keeps it.
        Error::Capturing { .. } | Error::PartOnOtherSide { .. } => HIPCL_ERROR_BUSY,
        Error::TooManyBridges { .. } => HIPCL_ERROR_LIMIT,
        Error::NoPair { .. } => HIPCL_ERROR_NO_DEVICE,
        // Do not trust the data.
        Error::HandoffTimeout { .. } | Error::HandoffFailed { .. } | Error::AnotherView { .. } | Error::Ungated => {
            HIPCL_ERROR_HANDOFF
        }
        // Take another way. The platform's refusal of memory is one of its routes'.
        Error::NoStreamProgram { .. }
        | Error::NotOnStream { .. }
        | Error::NoLibrary { .. }
        | Error::NoGrade { .. }
        | Error::PatternMismatch { .. }
        | Error::HiddenCopy { .. }
        | Error::AddressesDiffer { .. }
        | Error::Foreign { .. } => HIPCL_ERROR_NOT_SUPPORTED,
        Error::Peer(PeerError::NotPossible { .. }) => HIPCL_ERROR_NOT_SUPPORTED,
        error if error.is_impossible() => HIPCL_ERROR_NOT_SUPPORTED,
        // Its remedy is that of what made the route fail.
        Error::UnderReader { cause, .. } => status(cause),
        _ => HIPCL_ERROR_FAILED,
    }
}

/// `CL_DEVICE_NOT_FOUND`, `CL_DEVICE_NOT_AVAILABLE`, `CL_PLATFORM_NOT_FOUND_KHR`.
const CL_NO_DEVICE: [i32; 3] = [-1, -2, -1001];
/// `CL_MEM_OBJECT_ALLOCATION_FAILURE`, `CL_OUT_OF_HOST_MEMORY`. `CL_OUT_OF_RESOURCES` is none: kernels that are too large,
/// and kernels that crashed, end with it.
const CL_MEMORY: [i32; 2] = [-4, -6];

fn of_opencl(error: &clmgr::Error) -> hipcl_status {
    use clmgr::Error;
    match error {
        Error::NoRuntime { .. } => HIPCL_ERROR_NO_DEVICE,
        Error::ProcessEnds => HIPCL_ERROR_OPENCL,
        Error::Call { code, .. } | Error::Command { code, .. } => match code {
            code if CL_NO_DEVICE.contains(code) => HIPCL_ERROR_NO_DEVICE,
            code if CL_MEMORY.contains(code) => HIPCL_ERROR_OUT_OF_MEMORY,
            _ => HIPCL_ERROR_OPENCL,
        },
        Error::Build(_) => HIPCL_ERROR_BUILD,
        Error::MissingFunction { .. } | Error::NotSupported { .. } => HIPCL_ERROR_NOT_SUPPORTED,
        Error::Access { .. } => HIPCL_ERROR_READ_ONLY,
        Error::File { .. } => HIPCL_ERROR_SYSTEM,
        // Several at once; each is in the text.
        Error::Deferred(errors) => errors.first().map_or(HIPCL_ERROR_FAILED, of_opencl),
        // What is left is refused for what it was called with.
        _ => HIPCL_ERROR_ARGUMENT,
    }
}

fn of_hip(error: &hip::Error) -> hipcl_status {
    use hip::Error;
    match error {
        // By their names: other libraries of HIP count their codes anew.
        Error::Call { name, .. } => match *name {
            "hipErrorOutOfMemory" | "HIPRTC_ERROR_OUT_OF_MEMORY" => HIPCL_ERROR_OUT_OF_MEMORY,
            "hipErrorNoDevice" | "hipErrorInsufficientDriver" | "hipErrorNotInitialized" => HIPCL_ERROR_NO_DEVICE,
            "hipErrorNotSupported" => HIPCL_ERROR_NOT_SUPPORTED,
            _ => HIPCL_ERROR_HIP,
        },
        Error::Compile { .. } => HIPCL_ERROR_BUILD,
        Error::MissingSymbol { .. }
        | Error::NotSupported { .. }
        | Error::NoCompiler { .. }
        | Error::ForeignMemory { .. } => HIPCL_ERROR_NOT_SUPPORTED,
        Error::Library(_) | Error::NoSuchDevice { .. } => HIPCL_ERROR_NO_DEVICE,
        Error::WrongStream { .. }
        | Error::WrongDevice { .. }
        | Error::LengthMismatch { .. }
        | Error::Cast { .. }
        | Error::OutOfRange { .. }
        | Error::Launch { .. }
        | Error::TooLarge { .. }
        | Error::Alignment { .. }
        | Error::Rect { .. }
        | Error::NulByte { .. }
        | Error::CompilerOption { .. } => HIPCL_ERROR_ARGUMENT,
        // What the owner of memory said, on its way through a layer below it.
        Error::Memory(cause) => cause.downcast_ref().map_or(HIPCL_ERROR_FAILED, status),
        _ => HIPCL_ERROR_FAILED,
    }
}

fn of_blas(error: &rocblas::Error) -> hipcl_status {
    use rocblas::Error;
    match error {
        Error::Hip(error) => of_hip(error),
        Error::Status { name, .. } => match *name {
            "rocblas_status_memory_error" => HIPCL_ERROR_OUT_OF_MEMORY,
            "rocblas_status_not_implemented" => HIPCL_ERROR_NOT_SUPPORTED,
            _ => HIPCL_ERROR_BLAS,
        },
        Error::MissingSymbol { .. } | Error::NoSolver { .. } | Error::No64Bit { .. } | Error::Unsupported { .. } => {
            HIPCL_ERROR_NOT_SUPPORTED
        }
        Error::NotPositiveDefinite { .. } | Error::Singular { .. } => HIPCL_ERROR_NUMERIC,
        Error::InBatch { cause, .. } | Error::Operand { cause, .. } => of_blas(cause),
        Error::LeadingDimension { .. }
        | Error::Increment
        | Error::OperandsOverlap { .. }
        | Error::Alignment { .. }
        | Error::WorkspaceAlignment { .. }
        | Error::ArrayLayout { .. }
        | Error::TooShort { .. }
        | Error::TooLarge { .. }
        | Error::Overlap { .. }
        | Error::OverlapAt { .. }
        | Error::Shape { .. }
        | Error::WrongStream { .. }
        | Error::OtherRuntime { .. } => HIPCL_ERROR_ARGUMENT,
        _ => HIPCL_ERROR_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drivers_code_and_text_reach_the_caller() {
        let failure = Failure::from(clmgr::Error::Call {
            call: "clSVMAlloc(8 bytes)".into(),
            code: -30,
        });
        assert_eq!((failure.status, failure.code), (HIPCL_ERROR_OPENCL, -30));
        assert!(failure.text.contains("clSVMAlloc(8 bytes)"));
        let failure = Failure::from(hip::Error::Call {
            call: "hipMalloc(8)".into(),
            name: "hipErrorOutOfMemory",
            code: 2,
            remedy: String::new(),
        });
        assert_eq!((failure.status, failure.code), (HIPCL_ERROR_OUT_OF_MEMORY, 2));
        let status = rocblas::Error::Status {
            call: "rocblas_cgemm".into(),
            name: "rocblas_status_internal_error",
            code: 6,
            remedy: "",
        };
        let failure = Failure::from(status);
        assert_eq!((failure.status, failure.code), (HIPCL_ERROR_BLAS, 6));
    }

    fn of_call(code: i32) -> hipcl_status {
        let call = String::new();
        Failure::from(clmgr::Error::Call { call, code }).status
    }

    fn of_hip_call(name: &'static str, code: i64) -> hipcl_status {
        let (call, remedy) = Default::default();
        Failure::from(hip::Error::Call {
            call,
            name,
            code,
            remedy,
        })
        .status
    }

    #[test]
    fn a_kernel_that_crashed_is_no_lack_of_memory() {
        assert_eq!([-4, -6].map(of_call), [HIPCL_ERROR_OUT_OF_MEMORY; 2]);
        assert_eq!(of_call(-5), HIPCL_ERROR_OPENCL);
        assert_eq!(of_call(-1001), HIPCL_ERROR_NO_DEVICE);
        let crashed = clmgr::Error::Command {
            call: "clEnqueueNDRangeKernel",
            code: -5,
        };
        assert_eq!(Failure::from(crashed).status, HIPCL_ERROR_OPENCL);
    }

    #[test]
    fn the_codes_of_hips_other_libraries_are_not_taken_for_hips() {
        assert_eq!(of_hip_call("hipErrorOutOfMemory", 2), HIPCL_ERROR_OUT_OF_MEMORY);
        assert_eq!(of_hip_call("HIPRTC_ERROR_PROGRAM_CREATION_FAILURE", 2), HIPCL_ERROR_HIP);
        assert_eq!(of_hip_call("HIPRTC_ERROR_OUT_OF_MEMORY", 1), HIPCL_ERROR_OUT_OF_MEMORY);
        assert_eq!(of_hip_call("hipErrorNotSupported", 801), HIPCL_ERROR_NOT_SUPPORTED);
    }

    #[test]
    fn what_rocblas_has_no_memory_for_is_told_from_what_it_refuses() {
        let status = |name, code| {
            let (call, remedy) = Default::default();
            let error = rocblas::Error::Status {
                call,
                name,
                code,
                remedy,
            };
            Failure::from(error).status
        };
        assert_eq!(status("rocblas_status_memory_error", 5), HIPCL_ERROR_OUT_OF_MEMORY);
        assert_eq!(status("rocblas_status_invalid_size", 4), HIPCL_ERROR_BLAS);
    }

    #[test]
    fn what_cannot_be_launched_or_exceeds_the_address_space_is_the_callers() {
        let launch = hip::Error::Launch {
            function: "f".into(),
            reason: "2048 threads".into(),
        };
        assert_eq!(Failure::from(launch).status, HIPCL_ERROR_ARGUMENT);
        let large = hip::Error::TooLarge {
            elements: usize::MAX,
            element_bytes: 8,
        };
        assert_eq!(Failure::from(large).status, HIPCL_ERROR_ARGUMENT);
    }

    #[test]
    fn an_error_of_the_memory_keeps_its_status_through_the_layers_below() {
        let operand = || rocblas::Error::Operand {
            call: "gemm",
            argument: "a",
            cause: Box::new(rocblas::Error::Hip(Error::ReadOnly.into())),
        };
        assert_eq!(Failure::from(operand()).status, HIPCL_ERROR_READ_ONLY);
        let under = Error::UnderReader {
            during: "download",
            route: interop::Route::SvmCoarse,
            next: None,
            cause: Box::new(Error::Blas(operand())),
        };
        assert_eq!(Failure::from(under).status, HIPCL_ERROR_READ_ONLY);
    }

    #[test]
    fn a_full_table_of_counters_is_a_limit_and_a_refused_route_is_not_possible() {
        assert_eq!(
            Failure::from(Error::TooManyBridges { limit: 64 }).status,
            HIPCL_ERROR_LIMIT
        );
        let foreign = Error::Foreign {
            platform: platform::Platform::Host,
            reason: String::new(),
        };
        assert_eq!(Failure::from(foreign).status, HIPCL_ERROR_NOT_SUPPORTED);
    }

    #[test]
    fn the_whole_log_of_either_compiler_reaches_the_caller() {
        let error = hip::Error::Compile {
            program: "p".into(),
            arch: "gfx908".into(),
            first: "error: first".into(),
            log: "error: first\nerror: second".into(),
        };
        let failure = Failure::from(rocblas::Error::from(error));
        assert_eq!(failure.status, HIPCL_ERROR_BUILD);
        assert!(failure.text.ends_with("error: second"), "{}", failure.text);
    }

    #[test]
    fn a_failed_matrix_of_a_batch_is_a_numeric_failure() {
        let error = rocblas::Error::InBatch {
            matrix: 3,
            count: 5,
            cause: Box::new(rocblas::Error::NotPositiveDefinite { minor: 2 }),
        };
        assert_eq!(Failure::from(error).status, HIPCL_ERROR_NUMERIC);
    }
}
