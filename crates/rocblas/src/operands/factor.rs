use hip::DeviceSlice;
use rocblas_sys::rocblas_pointer_mode;

use crate::{Error, Handle, Result};

/// `alpha` or `beta` of a call: a number of the host, or one in device memory.
///
/// Numbers convert into it, so a host value is written as is: `blas.gemm(…, 1.0, …)`. So do device slices of one
/// element: the device then reads the number when the stream reaches the call, and the host need not know it. `alpha`
/// and `beta` of one call are both of the same kind, because the library has one *pointer mode* for both; the call sets
/// and restores it.
///
/// With device numbers the products of level 3 (`gemm` and the like) block the host until the stream has reached them:
/// rocBLAS fetches `alpha` and `beta` there (library/src/blas3/rocblas_gemm.hpp). It copies them with HIP, so they
/// cannot lie in memory that another runtime owns.
///
/// A number in device memory is borrowed until the call is made:
///
/// ```compile_fail,E0505
/// # use rocblas::{Handle, Result, VectorMut};
/// fn early(blas: &Handle, number: hip::DeviceBuffer<f32>, x: VectorMut<'_, f32>) -> Result<()> {
///     let alpha = number.on(blas.stream())?;
///     drop(number);
///     blas.scal(alpha, x)
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[doc(alias("rocblas_pointer_mode", "alpha", "beta"))]
pub enum Factor<'a, T> {
    /// Read before the call returns.
    Host(T),
    /// One element, read in stream order.
    Device(DeviceSlice<'a, T>),
}

impl<T> From<T> for Factor<'_, T> {
    fn from(value: T) -> Self {
        Self::Host(value)
    }
}

impl<'a, T> From<DeviceSlice<'a, T>> for Factor<'a, T> {
    fn from(value: DeviceSlice<'a, T>) -> Self {
        Self::Device(value)
    }
}

/// Whether rocBLAS may have to copy a scalar to the host itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// Kernels read it: levels 1 and 2.
    Never,
    /// Level 3.
    Perhaps,
}

impl<T> Factor<'_, T> {
    pub(crate) fn mode(&self) -> rocblas_pointer_mode {
        match self {
            Self::Host(_) => rocblas_pointer_mode::rocblas_pointer_mode_host,
            Self::Device(_) => rocblas_pointer_mode::rocblas_pointer_mode_device,
        }
    }

    /// Where the number lies; valid as long as `self` stays where it is.
    pub(crate) fn as_ptr(&self) -> *const T {
        match self {
            Self::Host(value) => value,
            Self::Device(slice) => slice.as_ptr(),
        }
    }

    fn check(&self, handle: &Handle, call: &'static str, argument: &'static str, fetch: Fetch) -> Result<()> {
        let Self::Device(slice) = self else {
            return Ok(());
        };
        handle.check_stream(call, argument, slice.stream())?;
        if slice.len() != 1 {
            return Err(Error::Shape {
                call,
                argument,
                found: format!("a slice of {} elements", slice.len()),
                expected: "one element".to_owned(),
            });
        }
        if fetch == Fetch::Perhaps {
            if slice.is_foreign() {
                return Err(Error::Unsupported {
                    call,
                    argument,
                    found: "in memory that another runtime owns".to_owned(),
                    expected: "a host value, or memory of HIP",
                });
            }
            handle.before_fetch(call)?;
        }
        Ok(())
    }
}

/// Checks the one scalar of a call and returns the pointer mode it needs.
pub(crate) fn check_alpha<T>(
    handle: &Handle,
    call: &'static str,
    alpha: &Factor<'_, T>,
    fetch: Fetch,
) -> Result<rocblas_pointer_mode> {
    alpha.check(handle, call, "alpha", fetch)?;
    Ok(alpha.mode())
}

/// Checks the two scalars of a call and returns the pointer mode they need.
pub(crate) fn check_pair<T>(
    handle: &Handle,
    call: &'static str,
    alpha: &Factor<'_, T>,
    beta: &Factor<'_, T>,
    fetch: Fetch,
) -> Result<rocblas_pointer_mode> {
    alpha.check(handle, call, "alpha", fetch)?;
    beta.check(handle, call, "beta", fetch)?;
    match (alpha, beta) {
        (Factor::Host(_), Factor::Device(_)) => Err(mixed(call, "in device memory", "a host value, as alpha is")),
        (Factor::Device(_), Factor::Host(_)) => Err(mixed(call, "a host value", "device memory, as alpha does")),
        _ => Ok(alpha.mode()),
    }
}

fn mixed(call: &'static str, found: &str, expected: &'static str) -> Error {
    Error::Unsupported {
        call,
        argument: "beta",
        found: found.to_owned(),
        expected,
    }
}
