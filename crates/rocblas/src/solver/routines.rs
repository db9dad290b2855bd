use hip::Stream;
use num_complex::Complex;
use rocblas_sys::{rocblas_fill, rocblas_handle, rocblas_int, rocblas_operation, rocblas_status};

use super::matrices::{Form, Operand};
use super::pivots::RawPivots;
use crate::Result;
use crate::call::slot;

/// Where a routine is called: the same for all of its forms.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub(super) api: &'a rocsolver_sys::Api,
    pub(super) handle: rocblas_handle,
    pub(super) stream: &'a Stream,
    /// Matrices of a batch; the form for one matrix does not use it.
    pub(super) count: rocblas_int,
}

/// The C function that was called, and what it returned.
pub type Called = (&'static str, rocblas_status);

/// rocSOLVER's routines for one scalar, each in the form that its operands have. Public in name only: the crate does not
/// export this module.
///
/// # Safety
///
/// Of all functions: the target's handle is alive and of its stream. Operands are of one form and of this scalar, have as many
/// elements as sizes, distances and the target's count say, share none if they are written, and may be used on the stream. So may
/// `pivots`, `min(m, n)` integers for each matrix (m = n but for getrf), which are what a factorisation left if the routine
/// reads them, and `info`, one integer for each matrix.
pub trait Routines {
    /// The instance of the kernel in mirror.hip.
    const MIRROR: &'static str;

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

/// Calls the function of this name on the stream's device.
macro_rules! call {
    ($at:ident, $name:ident($($argument:expr),* $(,)?)) => {{
        let function = slot($at.api.$name, stringify!($name))?;
        $at.stream.device().make_current()?;
        // SAFETY: the caller's promise is the callee's demand.
        let status = unsafe { function($at.handle, $($argument),*) };
        Ok((stringify!($name), status))
    }};
}

/// The trait for one scalar: each routine with its names, for one matrix and for strided batches.
macro_rules! routines {
    (
        $scalar:ty, $mirror:literal:
        $getrf:ident $getrf_strided:ident,
        $getrf_npvt:ident $getrf_npvt_strided:ident,
        $getrs:ident $getrs_strided:ident,
        $getri:ident $getri_strided:ident,
        $getri_outofplace:ident $getri_outofplace_strided:ident,
        $gesv:ident $gesv_strided:ident,
        $potrf:ident $potrf_strided:ident,
        $potrs:ident $potrs_strided:ident,
        $potri:ident $potri_strided:ident,
        $posv:ident $posv_strided:ident,
    ) => {
        impl Routines for $scalar {
            const MIRROR: &'static str = $mirror;

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
                        $getrs(
                            op,
                            n,
                            nrhs,
                            a.elements(),
                            a.ld,
                            p.address,
                            b.elements(),
                            b.ld,
                        )
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
                        $getri_outofplace(
                            n,
                            a.elements(),
                            a.ld,
                            p.address,
                            c.elements(),
                            c.ld,
                            info,
                        )
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
                        $gesv(
                            n,
                            nrhs,
                            a.elements(),
                            a.ld,
                            p.address,
                            b.elements(),
                            b.ld,
                            info,
                        )
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
                }
            }

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
                    Form::Single => call!(
                        at,
                        $potrs(fill, n, nrhs, a.elements(), a.ld, b.elements(), b.ld,)
                    ),
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
                }
            }
        }
    };
}

routines! {
    f32, "mirror<float>":
    rocsolver_sgetrf rocsolver_sgetrf_strided_batched,
    rocsolver_sgetrf_npvt rocsolver_sgetrf_npvt_strided_batched,
    rocsolver_sgetrs rocsolver_sgetrs_strided_batched,
    rocsolver_sgetri rocsolver_sgetri_strided_batched,
    rocsolver_sgetri_outofplace rocsolver_sgetri_outofplace_strided_batched,
    rocsolver_sgesv rocsolver_sgesv_strided_batched,
    rocsolver_spotrf rocsolver_spotrf_strided_batched,
    rocsolver_spotrs rocsolver_spotrs_strided_batched,
    rocsolver_spotri rocsolver_spotri_strided_batched,
    rocsolver_sposv rocsolver_sposv_strided_batched,
}

routines! {
    f64, "mirror<double>":
    rocsolver_dgetrf rocsolver_dgetrf_strided_batched,
    rocsolver_dgetrf_npvt rocsolver_dgetrf_npvt_strided_batched,
    rocsolver_dgetrs rocsolver_dgetrs_strided_batched,
    rocsolver_dgetri rocsolver_dgetri_strided_batched,
    rocsolver_dgetri_outofplace rocsolver_dgetri_outofplace_strided_batched,
    rocsolver_dgesv rocsolver_dgesv_strided_batched,
    rocsolver_dpotrf rocsolver_dpotrf_strided_batched,
    rocsolver_dpotrs rocsolver_dpotrs_strided_batched,
    rocsolver_dpotri rocsolver_dpotri_strided_batched,
    rocsolver_dposv rocsolver_dposv_strided_batched,
}

routines! {
    Complex<f32>, "mirror<complex<float>>":
    rocsolver_cgetrf rocsolver_cgetrf_strided_batched,
    rocsolver_cgetrf_npvt rocsolver_cgetrf_npvt_strided_batched,
    rocsolver_cgetrs rocsolver_cgetrs_strided_batched,
    rocsolver_cgetri rocsolver_cgetri_strided_batched,
    rocsolver_cgetri_outofplace rocsolver_cgetri_outofplace_strided_batched,
    rocsolver_cgesv rocsolver_cgesv_strided_batched,
    rocsolver_cpotrf rocsolver_cpotrf_strided_batched,
    rocsolver_cpotrs rocsolver_cpotrs_strided_batched,
    rocsolver_cpotri rocsolver_cpotri_strided_batched,
    rocsolver_cposv rocsolver_cposv_strided_batched,
}

routines! {
    Complex<f64>, "mirror<complex<double>>":
    rocsolver_zgetrf rocsolver_zgetrf_strided_batched,
    rocsolver_zgetrf_npvt rocsolver_zgetrf_npvt_strided_batched,
    rocsolver_zgetrs rocsolver_zgetrs_strided_batched,
    rocsolver_zgetri rocsolver_zgetri_strided_batched,
    rocsolver_zgetri_outofplace rocsolver_zgetri_outofplace_strided_batched,
    rocsolver_zgesv rocsolver_zgesv_strided_batched,
    rocsolver_zpotrf rocsolver_zpotrf_strided_batched,
    rocsolver_zpotrs rocsolver_zpotrs_strided_batched,
    rocsolver_zpotri rocsolver_zpotri_strided_batched,
    rocsolver_zposv rocsolver_zposv_strided_batched,
}
