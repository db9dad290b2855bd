//! Starts with a limit, and communicators that do not block.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rccl::{Communicator, Error, Library, ReduceOp, UniqueId};
use rccl_sys::{Api, ncclComm_t, ncclConfig_t, ncclResult_t};

use crate::common::{Rank, alone, library, runtime, threads};

/// Longer than any start takes here.
const LONG: Duration = Duration::from_secs(600);

fn configured(blocking: i32) -> ncclConfig_t {
    const UNDEFINED: i32 = i32::MIN;
    ncclConfig_t {
        size: size_of::<ncclConfig_t>(),
        magic: 0xcafe_beef,
        version: 22707,
        blocking,
        cgaClusterSize: UNDEFINED,
        minCTAs: UNDEFINED,
        maxCTAs: UNDEFINED,
        splitShare: UNDEFINED,
        trafficClass: UNDEFINED,
        collnetEnable: UNDEFINED,
        CTAPolicy: UNDEFINED,
        shrinkShare: UNDEFINED,
        nvlsCTAs: UNDEFINED,
        ..ncclConfig_t::default()
    }
}

fn sum(rank: &Rank) -> i64 {
    let mut memory = rank.upload(&[10_i64.pow(rank.rank as u32)]);
    rank.comm
        .all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream)
        .unwrap();
    rank.comm.wait(&rank.stream).unwrap();
    rank.download(&memory)[0]
}

#[test]
fn all_ranks_that_come_in_time_are_a_communicator_as_any_other() {
    let _alone = alone();
    let (library, runtime) = (library(), runtime());
    let id = UniqueId::new(&library).unwrap();
    threads(3, |rank| {
        let device = runtime.device(rank).unwrap();
        let comm = Communicator::new_within(&library, &device, &id, rank, 3, LONG).unwrap();
        assert_eq!((comm.rank(), comm.ranks()), (rank, 3));
        let rank = Rank {
            rank,
            ranks: 3,
            comm,
            stream: device.stream().unwrap(),
            device,
        };
        assert_eq!(sum(&rank), 111);
        // Its calls block: a part is there when the call returns, and needs no more.
        let part = rank.comm.split(Some(0), 0).unwrap().unwrap();
        assert_eq!(part.ranks(), 3);
        drop(part);
        assert_eq!(sum(&rank), 111);
    });
}

#[test]
fn a_rank_that_does_not_come_is_given_up_at_the_limit() {
    let _alone = alone();
    let (library, runtime) = (library(), runtime());
    let id = UniqueId::new(&library).unwrap();
    let ended = AtomicUsize::new(0);
    threads(2, |rank| {
        let device = runtime.device(rank).unwrap();
        let limit = Duration::from_millis(20);
        let error = Communicator::new_within(&library, &device, &id, rank, 3, limit).unwrap_err();
        // The other's abort may come first.
        let is_told = matches!(error, Error::TimedOut { .. }) || error.to_string().contains("aborted the communicator");
        assert!(is_told, "{error}");
        ended.fetch_add(usize::from(matches!(error, Error::TimedOut { .. })), Ordering::Relaxed);
    });
    assert!(ended.into_inner() >= 1);
    // The one that comes too late is told, and does not wait.
    let device = runtime.device(2).unwrap();
    let error = Communicator::new(&library, &device, &id, 2, 3).unwrap_err();
    assert!(error.to_string().contains("aborted the communicator"), "{error}");
}

#[test]
fn a_rank_that_cannot_be_or_a_library_that_cannot_give_up_is_named() {
    let _alone = alone();
    let device = runtime().device(0).unwrap();
    let start = |library: &Library, rank| {
        let id = UniqueId::new(library).unwrap();
        Communicator::new_within(library, &device, &id, rank, 1, LONG).map(drop)
    };
    assert!(matches!(
        start(&library(), 1),
        Err(Error::NoRank { rank: 1, ranks: 1, .. })
    ));
    type Remove = fn(&mut Api);
    let slots: [(&str, Remove); 3] = [
        ("ncclCommInitRankConfig", |api| api.ncclCommInitRankConfig = None),
        ("ncclCommSplit", |api| api.ncclCommSplit = None),
        ("ncclCommFinalize", |api| api.ncclCommFinalize = None),
    ];
    for (name, remove) in slots {
        let mut api = hip_host_rccl::rccl_api();
        remove(&mut api);
        // SAFETY: the software device's table.
        let older = unsafe { Library::from_tables(std::sync::Arc::new(api)) };
        let error = start(&older, 0).unwrap_err();
        assert!(
            matches!(error, Error::MissingSymbol { symbol } if symbol == name),
            "{error}"
        );
    }
    start(&library(), 0).unwrap();
}

/// The state that the library tells, until it is another than `ncclInProgress`.
fn end_of(api: &Api, comm: ncclComm_t) -> ncclResult_t {
    loop {
        let mut state = ncclResult_t::ncclSuccess;
        // SAFETY: a living communicator, and a place for the state.
        let asked = unsafe { api.ncclCommGetAsyncError.unwrap()(comm, &mut state) };
        assert_eq!(asked, ncclResult_t::ncclSuccess);
        if state != ncclResult_t::ncclInProgress {
            return state;
        }
        std::thread::yield_now();
    }
}

/// The double's own rules, which the safe layer keeps.
#[test]
fn what_does_not_block_is_refused_until_its_end_was_told() {
    let _alone = alone();
    let (library, runtime) = (library(), runtime());
    let id = UniqueId::new(&library).unwrap().to_bytes().map(u8::cast_signed);
    let id = rccl_sys::ncclUniqueId { internal: id };
    let api = library.api();
    let (success, goes_on) = (ncclResult_t::ncclSuccess, ncclResult_t::ncclInProgress);
    let before_the_last = Barrier::new(2);
    threads(2, |rank| {
        let device = runtime.device(rank).unwrap();
        let (stream, mut memory) = (device.stream().unwrap(), device.alloc_zeroed::<f32>(1).unwrap());
        let pointer = memory.on_mut(&stream).unwrap().as_mut_ptr().cast();
        let mut comm: ncclComm_t = std::ptr::null_mut();
        // SAFETY: places for handles and numbers that outlive their calls, and a communicator that lives.
        unsafe {
            let set = device.runtime().api().hipSetDevice.unwrap()(rank as i32);
            assert_eq!(set, hip_sys::hipError_t::hipSuccess);
            let init = api.ncclCommInitRankConfig.unwrap();
            for wrong in [2, -1] {
                let code = init(&mut comm, 2, id, rank as i32, &mut configured(wrong));
                assert_eq!(code, ncclResult_t::ncclInvalidArgument);
            }
            let mut unmade = ncclConfig_t {
                magic: 1,
                ..configured(0)
            };
            let code = init(&mut comm, 2, id, rank as i32, &mut unmade);
            assert_eq!(code, ncclResult_t::ncclInvalidArgument);
            if rank == 1 {
                before_the_last.wait();
            }
            assert_eq!(init(&mut comm, 2, id, rank as i32, &mut configured(0)), goes_on);
            assert!(!comm.is_null());
            let mut count = 0;
            if rank == 0 {
                // The other rank is not there yet.
                let mut state = success;
                assert_eq!(api.ncclCommGetAsyncError.unwrap()(comm, &mut state), success);
                assert_eq!(state, goes_on);
                before_the_last.wait();
            }
            let early = api.ncclCommCount.unwrap()(comm, &mut count);
            assert_eq!(early, ncclResult_t::ncclInvalidArgument);
            assert_eq!(end_of(api, comm), success);
            assert_eq!(api.ncclCommCount.unwrap()(comm, &mut count), success);
            assert_eq!(count, 2);

            let float = rccl_sys::ncclDataType_t::ncclFloat32;
            let broadcast = || api.ncclBroadcast.unwrap()(pointer, pointer, 1, float, 0, comm, stream.raw());
            assert_eq!(broadcast(), goes_on);
            assert_eq!(broadcast(), ncclResult_t::ncclInvalidArgument);
            assert_eq!(end_of(api, comm), success);

            let mut part: ncclComm_t = std::ptr::null_mut();
            assert_eq!(
                api.ncclCommSplit.unwrap()(comm, 0, 0, &mut part, std::ptr::null_mut()),
                goes_on
            );
            assert_eq!(end_of(api, comm), success);
            // It inherited that it does not block.
            assert_eq!(api.ncclCommFinalize.unwrap()(part), goes_on);
            assert_eq!(api.ncclCommDestroy.unwrap()(part), ncclResult_t::ncclInvalidArgument);
            assert_eq!(end_of(api, part), success);
            assert_eq!(
                api.ncclCommCount.unwrap()(part, &mut count),
                ncclResult_t::ncclInvalidArgument
            );
            assert_eq!(api.ncclCommDestroy.unwrap()(part), success);
            assert_eq!(api.ncclCommDestroy.unwrap()(comm), success);
        }
        stream.synchronize().unwrap();
    });
}
