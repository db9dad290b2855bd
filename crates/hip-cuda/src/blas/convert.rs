//! rocBLAS' enumerations as cuBLAS'.

use std::ffi::c_uint;

use rocblas_sys::{rocblas_diagonal, rocblas_fill, rocblas_operation, rocblas_side, rocblas_status as Status};

use super::Result;

/// A rocBLAS argument that cuBLAS takes too, perhaps by another number.
pub(crate) trait Argument {
    /// The type that cuBLAS' C function declares.
    type Cuda;
    fn cuda(self) -> Result<Self::Cuda>;

    /// The argument, or, if it is a host scalar that cuBLAS would misread, a copy in `room`.
    ///
    /// # Safety
    /// If `scalar`, the argument is null or points to a number on the host. The result is not used after `room` is
    /// dropped.
    unsafe fn staged(self, scalar: bool, room: &mut Room) -> Self
    where
        Self: Sized,
    {
        let _ = (scalar, room);
        self
    }
}

/// Whether an argument of this name is a number behind a pointer, on the host or on the device by the handle's mode.
pub(crate) const fn is_scalar(name: &str) -> bool {
    matches!(name.as_bytes(), b"alpha" | b"beta" | b"result")
}

/// Room for one scalar. `cuComplex` is aligned to 8 bytes and `cuDoubleComplex` to 16, and cuBLAS loads them so;
/// rocBLAS' types are aligned as their parts are.
#[derive(Default)]
pub(crate) struct Room {
    number: Number,
    /// Where a result goes when the call is over, and its bytes: cuBLAS waits for a result that goes to the host.
    back: Option<(*mut u8, usize)>,
}

/// The bytes of the largest scalar, where cuBLAS can load any.
#[repr(align(16))]
#[derive(Default)]
struct Number([u8; 16]);

impl Drop for Room {
    fn drop(&mut self) {
        if let Some((to, bytes)) = self.back {
            // SAFETY: the caller's own number, which `staged` was given and the call was for.
            unsafe { to.copy_from_nonoverlapping(self.number.0.as_ptr(), bytes) };
        }
    }
}

macro_rules! unchanged {
    ($($ty:ty),*) => {
        $(impl Argument for $ty {
            type Cuda = $ty;
            #[inline]
            fn cuda(self) -> Result<$ty> {
                Ok(self)
            }
        })*
    };
}

unchanged!(i32, i64);

impl<T> Argument for *const T {
    type Cuda = *const T;
    #[inline]
    fn cuda(self) -> Result<*const T> {
        Ok(self)
    }
    #[inline]
    unsafe fn staged(self, scalar: bool, room: &mut Room) -> Self {
        let bytes = size_of::<T>();
        if !scalar || self.is_null() || bytes > 16 || self.addr().is_multiple_of(bytes.max(1)) {
            return self;
        }
        // SAFETY: a number of the host's by the caller's promise, and room for the largest.
        unsafe {
            self.cast::<u8>()
                .copy_to_nonoverlapping(room.number.0.as_mut_ptr(), bytes)
        };
        room.number.0.as_ptr().cast()
    }
}

impl<T> Argument for *mut T {
    type Cuda = *mut T;
    #[inline]
    fn cuda(self) -> Result<*mut T> {
        Ok(self)
    }
    #[inline]
    unsafe fn staged(self, scalar: bool, room: &mut Room) -> Self {
        // SAFETY: the caller's promise.
        let moved = unsafe { self.cast_const().staged(scalar, room) };
        if moved == self.cast_const() {
            return self;
        }
        // A call that fails leaves the number as it was: the room holds it.
        room.back = Some((self.cast(), size_of::<T>()));
        room.number.0.as_mut_ptr().cast()
    }
}

macro_rules! enumeration {
    ($ty:ident: $($value:ident = $number:literal),*) => {
        impl Argument for $ty {
            type Cuda = c_uint;
            #[inline]
            fn cuda(self) -> Result<c_uint> {
                match self {
                    $($ty::$value => Ok($number),)*
                    _ => Err(Status::rocblas_status_invalid_value),
                }
            }
        }
    };
}

// Numbers of cublas_api.h.
enumeration!(rocblas_operation:
    rocblas_operation_none = 0,
    rocblas_operation_transpose = 1,
    rocblas_operation_conjugate_transpose = 2);
enumeration!(rocblas_fill: rocblas_fill_lower = 0, rocblas_fill_upper = 1, rocblas_fill_full = 2);
enumeration!(rocblas_diagonal: rocblas_diagonal_non_unit = 0, rocblas_diagonal_unit = 1);
enumeration!(rocblas_side: rocblas_side_left = 0, rocblas_side_right = 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_that_cublas_could_not_load_is_moved_to_where_it_can() {
        #[repr(align(16))]
        struct Numbers([f64; 3]);
        let numbers = Numbers([1.0, 2.0, 3.0]);
        let mut room = Room::default();
        for first in [0, 1] {
            let given: *const [f64; 2] = (&raw const numbers.0[first]).cast();
            // SAFETY: two numbers of ours, and room that outlives what is read of it.
            let (moved, value) = unsafe {
                let moved = given.staged(true, &mut room);
                (moved, *moved)
            };
            assert_eq!(value, [1.0 + first as f64, 2.0 + first as f64]);
            assert!(moved.addr().is_multiple_of(16));
            assert_eq!(moved == given, first == 0);
            // SAFETY: an operand is not looked at.
            assert_eq!(unsafe { given.staged(false, &mut room) }, given);
        }
        let mut numbers = Numbers([1.0, 2.0, 3.0]);
        let given: *mut [f64; 2] = (&raw mut numbers.0[1]).cast();
        {
            let mut room = Room::default();
            // SAFETY: as above; what the call would do is done in its place.
            unsafe {
                let moved = given.staged(true, &mut room);
                assert_eq!(*moved, [2.0, 3.0], "what a failing call leaves");
                *moved = [4.0, 5.0];
            }
        }
        assert_eq!(numbers.0, [1.0, 4.0, 5.0], "the result goes back");
        assert!(is_scalar("alpha") && is_scalar("beta") && !is_scalar("a"));
    }

    #[test]
    fn an_operation_that_is_none_is_an_invalid_value() {
        assert_eq!(rocblas_operation::rocblas_operation_conjugate_transpose.cuda(), Ok(2));
        assert_eq!(rocblas_fill::rocblas_fill_upper.cuda(), Ok(1));
        let none = rocblas_operation(0);
        assert_eq!(none.cuda(), Err(Status::rocblas_status_invalid_value));
    }
}
