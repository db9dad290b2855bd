//! getrf, getrs, getri, gesv, potrf, potrs, posv and potri in all their forms.

use std::ptr::{null, null_mut};

use proptest::prelude::*;
use rocblas_sys::{
    rocblas_fill, rocblas_handle, rocblas_operation, rocblas_status, rocblas_stride,
};

use crate::functions::{check, families, for_all_types};
use crate::matrix::{Op, element, inside, op};
use crate::memory::{Buffer, Handle, Pointers, SUCCESS};
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
        Self::of(
            numbers(ld * shape.1 * count, case.seed ^ seed),
            shape,
            ld,
            count,
        )
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
    let row = |i: usize| {
        (0..n)
            .map(|j: usize| a[i + j * ld].wide().norm())
            .sum::<f64>()
    };
    (0..m).map(row).fold(0.0, f64::max)
}

/// Calls one of the three forms. `$pi` are the pivots, where there are some.
macro_rules! by_form {
    ($case:expr, $handle:expr, $plain:ident $strided:ident $batched:ident,
        ($($first:expr),*), $a:expr, [$($pi:expr)?] [$($b:expr)?] [$($info:expr)?]) => {{
        let case: Case = $case;
        let handle: rocblas_handle = $handle.raw;
        let (a, ld, count) = (&$a, I::of($a.ld as i64), I::of(case.count() as i64));
        // SAFETY: matrices of those shapes.
        unsafe {
            match case.form {
                Form::Plain => T::$plain()(handle, $($first,)* a.device.ptr(), ld, $($pi.0,)? $($b.device.ptr(), I::of($b.ld as i64),)? $($info)?),
                Form::Strided => T::$strided()(handle, $($first,)* a.device.ptr(), ld, a.stride(), $($pi.0, $pi.1,)? $($b.device.ptr(), I::of($b.ld as i64), $b.stride(),)? $($info,)? count),
                Form::Batched => T::$batched()(handle, $($first,)* a.pointers.outputs(), ld, $($pi.0, $pi.1,)? $($b.pointers.outputs(), I::of($b.ld as i64),)? $($info,)? count),
            }
        }
    }};
}

/// `P^T A = L U`, element by element.
fn assert_factors<T: Number>(case: Case, lu: &[T], a: &[T], ld: usize, pivots: Option<&[usize]>) {
    let Case { m, n, .. } = case;
    let mut rows: Vec<usize> = (0..m).collect();
    for (step, row) in pivots.unwrap_or_default().iter().enumerate() {
        assert!(
            (step + 1..=m).contains(row),
            "pivot {row} in step {step} of {case:?}"
        );
        rows.swap(step, row - 1);
    }
    let size = norm(lu, (m, n), ld).max(1.0) * norm(a, (m, n), ld).max(1.0);
    let bound = size * T::EPSILON * (m + n) as f64 * 4.0;
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let lower = |l: usize| {
            if l == i {
                C64::ONE
            } else {
                lu[i + l * ld].wide()
            }
        };
        let product: C64 = (0..=i.min(j).min(m - 1))
            .map(|l| lower(l) * lu[l + j * ld].wide())
            .sum();
        let error = (product - a[rows[i] + j * ld].wide()).norm();
        assert!(
            error <= bound,
            "{case:?} ({i}, {j}) is off by {error:e}, allowed {bound:e}"
        );
        if pivots.is_some() && j < i {
            assert!(
                lu[i + j * ld].wide().norm() <= 1.5,
                "{case:?} ({i}, {j}): not the largest pivot"
            );
        }
    }
}

fn getrf_factors_with_and_without_exchanges<T: Solver<I>, I: Int>() {
    let handle = Handle::new();
    check((case(), any::<bool>()), |(case, pivot)| {
        let Case { m, n, .. } = case;
        let mut a = Batch::<T>::new(case, (m, n), case.gaps[0], 0);
        if !pivot {
            // Without exchanges the diagonal has to be the largest.
            for i in 0..a.count {
                for j in 0..m.min(n) {
                    let at = i * a.ld * n + j * (a.ld + 1);
                    a.host[at] = T::of(a.host[at].wide() + C64::from((m + n) as f64));
                }
            }
            a = Batch::of(a.host, (m, n), a.ld, a.count);
        }
        let (steps, stride) = (m.min(n), (m.min(n) + SPARE) as i64);
        let (ipiv, info) = (
            integers::<I>(stride as usize * a.count),
            integers::<I>(a.count),
        );
        let (m_, n_) = (I::of(m as i64), I::of(n as i64));
        handle.finish(if pivot {
            by_form!(case, handle, getrf getrf_strided getrf_batched, (m_, n_), a, [(ipiv.ptr(), stride)] [] [info.ptr()])
        } else {
            by_form!(case, handle, npvt npvt_strided npvt_batched, (m_, n_), a, [] [] [info.ptr()])
        });
        a.assert_only_elements_written();
        ipiv.assert_only_written(|i| pivot && i % (stride as usize) < steps);
        assert_eq!(indices(&info), vec![0; a.count]);
        let found = a.device.read();
        for i in 0..a.count {
            let pivots: Option<Vec<usize>> = pivot.then(|| {
                let all = ipiv.read();
                let mine = &all[i * stride as usize..][..steps];
                mine.iter()
                    .map(|&row| usize::try_from(row.into()).unwrap())
                    .collect()
            });
            assert_factors(
                case,
                a.part(&found, i),
                a.part(&a.host, i),
                a.ld,
                pivots.as_deref(),
            );
        }
    });
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

fn getrs_solves_with_the_factors<T: Solver<I>, I: Int>() {
    let handle = Handle::new();
    check(case(), |case| {
        let Case { n, nrhs, op, .. } = case;
        let a = Batch::<T>::new(case, (n, n), case.gaps[0], 0);
        let b = Batch::<T>::new(case, (n, nrhs), case.gaps[1], 1);
        let stride = (n + SPARE) as i64;
        let (ipiv, info) = (
            integers::<I>(stride as usize * a.count),
            integers::<I>(a.count),
        );
        let (n_, nrhs_) = (I::of(n as i64), I::of(nrhs as i64));
        handle.finish(by_form!(case, handle, getrf getrf_strided getrf_batched, (n_, n_), a, [(ipiv.ptr(), stride)] [] [info.ptr()]));
        let factors = format!("{:?}", a.device.read());
        handle.finish(by_form!(case, handle, getrs getrs_strided getrs_batched, (op.c(), n_, nrhs_), a, [(ipiv.ptr().cast_const(), stride)] [b] []));
        assert_eq!(format!("{:?}", a.device.read()), factors);
        b.assert_only_elements_written();
        assert_solved(case, op, &a, &b, &a.host);
    });
}

fn gesv_factors_and_solves<T: Solver32<I>, I: Int>() {
    let handle = Handle::new();
    check(case(), |case| {
        let Case { n, nrhs, .. } = case;
        let a = Batch::<T>::new(case, (n, n), case.gaps[0], 0);
        let b = Batch::<T>::new(case, (n, nrhs), case.gaps[1], 1);
        let stride = (n + SPARE) as i64;
        let (ipiv, info) = (
            integers::<I>(stride as usize * a.count),
            integers::<I>(a.count),
        );
        let (n_, nrhs_) = (I::of(n as i64), I::of(nrhs as i64));
        handle.finish(by_form!(case, handle, gesv gesv_strided gesv_batched, (n_, nrhs_), a, [(ipiv.ptr(), stride)] [b] [info.ptr()]));
        assert_eq!(indices(&info), vec![0; a.count]);
        a.assert_only_elements_written();
        b.assert_only_elements_written();
        assert_solved(case, Op::None, &a, &b, &a.host);
        let found = a.device.read();
        let rows = ipiv.read();
        let rows: Vec<usize> = rows[..n]
            .iter()
            .map(|&row| usize::try_from(row.into()).unwrap())
            .collect();
        assert_factors(Case { m: n, ..case }, &found, &a.host, a.ld, Some(&rows));
    });
}

fn getri_inverts_in_place_and_apart<T: Solver32<I> + Solver<I>, I: Int>() {
    let handle = Handle::new();
    check((case(), any::<bool>()), |(case, in_place)| {
        let n = case.n;
        let a = Batch::<T>::new(case, (n, n), case.gaps[0], 0);
        let c = Batch::<T>::new(case, (n, n), case.gaps[1], 1);
        let stride = (n + SPARE) as i64;
        let (ipiv, info) = (
            integers::<I>(stride as usize * a.count),
            integers::<I>(a.count),
        );
        let n_ = I::of(n as i64);
        handle.finish(by_form!(case, handle, getrf getrf_strided getrf_batched, (n_, n_), a, [(ipiv.ptr(), stride)] [] [info.ptr()]));
        handle.finish(if in_place {
            by_form!(case, handle, getri getri_strided getri_batched, (n_), a, [(ipiv.ptr(), stride)] [] [info.ptr()])
        } else {
            by_form!(case, handle, apart apart_strided apart_batched, (n_), a, [(ipiv.ptr(), stride)] [c] [info.ptr()])
        });
        assert_eq!(indices(&info), vec![0; a.count]);
        let inverse = if in_place { &a } else { &c };
        inverse.assert_only_elements_written();
        let found = inverse.device.read();
        for k in 0..a.count {
            let (a_k, x_k) = (a.part(&a.host, k), inverse.part(&found, k));
            let size = norm(a_k, (n, n), a.ld) * norm(x_k, (n, n), inverse.ld).max(1.0);
            let bound = size * T::EPSILON * 40.0 * (n + 1) as f64;
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let product: C64 = (0..n)
                    .map(|l| a_k[i + l * a.ld].wide() * x_k[l + j * inverse.ld].wide())
                    .sum();
                let error = (product - C64::from(f64::from(i == j))).norm();
                assert!(
                    error <= bound,
                    "{case:?} ({i}, {j}) is off by {error:e}, allowed {bound:e}"
                );
            }
        }
    });
}

/// A hermitian matrix with a large diagonal, of which only one triangle is told.
fn positive_definite<T: Number>(case: Case) -> (Batch<T>, Vec<T>) {
    let mut a = Batch::<T>::new(case, (case.n, case.n), case.gaps[0], 0);
    let mut whole = a.host.clone();
    for k in 0..a.count {
        let at = |i: usize, j: usize| k * a.ld * case.n + i + j * a.ld;
        for (i, j) in (0..case.n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let mut value = whole[at(i, j)].wide();
            if i == j {
                value = C64::from(value.re + 2.0 * case.n as f64);
            }
            (whole[at(i, j)], whole[at(j, i)]) = (T::of(value), T::of(value.conj()));
            let (told, other) = if case.upper {
                (at(j, i), at(i, j))
            } else {
                (at(i, j), at(j, i))
            };
            a.host[other] = crate::number::nan();
            a.host[told] = whole[told];
        }
    }
    (Batch::of(a.host, a.shape, a.ld, a.count), whole)
}

impl Case {
    fn fill(self) -> Fill {
        if self.upper {
            Fill::rocblas_fill_upper
        } else {
            Fill::rocblas_fill_lower
        }
    }

    /// True if the element belongs to the triangle that is told.
    fn told(self, i: usize, ld: usize) -> bool {
        let (row, col) = (i % (ld * self.n) % ld, i % (ld * self.n) / ld);
        row < self.n && (row == col || (row < col) == self.upper)
    }
}

fn potrs_solves_with_the_factor<T: Solver<I>, I: Int>() {
    let handle = Handle::new();
    check(case(), |case| {
        let (a, whole) = positive_definite::<T>(case);
        let b = Batch::<T>::new(case, (case.n, case.nrhs), case.gaps[1], 1);
        let info = integers::<I>(a.count);
        let (n, nrhs, lda) = (
            I::of(case.n as i64),
            I::of(case.nrhs as i64),
            I::of(a.ld as i64),
        );
        // SAFETY: matrices of those shapes.
        handle.finish(unsafe {
            if a.count == 1 {
                T::potrf()(handle.raw, case.fill(), n, a.device.ptr(), lda, info.ptr())
            } else {
                T::potrf_batched()(
                    handle.raw,
                    case.fill(),
                    n,
                    a.pointers.outputs(),
                    lda,
                    info.ptr(),
                    I::of(a.count as i64),
                )
            }
        });
        assert_eq!(indices(&info), vec![0; a.count]);
        a.device.assert_only_written(|i| case.told(i, a.ld));
        handle.finish(by_form!(case, handle, potrs potrs_strided potrs_batched, (case.fill(), n, nrhs), a, [] [b] []));
        b.assert_only_elements_written();
        assert_solved(case, Op::None, &a, &b, &whole);
    });
}

fn posv_solves_or_names_the_minor<T: Solver32<I>, I: Int>() {
    let handle = Handle::new();
    check((case(), any::<bool>()), |(case, spoil)| {
        let (mut a, whole) = positive_definite::<T>(case);
        let b = Batch::<T>::new(case, (case.n, case.nrhs), case.gaps[1], 1);
        // The last matrix of the batch gets a minor that is not positive definite.
        let minor = case.seed as usize % case.n;
        if spoil {
            let at = (a.count - 1) * a.ld * case.n + minor * (a.ld + 1);
            a.host[at] = T::of(C64::from(-1.0));
            a = Batch::of(a.host, a.shape, a.ld, a.count);
        }
        let info = integers::<I>(a.count);
        let (n, nrhs) = (I::of(case.n as i64), I::of(case.nrhs as i64));
        handle.finish(by_form!(case, handle, posv posv_strided posv_batched, (case.fill(), n, nrhs), a, [] [b] [info.ptr()]));
        let mut expected = vec![0; a.count];
        if spoil {
            expected[a.count - 1] = minor + 1;
        }
        assert_eq!(indices(&info), expected);
        a.device.assert_only_written(|i| case.told(i, a.ld));
        b.assert_only_elements_written();
        if spoil {
            let last = b.ld * case.nrhs * (a.count - 1);
            b.device.assert_only_written(|i| i < last);
        } else {
            assert_solved(case, Op::None, &a, &b, &whole);
            // SAFETY: as above.
            handle.finish(unsafe {
                T::potri_batched()(
                    handle.raw,
                    case.fill(),
                    n,
                    a.pointers.outputs(),
                    I::of(a.ld as i64),
                    info.ptr(),
                    I::of(a.count as i64),
                )
            });
            a.device.assert_only_written(|i| case.told(i, a.ld));
        }
    });
}

/// 3 x 3 of rank 2: the second column is twice the first one.
fn singular<T: Number>() -> Vec<T> {
    [1.0, 2.0, 4.0, 2.0, 4.0, 8.0, 0.5, 3.0, 1.0]
        .map(|x| T::of(C64::from(x)))
        .to_vec()
}

fn a_zero_pivot_is_named_and_the_factors_are_complete<T: Solver<I> + Solver32<I>, I: Int>() {
    let handle = Handle::new();
    let (a, b) = (
        Buffer::new(&singular::<T>()),
        Buffer::new(&numbers::<T>(3, 1)),
    );
    let (ipiv, info) = (integers::<I>(3), integers::<I>(1));
    let three = I::of(3);
    // SAFETY: matrices of those shapes.
    unsafe {
        handle.finish(T::getrf()(
            handle.raw,
            three,
            three,
            a.ptr(),
            three,
            ipiv.ptr(),
            info.ptr(),
        ));
        assert_eq!(indices(&info), [2]);
        assert_eq!(indices(&ipiv)[0], 3);
        let factors = a.read();
        assert!(factors.iter().all(|x| x.wide().is_finite()), "{factors:?}");
        let case = Case {
            m: 3,
            n: 3,
            nrhs: 1,
            gaps: [0; 2],
            op: Op::None,
            upper: false,
            seed: 0,
            form: Form::Plain,
        };
        assert_factors(case, &factors, &singular::<T>(), 3, Some(&indices(&ipiv)));
        handle.finish(T::getri()(
            handle.raw,
            three,
            a.ptr(),
            three,
            ipiv.ptr(),
            info.ptr(),
        ));
        assert_eq!(indices(&info), [2]);
        assert_eq!(format!("{:?}", a.read()), format!("{factors:?}"));
        let again = Buffer::new(&singular::<T>());
        handle.finish(T::gesv()(
            handle.raw,
            three,
            I::of(1),
            again.ptr(),
            three,
            ipiv.ptr(),
            b.ptr(),
            three,
            info.ptr(),
        ));
    }
    assert_eq!(indices(&info), [2]);
    b.assert_untouched();
}

fn general_solvers_refuse_in_rocsolver_order<T: Solver<I>, I: Int>() {
    use rocblas_status as s;
    let (pointer, size) = (
        s::rocblas_status_invalid_pointer,
        s::rocblas_status_invalid_size,
    );
    let handle = Handle::new();
    let buffer = Buffer::new(&numbers::<T>(40, 3));
    let (a, b) = (buffer.ptr(), buffer.ptr().wrapping_add(20));
    let (ipiv, info) = (integers::<I>(8), integers::<I>(2));
    let (no, none) = (null_mut::<T>(), null_mut::<I>());
    let getrf = |raw, [m, n, lda]: [i64; 3], a, ipiv, info| {
        // SAFETY: what the model refuses is not touched.
        unsafe { T::getrf()(raw, I::of(m), I::of(n), a, I::of(lda), ipiv, info) }
    };
    let (p, i) = (ipiv.ptr(), info.ptr());
    assert_eq!(
        getrf(null_mut(), [-1; 3], no, none, none),
        s::rocblas_status_invalid_handle
    );
    for sizes in [[-1, 2, 2], [2, -1, 2], [3, 2, 2]] {
        assert_eq!(getrf(handle.raw, sizes, no, none, none), size);
    }
    assert_eq!(getrf(handle.raw, [3, 2, 3], no, p, i), pointer);
    assert_eq!(getrf(handle.raw, [3, 2, 3], a, none, i), pointer);
    assert_eq!(getrf(handle.raw, [3, 2, 3], a, p, none), pointer);
    assert_eq!(getrf(handle.raw, [0, 2, 0], no, none, none), pointer);
    let mut on_host = [I::of(0); 4];
    assert_eq!(
        getrf(handle.raw, [3, 2, 3], a, on_host.as_mut_ptr(), i),
        pointer
    );
    assert_eq!(
        getrf(handle.raw, [3, 2, 3], a, p, on_host.as_mut_ptr()),
        pointer
    );
    info.assert_untouched();
    handle.finish(getrf(handle.raw, [0, 2, 0], no, none, i));
    assert_eq!(info.read()[0].into(), 0);
    let getrs = |trans, [n, nrhs, lda, ldb]: [i64; 4], a, p: *const I, b| {
        // SAFETY: as above.
        unsafe {
            T::getrs()(
                handle.raw,
                trans,
                I::of(n),
                I::of(nrhs),
                a,
                I::of(lda),
                p,
                b,
                I::of(ldb),
            )
        }
    };
    let n = Op::None.c();
    let p = p.cast_const();
    assert_eq!(
        getrs(rocblas_operation(7), [-1; 4], no, null(), no),
        s::rocblas_status_invalid_value
    );
    for sizes in [[-1, 1, 3, 3], [3, -1, 3, 3], [3, 1, 2, 3], [3, 1, 3, 2]] {
        assert_eq!(getrs(n, sizes, no, null(), no), size);
    }
    assert_eq!(getrs(n, [0, 1, 0, 0], no, null(), no), SUCCESS);
    assert_eq!(getrs(n, [3, 0, 3, 3], a, p, no), SUCCESS);
    assert_eq!(getrs(n, [3, 1, 3, 3], no, p, b), pointer);
    assert_eq!(getrs(n, [3, 1, 3, 3], a, null(), b), pointer);
    assert_eq!(getrs(n, [3, 1, 3, 3], a, p, no), pointer);
    assert_eq!(getrs(n, [3, 1, 3, 3], a, p, a), pointer);
    buffer.assert_untouched();
    // No row of the matrix has the number -7; it is read in stream order.
    assert_eq!(getrs(n, [3, 1, 3, 3], a, p, b), SUCCESS);
    assert_ne!(handle.wait(), hip_sys::hipError_t::hipSuccess);
    buffer.assert_untouched();
}

for_all_types! {
    getrf_factors_with_and_without_exchanges getrs_solves_with_the_factors
    potrs_solves_with_the_factor general_solvers_refuse_in_rocsolver_order
}
for_all_types! { 32:
    gesv_factors_and_solves getri_inverts_in_place_and_apart posv_solves_or_names_the_minor
    a_zero_pivot_is_named_and_the_factors_are_complete
}
