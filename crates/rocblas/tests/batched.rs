//! Batches of pointers: the products are those of each matrix, wherever the matrices lie.

mod common;

use common::{C64, Number, Setup, close, element, expected, numbers, op, setup, stored};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Error, Op, PointerArray, Result, solver};

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
    let at_b = |i: usize| (MADE - 1 - i) * size_b;

    let batch_a = PointerArray::new(a_shape.0, a_shape.1, lda);
    let offsets: Vec<_> = case.choice.iter().map(|&(_, i)| at_b(i)).collect();
    let batch_b = PointerArray::at_offsets(offsets, b_shape.0, b_shape.1, ldb);
    let batch_c = PointerArray::new(m, n, ldc);
    {
        let a = batch_a.of_each(case.choice.iter().map(|&(i, _)| &buffers_a[i]));
        let (b, c) = (batch_b.of(&buffer_b), batch_c.of_each(&mut buffers_c));
        setup.blas.gemm_batched(op_a, op_b, alpha, a, b, beta, c).unwrap();
    }
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
fn a_memory_of_a_batch_has_to_hold_its_matrices() {
    let setup = setup();
    let (long, short) = (setup.upload(&[0.0_f32; 6]), setup.upload(&[0.0_f32; 5]));
    let both = |rows, cols, ld| {
        PointerArray::new(rows, cols, ld)
            .of_each([&long, &short])
            .send(&setup.blas)
    };
    both(2, 2, 3).unwrap();
    assert_eq!(
        both(2, 3, 2).unwrap_err().to_string(),
        "send: the matrices: matrix 1 of the batch, 2 x 3 with leading dimension 2 from element 0 on, needs 6 elements; \
         the memory has 5"
    );
    assert!(matches!(
        both(3, 1, 2),
        Err(Error::Operand { cause, .. }) if matches!(*cause, Error::LeadingDimension { rows: 3, ld: 2 })
    ));
    let at = |offset| {
        PointerArray::at_offsets([0, offset], 2, 2, 2)
            .of(&long)
            .send(&setup.blas)
    };
    at(2).unwrap();
    assert_eq!(
        at(3).unwrap_err().to_string(),
        "send: the matrices: matrix 1 of the batch, 2 x 2 with leading dimension 2 from element 3 on, needs 7 elements; \
         the memory has 6"
    );
    assert!(at(usize::MAX).is_err());
}

#[test]
fn a_batch_is_of_one_stream() {
    let setup = setup();
    let other = setup.device.stream().unwrap();
    let (x, y) = (setup.upload(&[0.0_f32; 4]), setup.upload(&[0.0_f32; 4]));
    let mut c = setup.upload(&[0.0_f32; 8]);
    let (inputs, output) = (PointerArray::new(2, 2, 2), PointerArray::at_offsets([0, 4], 2, 2, 2));
    let slices = [x.on(&setup.stream).unwrap(), y.on(&other).unwrap()];
    let a = inputs.of_each(slices);
    let error = setup
        .blas
        .gemm_batched(Op::None, Op::None, 1.0, a, a, 0.0, output.of(&mut c))
        .unwrap_err();
    assert!(matches!(error, Error::WrongStream { argument: "a", .. }), "{error}");
}

/// Sends the array of addresses of an output, and says whether the output is one.
fn written<M>(setup: &Setup, array: &PointerArray<f32>, memory: M) -> Result<()>
where
    M: hip::DeviceMemoryMut<Element = f32>,
{
    solver::getrf(&setup.blas, array.of(memory)).map(|lu| lu.into_info().check().unwrap_or(()))
}

#[test]
fn outputs_at_offsets_may_be_interleaved_but_not_overlap() {
    let setup = setup();
    let mut buffer = setup.upload(&[0.0_f32; 24]);
    let mut at = |offsets: &[usize]| written(&setup, &PointerArray::at_offsets(offsets, 2, 3, 6), &mut buffer);
    at(&[4, 0, 2]).unwrap();
    let error = at(&[4, 0, 3]).unwrap_err().to_string();
    assert_eq!(
        error,
        "getrf: a: matrices 0 and 2 of the output batch share elements: offsets 4 and 3, 2 x 3 with leading dimension 6"
    );
    assert!(at(&[1, 1]).is_err());
    at(&[]).unwrap();
}

#[test]
fn outputs_in_several_memories_do_not_overlap_either() {
    let setup = setup();
    let mut buffer = setup.upload(&[0.0_f32; 8]);
    let mut slice = buffer.on_mut(&setup.stream).unwrap();
    let (begin, stream) = (slice.as_mut_ptr(), slice.stream());
    // SAFETY: inside the buffer, which is only used in the order of one stream, by a call that refuses two of them that
    // overlap.
    let twice = |first| unsafe { hip::DeviceSliceMut::from_hip_raw_parts(begin.add(first), 4, stream) };
    let array = PointerArray::new(2, 2, 2);
    for (first, meets) in [(0, true), (3, true), (4, false)] {
        let call = solver::getrf(&setup.blas, array.of_each([twice(0), twice(first)]));
        assert_eq!(call.is_err(), meets, "{first}");
        if let Ok(lu) = call {
            assert!(lu.check().is_err(), "zeros have no inverse");
        }
    }
}

#[test]
fn an_output_shares_nothing_with_an_input_that_lies_between_its_matrices() {
    let setup = setup();
    let mut buffer = setup.upload(&[1.0_f32; 12]);
    let mut slice = buffer.on_mut(&setup.stream).unwrap();
    let (begin, stream) = (slice.as_mut_ptr(), slice.stream());
    // SAFETY: as above.
    let all = || unsafe { hip::DeviceSlice::from_hip_raw_parts(begin.cast_const(), 12, stream) };
    // SAFETY: as above.
    let written = || unsafe { hip::DeviceSliceMut::from_hip_raw_parts(begin, 12, stream) };
    let output = PointerArray::at_offsets([8, 0], 2, 2, 2);
    for (between, fits) in [(4, true), (3, false), (5, false)] {
        let input = PointerArray::at_offsets([between, between], 2, 2, 2);
        let a = input.of(all());
        let done = setup
            .blas
            .gemm_batched(Op::None, Op::None, 1.0, a, a, 0.0, output.of(written()));
        let refused = matches!(
            done,
            Err(Error::OperandsOverlap {
                output: "c",
                input: "a",
                ..
            })
        );
        assert_eq!((done.is_ok(), refused), (fits, !fits), "{done:?}");
    }
}

#[test]
fn a_kept_array_is_made_anew_for_memory_elsewhere() {
    let setup = setup();
    let array = PointerArray::new(2, 2, 2);
    let (one, two) = (setup.upload(&[1.0_f32; 4]), setup.upload(&[2.0_f32; 4]));
    let mut c = setup.upload(&[0.0_f32; 8]);
    let to = PointerArray::at_offsets([0, 4], 2, 2, 2);
    for [first, second] in [[1.0_f32, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 1.0], [1.0, 1.0]] {
        let of = |value: f32| if value == 1.0 { &one } else { &two };
        let a = array.of_each([of(first), of(second)]);
        setup
            .blas
            .gemm_batched(Op::None, Op::None, 1.0, a, a, 0.0, to.of(&mut c))
            .unwrap();
        let products = [[2.0 * first * first; 4], [2.0 * second * second; 4]];
        assert_eq!(setup.download(&c), products.concat());
    }
    // Fewer of the same.
    let (a, to) = (array.of(&one), PointerArray::new(2, 2, 2));
    setup
        .blas
        .gemm_batched(Op::None, Op::None, 1.0, a, a, 0.0, to.of(&mut c))
        .unwrap();
    assert_eq!(setup.download(&c)[..4], [2.0; 4]);
    // Short memory where a longer one was.
    let slice = one.on(&setup.stream).unwrap();
    assert!(array.of(slice.slice(..3).unwrap()).send(&setup.blas).is_err());
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
        let array = PointerArray::at_offsets(offsets, rows, cols, ld);
        array.of(&buffer).send(&setup.blas).unwrap();
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
    let (x, mut y) = (setup.upload(&[1.0_f32; 12]), setup.upload(&[0.0_f32; 12]));
    let mut run = |a: &[usize], b: &[usize], c: &[usize], columns| {
        let [a, b] = [a, b].map(|offsets| PointerArray::at_offsets(offsets, 2, 2, 2));
        let c = PointerArray::at_offsets(c, 2, columns, 2);
        let c = c.of(&mut y);
        setup
            .blas
            .gemm_batched(Op::None, Op::None, 1.0, a.of(&x), b.of(&x), 0.0, c)
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
