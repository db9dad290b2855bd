//! rocBLAS' enumerations as cuBLAS'.

use std::ffi::c_uint;

use rocblas_sys::{
    rocblas_diagonal, rocblas_fill, rocblas_operation, rocblas_side, rocblas_status as Status,
};

use super::Result;

/// An argument of rocBLAS that cuBLAS takes too, perhaps by another number.
pub(crate) trait Argument {
    /// What cuBLAS' C function declares.
    type Cuda;
    fn cuda(self) -> Result<Self::Cuda>;
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
}

impl<T> Argument for *mut T {
    type Cuda = *mut T;
    #[inline]
    fn cuda(self) -> Result<*mut T> {
        Ok(self)
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
    fn an_operation_that_is_none_is_an_invalid_value() {
        assert_eq!(
            rocblas_operation::rocblas_operation_conjugate_transpose.cuda(),
            Ok(2)
        );
        assert_eq!(rocblas_fill::rocblas_fill_upper.cuda(), Ok(1));
        let none = rocblas_operation(0);
        assert_eq!(none.cuda(), Err(Status::rocblas_status_invalid_value));
    }
}
