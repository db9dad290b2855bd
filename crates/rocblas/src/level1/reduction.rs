//! Where the result of a reduction goes: to the host, which waits for it, or to device memory.
//!
//! The library always writes device memory. Before rocBLAS 4.1 (ROCm 6.1) its host pointer mode reads the result by a
//! plain `hipMemcpy`, on the null stream, which does not wait for non-blocking streams
//! (library/src/blas1/rocblas_reduction_kernels.cpp and rocblas_dot_kernels.cpp at the tag rocm-6.0.0): the host would
//! get what was there before the work. A copy in order of the handle's stream is right for every release.

use hip::{DeviceMemoryMut, DeviceSliceMut};

use crate::operands::Call;
use crate::{Error, Handle, Result};

/// The one element that a reduction writes.
pub(crate) enum Target<'a, T, R> {
    /// Written before the call returns, which waits for the stream.
    Host(&'a mut T),
    /// Written in stream order.
    Device(R),
}

impl<'a, T> Target<'a, T, DeviceSliceMut<'a, T>> {
    pub(crate) fn host(value: &'a mut T) -> Self {
        Self::Host(value)
    }
}

impl<'a, T, R: DeviceMemoryMut<Element = T>> Target<'a, T, R> {
    /// Takes the memory.
    pub(crate) fn take<'h>(self, call: &mut Call<'h>) -> Result<Target<'a, T, DeviceSliceMut<'h, T>>>
    where
        R: 'h,
    {
        match self {
            Self::Host(_) if call.stream().is_capturing() => Err(Error::Captured {
                call: call.name(),
                reason: "its result goes to the host, which cannot wait for it; use the form that ends in `_into`",
            }),
            Self::Host(value) => Ok(Target::Host(value)),
            Self::Device(result) => Ok(Target::Device(call.write_element("result", result)?)),
        }
    }
}

impl<T: bytemuck::Pod> Target<'_, T, DeviceSliceMut<'_, T>> {
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
                Ok(hip::control(|| element.copy_to_slice(std::slice::from_mut(value)))?)
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
