use num_complex::Complex;
use rocblas_sys::{rocblas_fill, rocblas_int};

use super::target::call;
use super::{Called, Form, Operand, Target};
use crate::Result;
use crate::call::slot;

/// rocSOLVER's routines for positive-definite matrices, for one scalar, each in the form that its operands have: for
/// one matrix, for batches at a stride and for batches of pointers. Public in name only: the crate does not export this
/// module.
///
/// # Safety
///
/// Of all functions: the target's handle is alive and of its stream. Operands are of one form and of this scalar, have
/// as many elements as sizes, distances and the target's count say, share none if they are written, and may be used on
/// the stream. So may `pivots`, `min(m, n)` integers for each matrix (m = n but for getrf), which are what a
/// factorisation left if the routine reads them, and `info`, one integer for each matrix.
pub trait CholeskyRoutines {
    unsafe fn potrf(
        at: Target<'_>,
        fill: rocblas_fill,
        n: rocblas_int,
        a: Operand,
        info: *mut rocblas_int,
    ) -> Result<Called>;
    unsafe fn potrs(
        at: Target<'_>,
        fill: rocblas_fill,
        n: rocblas_int,
        nrhs: rocblas_int,
        a: Operand,
        b: Operand,
    ) -> Result<Called>;
    unsafe fn potri(
        at: Target<'_>,
        fill: rocblas_fill,
        n: rocblas_int,
        a: Operand,
        info: *mut rocblas_int,
    ) -> Result<Called>;
    unsafe fn posv(
        at: Target<'_>,
        fill: rocblas_fill,
        n: rocblas_int,
        nrhs: rocblas_int,
        a: Operand,
        b: Operand,
        info: *mut rocblas_int,
    ) -> Result<Called>;
}

/// The trait for one scalar: each routine with its three names.
macro_rules! routines {
    (
        $scalar:ty:
        $potrf:ident $potrf_strided:ident $potrf_batched:ident,
        $potrs:ident $potrs_strided:ident $potrs_batched:ident,
        $potri:ident $potri_strided:ident $potri_batched:ident,
        $posv:ident $posv_strided:ident $posv_batched:ident,
    ) => {
        impl CholeskyRoutines for $scalar {
            unsafe fn potrf(
                at: Target<'_>,
                fill: rocblas_fill,
                n: rocblas_int,
                a: Operand,
                info: *mut rocblas_int,
            ) -> Result<Called> {
                match a.form {
                    Form::Single => call!(at, $potrf(fill, n, a.elements(), a.ld, info)),
                    Form::Strided => call!(
                        at,
                        $potrf_strided(fill, n, a.elements(), a.ld, a.stride, info, at.count,)
                    ),
                    Form::Batched => call!(at, $potrf_batched(fill, n, a.pointers(), a.ld, info, at.count)),
                }
            }

            unsafe fn potrs(
                at: Target<'_>,
                fill: rocblas_fill,
                n: rocblas_int,
                nrhs: rocblas_int,
                a: Operand,
                b: Operand,
            ) -> Result<Called> {
                match a.form {
                    Form::Single => call!(at, $potrs(fill, n, nrhs, a.elements(), a.ld, b.elements(), b.ld,)),
                    Form::Strided => call!(
                        at,
                        $potrs_strided(
                            fill,
                            n,
                            nrhs,
                            a.elements(),
                            a.ld,
                            a.stride,
                            b.elements(),
                            b.ld,
                            b.stride,
                            at.count,
                        )
                    ),
                    Form::Batched => call!(
                        at,
                        $potrs_batched(fill, n, nrhs, a.pointers(), a.ld, b.pointers(), b.ld, at.count)
                    ),
                }
            }

            unsafe fn potri(
                at: Target<'_>,
                fill: rocblas_fill,
                n: rocblas_int,
                a: Operand,
                info: *mut rocblas_int,
            ) -> Result<Called> {
                match a.form {
                    Form::Single => call!(at, $potri(fill, n, a.elements(), a.ld, info)),
                    Form::Strided => call!(
                        at,
                        $potri_strided(fill, n, a.elements(), a.ld, a.stride, info, at.count,)
                    ),
                    Form::Batched => call!(at, $potri_batched(fill, n, a.pointers(), a.ld, info, at.count)),
                }
            }

            unsafe fn posv(
                at: Target<'_>,
                fill: rocblas_fill,
                n: rocblas_int,
                nrhs: rocblas_int,
                a: Operand,
                b: Operand,
                info: *mut rocblas_int,
            ) -> Result<Called> {
                match a.form {
                    Form::Single => call!(
                        at,
                        $posv(fill, n, nrhs, a.elements(), a.ld, b.elements(), b.ld, info,)
                    ),
                    Form::Strided => call!(
                        at,
                        $posv_strided(
                            fill,
                            n,
                            nrhs,
                            a.elements(),
                            a.ld,
                            a.stride,
                            b.elements(),
                            b.ld,
                            b.stride,
                            info,
                            at.count,
                        )
                    ),
                    Form::Batched => call!(
                        at,
                        $posv_batched(
                            fill,
                            n,
                            nrhs,
                            a.pointers(),
                            a.ld,
                            b.pointers(),
                            b.ld,
                            info,
                            at.count
                        )
                    ),
                }
            }
        }
    };
}

routines! {
    f32:
    rocsolver_spotrf rocsolver_spotrf_strided_batched rocsolver_spotrf_batched,
    rocsolver_spotrs rocsolver_spotrs_strided_batched rocsolver_spotrs_batched,
    rocsolver_spotri rocsolver_spotri_strided_batched rocsolver_spotri_batched,
    rocsolver_sposv rocsolver_sposv_strided_batched rocsolver_sposv_batched,
}

routines! {
    f64:
    rocsolver_dpotrf rocsolver_dpotrf_strided_batched rocsolver_dpotrf_batched,
    rocsolver_dpotrs rocsolver_dpotrs_strided_batched rocsolver_dpotrs_batched,
    rocsolver_dpotri rocsolver_dpotri_strided_batched rocsolver_dpotri_batched,
    rocsolver_dposv rocsolver_dposv_strided_batched rocsolver_dposv_batched,
}

routines! {
    Complex<f32>:
    rocsolver_cpotrf rocsolver_cpotrf_strided_batched rocsolver_cpotrf_batched,
    rocsolver_cpotrs rocsolver_cpotrs_strided_batched rocsolver_cpotrs_batched,
    rocsolver_cpotri rocsolver_cpotri_strided_batched rocsolver_cpotri_batched,
    rocsolver_cposv rocsolver_cposv_strided_batched rocsolver_cposv_batched,
}

routines! {
    Complex<f64>:
    rocsolver_zpotrf rocsolver_zpotrf_strided_batched rocsolver_zpotrf_batched,
    rocsolver_zpotrs rocsolver_zpotrs_strided_batched rocsolver_zpotrs_batched,
    rocsolver_zpotri rocsolver_zpotri_strided_batched rocsolver_zpotri_batched,
    rocsolver_zposv rocsolver_zposv_strided_batched rocsolver_zposv_batched,
}
