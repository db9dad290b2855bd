//! What does not fit is refused before the library is called, and the error names the argument and what it has to be.

mod common;

use common::{Setup, setup};
use num_complex::Complex;
use rocblas::{Batch, Error, Fill, Matrix, Op, Result};

type C32 = Complex<f32>;

/// `gemm` on matrices of these shapes.
fn gemm(setup: &Setup, op_a: Op, op_b: Op, a: (usize, usize), b: (usize, usize), c: (usize, usize)) -> Result<()> {
    let buffer = setup.device.alloc_zeroed::<f32>(10_000).unwrap();
    let mut out = setup.device.alloc_zeroed::<f32>(10_000).unwrap();
    let matrix = |(rows, cols): (usize, usize)| Matrix::new(&buffer, rows, cols, rows.max(1));
    let c = Matrix::new(&mut out, c.0, c.1, c.0.max(1));
    setup.blas.gemm(op_a, op_b, 1.0, matrix(a), matrix(b), 0.0, c)
}

/// Why an operand does not fit its memory, without the names of call and argument.
fn misfit(outcome: Result<()>, named: &str) -> Error {
    match outcome {
        Err(Error::Operand { call, argument, cause }) => {
            assert_eq!(format!("{call}: {argument}"), named);
            *cause
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mismatch_names_the_argument_and_the_shape_it_needs() {
    let setup = setup();
    let text = |outcome: Result<()>| outcome.unwrap_err().to_string();
    let none = Op::None;
    gemm(&setup, none, none, (3, 4), (4, 5), (3, 5)).unwrap();
    assert_eq!(
        text(gemm(&setup, none, none, (3, 4), (5, 6), (3, 6))),
        "gemm: b is 5 x 6, but 4 x 6 is needed"
    );
    assert_eq!(
        text(gemm(&setup, none, Op::Transpose, (3, 4), (4, 5), (3, 4))),
        "gemm: b is 4 x 5, but 4 x 4 is needed"
    );
    assert_eq!(
        text(gemm(&setup, Op::ConjTranspose, none, (3, 4), (4, 5), (4, 5))),
        "gemm: b is 4 x 5, but 3 x 5 is needed"
    );
    assert_eq!(
        text(gemm(&setup, none, none, (3, 4), (4, 5), (5, 3))),
        "gemm: c is 5 x 3, but 3 x 5 is needed"
    );
}

#[test]
fn a_matrix_has_to_fit_its_memory() {
    let setup = setup();
    let (buffer, mut output) = (setup.upload(&[0.0_f32; 12]), setup.upload(&[0.0_f32; 12]));
    let (nothing, mut none) = (setup.upload(&[0.0_f32; 0]), setup.upload(&[0.0_f32; 0]));
    // A product without columns takes its operands, and calls nothing.
    let mut from = |first: usize, rows: usize, cols: usize, ld: usize| {
        let a = Matrix::new(&buffer, rows, cols, ld).at(first);
        let b = Matrix::new(&nothing, cols, 0, cols.max(1));
        let c = Matrix::new(&mut none, rows, 0, rows.max(1));
        setup.blas.gemm(Op::None, Op::None, 1.0, a, b, 0.0, c)
    };
    from(3, 3, 3, 3).unwrap();
    from(12, 0, 3, 1).unwrap();
    assert_eq!(
        from(4, 3, 3, 3).unwrap_err().to_string(),
        "gemm: a: a 3 x 3 matrix with leading dimension 3 from element 4 on needs 13 elements; the memory has 12"
    );
    for (first, rows) in [(13, 0), (usize::MAX, 3), (usize::MAX - 2, 3)] {
        let error = misfit(from(first, rows, 1, 3), "gemm: a");
        assert!(matches!(error, Error::TooShort { len: 12, .. }), "{error}");
    }
    let mut of = |rows, cols, ld| from(0, rows, cols, ld);
    of(3, 4, 3).unwrap();
    of(2, 3, 5).unwrap();
    of(0, 7, 1).unwrap();
    of(7, 0, 7).unwrap();
    let error = misfit(of(3, 5, 3), "gemm: a").to_string();
    assert_eq!(
        error,
        "a 3 x 5 matrix with leading dimension 3 needs 15 elements; the memory has 12"
    );
    let error = misfit(of(3, 3, 5), "gemm: a").to_string();
    assert_eq!(
        error,
        "a 3 x 3 matrix with leading dimension 5 needs 13 elements; the memory has 12"
    );
    let error = misfit(of(4, 3, 3), "gemm: a").to_string();
    assert_eq!(
        error,
        "a matrix of 4 rows needs a leading dimension of at least 4; it is 3"
    );
    assert!(matches!(misfit(of(0, 0, 0), "gemm: a"), Error::LeadingDimension { .. }));
    let error = misfit(of(1, 1 << 40, 1), "gemm: a").to_string();
    assert_eq!(
        error,
        "a 1 x 1099511627776 matrix with leading dimension 1 needs 1099511627776 elements; the memory has 12"
    );
    assert!(matches!(
        misfit(of(1 << 40, 1 << 40, 1 << 40), "gemm: a"),
        Error::TooShort { needed: usize::MAX, .. }
    ));
    assert!(matches!(
        misfit(of(usize::MAX, usize::MAX, usize::MAX), "gemm: a"),
        Error::TooLarge { .. }
    ));
    let empty = |rows, cols| Matrix::new(&nothing, rows, cols, rows.max(1));
    let c = Matrix::new(&mut output, 3, 5, 3);
    let outcome = setup
        .blas
        .gemm(Op::None, Op::None, 1.0, empty(3, 0), empty(0, 5), 0.0, c);
    assert!(matches!(misfit(outcome, "gemm: c"), Error::TooShort { needed: 15, .. }));
}

#[test]
fn a_batch_has_to_fit_its_memory() {
    let setup = setup();
    let buffer = setup.device.alloc_zeroed::<f32>(20).unwrap();
    let (nothing, mut none) = (setup.upload(&[0.0_f32; 0]), setup.upload(&[0.0_f32; 0]));
    let mut of = |rows: usize, cols: usize, ld: usize, stride: usize, count: usize| {
        let a = Matrix::new(&buffer, rows, cols, ld).batch(stride, count);
        let b = Matrix::new(&nothing, cols, 0, cols).batch(0, count);
        let c = Matrix::new(&mut none, rows, 0, rows).batch(0, count);
        setup.blas.gemm_strided_batched(Op::None, Op::None, 1.0, a, b, 0.0, c)
    };
    of(2, 2, 2, 4, 5).unwrap();
    of(2, 2, 2, 0, 1_000_000).unwrap();
    of(2, 2, 2, 1 << 40, 1).unwrap();
    of(2, 2, 2, usize::MAX / 2, 0).unwrap();
    let error = misfit(of(2, 2, 2, 4, 6), "gemm_strided_batched: a").to_string();
    assert_eq!(
        error,
        "a batch of 6 2 x 2 matrices with leading dimension 2 and stride 4 needs 24 elements; the memory has 20"
    );
    assert!(matches!(
        misfit(of(2, 2, 2, usize::MAX / 4, 1 << 30), "gemm_strided_batched: a"),
        Error::TooShort { needed: usize::MAX, .. }
    ));
    assert!(matches!(
        misfit(of(2, 2, 2, usize::MAX, 1), "gemm_strided_batched: a"),
        Error::TooLarge { what: "stride", .. }
    ));
    of(2, 2, 2, 0, 1 << 31).unwrap();
    assert!(matches!(
        misfit(of(2, 2, 2, 0, 1 << 63), "gemm_strided_batched: a"),
        Error::TooLarge {
            what: "batch count",
            ..
        }
    ));
}

#[test]
fn an_output_batch_may_be_interleaved_but_not_overlap() {
    let setup = setup();
    let mut buffer = setup.device.alloc_zeroed::<f32>(100).unwrap();
    let nothing = setup.upload(&[0.0_f32; 0]);
    let mut of = |rows, cols, ld, stride, count| {
        let a = Matrix::new(&nothing, rows, 0, rows).batch(0, count);
        let b = Matrix::new(&nothing, 0, cols, 1).batch(0, count);
        let c = Matrix::new(&mut buffer, rows, cols, ld).batch(stride, count);
        setup.blas.gemm_strided_batched(Op::None, Op::None, 1.0, a, b, 1.0, c)
    };
    of(2, 3, 2, 6, 4).unwrap();
    of(2, 3, 8, 2, 4).unwrap();
    of(2, 3, 2, 0, 1).unwrap();
    let error = misfit(of(2, 3, 2, 0, 2), "gemm_strided_batched: c").to_string();
    assert_eq!(
        error,
        "matrices 0 and 1 of the output batch share elements: stride 0, 2 x 3 with leading dimension 2"
    );
    assert!(matches!(
        misfit(of(2, 3, 8, 3, 4), "gemm_strided_batched: c"),
        Error::Overlap {
            first: 0,
            second: 3,
            ..
        }
    ));
    assert!(matches!(
        misfit(of(2, 3, 2, 5, 2), "gemm_strided_batched: c"),
        Error::Overlap { .. }
    ));
}

#[test]
fn batches_of_different_counts_are_refused() {
    let setup = setup();
    let input = setup.device.alloc_zeroed::<f32>(16).unwrap();
    let mut output = setup.device.alloc_zeroed::<f32>(16).unwrap();
    let batch = |count| Matrix::new(input.on(&setup.stream).unwrap(), 2, 2, 2).batch(4, count);
    let mut run = |a, b, c| {
        let c = Matrix::new(output.on_mut(&setup.stream).unwrap(), 2, 2, 2).batch(4, c);
        setup
            .blas
            .gemm_strided_batched(Op::None, Op::None, 1.0, batch(a), batch(b), 0.0, c)
    };
    run(3, 3, 3).unwrap();
    let error = run(3, 2, 3).unwrap_err().to_string();
    assert_eq!(
        error,
        "gemm_strided_batched: b is a batch of 2, but one of 3, as c, is needed"
    );
    assert!(run(1, 3, 3).is_err());
}

#[test]
fn empty_products_are_no_errors() {
    let setup = setup();
    gemm(&setup, Op::None, Op::None, (0, 4), (4, 5), (0, 5)).unwrap();
    gemm(&setup, Op::None, Op::None, (3, 4), (4, 0), (3, 0)).unwrap();
    gemm(&setup, Op::Transpose, Op::None, (0, 3), (0, 5), (3, 5)).unwrap();
    gemm(&setup, Op::None, Op::None, (0, 0), (0, 0), (0, 0)).unwrap();
    setup.stream.synchronize().unwrap();
}

#[test]
fn a_product_over_nothing_only_scales() {
    let setup = setup();
    let nothing = setup.device.alloc::<f32>(0).unwrap();
    let mut c = setup.upload(&[1.0_f32, 2.0, 3.0, 4.0]);
    let stream = &setup.stream;
    let a = Matrix::new(nothing.on(stream).unwrap(), 2, 0, 2);
    let b = Matrix::new(nothing.on(stream).unwrap(), 0, 2, 1);
    let out = Matrix::new(c.on_mut(stream).unwrap(), 2, 2, 2);
    setup.blas.gemm(Op::None, Op::None, 1.0, a, b, 2.0, out).unwrap();
    assert_eq!(setup.download(&c), [2.0, 4.0, 6.0, 8.0]);
    let batch = Batch::from(Matrix::new(c.on_mut(stream).unwrap(), 2, 2, 2));
    setup
        .blas
        .gemm_strided_batched(Op::None, Op::None, 1.0, a.into(), b.into(), 0.5, batch)
        .unwrap();
    assert_eq!(setup.download(&c), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn herk_wants_a_square_output_and_a_conjugate() {
    let setup = setup();
    let a = setup.device.alloc_zeroed::<C32>(12).unwrap();
    let mut c = setup.device.alloc_zeroed::<C32>(16).unwrap();
    let mut run = |op, rows, cols| {
        let a = Matrix::new(a.on(&setup.stream).unwrap(), 3, 4, 3);
        let c = Matrix::new(c.on_mut(&setup.stream).unwrap(), rows, cols, rows);
        setup.blas.herk(Fill::Lower, op, 1.0, a, 0.0, c)
    };
    run(Op::None, 3, 3).unwrap();
    run(Op::ConjTranspose, 4, 4).unwrap();
    assert_eq!(
        run(Op::None, 3, 4).unwrap_err().to_string(),
        "herk: c is 3 x 4, but 3 x 3 is needed"
    );
    assert_eq!(
        run(Op::ConjTranspose, 3, 3).unwrap_err().to_string(),
        "herk: c is 3 x 3, but 4 x 4 is needed"
    );
    assert_eq!(
        run(Op::Transpose, 3, 3).unwrap_err().to_string(),
        "herk: op cannot be Transpose; use None or ConjTranspose"
    );
}

#[test]
fn a_matrix_of_another_stream_is_refused_by_name() {
    let setup = setup();
    let other = setup.device.stream().unwrap();
    let buffer = setup.device.alloc_zeroed::<C32>(4).unwrap();
    let mut out = setup.device.alloc_zeroed::<C32>(4).unwrap();
    for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
        let stream = |argument| {
            if argument == index { &other } else { &setup.stream }
        };
        let a = Matrix::new(buffer.on(stream(0)).unwrap(), 2, 2, 2);
        let b = Matrix::new(buffer.on(stream(1)).unwrap(), 2, 2, 2);
        let mut out = out.on_mut(stream(2)).unwrap();
        let (one, zero) = (C32::ONE, C32::ZERO);
        let refused = [
            setup
                .blas
                .gemm(Op::None, Op::None, one, a, b, zero, Matrix::new(&mut out, 2, 2, 2)),
            {
                let (a, b, c) = (a.into(), b.into(), Matrix::new(&mut out, 2, 2, 2).into());
                setup.blas.gemm_strided_batched(Op::None, Op::None, one, a, b, zero, c)
            },
        ];
        for outcome in refused {
            let text = outcome.unwrap_err().to_string();
            assert!(
                text.contains(&format!(": {name} was taken for another stream")),
                "{text}"
            );
        }
        if name != "b" {
            assert!(matches!(
                setup.blas.herk(Fill::Upper, Op::None, 1.0, a, 0.0, Matrix::new(out, 2, 2, 2)),
                Err(Error::WrongStream { argument, .. }) if argument == name
            ));
        }
    }
}

#[test]
fn an_operand_without_elements_may_have_any_stride_and_leading_dimension() {
    let setup = setup();
    let stream = &setup.stream;
    let x = setup.upload(&[1.0_f64; 64]);
    let mut z = setup.upload(&[1.0_f64; 64]);
    let far = 1 << 62;
    let empty = Matrix::new(x.on(stream).unwrap(), 2, 0, 2).batch(far, 5);
    let other = Matrix::new(x.on(stream).unwrap(), 0, 2, 1).batch(far, 5);
    let whole = Matrix::new(z.on_mut(stream).unwrap(), 2, 2, 2).batch(4, 5);
    let none = Op::None;
    setup
        .blas
        .gemm_strided_batched(none, none, 1.0, empty, other, 0.5, whole)
        .unwrap();
    let empty = Matrix::new(x.on(stream).unwrap(), 0, 5, i64::MAX as usize);
    let whole = Matrix::new(z.on_mut(stream).unwrap(), 5, 5, 5);
    let scaled = setup.blas.syrk(Fill::Lower, Op::Transpose, 1.0, empty, 0.5, whole);
    // The functions for such leading dimensions came between ROCm 6.0 and 6.3.
    match scaled {
        Err(Error::MissingSymbol { .. }) => return,
        scaled => scaled.unwrap(),
    }
    stream.synchronize().expect("every call was accepted");
    let mut values = [0.0; 64];
    z.on(stream).unwrap().copy_to_slice(&mut values).unwrap();
    assert_eq!((values[0], values[63]), (0.25, 1.0));
}
