//! Calls in graphs: each launch makes them again.

use hip::rtc::Program;
use hip::{DeviceBuffer, Function, GraphExec, LaunchConfig};
use hip_sys::{hipError_t, hipStreamCaptureMode};
use rccl::{Error, Group, ReduceOp};
use rccl_sys::{ncclDataType_t, ncclResult_t};

use crate::common::{Rank, run};
use crate::failures::told_to_all;

/// A graph that adds up `from` of all ranks in `to`.
pub fn sum(rank: &Rank, from: &DeviceBuffer<i64>, to: &mut DeviceBuffer<i64>) -> GraphExec {
    let Rank { comm, stream, .. } = rank;
    let graph = comm.capture(stream, |stream| comm.all_reduce(from, &mut *to, ReduceOp::Sum, stream));
    graph.unwrap().instantiate().unwrap()
}

/// As [`sum`], in place.
pub fn sum_in_place(rank: &Rank, memory: &mut DeviceBuffer<i64>) -> GraphExec {
    let Rank { comm, stream, .. } = rank;
    let graph = comm.capture(stream, |stream| {
        comm.all_reduce_in_place(&mut *memory, ReduceOp::Sum, stream)
    });
    graph.unwrap().instantiate().unwrap()
}

/// Launches a graph that works in this memory only.
pub fn launch(rank: &Rank, graph: &GraphExec, memory: &mut DeviceBuffer<i64>) {
    let slice = memory.on_mut(&rank.stream).unwrap();
    // SAFETY: the graph uses this memory and nothing else.
    unsafe { graph.launch(&rank.stream, &[&slice]) }.unwrap();
}

#[test]
fn each_launch_adds_up_what_is_there_then() {
    run(3, |rank| {
        let mut from = rank.upload(&[-1_i64; 1001]);
        let mut to = rank.upload(&[7_i64; 1001]);
        let graph = sum(&rank, &from, &mut to);
        assert_eq!(rank.download(&to), [7; 1001], "before the first launch");
        for round in 0..5 {
            let number = |rank: usize, at: usize| (rank * 100 + at * (round + 1)) as i64;
            let numbers: Vec<i64> = (0..1001).map(|at| number(rank.rank, at)).collect();
            from.copy_from_slice(&rank.stream, &numbers).unwrap();
            let (read, written) = (from.on(&rank.stream).unwrap(), to.on_mut(&rank.stream).unwrap());
            // SAFETY: the graph reads the one and writes the other.
            unsafe { graph.launch(&rank.stream, &[&read, &written]) }.unwrap();
            rank.comm.wait(&rank.stream).unwrap();
            let sums: Vec<i64> = (0..1001).map(|at| (0..3).map(|rank| number(rank, at)).sum()).collect();
            assert_eq!(rank.download(&to), sums, "round {round}");
        }
    });
}

fn kernel(rank: &Rank, source: &str) -> Function {
    let source = format!("extern \"C\" __global__ void work(long *x) {{ {source}; }}");
    let module = Program::new(&source).compile(&rank.device).unwrap();
    module.function("work").unwrap()
}

#[test]
fn kernels_and_copies_before_and_after_a_collective_keep_their_order() {
    const LAUNCHES: usize = 4;
    let results = run(2, |rank| {
        let (add, double) = (
            kernel(&rank, "x[threadIdx.x] += threadIdx.x"),
            kernel(&rank, "x[threadIdx.x] *= 2"),
        );
        let config = LaunchConfig::linear(32, 32).unwrap();
        let mut x = rank.upload(&[rank.rank as i64 + 1; 32]);
        let mut seen = rank.upload(&[0_i64; 32]);
        let Rank { comm, stream, .. } = &rank;
        let graph = comm.capture(stream, |stream| {
            // SAFETY: 32 threads on 32 elements, here and below.
            unsafe { add.launch(stream, config, &[&x.on_mut(stream)?])? };
            comm.all_reduce_in_place(&mut x, ReduceOp::Sum, stream)?;
            // SAFETY: as above.
            unsafe { double.launch(stream, config, &[&x.on_mut(stream)?])? };
            Ok(seen.on_mut(stream)?.copy_from(x.on(stream)?)?)
        });
        let graph = graph.unwrap();
        assert_eq!(graph.node_count().unwrap(), 4);
        let graph = graph.instantiate().unwrap();
        for _ in 0..LAUNCHES {
            let slices = (x.on_mut(stream).unwrap(), seen.on_mut(stream).unwrap());
            // SAFETY: the graph uses this memory and nothing else.
            unsafe { graph.launch(stream, &[&slices.0, &slices.1]) }.unwrap();
        }
        comm.wait(stream).unwrap();
        rank.download(&seen)
    });
    let expected = (0..32).map(|at: i64| {
        let mut ranks = [1, 2];
        for _ in 0..LAUNCHES {
            ranks = [2 * ranks.iter().map(|x| x + at).sum::<i64>(); 2];
        }
        ranks[0]
    });
    assert_eq!(results, vec![expected.collect::<Vec<_>>(); 2]);
}

#[test]
fn messages_of_a_group_go_around_with_each_launch() {
    run(3, |rank| {
        let Rank { comm, stream, .. } = &rank;
        let (next, last) = ((rank.rank + 1) % 3, (rank.rank + 2) % 3);
        let mut token = rank.upload(&[rank.rank as i64; 5]);
        let mut came = rank.upload(&[-1_i64; 5]);
        let graph = comm.capture(stream, |stream| {
            let mut group = Group::new();
            group.send(comm, &token, next, stream)?;
            group.recv(comm, &mut came, last, stream)?;
            group.launch()?;
            Ok(token.on_mut(stream)?.copy_from(came.on(stream)?)?)
        });
        let graph = graph.unwrap().instantiate().unwrap();
        for round in 1..5 {
            let slices = (token.on_mut(stream).unwrap(), came.on_mut(stream).unwrap());
            // SAFETY: the graph uses this memory and nothing else.
            unsafe { graph.launch(stream, &[&slices.0, &slices.1]) }.unwrap();
            comm.wait(stream).unwrap();
            let from = (rank.rank + 2 * round) % 3;
            assert_eq!(rank.download(&token), [from as i64; 5], "round {round}");
        }
    });
}

#[test]
fn a_group_that_was_filled_outside_is_recorded_where_it_is_launched() {
    run(2, |rank| {
        let Rank { comm, stream, .. } = &rank;
        let mut memory = rank.upload(&[1_i64; 3]);
        let mut group = Group::new();
        group
            .all_reduce_in_place(comm, &mut memory, ReduceOp::Sum, stream)
            .unwrap();
        let graph = comm.capture(stream, |_| group.launch()).unwrap();
        assert_eq!(rank.download(&memory), [1; 3]);
        launch(&rank, &graph.instantiate().unwrap(), &mut memory);
        comm.wait(stream).unwrap();
        assert_eq!(rank.download(&memory), [2; 3]);
    });
}

/// One rank's first stream is held until its second one has a call too.
#[test]
fn launches_and_calls_on_several_streams_have_the_order_in_which_they_were_queued() {
    run(2, |rank| {
        let beside = rank.device.stream().unwrap();
        let mut memory = rank.upload(&[rank.rank as i64 + 1; 3]);
        let mut other = rank.device.alloc_from(&beside, &[rank.rank as i64; 8]).unwrap();
        beside.synchronize().unwrap();
        let graph = sum_in_place(&rank, &mut memory);
        let (open, gate) = std::sync::mpsc::channel::<()>();
        if rank.rank == 0 {
            let hold = move || gate.recv().unwrap();
            rank.stream.host_function(hold).unwrap();
        }
        launch(&rank, &graph, &mut memory);
        if rank.rank == 1 {
            // By the end of other streams' work, which begins after it, the launch most likely runs.
            for _ in 0..10 {
                let third = rank.device.stream().unwrap();
                third.host_function(|| ()).unwrap();
                third.synchronize().unwrap();
            }
        }
        rank.comm.broadcast(&mut other, 1, &beside).unwrap();
        rank.comm.wait(&beside).unwrap();
        let _ = open.send(());
        rank.comm.wait(&rank.stream).unwrap();
        assert_eq!(rank.download(&memory), [3; 3]);
        assert_eq!(rank.download(&other), [1; 8]);
    });
}

#[test]
fn launches_with_different_counts_are_told_to_all() {
    let words = ["ncclAllReduce(3 x ncclInt64", "ncclAllReduce(4 x", "in a graph"];
    told_to_all(2, &words, |rank| {
        let mut memory = rank.upload(&vec![1_i64; 3 + rank.rank]);
        let graph = sum_in_place(rank, &mut memory);
        launch(rank, &graph, &mut memory);
    });
}

#[test]
fn a_call_in_a_graph_and_one_outside_are_told_to_all() {
    told_to_all(2, &["in a graph", "in graphs or outside"], |rank| {
        let mut memory = rank.upload(&[1_i64; 3]);
        if rank.rank == 0 {
            let graph = sum_in_place(rank, &mut memory);
            launch(rank, &graph, &mut memory);
        } else {
            let _ = rank.comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream);
        }
    });
    told_to_all(2, &["from rank 0) in a graph", "to rank 1) meets"], |rank| {
        let Rank { comm, stream, .. } = rank;
        let mut memory = rank.upload(&[1_i64; 3]);
        if rank.rank == 0 {
            let _ = comm.send(&memory, 1, stream);
            return;
        }
        let graph = comm
            .capture(stream, |stream| comm.recv(&mut memory, 0, stream))
            .unwrap();
        launch(rank, &graph.instantiate().unwrap(), &mut memory);
    });
}

#[test]
fn graphs_launched_in_another_order_are_told_to_all() {
    told_to_all(2, &["same order", "ncclSum", "ncclMax"], |rank| {
        let Rank { comm, stream, .. } = rank;
        let mut memory = rank.upload(&[1_i64; 3]);
        let mut graphs = [ReduceOp::Sum, ReduceOp::Max].map(|op| {
            let graph = comm.capture(stream, |stream| comm.all_reduce_in_place(&mut memory, op, stream));
            graph.unwrap().instantiate().unwrap()
        });
        if rank.rank == 1 {
            graphs.reverse();
        }
        graphs.iter().for_each(|graph| launch(rank, graph, &mut memory));
    });
}

#[test]
fn a_group_is_in_one_graph_or_outside() {
    run(1, |rank| {
        let Rank { comm, stream, .. } = &rank;
        let beside = rank.device.stream().unwrap();
        let (mut one, mut two) = (rank.upload(&[1_i64; 3]), rank.upload(&[1_i64; 3]));
        let mut both = |recorded: bool| {
            let mut group = Group::new();
            group.all_reduce_in_place(comm, &mut one, ReduceOp::Sum, stream)?;
            group.all_reduce_in_place(comm, &mut two, ReduceOp::Sum, &beside)?;
            match recorded {
                true => comm.capture(&beside, |_| group.launch()).map(drop),
                false => group.launch(),
            }
        };
        // Only one of the streams is recorded, and then each by a graph of its own.
        for recorded in [false, true] {
            let mut refused = None;
            let graph = comm.capture(stream, |_| {
                refused = both(recorded).err();
                Ok(())
            });
            let error = refused.expect("a refusal");
            assert_eq!(error.code(), Some(ncclResult_t::ncclInvalidUsage), "{error}");
            assert!(error.to_string().contains("different graphs"), "{error}");
            assert_eq!(graph.unwrap().node_count().unwrap(), 0);
        }
        // Nothing of it counts as a call.
        both(false).unwrap();
        comm.wait(stream).unwrap();
    });
}

#[test]
fn memory_that_is_gone_is_found_by_the_launch() {
    run(1, |rank| {
        let Rank { comm, stream, .. } = &rank;
        let (mut one, mut two) = (rank.upload(&[1_i64; 3]), rank.upload(&[1_i64; 3]));
        let graph = comm.capture(stream, |stream| {
            let mut group = Group::new();
            group.all_reduce_in_place(comm, &mut one, ReduceOp::Sum, stream)?;
            group.all_reduce_in_place(comm, &mut two, ReduceOp::Sum, stream)?;
            group.launch()
        });
        let graph = graph.unwrap().instantiate().unwrap();
        drop(one);
        let slice = two.on_mut(stream).unwrap();
        // SAFETY: the software device refuses it.
        let refused = unsafe { graph.launch(stream, &[&slice]) };
        assert!(matches!(refused, Err(hip::Error::Call { .. })), "{refused:?}");
        // It is no call of the rank, which is not waited for.
        comm.all_reduce_in_place(&mut two, ReduceOp::Sum, stream).unwrap();
        comm.wait(stream).unwrap();
    });
}

#[test]
fn a_library_without_graphs_is_named_and_nothing_is_recorded() {
    unsafe extern "C" fn version(out: *mut std::ffi::c_int) -> ncclResult_t {
        // SAFETY: the caller gives room for one number.
        unsafe { out.write(21210) };
        ncclResult_t::ncclSuccess
    }
    let _alone = crate::common::alone();
    let mut api = hip_host_rccl::rccl_api();
    api.ncclGetVersion = Some(version);
    // SAFETY: the software device's functions, and one that does as RCCL documents.
    let library = unsafe { rccl::Library::from_tables(std::sync::Arc::new(api)) };
    let device = crate::common::runtime().device(0).unwrap();
    let stream = device.stream().unwrap();
    let comm = &rccl::Communicator::all(&library, std::slice::from_ref(&device)).unwrap()[0];
    let mut memory = device.alloc_zeroed::<f32>(3).unwrap();
    let refused = comm.capture(&stream, |_| Ok(())).unwrap_err();
    assert!(matches!(refused, Error::Captured { version: 21210, .. }), "{refused}");
    assert!(refused.to_string().contains("RCCL 21210: graphs need") && !refused.to_string().contains('\n'));
    // Neither by a call, nor by a group that is launched inside.
    let mut group = Group::new();
    let mut other = device.alloc_zeroed::<f32>(3).unwrap();
    group.broadcast(comm, &mut other, 0, &stream).unwrap();
    let mut errors = Vec::new();
    let graph = stream.capture(|stream| {
        errors.extend(comm.broadcast(&mut memory, 0, stream).err());
        errors.extend(group.launch().err());
        Ok(())
    });
    assert_eq!(graph.unwrap().node_count().unwrap(), 0);
    assert!(
        matches!(errors[..], [Error::Captured { .. }, Error::Captured { .. }]),
        "{errors:?}"
    );
}

/// By the C functions, of a stream that the program captures itself.
#[test]
fn a_raw_call_is_recorded_too_and_an_ended_capture_takes_none() {
    run(1, |rank| {
        let hip = hip_host::hip_api();
        let stream = rank.device.stream().unwrap();
        let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
        let pointer: *mut std::ffi::c_void = memory.on_mut(&stream).unwrap().as_mut_ptr().cast();
        stream.synchronize().unwrap();
        let broadcast = || {
            let call = hip_host_rccl::rccl_api().ncclBroadcast.unwrap();
            // SAFETY: stream, memory and communicator are alive.
            unsafe {
                call(
                    pointer,
                    pointer,
                    3,
                    ncclDataType_t::ncclFloat32,
                    0,
                    rank.comm.raw(),
                    stream.raw(),
                )
            }
        };
        let capture = |work: &dyn Fn()| {
            let mode = hipStreamCaptureMode::hipStreamCaptureModeRelaxed;
            let mut graph = std::ptr::null_mut();
            // SAFETY: the stream is alive, and nothing is queued; the graph is given room.
            unsafe {
                assert_eq!(
                    hip.hipStreamBeginCapture.unwrap()(stream.raw(), mode),
                    hipError_t::hipSuccess
                );
                work();
                let ended = hip.hipStreamEndCapture.unwrap()(stream.raw(), &mut graph);
                (ended, graph)
            }
        };
        let (ended, graph) = capture(&|| assert_eq!(broadcast(), ncclResult_t::ncclSuccess));
        assert_eq!(ended, hipError_t::hipSuccess);
        // SAFETY: a graph that nothing else uses.
        assert_eq!(unsafe { hip.hipGraphDestroy.unwrap()(graph) }, hipError_t::hipSuccess);

        let (ended, _) = capture(&|| {
            // SAFETY: refused, which ends the capture.
            let waited = unsafe { hip.hipStreamSynchronize.unwrap()(stream.raw()) };
            assert_ne!(waited, hipError_t::hipSuccess);
            assert_eq!(broadcast(), ncclResult_t::ncclUnhandledCudaError);
        });
        assert_eq!(ended, hipError_t::hipErrorStreamCaptureInvalidated);
        // Neither counts as a call: the next one is the first.
        rank.comm.broadcast(&mut memory, 0, &stream).unwrap();
        rank.comm.wait(&stream).unwrap();
    });
}
