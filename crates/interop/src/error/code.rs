use hip_sys::hipError_t;
use rocblas_sys::rocblas_status;

use super::Error;

/// What a driver or library returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// OpenCL's error code, `CL_...`.
    Cl(i32),
    /// HIP's error, `hipError...`.
    Hip(hipError_t),
    /// The status of rocBLAS or rocSOLVER.
    Blas(rocblas_status),
}

impl Error {
    /// The code that a driver or library returned, if the error is a failed call or has one as its cause.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Cl(error) => error.code().map(Code::Cl),
            Self::Hip(error) | Self::Blas(rocblas::Error::Hip(error)) => error.code().map(Code::Hip),
            Self::Blas(error) => error.code().map(Code::Blas),
            Self::UnderReader { cause, .. } | Self::HandoffFailed { cause, .. } => cause.code(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Route;

    #[test]
    fn a_failed_call_keeps_its_code_through_the_layers() {
        let call = || hip::Error::Call {
            call: "hipMalloc(8)".into(),
            name: "hipErrorOutOfMemory",
            code: 2,
            remedy: String::new(),
        };
        let hip = Some(Code::Hip(hipError_t(2)));
        assert_eq!(Error::from(call()).code(), hip);
        assert_eq!(Error::from(rocblas::Error::from(call())).code(), hip);
        let under_reader = Error::UnderReader {
            during: "download",
            route: Route::SvmCoarse,
            next: None,
            cause: Box::new(call().into()),
        };
        assert_eq!(under_reader.code(), hip);
        let status = rocblas::Error::Status {
            call: "rocblas_cgemm".into(),
            name: "rocblas_status_memory_error",
            code: 5,
            remedy: "",
        };
        assert_eq!(Error::from(status).code(), Some(Code::Blas(rocblas_status(5))));
        assert_eq!(Error::NoSlots.code(), None);
    }

    #[test]
    fn an_error_comes_back_from_the_layers_below_as_it_was() {
        let timeout = || {
            Error::from(clmgr::Error::Call {
                call: "clFlush".into(),
                code: -5,
            })
        };
        let below = || rocblas::Error::from(hip::Error::from(timeout()));
        assert_eq!(below().to_string(), timeout().to_string());
        for back in [Error::from(below()), Error::from(hip::Error::from(timeout()))] {
            assert!(matches!(back, Error::Cl(_)), "{back:?}");
            assert_eq!(back.code(), Some(Code::Cl(-5)));
        }
        let other = hip::Error::Memory("of someone else".into());
        assert!(matches!(Error::from(other), Error::Hip(hip::Error::Memory(_))));
    }
}
