//! Calls take the memory of their operands themselves, whatever it is, and rely on what they got and not on what was said.

mod common;

use common::{Setup, setup};
use hip::{DeviceBuffer, DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Stream};
use num_complex::Complex;
use rocblas::{Diag, Error, Fill, Matrix, OnDevice, Op, PointerArray, Result, Side, Triangle, Vector, solver};

/// Memory that says of itself what it likes.
struct Liar<'a> {
    says: usize,
    gives: Gives<'a>,
}

enum Gives<'a> {
    /// What it has, on the stream it was asked for.
    Own(&'a mut DeviceBuffer<f32>),
    /// On this stream, whatever it was asked for.
    On(&'a mut DeviceBuffer<f32>, &'a Stream),
    Nothing,
}

#[derive(Debug, thiserror::Error)]
#[error("its owner keeps it to himself")]
struct Kept;

impl DeviceMemory for Liar<'_> {
    type Element = f32;

    fn len(&self) -> usize {
        self.says
    }

    fn read_on<'s>(self, stream: &'s Stream) -> hip::Result<DeviceSlice<'s, f32>>
    where
        Self: 's,
    {
        self.write_on(stream).map(DeviceSliceMut::into_slice)
    }
}

impl DeviceMemoryMut for Liar<'_> {
    fn write_on<'s>(self, stream: &'s Stream) -> hip::Result<DeviceSliceMut<'s, f32>>
    where
        Self: 's,
    {
        match self.gives {
            Gives::Own(buffer) => buffer.on_mut(stream),
            Gives::On(buffer, other) => buffer.on_mut(other),
            Gives::Nothing => Err(hip::Error::Memory(Box::new(Kept))),
        }
    }
}

const TRIANGLE: Triangle = Triangle {
    side: Side::Left,
    fill: Fill::Lower,
    op: Op::None,
    diag: Diag::Unit,
};

/// Calls of each family with this memory as the input `a` or `x`, or as the output.
fn outcomes<'a>(setup: &'a Setup, memory: impl Fn() -> Liar<'a>) -> Vec<Result<()>> {
    let blas = &setup.blas;
    let other = setup.upload(&[1.0_f32; 16]);
    let mut output = setup.upload(&[1.0_f32; 16]);
    let (none, square) = (Op::None, |memory| Matrix::new(memory, 4, 4, 4));
    let b = Matrix::new(&other, 4, 4, 4);
    let array = || PointerArray::new(4, 4, 4);
    vec![
        blas.axpy(1.0, Vector::new(memory(), 16, 1), Vector::from(&mut output)),
        blas.scal(1.0, Vector::new(memory(), 16, 1)),
        blas.dot(Vector::new(memory(), 16, 1), Vector::from(&other)).map(drop),
        blas.gemm(
            none,
            none,
            1.0,
            square(memory()),
            b,
            0.0,
            Matrix::new(&mut output, 4, 4, 4),
        ),
        blas.gemm(none, none, 1.0, b, b, 0.0, square(memory())),
        blas.gemm_ex(
            none,
            none,
            1.0,
            square(memory()),
            b,
            0.0,
            Matrix::new(&mut output, 4, 4, 4),
        ),
        blas.gemm_strided_batched(none, none, 1.0, b.into(), b.into(), 0.0, square(memory()).into()),
        blas.gemm_batched(
            none,
            none,
            1.0,
            array().of(&other),
            array().of(&other),
            0.0,
            array().of(memory()),
        ),
        blas.gemm_batched(
            none,
            none,
            1.0,
            array().of(memory()),
            array().of(&other),
            0.0,
            array().of(&mut output),
        ),
        blas.trsm(TRIANGLE, 1.0, b, square(memory())),
        solver::getrf(blas, square(memory())).map(drop),
        solver::potrf(blas, Fill::Lower, array().of(memory())).map(drop),
    ]
}

#[test]
fn memory_that_is_shorter_than_it_says_is_found_out() {
    let setup = setup();
    let short = std::cell::RefCell::new((0..16).map(|_| setup.upload(&[1.0_f32; 15])).collect::<Vec<_>>());
    let memory = || Liar {
        says: 1000,
        gives: Gives::Own(Box::leak(Box::new(short.borrow_mut().pop().unwrap()))),
    };
    for (call, outcome) in outcomes(&setup, memory).into_iter().enumerate() {
        assert!(matches!(outcome, Err(Error::Operand { .. })), "{call}: {outcome:?}");
    }
    setup.stream.synchronize().expect("nothing was touched");
}

#[test]
fn memory_that_gives_another_streams_slice_is_found_out() {
    let setup = setup();
    let other = setup.device.stream().unwrap();
    let other: &Stream = Box::leak(Box::new(other));
    let memory = || Liar {
        says: 16,
        gives: Gives::On(Box::leak(Box::new(setup.upload(&[1.0_f32; 16]))), other),
    };
    for (call, outcome) in outcomes(&setup, memory).into_iter().enumerate() {
        assert!(matches!(outcome, Err(Error::WrongStream { .. })), "{call}: {outcome:?}");
    }
}

#[test]
fn what_the_owner_of_memory_says_comes_through_as_it_is() {
    let setup = setup();
    let memory = || Liar {
        says: 16,
        gives: Gives::Nothing,
    };
    for (call, outcome) in outcomes(&setup, memory).into_iter().enumerate() {
        let error = outcome.unwrap_err();
        assert_eq!(error.to_string(), Kept.to_string(), "{call}");
        let Error::Hip(hip::Error::Memory(source)) = error else {
            panic!("{call}: {error:?}")
        };
        assert!(source.is::<Kept>());
    }
}

#[test]
fn memory_of_any_kind_is_an_operand() {
    let setup = setup();
    let (device, stream) = (&setup.device, &setup.stream);
    let mut pinned = device.alloc_pinned::<f32>(4).unwrap();
    pinned.host_mut().unwrap().copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    let identity = setup.upload(&[7.0_f32, 1.0, 0.0, 0.0, 1.0]);
    let mut twice = setup.upload(&[0.0_f32; 4]);
    let mut slice = twice.on_mut(stream).unwrap();
    let two = Matrix::new(&identity, 2, 2, 2).at(1);
    let a = Matrix::new(&pinned, 2, 2, 2);
    let c = Matrix::new(&mut slice, 2, 2, 2);
    setup.blas.gemm(Op::None, Op::None, 2.0, a, two, 0.0, c).unwrap();
    // The slice stays with its owner, and is read next.
    let mut host = vec![0.0_f32; 4];
    hip::with_registered(device, &mut host, |mut registered| {
        let a = Matrix::new(&slice, 2, 2, 2);
        let c = Matrix::new(&mut registered, 2, 2, 2);
        setup.blas.gemm(Op::None, Op::None, 2.0, a, two, 0.0, c)
    })
    .unwrap()
    .unwrap();
    assert_eq!(host, [4.0, 8.0, 12.0, 16.0]);
    setup.blas.copy(slice.into(), Vector::from(&mut pinned)).unwrap();
    assert_eq!(pinned.host().unwrap(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn an_output_shares_no_byte_with_a_scalar_or_another_output() {
    let setup = setup();
    let mut buffer = setup.upload(&[1.0_f32; 8]);
    let mut slice = buffer.on_mut(&setup.stream).unwrap();
    let (begin, stream) = (slice.as_mut_ptr(), slice.stream());
    // SAFETY: inside the buffer, which is only used in the order of one stream, by calls that refuse two of them that
    // overlap.
    let part = |first: usize, len| unsafe { DeviceSliceMut::from_hip_raw_parts(begin.add(first), len, stream) };
    let refused = |outcome: Result<()>, text: &str| {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::OperandsOverlap { .. }), "{error}");
        assert!(error.to_string().starts_with(text), "{error}");
    };
    let alpha = OnDevice(part(2, 1).into_slice());
    refused(
        setup.blas.scal(alpha, part(0, 3).into()),
        "scal: x shares memory with alpha;",
    );
    setup.blas.scal(alpha, part(3, 3).into()).unwrap();
    refused(
        setup.blas.swap(part(0, 4).into(), part(3, 4).into()),
        "swap: y shares memory with x;",
    );
    setup.blas.swap(part(0, 4).into(), part(4, 4).into()).unwrap();
    let x = Vector::from(part(0, 4).into_slice());
    refused(
        setup.blas.dot_into(x, x, part(3, 1)),
        "dot_into: result shares memory with x;",
    );
    setup.blas.dot_into(x, x, part(4, 1)).unwrap();
    // Only what the operands span counts.
    let every_other = |first| Vector::new(part(first, 8 - first), 2, 2);
    setup.blas.swap(every_other(0), every_other(3)).unwrap();
}

#[test]
fn complex_numbers_begin_at_multiples_of_their_size() {
    let setup = setup();
    let mut words = setup.upload(&[1.0_f32; 16]);
    let mut slice = words.on_mut(&setup.stream).unwrap();
    let (begin, stream) = (slice.as_mut_ptr(), slice.stream());
    // SAFETY: inside the buffer, with the alignment of the type, which is that of a float; one stream uses it.
    let numbers = |first: usize| unsafe {
        DeviceSliceMut::from_hip_raw_parts(begin.add(first).cast::<Complex<f32>>(), 4, stream)
    };
    let factor = Complex::new(2.0_f32, 0.0);
    let error = setup.blas.scal(factor, numbers(1).into()).unwrap_err();
    let Error::Operand {
        argument: "x", cause, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert!(matches!(**cause, Error::Alignment { needed: 8, .. }), "{error}");
    // No numbers lie nowhere.
    let nothing = numbers(1).split_at_mut(0).unwrap().0;
    setup.blas.scal(factor, nothing.into()).unwrap();
    setup.blas.scal(factor, numbers(2).into()).unwrap();
    assert_eq!(setup.download(&words)[1..4], [1.0, 2.0, 2.0]);
}
