//! What the tests share: ranks as threads, and numbers of any type.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytemuck::Pod;
use half::{bf16, f16};
use hip::{Device, DeviceBuffer, Runtime, Stream};
use rccl::{Communicator, Element, Library, UniqueId};

/// Devices of the machine, one for each rank.
pub const DEVICES: usize = 8;

pub fn library() -> Library {
    // SAFETY: the table is the software device's, as the runtime's is.
    unsafe { Library::from_tables(Arc::new(hip_host_rccl::rccl_api())) }
}

pub fn runtime() -> Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        // SAFETY: each test begins here, and before that reads no environment.
        unsafe { std::env::set_var("HIP_HOST_DEVICES", DEVICES.to_string()) };
        another_runtime()
    });
    made.clone()
}

/// One with deferred errors of its own, after [`runtime`].
pub fn another_runtime() -> Runtime {
    // SAFETY: one platform's functions.
    unsafe { Runtime::from_tables(Arc::new(hip_host::hip_api()), Some(Arc::new(hip_host::rtc_api()))) }.unwrap()
}

/// Freeing memory waits for all streams of a device. Of two communicators with the same devices one could so wait for
/// the other, and the other for it: the tests run one after the other.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One rank of a test.
pub struct Rank {
    pub rank: usize,
    pub ranks: usize,
    pub comm: Communicator,
    pub device: Device,
    pub stream: Stream,
}

/// Runs `body` as each rank, on a thread of its own, and returns what each returned.
pub fn run<R: Send>(ranks: usize, body: impl Fn(Rank) -> R + Sync) -> Vec<R> {
    run_in(&runtime(), ranks, body)
}

pub fn run_in<R: Send>(runtime: &Runtime, ranks: usize, body: impl Fn(Rank) -> R + Sync) -> Vec<R> {
    let _alone = alone();
    let library = library();
    let id = UniqueId::new(&library).unwrap();
    threads(ranks, |rank| {
        let device = runtime.device(rank).unwrap();
        let stream = device.stream().unwrap();
        let comm = Communicator::new(&library, &device, &id, rank, ranks).unwrap();
        body(Rank {
            rank,
            ranks,
            comm,
            device,
            stream,
        })
    })
}

pub fn threads<R: Send>(count: usize, body: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let body = &body;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|at| scope.spawn(move || body(at))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

impl Rank {
    pub fn upload<T: Pod>(&self, values: &[T]) -> DeviceBuffer<T> {
        self.device.alloc_from(&self.stream, values).unwrap()
    }

    pub fn download<T: Pod>(&self, buffer: &DeviceBuffer<T>) -> Vec<T> {
        let mut values = vec![T::zeroed(); buffer.len()];
        buffer.copy_to_slice(&self.stream, &mut values).unwrap();
        values
    }

    /// The error that the work of this rank ends with.
    pub fn failure(&self) -> rccl::Error {
        self.comm.wait(&self.stream).expect_err("the work fails")
    }
}

/// A number of the tests: small integers, which every type has, so results are exact.
pub trait Number: Element + Pod + PartialEq + std::fmt::Debug {
    fn of(value: i64) -> Self;
}

macro_rules! numbers {
    ($($number:ty: $of:expr;)*) => {$(
        impl Number for $number {
            fn of(value: i64) -> Self {
                $of(value)
            }
        }
    )*};
}
numbers! {
    i8: |value| value as i8;
    u8: |value| value as u8;
    i32: |value| value as i32;
    u32: |value| value as u32;
    i64: |value| value;
    u64: |value| value as u64;
    f32: |value| value as f32;
    f64: |value| value as f64;
    f16: |value| f16::from_f32(value as f32);
    bf16: |value| bf16::from_f32(value as f32);
}

/// What a rank has at an index: 1 to 3, so that sums, products and averages of a few ranks fit every type.
pub fn value(rank: usize, at: usize) -> i64 {
    1 + ((rank * 5 + at * 7 + at / 11) % 3) as i64
}

pub fn values<T: Number>(rank: usize, len: usize) -> Vec<T> {
    (0..len).map(|at| T::of(value(rank, at))).collect()
}
