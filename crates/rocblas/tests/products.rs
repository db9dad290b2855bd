//! Products against a plain double-precision reference, in all shapes, layouts and scalars.

mod common;

use common::{C64, Number, Setup, close, element, expected, numbers, op, setup, stored};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{ComplexScalar, Fill, Matrix, Op, Scalar};

#[derive(Debug, Clone)]
struct Shape {
    op_a: Op,
    op_b: Op,
    m: usize,
    n: usize,
    k: usize,
    /// Elements between the columns of a, b, c.
    gaps: [usize; 3],
    /// Elements before a, b, c in their buffers.
    offsets: [usize; 3],
    alpha: C64,
    beta: C64,
    seed: u64,
}

fn factor() -> impl Strategy<Value = C64> {
    prop_oneof![
        Just(C64::ZERO),
        Just(C64::ONE),
        (-2.0..2.0_f64, -2.0..2.0_f64).prop_map(|(re, im)| C64::new(re, im)),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let sizes = (1_usize..20, 1_usize..20, 0_usize..24);
    let layout = (prop::array::uniform3(0_usize..5), prop::array::uniform3(0_usize..5));
    (op(), op(), sizes, layout, factor(), factor(), any::<u64>()).prop_map(
        |(op_a, op_b, (m, n, k), (gaps, offsets), alpha, beta, seed)| Shape {
            op_a,
            op_b,
            m,
            n,
            k,
            gaps,
            offsets,
            alpha,
            beta,
            seed,
        },
    )
}

fn gemm_is_right<T: Number>(setup: &Setup, shape: &Shape) {
    let Shape {
        op_a,
        op_b,
        m,
        n,
        k,
        gaps,
        offsets,
        seed,
        ..
    } = *shape;
    let (alpha, beta) = (T::of(shape.alpha), T::of(shape.beta));
    let (a_rows, a_cols) = stored(op_a, m, k);
    let (b_rows, b_cols) = stored(op_b, k, n);
    let (lda, ldb, ldc) = (a_rows.max(1) + gaps[0], b_rows.max(1) + gaps[1], m + gaps[2]);
    let a = numbers::<T>(offsets[0] + lda * a_cols, seed);
    let b = numbers::<T>(offsets[1] + ldb * b_cols, seed ^ 1);
    let before = numbers::<T>(offsets[2] + ldc * n, seed ^ 2);

    let (buffer_a, buffer_b, mut buffer_c) = (setup.upload(&a), setup.upload(&b), setup.upload(&before));
    let stream = &setup.stream;
    setup
        .blas
        .gemm(
            op_a,
            op_b,
            alpha,
            Matrix::new(
                buffer_a.on(stream).unwrap().slice(offsets[0]..).unwrap(),
                a_rows,
                a_cols,
                lda,
            ),
            Matrix::new(
                buffer_b.on(stream).unwrap().slice(offsets[1]..).unwrap(),
                b_rows,
                b_cols,
                ldb,
            ),
            beta,
            Matrix::new(
                buffer_c.on_mut(stream).unwrap().slice_mut(offsets[2]..).unwrap(),
                m,
                n,
                ldc,
            ),
        )
        .unwrap();

    for (index, found) in setup.download(&buffer_c).into_iter().enumerate() {
        let place = index.checked_sub(offsets[2]).map(|place| (place % ldc, place / ldc));
        match place {
            Some((i, j)) if i < m => {
                let a = |l| element(&a, offsets[0], lda, op_a, i, l);
                let b = |l| element(&b, offsets[1], ldb, op_b, l, j);
                let expected = expected(k, alpha, beta, before[index], a, b);
                assert!(close(found, expected), "({i}, {j}): {found:?}, not {expected:?}");
            }
            _ => assert_eq!(found, before[index], "element {index} lies outside c and was changed"),
        }
    }
}

/// How the matrices of a batch lie.
#[derive(Debug, Clone, Copy)]
enum Placement {
    /// One after another, with this many elements between.
    Apart(usize),
    /// Row blocks of one tall matrix.
    Interleaved,
    /// All the same.
    Same,
}

fn placement(inputs: bool) -> impl Strategy<Value = Placement> {
    let apart = (0_usize..6).prop_map(Placement::Apart);
    if inputs {
        prop_oneof![2 => apart, 1 => Just(Placement::Interleaved), 2 => Just(Placement::Same)].boxed()
    } else {
        prop_oneof![2 => apart, 1 => Just(Placement::Interleaved)].boxed()
    }
}

/// Leading dimension and stride.
fn place(placement: Placement, rows: usize, cols: usize, gap: usize, count: usize) -> (usize, usize) {
    let ld = rows.max(1) + gap;
    match placement {
        Placement::Apart(between) => (ld, ld * cols + between),
        Placement::Interleaved => (ld * count.max(1), ld),
        Placement::Same => (ld, 0),
    }
}

fn gemm_strided_batched_is_right<T: Number>(setup: &Setup, shape: &Shape, placements: [Placement; 3], count: usize) {
    let Shape {
        op_a,
        op_b,
        m,
        n,
        k,
        gaps,
        seed,
        ..
    } = *shape;
    let (alpha, beta) = (T::of(shape.alpha), T::of(shape.beta));
    let (a_rows, a_cols) = stored(op_a, m, k);
    let (b_rows, b_cols) = stored(op_b, k, n);
    let (lda, stride_a) = place(placements[0], a_rows, a_cols, gaps[0], count);
    let (ldb, stride_b) = place(placements[1], b_rows, b_cols, gaps[1], count);
    let (ldc, stride_c) = place(placements[2], m, n, gaps[2], count);
    let a = numbers::<T>(stride_a * count + lda * a_cols, seed);
    let b = numbers::<T>(stride_b * count + ldb * b_cols, seed ^ 1);
    let before = numbers::<T>(stride_c * count + ldc * n, seed ^ 2);

    let (buffer_a, buffer_b, mut buffer_c) = (setup.upload(&a), setup.upload(&b), setup.upload(&before));
    let stream = &setup.stream;
    setup
        .blas
        .gemm_strided_batched(
            op_a,
            op_b,
            alpha,
            Matrix::new(buffer_a.on(stream).unwrap(), a_rows, a_cols, lda).batch(stride_a, count),
            Matrix::new(buffer_b.on(stream).unwrap(), b_rows, b_cols, ldb).batch(stride_b, count),
            beta,
            Matrix::new(buffer_c.on_mut(stream).unwrap(), m, n, ldc).batch(stride_c, count),
        )
        .unwrap();

    let found = setup.download(&buffer_c);
    let mut written = vec![false; found.len()];
    for matrix in 0..count {
        for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
            let index = matrix * stride_c + i + j * ldc;
            written[index] = true;
            let a = |l| element(&a, matrix * stride_a, lda, op_a, i, l);
            let b = |l| element(&b, matrix * stride_b, ldb, op_b, l, j);
            let expected = expected(k, alpha, beta, before[index], a, b);
            assert!(
                close(found[index], expected),
                "matrix {matrix} ({i}, {j}): {:?}, not {expected:?}",
                found[index]
            );
        }
    }
    for index in 0..found.len() {
        assert!(
            written[index] || found[index] == before[index],
            "element {index} lies outside c and was changed"
        );
    }
}

fn herk_is_right<T: Number + ComplexScalar>(setup: &Setup, fill: Fill, op: Op, shape: &Shape)
where
    T::Real: Number,
{
    let Shape { n, k, gaps, seed, .. } = *shape;
    let (alpha, beta) = (T::Real::of(shape.alpha), T::Real::of(shape.beta));
    let (rows, cols) = stored(op, n, k);
    let (lda, ldc) = (rows.max(1) + gaps[0], n + gaps[1]);
    let a = numbers::<T>(lda * cols, seed);
    let before = numbers::<T>(ldc * n, seed ^ 2);

    let (buffer_a, mut buffer_c) = (setup.upload(&a), setup.upload(&before));
    setup
        .blas
        .herk(
            fill,
            op,
            alpha,
            Matrix::new(buffer_a.on(&setup.stream).unwrap(), rows, cols, lda),
            beta,
            Matrix::new(buffer_c.on_mut(&setup.stream).unwrap(), n, n, ldc),
        )
        .unwrap();

    let (wide_alpha, wide_beta) = (T::of(alpha.wide()), T::of(beta.wide()));
    for (index, found) in setup.download(&buffer_c).into_iter().enumerate() {
        let (i, j) = (index % ldc, index / ldc);
        let inside = i < n && if fill == Fill::Upper { i <= j } else { i >= j };
        if !inside {
            assert_eq!(
                found, before[index],
                "({i}, {j}) lies outside the triangle and was changed"
            );
            continue;
        }
        let (x, y) = (
            |l| element(&a, 0, lda, op, i, l),
            |l| element(&a, 0, lda, op, j, l).conj(),
        );
        let mut expected = expected(k, wide_alpha, wide_beta, before[index], x, y);
        if i == j {
            expected.0.im = 0.0;
            // BLAS leaves c alone when there is nothing to do.
            let untouched = beta == T::Real::ONE && (k == 0 || alpha == T::Real::ZERO);
            assert!(untouched || found.wide().im == 0.0, "({i}, {i}) is not real: {found:?}");
            if untouched {
                expected.0.im = before[index].wide().im;
            }
        }
        assert!(close(found, expected), "({i}, {j}): {found:?}, not {expected:?}");
    }
}

proptest! {
    #![proptest_config(common::cases(150))]

    #[test]
    fn gemm_is_the_product(shape in shape()) {
        let setup = setup();
        gemm_is_right::<f32>(&setup, &shape);
        gemm_is_right::<f64>(&setup, &shape);
        gemm_is_right::<Complex<f32>>(&setup, &shape);
        gemm_is_right::<Complex<f64>>(&setup, &shape);
    }

    #[test]
    fn gemm_strided_batched_is_the_product_of_each(
        shape in shape(), a in placement(true), b in placement(true), c in placement(false), count in 0_usize..6,
    ) {
        let setup = setup();
        gemm_strided_batched_is_right::<f32>(&setup, &shape, [a, b, c], count);
        gemm_strided_batched_is_right::<f64>(&setup, &shape, [a, b, c], count);
        gemm_strided_batched_is_right::<Complex<f32>>(&setup, &shape, [a, b, c], count);
        gemm_strided_batched_is_right::<Complex<f64>>(&setup, &shape, [a, b, c], count);
    }

    #[test]
    fn herk_is_the_product_with_its_conjugate_transpose(shape in shape(), upper in any::<bool>(), adjoint in any::<bool>()) {
        let setup = setup();
        let fill = if upper { Fill::Upper } else { Fill::Lower };
        let op = if adjoint { Op::ConjTranspose } else { Op::None };
        herk_is_right::<Complex<f32>>(&setup, fill, op, &shape);
        herk_is_right::<Complex<f64>>(&setup, fill, op, &shape);
    }
}

#[test]
fn a_large_product_is_right_in_every_corner() {
    let setup = setup();
    let shape = Shape {
        op_a: Op::ConjTranspose,
        op_b: Op::None,
        m: 130,
        n: 67,
        k: 300,
        gaps: [3, 0, 1],
        offsets: [0, 1, 2],
        alpha: C64::new(0.5, -1.0),
        beta: C64::new(0.0, 1.0),
        seed: 7,
    };
    gemm_is_right::<Complex<f32>>(&setup, &shape);
    gemm_is_right::<f32>(&setup, &shape);
}

#[test]
fn an_output_that_is_not_read_may_hold_anything() {
    let setup = setup();
    let (a, b) = (setup.upload(&[2.0_f32]), setup.upload(&[3.0_f32]));
    for rubbish in [f32::NAN, f32::INFINITY] {
        let mut c = setup.upload(&[rubbish]);
        let matrix = |buffer| Matrix::new(buffer, 1, 1, 1);
        let (x, y) = (
            matrix(a.on(&setup.stream).unwrap()),
            matrix(b.on(&setup.stream).unwrap()),
        );
        let out = Matrix::new(c.on_mut(&setup.stream).unwrap(), 1, 1, 1);
        setup.blas.gemm(Op::None, Op::None, 1.0, x, y, 0.0, out).unwrap();
        assert_eq!(setup.download(&c), [6.0]);
    }
}

#[test]
fn equal_calls_give_equal_bits() {
    let setup = setup();
    let (m, n, k) = (33, 65, 1000);
    let a = setup.upload(&numbers::<Complex<f32>>(m * k, 1));
    let b = setup.upload(&numbers::<Complex<f32>>(k * n, 2));
    let run = || {
        let mut c = setup.device.alloc::<Complex<f32>>(m * n).unwrap();
        let (alpha, beta) = (Complex::ONE, Complex::ZERO);
        let x = Matrix::new(a.on(&setup.stream).unwrap(), m, k, m);
        let y = Matrix::new(b.on(&setup.stream).unwrap(), k, n, k);
        let out = Matrix::new(c.on_mut(&setup.stream).unwrap(), m, n, m);
        setup.blas.gemm(Op::None, Op::None, alpha, x, y, beta, out).unwrap();
        setup.download(&c)
    };
    let first = run();
    for _ in 0..5 {
        assert_eq!(run(), first);
    }
}
