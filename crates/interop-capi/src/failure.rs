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
        let mut text = error.to_string();
        if let Error::Cl(clmgr::Error::Build(failure)) = &error {
            text = format!("{text}\n{}", failure.log);
        }
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

impl From<clmgr::Error> for Failure {
    fn from(error: clmgr::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<clmgr_fft::Error> for Failure {
    fn from(error: clmgr_fft::Error) -> Self {
        match error {
            clmgr_fft::Error::Cl(error) => error.into(),
            error => Self::new(HIPCL_ERROR_NOT_SUPPORTED, error.to_string()),
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
        Self {
            status: HIPCL_ERROR_SYSTEM,
            code: error.raw_os_error().unwrap_or(0),
            text: error.to_string(),
        }
    }
}

fn status(error: &Error) -> hipcl_status {
    match error {
        Error::Cl(error) => of_opencl(error),
        Error::Hip(error) => of_hip(error),
        Error::Blas(error) => of_blas(error),
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
        | Error::OtherDevice { .. } => HIPCL_ERROR_ARGUMENT,
        Error::ReadOnly => HIPCL_ERROR_READ_ONLY,
        Error::Capturing { .. } | Error::PartOnOtherSide { .. } => HIPCL_ERROR_BUSY,
        Error::NoPair { .. } => HIPCL_ERROR_NO_DEVICE,
        Error::HandoffTimeout { .. } | Error::HandoffFailed { .. } | Error::AnotherView { .. } | Error::Ungated => {
            HIPCL_ERROR_HANDOFF
        }
        Error::NoStreamProgram { .. } | Error::NotOnStream { .. } | Error::NoLibrary { .. } | Error::NoGrade { .. } => {
            HIPCL_ERROR_NOT_SUPPORTED
        }
        Error::Peer(PeerError::NotPossible { .. }) => HIPCL_ERROR_NOT_SUPPORTED,
        error if error.is_impossible() => HIPCL_ERROR_NOT_SUPPORTED,
        _ => HIPCL_ERROR_FAILED,
    }
}

/// `CL_MEM_OBJECT_ALLOCATION_FAILURE`, `CL_OUT_OF_RESOURCES`, `CL_OUT_OF_HOST_MEMORY`.
const CL_MEMORY: [i32; 3] = [-4, -5, -6];

fn of_opencl(error: &clmgr::Error) -> hipcl_status {
    use clmgr::Error;
    match error {
        Error::NoRuntime { .. } => HIPCL_ERROR_NO_DEVICE,
        Error::Call { code, .. } if CL_MEMORY.contains(code) => HIPCL_ERROR_OUT_OF_MEMORY,
        Error::Call { .. } | Error::Command { .. } => HIPCL_ERROR_OPENCL,
        Error::Build(_) => HIPCL_ERROR_BUILD,
        Error::MissingFunction { .. } | Error::NotSupported { .. } => HIPCL_ERROR_NOT_SUPPORTED,
        Error::Access { .. } => HIPCL_ERROR_READ_ONLY,
        Error::File { .. } => HIPCL_ERROR_SYSTEM,
        Error::Deferred(_) | Error::NotSignalled => HIPCL_ERROR_FAILED,
        // What is left is refused for what it was called with.
        _ => HIPCL_ERROR_ARGUMENT,
    }
}

/// `hipErrorOutOfMemory`.
const HIP_MEMORY: i64 = 2;

fn of_hip(error: &hip::Error) -> hipcl_status {
    use hip::Error;
    match error {
        Error::Call { code: HIP_MEMORY, .. } => HIPCL_ERROR_OUT_OF_MEMORY,
        Error::Call { .. } => HIPCL_ERROR_HIP,
        Error::Compile { .. } => HIPCL_ERROR_BUILD,
        Error::MissingSymbol { .. } | Error::NotSupported { .. } | Error::NoCompiler { .. } => {
            HIPCL_ERROR_NOT_SUPPORTED
        }
        Error::Library(_) | Error::NoSuchDevice { .. } => HIPCL_ERROR_NO_DEVICE,
        Error::WrongStream { .. }
        | Error::WrongDevice { .. }
        | Error::LengthMismatch { .. }
        | Error::Cast { .. }
        | Error::OutOfRange { .. } => HIPCL_ERROR_ARGUMENT,
        _ => HIPCL_ERROR_FAILED,
    }
}

fn of_blas(error: &rocblas::Error) -> hipcl_status {
    use rocblas::Error;
    match error {
        Error::Hip(error) => of_hip(error),
        Error::Status { .. } => HIPCL_ERROR_BLAS,
        Error::MissingSymbol { .. } | Error::NoSolver { .. } | Error::No64Bit { .. } | Error::Unsupported { .. } => {
            HIPCL_ERROR_NOT_SUPPORTED
        }
        Error::NotPositiveDefinite { .. } | Error::Singular { .. } => HIPCL_ERROR_NUMERIC,
        Error::InBatch { cause, .. } => of_blas(cause),
        Error::LeadingDimension { .. }
        | Error::Increment
        | Error::Operand { .. }
        | Error::OperandsOverlap { .. }
        | Error::Alignment { .. }
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
