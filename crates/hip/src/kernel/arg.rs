use std::ffi::c_void;

use num_complex::Complex;

use crate::{DeviceSlice, DeviceSliceMut, Stream};

/// A value that can be a kernel's argument.
///
/// # Safety
///
/// [`as_param`](Self::as_param) points at a value of the type that the matching kernel parameter has, valid for as long
/// as `self`, and [`stream`](Self::stream) names the only stream on which the kernel may use it, if there is one.
pub unsafe trait KernelArg {
    /// The address of the argument's value.
    fn as_param(&self) -> *mut c_void;

    /// The stream that the argument is bound to.
    fn stream(&self) -> Option<&Stream> {
        None
    }
}

// SAFETY: the parameter is a pointer to `T`, and the slice holds one.
unsafe impl<T> KernelArg for DeviceSlice<'_, T> {
    fn as_param(&self) -> *mut c_void {
        self.pointer_address()
    }

    fn stream(&self) -> Option<&Stream> {
        Some(DeviceSlice::stream(self))
    }
}

// SAFETY: the parameter is a pointer to `T`, and the slice holds one.
unsafe impl<T> KernelArg for DeviceSliceMut<'_, T> {
    fn as_param(&self) -> *mut c_void {
        self.pointer_address()
    }

    fn stream(&self) -> Option<&Stream> {
        Some(DeviceSliceMut::stream(self))
    }
}

macro_rules! scalar {
    ($($scalar:ty),*) => {$(
        // SAFETY: the parameter is this scalar, and `self` is one.
        unsafe impl KernelArg for $scalar {
            fn as_param(&self) -> *mut c_void {
                (&raw const *self).cast_mut().cast()
            }
        }
    )*};
}

scalar!(
    i8,
    u8,
    i16,
    u16,
    i32,
    u32,
    i64,
    u64,
    f32,
    f64,
    Complex<f32>,
    Complex<f64>
);
