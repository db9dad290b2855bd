//! What the tests share: a handle on the platform under test, numbers of any scalar, and a plain double-precision
//! reference.

#![allow(dead_code, reason = "each test program uses a part")]

use std::io::Write;
use std::sync::{Arc, OnceLock};

use hip::{Device, DeviceBuffer, Stream};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Handle, Library, Op, Scalar};

pub type C64 = Complex<f64>;

/// What a test that closes a gate does first without one: a library may load a function's kernel when that is first
/// called, for which CUDA waits until no stream is busy.
pub const AT_FIRST_OPEN: [bool; 2] = [false, true];

/// A device, a stream and a handle of the platform under test.
pub struct Setup {
    pub blas: Handle,
    pub stream: Stream,
    pub device: Device,
}

/// The tables of the platform that `HIPCL_PLATFORM` names, the software device's if it names none. A platform that is
/// named and cannot be used, or has no rocBLAS, fails the test.
pub fn tables() -> &'static platform::Tables {
    static TABLES: OnceLock<platform::Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let name = std::env::var("HIPCL_PLATFORM").unwrap_or_default();
        let name = Some(name.as_str()).filter(|name| !name.is_empty());
        let chosen = platform::select_named(name.or(Some("host")));
        let chosen = chosen.unwrap_or_else(|error| panic!("{error}"));
        chosen.tables().clone()
    })
}

/// A random test of so many cases, or of fewer if proptest's own variable `PROPTEST_CASES` asks for fewer, as on an
/// emulated GPU.
pub fn cases(most: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: u32::min(most, default.cases),
        ..default
    }
}

/// Says that the running test can't do its work here, also in the file that `HIPCL_SKIP_LOG` names.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
    eprint!("skipped: {line}");
    if let Some(log) = std::env::var_os("HIPCL_SKIP_LOG") {
        let log = std::fs::File::options().append(true).create(true).open(log);
        let mut log = log.expect("the skip log opens");
        log.write_all(line.as_bytes()).expect("the skip log takes a line");
    }
}

pub fn rocblas_api() -> rocblas_sys::Api {
    **tables().rocblas.as_ref().expect("the platform has rocBLAS")
}

pub fn rocsolver_api() -> rocsolver_sys::Api {
    **tables().rocsolver.as_ref().expect("the platform has rocSOLVER")
}

/// Whether the platform has rocSOLVER; if not, the test counts as skipped.
pub fn has_solver() -> bool {
    let has = tables().rocsolver.is_some();
    if !has {
        skipped("the platform has no rocSOLVER");
    }
    has
}

pub fn library() -> Library {
    // SAFETY: all functions are one platform's.
    unsafe { Library::from_tables(Arc::new(rocblas_api()), tables().rocsolver.clone()) }
}

pub fn device() -> Device {
    // SAFETY: all functions are one platform's.
    unsafe { hip::Runtime::from_tables(tables().hip.clone(), tables().rtc.clone()) }
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
    if op == Op::None { (rows, cols) } else { (cols, rows) }
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
