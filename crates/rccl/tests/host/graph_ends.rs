//! Which end comes first: the graph's or the communicator's.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::time::Duration;

use rccl::{Error, ReduceOp};
use rccl_sys::{ncclComm_t, ncclResult_t};

use crate::common::{Rank, another_runtime, run, run_in, runtime};
use crate::graphs::{launch, sum_in_place};

/// Whether the library still has the communicator.
fn is_there(comm: ncclComm_t) -> bool {
    let mut ranks = 0;
    // SAFETY: the software device takes any value for a handle; room for one number.
    let code = unsafe { hip_host_rccl::rccl_api().ncclCommCount.unwrap()(comm, &mut ranks) };
    code == ncclResult_t::ncclSuccess
}

#[test]
fn a_graph_keeps_the_communicator_until_its_last_copy_is_dropped() {
    runtime();
    run_in(&another_runtime(), 2, |rank| {
        let mut memory = rank.upload(&[rank.rank as i64 + 1; 3]);
        let graph = {
            let Rank { comm, stream, .. } = &rank;
            let graph = comm.capture(stream, |stream| {
                comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, stream)
            });
            graph.unwrap()
        };
        let first = graph.instantiate().unwrap();
        let raw = rank.comm.raw();
        let Rank { comm, stream, .. } = rank;
        drop(comm);
        assert!(is_there(raw));
        let run = |graph: &hip::GraphExec, memory: &mut hip::DeviceBuffer<i64>| {
            let slice = memory.on_mut(&stream).unwrap();
            // SAFETY: the graph uses this memory and nothing else.
            unsafe { graph.launch(&stream, &[&slice]) }.unwrap();
        };
        run(&first, &mut memory);
        let second = graph.instantiate().unwrap();
        drop((first, graph));
        assert!(is_there(raw));
        run(&second, &mut memory);
        // Waits for its launch, and ends the communicator.
        drop(second);
        assert!(!is_there(raw));
        let mut seen = [0; 3];
        memory.copy_to_slice(&stream, &mut seen).unwrap();
        assert_eq!(seen, [6; 3]);
        assert!(stream.device().runtime().take_deferred_errors().is_empty());
    });
}

#[test]
fn a_capture_that_fails_keeps_nothing() {
    run(2, |rank| {
        let Rank { comm, stream, .. } = &rank;
        let mut memory = rank.upload(&[1_i64; 3]);
        let error = comm
            .capture(stream, |stream| {
                comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, stream)?;
                comm.broadcast(&mut memory, 2, stream)
            })
            .unwrap_err();
        assert!(matches!(error, Error::NoRank { .. }), "{error}");
        let panic = catch_unwind(AssertUnwindSafe(|| {
            comm.capture(stream, |stream| {
                comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, stream).unwrap();
                std::panic::resume_unwind(Box::new("in between"))
            })
        }));
        assert!(panic.is_err() && !stream.is_capturing());
        // What was recorded is no call.
        comm.broadcast(&mut memory, 0, stream).unwrap();
        comm.wait(stream).unwrap();
        let raw = comm.raw();
        drop(rank.comm);
        assert!(!is_there(raw));
    });
}

#[test]
fn an_abort_returns_while_a_graph_keeps_the_communicator() {
    runtime();
    let runtime = another_runtime();
    let captured = Barrier::new(2);
    run_in(&runtime, 2, |rank| {
        let mut memory = rank.upload(&[1_i64; 3]);
        let graph = sum_in_place(&rank, &mut memory);
        captured.wait();
        if rank.rank == 1 {
            // It is told, though the other's graph is still there, and its own launch ends.
            launch(&rank, &graph, &mut memory);
            let error = rank.failure();
            assert!(error.to_string().contains("rank 0 aborted"), "{error}");
            rank.comm.abort().unwrap();
            drop(graph);
            rank.stream.synchronize().unwrap();
            return;
        }
        let Rank { comm, stream, .. } = rank;
        comm.abort().unwrap();
        drop(graph);
        memory.copy_from_slice(&stream, &[2; 3]).unwrap();
        stream.synchronize().unwrap();
    });
    let deferred = runtime.take_deferred_errors();
    assert!(deferred.is_empty(), "{deferred:?}");
}

#[test]
fn the_end_of_a_graph_aborts_what_does_not_end() {
    runtime();
    let runtime = another_runtime();
    let captured = Barrier::new(2);
    run_in(&runtime, 2, |rank| {
        let mut memory = rank.upload(&[1_i64; 3]);
        let graph = sum_in_place(&rank, &mut memory);
        captured.wait();
        if rank.rank == 1 {
            // Makes no launch, and is told.
            let error = loop {
                match rank.comm.check() {
                    Ok(()) => std::thread::yield_now(),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains("rank 0 aborted"), "{error}");
            return;
        }
        rank.comm.set_time_limit(Duration::from_millis(20));
        launch(&rank, &graph, &mut memory);
        drop(graph);
        rank.stream.synchronize().unwrap();
        for error in [
            rank.comm.check().unwrap_err(),
            rank.comm.broadcast(&mut memory, 0, &rank.stream).unwrap_err(),
            rank.comm.split(None, 0).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Ended { .. }), "{error}");
            assert!(!error.to_string().contains('\n'));
        }
        rank.comm.abort().unwrap();
    });
    let deferred = runtime.take_deferred_errors();
    let of_graph = |error: &hip::Error| error.to_string().contains("drop of a graph");
    assert!(deferred.iter().any(of_graph), "{deferred:?}");
}
