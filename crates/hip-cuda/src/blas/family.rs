//! Families of functions that are more than a function of cuBLAS.

use rocblas_sys::rocblas_stride;

/// Where the matrices (or vectors) of a batch are.
pub(crate) enum Place<T> {
    /// From this address on, at this distance in elements. One matrix is a batch of one.
    Strided(*mut T, rocblas_stride),
    /// Each at its own address, of which the device has a list.
    Listed(*const *mut T),
}

// Not derived: a copy of the description needs no copy of an element.
impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Place<T> {}

impl<T> Place<T> {
    pub(crate) fn strided(first: *const T, stride: rocblas_stride) -> Self {
        Self::Strided(first.cast_mut(), stride)
    }

    pub(crate) const fn is_listed(self) -> bool {
        matches!(self, Self::Listed(_))
    }
}

/// Defines families of C functions, and a function that fills their slots.
///
/// An entry has the parts of the names and the arguments of [`rocblas_sys::family!`], without the handle, then a body
/// that gets the [`Handle`](super::handle::Handle). There an operand and pivots are a [`Place`], and the batch of a
/// plain form is 1. The body is an `unsafe` block as a whole: its duties are the C caller's.
macro_rules! families {
    (
        $(#[$meta:meta])*
        $visibility:vis fn $fill:ident($api:ty);
        $($library:ident $letters:tt $routines:tt $forms:tt $arguments:tt => |$handle:ident| $body:expr;)*
    ) => {
        $(#[$meta])*
        $visibility const fn $fill(api: &mut $api) {
            use $crate::blas::family::define;
            $(rocblas_sys::family! { define api;
                $library $letters $routines $forms [32] $arguments { |$handle| $body }
            })*
        }
    };
}
pub(crate) use families;

/// Defines one function and fills its slot.
macro_rules! define {
    (
        $api:ident $symbol:ident $parts:tt { $($types:tt)* }
        ($($argument:ident: $ty:ty),* $(,)?) [$($binding:tt)*] { |$handle:ident| $body:expr }
    ) => {
        $api.$symbol = Some({
            $($types)*
            #[allow(clippy::too_many_arguments, reason = "C function")]
            unsafe extern "C" fn $symbol(
                handle: rocblas_sys::rocblas_handle,
                $($argument: $ty),*
            ) -> rocblas_sys::rocblas_status {
                $crate::blas::entry(|| {
                    $($crate::blas::family::bind!($binding);)*
                    // SAFETY: as the C caller promises.
                    unsafe {
                        let $handle = $crate::blas::handle::Handle::of(handle)?;
                        $body
                    }
                })
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
    (($kind:ident batched $list:ident)) => {
        let $list = $crate::blas::family::Place::<T>::Listed($list.cast());
    };
    (($kind:ident plain $first:ident)) => {
        $crate::blas::family::bind!(($kind strided $first 0));
    };
    (($kind:ident strided $first:ident $stride:expr)) => {
        let $first = $crate::blas::family::Place::strided($first, $stride);
    };
}
pub(crate) use bind;
