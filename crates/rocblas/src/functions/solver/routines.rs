//! The routines of rocSOLVER, each declared once for all scalars and forms.

use num_complex::Complex;
use rocblas_sys::{paste, rocblas_fill, rocblas_int, rocblas_operation};

use super::target::call;
use super::{Called, Form, Operand, RawPivots, Target};
use crate::Result;
use crate::call::slot;

/// The Rust type of an argument.
macro_rules! argument {
    (fill) => { rocblas_fill };
    (op) => { rocblas_operation };
    (size) => { rocblas_int };
    (operand) => { Operand };
    (pivots) => { RawPivots };
    (info) => { *mut rocblas_int };
}

/// Calls the function of one form: `form!(single at, name [] a: operand, info: info)`. Operands and pivots become the
/// arguments that the form has for them, and the forms of batches end with the count.
macro_rules! form {
    (batched $at:ident, $function:ident [$($done:expr,)*] $a:ident: operand $(, $($rest:tt)*)?) => {
        form!(batched $at, $function [$($done,)* $a.pointers(), $a.ld,] $($($rest)*)?)
    };
    (strided $at:ident, $function:ident [$($done:expr,)*] $a:ident: operand $(, $($rest:tt)*)?) => {
        form!(strided $at, $function [$($done,)* $a.elements(), $a.ld, $a.stride,] $($($rest)*)?)
    };
    (single $at:ident, $function:ident [$($done:expr,)*] $a:ident: operand $(, $($rest:tt)*)?) => {
        form!(single $at, $function [$($done,)* $a.elements(), $a.ld,] $($($rest)*)?)
    };
    (single $at:ident, $function:ident [$($done:expr,)*] $p:ident: pivots $(, $($rest:tt)*)?) => {
        form!(single $at, $function [$($done,)* $p.address,] $($($rest)*)?)
    };
    ($form:ident $at:ident, $function:ident [$($done:expr,)*] $p:ident: pivots $(, $($rest:tt)*)?) => {
        form!($form $at, $function [$($done,)* $p.address, $p.stride,] $($($rest)*)?)
    };
    ($form:ident $at:ident, $function:ident [$($done:expr,)*] $other:ident: $kind:ident $(, $($rest:tt)*)?) => {
        form!($form $at, $function [$($done,)* $other,] $($($rest)*)?)
    };
    (single $at:ident, $function:ident [$($done:expr,)*]) => { call!($at, $function($($done),*)) };
    ($form:ident $at:ident, $function:ident [$($done:expr,)*]) => { call!($at, $function($($done,)* $at.count)) };
}

/// The form of the first operand, which is that of all.
macro_rules! form_of {
    ($operand:ident: operand $($rest:tt)*) => { $operand.form };
    ($other:ident: $kind:ident, $($rest:tt)*) => { form_of!($($rest)*) };
}

/// The trait, and its implementation for one scalar after the other.
macro_rules! routines {
    (
        $(#[$doc:meta])* trait $trait:ident for $($scalar:ty: $letter:ident),+;
        $($routine:ident $arguments:tt)+
    ) => {
        $(#[$doc])*
        pub trait $trait {
            $(routines! { @declaration $routine $arguments })+
        }
        routines! { @scalars [$($scalar: $letter),+] $trait { $($routine $arguments)+ } }
    };
    (@scalars [$($scalar:ty: $letter:ident),+] $trait:ident $routines:tt) => {
        $(routines! { @scalar $scalar, $letter, $trait $routines })+
    };
    (@scalar $scalar:ty, $letter:ident, $trait:ident { $($routine:ident $arguments:tt)+ }) => {
        impl $trait for $scalar {
            $(routines! { @definition $letter $routine $arguments })+
        }
    };
    (@declaration $routine:ident ($($argument:ident: $kind:ident),+)) => {
        unsafe fn $routine(at: Target<'_>, $($argument: argument!($kind)),+) -> Result<Called>;
    };
    (@definition $letter:ident $routine:ident ($($argument:ident: $kind:ident),+)) => {
        paste! {
            unsafe fn $routine(at: Target<'_>, $($argument: argument!($kind)),+) -> Result<Called> {
                match form_of!($($argument: $kind),+) {
                    Form::Single => form!(single at, [<rocsolver_ $letter $routine>] [] $($argument: $kind),+),
                    Form::Strided => {
                        form!(strided at, [<rocsolver_ $letter $routine _strided_batched>] [] $($argument: $kind),+)
                    }
                    Form::Batched => form!(batched at, [<rocsolver_ $letter $routine _batched>] [] $($argument: $kind),+),
                }
            }
        }
    };
}

routines! {
    /// rocSOLVER's routines for one scalar, each in the form that its operands have: for one matrix, for batches at a
    /// stride and for batches of pointers. Public in name only: the crate does not export this module.
    ///
    /// # Safety
    ///
    /// Of all functions: the target's handle is alive and of its stream. Operands are of one form and of this scalar,
    /// have as many elements as sizes, distances and the target's count say, share none if they are written,
    /// and may be used on the stream. So may `pivots`, `min(m, n)` integers for each matrix (m = n but for getrf), which
    /// are what a factorisation left if the routine reads them, and `info`, one integer for each matrix.
    trait SolverRoutines for f32: s, f64: d, Complex<f32>: c, Complex<f64>: z;
    potrf(fill: fill, n: size, a: operand, info: info)
    potrs(fill: fill, n: size, nrhs: size, a: operand, b: operand)
    potri(fill: fill, n: size, a: operand, info: info)
    posv(fill: fill, n: size, nrhs: size, a: operand, b: operand, info: info)
    getrf(m: size, n: size, a: operand, pivots: pivots, info: info)
    getrf_npvt(m: size, n: size, a: operand, info: info)
    getrs(op: op, n: size, nrhs: size, a: operand, pivots: pivots, b: operand)
    getri(n: size, a: operand, pivots: pivots, info: info)
    getri_outofplace(n: size, a: operand, pivots: pivots, c: operand, info: info)
    gesv(n: size, nrhs: size, a: operand, pivots: pivots, b: operand, info: info)
}
