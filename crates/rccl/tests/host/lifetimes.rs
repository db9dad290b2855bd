//! What the queue still uses lives on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rccl::{Error, ReduceOp};

use crate::common::{Rank, another_runtime, run, run_in, runtime};

#[test]
fn a_communicator_that_is_dropped_ends_its_queued_work_first() {
    run(4, |rank| {
        let mut memory = rank.upload(&vec![1_i64; 20_001]);
        for _ in 0..5 {
            rank.comm
                .all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream)
                .unwrap();
        }
        let stream = rank.stream.clone();
        drop(rank.comm);
        let mut seen = vec![0; 20_001];
        memory.copy_to_slice(&stream, &mut seen).unwrap();
        assert!(seen.iter().all(|value| *value == 4_i64.pow(5)));
    });
}

#[test]
fn memory_that_is_dropped_waits_for_the_other_ranks() {
    let sums = run(2, |rank| {
        let mut sum = rank.device.alloc_zeroed::<f32>(1001).unwrap();
        {
            let send = rank.upload(&[2.0_f32; 1001]);
            rank.comm
                .all_reduce(&send, &mut sum, ReduceOp::Sum, &rank.stream)
                .unwrap();
        }
        rank.download(&sum)
    });
    assert!(sums.iter().flatten().all(|value| *value == 4.0));
}

#[test]
fn a_wait_ends_at_its_limit_and_a_drop_then_aborts() {
    run(2, |rank| {
        if rank.rank == 1 {
            // Makes no call, and is told.
            let error = loop {
                match rank.comm.check() {
                    Ok(()) => std::thread::yield_now(),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains("rank 0 aborted"), "{error}");
            return;
        }
        let mut memory = rank.upload(&[1.0_f32; 3]);
        rank.comm
            .all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream)
            .unwrap();
        rank.comm.set_time_limit(Duration::from_millis(20));
        let error = rank.comm.wait(&rank.stream).unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        drop(rank.comm);
        rank.stream.synchronize().unwrap();
    });
}

#[test]
fn a_failed_communicator_is_dropped_and_the_error_deferred() {
    // A runtime of its own: what other tests defer is not in its list.
    runtime();
    let runtime = another_runtime();
    run_in(&runtime, 2, |rank| {
        let mut memory = rank.device.alloc_zeroed::<f32>(2 + rank.rank).unwrap();
        let _ = rank.comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream);
    });
    let deferred = runtime.take_deferred_errors();
    let of_drop = |error: &hip::Error| error.to_string().contains("drop of a communicator");
    assert!(deferred.iter().any(of_drop), "{deferred:?}");
}

#[test]
fn a_communicator_that_is_dropped_in_a_capture_waits_for_its_work_on_every_stream() {
    // Of deferred errors there are only this test's.
    runtime();
    let runtime = another_runtime();
    let in_drop = AtomicBool::new(false);
    run_in(&runtime, 2, |rank| {
        let mut memory = rank.upload(&[rank.rank as i64 + 1; 3]);
        let sum = |memory: &mut _, stream: &_| rank.comm.all_reduce_in_place(memory, ReduceOp::Sum, stream).unwrap();
        sum(&mut memory, &rank.stream);
        rank.comm.wait(&rank.stream).unwrap();
        let other = rank.device.stream().unwrap();
        if rank.rank == 1 {
            // What the other rank waits for.
            while !in_drop.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            sum(&mut memory, &other);
            rank.comm.wait(&other).unwrap();
        } else {
            sum(&mut memory, &other);
            let Rank { comm, stream, .. } = rank;
            let captured = stream.capture(|_| {
                in_drop.store(true, Ordering::Release);
                drop(comm);
                Ok(())
            });
            drop(captured.unwrap());
        }
        let mut seen = [0; 3];
        memory.copy_to_slice(&other, &mut seen).unwrap();
        assert_eq!(seen, [6; 3]);
    });
    assert!(runtime.take_deferred_errors().is_empty());
}
