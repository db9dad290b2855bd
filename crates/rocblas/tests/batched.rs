//! Batches of pointers: the products are those of each matrix, wherever the matrices lie.

mod common;

use common::{C64, Number, Setup, close, element, expected, numbers, op, setup, stored};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Error, Op, PointerArray, PointerBatch, PointerBatchMut};

#[derive(Debug, Clone)]
struct Case {
    ops: [Op; 2],
    /// m, n, k
    sizes: [usize; 3],
    /// Elements between the columns of a, b, c.
    gaps: [usize; 3],
    /// Of each product: which of the matrices made for `a` and `b` it reads.
    choice: Vec<(usize, usize)>,
    alpha: C64,
    beta: C64,
    seed: u64,
}

/// Matrices made for each of the inputs.
const MADE: usize = 3;

fn case() -> impl Strategy<Value = Case> {
    let sizes = (1_usize..9, 1_usize..9, 0_usize..9).prop_map(|(m, n, k)| [m, n, k]);
    let choice = prop::collection::vec((0..MADE, 0..MADE), 0..5);
    let factor = || (-2.0..2.0_f64, -2.0..2.0_f64).prop_map(|(re, im)| C64::new(re, im));
    (
        prop::array::uniform2(op()),
        sizes,
        prop::array::uniform3(0_usize..4),
        choice,
        (factor(), prop_oneof![Just(C64::ZERO), factor()]),
        any::<u64>(),
    )
        .prop_map(|(ops, sizes, gaps, choice, (alpha, beta), seed)| Case {
            ops,
            sizes,
            gaps,
            choice,
            alpha,
            beta,
            seed,
        })
}

fn gemm_batched_is_right<T: Number>(setup: &Setup, case: &Case) {
    let Case {
        ops: [op_a, op_b],
        sizes: [m, n, k],
        gaps,
        seed,
        ..
    } = *case;
    let (alpha, beta) = (T::of(case.alpha), T::of(case.beta));
    let (a_shape, b_shape) = (stored(op_a, m, k), stored(op_b, k, n));
    let lda = a_shape.0.max(1) + gaps[0];
    let ldb = b_shape.0.max(1) + gaps[1];
    let ldc = m + gaps[2];
    let count = case.choice.len();
    // `a` in buffers of their own, `b` in one buffer, backwards; both may be read more than once. Each `c` in its own.
    let a: Vec<Vec<T>> = (0..MADE).map(|i| numbers(lda * a_shape.1, seed + i as u64)).collect();
    let size_b = ldb * b_shape.1;
    let b = numbers::<T>(size_b * MADE, !seed);
    let before: Vec<Vec<T>> = (0..count).map(|i| numbers(ldc * n, seed ^ (i as u64) << 8)).collect();
    let buffers_a: Vec<_> = a.iter().map(|a| setup.upload(a)).collect();
    let buffer_b = setup.upload(&b);
    let mut buffers_c: Vec<_> = before.iter().map(|c| setup.upload(c)).collect();
    let stream = &setup.stream;
    let at_b = |i: usize| (MADE - 1 - i) * size_b;

    let slices = case.choice.iter().map(|&(i, _)| buffers_a[i].on(stream).unwrap());
    let batch_a = PointerBatch::new(stream, slices, a_shape.0, a_shape.1, lda).unwrap();
    let offsets: Vec<_> = case.choice.iter().map(|&(_, i)| at_b(i)).collect();
    let slice = buffer_b.on(stream).unwrap();
    let batch_b = PointerBatch::at_offsets(slice, &offsets, b_shape.0, b_shape.1, ldb).unwrap();
    let slices = buffers_c.iter_mut().map(|c| c.on_mut(stream).unwrap());
    let mut batch_c = PointerBatchMut::new(stream, slices, m, n, ldc).unwrap();
    setup
        .blas
        .gemm_batched(op_a, op_b, alpha, &batch_a, &batch_b, beta, &mut batch_c)
        .unwrap();
    // The arrays are given back while the call may still run.
    drop((batch_a, batch_b, batch_c));

    for (matrix, &(of_a, of_b)) in case.choice.iter().enumerate() {
        let (found, before) = (setup.download(&buffers_c[matrix]), &before[matrix]);
        for index in 0..found.len() {
            let (i, j) = (index % ldc, index / ldc);
            if i >= m {
                assert_eq!(found[index], before[index], "between the columns");
                continue;
            }
            let x = |l| element(&a[of_a], 0, lda, op_a, i, l);
            let y = |l| element(&b, at_b(of_b), ldb, op_b, l, j);
            let expected = expected(k, alpha, beta, before[index], x, y);
            assert!(
                close(found[index], expected),
                "matrix {matrix} ({i}, {j}): {:?}, not {expected:?}",
                found[index]
            );
        }
    }
}

proptest! {
    #![proptest_config(common::cases(60))]

    #[test]
    fn gemm_batched_is_the_product_of_each(case in case()) {
        let setup = setup();
        gemm_batched_is_right::<f32>(&setup, &case);
        gemm_batched_is_right::<f64>(&setup, &case);
        gemm_batched_is_right::<Complex<f32>>(&setup, &case);
        gemm_batched_is_right::<Complex<f64>>(&setup, &case);
    }
}

#[test]
fn a_slice_of_a_batch_has_to_hold_its_matrix() {
    let setup = setup();
    let stream = &setup.stream;
    let (long, short) = (setup.upload(&[0.0_f32; 6]), setup.upload(&[0.0_f32; 5]));
    let slices = || [long.on(stream).unwrap(), short.on(stream).unwrap()];
    PointerBatch::new(stream, slices(), 2, 2, 3).unwrap();
    assert_eq!(
        PointerBatch::new(stream, slices(), 2, 3, 2).unwrap_err().to_string(),
        "matrix 1 of the batch, 2 x 3 with leading dimension 2, needs 6 elements; the slice has 5"
    );
    assert!(matches!(
        PointerBatch::new(stream, slices(), 3, 1, 2),
        Err(Error::LeadingDimension { rows: 3, ld: 2 })
    ));
    let at = |offset| PointerBatch::at_offsets(long.on(stream).unwrap(), &[0, offset], 2, 2, 2);
    at(2).unwrap();
    assert_eq!(
        at(3).unwrap_err().to_string(),
        "matrix 1 of the batch, 2 x 2 with leading dimension 2, needs 4 elements; the slice has 3"
    );
    assert!(at(usize::MAX).is_err());
}

#[test]
fn a_batch_is_of_one_stream() {
    let setup = setup();
    let other = setup.device.stream().unwrap();
    let (x, y) = (setup.upload(&[0.0_f32; 4]), setup.upload(&[0.0_f32; 4]));
    let slices = [x.on(&setup.stream).unwrap(), y.on(&other).unwrap()];
    assert!(matches!(
        PointerBatch::new(&setup.stream, slices, 2, 2, 2),
        Err(Error::WrongStream { .. })
    ));
    let a = PointerBatch::new(&other, [x.on(&other).unwrap()], 2, 2, 2).unwrap();
    let mut c = setup.upload(&[0.0_f32; 4]);
    let mut c = PointerBatchMut::new(&setup.stream, [c.on_mut(&setup.stream).unwrap()], 2, 2, 2).unwrap();
    let error = setup
        .blas
        .gemm_batched(Op::None, Op::None, 1.0, &a, &a, 0.0, &mut c)
        .unwrap_err();
    assert!(matches!(error, Error::WrongStream { argument: "a", .. }), "{error}");
}

#[test]
fn outputs_at_offsets_may_be_interleaved_but_not_overlap() {
    let setup = setup();
    let mut buffer = setup.upload(&[0.0_f32; 24]);
    let mut at = |offsets: &[usize]| {
        let slice = buffer.on_mut(&setup.stream).unwrap();
        PointerBatchMut::at_offsets(slice, offsets, 2, 3, 6).map(|batch| batch.count())
    };
    assert_eq!(at(&[4, 0, 2]).unwrap(), 3);
    let error = at(&[4, 0, 3]).unwrap_err().to_string();
    assert_eq!(
        error,
        "matrices 0 and 2 of the output batch share elements: offsets 4 and 3, 2 x 3 with leading dimension 6"
    );
    assert!(at(&[1, 1]).is_err());
    assert_eq!(at(&[]).unwrap(), 0);
}

#[test]
fn a_kept_array_is_for_the_memory_that_it_was_made_for_and_no_less() {
    let setup = setup();
    let stream = &setup.stream;
    let mut buffer = setup.upload(&[0.0_f32; 12]);
    let array = PointerArray::at_offsets(buffer.on(stream).unwrap(), &[4, 0], 2, 2, 2).unwrap();
    let read = |slice| PointerBatch::from_array(&array, slice).map(|batch| batch.count());
    let all = buffer.on(stream).unwrap();
    assert_eq!(read(all).unwrap(), 2);
    for range in [0..11, 1..12] {
        let other = all.slice(range.clone()).unwrap();
        let error = read(other).unwrap_err();
        assert!(
            matches!(error, Error::OtherMemory { len: 12, .. }),
            "{range:?}: {error}"
        );
    }
    for (range, fits) in [(0..12, true), (0..11, false), (1..12, false)] {
        let mut all = buffer.on_mut(stream).unwrap();
        let written = PointerBatchMut::from_array(&array, all.slice_mut(range.clone()).unwrap());
        let refused = matches!(written, Err(Error::OtherMemory { .. }));
        assert_eq!((written.is_ok(), refused), (fits, !fits), "{range:?}");
    }
}

#[test]
fn many_interleaved_matrices_are_told_apart_in_the_time_of_looking_at_each() {
    let setup = setup();
    // Columns of all in turn: each lies within the reach of every other.
    let (count, rows, cols) = (200_000, 2, 8);
    let ld = count * rows;
    let buffer = setup.upload(&vec![0.0_f32; ld * cols]);
    let mut offsets: Vec<usize> = (0..count).map(|matrix| matrix * rows).collect();
    let start = std::time::Instant::now();
    let make = |offsets: &[usize]| {
        let slice = buffer.on(&setup.stream).unwrap();
        PointerArray::at_offsets(slice, offsets, rows, cols, ld).unwrap()
    };
    make(&offsets);
    offsets[count - 1] -= 1;
    make(&offsets);
    // Pairs would be 20 billion.
    let took = start.elapsed();
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
}

#[test]
fn batches_of_different_counts_or_shapes_are_refused() {
    let setup = setup();
    let stream = &setup.stream;
    let (x, mut y) = (setup.upload(&[1.0_f32; 12]), setup.upload(&[0.0_f32; 12]));
    let mut run = |a: &[usize], b: &[usize], c: &[usize], columns| {
        let of = |offsets| PointerBatch::at_offsets(x.on(stream)?, offsets, 2, 2, 2);
        let mut c = PointerBatchMut::at_offsets(y.on_mut(stream)?, c, 2, columns, 2)?;
        setup
            .blas
            .gemm_batched(Op::None, Op::None, 1.0, &of(a)?, &of(b)?, 0.0, &mut c)
    };
    run(&[0, 0], &[4, 0], &[0, 4], 2).unwrap();
    run(&[], &[], &[], 2).unwrap();
    assert_eq!(
        run(&[0, 0], &[4], &[0, 4], 2).unwrap_err().to_string(),
        "gemm_batched: b is a batch of 1, but one of 2, as c, is needed"
    );
    assert_eq!(
        run(&[0], &[4], &[0], 3).unwrap_err().to_string(),
        "gemm_batched: c is 2 x 3, but 2 x 2 is needed"
    );
}
