//! potrf and potri against their definitions, in double precision.

use num_complex::Complex;
use proptest::prelude::*;
use rocblas_sys::{rocblas_double_complex, rocblas_fill, rocblas_float_complex, rocblas_handle, rocblas_status};
use rocsolver_sys::Api;

use crate::device::{Buffer, Element, Handle, Numbers, SUCCESS, same, slot};

const LOWER: rocblas_fill = rocblas_fill::rocblas_fill_lower;
const UPPER: rocblas_fill = rocblas_fill::rocblas_fill_upper;

type Plain<C, I> = unsafe extern "C" fn(rocblas_handle, rocblas_fill, I, *mut C, I, *mut I) -> rocblas_status;
type Strided<C, I> = unsafe extern "C" fn(rocblas_handle, rocblas_fill, I, *mut C, I, i64, *mut I, I) -> rocblas_status;

pub trait Solve: Element {
    type C;
    fn factor(api: &Api) -> Plain<Self::C, i32>;
    fn factor_64(api: &Api) -> Plain<Self::C, i64>;
    fn factor_batch(api: &Api) -> Strided<Self::C, i32>;
    fn invert(api: &Api) -> Plain<Self::C, i32>;
    fn invert_batch(api: &Api) -> Strided<Self::C, i32>;
}

macro_rules! solve {
    ($rust:ty, $c:ty: $potrf:ident $potrf_64:ident $potrf_batch:ident $potri:ident $potri_batch:ident) => {
        impl Solve for $rust {
            type C = $c;
            fn factor(api: &Api) -> Plain<$c, i32> {
                slot!(api, $potrf)
            }
            fn factor_64(api: &Api) -> Plain<$c, i64> {
                slot!(api, $potrf_64)
            }
            fn factor_batch(api: &Api) -> Strided<$c, i32> {
                slot!(api, $potrf_batch)
            }
            fn invert(api: &Api) -> Plain<$c, i32> {
                slot!(api, $potri)
            }
            fn invert_batch(api: &Api) -> Strided<$c, i32> {
                slot!(api, $potri_batch)
            }
        }
    };
}
solve!(f32, f32: rocsolver_spotrf rocsolver_spotrf_64 rocsolver_spotrf_strided_batched
    rocsolver_spotri rocsolver_spotri_strided_batched);
solve!(f64, f64: rocsolver_dpotrf rocsolver_dpotrf_64 rocsolver_dpotrf_strided_batched
    rocsolver_dpotri rocsolver_dpotri_strided_batched);
solve!(Complex<f32>, rocblas_float_complex: rocsolver_cpotrf rocsolver_cpotrf_64
    rocsolver_cpotrf_strided_batched rocsolver_cpotri rocsolver_cpotri_strided_batched);
solve!(Complex<f64>, rocblas_double_complex: rocsolver_zpotrf rocsolver_zpotrf_64
    rocsolver_zpotrf_strided_batched rocsolver_zpotri rocsolver_zpotri_strided_batched);

/// A hermitian matrix with eigenvalues near 1, stored with a leading dimension and NaN in the other
/// triangle and in the padding.
struct Hermitian<T> {
    n: usize,
    ld: usize,
    uplo: rocblas_fill,
    stored: Vec<T>,
}

impl<T: Element> Hermitian<T> {
    fn new(n: usize, ld: usize, uplo: rocblas_fill, seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let mut matrix = Self {
            n,
            ld,
            uplo,
            stored: vec![T::NAN; ld * n],
        };
        for (row, col) in matrix.triangle() {
            let value: T = numbers.element();
            let value = if row == col {
                Complex::new(1.0 + 0.1 * value.wide().re, 0.0)
            } else {
                value.wide() * (0.4 / n as f64)
            };
            matrix.stored[row + col * ld] = T::narrow(value);
        }
        matrix
    }

    fn triangle(&self) -> Vec<(usize, usize)> {
        let (n, uplo) = (self.n, self.uplo);
        (0..n)
            .flat_map(|col| (0..n).map(move |row| (row, col)))
            .filter(|&(row, col)| if uplo == LOWER { row >= col } else { row <= col })
            .collect()
    }

    fn set(&mut self, row: usize, col: usize, value: f64) {
        let at = if (row >= col) == (self.uplo == LOWER) {
            row + col * self.ld
        } else {
            col + row * self.ld
        };
        self.stored[at] = T::narrow(Complex::new(value, 0.0));
    }

    /// The whole matrix, row by row, from the triangle in `stored`.
    fn full(&self, stored: &[T]) -> Vec<Complex<f64>> {
        let mut full = vec![Complex::ZERO; self.n * self.n];
        for (row, col) in self.triangle() {
            let value = stored[row + col * self.ld].wide();
            full[row * self.n + col] = value;
            full[col * self.n + row] = if row == col { value } else { value.conj() };
        }
        full
    }

    /// `L` (or `U^H`) row by row from the triangle in `stored`.
    fn lower(&self, stored: &[T]) -> Vec<Complex<f64>> {
        let mut lower = vec![Complex::ZERO; self.n * self.n];
        for (row, col) in self.triangle() {
            let value = stored[row + col * self.ld].wide();
            if self.uplo == LOWER {
                lower[row * self.n + col] = value;
            } else {
                lower[col * self.n + row] = value.conj();
            }
        }
        lower
    }

    /// True if all but the triangle is the same in both.
    fn same_outside(&self, after: &[T]) -> bool {
        let mut rest = after.to_vec();
        for (row, col) in self.triangle() {
            rest[row + col * self.ld] = self.stored[row + col * self.ld];
        }
        same(&rest, &self.stored)
    }
}

fn product(n: usize, a: &[Complex<f64>], b: &[Complex<f64>]) -> Vec<Complex<f64>> {
    (0..n * n)
        .map(|at| (0..n).map(|p| a[at / n * n + p] * b[p * n + at % n]).sum())
        .collect()
}

fn adjoint(n: usize, a: &[Complex<f64>]) -> Vec<Complex<f64>> {
    (0..n * n).map(|at| a[at % n * n + at / n].conj()).collect()
}

fn largest_difference(a: &[Complex<f64>], b: &[Complex<f64>]) -> f64 {
    // Not `f64::max`, which ignores NaN.
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).norm())
        .fold(0.0, |max, x| if x <= max { max } else { x })
}

/// Runs a plain form on one matrix; the matrix afterwards, and `info`.
fn run<T: Solve>(call: Plain<T::C, i32>, matrix: &Hermitian<T>, stored: &[T]) -> (Vec<T>, i32) {
    let handle = Handle::new();
    let (a, info) = (Buffer::new(stored), Buffer::new(&[-1i32]));
    // SAFETY: the buffers have the described shape; reading them waits.
    let status = unsafe {
        call(
            handle.0,
            matrix.uplo,
            matrix.n as i32,
            a.ptr().cast(),
            matrix.ld as i32,
            info.ptr(),
        )
    };
    assert_eq!(status, SUCCESS);
    (a.read(), info.read()[0])
}

fn check<T: Solve>(n: usize, extra: usize, uplo: rocblas_fill, seed: u64) {
    let api = hip_host_blas::rocsolver_api();
    let matrix = Hermitian::<T>::new(n, n.max(1) + extra, uplo, seed);
    let bound = 20.0 * (n + 1) as f64 * T::EPSILON;
    let (factored, info) = run(T::factor(&api), &matrix, &matrix.stored);
    assert_eq!(info, 0);
    assert!(matrix.same_outside(&factored), "potrf wrote outside its triangle");
    let lower = matrix.lower(&factored);
    let full = matrix.full(&matrix.stored);
    let error = largest_difference(&product(n, &lower, &adjoint(n, &lower)), &full);
    assert!(error <= bound, "factor times its adjoint is off by {error:e}");
    for i in 0..n {
        let pivot = lower[i * n + i];
        assert!(pivot.re > 0.0 && pivot.im == 0.0, "pivot {pivot}");
    }
    let (inverse, info) = run(T::invert(&api), &matrix, &factored);
    assert_eq!(info, 0);
    assert!(matrix.same_outside(&inverse), "potri wrote outside its triangle");
    let identity: Vec<_> = (0..n * n)
        .map(|at| Complex::new(if at / n == at % n { 1.0 } else { 0.0 }, 0.0))
        .collect();
    let error = largest_difference(&product(n, &full, &matrix.full(&inverse)), &identity);
    assert!(error <= bound, "matrix times inverse is off by {error:e}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn factor_and_inverse_satisfy_their_definitions(n in 0..90usize, extra in 0..5usize, lower: bool, seed: u64) {
        let uplo = if lower { LOWER } else { UPPER };
        check::<f32>(n, extra, uplo, seed);
        check::<f64>(n, extra, uplo, seed);
        check::<Complex<f32>>(n, extra, uplo, seed);
        check::<Complex<f64>>(n, extra, uplo, seed);
    }

    #[test]
    fn info_is_the_first_minor_that_is_not_positive_definite(
        n in 1..150usize, at in 0..150usize, lower: bool, seed: u64, kind in 0..5,
    ) {
        let at = at % n;
        let uplo = if lower { LOWER } else { UPPER };
        let mut matrix = Hermitian::<Complex<f32>>::new(n, n + 1, uplo, seed);
        match kind {
            0 => matrix.set(at, at, -1.0),
            1 => matrix.set(at, at, 0.0),
            2 => matrix.set(at, at, f64::NAN),
            // Symmetric to a larger entry than the diagonal allows, or to something that is no
            // number.
            3 => matrix.set(at, at / 2, if at == 0 { -3.0 } else { 3.0 }),
            _ => matrix.set(at, at / 2, f64::NAN),
        }
        let call = Complex::<f32>::factor(&hip_host_blas::rocsolver_api());
        let (after, info) = run(call, &matrix, &matrix.stored);
        prop_assert_eq!(info, at as i32 + 1);
        prop_assert!(matrix.same_outside(&after));
        // The minors before it are factored as they would be alone.
        let minor = Hermitian::<Complex<f32>> {
            n: at,
            ld: matrix.ld,
            uplo,
            stored: matrix.stored[..matrix.ld * at].to_vec(),
        };
        let lower = minor.lower(&after[..matrix.ld * at]);
        let product = product(at, &lower, &adjoint(at, &lower));
        let error = largest_difference(&product, &minor.full(&minor.stored));
        let bound = 20.0 * n as f64 * f32::EPSILON as f64;
        prop_assert!(error <= bound, "off by {error:e}");
        // Their columns are whole, and the failing pivot is what elimination left of it.
        let (lower, full) = (matrix.lower(&after), matrix.full(&matrix.stored));
        for row in at..n {
            for col in 0..=at {
                let (found, given) = (lower[row * n + col], full[row * n + col]);
                let dot: Complex<f64> = (0..col).map(|k| lower[row * n + k] * lower[col * n + k].conj()).sum();
                let expected = if col < at {
                    dot + found * lower[col * n + col]
                } else if row == at {
                    dot + found
                } else {
                    found
                };
                let close = (expected - given).norm() <= bound;
                let unknown = given.is_nan() || expected.is_nan();
                prop_assert!(close || unknown, "row {row}, column {col}: {expected} for {given}");
            }
        }
    }
}

#[test]
fn a_large_matrix_is_factored_and_inverted() {
    for uplo in [LOWER, UPPER] {
        check::<Complex<f32>>(341, 3, uplo, 5);
    }
}

#[test]
fn imaginary_parts_on_the_diagonal_are_taken_as_zero() {
    let mut matrix = Hermitian::<Complex<f64>>::new(4, 4, LOWER, 1);
    let call = Complex::<f64>::factor(&hip_host_blas::rocsolver_api());
    let (expected, _) = run(call, &matrix, &matrix.stored);
    for i in 0..4 {
        matrix.stored[i * 5].im = 0.5;
    }
    let (after, info) = run(call, &matrix, &matrix.stored);
    assert_eq!(info, 0);
    assert!(
        matrix
            .triangle()
            .into_iter()
            .all(|(row, col)| after[row + col * 4] == expected[row + col * 4])
    );
}

#[test]
fn a_singular_factor_is_reported_and_left_alone() {
    for uplo in [LOWER, UPPER] {
        let mut matrix = Hermitian::<Complex<f32>>::new(9, 11, uplo, 2);
        matrix.set(6, 6, 0.0);
        matrix.set(8, 8, 0.0);
        let call = Complex::<f32>::invert(&hip_host_blas::rocsolver_api());
        let (after, info) = run(call, &matrix, &matrix.stored);
        assert_eq!(info, 7);
        assert!(same(&after, &matrix.stored));
    }
}

#[test]
fn every_matrix_of_a_batch_has_its_own_info() {
    let api = hip_host_blas::rocsolver_api();
    let handle = Handle::new();
    let (n, ld, count) = (20, 21, 7);
    let mut matrices: Vec<_> = (0..count)
        .map(|i| Hermitian::<Complex<f32>>::new(n, ld, LOWER, i as u64))
        .collect();
    matrices[2].set(5, 5, -1.0);
    matrices[6].set(0, 0, 0.0);
    let stored: Vec<_> = matrices.iter().flat_map(|matrix| matrix.stored.clone()).collect();
    let (a, info) = (Buffer::new(&stored), Buffer::new(&[-1i32; 7]));
    let (n, ld, stride) = (n as i32, ld as i32, (ld * n) as i64);
    // SAFETY: the buffers have the described shapes.
    let status = unsafe {
        let call = Complex::<f32>::factor_batch(&api);
        call(handle.0, LOWER, n, a.ptr().cast(), ld, stride, info.ptr(), count)
    };
    assert_eq!(status, SUCCESS);
    assert_eq!(info.read(), [0, 0, 6, 0, 0, 0, 1]);
    let after = a.read();
    for (i, matrix) in matrices.iter().enumerate() {
        let (alone, _) = run(Complex::<f32>::factor(&api), matrix, &matrix.stored);
        assert!(same(&after[i * stride as usize..][..alone.len()], &alone), "matrix {i}");
    }
    // SAFETY: as above.
    let status = unsafe {
        let call = Complex::<f32>::invert_batch(&api);
        call(handle.0, LOWER, n, a.ptr().cast(), ld, stride, info.ptr(), 2)
    };
    assert_eq!(status, SUCCESS);
    assert_eq!(info.read()[..2], [0, 0]);
}

#[test]
fn the_64_bit_form_stores_a_64_bit_info() {
    let handle = Handle::new();
    let mut matrix = Hermitian::<f64>::new(3, 3, UPPER, 4);
    matrix.set(1, 1, -1.0);
    let (a, info) = (Buffer::new(&matrix.stored), Buffer::new(&[-1i64, -1]));
    // SAFETY: the buffers have the described shapes.
    let status = unsafe { f64::factor_64(&hip_host_blas::rocsolver_api())(handle.0, UPPER, 3, a.ptr(), 3, info.ptr()) };
    assert_eq!(status, SUCCESS);
    assert_eq!(info.read(), [2, -1]);
}
