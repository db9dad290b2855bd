//! Ranks divided into communicators of their own.

use std::sync::Barrier;

use rccl::{Error, Library, ReduceOp};
use rccl_sys::{NCCL_SPLIT_NOCOLOR, ncclResult_t};

use crate::common::{Rank, alone, library, run, runtime};

/// The sum of what each rank gives, as this rank of `comm` gets it.
fn sum(rank: &Rank, comm: &rccl::Communicator, value: i64) -> i64 {
    let mut memory = rank.upload(&[value]);
    comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream)
        .unwrap();
    comm.wait(&rank.stream).unwrap();
    rank.download(&memory)[0]
}

#[test]
fn ranks_of_a_color_are_in_the_order_of_their_keys_and_then_of_their_ranks() {
    // Color 0: ranks 0, 2, 4 with keys that turn them around. Color 1: ranks 1 and 3 with equal keys. Rank 5: nowhere.
    let colors = [Some(0), Some(1), Some(0), Some(1), Some(0), None];
    let keys = [1, 7, 0, 7, -3, 0];
    let expected = [
        Some((2, 3)),
        Some((0, 2)),
        Some((1, 3)),
        Some((1, 2)),
        Some((0, 3)),
        None,
    ];
    run(6, |rank| {
        let part = rank.comm.split(colors[rank.rank], keys[rank.rank]).unwrap();
        let place = part.as_ref().map(|part| (part.rank(), part.ranks()));
        assert_eq!(place, expected[rank.rank], "rank {}", rank.rank);
        if let Some(part) = &part {
            assert_eq!(part.device(), rank.comm.device());
            let of_part = if rank.rank % 2 == 0 {
                1 + 100 + 10_000
            } else {
                10 + 1000
            };
            assert_eq!(sum(&rank, part, 10_i64.pow(rank.rank as u32)), of_part);
            // A root is a number of the part.
            let mut memory = rank.upload(&[rank.rank as i64]);
            part.broadcast(&mut memory, 0, &rank.stream).unwrap();
            part.wait(&rank.stream).unwrap();
            assert_eq!(rank.download(&memory), [[4, 1][rank.rank % 2]]);
        }
        assert_eq!(sum(&rank, &rank.comm, 1), 6, "the whole stays usable");
    });
}

#[test]
fn a_part_can_be_split_again_and_outlives_the_whole() {
    run(4, |rank| {
        let half = rank.comm.split(Some(rank.rank as u16 / 2), 0).unwrap().unwrap();
        let swapped = rank.comm.split(Some(7), -(rank.rank as i32)).unwrap().unwrap();
        assert_eq!((swapped.rank(), swapped.ranks()), (3 - rank.rank, 4));
        let single = half.split(Some(half.rank() as u16), 0).unwrap().unwrap();
        assert_eq!((single.rank(), single.ranks()), (0, 1));
        let Rank { comm, .. } = rank;
        drop(comm);
        let device = runtime().device(rank.rank).unwrap();
        let stream = device.stream().unwrap();
        for (comm, expected) in [(&half, 2), (&swapped, 4), (&single, 1)] {
            let mut memory = device.alloc_from(&stream, &[1_i64]).unwrap();
            comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, &stream).unwrap();
            comm.wait(&stream).unwrap();
            let mut values = [0];
            memory.copy_to_slice(&stream, &mut values).unwrap();
            assert_eq!(values, [expected]);
        }
    });
}

#[test]
fn one_thread_splits_all_ranks_in_a_group() {
    let _alone = alone();
    let library = library();
    let devices: Vec<_> = (0..3).map(|at| runtime().device(at).unwrap()).collect();
    let ranks = rccl::Communicator::all(&library, &devices).unwrap();
    let api = library.api();
    let (start, end) = (api.ncclGroupStart.unwrap(), api.ncclGroupEnd.unwrap());
    let (split, count) = (api.ncclCommSplit.unwrap(), api.ncclCommCount.unwrap());
    let mut parts = [std::ptr::without_provenance_mut(1); 3];
    // SAFETY: communicators that live, and a place for each handle until the group has ended.
    unsafe {
        assert_eq!(start(), ncclResult_t::ncclSuccess);
        for (rank, part) in ranks.iter().zip(&mut parts) {
            let color = if rank.rank() == 1 { NCCL_SPLIT_NOCOLOR } else { 5 };
            let code = split(rank.raw(), color, 0, part, std::ptr::null_mut());
            assert_eq!(code, ncclResult_t::ncclSuccess);
        }
        assert_eq!(end(), ncclResult_t::ncclSuccess);
        assert!(parts[1].is_null() && !parts[0].is_null() && !parts[2].is_null());
        for part in [parts[0], parts[2]] {
            let mut ranks = 0;
            assert_eq!(count(part, &mut ranks), ncclResult_t::ncclSuccess);
            assert_eq!(ranks, 2);
            assert_eq!(api.ncclCommDestroy.unwrap()(part), ncclResult_t::ncclSuccess);
        }
    }
}

#[test]
fn what_is_no_color_is_refused_before_the_others_wait() {
    run(2, |rank| {
        let mut part = std::ptr::without_provenance_mut(1);
        // SAFETY: a communicator that lives, and a place for the handle.
        let code = unsafe {
            let split = library().api().ncclCommSplit.unwrap();
            split(rank.comm.raw(), -2, 0, &mut part, std::ptr::null_mut())
        };
        assert_eq!(code, ncclResult_t::ncclInvalidArgument);
        assert!(part.is_null());
        // It was no split of this rank's.
        assert!(rank.comm.split(Some(0), 0).unwrap().is_some());
    });
}

#[test]
fn a_rank_that_left_or_aborts_ends_the_split_of_the_others() {
    for (abort, is_first) in [(false, true), (false, false), (true, true), (true, false)] {
        let left = Barrier::new(3);
        run(3, |rank| {
            if rank.rank == 1 {
                if abort {
                    rank.comm.abort().unwrap();
                } else {
                    drop(rank);
                }
                if is_first {
                    left.wait();
                }
                return;
            }
            if is_first {
                left.wait();
            }
            let error = rank.comm.split(Some(0), 0).unwrap_err();
            assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
            assert!(error.to_string().contains("rank 1"), "{error}");
            assert!(rank.comm.split(Some(0), 0).is_err(), "it has failed");
        });
    }
}

#[test]
fn a_failure_of_a_part_is_no_failure_of_the_whole() {
    run(4, |rank| {
        let part = rank.comm.split(Some(rank.rank as u16 / 2), 0).unwrap().unwrap();
        if rank.rank == 0 {
            part.abort().unwrap();
        } else if rank.rank == 1 {
            let mut memory = rank.upload(&[1_i64]);
            let queued = part.all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream);
            assert!(queued.and_then(|()| part.wait(&rank.stream)).is_err());
        } else {
            assert_eq!(sum(&rank, &part, 1), 2);
        }
        assert_eq!(sum(&rank, &rank.comm, 1), 4);
    });
}

#[test]
fn a_library_without_it_is_named() {
    run(2, |rank| {
        let mut api = hip_host_rccl::rccl_api();
        api.ncclCommSplit = None;
        // SAFETY: the software device's table.
        let older = unsafe { Library::from_tables(std::sync::Arc::new(api)) };
        let id = rccl::UniqueId::new(&older).unwrap();
        let alone = rccl::Communicator::new(&older, &rank.device, &id, 0, 1).unwrap();
        let error = alone.split(Some(0), 0).unwrap_err();
        let symbol = "ncclCommSplit";
        assert!(
            matches!(error, Error::MissingSymbol { symbol: is } if is == symbol),
            "{error}"
        );
    });
}
