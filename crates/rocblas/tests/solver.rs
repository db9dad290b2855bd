//! Cholesky factors: solving and inverting with them, and what is said when there is none.

mod common;

use common::{C64, Number, Setup, numbers, setup};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Error, Fill, Matrix, solver};

type C32 = Complex<f32>;

fn fill() -> impl Strategy<Value = Fill> {
    prop_oneof![Just(Fill::Upper), Just(Fill::Lower)]
}

fn inside(fill: Fill, i: usize, j: usize) -> bool {
    if fill == Fill::Upper { i <= j } else { i >= j }
}

/// `B * B^H + n`, which is positive definite, with leading dimension `ld`. Rounded to `T`, so that it is what the
/// device gets.
fn positive<T: Number>(n: usize, ld: usize, seed: u64) -> Vec<T> {
    let b = numbers::<T>(n * n, seed);
    let mut a = numbers::<T>(ld * n, seed ^ 5);
    for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
        let mut sum: C64 = (0..n).map(|k| b[i + k * n].wide() * b[j + k * n].wide().conj()).sum();
        if i == j {
            sum = C64::new(sum.re + n as f64, 0.0);
        }
        a[i + j * ld] = T::of(sum);
    }
    // Rounding must not break the symmetry.
    for (i, j) in (0..n).flat_map(|j| (0..j).map(move |i| (i, j))) {
        a[i + j * ld] = T::of(a[j + i * ld].wide().conj());
    }
    a
}

fn factor_is_right<T: Number>(n: usize, ld: usize, fill: Fill, a: &[T], found: &[T]) {
    let bound = 40.0 * (n * n) as f64 * T::EPSILON * 4.0;
    let factor = |i: usize, j: usize| {
        if inside(fill, i, j) {
            found[i + j * ld].wide()
        } else {
            C64::ZERO
        }
    };
    for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
        let product: C64 = (0..n)
            .map(|k| match fill {
                Fill::Lower => factor(i, k) * factor(j, k).conj(),
                Fill::Upper => factor(k, i).conj() * factor(k, j),
            })
            .sum();
        assert!(
            (product - a[i + j * ld].wide()).norm() <= bound,
            "({i}, {j}): {product} is not {:?}",
            a[i + j * ld]
        );
    }
}

fn untouched_outside<T: Number>(n: usize, ld: usize, fill: Fill, before: &[T], after: &[T]) {
    for (index, (before, after)) in before.iter().zip(after).enumerate() {
        let (i, j) = (index % ld, index / ld);
        assert!(
            (i < n && inside(fill, i, j)) || before == after,
            "({i}, {j}) lies outside the triangle and was changed"
        );
    }
}

fn cholesky_is_right<T: Number>(setup: &Setup, n: usize, gap: usize, fill: Fill, seed: u64) {
    let ld = n + gap;
    let a = positive::<T>(n, ld, seed);
    let mut buffer = setup.upload(&a);
    let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, ld);
    solver::potrf(&setup.blas, fill, matrix).unwrap().check().unwrap();
    let factor = setup.download(&buffer);
    untouched_outside(n, ld, fill, &a, &factor);
    factor_is_right(n, ld, fill, &a, &factor);

    let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, ld);
    let factor = solver::Cholesky::from_factor(&setup.blas, fill, matrix).unwrap();
    solver::potri(&setup.blas, factor).unwrap().check().unwrap();
    let inverse = setup.download(&buffer);
    untouched_outside(n, ld, fill, &a, &inverse);
    let inverse = |i: usize, j: usize| {
        if inside(fill, i, j) {
            inverse[i + j * ld].wide()
        } else {
            inverse[j + i * ld].wide().conj()
        }
    };
    for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
        let product: C64 = (0..n).map(|k| a[i + k * ld].wide() * inverse(k, j)).sum();
        let identity = C64::new(f64::from(i == j), 0.0);
        assert!(
            (product - identity).norm() < 100.0 * n as f64 * T::EPSILON,
            "({i}, {j}) of a times its inverse: {product}"
        );
    }
}

proptest! {
    #![proptest_config(common::cases(60))]

    #[test]
    fn factor_and_inverse_give_the_matrix_back(n in 1_usize..24, gap in 0_usize..4, fill in fill(), seed in any::<u64>()) {
        let setup = setup();
        cholesky_is_right::<f32>(&setup, n, gap, fill, seed);
        cholesky_is_right::<f64>(&setup, n, gap, fill, seed);
        cholesky_is_right::<Complex<f32>>(&setup, n, gap, fill, seed);
        cholesky_is_right::<Complex<f64>>(&setup, n, gap, fill, seed);
    }

    #[test]
    fn the_first_minor_that_is_not_positive_is_named(n in 1_usize..40, at in 0_usize..40, fill in fill(), negative in any::<bool>()) {
        let at = at % n;
        let setup = setup();
        let mut a = vec![C32::ZERO; n * n];
        for i in 0..n {
            a[i + i * n] = C32::ONE;
        }
        // Two bad places: the first one counts.
        a[at + at * n] = if negative { -C32::ONE } else { C32::ZERO };
        a[n * n - 1] = if at == n - 1 { a[n * n - 1] } else { -C32::ONE };
        let mut buffer = setup.upload(&a);
        let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, n);
        let error = solver::potrf(&setup.blas, fill, matrix).unwrap().check().unwrap_err();
        prop_assert!(matches!(error, Error::NotPositiveDefinite { minor } if minor == at + 1), "{}", error);
    }

    #[test]
    fn the_first_zero_pivot_is_named(n in 1_usize..20, at in 0_usize..20, fill in fill()) {
        let at = at % n;
        let setup = setup();
        let mut factor = vec![C32::ZERO; n * n];
        for i in 0..n {
            factor[i + i * n] = C32::ONE;
        }
        factor[at + at * n] = C32::ZERO;
        let mut buffer = setup.upload(&factor);
        let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, n);
        let factor = solver::Cholesky::from_factor(&setup.blas, fill, matrix).unwrap();
        let error = solver::potri(&setup.blas, factor).unwrap().check().unwrap_err();
        prop_assert!(matches!(error, Error::Singular { pivot } if pivot == at + 1), "{}", error);
    }
}

#[test]
fn a_large_matrix_is_factorised() {
    let setup = setup();
    cholesky_is_right::<C32>(&setup, 150, 3, Fill::Lower, 11);
    cholesky_is_right::<C32>(&setup, 131, 0, Fill::Upper, 12);
}

#[test]
fn a_matrix_with_nan_is_not_positive_definite() {
    let setup = setup();
    let mut buffer = setup.upload(&[1.0, 0.0, 0.0, f32::NAN]);
    let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), 2, 2, 2);
    let error = solver::potrf(&setup.blas, Fill::Lower, matrix)
        .unwrap()
        .check()
        .unwrap_err();
    assert!(matches!(error, Error::NotPositiveDefinite { minor: 2 }), "{error}");
}

#[test]
fn infos_in_flight_do_not_mix() {
    let setup = setup();
    let mut buffers: Vec<_> = (0..40)
        .map(|i| setup.upload(&[if i % 3 == 0 { -1.0_f32 } else { 1.0 }]))
        .collect();
    for round in 0..2 {
        let infos: Vec<_> = buffers
            .iter_mut()
            .map(|buffer| {
                let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), 1, 1, 1);
                solver::potrf(&setup.blas, Fill::Lower, matrix).unwrap()
            })
            .collect();
        for (i, factor) in infos.into_iter().enumerate() {
            if i % 5 == 0 {
                // Not looked at: its integer goes to a later call.
                drop(factor);
            } else {
                assert_eq!(factor.check().is_err(), i % 3 == 0, "matrix {i} of round {round}");
            }
        }
    }
}

#[test]
fn an_empty_matrix_has_a_factor() {
    let setup = setup();
    let mut buffer = setup.device.alloc::<C32>(0).unwrap();
    let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), 0, 0, 1);
    solver::potrf(&setup.blas, Fill::Lower, matrix)
        .unwrap()
        .check()
        .unwrap();
}

#[test]
fn what_cannot_be_factorised_is_refused() {
    let setup = setup();
    let mut buffer = setup.device.alloc_zeroed::<C32>(6).unwrap();
    let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), 2, 3, 2);
    let error = solver::potrf(&setup.blas, Fill::Lower, matrix).unwrap_err();
    assert_eq!(error.to_string(), "potrf: a is 2 x 3, but 2 x 2 is needed");

    let other = setup.device.stream().unwrap();
    let elsewhere = rocblas::Handle::new(setup.blas.library(), &other).unwrap();
    let factor = solver::Cholesky::from_factor(&elsewhere, Fill::Lower, Matrix::new(&mut buffer, 2, 2, 2)).unwrap();
    let error = solver::potri(&setup.blas, factor).unwrap_err();
    assert!(
        matches!(
            error,
            Error::WrongStream {
                call: "potri",
                argument: "cholesky"
            }
        ),
        "{error}"
    );

    // SAFETY: all functions are the host platform's.
    let without = unsafe { rocblas::Library::from_tables(std::sync::Arc::new(common::rocblas_api()), None) };
    let blas = rocblas::Handle::new(&without, &setup.stream).unwrap();
    let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), 2, 2, 2);
    let error = solver::potrf(&blas, Fill::Lower, matrix).unwrap_err();
    assert!(
        error.to_string().starts_with("potrf: no rocSOLVER library is loaded"),
        "{error}"
    );
}

#[test]
fn each_matrix_of_a_batch_has_its_own_info() {
    let setup = setup();
    let n = 3;
    let (good, mut bad) = (positive::<C32>(n, n, 1), positive::<C32>(n, n, 2));
    bad[4] = -C32::ONE;
    let batch = [good.as_slice(), &bad, &good, &bad].concat();
    let mut buffer = setup.upload(&batch);
    fn run<'a>(
        setup: &'a Setup,
        n: usize,
        buffer: &'a mut hip::DeviceBuffer<C32>,
    ) -> solver::Cholesky<'a, C32, solver::Strided> {
        let a = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, n).batch(n * n, 4);
        solver::potrf(&setup.blas, Fill::Lower, a).unwrap()
    }
    let failures = run(&setup, n, &mut buffer).failures().unwrap();
    assert_eq!(
        failures.iter().map(|failure| failure.matrix).collect::<Vec<_>>(),
        [1, 3]
    );
    let found = setup.download(&buffer);
    factor_is_right(n, n, Fill::Lower, &good, &found[..9]);
    factor_is_right(n, n, Fill::Lower, &good, &found[18..27]);

    let mut buffer = setup.upload(&batch);
    let error = run(&setup, n, &mut buffer).check().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("matrix 1 of 4: the matrix is not positive definite"),
        "{error}"
    );
}

#[test]
fn each_matrix_of_a_batch_is_inverted() {
    let setup = setup();
    let n = 2;
    // The factors of 4 * identity, of nothing (a zero pivot), and of identity.
    let (two, one) = (C32::new(2.0, 0.0), C32::ONE);
    let zero = C32::ZERO;
    let factors = [two, zero, zero, two, one, zero, zero, zero, one, zero, zero, one];
    let mut buffer = setup.upload(&factors);
    let a = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, n).batch(4, 3);
    let factors = solver::Cholesky::from_factor(&setup.blas, Fill::Upper, a).unwrap();
    let failures = solver::potri(&setup.blas, factors).unwrap().failures().unwrap();
    let [failure] = failures.as_slice() else {
        panic!("{failures:?}")
    };
    assert_eq!(failure.matrix, 1);
    assert!(matches!(failure.error, Error::Singular { pivot: 2 }));
    let found = setup.download(&buffer);
    assert_eq!((found[0], found[3]), (C32::new(0.25, 0.0), C32::new(0.25, 0.0)));
    assert_eq!((found[8], found[11]), (one, one));
}

/// Bound of `|A * X - B|` for a solver that is as exact as it should be: relative to the sizes of all that goes in.
fn solves<T: Number>(n: usize, nrhs: usize, a: impl Fn(usize, usize) -> C64, x: &[T], b: &[T]) {
    for (i, k) in (0..n).flat_map(|i| (0..nrhs).map(move |k| (i, k))) {
        let (mut sum, mut size) = (C64::ZERO, b[i + k * n].wide().norm());
        for j in 0..n {
            let term = a(i, j) * x[j + k * n].wide();
            sum += term;
            size += term.norm();
        }
        let wrong = (sum - b[i + k * n].wide()).norm();
        let bound = 60.0 * n as f64 * T::EPSILON * size;
        assert!(wrong <= bound, "({i}, {k}): off by {wrong}, bound {bound}");
    }
}

fn solution_is_right<T: Number>(setup: &Setup, n: usize, nrhs: usize, gap: usize, fill: Fill, seed: u64) {
    let ld = n + gap;
    let a = positive::<T>(n, ld, seed);
    let b = numbers::<T>(n * nrhs, seed ^ 77);
    let element = |i: usize, j: usize| a[i + j * ld].wide();
    let stream = &setup.stream;
    let mut factor = setup.upload(&a);
    let mut first = setup.upload(&b);
    let mut second = setup.upload(&b);
    let matrix = Matrix::new(factor.on_mut(stream).unwrap(), n, n, ld);
    let rhs = Matrix::new(first.on_mut(stream).unwrap(), n, nrhs, n);
    let cholesky = solver::posv(&setup.blas, fill, matrix, rhs).unwrap();
    // The factor that solving left serves again.
    let rhs = Matrix::new(second.on_mut(stream).unwrap(), n, nrhs, n);
    solver::potrs(&setup.blas, &cholesky, rhs).unwrap();
    cholesky.check().unwrap();
    drop(cholesky);
    solves(n, nrhs, element, &setup.download(&first), &b);
    solves(n, nrhs, element, &setup.download(&second), &b);
    let factor = setup.download(&factor);
    untouched_outside(n, ld, fill, &a, &factor);
    factor_is_right(n, ld, fill, &a, &factor);
}

proptest! {
    #![proptest_config(common::cases(40))]

    #[test]
    fn solutions_satisfy_their_equations(
        n in 1_usize..20, nrhs in 1_usize..5, gap in 0_usize..4, fill in fill(), seed in any::<u64>(),
    ) {
        let setup = setup();
        solution_is_right::<f32>(&setup, n, nrhs, gap, fill, seed);
        solution_is_right::<f64>(&setup, n, nrhs, gap, fill, seed);
        solution_is_right::<Complex<f32>>(&setup, n, nrhs, gap, fill, seed);
        solution_is_right::<Complex<f64>>(&setup, n, nrhs, gap, fill, seed);
    }
}

#[test]
fn a_batch_is_solved_matrix_by_matrix() {
    let setup = setup();
    let (n, count) = (4, 3);
    let systems: Vec<_> = (0..count).map(|seed| positive::<C32>(n, n, seed)).collect();
    let b = numbers::<C32>(n * 2 * count as usize, 8);
    let mut a = setup.upload(&systems.concat());
    let mut x = setup.upload(&b);
    let stream = &setup.stream;
    let matrices = Matrix::new(a.on_mut(stream).unwrap(), n, n, n).batch(n * n, count as usize);
    let rhs = Matrix::new(x.on_mut(stream).unwrap(), n, 2, n).batch(n * 2, count as usize);
    solver::posv(&setup.blas, Fill::Upper, matrices, rhs)
        .unwrap()
        .check()
        .unwrap();
    let x = setup.download(&x);
    for (i, a) in systems.iter().enumerate() {
        let part = i * n * 2..(i + 1) * n * 2;
        solves(n, 2, |i, j| a[i + j * n].wide(), &x[part.clone()], &b[part]);
    }
}

#[test]
fn a_factorisation_that_stopped_is_what_its_inverse_reports() {
    let setup = setup();
    // Leading minor 2 is -1, but no diagonal element of what is left is zero.
    let mut buffer = setup.upload(&[1.0_f64, 0.0, 0.0, -1.0]);
    let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), 2, 2, 2);
    let factor = solver::potrf(&setup.blas, Fill::Lower, matrix).unwrap();
    let error = solver::potri(&setup.blas, factor).unwrap().check().unwrap_err();
    assert!(matches!(error, Error::NotPositiveDefinite { minor: 2 }), "{error}");
}

fn setup_with_compiler() -> Setup {
    // The platform under test has its compiler in the runtime already.
    common::setup()
}

#[test]
fn a_whole_inverse_has_both_triangles() {
    fn check<T: Number>(setup: &Setup, n: usize, ld: usize, fill: Fill, count: usize) {
        let stride = ld * n + 3;
        let mut all = numbers::<T>(stride * count, 99);
        for matrix in 0..count {
            let a = positive::<T>(n, ld, matrix as u64 + 1);
            all[matrix * stride..][..ld * n].copy_from_slice(&a);
        }
        let mirror = solver::Mirror::new(&setup.device).unwrap();
        let mut buffer = setup.upload(&all);
        let slice = buffer.on_mut(&setup.stream).unwrap();
        let batch = Matrix::new(slice, n, n, ld).batch(stride, count);
        solver::hermitian_inverse(&setup.blas, &mirror, fill, batch)
            .unwrap()
            .check()
            .unwrap();
        let found = setup.download(&buffer);
        for matrix in 0..count {
            let (a, inverse) = (&all[matrix * stride..], &found[matrix * stride..]);
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let (one, other) = (inverse[i + j * ld].wide(), inverse[j + i * ld].wide());
                assert_eq!(one, other.conj(), "({i}, {j}) of matrix {matrix}");
                let product: C64 = (0..n).map(|k| a[i + k * ld].wide() * inverse[k + j * ld].wide()).sum();
                let identity = C64::new(f64::from(i == j), 0.0);
                assert!((product - identity).norm() < 100.0 * n as f64 * T::EPSILON);
            }
            // What lies between columns and matrices is as before.
            for (index, (before, after)) in a.iter().zip(inverse).take(stride).enumerate() {
                assert!(
                    (index < ld * n && index % ld < n) || before == after,
                    "element {index} of matrix {matrix} was changed"
                );
            }
        }
    }
    let setup = setup_with_compiler();
    check::<f32>(&setup, 5, 6, Fill::Lower, 1);
    check::<f64>(&setup, 37, 37, Fill::Upper, 2);
    check::<Complex<f32>>(&setup, 33, 35, Fill::Lower, 3);
    check::<Complex<f64>>(&setup, 17, 17, Fill::Upper, 2);
    check::<Complex<f32>>(&setup, 1, 1, Fill::Upper, 2);
}

#[test]
fn a_completed_matrix_has_a_real_diagonal() {
    let setup = setup_with_compiler();
    let mirror = solver::Mirror::new(&setup.device).unwrap();
    for (n, fill) in [(1, Fill::Upper), (3, Fill::Lower), (18, Fill::Upper)] {
        // As if rounding had left imaginary parts there.
        let all = numbers::<C32>(n * n, 7);
        assert!((0..n).all(|i| all[i + i * n].im != 0.0));
        let mut buffer = setup.upload(&all);
        let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, n);
        mirror.complete(&setup.blas, fill, matrix).unwrap();
        let found = setup.download(&buffer);
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let expected = match (i == j, inside(fill, i, j)) {
                (true, _) => C32::new(all[i + i * n].re, 0.0),
                (_, true) => all[i + j * n],
                (_, false) => all[j + i * n].conj(),
            };
            assert_eq!(found[i + j * n], expected, "({i}, {j}) of {n}, {fill:?}");
        }
    }
}

/// A batch of positive definite matrices whose other triangle and gaps hold patterns: not numbers, each with bits of
/// its own. The matrix `bad` of them stops at its second minor.
fn patterned(n: usize, ld: usize, stride: usize, count: usize, fill: Fill, bad: usize) -> Vec<C32> {
    let mut all: Vec<C32> = (0..stride * count)
        .map(|i| {
            let bits = 0x7fc0_0000 | (i as u32 & 0xffff);
            C32::new(f32::from_bits(bits), f32::from_bits(bits ^ 0x8000_0000))
        })
        .collect();
    for matrix in 0..count {
        let mut numbers = numbers::<C32>(n * n, matrix as u64 + 3).into_iter();
        let to = &mut all[matrix * stride..];
        for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
            if i == j {
                // more than the rest of its row together
                to[i + j * ld] = C32::new(2.0 * n as f32, 0.0);
            } else if inside(fill, i, j) {
                to[i + j * ld] = numbers.next().unwrap();
            }
        }
        if matrix == bad && n > 1 {
            to[1 + ld] = C32::new(-1e4, 0.0);
        }
    }
    all
}

fn bits(values: &[C32]) -> Vec<[u32; 2]> {
    values
        .iter()
        .map(|value| [value.re.to_bits(), value.im.to_bits()])
        .collect()
}

/// The inverse of one matrix of a batch, of which some columns are looked at.
fn some_columns_are_the_identitys(n: usize, ld: usize, fill: Fill, a: &[C32], inverse: &[C32]) {
    let entry = |of: &[C32], i: usize, j: usize| match inside(fill, i, j) {
        true => of[i + j * ld].wide(),
        false => of[j + i * ld].wide().conj(),
    };
    for j in (0..n).step_by(n / 8 + 1) {
        for i in 0..n {
            let product: C64 = (0..n).map(|k| entry(a, i, k) * entry(inverse, k, j)).sum();
            let off = (product - C64::new(f64::from(i == j), 0.0)).norm();
            assert!(off < 100.0 * n as f64 * C32::EPSILON, "({i}, {j}) of {n}: off by {off}");
        }
    }
}

#[test]
fn a_batch_leaves_the_other_triangle_to_the_bit_and_names_the_matrix_that_fails() {
    const BAD: usize = 2;
    let setup = setup();
    let sizes = [(1, 3), (2, 4), (33, 5), (341, 4)];
    for ((n, count), fill) in sizes
        .into_iter()
        .flat_map(|size| [(size, Fill::Lower), (size, Fill::Upper)])
    {
        let ld = n + 2;
        let stride = ld * n + 3;
        let all = patterned(n, ld, stride, count, fill, BAD);
        let mut buffer = setup.upload(&all);
        let a = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, ld).batch(stride, count);
        let factor = solver::potrf(&setup.blas, fill, a).unwrap();
        let failures = factor.failures().unwrap();
        let failed: Vec<_> = failures.iter().map(|failure| failure.matrix).collect();
        let expected = if n > 1 { vec![BAD] } else { Vec::new() };
        assert_eq!(failed, expected, "n {n}, {fill:?}");
        for failure in &failures {
            assert!(matches!(failure.error, Error::NotPositiveDefinite { minor: 2 }));
        }
        let named = |index: usize| {
            let at = index % stride;
            let (i, j) = (at % ld, at / ld);
            i < n && j < n && inside(fill, i, j)
        };
        let untouched = |found: &[C32]| {
            let (before, after) = (bits(&all), bits(found));
            let changed = (0..all.len()).find(|&index| !named(index) && before[index] != after[index]);
            assert_eq!(changed, None, "n {n}, {fill:?}: an element outside of the triangle");
        };
        let infos = solver::potri(&setup.blas, factor).unwrap();
        let failed: Vec<_> = infos.failures().unwrap().iter().map(|failure| failure.matrix).collect();
        assert_eq!(failed, expected);
        let inverses = setup.download(&buffer);
        untouched(&inverses);
        for matrix in (0..count).filter(|matrix| !expected.contains(matrix)) {
            let part = matrix * stride..matrix * stride + ld * n;
            some_columns_are_the_identitys(n, ld, fill, &all[part.clone()], &inverses[part]);
        }
        let mut buffer = setup.upload(&all);
        let a = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, ld).batch(stride, count);
        let factor = solver::potrf(&setup.blas, fill, a).unwrap();
        assert_eq!(factor.failures().unwrap().len(), expected.len());
        drop(factor);
        untouched(&setup.download(&buffer));
    }
}
