//! What the safe layer costs: each call against the same C call, in nanoseconds, on functions that do nothing, so that
//! nothing else is measured. The aim is at most 100 ns.
//!
//! Both sides are timed in turns, so that a noisy machine hits both; the figures are medians.
//!
//! `cargo bench -p hipcl-rccl --bench overhead`

use std::ffi::c_void;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use hip_sys::{hipError_t, hipStream_t};
use rccl::{Communicator, Library, ReduceOp};
use rccl_sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};

unsafe extern "C" fn all_reduce(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    _: ncclDataType_t,
    _: ncclRedOp_t,
    _: ncclComm_t,
    _: hipStream_t,
) -> ncclResult_t {
    black_box((from, to, count));
    ncclResult_t::ncclSuccess
}

unsafe extern "C" fn send(
    from: *const c_void,
    count: usize,
    _: ncclDataType_t,
    peer: i32,
    _: ncclComm_t,
    _: hipStream_t,
) -> ncclResult_t {
    black_box((from, count, peer));
    ncclResult_t::ncclSuccess
}

unsafe extern "C" fn group() -> ncclResult_t {
    ncclResult_t::ncclSuccess
}

unsafe extern "C" fn get_device(device: *mut i32) -> hipError_t {
    // SAFETY: an int's address by the C caller's promise.
    unsafe { device.write(0) };
    hipError_t::hipSuccess
}

const TURNS: usize = 2_001;
/// Few enough to end before another program gets its turn on the core.
const ROUNDS: u32 = 200;

/// The medians of both, in nanoseconds.
fn measure(mut raw: impl FnMut(), mut safe: impl FnMut()) -> [f64; 2] {
    fn time(work: &mut dyn FnMut()) -> f64 {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            work();
        }
        begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    }
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..TURNS {
        times[0].push(time(&mut raw));
        times[1].push(time(&mut safe));
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[TURNS / 2]
    })
}

fn main() {
    let hip = hip_sys::Api {
        hipGetDevice: Some(get_device),
        ..hip_host::hip_api()
    };
    let api = rccl_sys::Api {
        ncclAllReduce: Some(all_reduce),
        ncclSend: Some(send),
        ncclGroupStart: Some(group),
        ncclGroupEnd: Some(group),
        ..hip_host_rccl::rccl_api()
    };
    // SAFETY: the host platform's functions; those replaced do nothing.
    let (runtime, library) = unsafe {
        (
            hip::Runtime::from_tables(Arc::new(hip), None).unwrap(),
            Library::from_tables(Arc::new(api)),
        )
    };
    let device = runtime.device(0).unwrap();
    let stream = device.stream().unwrap();
    let ranks = Communicator::all(&library, std::slice::from_ref(&device)).unwrap();
    let rank = &ranks[0];
    let x = device.alloc::<f32>(64).unwrap();
    let mut y = device.alloc::<f32>(64).unwrap();
    let (comm, to) = (rank.raw(), stream.raw());
    let raw_all_reduce = library.api().ncclAllReduce.unwrap();
    let raw_send = library.api().ncclSend.unwrap();
    let (from, into) = (
        x.on(&stream).unwrap().as_ptr().cast(),
        y.on_mut(&stream).unwrap().as_mut_ptr().cast(),
    );
    let (float, sum) = (ncclDataType_t::ncclFloat32, ncclRedOp_t::ncclSum);
    let c_all_reduce = || {
        // SAFETY: does nothing.
        let code = unsafe { raw_all_reduce(from, into, black_box(64), float, sum, comm, to) };
        let _ = black_box(code);
    };
    let c_send = || {
        // SAFETY: does nothing.
        let code = unsafe { raw_send(from, black_box(64), float, 0, comm, to) };
        let _ = black_box(code);
    };
    let c_group = || {
        // SAFETY: do nothing.
        let _ = black_box(unsafe { library.api().ncclGroupStart.unwrap()() });
        c_send();
        c_all_reduce();
        // SAFETY: does nothing.
        let _ = black_box(unsafe { library.api().ncclGroupEnd.unwrap()() });
    };
    println!("call | safe, ns | C, ns | more, ns");
    let tell = |call: &str, [raw, safe]: [f64; 2]| println!("{call} | {safe:.1} | {raw:.1} | {:.1}", safe - raw);
    tell(
        "all_reduce, two buffers",
        measure(c_all_reduce, || {
            rank.all_reduce(&x, &mut y, ReduceOp::Sum, &stream).unwrap();
        }),
    );
    tell(
        "all_reduce_in_place, a buffer",
        measure(c_all_reduce, || {
            rank.all_reduce_in_place(&mut y, ReduceOp::Sum, &stream).unwrap();
        }),
    );
    tell("send, a buffer", measure(c_send, || rank.send(&x, 0, &stream).unwrap()));
    tell(
        "a group of two calls",
        measure(c_group, || {
            library
                .group(|group| {
                    group.send(rank, &x, 0, &stream)?;
                    group.all_reduce_in_place(rank, &mut y, ReduceOp::Sum, &stream)
                })
                .unwrap();
        }),
    );
    let (slice, mut output) = (x.on(&stream).unwrap(), y.on_mut(&stream).unwrap());
    tell(
        "all_reduce, slices kept",
        measure(c_all_reduce, || {
            rank.all_reduce(slice, output.reborrow(), ReduceOp::Sum, &stream)
                .unwrap();
        }),
    );
}
