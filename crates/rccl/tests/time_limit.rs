//! A rank that never comes ends the others' wait. Apart from the other tests: the limit is the process'.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hip::Device;
use rccl::{Communicator, Library, ReduceOp, UniqueId};
use rccl_sys::ncclResult_t;

struct Bench {
    library: Library,
    devices: Vec<Device>,
    _alone: MutexGuard<'static, ()>,
}

/// Three devices, for one test at a time: freeing memory waits for all streams of a device.
fn bench() -> Bench {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: each test begins here, and before that reads no environment.
    unsafe { std::env::set_var("HIP_HOST_DEVICES", "3") };
    // SAFETY: one platform's functions.
    let (runtime, library) = unsafe {
        (
            hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None).unwrap(),
            Library::from_tables(Arc::new(hip_host_rccl::rccl_api())),
        )
    };
    hip_host_rccl::set_time_limit(Duration::from_millis(50));
    Bench {
        library,
        devices: (0..3).map(|at| runtime.device(at).unwrap()).collect(),
        _alone: alone,
    }
}

#[test]
fn a_rank_that_never_comes_is_named_at_the_time_limit() {
    let bench = bench();
    let Bench { library, devices, .. } = &bench;
    let id = UniqueId::new(library).unwrap();
    let error = Communicator::new(library, &devices[0], &id, 0, 2).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
    assert!(error.to_string().contains("ranks [1] of 2"), "{error}");

    let ranks = Communicator::all(library, devices).unwrap();
    let stream = devices[1].stream().unwrap();
    let mut memory = devices[1].alloc_zeroed::<f32>(3).unwrap();
    ranks[1]
        .all_reduce_in_place(&mut memory, ReduceOp::Sum, &stream)
        .unwrap();
    let error = ranks[1].wait(&stream).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
    assert!(error.to_string().contains("ranks [0, 2] of 3"), "{error}");
    let whole = Communicator::all(library, devices).unwrap();
    let error = whole[2].split(Some(0), 0).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
    assert!(error.to_string().contains("ranks [0, 1] of 3"), "{error}");
    // The others are told without a wait.
    assert!(ranks[0].check().is_err() && ranks[2].check().is_err());
    assert!(stream.synchronize().is_err());
}

#[test]
fn a_rank_that_does_not_launch_its_graph_is_named_at_the_time_limit() {
    let bench = bench();
    let Bench { library, devices, .. } = &bench;
    let ranks = Communicator::all(library, devices).unwrap();
    let streams: Vec<_> = devices.iter().map(|device| device.stream().unwrap()).collect();
    let mut memory: Vec<_> = devices
        .iter()
        .map(|device| device.alloc_zeroed::<f32>(3).unwrap())
        .collect();
    let graphs: Vec<_> = (0..3)
        .map(|at| {
            let memory = &mut memory[at];
            let graph = ranks[at].capture(&streams[at], |stream| {
                ranks[at].all_reduce_in_place(memory, ReduceOp::Sum, stream)
            });
            graph.unwrap().instantiate().unwrap()
        })
        .collect();
    for at in [0, 2] {
        let slice = memory[at].on_mut(&streams[at]).unwrap();
        // SAFETY: the graph uses this memory and nothing else.
        unsafe { graphs[at].launch(&streams[at], &[&slice]) }.unwrap();
    }
    for at in [0, 2] {
        let error = ranks[at].wait(&streams[at]).unwrap_err();
        assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
        assert!(error.to_string().contains("in a graph: ranks [1] of 3"), "{error}");
    }
}

#[test]
fn a_communicator_that_graphs_have_calls_of_is_not_destroyed() {
    let bench = bench();
    let device = &bench.devices[0];
    let rank = &Communicator::all(&bench.library, std::slice::from_ref(device)).unwrap()[0];
    let stream = device.stream().unwrap();
    let mut memory = device.alloc_zeroed::<f32>(3).unwrap();
    let captured = rank.capture(&stream, |stream| rank.broadcast(&mut memory, 0, stream));
    let graph = captured.unwrap().instantiate().unwrap();
    for end in [
        bench.library.api().ncclCommDestroy,
        bench.library.api().ncclCommFinalize,
    ] {
        // SAFETY: refused, so the communicator stays.
        let code = unsafe { end.unwrap()(rank.raw()) };
        assert_eq!(code, ncclResult_t::ncclInvalidUsage);
    }
    // It goes on.
    rank.broadcast(&mut memory, 0, &stream).unwrap();
    rank.wait(&stream).unwrap();
    drop(graph);
}
