//! How a cuBLAS routine becomes a rocBLAS routine.

/// Defines rocBLAS C functions, each on a cuBLAS function with the same arguments, and a function that fills their
/// slots.
///
/// `nothing` says when there is nothing to do: then the function returns success without checking a pointer, as in
/// rocBLAS. `needs` lists the pointers that must not be null otherwise: cuBLAS would pass them to a kernel.
macro_rules! routines {
    (
        $(#[$meta:meta])*
        $visibility:vis fn $fill:ident;
        $(fn $roc:ident = $cu:ident($($argument:ident: $ty:ty),* $(,)?) nothing if $nothing:expr, needs $($needed:ident)*;)*
    ) => {
        $(
            #[allow(non_snake_case, unused_variables, clippy::too_many_arguments, clippy::unnecessary_cast, reason = "C functions")]
            unsafe extern "C" fn $roc(
                handle: rocblas_sys::rocblas_handle,
                $($argument: $ty),*
            ) -> rocblas_sys::rocblas_status {
                $crate::blas::entry(|| {
                    use $crate::blas::convert::Argument;
                    static CUDA: $crate::cuda::Symbol =
                        $crate::cuda::Symbol::new($crate::cuda::c_name(concat!(stringify!($cu), "\0")));
                    // SAFETY: a live handle by the C caller's promise, or null, which is refused.
                    let handle = unsafe { $crate::blas::handle::Handle::of(handle) }?;
                    if $nothing {
                        return Ok(());
                    }
                    if [$($needed.is_null()),*].contains(&true) {
                        return Err(rocblas_sys::rocblas_status::rocblas_status_invalid_pointer);
                    }
                    let found = CUDA
                        .in_library($crate::blas::library()?)
                        .ok_or(rocblas_sys::rocblas_status::rocblas_status_not_implemented)?;
                    // SAFETY: the address of cuBLAS' function of this name, which takes these arguments and answers a
                    // status.
                    let function = unsafe {
                        std::mem::transmute::<
                            *mut std::ffi::c_void,
                            unsafe extern "C" fn($crate::blas::handle::Raw, $(<$ty as Argument>::Cuda),*) -> std::ffi::c_uint,
                        >(found)
                    };
                    handle.begin()?;
                    let on_host = handle.scalars_on_host();
                    $(
                        // Each name stands for its own room until the call is over.
                        let mut room = $crate::blas::convert::Room::default();
                        // SAFETY: the pointer mode says that scalars are the host's; the room lives to the end of this
                        // function.
                        let $argument = unsafe {
                            $argument.staged(on_host && $crate::blas::convert::is_scalar(stringify!($argument)), &mut room)
                        };
                    )*
                    // SAFETY: the C caller's promise to rocBLAS is what cuBLAS demands.
                    let code = unsafe { function(handle.raw(), $(<$ty as Argument>::cuda($argument)?),*) };
                    $crate::blas::check(code, stringify!($cu))
                })
            }
        )*

        $(#[$meta])*
        $visibility const fn $fill(api: &mut rocblas_sys::Api) {
            $(api.$roc = Some($roc);)*
        }
    };
}
pub(crate) use routines;
