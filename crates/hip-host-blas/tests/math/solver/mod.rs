//! rocSOLVER: the functions, and what the tests of general and of positive definite matrices share.

use proptest::prelude::*;
use rocblas_sys::{rocblas_fill, rocblas_operation, rocblas_stride};

use crate::functions::families;
use crate::matrix::{Op, element, inside, op};
use crate::memory::{Buffer, Pointers};
use crate::number::{C64, Int, Number, numbers};

type Trans = rocblas_operation;
type Fill = rocblas_fill;
type Stride = rocblas_stride;

families! { Solver from SOLVER:
    getrf(I, I, *mut Self, I, *mut I, *mut I) =
        rocsolver_sgetrf rocsolver_dgetrf rocsolver_cgetrf rocsolver_zgetrf;
        rocsolver_sgetrf_64 rocsolver_dgetrf_64 rocsolver_cgetrf_64 rocsolver_zgetrf_64;
    getrf_strided(I, I, *mut Self, I, Stride, *mut I, Stride, *mut I, I) =
        rocsolver_sgetrf_strided_batched rocsolver_dgetrf_strided_batched rocsolver_cgetrf_strided_batched rocsolver_zgetrf_strided_batched;
        rocsolver_sgetrf_strided_batched_64 rocsolver_dgetrf_strided_batched_64 rocsolver_cgetrf_strided_batched_64 rocsolver_zgetrf_strided_batched_64;
    getrf_batched(I, I, *const *mut Self, I, *mut I, Stride, *mut I, I) =
        rocsolver_sgetrf_batched rocsolver_dgetrf_batched rocsolver_cgetrf_batched rocsolver_zgetrf_batched;
        rocsolver_sgetrf_batched_64 rocsolver_dgetrf_batched_64 rocsolver_cgetrf_batched_64 rocsolver_zgetrf_batched_64;
    npvt(I, I, *mut Self, I, *mut I) =
        rocsolver_sgetrf_npvt rocsolver_dgetrf_npvt rocsolver_cgetrf_npvt rocsolver_zgetrf_npvt;
        rocsolver_sgetrf_npvt_64 rocsolver_dgetrf_npvt_64 rocsolver_cgetrf_npvt_64 rocsolver_zgetrf_npvt_64;
    npvt_strided(I, I, *mut Self, I, Stride, *mut I, I) =
        rocsolver_sgetrf_npvt_strided_batched rocsolver_dgetrf_npvt_strided_batched rocsolver_cgetrf_npvt_strided_batched rocsolver_zgetrf_npvt_strided_batched;
        rocsolver_sgetrf_npvt_strided_batched_64 rocsolver_dgetrf_npvt_strided_batched_64 rocsolver_cgetrf_npvt_strided_batched_64 rocsolver_zgetrf_npvt_strided_batched_64;
    npvt_batched(I, I, *const *mut Self, I, *mut I, I) =
        rocsolver_sgetrf_npvt_batched rocsolver_dgetrf_npvt_batched rocsolver_cgetrf_npvt_batched rocsolver_zgetrf_npvt_batched;
        rocsolver_sgetrf_npvt_batched_64 rocsolver_dgetrf_npvt_batched_64 rocsolver_cgetrf_npvt_batched_64 rocsolver_zgetrf_npvt_batched_64;
    getrs(Trans, I, I, *mut Self, I, *const I, *mut Self, I) =
        rocsolver_sgetrs rocsolver_dgetrs rocsolver_cgetrs rocsolver_zgetrs;
        rocsolver_sgetrs_64 rocsolver_dgetrs_64 rocsolver_cgetrs_64 rocsolver_zgetrs_64;
    getrs_strided(Trans, I, I, *mut Self, I, Stride, *const I, Stride, *mut Self, I, Stride, I) =
        rocsolver_sgetrs_strided_batched rocsolver_dgetrs_strided_batched rocsolver_cgetrs_strided_batched rocsolver_zgetrs_strided_batched;
        rocsolver_sgetrs_strided_batched_64 rocsolver_dgetrs_strided_batched_64 rocsolver_cgetrs_strided_batched_64 rocsolver_zgetrs_strided_batched_64;
    getrs_batched(Trans, I, I, *const *mut Self, I, *const I, Stride, *const *mut Self, I, I) =
        rocsolver_sgetrs_batched rocsolver_dgetrs_batched rocsolver_cgetrs_batched rocsolver_zgetrs_batched;
        rocsolver_sgetrs_batched_64 rocsolver_dgetrs_batched_64 rocsolver_cgetrs_batched_64 rocsolver_zgetrs_batched_64;
    potrf(Fill, I, *mut Self, I, *mut I) =
        rocsolver_spotrf rocsolver_dpotrf rocsolver_cpotrf rocsolver_zpotrf;
        rocsolver_spotrf_64 rocsolver_dpotrf_64 rocsolver_cpotrf_64 rocsolver_zpotrf_64;
    potrf_batched(Fill, I, *const *mut Self, I, *mut I, I) =
        rocsolver_spotrf_batched rocsolver_dpotrf_batched rocsolver_cpotrf_batched rocsolver_zpotrf_batched;
        rocsolver_spotrf_batched_64 rocsolver_dpotrf_batched_64 rocsolver_cpotrf_batched_64 rocsolver_zpotrf_batched_64;
    potrs(Fill, I, I, *mut Self, I, *mut Self, I) =
        rocsolver_spotrs rocsolver_dpotrs rocsolver_cpotrs rocsolver_zpotrs;
        rocsolver_spotrs_64 rocsolver_dpotrs_64 rocsolver_cpotrs_64 rocsolver_zpotrs_64;
    potrs_strided(Fill, I, I, *mut Self, I, Stride, *mut Self, I, Stride, I) =
        rocsolver_spotrs_strided_batched rocsolver_dpotrs_strided_batched rocsolver_cpotrs_strided_batched rocsolver_zpotrs_strided_batched;
        rocsolver_spotrs_strided_batched_64 rocsolver_dpotrs_strided_batched_64 rocsolver_cpotrs_strided_batched_64 rocsolver_zpotrs_strided_batched_64;
    potrs_batched(Fill, I, I, *const *mut Self, I, *const *mut Self, I, I) =
        rocsolver_spotrs_batched rocsolver_dpotrs_batched rocsolver_cpotrs_batched rocsolver_zpotrs_batched;
        rocsolver_spotrs_batched_64 rocsolver_dpotrs_batched_64 rocsolver_cpotrs_batched_64 rocsolver_zpotrs_batched_64;
}

families! { Solver32 without 64 bits from SOLVER:
    getri(I, *mut Self, I, *mut I, *mut I) =
        rocsolver_sgetri rocsolver_dgetri rocsolver_cgetri rocsolver_zgetri;
    getri_strided(I, *mut Self, I, Stride, *mut I, Stride, *mut I, I) =
        rocsolver_sgetri_strided_batched rocsolver_dgetri_strided_batched rocsolver_cgetri_strided_batched rocsolver_zgetri_strided_batched;
    getri_batched(I, *const *mut Self, I, *mut I, Stride, *mut I, I) =
        rocsolver_sgetri_batched rocsolver_dgetri_batched rocsolver_cgetri_batched rocsolver_zgetri_batched;
    apart(I, *mut Self, I, *mut I, *mut Self, I, *mut I) =
        rocsolver_sgetri_outofplace rocsolver_dgetri_outofplace rocsolver_cgetri_outofplace rocsolver_zgetri_outofplace;
    apart_strided(I, *mut Self, I, Stride, *mut I, Stride, *mut Self, I, Stride, *mut I, I) =
        rocsolver_sgetri_outofplace_strided_batched rocsolver_dgetri_outofplace_strided_batched rocsolver_cgetri_outofplace_strided_batched rocsolver_zgetri_outofplace_strided_batched;
    apart_batched(I, *const *mut Self, I, *mut I, Stride, *const *mut Self, I, *mut I, I) =
        rocsolver_sgetri_outofplace_batched rocsolver_dgetri_outofplace_batched rocsolver_cgetri_outofplace_batched rocsolver_zgetri_outofplace_batched;
    gesv(I, I, *mut Self, I, *mut I, *mut Self, I, *mut I) =
        rocsolver_sgesv rocsolver_dgesv rocsolver_cgesv rocsolver_zgesv;
    gesv_strided(I, I, *mut Self, I, Stride, *mut I, Stride, *mut Self, I, Stride, *mut I, I) =
        rocsolver_sgesv_strided_batched rocsolver_dgesv_strided_batched rocsolver_cgesv_strided_batched rocsolver_zgesv_strided_batched;
    gesv_batched(I, I, *const *mut Self, I, *mut I, Stride, *const *mut Self, I, *mut I, I) =
        rocsolver_sgesv_batched rocsolver_dgesv_batched rocsolver_cgesv_batched rocsolver_zgesv_batched;
    posv(Fill, I, I, *mut Self, I, *mut Self, I, *mut I) =
        rocsolver_sposv rocsolver_dposv rocsolver_cposv rocsolver_zposv;
    posv_strided(Fill, I, I, *mut Self, I, Stride, *mut Self, I, Stride, *mut I, I) =
        rocsolver_sposv_strided_batched rocsolver_dposv_strided_batched rocsolver_cposv_strided_batched rocsolver_zposv_strided_batched;
    posv_batched(Fill, I, I, *const *mut Self, I, *const *mut Self, I, *mut I, I) =
        rocsolver_sposv_batched rocsolver_dposv_batched rocsolver_cposv_batched rocsolver_zposv_batched;
    potri_batched(Fill, I, *const *mut Self, I, *mut I, I) =
        rocsolver_spotri_batched rocsolver_dpotri_batched rocsolver_cpotri_batched rocsolver_zpotri_batched;
}

/// Numbers between the pivots of one matrix and those of the next.
const SPARE: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Strided,
    Batched,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    m: usize,
    n: usize,
    nrhs: usize,
    gaps: [usize; 2],
    op: Op,
    upper: bool,
    seed: u64,
    form: Form,
}

fn case() -> impl Strategy<Value = Case> {
    let size = || prop_oneof![6 => 1..10_usize, 2 => 30..75_usize];
    let form = prop_oneof![Just(Form::Plain), Just(Form::Strided), Just(Form::Batched)];
    let gaps = [0..3_usize, 0..3];
    (
        size(),
        size(),
        1..5_usize,
        gaps,
        op(),
        any::<bool>(),
        any::<u64>(),
        form,
    )
        .prop_map(|(m, n, nrhs, gaps, op, upper, seed, form)| Case {
            m,
            n,
            nrhs,
            gaps,
            op,
            upper,
            seed,
            form,
        })
}

/// The matrices of a case, on both sides.
struct Batch<T: Number> {
    host: Vec<T>,
    device: Buffer<T>,
    pointers: Pointers<T>,
    shape: (usize, usize),
    ld: usize,
    count: usize,
}

impl<T: Number> Batch<T> {
    fn new(case: Case, shape: (usize, usize), gap: usize, seed: u64) -> Self {
        let (count, ld) = (case.count(), shape.0 + gap);
        Self::of(numbers(ld * shape.1 * count, case.seed ^ seed), shape, ld, count)
    }

    fn of(host: Vec<T>, shape: (usize, usize), ld: usize, count: usize) -> Self {
        let device = Buffer::new(&host);
        let stride = (ld * shape.1) as i64;
        let pointers = Pointers::at(device.ptr(), stride, count);
        Self {
            host,
            device,
            pointers,
            shape,
            ld,
            count,
        }
    }

    fn stride(&self) -> i64 {
        (self.ld * self.shape.1) as i64
    }

    fn part<'a>(&self, values: &'a [T], i: usize) -> &'a [T] {
        &values[i * self.ld * self.shape.1..]
    }

    #[track_caller]
    fn assert_only_elements_written(&self) {
        let size = self.ld * self.shape.1;
        self.device
            .assert_only_written(|i| inside(i % size, self.shape.0, self.shape.1, self.ld));
    }
}

impl Case {
    fn count(self) -> usize {
        if self.form == Form::Plain { 1 } else { 3 }
    }
}

fn integers<I: Int>(len: usize) -> Buffer<I> {
    Buffer::new(&vec![I::of(-7); len])
}

fn indices<I: Int>(buffer: &Buffer<I>) -> Vec<usize> {
    buffer
        .read()
        .into_iter()
        .map(|i| usize::try_from(i.into()).unwrap())
        .collect()
}

/// The largest row sum of magnitudes, to bound errors with.
fn norm<T: Number>(a: &[T], (m, n): (usize, usize), ld: usize) -> f64 {
    let row = |i: usize| (0..n).map(|j: usize| a[i + j * ld].wide().norm()).sum::<f64>();
    (0..m).map(row).fold(0.0, f64::max)
}

/// Calls one of the three forms. `$pi` are the pivots, where there are some.
macro_rules! by_form {
    ($case:expr, $handle:expr, $plain:ident $strided:ident $batched:ident,
        ($($first:expr),*), $a:expr, [$($pi:expr)?] [$($b:expr)?] [$($info:expr)?]) => {{
        let case: $crate::solver::Case = $case;
        let handle: rocblas_sys::rocblas_handle = $handle.raw;
        let (a, ld, count) = (&$a, I::of($a.ld as i64), I::of(case.count() as i64));
        // SAFETY: matrices of those shapes.
        unsafe {
            match case.form {
                $crate::solver::Form::Plain => T::$plain()(handle, $($first,)* a.device.ptr(), ld, $($pi.0,)? $($b.device.ptr(), I::of($b.ld as i64),)? $($info)?),
                $crate::solver::Form::Strided => T::$strided()(handle, $($first,)* a.device.ptr(), ld, a.stride(), $($pi.0, $pi.1,)? $($b.device.ptr(), I::of($b.ld as i64), $b.stride(),)? $($info,)? count),
                $crate::solver::Form::Batched => T::$batched()(handle, $($first,)* a.pointers.outputs(), ld, $($pi.0, $pi.1,)? $($b.pointers.outputs(), I::of($b.ld as i64),)? $($info,)? count),
            }
        }
    }};
}

/// `op(A) X = B` up to the rounding of a solve with partial pivoting.
#[track_caller]
fn assert_solved<T: Number>(case: Case, op: Op, a: &Batch<T>, b: &Batch<T>, original: &[T]) {
    let (n, nrhs) = b.shape;
    let x = b.device.read();
    for k in 0..b.count {
        let (a_k, x_k, b_k) = (a.part(original, k), b.part(&x, k), b.part(&b.host, k));
        // The growth of random matrices of this size is small.
        let bound = norm(a_k, (n, n), a.ld) * norm(x_k, (n, nrhs), b.ld).max(1.0);
        let bound = bound * T::EPSILON * 40.0 * (n + 1) as f64;
        for (i, j) in (0..n).flat_map(|i| (0..nrhs).map(move |j| (i, j))) {
            let product: C64 = (0..n)
                .map(|l| element(a_k, a.ld, op, i, l) * x_k[l + j * b.ld].wide())
                .sum();
            let error = (product - b_k[i + j * b.ld].wide()).norm();
            assert!(
                error <= bound,
                "{case:?} ({i}, {j}) is off by {error:e}, allowed {bound:e}"
            );
        }
    }
}

mod general;
mod positive_definite;
