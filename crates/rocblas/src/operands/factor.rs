use hip::DeviceSlice;
use rocblas_sys::rocblas_pointer_mode;

use super::call::Call;
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
/// # use rocblas::{Handle, Result};
/// fn early(blas: &Handle, number: hip::DeviceBuffer<f32>, x: &mut hip::DeviceBuffer<f32>) -> Result<()> {
///     let alpha = number.on(blas.stream())?;
///     drop(number);
///     blas.scal(alpha, x.into())
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
#[derive(Clone, Copy)]
pub(crate) enum Fetch<'h> {
    /// Kernels read it: levels 1 and 2.
    Never,
    /// Level 3, of this handle.
    Perhaps(&'h Handle),
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
}

impl Call<'_> {
    /// Notes the one scalar of the call and returns the pointer mode it needs.
    pub(crate) fn alpha<T>(&mut self, alpha: &Factor<'_, T>, fetch: Fetch<'_>) -> Result<rocblas_pointer_mode> {
        self.scalar("alpha", alpha, fetch)?;
        Ok(alpha.mode())
    }

    /// Notes the two scalars of the call and returns the pointer mode they need.
    pub(crate) fn alpha_and_beta<T>(
        &mut self,
        alpha: &Factor<'_, T>,
        beta: &Factor<'_, T>,
        fetch: Fetch<'_>,
    ) -> Result<rocblas_pointer_mode> {
        self.scalar("alpha", alpha, fetch)?;
        self.scalar("beta", beta, fetch)?;
        let (found, expected) = match (alpha, beta) {
            (Factor::Host(_), Factor::Device(_)) => ("in device memory", "a host value, as alpha is"),
            (Factor::Device(_), Factor::Host(_)) => ("a host value", "device memory, as alpha does"),
            _ => return Ok(alpha.mode()),
        };
        Err(self.unsupported("beta", found, expected))
    }

    fn scalar<T>(&mut self, argument: &'static str, factor: &Factor<'_, T>, fetch: Fetch<'_>) -> Result<()> {
        let Factor::Device(slice) = factor else {
            return Ok(());
        };
        self.read_element(argument, slice)?;
        let Fetch::Perhaps(handle) = fetch else {
            return Ok(());
        };
        if slice.is_foreign() {
            return Err(self.unsupported(
                argument,
                "in memory that another runtime owns",
                "a host value, or memory of HIP",
            ));
        }
        handle.before_fetch(self.name())
    }

    fn unsupported(&self, argument: &'static str, found: &str, expected: &'static str) -> Error {
        Error::Unsupported {
            call: self.name(),
            argument,
            found: found.to_owned(),
            expected,
        }
    }
}
