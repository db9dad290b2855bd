//! Where the result of a reduction goes: to the host, which waits for it, or to device memory.

use hip::DeviceSliceMut;
use rocblas_sys::rocblas_pointer_mode;

use crate::{Error, Handle, Result};

/// The one element that a reduction writes.
pub(crate) enum Target<'a, T> {
    /// Written before the call returns: rocBLAS waits for its stream.
    Host(&'a mut T),
    /// Written in stream order.
    Device(DeviceSliceMut<'a, T>),
}

impl<T> Target<'_, T> {
    /// Checks the target and returns the pointer mode it needs.
    pub(crate) fn check(&self, handle: &Handle, call: &'static str) -> Result<rocblas_pointer_mode> {
        let Self::Device(slice) = self else {
            if handle.stream().is_capturing() {
                return Err(Error::Captured {
                    call,
                    reason: "its result goes to the host, which cannot wait for it; use the form that ends in `_into`",
                });
            }
            return Ok(rocblas_pointer_mode::rocblas_pointer_mode_host);
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
        Ok(rocblas_pointer_mode::rocblas_pointer_mode_device)
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        match self {
            Self::Host(value) => *value,
            Self::Device(slice) => slice.as_mut_ptr(),
        }
    }
}

impl<T: bytemuck::Pod> Target<'_, T> {
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
