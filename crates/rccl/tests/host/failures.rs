//! What one rank does wrong is told to all.

use std::sync::Barrier;

use hip::DeviceBuffer;
use rccl::{Communicator, Error, ReduceOp, UniqueId};
use rccl_sys::ncclResult_t;

use crate::common::{DEVICES, Rank, alone, library, run, runtime, threads};

/// Fails unless each rank's work ends with a wrong usage that names the ranks and all of `words`.
pub fn told_to_all(ranks: usize, words: &[&str], body: impl Fn(&Rank) + Sync) {
    run(ranks, |rank| {
        body(&rank);
        let error = rank.failure();
        assert_eq!(error.code(), Some(ncclResult_t::ncclInvalidUsage), "{error}");
        let text = error.to_string();
        let named = (0..ranks).filter(|rank| text.contains(&format!("rank {rank}")));
        assert!(!text.contains('\n') && named.count() >= 2, "{text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{text}"));
        // It stays so.
        let mut memory = rank.device.alloc_zeroed::<f32>(1).unwrap();
        let again = rank.comm.broadcast(&mut memory, 0, &rank.stream);
        assert!(again.is_err());
    });
}

fn all_reduce(rank: &Rank, len: usize, op: ReduceOp) {
    let mut memory = rank.device.alloc_zeroed::<f32>(len).unwrap();
    let queued = rank.comm.all_reduce_in_place(&mut memory, op, &rank.stream);
    // A rank that comes late is told at once.
    assert!(queued.is_ok() || rank.comm.check().is_err());
}

#[test]
fn different_counts() {
    told_to_all(
        2,
        &["ncclAllReduce(3 x ncclFloat32", "ncclAllReduce(4 x ncclFloat32"],
        |rank| {
            all_reduce(rank, 3 + rank.rank, ReduceOp::Sum);
        },
    );
}

#[test]
fn different_operations() {
    told_to_all(2, &["ncclSum", "ncclMax"], |rank| {
        all_reduce(rank, 3, [ReduceOp::Sum, ReduceOp::Max][rank.rank]);
    });
}

#[test]
fn different_types_of_equal_size() {
    told_to_all(2, &["ncclFloat32", "ncclInt32"], |rank| match rank.rank {
        0 => all_reduce(rank, 3, ReduceOp::Sum),
        _ => {
            let mut memory = rank.device.alloc_zeroed::<i32>(3).unwrap();
            let _ = rank.comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream);
        }
    });
}

#[test]
fn different_roots() {
    told_to_all(2, &["root 0", "root 1"], |rank| {
        let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
        let _ = rank.comm.broadcast(&mut memory, rank.rank, &rank.stream);
    });
}

#[test]
fn another_order() {
    told_to_all(2, &["ncclAllReduce", "ncclBroadcast", "same order"], |rank| {
        let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
        if rank.rank == 0 {
            all_reduce(rank, 3, ReduceOp::Sum);
        }
        let _ = rank.comm.broadcast(&mut memory, 0, &rank.stream);
        if rank.rank == 1 {
            all_reduce(rank, 3, ReduceOp::Sum);
        }
    });
}

#[test]
fn a_message_of_another_length() {
    told_to_all(2, &["ncclSend(3 x ncclFloat32", "ncclRecv(2 x ncclFloat32"], |rank| {
        let mut memory = rank.device.alloc_zeroed::<f32>(3 - rank.rank).unwrap();
        let _ = match rank.rank {
            0 => rank.comm.send(&memory, 1, &rank.stream),
            _ => rank.comm.recv(&mut memory, 0, &rank.stream),
        };
    });
}

#[test]
fn a_message_of_another_type() {
    told_to_all(2, &["ncclSend(3 x ncclFloat32", "ncclRecv(3 x ncclInt32"], |rank| {
        let _ = match rank.rank {
            0 => rank.comm.send(&rank.upload(&[0.0_f32; 3]), 1, &rank.stream),
            _ => rank.comm.recv(&mut rank.upload(&[0_i32; 3]), 0, &rank.stream),
        };
    });
}

#[test]
fn a_third_rank_is_told_too() {
    // Ranks 0 and 1 agree and wait for rank 2, which makes another call.
    told_to_all(3, &["collective 1", "rank 2 calls"], |rank| {
        all_reduce(rank, 3 + rank.rank / 2, ReduceOp::Sum);
    });
}

#[test]
fn an_abort_wakes_those_who_wait() {
    run(3, |rank| {
        let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
        if rank.rank == 2 {
            rank.comm.abort().unwrap();
            return;
        }
        let queued = rank.comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream);
        let error = match queued {
            Ok(()) => rank.failure(),
            Err(error) => error,
        };
        assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
        assert!(error.to_string().contains("rank 2 aborted"), "{error}");
        rank.comm.abort().unwrap();
        // The stream goes on.
        memory.copy_from_slice(&rank.stream, &[1.0; 3]).unwrap();
        rank.stream.synchronize().unwrap();
    });
}

/// Whether it leaves before the other rank's stream gets to the call, or after that.
#[test]
fn a_rank_that_left_is_named() {
    type Call = fn(&Rank, &mut DeviceBuffer<f32>) -> rccl::Result<()>;
    let calls: [Call; 3] = [
        |rank, memory| rank.comm.all_reduce_in_place(memory, ReduceOp::Sum, &rank.stream),
        |rank, memory| rank.comm.send(&*memory, 1, &rank.stream),
        |rank, memory| rank.comm.recv(memory, 1, &rank.stream),
    ];
    for call in calls {
        for leaves_before in [true, false] {
            let left = Barrier::new(2);
            run(2, |rank| {
                if rank.rank == 1 {
                    if !leaves_before {
                        left.wait();
                    }
                    drop(rank.comm);
                    if leaves_before {
                        left.wait();
                    }
                    return;
                }
                let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
                if leaves_before {
                    left.wait();
                }
                call(&rank, &mut memory).unwrap();
                if !leaves_before {
                    // An empty stream beside it, which begins after it: by then the call is most likely waiting.
                    let beside = rank.device.stream().unwrap();
                    beside.host_function(|| ()).unwrap();
                    beside.synchronize().unwrap();
                    left.wait();
                }
                let error = rank.failure();
                assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
                assert!(error.to_string().contains("rank 1 has destroyed"), "{error}");
            });
        }
    }
}

/// What each rank gets that wants to join as (rank, of how many, on which device).
fn join(ranks: [(usize, usize, usize); 2]) -> Vec<Error> {
    let _alone = alone();
    let (runtime, library) = (runtime(), library());
    let id = UniqueId::new(&library).unwrap();
    threads(2, |at| {
        let (rank, of, device) = ranks[at];
        let device = runtime.device(device).unwrap();
        Communicator::new(&library, &device, &id, rank, of).expect_err("they disagree")
    })
}

#[test]
fn ranks_that_cannot_be_together_are_told_both() {
    for (ranks, word) in [
        ([(0, 2, 0), (1, 3, 1)], "expects"),
        ([(0, 2, 0), (0, 2, 1)], "joins twice"),
        ([(0, 2, 3), (1, 2, 3)], "both on device 3"),
    ] {
        for error in join(ranks) {
            assert_eq!(error.code(), Some(ncclResult_t::ncclInvalidUsage), "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}

#[test]
fn an_id_of_another_origin_is_refused() {
    let _alone = alone();
    let device = runtime().device(DEVICES - 1).unwrap();
    let id = UniqueId::from_bytes([7; UniqueId::BYTES]);
    let error = Communicator::new(&library(), &device, &id, 0, 2).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclInvalidArgument), "{error}");
    // As it was sent, it is the same. More ranks than memory can hold are no reason to wait for one that comes.
    let id = UniqueId::new(&library()).unwrap();
    let error = Communicator::new(&library(), &device, &id, 0, i32::MAX as usize).unwrap_err();
    assert!(error.to_string().contains("at most"), "{error}");
    let id = UniqueId::from_bytes(id.to_bytes());
    assert_eq!(Communicator::new(&library(), &device, &id, 0, 1).unwrap().ranks(), 1);
}

#[test]
fn a_group_whose_end_fails_is_over() {
    run(2, |rank| {
        let mut memory = rank.upload(&[1.0_f32; 3]);
        if rank.rank == 0 {
            hip_host::faults::set_failures("ncclGroupEnd:1").unwrap();
            let mut group = rccl::Group::new();
            let (one, two) = (rank.upload(&[0.0_f32]), rank.upload(&[0.0_f32]));
            group.send(&rank.comm, &one, 1, &rank.stream).unwrap();
            group.send(&rank.comm, &two, 1, &rank.stream).unwrap();
            assert!(group.launch().is_err());
            hip_host::faults::set_failures("").unwrap();
        }
        rank.comm
            .all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream)
            .unwrap();
        rank.comm.wait(&rank.stream).unwrap();
        assert_eq!(rank.download(&memory), [2.0; 3]);
    });
}
