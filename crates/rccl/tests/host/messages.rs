//! Sends and receives, alone and in groups.

use rccl::ReduceOp;

use crate::common::{Rank, alone, library, run, runtime, values};

#[test]
fn a_message_arrives_in_the_order_of_its_peer() {
    run(2, |rank| {
        for len in [0, 1, 333] {
            for round in 0..3 {
                let mut memory = rank.upload(&values::<i32>(rank.rank * 10 + round, len));
                match rank.rank {
                    0 => rank.comm.send(&memory, 1, &rank.stream).unwrap(),
                    _ => rank.comm.recv(&mut memory, 0, &rank.stream).unwrap(),
                }
                assert_eq!(rank.download(&memory), values::<i32>(round, len));
            }
        }
    });
}

#[test]
fn a_ring_passes_every_part_around() {
    run(8, |rank| {
        let (next, last) = ((rank.rank + 1) % rank.ranks, (rank.rank + rank.ranks - 1) % rank.ranks);
        let mut held = rank.upload(&values::<f32>(rank.rank, 501));
        for _ in 0..rank.ranks {
            let mut came = rank.device.alloc::<f32>(501).unwrap();
            library()
                .group(|group| {
                    group.send(&rank.comm, &held, next, &rank.stream)?;
                    group.recv(&rank.comm, &mut came, last, &rank.stream)
                })
                .unwrap();
            held = came;
        }
        assert_eq!(rank.download(&held), values::<f32>(rank.rank, 501));
    });
}

/// What rank `from` has for rank `to`.
fn letter(from: usize, to: usize) -> Vec<i64> {
    // Each pair has its own length.
    vec![(10 * from + to) as i64; 1 + from * 3 + to]
}

#[test]
fn all_to_all_is_a_group_of_messages() {
    run(5, |rank: Rank| {
        let out: Vec<_> = (0..5).map(|to| rank.upload(&letter(rank.rank, to))).collect();
        let mut into: Vec<_> = (0..5)
            .map(|from| rank.device.alloc::<i64>(letter(from, rank.rank).len()).unwrap())
            .collect();
        library()
            .group(|group| {
                for (peer, (out, into)) in out.iter().zip(&mut into).enumerate() {
                    group.send(&rank.comm, out, peer, &rank.stream)?;
                    group.recv(&rank.comm, into, peer, &rank.stream)?;
                }
                Ok(())
            })
            .unwrap();
        for (from, into) in into.iter().enumerate() {
            assert_eq!(rank.download(into), letter(from, rank.rank));
        }
    });
}

#[test]
fn one_thread_works_for_all_ranks_in_a_group() {
    let _alone = alone();
    let devices: Vec<_> = (0..4).map(|at| runtime().device(at).unwrap()).collect();
    let streams: Vec<_> = devices.iter().map(|device| device.stream().unwrap()).collect();
    let ranks = rccl::Communicator::all(&library(), &devices).unwrap();
    let mut memory: Vec<_> = (0..4)
        .map(|at| devices[at].alloc_from(&streams[at], &[at as f32, 1.0]).unwrap())
        .collect();
    library()
        .group(|group| {
            for (at, memory) in memory.iter_mut().enumerate() {
                assert_eq!((ranks[at].rank(), ranks[at].ranks()), (at, 4));
                group.all_reduce_in_place(&ranks[at], memory, ReduceOp::Sum, &streams[at])?;
            }
            Ok(())
        })
        .unwrap();
    for (memory, stream) in memory.iter().zip(&streams) {
        let mut seen = [0.0; 2];
        memory.copy_to_slice(stream, &mut seen).unwrap();
        assert_eq!(seen, [6.0, 4.0]);
    }
}

#[test]
fn a_group_that_is_given_up_makes_no_call() {
    run(2, |rank| {
        let memory = rank.upload(&[7_i32; 4]);
        let given_up = library().group(|group| {
            group.send(&rank.comm, &memory, 1 - rank.rank, &rank.stream)?;
            group.send(&rank.comm, &memory, 5, &rank.stream)
        });
        assert!(matches!(given_up, Err(rccl::Error::NoRank { rank: 5, ranks: 2, .. })));
        // Nothing waits for a message.
        rank.comm.wait(&rank.stream).unwrap();
    });
}
