use hip::{DeviceMemory, DeviceSlice};
use rocblas_sys::rocblas_pointer_mode;

use super::call::Call;
use crate::element::Element;
use crate::{Error, Handle, Result};

/// `alpha` or `beta` of a call: a number of the host, or [`OnDevice`] one in device memory.
///
/// A host value is written as is, `blas.gemm(…, 1.0, …)`, and is read before the call returns. `alpha` and `beta` of one
/// call are both of the same kind, because the library has one *pointer mode* for both; the call sets and restores it.
#[doc(alias("rocblas_pointer_mode", "alpha", "beta"))]
#[diagnostic::on_unimplemented(note = "a number in device memory is passed as `OnDevice(memory)`")]
pub trait Factor<T>: sealed::Take<T> {}

/// A [`Factor`] in device memory: memory of exactly one element. The device reads it when the stream reaches the call, so
/// the host need not know the number.
///
/// With numbers in device memory the products of level 3 (`gemm` and the like) block the host until the stream has
/// reached them: rocBLAS fetches `alpha` and `beta` there (library/src/blas3/rocblas_gemm.hpp). It copies them with HIP,
/// so they cannot lie in memory that another runtime owns.
///
/// The memory is borrowed until the call is made:
///
/// ```compile_fail,E0505
/// # use rocblas::{Handle, OnDevice, Result, Vector};
/// fn early(blas: &Handle, number: hip::DeviceBuffer<f32>, x: &mut hip::DeviceBuffer<f32>) -> Result<()> {
///     let alpha = OnDevice(&number);
///     drop(number);
///     blas.scal(alpha, Vector::from(x))
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OnDevice<M>(pub M);

impl<T: Element> Factor<T> for T {}

impl<M: DeviceMemory> Factor<M::Element> for OnDevice<M> {}

pub(crate) mod sealed {
    use super::{Call, Number, Result};

    /// Public in name only: the crate does not export this module.
    pub trait Take<T> {
        /// Takes the memory, if it is in any.
        fn take<'h, 's>(self, call: &mut Call<'h>, argument: &'static str) -> Result<Number<'s, T>>
        where
            'h: 's,
            Self: 's;
    }
}

impl<T: Element> sealed::Take<T> for T {
    fn take<'h, 's>(self, _: &mut Call<'h>, _: &'static str) -> Result<Number<'s, T>>
    where
        'h: 's,
        Self: 's,
    {
        Ok(Number::Host(self))
    }
}

impl<M: DeviceMemory> sealed::Take<M::Element> for OnDevice<M> {
    fn take<'h, 's>(self, call: &mut Call<'h>, argument: &'static str) -> Result<Number<'s, M::Element>>
    where
        'h: 's,
        Self: 's,
    {
        call.read_element(argument, self.0).map(Number::Device)
    }
}

/// A factor that the call took.
#[derive(Debug)]
pub enum Number<'a, T> {
    /// Read before the call returns.
    Host(T),
    /// One element, read in stream order.
    Device(DeviceSlice<'a, T>),
}

/// Whether rocBLAS may have to copy a scalar to the host itself.
#[derive(Clone, Copy)]
pub(crate) enum Fetch<'h> {
    /// Kernels read it: levels 1 and 2.
    Never,
    /// Level 3, of this handle.
    Perhaps(&'h Handle),
}

impl<T> Number<'_, T> {
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

impl<'h> Call<'h> {
    /// Takes the one scalar of the call.
    pub(crate) fn alpha<'s, T, A>(&mut self, alpha: A, fetch: Fetch<'_>) -> Result<Number<'s, T>>
    where
        'h: 's,
        A: Factor<T> + 's,
    {
        self.scalar("alpha", alpha, fetch)
    }

    /// Takes the two scalars of the call, which need one pointer mode.
    pub(crate) fn alpha_and_beta<'s, T, A, B>(
        &mut self,
        alpha: A,
        beta: B,
        fetch: Fetch<'_>,
    ) -> Result<(Number<'s, T>, Number<'s, T>)>
    where
        'h: 's,
        A: Factor<T> + 's,
        B: Factor<T> + 's,
    {
        let alpha = self.scalar("alpha", alpha, fetch)?;
        let beta = self.scalar("beta", beta, fetch)?;
        let (found, expected) = match (&alpha, &beta) {
            (Number::Host(_), Number::Device(_)) => ("in device memory", "a host value, as alpha is"),
            (Number::Device(_), Number::Host(_)) => ("a host value", "device memory, as alpha does"),
            _ => return Ok((alpha, beta)),
        };
        Err(self.unsupported("beta", found, expected))
    }

    fn scalar<'s, T, F>(&mut self, argument: &'static str, factor: F, fetch: Fetch<'_>) -> Result<Number<'s, T>>
    where
        'h: 's,
        F: Factor<T> + 's,
    {
        let number = factor.take(self, argument)?;
        if let (Number::Device(slice), Fetch::Perhaps(handle)) = (&number, fetch) {
            if slice.is_foreign() {
                return Err(self.unsupported(
                    argument,
                    "in memory that another runtime owns",
                    "a host value, or memory of HIP",
                ));
            }
            handle.before_fetch(self.name())?;
        }
        Ok(number)
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
