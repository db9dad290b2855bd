//! A call of a group, and how the library is called for it.

use std::ffi::c_void;
use std::ops::Range;

use hip::{DeviceSlice, DeviceSliceMut, Stream};
use hip_sys::hipStream_t;
use rccl_sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};

use super::taking::{Taking, check_capture};
use crate::core::Held;
use crate::library::slot;
use crate::{Communicator, Element, Error, ReduceOp, Result};

/// A call that was checked, and what it uses.
pub(crate) struct Queued<'g> {
    pub(super) rank: &'g Communicator,
    stream: &'g Stream,
    pub(super) name: &'static str,
    routine: Routine,
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    datatype: ncclDataType_t,
    /// The bytes that are read, and that are written.
    places: [Range<usize>; 2],
}

/// The C function with what it takes beside memory.
#[derive(Clone, Copy)]
pub(super) enum Routine {
    AllReduce(ReduceOp),
    Reduce(ReduceOp, i32),
    Broadcast(i32),
    AllGather,
    ReduceScatter(ReduceOp),
    Send(i32),
    Recv(i32),
}

impl<'g> Queued<'g> {
    /// A call, of which the arguments of one are checked. One without `send` works in place.
    pub(super) fn new<T: Element>(
        taken: Taking<'g>,
        routine: Routine,
        send: Option<DeviceSlice<'g, T>>,
        recv: Option<DeviceSliceMut<'g, T>>,
        count: usize,
    ) -> Result<Self> {
        let Taking { name, rank, stream } = taken;
        let bytes = |slice: &DeviceSlice<'_, T>| {
            let begin = slice.as_ptr().addr();
            // What a slice holds does not wrap.
            begin..begin + slice.len() * size_of::<T>()
        };
        let read = send.as_ref().map_or(0..0, bytes);
        let written = recv.as_ref().map_or(0..0, |slice| bytes(&slice.as_slice()));
        let to = recv.map_or(std::ptr::null_mut(), |mut slice| slice.as_mut_ptr());
        let from = match (&send, routine) {
            (Some(slice), _) => slice.as_ptr(),
            // In place: this rank's part of the whole.
            (None, Routine::AllGather) => to.wrapping_add(rank.rank() * count).cast_const(),
            (None, _) => to.cast_const(),
        };
        let to = match (&send, routine) {
            (None, Routine::ReduceScatter(_)) => to.wrapping_add(rank.rank() * count),
            _ => to,
        };
        let call = Self {
            rank,
            stream,
            name,
            routine,
            from: from.cast(),
            to: to.cast(),
            count,
            datatype: T::DATATYPE,
            places: [read, written],
        };
        call.apart_from(&call)?;
        Ok(call)
    }

    /// That no byte that one writes is used by the other, or by both arguments of one.
    pub(super) fn apart_from(&self, other: &Self) -> Result<()> {
        let meet = |one: &Range<usize>, two: &Range<usize>| {
            !one.is_empty() && !two.is_empty() && one.start < two.end && two.start < one.end
        };
        let [read, written] = &self.places;
        let [other_read, other_written] = &other.places;
        let same = std::ptr::eq(self, other);
        if meet(written, other_read) || meet(read, other_written) || (!same && meet(written, other_written)) {
            return Err(Error::Overlap {
                call: self.name,
                other: other.name,
            });
        }
        Ok(())
    }

    /// That its stream can take it now: a group may be launched later than it was filled. The communicator stays until
    /// all calls are made.
    pub(super) fn check(&self) -> Result<Held<'g>> {
        check_capture(self.name, self.rank, self.stream)?;
        self.rank.hold(self.name)
    }

    pub(crate) fn queue(&self) -> Result<()> {
        self.stream.device().make_current()?;
        let held = self.rank.hold(self.name)?;
        let stream = self.stream.raw_for_work()?;
        // Before the call: what it queued in part is waited for too, or kept.
        match self.stream.is_recording() {
            true => self.rank.kept_by_graph(self.stream),
            false => self.rank.used_on(self.stream),
        }
        let code = self.call(held.raw(), stream)?;
        self.rank.told(code, || {
            format!(
                "{}(rank {} of {}, {} x {:?})",
                self.name,
                self.rank.rank(),
                self.rank.ranks(),
                self.count,
                self.datatype
            )
        })
    }

    fn call(&self, comm: ncclComm_t, stream: hipStream_t) -> Result<ncclResult_t> {
        let api = self.rank.library().api();
        let Self {
            from,
            to,
            count,
            datatype,
            ..
        } = *self;
        let raw = |op: ReduceOp| -> ncclRedOp_t { op.raw() };
        // SAFETY, for each: communicator and stream are alive and of one device, and a graph that records the call keeps the
        // communicator. The group has borrowed the memory, as long as the routine takes it to be, and its users are
        // ordered after the stream's work, which comes now, or with a launch whose caller vouches for that. Root and peer
        // are ranks.
        Ok(match self.routine {
            Routine::AllReduce(op) => {
                let call = slot(api.ncclAllReduce, "ncclAllReduce")?;
                // SAFETY: see above.
                unsafe { call(from, to, count, datatype, raw(op), comm, stream) }
            }
            Routine::Reduce(op, root) => {
                let call = slot(api.ncclReduce, "ncclReduce")?;
                // SAFETY: see above.
                unsafe { call(from, to, count, datatype, raw(op), root, comm, stream) }
            }
            Routine::Broadcast(root) => {
                let call = slot(api.ncclBroadcast, "ncclBroadcast")?;
                // SAFETY: see above.
                unsafe { call(from, to, count, datatype, root, comm, stream) }
            }
            Routine::AllGather => {
                let call = slot(api.ncclAllGather, "ncclAllGather")?;
                // SAFETY: see above.
                unsafe { call(from, to, count, datatype, comm, stream) }
            }
            Routine::ReduceScatter(op) => {
                let call = slot(api.ncclReduceScatter, "ncclReduceScatter")?;
                // SAFETY: see above.
                unsafe { call(from, to, count, datatype, raw(op), comm, stream) }
            }
            Routine::Send(peer) => {
                let call = slot(api.ncclSend, "ncclSend")?;
                // SAFETY: see above.
                unsafe { call(from, count, datatype, peer, comm, stream) }
            }
            Routine::Recv(peer) => {
                let call = slot(api.ncclRecv, "ncclRecv")?;
                // SAFETY: see above.
                unsafe { call(to, count, datatype, peer, comm, stream) }
            }
        })
    }
}
