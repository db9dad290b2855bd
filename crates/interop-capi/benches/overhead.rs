//! What a call of the C library costs more than the same call in Rust, in nanoseconds: medians of both, timed in turns so
//! that a noisy machine hits both. The aim is at most 100 ns.
//!
//! `cargo bench -p hipcl-interop-capi --bench overhead`
//!
//! It needs an OpenCL runtime, and runs on the platform that is chosen as always (`HIPCL_PLATFORM`).

use std::hint::black_box;
use std::ptr::{null, null_mut};
use std::time::Instant;

use hipcl_c as c;
use interop::{Bridge, Options};
use num_complex::Complex;
use rocblas::{Handle, Matrix, Op};

const LIMIT: f64 = 100.0;
/// Few enough to end before another program gets its turn on the core.
const CALLS: u32 = 100;
const ROUNDS: usize = 3_000;

fn mean(work: &mut dyn FnMut()) -> f64 {
    let begin = Instant::now();
    for _ in 0..CALLS {
        work();
    }
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn compare(name: &str, mut in_c: impl FnMut(), mut in_rust: impl FnMut()) {
    let (mut c_times, mut rust_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        c_times.push(mean(&mut in_c));
        rust_times.push(mean(&mut in_rust));
    }
    let (c, rust) = (median(&mut c_times), median(&mut rust_times));
    let more = c - rust;
    let verdict = if more <= LIMIT {
        ""
    } else {
        "  above the limit of 100 ns"
    };
    println!("{name:<46} C {c:7.1} ns   Rust {rust:7.1} ns   more {more:6.1} ns{verdict}");
}

fn ok(status: c::hipcl_status) {
    assert_eq!(status, c::HIPCL_SUCCESS);
}

fn main() {
    let bridge = Bridge::open(&platform::select().unwrap(), &Options::default()).unwrap();
    let stream = bridge.stream().unwrap();
    let blas = Handle::new(&bridge.blas().unwrap(), &stream).unwrap();
    let shared = bridge.alloc::<u8>(4096).unwrap();
    let input = bridge.alloc::<Complex<f32>>(512).unwrap();
    let mut output = bridge.alloc::<Complex<f32>>(512).unwrap();

    let (mut c_bridge, mut c_stream, mut c_blas) = (null_mut(), null_mut(), null_mut());
    let (mut c_shared, mut c_output) = (null_mut(), null_mut());
    // SAFETY: each place receives a handle.
    unsafe {
        ok(c::hipcl_bridge_open(null(), &mut c_bridge));
        ok(c::hipcl_stream_create(c_bridge, &mut c_stream));
        ok(c::hipcl_blas_create(c_bridge, c_stream, &mut c_blas));
        ok(c::hipcl_buffer_create(c_bridge, 4096, &mut c_shared));
        ok(c::hipcl_buffer_create(c_bridge, 4096, &mut c_output));
    }

    compare(
        "the bridge's native handles",
        || {
            let mut handles = std::mem::MaybeUninit::<c::hipcl_native_handles>::uninit();
            // SAFETY: its first member is its size, which the call reads.
            unsafe {
                handles
                    .as_mut_ptr()
                    .cast::<usize>()
                    .write(size_of::<c::hipcl_native_handles>())
            };
            // SAFETY: the place receives the structure.
            ok(unsafe { c::hipcl_bridge_native(c_bridge, handles.as_mut_ptr()) });
            black_box(&handles);
        },
        || {
            black_box(bridge.native_handles());
        },
    );
    compare(
        "a buffer's length, route and addresses",
        || {
            let mut info = std::mem::MaybeUninit::<c::hipcl_buffer_info>::uninit();
            // SAFETY: its first member is its size, which the call reads.
            unsafe {
                info.as_mut_ptr()
                    .cast::<usize>()
                    .write(size_of::<c::hipcl_buffer_info>())
            };
            // SAFETY: the place receives the structure.
            ok(unsafe { c::hipcl_buffer_get_info(c_shared, info.as_mut_ptr()) });
            black_box(&info);
        },
        || {
            black_box((
                shared.len(),
                shared.route(),
                shared.residency(),
                shared.grade(),
                shared.addresses(),
            ));
        },
    );
    // Two calls in C, one guard in Rust.
    compare(
        "an access for reading on a stream, and its end",
        || {
            let mut access = null_mut();
            // SAFETY: the place receives a handle.
            ok(unsafe { c::hipcl_access_begin_stream(c_shared, c_stream, c::HIPCL_ACCESS_READ, &mut access) });
            ok(c::hipcl_access_end(black_box(access)));
        },
        || drop(black_box(shared.hip(&stream).unwrap())),
    );
    // Of no columns, so that nothing is computed; the operands are taken all the same.
    let (one, zero) = (Complex::new(1.0_f32, 0.0), Complex::new(0.0_f32, 0.0));
    let (c_one, c_zero) = (
        c::hipcl_complex { re: 1.0, im: 0.0 },
        c::hipcl_complex { re: 0.0, im: 0.0 },
    );
    compare(
        "cgemm, all but the library's call",
        || {
            let none = c::HIPCL_OP_NONE;
            // SAFETY: the numbers are alive.
            ok(unsafe {
                c::hipcl_cgemm(
                    c_blas, none, none, 8, 0, 8, &c_one, c_shared, 0, 8, c_shared, 0, 8, &c_zero, c_output, 0, 8,
                )
            });
        },
        || {
            let a = Matrix::new(&input, 8, 8, 8);
            let b = Matrix::new(&input, 8, 0, 8);
            let c = Matrix::new(&mut output, 8, 0, 8);
            blas.gemm(Op::None, Op::None, one, a, b, zero, c).unwrap();
        },
    );
}
