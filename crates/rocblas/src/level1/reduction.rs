//! Where the result of a reduction goes: to the host, which waits for it, or to device memory.

use hip::{DeviceMemoryMut, DeviceSliceMut};
use rocblas_sys::rocblas_pointer_mode;

use crate::operands::Call;
use crate::{Error, Handle, Result};

/// The one element that a reduction writes.
pub(crate) enum Target<'a, T, R> {
    /// Written before the call returns: rocBLAS waits for its stream.
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
    /// Takes the memory; also returns the pointer mode that the target needs.
    pub(crate) fn take<'h>(
        self,
        call: &mut Call<'h>,
    ) -> Result<(rocblas_pointer_mode, Target<'a, T, DeviceSliceMut<'h, T>>)>
    where
        R: 'h,
    {
        match self {
            Self::Host(_) if call.stream().is_capturing() => Err(Error::Captured {
                call: call.name(),
                reason: "its result goes to the host, which cannot wait for it; use the form that ends in `_into`",
            }),
            Self::Host(value) => Ok((rocblas_pointer_mode::rocblas_pointer_mode_host, Target::Host(value))),
            Self::Device(result) => {
                let slice = call.write_element("result", result)?;
                Ok((rocblas_pointer_mode::rocblas_pointer_mode_device, Target::Device(slice)))
            }
        }
    }
}

impl<T: bytemuck::Pod> Target<'_, T, DeviceSliceMut<'_, T>> {
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        match self {
            Self::Host(value) => *value,
            Self::Device(slice) => slice.as_mut_ptr(),
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
