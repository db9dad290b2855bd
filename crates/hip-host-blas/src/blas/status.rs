//! Status codes: how a Rust outcome becomes one, and their names.

use std::ffi::c_char;
use std::fmt;

use hip_host::library;
use hip_sys::hipError_t;
use rocblas_sys::rocblas_status;

/// `Err` holds the status to return; a quick return is `Ok`.
pub(crate) type Outcome<T = ()> = Result<T, rocblas_status>;

/// Runs the body of the entry point `name`, which receives its name.
pub(crate) fn entry(name: &'static str, body: impl FnOnce(&'static str) -> Outcome) -> rocblas_status {
    library::entry(name, || body(name).map_err(Code)).0
}

/// A status as the model's frame sees it.
#[derive(Clone, Copy)]
struct Code(rocblas_status);

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl library::Code for Code {
    const SUCCESS: Self = Self(rocblas_status::rocblas_status_success);
    const FAILURE: Self = Self(rocblas_status::rocblas_status_internal_error);

    fn numbered(number: u32) -> Self {
        Self(rocblas_status(number))
    }
}

/// rocBLAS' translation of HIP errors.
pub(crate) fn from_hip(error: hipError_t) -> Outcome {
    Err(match error {
        hipError_t::hipSuccess => return Ok(()),
        hipError_t::hipErrorOutOfMemory | hipError_t::hipErrorLaunchOutOfResources => {
            rocblas_status::rocblas_status_memory_error
        }
        hipError_t::hipErrorInvalidDevicePointer => rocblas_status::rocblas_status_invalid_pointer,
        hipError_t::hipErrorInvalidDevice | hipError_t::hipErrorInvalidHandle => {
            rocblas_status::rocblas_status_invalid_handle
        }
        _ => rocblas_status::rocblas_status_internal_error,
    })
}

macro_rules! names {
    ($status:ident: $($name:ident)*) => {
        match $status {
            $(rocblas_status::$name => {
                const NAME: &str = concat!(stringify!($name), "\0");
                NAME.as_ptr().cast()
            })*
            _ => c"<undefined rocblas_status value>".as_ptr(),
        }
    };
}

pub(crate) unsafe extern "C" fn rocblas_status_to_string(status: rocblas_status) -> *const c_char {
    names!(status:
        rocblas_status_success
        rocblas_status_invalid_handle
        rocblas_status_not_implemented
        rocblas_status_invalid_pointer
        rocblas_status_invalid_size
        rocblas_status_memory_error
        rocblas_status_internal_error
        rocblas_status_perf_degraded
        rocblas_status_size_query_mismatch
        rocblas_status_size_increased
        rocblas_status_size_unchanged
        rocblas_status_invalid_value
        rocblas_status_continue
        rocblas_status_check_numerics_fail
        rocblas_status_excluded_from_build
        rocblas_status_arch_mismatch
    )
}
