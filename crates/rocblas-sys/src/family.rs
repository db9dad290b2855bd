//! Families of functions, which differ only by element type, size type and the way a batch is passed, declared once.

/// Hands each C function of a family to the macro `$with`.
///
/// ~~~text
/// rocblas_sys::family! { define api;
///     rocblas_ [s d c z] [gemm] [plain batched strided_batched] [32 64]
///     (handle: rocblas_handle, m: I, alpha: *const T, a: *const operand(lda: I), count: batch)
///     { gemm::<T, I>(handle, m, alpha, a, lda, count) }
/// }
/// ~~~
///
/// The lists hold what the names are made of, in its order: this is `rocblas_sgemm` and all others up to
/// `rocblas_zgemm_strided_batched_64`. `context` is one token, or several in brackets.
///
/// | list | holds |
/// |---|---|
/// | types | the letters that stand before the routine's name, or `any` for functions whose elements are `c_void` |
/// | routines | names of routines with one signature |
/// | forms | `plain`, `batched` (by an array of pointers), `strided_batched`; each also with `_ex` behind it |
/// | sizes | `32`: `rocblas_int`; `64`: `i64`, and `_64` ends the name |
///
/// In the arguments and the body, `T` is the element's type in C, `R` its real part's and `I` the size's. These
/// arguments depend on the form:
///
/// | declared | plain | batched | strided batched |
/// |---|---|---|---|
/// | `a: *const operand(lda: I)` | `a: *const T, lda: I` | `a: *const *const T, lda: I` | as plain, and a stride |
/// | `a: *const untyped(lda: I)` | `a: *const T, lda: I` | as plain | as plain, and a stride |
/// | `p: *mut pivots` | `p: *mut I` | as plain, and a stride | as plain, and a stride |
/// | `count: batch` | none | `count: I` | `count: I` |
///
/// The call is `$with! { context symbol (form letters routine size) { types } (arguments) [bindings] body }`. The types
/// are the definitions of `T`, `R` and `I`. The bindings say what each argument of the table is in this form, so that
/// `$with` can give the body the same under its name in every form: `(operand plain a)`, `(operand batched a)`,
/// `(operand strided a stride)`, the same of `untyped`, `(pivots plain p)`, `(pivots strided p stride)`,
/// `(batch one count)`, `(batch given count)`.
#[macro_export]
macro_rules! family {
    (
        $with:ident $context:tt;
        $library:ident $types:tt $routines:tt [$($form:ident)*] $sizes:tt $arguments:tt $body:tt
    ) => {
        $($crate::family_form! { $form $arguments { $with $context $library $types $routines $sizes $body } })*
    };
}

/// What a form adds to the name.
#[doc(hidden)]
#[macro_export]
macro_rules! family_form {
    (plain $($rest:tt)*) => { $crate::family_arguments! { plain [] [] [] $($rest)* } };
    (batched $($rest:tt)*) => { $crate::family_arguments! { batched [_batched] [] [] $($rest)* } };
    (strided_batched $($rest:tt)*) => { $crate::family_arguments! { strided [_strided_batched] [] [] $($rest)* } };
    (plain_ex $($rest:tt)*) => { $crate::family_arguments! { plain [_ex] [] [] $($rest)* } };
    (batched_ex $($rest:tt)*) => { $crate::family_arguments! { batched [_batched_ex] [] [] $($rest)* } };
    (strided_batched_ex $($rest:tt)*) => {
        $crate::family_arguments! { strided [_strided_batched_ex] [] [] $($rest)* }
    };
}

/// The arguments of one form, which are taken off the list one by one, and their bindings.
#[doc(hidden)]
#[macro_export]
macro_rules! family_arguments {
    (
        @done $form:ident $suffix:tt $arguments:tt $bindings:tt
        { $with:ident $context:tt $library:ident $letters:tt $routines:tt $sizes:tt $body:tt }
    ) => {
        $crate::family_names! {
            @letters $letters $routines $sizes
            { $with $context $library $form $suffix $arguments $bindings $body }
        }
    };
    ($form:ident $suffix:tt [$($done:tt)*] $bindings:tt () $rest:tt) => {
        $crate::family_arguments! { @done $form $suffix ($($done)*) $bindings $rest }
    };
    (
        batched $suffix:tt [$($done:tt)*] [$($binding:tt)*]
        ($name:ident: *$access:tt operand($($with:tt)*) $(, $($more:tt)*)?) $rest:tt
    ) => {
        $crate::family_arguments! {
            batched $suffix [$($done)* $name: *const *$access T, $($with)*,] [$($binding)* (operand batched $name)]
            ($($($more)*)?) $rest
        }
    };
    (
        strided $suffix:tt [$($done:tt)*] [$($binding:tt)*]
        ($name:ident: *$access:tt $kind:ident($($with:tt)*) $(, $($more:tt)*)?) $rest:tt
    ) => {
        $crate::family_arguments! {
            strided $suffix [$($done)* $name: *$access T, $($with)*, stride: $crate::rocblas_stride,]
            [$($binding)* ($kind strided $name stride)]
            ($($($more)*)?) $rest
        }
    };
    (
        $form:ident $suffix:tt [$($done:tt)*] [$($binding:tt)*]
        ($name:ident: *$access:tt $kind:ident($($with:tt)*) $(, $($more:tt)*)?) $rest:tt
    ) => {
        $crate::family_arguments! {
            $form $suffix [$($done)* $name: *$access T, $($with)*,] [$($binding)* ($kind $form $name)]
            ($($($more)*)?) $rest
        }
    };
    (
        plain $suffix:tt [$($done:tt)*] [$($binding:tt)*]
        ($name:ident: *$access:tt pivots $(, $($more:tt)*)?) $rest:tt
    ) => {
        $crate::family_arguments! {
            plain $suffix [$($done)* $name: *$access I,] [$($binding)* (pivots plain $name)] ($($($more)*)?) $rest
        }
    };
    (
        $form:ident $suffix:tt [$($done:tt)*] [$($binding:tt)*]
        ($name:ident: *$access:tt pivots $(, $($more:tt)*)?) $rest:tt
    ) => {
        $crate::family_arguments! {
            $form $suffix [$($done)* $name: *$access I, stride: $crate::rocblas_stride,]
            [$($binding)* (pivots strided $name stride)] ($($($more)*)?) $rest
        }
    };
    (plain $suffix:tt $done:tt [$($binding:tt)*] ($name:ident: batch $(, $($more:tt)*)?) $rest:tt) => {
        $crate::family_arguments! { plain $suffix $done [$($binding)* (batch one $name)] ($($($more)*)?) $rest }
    };
    ($form:ident $suffix:tt [$($done:tt)*] [$($binding:tt)*] ($name:ident: batch $(, $($more:tt)*)?) $rest:tt) => {
        $crate::family_arguments! {
            $form $suffix [$($done)* $name: I,] [$($binding)* (batch given $name)] ($($($more)*)?) $rest
        }
    };
    ($form:ident $suffix:tt [$($done:tt)*] $bindings:tt ($name:ident: $ty:ty $(, $($more:tt)*)?) $rest:tt) => {
        $crate::family_arguments! { $form $suffix [$($done)* $name: $ty,] $bindings ($($($more)*)?) $rest }
    };
}

/// Every combination of letters, routine and size, for one form.
#[doc(hidden)]
#[macro_export]
macro_rules! family_names {
    (@letters [$($letters:ident)*] $routines:tt $sizes:tt $rest:tt) => {
        $($crate::family_names! { @routines $letters $routines $sizes $rest })*
    };
    (@routines $letters:ident [$($routine:ident)*] $sizes:tt $rest:tt) => {
        $($crate::family_names! { @sizes $letters $routine $sizes $rest })*
    };
    (@sizes $letters:ident $routine:ident [$($size:tt)*] $rest:tt) => {
        $($crate::family_names! { @size $size $letters $routine $rest })*
    };
    (@size 32 $letters:ident $($rest:tt)*) => {
        $crate::family_names! { @first $letters 32 [] ($crate::rocblas_int) $($rest)* }
    };
    (@size 64 $letters:ident $($rest:tt)*) => {
        $crate::family_names! { @first $letters 64 [_64] (i64) $($rest)* }
    };
    (@first any $($rest:tt)*) => { $crate::family_names! { @function any [] $($rest)* } };
    (@first $letters:ident $($rest:tt)*) => { $crate::family_names! { @function $letters [$letters] $($rest)* } };
    (
        @function $letters:ident [$($first:ident)?] $size:tt [$($last:ident)?] ($int:ty) $routine:ident
        { $with:ident $context:tt $library:ident $form:ident [$($middle:ident)?] $arguments:tt $bindings:tt $body:tt }
    ) => {
        $crate::paste! {
            $with! {
                $context [<$library $($first)? $routine $($middle)? $($last)?>] ($form $letters $routine $size)
                {
                    #[allow(dead_code, reason = "not all are in every signature")]
                    type T = $crate::family_element!($letters);
                    #[allow(dead_code, reason = "as above")]
                    type R = $crate::family_real!($letters);
                    #[allow(dead_code, reason = "as above")]
                    type I = $int;
                }
                $arguments $bindings $body
            }
        }
    };
}

/// The C type that letters stand for.
#[doc(hidden)]
#[macro_export]
#[rustfmt::skip]
macro_rules! family_element {
    (any) => { ::core::ffi::c_void };
    (s) => { f32 };
    (d) => { f64 };
    (c) => { $crate::rocblas_float_complex };
    (z) => { $crate::rocblas_double_complex };
    (is) => { f32 };
    (id) => { f64 };
    (ic) => { $crate::rocblas_float_complex };
    (iz) => { $crate::rocblas_double_complex };
    (sc) => { $crate::rocblas_float_complex };
    (dz) => { $crate::rocblas_double_complex };
    (cs) => { $crate::rocblas_float_complex };
    (zd) => { $crate::rocblas_double_complex };
}

/// The type of its real part.
#[doc(hidden)]
#[macro_export]
#[rustfmt::skip]
macro_rules! family_real {
    (any) => { ::core::ffi::c_void };
    (s) => { f32 };
    (d) => { f64 };
    (c) => { f32 };
    (z) => { f64 };
    (is) => { f32 };
    (id) => { f64 };
    (ic) => { f32 };
    (iz) => { f64 };
    (sc) => { f32 };
    (dz) => { f64 };
    (cs) => { f32 };
    (zd) => { f64 };
}
