use num_complex::Complex;
use rocblas_sys::{rocblas_int, rocblas_operation};

use super::target::call;
use super::{Called, Form, Operand, RawPivots, Target};
use crate::Result;
use crate::call::slot;

/// rocSOLVER's routines for general matrices, for one scalar, each in the form that its operands have: for one matrix,
/// for batches at a stride and for batches of pointers. Public in name only: the crate does not export this module.
///
/// # Safety
///
/// Of all functions: the target's handle is alive and of its stream. Operands are of one form and of this scalar, have
/// as many elements as sizes, distances and the target's count say, share none if they are written, and may be used on
/// the stream. So may `pivots`, `min(m, n)` integers for each matrix (m = n but for getrf), which are what a
/// factorisation left if the routine reads them, and `info`, one integer for each matrix.
pub trait LuRoutines {
    unsafe fn getrf(
        at: Target<'_>,
        m: rocblas_int,
        n: rocblas_int,
        a: Operand,
        pivots: RawPivots,
        info: *mut rocblas_int,
    ) -> Result<Called>;
    unsafe fn getrf_npvt(
        at: Target<'_>,
        m: rocblas_int,
        n: rocblas_int,
        a: Operand,
        info: *mut rocblas_int,
    ) -> Result<Called>;
    unsafe fn getrs(
        at: Target<'_>,
        op: rocblas_operation,
        n: rocblas_int,
        nrhs: rocblas_int,
        a: Operand,
        pivots: RawPivots,
        b: Operand,
    ) -> Result<Called>;
    unsafe fn getri(
        at: Target<'_>,
        n: rocblas_int,
        a: Operand,
        pivots: RawPivots,
        info: *mut rocblas_int,
    ) -> Result<Called>;
    unsafe fn getri_outofplace(
        at: Target<'_>,
        n: rocblas_int,
        a: Operand,
        pivots: RawPivots,
        c: Operand,
        info: *mut rocblas_int,
    ) -> Result<Called>;
    unsafe fn gesv(
        at: Target<'_>,
        n: rocblas_int,
        nrhs: rocblas_int,
        a: Operand,
        pivots: RawPivots,
        b: Operand,
        info: *mut rocblas_int,
    ) -> Result<Called>;
}

/// The trait for one scalar: each routine with its three names.
macro_rules! routines {
    (
        $scalar:ty:
        $getrf:ident $getrf_strided:ident $getrf_batched:ident,
        $getrf_npvt:ident $getrf_npvt_strided:ident $getrf_npvt_batched:ident,
        $getrs:ident $getrs_strided:ident $getrs_batched:ident,
        $getri:ident $getri_strided:ident $getri_batched:ident,
        $getri_outofplace:ident $getri_outofplace_strided:ident $getri_outofplace_batched:ident,
        $gesv:ident $gesv_strided:ident $gesv_batched:ident,
    ) => {
        impl LuRoutines for $scalar {
            unsafe fn getrf(
                at: Target<'_>,
                m: rocblas_int,
                n: rocblas_int,
                a: Operand,
                p: RawPivots,
                info: *mut rocblas_int,
            ) -> Result<Called> {
                match a.form {
                    Form::Single => call!(at, $getrf(m, n, a.elements(), a.ld, p.address, info)),
                    Form::Strided => call!(
                        at,
                        $getrf_strided(
                            m,
                            n,
                            a.elements(),
                            a.ld,
                            a.stride,
                            p.address,
                            p.stride,
                            info,
                            at.count,
                        )
                    ),
                    Form::Batched => call!(
                        at,
                        $getrf_batched(m, n, a.pointers(), a.ld, p.address, p.stride, info, at.count)
                    ),
                }
            }

            unsafe fn getrf_npvt(
                at: Target<'_>,
                m: rocblas_int,
                n: rocblas_int,
                a: Operand,
                info: *mut rocblas_int,
            ) -> Result<Called> {
                match a.form {
                    Form::Single => call!(at, $getrf_npvt(m, n, a.elements(), a.ld, info)),
                    Form::Strided => call!(
                        at,
                        $getrf_npvt_strided(m, n, a.elements(), a.ld, a.stride, info, at.count,)
                    ),
                    Form::Batched => call!(at, $getrf_npvt_batched(m, n, a.pointers(), a.ld, info, at.count)),
                }
            }

            unsafe fn getrs(
                at: Target<'_>,
                op: rocblas_operation,
                n: rocblas_int,
                nrhs: rocblas_int,
                a: Operand,
                p: RawPivots,
                b: Operand,
            ) -> Result<Called> {
                match a.form {
                    Form::Single => call!(
                        at,
                        $getrs(op, n, nrhs, a.elements(), a.ld, p.address, b.elements(), b.ld,)
                    ),
                    Form::Strided => call!(
                        at,
                        $getrs_strided(
                            op,
                            n,
                            nrhs,
                            a.elements(),
                            a.ld,
                            a.stride,
                            p.address,
                            p.stride,
                            b.elements(),
                            b.ld,
                            b.stride,
                            at.count,
                        )
                    ),
                    Form::Batched => call!(
                        at,
                        $getrs_batched(
                            op,
                            n,
                            nrhs,
                            a.pointers(),
                            a.ld,
                            p.address,
                            p.stride,
                            b.pointers(),
                            b.ld,
                            at.count
                        )
                    ),
                }
            }

            unsafe fn getri(
                at: Target<'_>,
                n: rocblas_int,
                a: Operand,
                p: RawPivots,
                info: *mut rocblas_int,
            ) -> Result<Called> {
                match a.form {
                    Form::Single => call!(at, $getri(n, a.elements(), a.ld, p.address, info)),
                    Form::Strided => call!(
                        at,
                        $getri_strided(
                            n,
                            a.elements(),
                            a.ld,
                            a.stride,
                            p.address,
                            p.stride,
                            info,
                            at.count,
                        )
                    ),
                    Form::Batched => call!(
                        at,
                        $getri_batched(n, a.pointers(), a.ld, p.address, p.stride, info, at.count)
                    ),
                }
            }

            unsafe fn getri_outofplace(
                at: Target<'_>,
                n: rocblas_int,
                a: Operand,
                p: RawPivots,
                c: Operand,
                info: *mut rocblas_int,
            ) -> Result<Called> {
                match a.form {
                    Form::Single => call!(
                        at,
                        $getri_outofplace(n, a.elements(), a.ld, p.address, c.elements(), c.ld, info,)
                    ),
                    Form::Strided => call!(
                        at,
                        $getri_outofplace_strided(
                            n,
                            a.elements(),
                            a.ld,
                            a.stride,
                            p.address,
                            p.stride,
                            c.elements(),
                            c.ld,
                            c.stride,
                            info,
                            at.count,
                        )
                    ),
                    Form::Batched => call!(
                        at,
                        $getri_outofplace_batched(
                            n,
                            a.pointers(),
                            a.ld,
                            p.address,
                            p.stride,
                            c.pointers(),
                            c.ld,
                            info,
                            at.count
                        )
                    ),
                }
            }

            unsafe fn gesv(
                at: Target<'_>,
                n: rocblas_int,
                nrhs: rocblas_int,
                a: Operand,
                p: RawPivots,
                b: Operand,
                info: *mut rocblas_int,
            ) -> Result<Called> {
                match a.form {
                    Form::Single => call!(
                        at,
                        $gesv(n, nrhs, a.elements(), a.ld, p.address, b.elements(), b.ld, info,)
                    ),
                    Form::Strided => call!(
                        at,
                        $gesv_strided(
                            n,
                            nrhs,
                            a.elements(),
                            a.ld,
                            a.stride,
                            p.address,
                            p.stride,
                            b.elements(),
                            b.ld,
                            b.stride,
                            info,
                            at.count,
                        )
                    ),
                    Form::Batched => call!(
                        at,
                        $gesv_batched(
                            n,
                            nrhs,
                            a.pointers(),
                            a.ld,
                            p.address,
                            p.stride,
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
    rocsolver_sgetrf rocsolver_sgetrf_strided_batched rocsolver_sgetrf_batched,
    rocsolver_sgetrf_npvt rocsolver_sgetrf_npvt_strided_batched rocsolver_sgetrf_npvt_batched,
    rocsolver_sgetrs rocsolver_sgetrs_strided_batched rocsolver_sgetrs_batched,
    rocsolver_sgetri rocsolver_sgetri_strided_batched rocsolver_sgetri_batched,
    rocsolver_sgetri_outofplace rocsolver_sgetri_outofplace_strided_batched rocsolver_sgetri_outofplace_batched,
    rocsolver_sgesv rocsolver_sgesv_strided_batched rocsolver_sgesv_batched,
}

routines! {
    f64:
    rocsolver_dgetrf rocsolver_dgetrf_strided_batched rocsolver_dgetrf_batched,
    rocsolver_dgetrf_npvt rocsolver_dgetrf_npvt_strided_batched rocsolver_dgetrf_npvt_batched,
    rocsolver_dgetrs rocsolver_dgetrs_strided_batched rocsolver_dgetrs_batched,
    rocsolver_dgetri rocsolver_dgetri_strided_batched rocsolver_dgetri_batched,
    rocsolver_dgetri_outofplace rocsolver_dgetri_outofplace_strided_batched rocsolver_dgetri_outofplace_batched,
    rocsolver_dgesv rocsolver_dgesv_strided_batched rocsolver_dgesv_batched,
}

routines! {
    Complex<f32>:
    rocsolver_cgetrf rocsolver_cgetrf_strided_batched rocsolver_cgetrf_batched,
    rocsolver_cgetrf_npvt rocsolver_cgetrf_npvt_strided_batched rocsolver_cgetrf_npvt_batched,
    rocsolver_cgetrs rocsolver_cgetrs_strided_batched rocsolver_cgetrs_batched,
    rocsolver_cgetri rocsolver_cgetri_strided_batched rocsolver_cgetri_batched,
    rocsolver_cgetri_outofplace rocsolver_cgetri_outofplace_strided_batched rocsolver_cgetri_outofplace_batched,
    rocsolver_cgesv rocsolver_cgesv_strided_batched rocsolver_cgesv_batched,
}

routines! {
    Complex<f64>:
    rocsolver_zgetrf rocsolver_zgetrf_strided_batched rocsolver_zgetrf_batched,
    rocsolver_zgetrf_npvt rocsolver_zgetrf_npvt_strided_batched rocsolver_zgetrf_npvt_batched,
    rocsolver_zgetrs rocsolver_zgetrs_strided_batched rocsolver_zgetrs_batched,
    rocsolver_zgetri rocsolver_zgetri_strided_batched rocsolver_zgetri_batched,
    rocsolver_zgetri_outofplace rocsolver_zgetri_outofplace_strided_batched rocsolver_zgetri_outofplace_batched,
    rocsolver_zgesv rocsolver_zgesv_strided_batched rocsolver_zgesv_batched,
}
