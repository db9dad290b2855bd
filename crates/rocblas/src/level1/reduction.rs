//! Where the result of a reduction goes: to the host, which waits for it, or to device memory.
//!
//! The library always writes device memory. Before rocBLAS 4.1 (ROCm 6.1) its host pointer mode reads the result by a
//! plain `hipMemcpy`, on the null stream, which does not wait for non-blocking streams
//! (library/src/blas1/rocblas_reduction_kernels.cpp and rocblas_dot_kernels.cpp at the tag rocm-6.0.0): the host would
//! get what was there before the work. A copy in order of the handle's stream is right for every release.

use crate::{Error, Handle, Result};
use hip::DeviceSliceMut;

/// The one element that a reduction writes.
pub(crate) enum Target<'a, T> {
    /// Written before the call returns, which waits for the stream.
    Host(&'a mut T),
    /// Written in stream order.
    Device(DeviceSliceMut<'a, T>),
}

impl<T> Target<'_, T> {
    /// Checks the target.
    pub(crate) fn check(&self, handle: &Handle, call: &'static str) -> Result<()> {
        let Self::Device(slice) = self else {
            if handle.stream().is_capturing() {
                return Err(Error::Captured {
                    call,
                    reason: "its result goes to the host, which cannot wait for it; use the form that ends in `_into`",
                });
            }
            return Ok(());
        };
        handle.check_stream(call, "result", slice.stream())?;
        if slice.len() != 1 {
            return Err(Error::Shape {
                call,
                argument: "result",
                found: format!("a slice of {} elements", slice.len()),
                expected: "one element".to_owned(),
            });
        }
        Ok(())
    }
}

impl<T: bytemuck::Pod> Target<'_, T> {
    /// Lets `reduce` write the element, in device pointer mode, at an address that is exclusive to it on the handle's
    /// stream.
    pub(crate) fn fill_by(self, handle: &Handle, reduce: impl FnOnce(*mut T) -> Result<()>) -> Result<()> {
        match self {
            Self::Device(mut slice) => reduce(slice.as_mut_ptr()),
            Self::Host(value) => {
                // HIP aligns an allocation for any scalar.
                let words = size_of::<T>().div_ceil(size_of::<i32>());
                let mut element = handle.infos.lease(handle.stream(), words)?;
                reduce(element.address_mut()?.cast())?;
                if handle.is_asking() {
                    return Ok(());
                }
                let element = element.slice()?.cast::<T>()?;
                Ok(element.copy_to_slice(std::slice::from_mut(value))?)
            }
        }
    }

    /// Writes the sum over nothing. Not left to rocBLAS, which would fill device memory through HIP whatever its owner.
    pub(crate) fn write_zero(self, handle: &Handle) -> Result<()> {
        match self {
            Self::Device(_) if handle.is_asking() => {}
            Self::Host(value) => *value = T::zeroed(),
            Self::Device(mut slice) => slice.fill_zero()?,
        }
        Ok(())
    }
}
