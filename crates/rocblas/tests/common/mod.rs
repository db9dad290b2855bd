//! What the tests share: a handle on the host platform, numbers of any scalar, and a plain double-precision reference.

#![allow(dead_code, reason = "each test program uses a part")]

use std::sync::Arc;

use hip::{Device, DeviceBuffer, Stream};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Handle, Library, Op, Scalar};

pub type C64 = Complex<f64>;

/// A device, a stream and a handle of the host platform.
pub struct Setup {
    pub blas: Handle,
    pub stream: Stream,
    pub device: Device,
}

pub fn library() -> Library {
    // SAFETY: all functions are the host platform's.
    unsafe {
        Library::from_tables(
            Arc::new(hip_host::rocblas_api()),
            Some(Arc::new(hip_host::rocsolver_api())),
        )
    }
}

pub fn device() -> Device {
    // SAFETY: all functions are the host platform's.
    unsafe { hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None) }
        .unwrap()
        .device(0)
        .unwrap()
}

pub fn setup() -> Setup {
    let device = device();
    let stream = device.stream().unwrap();
    Setup {
        blas: Handle::new(&library(), &stream).unwrap(),
        stream,
        device,
    }
}

impl Setup {
    pub fn upload<T: Scalar>(&self, values: &[T]) -> DeviceBuffer<T> {
        self.device.alloc_from(&self.stream, values).unwrap()
    }

    pub fn download<T: Scalar>(&self, buffer: &DeviceBuffer<T>) -> Vec<T> {
        let mut values = vec![T::ZERO; buffer.len()];
        buffer.copy_to_slice(&self.stream, &mut values).unwrap();
        values
    }
}

/// A scalar of the tests.
pub trait Number: Scalar + std::fmt::Debug {
    /// Distance from 1 to the next number of its precision.
    const EPSILON: f64;
    fn of(value: C64) -> Self;
    fn wide(self) -> C64;
}

impl Number for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;
    fn of(value: C64) -> Self {
        value.re as f32
    }
    fn wide(self) -> C64 {
        C64::new(self.into(), 0.0)
    }
}

impl Number for f64 {
    const EPSILON: f64 = f64::EPSILON;
    fn of(value: C64) -> Self {
        value.re
    }
    fn wide(self) -> C64 {
        C64::new(self, 0.0)
    }
}

impl Number for Complex<f32> {
    const EPSILON: f64 = f32::EPSILON as f64;
    fn of(value: C64) -> Self {
        Complex::new(value.re as f32, value.im as f32)
    }
    fn wide(self) -> C64 {
        C64::new(self.re.into(), self.im.into())
    }
}

impl Number for C64 {
    const EPSILON: f64 = f64::EPSILON;
    fn of(value: C64) -> Self {
        value
    }
    fn wide(self) -> C64 {
        self
    }
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![Just(Op::None), Just(Op::Transpose), Just(Op::ConjTranspose)]
}

/// Rows and columns of the stored matrix that `op` turns into `rows` x `cols`.
pub fn stored(op: Op, rows: usize, cols: usize) -> (usize, usize) {
    if op == Op::None {
        (rows, cols)
    } else {
        (cols, rows)
    }
}

/// Numbers between -1 and 1 from a seed, the same for the same seed.
pub fn numbers<T: Number>(len: usize, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..len).map(|_| T::of(C64::new(next(), next()))).collect()
}

/// Element (i, j) after `op` of a matrix stored at `offset`.
pub fn element<T: Number>(data: &[T], offset: usize, ld: usize, op: Op, i: usize, j: usize) -> C64 {
    match op {
        Op::None => data[offset + i + j * ld].wide(),
        Op::Transpose => data[offset + j + i * ld].wide(),
        Op::ConjTranspose => data[offset + j + i * ld].wide().conj(),
    }
}

/// One output of a product, and a bound for its rounding error.
pub fn expected<T: Number>(
    k: usize,
    alpha: T,
    beta: T,
    before: T,
    a: impl Fn(usize) -> C64,
    b: impl Fn(usize) -> C64,
) -> (C64, f64) {
    let mut sum = C64::ZERO;
    let mut size = 0.0;
    for l in 0..k {
        sum += a(l) * b(l);
        size += a(l).norm() * b(l).norm();
    }
    let kept = if beta == T::ZERO {
        C64::ZERO
    } else {
        beta.wide() * before.wide()
    };
    let bound = (alpha.wide().norm() * size + kept.norm()) * T::EPSILON * (2.0 * k as f64 + 8.0);
    (alpha.wide() * sum + kept, bound)
}

pub fn close<T: Number>(found: T, expected: (C64, f64)) -> bool {
    (found.wide() - expected.0).norm() <= expected.1
}
