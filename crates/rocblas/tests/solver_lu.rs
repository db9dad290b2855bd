//! LU factors: what they multiply to, solving and inverting with them, and what is said of singular matrices.

mod common;

use common::{C64, Number, Setup, element, numbers, op, setup};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Error, Matrix, Op, solver};

type C32 = Complex<f32>;

/// A matrix that no exchange of rows makes better: every diagonal element outweighs its row and column.
fn dominant<T: Number>(n: usize, ld: usize, seed: u64) -> Vec<T> {
    let mut a = numbers::<T>(ld * n, seed);
    for i in 0..n {
        let grown = a[i + i * ld].wide() + C64::new(2.0 * n as f64, 0.0);
        a[i + i * ld] = T::of(grown);
    }
    a
}

/// The rows that `P` puts in order, from the exchanges that make it.
fn order(rows: usize, pivots: &[i32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    for (step, &row) in pivots.iter().enumerate() {
        let row = usize::try_from(row).unwrap() - 1;
        assert!((step..rows).contains(&row), "step {step} exchanged row {row} of {rows}");
        order.swap(step, row);
    }
    order
}

/// `L * U` is the matrix with its rows in `order`. The bound is backward: relative to the terms of each sum.
fn factors_are_right<T: Number>((m, n, ld): (usize, usize, usize), a: &[T], factors: &[T], order: &[usize]) {
    let lower = |i: usize, k: usize| match i.cmp(&k) {
        std::cmp::Ordering::Greater => factors[i + k * ld].wide(),
        std::cmp::Ordering::Equal => C64::ONE,
        std::cmp::Ordering::Less => C64::ZERO,
    };
    for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
        let (mut sum, mut size) = (C64::ZERO, 0.0);
        for k in 0..=i.min(j).min(m.min(n) - 1) {
            let term = lower(i, k) * factors[k + j * ld].wide();
            sum += term;
            size += term.norm();
        }
        let expected = a[order[i] + j * ld].wide();
        let bound = 20.0 * m.max(n) as f64 * T::EPSILON * (size + expected.norm());
        assert!((sum - expected).norm() <= bound, "({i}, {j}): {sum} is not {expected}");
    }
}

fn untouched_between<T: Number>(rows: usize, ld: usize, before: &[T], after: &[T]) {
    for (index, (before, after)) in before.iter().zip(after).enumerate() {
        assert!(
            index % ld < rows || before == after,
            "element {index} lies between columns and was changed"
        );
    }
}

/// `op(A) * X = B` within a bound relative to the terms, times what the elimination may have grown by.
fn solves<T: Number>(op: Op, n: usize, (a, lda): (&[T], usize), (x, b, ldb): (&[T], &[T], usize), nrhs: usize) {
    for k in 0..nrhs {
        let largest = (0..n).map(|j| x[j + k * ldb].wide().norm()).fold(0.0, f64::max);
        for i in 0..n {
            let sum: C64 = (0..n)
                .map(|j| element(a, 0, lda, op, i, j) * x[j + k * ldb].wide())
                .sum();
            let expected = b[i + k * ldb].wide();
            let bound = 60.0 * (n * n) as f64 * T::EPSILON * (largest * 2.0 * n as f64 + 1.0);
            let wrong = (sum - expected).norm();
            assert!(wrong <= bound, "({i}, {k}): off by {wrong}, bound {bound}");
        }
    }
}

/// `A * inverse` is the identity within a bound relative to the inverse's size.
fn inverts<T: Number>(n: usize, (a, lda): (&[T], usize), (inverse, ldc): (&[T], usize)) {
    let largest = (0..n * n)
        .map(|index| inverse[index % n + index / n * ldc].wide().norm())
        .fold(1.0, f64::max);
    for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
        let product: C64 = (0..n)
            .map(|k| a[i + k * lda].wide() * inverse[k + j * ldc].wide())
            .sum();
        let wrong = (product - C64::new(f64::from(i == j), 0.0)).norm();
        let bound = 60.0 * (n * n) as f64 * T::EPSILON * largest * 2.0 * n as f64;
        assert!(wrong <= bound, "({i}, {j}): off by {wrong}, bound {bound}");
    }
}

fn factorisation_is_right<T: Number>(setup: &Setup, m: usize, n: usize, gap: usize, seed: u64) {
    let ld = m + gap;
    let a = numbers::<T>(ld * n, seed);
    let mut buffer = setup.upload(&a);
    let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), m, n, ld);
    let lu = solver::getrf(&setup.blas, matrix).unwrap();
    lu.check().unwrap();
    let pivots = lu.pivots().unwrap().to_vec().unwrap();
    assert_eq!(pivots.len(), m.min(n));
    drop(lu);
    let factors = setup.download(&buffer);
    untouched_between(m, ld, &a, &factors);
    factors_are_right((m, n, ld), &a, &factors, &order(m, &pivots));
}

/// Factors with or without exchanges; a solve, an inverse elsewhere and one in place from the same ones.
fn everything_is_right<T: Number>(
    setup: &Setup,
    (n, nrhs, gap): (usize, usize, usize),
    op: Op,
    exchange: bool,
    seed: u64,
) {
    let (lda, ldb, ldc) = (n + gap, n + gap + 1, n + 2);
    let stream = &setup.stream;
    let a = if exchange {
        // Far from singular, but with its large elements off the diagonal.
        let mut a = dominant::<T>(n, lda, seed);
        for column in a.chunks_mut(lda) {
            column[..n].rotate_right(seed as usize % n);
        }
        a
    } else {
        dominant(n, lda, seed)
    };
    let b = numbers::<T>(ldb * nrhs, seed ^ 9);
    let c = numbers::<T>(ldc * n, seed ^ 10);
    let (mut factors, mut x, mut inverse) = (setup.upload(&a), setup.upload(&b), setup.upload(&c));
    let matrix = Matrix::new(factors.on_mut(stream).unwrap(), n, n, lda);
    let lu = if exchange {
        solver::getrf(&setup.blas, matrix).unwrap()
    } else {
        solver::getrf_npvt(&setup.blas, matrix).unwrap()
    };
    assert_eq!(lu.pivots().is_some(), exchange);
    let rhs = Matrix::new(x.on_mut(stream).unwrap(), n, nrhs, ldb);
    solver::getrs(&setup.blas, op, &lu, rhs).unwrap();
    let elsewhere = Matrix::new(inverse.on_mut(stream).unwrap(), n, n, ldc);
    solver::getri_outofplace(&setup.blas, &lu, elsewhere)
        .unwrap()
        .check()
        .unwrap();
    lu.check().unwrap();
    solver::getri(&setup.blas, lu).unwrap().check().unwrap();

    let (x, inverse, in_place) = (setup.download(&x), setup.download(&inverse), setup.download(&factors));
    untouched_between(n, ldb, &b, &x);
    untouched_between(n, ldc, &c, &inverse);
    untouched_between(n, lda, &a, &in_place);
    solves(op, n, (&a, lda), (&x, &b, ldb), nrhs);
    inverts(n, (&a, lda), (&inverse, ldc));
    inverts(n, (&a, lda), (&in_place, lda));
}

proptest! {
    #![proptest_config(common::cases(40))]

    #[test]
    fn factors_multiply_to_the_matrix_with_rows_exchanged(
        m in 1_usize..20, n in 1_usize..20, gap in 0_usize..4, seed in any::<u64>(),
    ) {
        let setup = setup();
        factorisation_is_right::<f32>(&setup, m, n, gap, seed);
        factorisation_is_right::<f64>(&setup, m, n, gap, seed);
        factorisation_is_right::<C32>(&setup, m, n, gap, seed);
        factorisation_is_right::<C64>(&setup, m, n, gap, seed);
    }

    #[test]
    fn solutions_and_inverses_satisfy_their_equations(
        n in 1_usize..16, nrhs in 1_usize..5, gap in 0_usize..3, op in op(), exchange in any::<bool>(), seed in any::<u64>(),
    ) {
        let setup = setup();
        everything_is_right::<f32>(&setup, (n, nrhs, gap), op, exchange, seed);
        everything_is_right::<f64>(&setup, (n, nrhs, gap), op, exchange, seed);
        everything_is_right::<C32>(&setup, (n, nrhs, gap), op, exchange, seed);
        everything_is_right::<C64>(&setup, (n, nrhs, gap), op, exchange, seed);
    }

    #[test]
    fn the_first_zero_pivot_is_named(n in 1_usize..16, at in 0_usize..16, call in 0..4) {
        let at = at % n;
        let setup = setup();
        let mut a = vec![C64::ZERO; n * n];
        for i in 0..n {
            a[i + i * n] = C64::ONE;
        }
        // Two empty columns: the first one counts.
        a[at + at * n] = C64::ZERO;
        a[n * n - 1] = C64::ZERO;
        let (mut buffer, mut other) = (setup.upload(&a), setup.upload(&a));
        let matrix = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, n);
        let second = Matrix::new(other.on_mut(&setup.stream).unwrap(), n, n, n);
        let blas = &setup.blas;
        let found = match call {
            0 => solver::getrf(blas, matrix).unwrap().check(),
            1 => solver::getrf_npvt(blas, matrix).unwrap().check(),
            2 => solver::gesv(blas, matrix, second).unwrap().check(),
            _ => {
                let lu = solver::getrf(blas, matrix).unwrap();
                let elsewhere = solver::getri_outofplace(blas, &lu, second).unwrap().check().unwrap_err();
                prop_assert!(matches!(elsewhere, Error::Singular { pivot } if pivot == at + 1), "{}", elsewhere);
                solver::getri(blas, lu).unwrap().check()
            }
        };
        let error = found.unwrap_err();
        prop_assert!(matches!(error, Error::Singular { pivot } if pivot == at + 1), "{}", error);
    }

    #[test]
    fn a_batch_gives_what_its_matrices_give_alone(
        n in 1_usize..8, nrhs in 1_usize..4, count in 1_usize..5, extra in 0_usize..3, op in op(), seed in any::<u64>(),
    ) {
        let setup = setup();
        let (ld, stream) = (n + extra, &setup.stream);
        let (stride_a, stride_b) = (ld * n + extra, ld * nrhs + 1);
        let a = numbers::<C32>(stride_a * count, seed);
        let b = numbers::<C32>(stride_b * count, seed ^ 3);
        let (mut batch_a, mut batch_b) = (setup.upload(&a), setup.upload(&b));
        let matrices = Matrix::new(batch_a.on_mut(stream).unwrap(), n, n, ld).batch(stride_a, count);
        let rhs = Matrix::new(batch_b.on_mut(stream).unwrap(), n, nrhs, ld).batch(stride_b, count);
        let lu = solver::getrf(&setup.blas, matrices).unwrap();
        solver::getrs(&setup.blas, op, &lu, rhs).unwrap();
        lu.check().unwrap();
        let pivots = lu.pivots().unwrap();
        prop_assert_eq!((pivots.len(), pivots.count()), (n, count));
        let pivots = pivots.to_vec().unwrap();
        solver::getri(&setup.blas, lu).unwrap().check().unwrap();
        let (inverses, solutions) = (setup.download(&batch_a), setup.download(&batch_b));

        for i in 0..count {
            let (from_a, from_b) = (i * stride_a, i * stride_b);
            let (a, b) = (&a[from_a..][..ld * n], &b[from_b..][..ld * nrhs]);
            let (mut one_a, mut one_b) = (setup.upload(a), setup.upload(b));
            let matrix = Matrix::new(one_a.on_mut(stream).unwrap(), n, n, ld);
            let rhs = Matrix::new(one_b.on_mut(stream).unwrap(), n, nrhs, ld);
            let lu = solver::getrf(&setup.blas, matrix).unwrap();
            solver::getrs(&setup.blas, op, &lu, rhs).unwrap();
            prop_assert_eq!(lu.pivots().unwrap().to_vec().unwrap(), &pivots[i * n..][..n]);
            solver::getri(&setup.blas, lu).unwrap().check().unwrap();
            prop_assert_eq!(setup.download(&one_a), &inverses[from_a..][..ld * n]);
            prop_assert_eq!(setup.download(&one_b), &solutions[from_b..][..ld * nrhs]);
        }
    }
}

#[test]
fn solving_leaves_factors_that_solve_again() {
    fn check<T: Number>(setup: &Setup) {
        let (n, nrhs) = (9, 3);
        let a = dominant::<T>(n, n, 4);
        let b = numbers::<T>(n * nrhs, 5);
        let (mut factors, mut x, mut y) = (setup.upload(&a), setup.upload(&b), setup.upload(&b));
        let stream = &setup.stream;
        let matrix = Matrix::new(factors.on_mut(stream).unwrap(), n, n, n);
        let first = Matrix::new(x.on_mut(stream).unwrap(), n, nrhs, n);
        let second = Matrix::new(y.on_mut(stream).unwrap(), n, nrhs, n);
        let lu = solver::gesv(&setup.blas, matrix, first).unwrap();
        solver::getrs(&setup.blas, Op::ConjTranspose, &lu, second).unwrap();
        lu.check().unwrap();
        drop(lu);
        solves(Op::None, n, (&a, n), (&setup.download(&x), &b, n), nrhs);
        solves(Op::ConjTranspose, n, (&a, n), (&setup.download(&y), &b, n), nrhs);
    }
    let setup = setup();
    check::<f32>(&setup);
    check::<f64>(&setup);
    check::<C32>(&setup);
    check::<C64>(&setup);
}

#[test]
fn a_singular_matrix_of_a_batch_is_named_and_the_others_are_inverted() {
    let setup = setup();
    let n = 2;
    let (two, zero, half) = (2.0_f64, 0.0, 0.5);
    let regular = [two, zero, zero, two];
    // Its second row is a multiple of its first.
    let singular = [1.0, 2.0, 2.0, 4.0];
    let mut buffer = setup.upload(&[regular, singular, regular, singular].concat());
    let a = Matrix::new(buffer.on_mut(&setup.stream).unwrap(), n, n, n).batch(4, 4);
    let lu = solver::getrf(&setup.blas, a).unwrap();
    let error = lu.check().unwrap_err();
    assert_eq!(
        error.to_string(),
        "matrix 1 of 4: the matrix is singular: element (2, 2) of its factor is zero"
    );
    let failed = |failures: Vec<solver::Failure>| -> Vec<_> { failures.iter().map(|failure| failure.matrix).collect() };
    assert_eq!(failed(lu.failures().unwrap()), [1, 3]);
    let inverses = solver::getri(&setup.blas, lu).unwrap();
    assert_eq!(failed(inverses.failures().unwrap()), [1, 3]);
    let found = setup.download(&buffer);
    assert_eq!(found[..4], [half, zero, zero, half]);
    assert_eq!(found[8..12], [half, zero, zero, half]);
}

#[test]
fn empty_systems_are_solved() {
    let setup = setup();
    let stream = &setup.stream;
    let (mut nothing, mut other) = (
        setup.device.alloc::<C32>(0).unwrap(),
        setup.device.alloc::<C32>(0).unwrap(),
    );
    let a = Matrix::new(nothing.on_mut(stream).unwrap(), 0, 0, 1);
    let b = Matrix::new(other.on_mut(stream).unwrap(), 0, 3, 1);
    let lu = solver::gesv(&setup.blas, a, b).unwrap();
    lu.check().unwrap();
    assert!(lu.pivots().unwrap().is_empty());
    assert!(lu.pivots().unwrap().to_vec().unwrap().is_empty());
    solver::getri(&setup.blas, lu).unwrap().check().unwrap();

    // No right-hand side: there are factors all the same.
    let mut a = setup.upload(&[0.0_f32, 4.0, 2.0, 2.0]);
    let mut none = setup.device.alloc::<f32>(0).unwrap();
    let matrix = Matrix::new(a.on_mut(stream).unwrap(), 2, 2, 2);
    let rhs = Matrix::new(none.on_mut(stream).unwrap(), 2, 0, 2);
    let lu = solver::gesv(&setup.blas, matrix, rhs).unwrap();
    lu.check().unwrap();
    assert_eq!(lu.pivots().unwrap().to_vec().unwrap(), [2, 2]);
    drop(lu);
    assert_eq!(setup.download(&a), [4.0, 0.0, 2.0, 2.0]);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let setup = setup();
    let stream = &setup.stream;
    let other = setup.device.stream().unwrap();
    let mut a = setup.device.alloc_zeroed::<f32>(64).unwrap();
    let mut b = setup.device.alloc_zeroed::<f32>(64).unwrap();
    macro_rules! matrix {
        ($buffer:ident, $rows:expr, $cols:expr) => {
            Matrix::new($buffer.on_mut(stream).unwrap(), $rows, $cols, $rows)
        };
    }
    macro_rules! batch {
        ($buffer:ident, $rows:expr, $cols:expr, $count:expr) => {
            Matrix::new($buffer.on_mut(stream).unwrap(), $rows, $cols, $rows).batch($rows * $cols, $count)
        };
    }
    let blas = &setup.blas;
    let text = |error: Error| error.to_string();

    let wide = solver::getrf(blas, matrix!(a, 2, 3)).unwrap();
    assert_eq!(
        text(solver::getrs(blas, Op::None, &wide, matrix!(b, 2, 1)).unwrap_err()),
        "getrs: lu is 2 x 3, but 2 x 2 is needed"
    );
    assert_eq!(
        text(solver::getri(blas, wide).unwrap_err()),
        "getri: lu is 2 x 3, but 2 x 2 is needed"
    );
    assert_eq!(
        text(solver::gesv(blas, matrix!(a, 3, 2), matrix!(b, 3, 1)).unwrap_err()),
        "gesv: a is 3 x 2, but 3 x 3 is needed"
    );
    assert_eq!(
        text(solver::gesv(blas, matrix!(a, 3, 3), matrix!(b, 4, 2)).unwrap_err()),
        "gesv: b is 4 x 2, but 3 x 2 is needed"
    );
    assert_eq!(
        text(solver::gesv(blas, batch!(a, 3, 3, 2), batch!(b, 3, 1, 4)).unwrap_err()),
        "gesv: b is a batch of 4, but one of 2, as the factors, is needed"
    );
    let lu = solver::getrf(blas, matrix!(a, 3, 3)).unwrap();
    assert_eq!(
        text(solver::getri_outofplace(blas, &lu, matrix!(b, 3, 4)).unwrap_err()),
        "getri_outofplace: c is 3 x 4, but 3 x 3 is needed"
    );
    let elsewhere = Matrix::new(b.on_mut(&other).unwrap(), 3, 1, 3);
    let error = solver::getrs(blas, Op::None, &lu, elsewhere).unwrap_err();
    assert!(
        matches!(
            error,
            Error::WrongStream {
                call: "getrs",
                argument: "b"
            }
        ),
        "{error}"
    );
    let error = lu.check().unwrap_err();
    assert!(matches!(error, Error::Singular { pivot: 1 }), "{error}");
}

#[test]
fn factors_of_one_handle_serve_another_of_its_stream() {
    let setup = setup();
    let second = rocblas::Handle::new(setup.blas.library(), &setup.stream).unwrap();
    let mut a = setup.upload(&[2.0_f32]);
    let mut b = setup.upload(&[6.0_f32]);
    let matrix = Matrix::new(a.on_mut(&setup.stream).unwrap(), 1, 1, 1);
    let lu = solver::getrf(&setup.blas, matrix).unwrap();
    let rhs = Matrix::new(b.on_mut(&setup.stream).unwrap(), 1, 1, 1);
    solver::getrs(&second, Op::None, &lu, rhs).unwrap();
    let info = lu.into_info();
    // The pool that its integers go back to outlives the handle.
    drop(setup.blas);
    info.check().unwrap();
    drop(info);
    let mut seen = [0.0];
    b.copy_to_slice(&setup.stream, &mut seen).unwrap();
    assert_eq!(seen, [3.0]);
}
