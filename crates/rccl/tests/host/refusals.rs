//! What is refused before anything is queued.

use std::time::Duration;

use rccl::{Communicator, Error, ReduceOp, UniqueId};

use crate::common::{Rank, alone, another_runtime, library, run, runtime};

#[test]
fn lengths_that_do_not_fit() {
    run(2, |rank| {
        let (a, mut b) = (rank.upload(&[1.0_f32; 3]), rank.upload(&[1.0_f32; 5]));
        let (comm, stream) = (&rank.comm, &rank.stream);
        let calls = [
            comm.all_reduce(&a, &mut b, ReduceOp::Sum, stream),
            comm.reduce(&a, &mut b, ReduceOp::Sum, 0, stream),
            comm.all_gather(&a, &mut b, stream),
            comm.reduce_scatter(&a, &mut b, ReduceOp::Sum, stream),
        ];
        for error in calls.map(Result::unwrap_err) {
            assert!(matches!(error, Error::Length { .. }), "{error}");
        }
        for error in [
            comm.all_gather_in_place(&mut b, stream).unwrap_err(),
            comm.reduce_scatter_in_place(&mut b, ReduceOp::Sum, stream).unwrap_err(),
        ] {
            assert!(matches!(error, Error::NotDivisible { len: 5, ranks: 2, .. }), "{error}");
        }
        // None of them counts as a call.
        comm.broadcast(&mut b, 0, stream).unwrap();
        comm.wait(stream).unwrap();
    });
}

#[test]
fn ranks_that_are_not_there() {
    run(2, |rank| {
        let mut memory = rank.upload(&[1_u8; 3]);
        let (comm, stream) = (&rank.comm, &rank.stream);
        for error in [
            comm.broadcast(&mut memory, 2, stream).unwrap_err(),
            comm.send(&memory, 2, stream).unwrap_err(),
            comm.recv(&mut memory, usize::MAX, stream).unwrap_err(),
        ] {
            assert!(matches!(error, Error::NoRank { ranks: 2, .. }), "{error}");
        }
    });
}

#[test]
fn a_device_of_another_runtime() {
    let own = runtime();
    let library = library().only_for(&own);
    let _alone = alone();
    let id = UniqueId::new(&library).unwrap();
    let limit = Duration::from_secs(60);
    let other = another_runtime().device(0).unwrap();
    for refused in [
        Communicator::new(&library, &other, &id, 0, 1).map(drop),
        Communicator::new_within(&library, &other, &id, 0, 1, limit).map(drop),
        Communicator::all(&library, &[own.device(0).unwrap(), other.clone()]).map(drop),
    ] {
        assert!(matches!(refused, Err(Error::OtherRuntime { .. })), "{refused:?}");
    }
    Communicator::new(&library, &own.device(0).unwrap(), &id, 0, 1).unwrap();
}

#[test]
fn a_stream_of_another_device() {
    run(2, |rank| {
        let other = rank.device.runtime().device(5).unwrap();
        let stream = other.stream().unwrap();
        let mut memory = other.alloc_zeroed::<f32>(3).unwrap();
        let error = rank.comm.broadcast(&mut memory, 0, &stream).unwrap_err();
        assert!(matches!(error, Error::WrongDevice { stream: 5, .. }), "{error}");
        assert!(!error.to_string().contains('\n'));
    });
}

#[test]
fn a_slice_of_another_stream() {
    run(1, |rank| {
        let other = rank.device.stream().unwrap();
        let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
        let slice = memory.on_mut(&other).unwrap();
        let error = rank.comm.broadcast(slice, 0, &rank.stream).unwrap_err();
        assert!(matches!(error, Error::WrongStream { .. }), "{error}");
    });
}

/// What each test of overlaps starts from: eight elements, of which two halves share one.
fn overlapping<'s>(memory: &mut hip::DeviceBuffer<f32>, stream: &'s hip::Stream) -> [hip::DeviceSliceMut<'s, f32>; 2] {
    let pointer = memory.on_mut(stream).unwrap().as_mut_ptr();
    // SAFETY: the memory lives as long as the test, and nothing runs on it: each call is refused, or its group is never
    // launched.
    unsafe { [0, 3].map(|begin| hip::DeviceSliceMut::from_raw_parts(pointer.add(begin), 4, stream)) }
}

#[test]
fn memory_of_two_calls_of_a_group() {
    type Add = for<'g> fn(&mut rccl::Group<'g>, &'g Rank, hip::DeviceSliceMut<'g, f32>) -> rccl::Result<()>;
    let send: Add = |group, rank, slice| group.send(&rank.comm, slice.into_slice(), 0, &rank.stream);
    let recv: Add = |group, rank, slice| group.recv(&rank.comm, slice, 0, &rank.stream);
    run(1, |rank| {
        let mut memory = rank.device.alloc_zeroed::<f32>(8).unwrap();
        for (first, second, is_refused) in [
            (send, send, false),
            (send, recv, true),
            (recv, send, true),
            (recv, recv, true),
        ] {
            let [one, two] = overlapping(&mut memory, &rank.stream);
            let mut group = rccl::Group::new();
            first(&mut group, &rank, one).unwrap();
            let added = second(&mut group, &rank, two);
            let overlaps = matches!(added, Err(Error::Overlap { .. }));
            assert_eq!((overlaps, added.is_err()), (is_refused, is_refused), "{added:?}");
        }
    });
}

#[test]
fn memory_of_one_call() {
    run(1, |rank| {
        let mut memory = rank.device.alloc_zeroed::<f32>(8).unwrap();
        let [one, two] = overlapping(&mut memory, &rank.stream);
        let error = rank
            .comm
            .all_reduce(one.into_slice(), two, ReduceOp::Sum, &rank.stream)
            .unwrap_err();
        assert!(matches!(error, Error::Overlap { .. }), "{error}");
    });
}

/// Memory that gives itself to another stream than that of the call.
struct Elsewhere<'m>(&'m mut hip::DeviceBuffer<f32>, &'m hip::Stream);

impl hip::DeviceMemory for Elsewhere<'_> {
    type Element = f32;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn read_on<'s>(self, _: &'s hip::Stream) -> hip::Result<hip::DeviceSlice<'s, f32>>
    where
        Self: 's,
    {
        self.0.on(self.1)
    }
}

impl hip::DeviceMemoryMut for Elsewhere<'_> {
    fn write_on<'s>(self, _: &'s hip::Stream) -> hip::Result<hip::DeviceSliceMut<'s, f32>>
    where
        Self: 's,
    {
        self.0.on_mut(self.1)
    }
}

#[test]
fn memory_that_is_taken_on_another_stream() {
    run(1, |rank| {
        // Were a message queued, it would wait for its peer.
        rank.comm.set_time_limit(std::time::Duration::from_secs(1));
        let other = rank.device.stream().unwrap();
        let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
        let read = rank.comm.send(Elsewhere(&mut memory, &other), 0, &rank.stream);
        let written = rank.comm.broadcast(Elsewhere(&mut memory, &other), 0, &rank.stream);
        for error in [read, written].map(Result::unwrap_err) {
            assert!(matches!(error, Error::WrongStream { .. }), "{error}");
        }
    });
}
