//! How the routines of cuBLAS become routines of rocBLAS.

/// Defines families of rocBLAS' C functions, each on the cuBLAS function with the same arguments, and a function that
/// fills their slots.
///
/// An entry names the letters, the routine, its forms and what cuBLAS calls the plain form after the letters; the
/// arguments are those of [`rocblas_sys::family!`], without the handle. All families have sizes of 32 and of 64 bits.
///
/// `nothing` says when there is nothing to do: then the function returns success without checking a pointer, as in
/// rocBLAS. `needs` lists the pointers that must not be null otherwise: cuBLAS would pass them to a kernel.
macro_rules! routines {
    (
        $(#[$meta:meta])*
        $visibility:vis fn $fill:ident;
        $(
            $letters:tt $routine:ident $forms:tt = $plain:literal $arguments:tt
            nothing if $nothing:expr, needs $($needed:ident)*;
        )*
    ) => {
        $(#[$meta])*
        $visibility const fn $fill(api: &mut rocblas_sys::Api) {
            use $crate::blas::routine::on_cublas;
            $(rocblas_sys::family! { on_cublas (api $plain);
                rocblas_ $letters [$routine] $forms [32 64] $arguments { ($nothing) $($needed)* }
            })*
        }
    };
}
pub(crate) use routines;

/// Defines one function and fills its slot.
macro_rules! on_cublas {
    (
        ($api:ident $plain:literal) $roc:ident ($form:ident $letters:ident $routine:ident $size:tt) { $($types:tt)* }
        ($($argument:ident: $ty:ty),* $(,)?) [$($binding:tt)*] { ($nothing:expr) $($needed:ident)* }
    ) => {
        $api.$roc = Some({
            $($types)*
            #[allow(unused_variables, clippy::too_many_arguments, reason = "a C function")]
            unsafe extern "C" fn $roc(
                handle: rocblas_sys::rocblas_handle,
                $($argument: $ty),*
            ) -> rocblas_sys::rocblas_status {
                use $crate::blas::convert::{Argument, Room, is_scalar};
                use $crate::blas::handle::{Handle, Raw};
                use $crate::cuda::{Symbol, c_name};
                $($crate::blas::routine::one_batch!($binding);)*
                $crate::blas::entry(|| {
                    const NAME: &str = $crate::blas::routine::cublas_name!($size $letters $form $routine $plain);
                    static CUDA: Symbol = Symbol::new(c_name(concat!(
                        $crate::blas::routine::cublas_name!($size $letters $form $routine $plain), "\0"
                    )));
                    // SAFETY: a live handle by the C caller's promise, or null, which is refused.
                    let handle = unsafe { Handle::of(handle) }?;
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
                            unsafe extern "C" fn(Raw, $(<$ty as Argument>::Cuda),*) -> std::ffi::c_uint,
                        >(found)
                    };
                    handle.begin()?;
                    let on_host = handle.scalars_on_host();
                    $(
                        // Each name stands for its own room until the call is over.
                        let mut room = Room::default();
                        // SAFETY: the pointer mode says that scalars are the host's; the room lives to the end of this
                        // function.
                        let $argument = unsafe {
                            $argument.staged(on_host && is_scalar(stringify!($argument)), &mut room)
                        };
                    )*
                    // SAFETY: the C caller's promise to rocBLAS is what cuBLAS demands.
                    let code = unsafe { function(handle.raw(), $(<$ty as Argument>::cuda($argument)?),*) };
                    $crate::blas::check(code, NAME)
                })
            }
            $roc
        });
    };
}
pub(crate) use on_cublas;

/// The name of a function in cuBLAS.
macro_rules! cublas_name {
    (64 $($rest:tt)*) => {
        concat!($crate::blas::routine::cublas_name!(32 $($rest)*), "_64")
    };
    (32 $letters:ident $($rest:tt)*) => {
        rocblas_sys::paste! {
            concat!("cublas", stringify!([<$letters:camel>]), $crate::blas::routine::cublas_name!($($rest)*))
        }
    };
    (plain $routine:ident $plain:literal) => {
        $plain
    };
    (batched $routine:ident $plain:literal) => {
        concat!(stringify!($routine), "Batched")
    };
    (strided $routine:ident $plain:literal) => {
        concat!(stringify!($routine), "StridedBatched")
    };
}
pub(crate) use cublas_name;

/// Without a batch there is one matrix.
macro_rules! one_batch {
    ((batch one $batch:ident)) => {
        let $batch: I = 1;
    };
    ($other:tt) => {};
}
pub(crate) use one_batch;

#[cfg(test)]
mod tests {
    #[test]
    fn a_function_of_cublas_is_named_after_its_letters_form_and_size() {
        assert_eq!(cublas_name!(32 z plain gemm "gemm_v2"), "cublasZgemm_v2");
        assert_eq!(cublas_name!(64 dz plain nrm2 "nrm2_v2"), "cublasDznrm2_v2_64");
        assert_eq!(cublas_name!(32 s batched trsm "trsm_v2"), "cublasStrsmBatched");
        assert_eq!(
            cublas_name!(64 c strided gemv "gemv_v2"),
            "cublasCgemvStridedBatched_64"
        );
    }
}
