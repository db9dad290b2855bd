//! How a family of C functions is defined: one entry for all element types, sizes and forms.

use std::ffi::c_void;

use num_complex::Complex;
use rocblas_sys::{rocblas_double_complex, rocblas_float_complex};

/// A C type of the interface.
pub(crate) trait CType {
    /// The type that the arithmetic uses, with the same layout.
    type Element;
}

macro_rules! c_types {
    ($($c:ty: $element:ty;)*) => {
        $(impl CType for $c {
            type Element = $element;
        })*
    };
}
c_types! {
    f32: f32;
    f64: f64;
    rocblas_float_complex: Complex<f32>;
    rocblas_double_complex: Complex<f64>;
    c_void: c_void;
}

/// Defines families of C functions, and a function that fills their slots.
///
/// An entry has the parts of the names and the arguments of [`rocblas_sys::family!`], without the handle, then a body
/// that gets the function's name and the handle. There `E` is the element type of the arithmetic, operands are a
/// `Place<E>`, pivots a `Place<I>`, and the batch of a plain form is 1. The body is an `unsafe` block as a whole: its
/// duties are the C caller's.
macro_rules! families {
    (
        $(#[$meta:meta])*
        $visibility:vis fn $fill:ident($api:ty);
        $(
            $library:ident $letters:tt $routines:tt $forms:tt $sizes:tt $arguments:tt
            => |$name:ident, $handle:ident| $body:expr;
        )*
    ) => {
        $(#[$meta])*
        $visibility const fn $fill(api: &mut $api) {
            use $crate::blas::family::define;
            $(rocblas_sys::family! { define api;
                $library $letters $routines $forms $sizes $arguments { |$name, $handle| $body }
            })*
        }
    };
}
pub(crate) use families;

/// Defines one function and fills its slot.
macro_rules! define {
    (
        $api:ident $symbol:ident $parts:tt { $($types:tt)* }
        ($($argument:ident: $ty:ty),* $(,)?) [$($binding:tt)*] { |$name:ident, $handle:ident| $body:expr }
    ) => {
        $api.$symbol = Some({
            $($types)*
            type E = <T as $crate::blas::family::CType>::Element;
            #[allow(non_snake_case, clippy::too_many_arguments, reason = "a C function")]
            unsafe extern "C" fn $symbol(
                $handle: rocblas_sys::rocblas_handle,
                $($argument: $ty),*
            ) -> rocblas_sys::rocblas_status {
                $($crate::blas::family::bind!($binding);)*
                // SAFETY: the C caller's duties.
                $crate::blas::status::entry(stringify!($symbol), |$name| unsafe { $body })
            }
            $symbol
        });
    };
}
pub(crate) use define;

/// What a body finds under the name of an argument that depends on the form.
macro_rules! bind {
    ((batch one $batch:ident)) => {
        let $batch: I = 1;
    };
    ((batch given $batch:ident)) => {};
    ((pivots plain $first:ident)) => {
        let $first = $crate::blas::batch::Place::<I>::single($first);
    };
    ((pivots strided $first:ident $stride:ident)) => {
        let $first = $crate::blas::batch::Place::<I>::strided($first, $stride);
    };
    (($kind:ident plain $first:ident)) => {
        let $first = $crate::blas::batch::Place::<T>::single($first).cast::<E>();
    };
    (($kind:ident strided $first:ident $stride:ident)) => {
        let $first = $crate::blas::batch::Place::<T>::strided($first, $stride).cast::<E>();
    };
    (($kind:ident batched $list:ident)) => {
        let $list = $crate::blas::batch::Place::<E>::Array($list.cast());
    };
}
pub(crate) use bind;
