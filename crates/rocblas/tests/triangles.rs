//! `syrk`, `trsm` and `trmm` against a plain double-precision reference.

mod common;

use common::{C64, Number, Setup, close, element, expected, numbers, op, setup, stored};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Diag, Error, Fill, Matrix, Op, Side, Triangle};

fn fill() -> impl Strategy<Value = Fill> {
    prop_oneof![Just(Fill::Upper), Just(Fill::Lower)]
}

fn triangle() -> impl Strategy<Value = Triangle> {
    let side = prop_oneof![Just(Side::Left), Just(Side::Right)];
    let diag = prop_oneof![Just(Diag::NonUnit), Just(Diag::Unit)];
    (side, fill(), op(), diag).prop_map(|(side, fill, op, diag)| Triangle { side, fill, op, diag })
}

fn factor() -> impl Strategy<Value = C64> {
    let any = (-2.0..2.0_f64, -2.0..2.0_f64).prop_map(|(re, im)| C64::new(re, im));
    prop_oneof![1 => Just(C64::ZERO), 1 => Just(C64::ONE), 3 => any]
}

/// Whether (i, j) of the stored matrix is in the triangle.
fn inside(fill: Fill, i: usize, j: usize) -> bool {
    match fill {
        Fill::Upper => i <= j,
        Fill::Lower => i >= j,
    }
}

/// Element (i, j) of `op(a)` as the triangle says.
fn entry<T: Number>(triangle: Triangle, a: &[T], ld: usize, i: usize, j: usize) -> C64 {
    let (row, col) = stored(triangle.op, i, j);
    if i == j && triangle.diag == Diag::Unit {
        C64::ONE
    } else if inside(triangle.fill, row, col) {
        element(a, 0, ld, triangle.op, i, j)
    } else {
        C64::ZERO
    }
}

#[derive(Debug, Clone)]
struct Case {
    triangle: Triangle,
    m: usize,
    n: usize,
    /// Elements between the columns of a, b, c.
    gaps: [usize; 3],
    alpha: C64,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    (
        triangle(),
        1_usize..14,
        1_usize..14,
        prop::array::uniform3(0_usize..4),
        factor(),
        any::<u64>(),
    )
        .prop_map(|(triangle, m, n, gaps, alpha, seed)| Case {
            triangle,
            m,
            n,
            gaps,
            alpha,
            seed,
        })
}

impl Case {
    fn order(&self) -> usize {
        match self.triangle.side {
            Side::Left => self.m,
            Side::Right => self.n,
        }
    }

    /// A well-conditioned triangle: a strong diagonal, and small numbers elsewhere. What is not to be read is not a
    /// number.
    fn triangular<T: Number>(&self) -> (Vec<T>, usize) {
        let (order, ld) = (self.order(), self.order() + self.gaps[0]);
        let mut a = numbers::<T>(ld * order, self.seed);
        for (index, value) in a.iter_mut().enumerate() {
            let (i, j) = (index % ld, index / ld);
            let read = i < order && inside(self.triangle.fill, i, j);
            *value = if !read || i == j && self.triangle.diag == Diag::Unit {
                T::of(C64::new(f64::NAN, f64::NAN))
            } else if i == j {
                T::of(value.wide() * 0.25 + 2.0)
            } else {
                T::of(value.wide() * 0.25)
            };
        }
        (a, ld)
    }

    /// `op(a) * b` or `b * op(a)` at (i, j): terms of the sum, one by one.
    fn term<T: Number>(
        &self,
        a: &[T],
        lda: usize,
        i: usize,
        j: usize,
        l: usize,
        b: impl Fn(usize, usize) -> C64,
    ) -> (C64, C64) {
        match self.triangle.side {
            Side::Left => (entry(self.triangle, a, lda, i, l), b(l, j)),
            Side::Right => (b(i, l), entry(self.triangle, a, lda, l, j)),
        }
    }
}

fn trmm_is_right<T: Number>(setup: &Setup, case: &Case, in_place: bool) {
    let Case {
        triangle,
        m,
        n,
        gaps,
        seed,
        ..
    } = *case;
    let alpha = T::of(case.alpha);
    let (a, lda) = case.triangular::<T>();
    let (ldb, ldc) = (m + gaps[1], m + gaps[2]);
    let b = numbers::<T>(ldb * n, seed ^ 1);
    let c = vec![T::of(C64::new(f64::NAN, 0.0)); ldc * n];
    let buffer_a = setup.upload(&a);
    let (mut buffer_b, mut buffer_c) = (setup.upload(&b), setup.upload(&c));
    let stream = &setup.stream;
    let matrix_a = Matrix::new(buffer_a.on(stream).unwrap(), case.order(), case.order(), lda);
    let (found, ld) = if in_place {
        let b = Matrix::new(buffer_b.on_mut(stream).unwrap(), m, n, ldb);
        setup.blas.trmm_in_place(triangle, alpha, matrix_a, b).unwrap();
        (setup.download(&buffer_b), ldb)
    } else {
        let b = Matrix::new(buffer_b.on(stream).unwrap(), m, n, ldb);
        let c = Matrix::new(buffer_c.on_mut(stream).unwrap(), m, n, ldc);
        setup.blas.trmm(triangle, alpha, matrix_a, b, c).unwrap();
        (setup.download(&buffer_c), ldc)
    };
    for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
        let term = |l| case.term(&a, lda, i, j, l, |i, j| b[i + j * ldb].wide());
        let expected = expected(case.order(), alpha, T::ZERO, T::ZERO, |l| term(l).0, |l| term(l).1);
        let found = found[i + j * ld];
        assert!(close(found, expected), "({i}, {j}): {found:?}, not {expected:?}");
    }
}

/// What comes out of `trsm` gives the right side when it is put in.
fn trsm_is_right<T: Number>(setup: &Setup, case: &Case) {
    let Case {
        triangle,
        m,
        n,
        gaps,
        seed,
        ..
    } = *case;
    let alpha = T::of(case.alpha);
    let (a, lda) = case.triangular::<T>();
    let ldb = m + gaps[1];
    let b = numbers::<T>(ldb * n, seed ^ 1);
    let buffer_a = setup.upload(&a);
    let mut buffer_b = setup.upload(&b);
    let stream = &setup.stream;
    let matrix_a = Matrix::new(buffer_a.on(stream).unwrap(), case.order(), case.order(), lda);
    let matrix_b = Matrix::new(buffer_b.on_mut(stream).unwrap(), m, n, ldb);
    setup.blas.trsm(triangle, alpha, matrix_a, matrix_b).unwrap();
    let x = setup.download(&buffer_b);
    for index in 0..x.len() {
        let (i, j) = (index % ldb, index / ldb);
        if i >= m {
            assert_eq!(x[index], b[index], "between the columns");
            continue;
        }
        let (mut sum, mut size) = (C64::ZERO, 0.0);
        for l in 0..case.order() {
            let (one, other) = case.term(&a, lda, i, j, l, |i, j| x[i + j * ldb].wide());
            sum += one * other;
            size += one.norm() * other.norm();
        }
        let wanted = alpha.wide() * b[index].wide();
        // A triangle of small numbers beside ones may grow what it solves for, and its errors, with its order.
        let growth = 1.4_f64.powi(case.order() as i32);
        let bound = (size + wanted.norm() + growth) * growth * T::EPSILON * (2.0 * case.order() as f64 + 8.0);
        assert!(
            (sum - wanted).norm() <= bound,
            "({i}, {j}): {sum}, not {wanted} within {bound}"
        );
    }
}

fn syrk_is_right<T: Number>(setup: &Setup, fill: Fill, op: Op, case: &Case, beta: C64) {
    let Case {
        m: n, n: k, gaps, seed, ..
    } = *case;
    let (alpha, beta) = (T::of(case.alpha), T::of(beta));
    let (rows, cols) = stored(op, n, k);
    let (lda, ldc) = (rows + gaps[0], n + gaps[1]);
    let a = numbers::<T>(lda * cols, seed);
    let before = numbers::<T>(ldc * n, seed ^ 2);
    let (buffer_a, mut buffer_c) = (setup.upload(&a), setup.upload(&before));
    let matrix_a = Matrix::new(buffer_a.on(&setup.stream).unwrap(), rows, cols, lda);
    let matrix_c = Matrix::new(buffer_c.on_mut(&setup.stream).unwrap(), n, n, ldc);
    setup.blas.syrk(fill, op, alpha, matrix_a, beta, matrix_c).unwrap();
    for (index, found) in setup.download(&buffer_c).into_iter().enumerate() {
        let (i, j) = (index % ldc, index / ldc);
        if i >= n || !inside(fill, i, j) {
            assert_eq!(found, before[index], "({i}, {j}) lies outside the triangle");
            continue;
        }
        let (x, y) = (|l| element(&a, 0, lda, op, i, l), |l| element(&a, 0, lda, op, j, l));
        let expected = expected(k, alpha, beta, before[index], x, y);
        assert!(close(found, expected), "({i}, {j}): {found:?}, not {expected:?}");
    }
}

proptest! {
    #![proptest_config(common::cases(80))]

    #[test]
    fn trmm_is_the_product_in_place_and_elsewhere(case in case()) {
        let setup = setup();
        for in_place in [false, true] {
            trmm_is_right::<f32>(&setup, &case, in_place);
            trmm_is_right::<f64>(&setup, &case, in_place);
            trmm_is_right::<Complex<f32>>(&setup, &case, in_place);
            trmm_is_right::<Complex<f64>>(&setup, &case, in_place);
        }
    }

    #[test]
    fn trsm_solves_its_equation(case in case()) {
        let setup = setup();
        trsm_is_right::<f32>(&setup, &case);
        trsm_is_right::<f64>(&setup, &case);
        trsm_is_right::<Complex<f32>>(&setup, &case);
        trsm_is_right::<Complex<f64>>(&setup, &case);
    }

    #[test]
    fn syrk_is_the_product_with_its_transpose(fill in fill(), op in op(), case in case(), beta in factor()) {
        let setup = setup();
        syrk_is_right::<f32>(&setup, fill, op, &case, beta);
        syrk_is_right::<f64>(&setup, fill, op, &case, beta);
        if op != Op::ConjTranspose {
            syrk_is_right::<Complex<f32>>(&setup, fill, op, &case, beta);
            syrk_is_right::<Complex<f64>>(&setup, fill, op, &case, beta);
        }
    }
}

const PLAIN: Triangle = Triangle {
    side: Side::Left,
    fill: Fill::Lower,
    op: Op::None,
    diag: Diag::NonUnit,
};

#[test]
fn a_triangle_is_as_large_as_its_side() {
    let setup = setup();
    let stream = &setup.stream;
    let a = setup.upload(&[1.0_f32; 16]);
    let (x, mut y) = (setup.upload(&[1.0_f32; 12]), setup.upload(&[1.0_f32; 12]));
    let b = Matrix::new(x.on(stream).unwrap(), 3, 4, 3);
    let mut run = |side, order, rows| {
        let a = Matrix::new(a.on(stream)?, order, order, order);
        let triangle = Triangle { side, ..PLAIN };
        setup
            .blas
            .trmm(triangle, 1.0, a, b, Matrix::new(&mut y, rows, 4, rows))?;
        setup.blas.trsm(triangle, 1.0, a, Matrix::new(&mut y, rows, 4, rows))
    };
    run(Side::Left, 3, 3).unwrap();
    run(Side::Right, 4, 3).unwrap();
    for (side, order, rows, text) in [
        (Side::Left, 4, 3, "trmm: a is 4 x 4, but 3 x 3 is needed"),
        (Side::Right, 3, 3, "trmm: a is 3 x 3, but 4 x 4 is needed"),
        (Side::Left, 3, 2, "trmm: c is 2 x 4, but 3 x 4 is needed"),
    ] {
        assert_eq!(run(side, order, rows).unwrap_err().to_string(), text);
    }
    let a = Matrix::new(a.on(stream).unwrap(), 3, 4, 3);
    let b = Matrix::new(y.on_mut(stream).unwrap(), 3, 4, 3);
    assert_eq!(
        setup.blas.trsm(PLAIN, 1.0, a, b).unwrap_err().to_string(),
        "trsm: a is 3 x 4, but 3 x 3 is needed"
    );
}

#[test]
fn a_complex_syrk_has_no_conjugate() {
    let setup = setup();
    let stream = &setup.stream;
    let (a, mut c) = (setup.upload(&[C64::ONE; 4]), setup.upload(&[C64::ONE; 4]));
    let a = Matrix::new(a.on(stream).unwrap(), 2, 2, 2);
    let c = Matrix::new(c.on_mut(stream).unwrap(), 2, 2, 2);
    let outcome = setup
        .blas
        .syrk(Fill::Upper, Op::ConjTranspose, C64::ONE, a, C64::ZERO, c);
    assert!(matches!(outcome, Err(Error::Unsupported { argument: "op", .. })));
}

/// A table of the time before 6.0, when `trmm` had no output matrix and its successor another name.
#[test]
fn the_old_form_of_trmm_is_never_called() {
    use std::sync::Arc;
    let stream = common::device().stream().unwrap();
    let device = stream.device().clone();
    let today = common::rocblas_api();
    let api = rocblas_sys::Api {
        rocblas_strmm: None,
        rocblas_strmm_64: None,
        rocblas_strmm_outofplace: today.rocblas_strmm,
        ..today
    };
    // SAFETY: all functions are the host platform's; the two forms have one signature.
    let library = unsafe { rocblas::Library::from_tables(Arc::new(api), None) };
    let blas = rocblas::Handle::new(&library, &stream).unwrap();
    let a = device.alloc_from(&stream, &[2.0_f32]).unwrap();
    let mut b = device.alloc_from(&stream, &[3.0_f32]).unwrap();
    let matrix = Matrix::new(a.on(&stream).unwrap(), 1, 1, 1);
    let product = Matrix::new(b.on_mut(&stream).unwrap(), 1, 1, 1);
    blas.trmm_in_place(PLAIN, 1.0, matrix, product).unwrap();
    let mut seen = [0.0];
    b.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [6.0]);
}
