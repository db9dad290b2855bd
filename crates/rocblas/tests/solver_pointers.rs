//! Batches of pointers: each routine gives the bits that it gives for a batch at a stride.

mod common;

use common::{C64, Number, Setup, numbers, setup};
use num_complex::Complex;
use rocblas::solver::{self, Mirror};
use rocblas::{Error, Fill, Matrix, Op, PointerArray};

const N: usize = 5;
const NRHS: usize = 2;
const LD: usize = 6;
const COUNT: usize = 3;
const STRIDE: usize = LD * N + 4;
const STRIDE_B: usize = LD * NRHS + 1;

/// Matrices with a heavy, real diagonal, and equal to their own conjugate transpose: good for all factorisations.
fn systems<T: Number>() -> Vec<T> {
    let mut all = numbers::<T>(STRIDE * COUNT, 17);
    for matrix in all.chunks_mut(STRIDE) {
        for j in 0..N {
            for i in 0..j {
                matrix[j + i * LD] = T::of(matrix[i + j * LD].wide().conj());
            }
            matrix[j + j * LD] = T::of(C64::new(2.0 * N as f64, 0.0));
        }
    }
    all
}

/// Where the matrices are, the last one first.
fn offsets(stride: usize) -> Vec<usize> {
    (0..COUNT).rev().map(|matrix| matrix * stride).collect()
}

/// Runs `$routine` on the same matrices twice, at a stride and by pointers, and compares all of both buffers.
macro_rules! same_bits {
    ($setup:ident, $scalar:ty, |$blas:ident, $a:ident, $b:ident| $routine:expr) => {{
        let stream = &$setup.stream;
        let $blas = &$setup.blas;
        let (a, b) = (systems::<$scalar>(), numbers::<$scalar>(STRIDE_B * COUNT, 23));
        let run = |by_pointers: bool| {
            let (mut a, mut b) = ($setup.upload(&a), $setup.upload(&b));
            {
                let (a, b) = (a.on_mut(stream).unwrap(), b.on_mut(stream).unwrap());
                if by_pointers {
                    let at_a = PointerArray::<$scalar>::at_offsets(offsets(STRIDE), N, N, LD);
                    let at_b = PointerArray::<$scalar>::at_offsets(offsets(STRIDE_B), N, NRHS, LD);
                    let ($a, $b) = (at_a.of(a), at_b.of(b));
                    $routine
                } else {
                    let $a = Matrix::new(a, N, N, LD).batch(STRIDE, COUNT);
                    let $b = Matrix::new(b, N, NRHS, LD).batch(STRIDE_B, COUNT);
                    $routine
                }
            }
            ($setup.download(&a), $setup.download(&b))
        };
        let (strided, pointers) = (run(false), run(true));
        assert_ne!(strided.0, a, "the routine did something");
        assert_eq!(strided, pointers);
    }};
}

fn every_routine<T: Number>(setup: &Setup) {
    same_bits!(setup, T, |blas, a, b| {
        let lu = solver::getrf(blas, a).unwrap();
        solver::getrs(blas, Op::ConjTranspose, &lu, b).unwrap();
        lu.check().unwrap();
        solver::getri(blas, lu).unwrap().check().unwrap();
    });
    same_bits!(setup, T, |blas, a, b| {
        let lu = solver::getrf_npvt(blas, a).unwrap();
        solver::getrs(blas, Op::None, &lu, b).unwrap();
        lu.check().unwrap();
    });
    same_bits!(setup, T, |blas, a, b| solver::gesv(blas, a, b)
        .unwrap()
        .check()
        .unwrap());
    same_bits!(setup, T, |blas, a, b| {
        let factor = solver::potrf(blas, Fill::Upper, a).unwrap();
        solver::potrs(blas, &factor, b).unwrap();
        solver::potri(blas, factor).unwrap().check().unwrap();
    });
    same_bits!(setup, T, |blas, a, b| {
        solver::posv(blas, Fill::Lower, a, b).unwrap().check().unwrap();
    });
    let mirror = Mirror::<T>::new(&setup.device).unwrap();
    same_bits!(setup, T, |blas, a, _b| {
        solver::hermitian_inverse(blas, &mirror, Fill::Lower, a)
            .unwrap()
            .check()
            .unwrap();
    });
}

#[test]
fn pointers_give_what_a_stride_gives() {
    let setup = setup();
    every_routine::<f32>(&setup);
    every_routine::<f64>(&setup);
    every_routine::<Complex<f32>>(&setup);
    every_routine::<Complex<f64>>(&setup);
}

#[test]
fn an_inverse_elsewhere_is_the_inverse_in_place() {
    let setup = setup();
    let stream = &setup.stream;
    let a = systems::<Complex<f32>>();
    let (mut factors, mut inverse) = (setup.upload(&a), setup.upload(&a));
    let (at, elsewhere) = (factors.on_mut(stream).unwrap(), inverse.on_mut(stream).unwrap());
    let array = || PointerArray::at_offsets(offsets(STRIDE), N, N, LD);
    let (of_at, of_elsewhere) = (array(), array());
    let lu = solver::getrf(&setup.blas, of_at.of(at)).unwrap();
    solver::getri_outofplace(&setup.blas, &lu, of_elsewhere.of(elsewhere))
        .unwrap()
        .check()
        .unwrap();
    solver::getri(&setup.blas, lu).unwrap().check().unwrap();
    let (in_place, elsewhere) = (setup.download(&factors), setup.download(&inverse));
    for (index, (one, other)) in in_place.iter().zip(&elsewhere).enumerate() {
        assert!((one - other).norm() < 1e-5, "element {index}: {one}, {other}");
    }
}

#[test]
fn a_failure_is_named_by_its_place_among_the_pointers() {
    let setup = setup();
    let mut a = systems::<f64>();
    // The first in memory is the last of the pointers.
    a[..LD * N].fill(0.0);
    let mut buffer = setup.upload(&a);
    let slice = buffer.on_mut(&setup.stream).unwrap();
    let array = PointerArray::at_offsets(offsets(STRIDE), N, N, LD);
    let error = solver::getrf(&setup.blas, array.of(slice))
        .unwrap()
        .check()
        .unwrap_err();
    let Error::InBatch {
        matrix: 2,
        count: COUNT,
        cause,
    } = error
    else {
        panic!("{error}")
    };
    assert!(matches!(*cause, Error::Singular { pivot: 1 }), "{cause}");
}

#[test]
fn elements_without_a_size_and_matrices_without_memory_are_pointers_all_the_same() {
    let setup = setup();
    let nothing = setup.device.alloc::<()>(4).unwrap();
    PointerArray::<()>::new(1, 1, 1).of(&nothing).send(&setup.blas).unwrap();
    let none: [&hip::DeviceBuffer<f32>; 0] = [];
    let sent = PointerArray::<f32>::new(1 << 40, 1 << 40, 1 << 40)
        .of_each(none)
        .send(&setup.blas);
    assert!(sent.is_ok(), "{sent:?}");
}
