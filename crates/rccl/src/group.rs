//! Calls that are queued at once. A single call is a group of one.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Stream};
use rccl_sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};

use crate::library::slot;
use crate::{Communicator, Element, Error, Library, ReduceOp, Result};

/// Calls that are collected, and queued at once by [`launch`](Self::launch) or at the end of [`Library::group`].
///
/// It borrows the memory of its calls until then, so nothing else uses it between the call and its work. Without
/// `launch` none of the calls is made.
///
/// ```compile_fail,E0505
/// fn early(rank: &rccl::Communicator, stream: &hip::Stream) -> rccl::Result<()> {
///     let buffer = rank.device().alloc_zeroed::<f32>(4)?;
///     let mut group = rccl::Group::new();
///     group.send(rank, &buffer, 1, stream)?;
///     drop(buffer);
///     group.launch()
/// }
/// ```
#[doc(alias("ncclGroupStart", "ncclGroupEnd"))]
#[derive(Default)]
pub struct Group<'g> {
    calls: Vec<Queued<'g>>,
    memory: PhantomData<&'g mut ()>,
}

/// A call that was checked, and what it uses.
struct Queued<'g> {
    rank: &'g Communicator,
    stream: &'g Stream,
    name: &'static str,
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
enum Routine {
    AllReduce(ReduceOp),
    Reduce(ReduceOp, i32),
    Broadcast(i32),
    AllGather,
    ReduceScatter(ReduceOp),
    Send(i32),
    Recv(i32),
}

impl Library {
    /// Queues all calls that `fill` makes on the group at once.
    ///
    /// Needed where calls wait for each other: sends and receives of an exchange, and calls of several ranks that one
    /// thread has.
    ///
    /// # Errors
    ///
    /// The error of `fill`, and then none of the calls is made; or that of [`Group::launch`].
    #[doc(alias("ncclGroupStart", "ncclGroupEnd"))]
    pub fn group<'g>(&self, fill: impl FnOnce(&mut Group<'g>) -> Result<()>) -> Result<()> {
        let mut group = Group::new();
        fill(&mut group)?;
        group.launch()
    }
}

impl<'g> Group<'g> {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Communicator::all_reduce`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn all_reduce<S, R>(
        &mut self,
        rank: &'g Communicator,
        send: S,
        recv: R,
        op: ReduceOp,
        stream: &'g Stream,
    ) -> Result<()>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        let taken = Taking::new("all_reduce", rank, stream)?;
        taken.same("recv", recv.len(), send.len())?;
        let (send, recv) = (taken.read(send)?, taken.write(recv)?);
        taken.same("recv", recv.len(), send.len())?;
        let count = send.len();
        self.add(taken, Routine::AllReduce(op), Some(send), Some(recv), count)
    }

    /// As [`Communicator::all_reduce_in_place`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn all_reduce_in_place<M>(
        &mut self,
        rank: &'g Communicator,
        memory: M,
        op: ReduceOp,
        stream: &'g Stream,
    ) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("all_reduce_in_place", rank, stream)?;
        let memory = taken.write(memory)?;
        let count = memory.len();
        self.add(taken, Routine::AllReduce(op), None, Some(memory), count)
    }

    /// As [`Communicator::reduce`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn reduce<S, R>(
        &mut self,
        rank: &'g Communicator,
        send: S,
        recv: R,
        (op, root): (ReduceOp, usize),
        stream: &'g Stream,
    ) -> Result<()>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        let taken = Taking::new("reduce", rank, stream)?;
        let root = taken.peer(root)?;
        taken.same("recv", recv.len(), send.len())?;
        let (send, recv) = (taken.read(send)?, taken.write(recv)?);
        taken.same("recv", recv.len(), send.len())?;
        let count = send.len();
        self.add(taken, Routine::Reduce(op, root), Some(send), Some(recv), count)
    }

    /// As [`Communicator::reduce_in_place`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn reduce_in_place<M>(
        &mut self,
        rank: &'g Communicator,
        memory: M,
        (op, root): (ReduceOp, usize),
        stream: &'g Stream,
    ) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("reduce_in_place", rank, stream)?;
        let root = taken.peer(root)?;
        let memory = taken.write(memory)?;
        let count = memory.len();
        self.add(taken, Routine::Reduce(op, root), None, Some(memory), count)
    }

    /// As [`Communicator::broadcast`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn broadcast<M>(&mut self, rank: &'g Communicator, memory: M, root: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("broadcast", rank, stream)?;
        let root = taken.peer(root)?;
        let memory = taken.write(memory)?;
        let count = memory.len();
        self.add(taken, Routine::Broadcast(root), None, Some(memory), count)
    }

    /// As [`Communicator::all_gather`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn all_gather<S, R>(&mut self, rank: &'g Communicator, send: S, recv: R, stream: &'g Stream) -> Result<()>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        let taken = Taking::new("all_gather", rank, stream)?;
        taken.all("recv", recv.len(), send.len())?;
        let (send, recv) = (taken.read(send)?, taken.write(recv)?);
        taken.all("recv", recv.len(), send.len())?;
        let count = send.len();
        self.add(taken, Routine::AllGather, Some(send), Some(recv), count)
    }

    /// As [`Communicator::all_gather_in_place`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn all_gather_in_place<M>(&mut self, rank: &'g Communicator, memory: M, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("all_gather_in_place", rank, stream)?;
        taken.part(memory.len())?;
        let memory = taken.write(memory)?;
        let count = taken.part(memory.len())?;
        self.add(taken, Routine::AllGather, None, Some(memory), count)
    }

    /// As [`Communicator::reduce_scatter`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn reduce_scatter<S, R>(
        &mut self,
        rank: &'g Communicator,
        send: S,
        recv: R,
        op: ReduceOp,
        stream: &'g Stream,
    ) -> Result<()>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        let taken = Taking::new("reduce_scatter", rank, stream)?;
        taken.all("send", send.len(), recv.len())?;
        let (send, recv) = (taken.read(send)?, taken.write(recv)?);
        taken.all("send", send.len(), recv.len())?;
        let count = recv.len();
        self.add(taken, Routine::ReduceScatter(op), Some(send), Some(recv), count)
    }

    /// As [`Communicator::reduce_scatter_in_place`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn reduce_scatter_in_place<M>(
        &mut self,
        rank: &'g Communicator,
        memory: M,
        op: ReduceOp,
        stream: &'g Stream,
    ) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("reduce_scatter_in_place", rank, stream)?;
        taken.part(memory.len())?;
        let memory = taken.write(memory)?;
        let count = taken.part(memory.len())?;
        self.add(taken, Routine::ReduceScatter(op), None, Some(memory), count)
    }

    /// As [`Communicator::send`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn send<M>(&mut self, rank: &'g Communicator, memory: M, peer: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemory<Element: Element> + 'g,
    {
        let taken = Taking::new("send", rank, stream)?;
        let peer = taken.peer(peer)?;
        let memory = taken.read(memory)?;
        let count = memory.len();
        self.add(taken, Routine::Send(peer), Some(memory), None, count)
    }

    /// As [`Communicator::recv`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn recv<M>(&mut self, rank: &'g Communicator, memory: M, peer: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("recv", rank, stream)?;
        let peer = taken.peer(peer)?;
        let memory = taken.write(memory)?;
        let count = memory.len();
        self.add(taken, Routine::Recv(peer), None, Some(memory), count)
    }

    /// Notes a call. One without `send` works in place.
    fn add<T: Element>(
        &mut self,
        taken: Taking<'g>,
        routine: Routine,
        send: Option<DeviceSlice<'g, T>>,
        recv: Option<DeviceSliceMut<'g, T>>,
        count: usize,
    ) -> Result<()> {
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
        let call = Queued {
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
        self.calls.iter().try_for_each(|other| call.apart_from(other))?;
        self.calls.push(call);
        Ok(())
    }

    /// Queues the calls at once.
    ///
    /// # Errors
    ///
    /// The library refused a call. It may have made some of the others: abort the communicators.
    pub fn launch(self) -> Result<()> {
        let Some(first) = self.calls.first() else {
            return Ok(());
        };
        if let [call] = &self.calls[..] {
            return call.queue();
        }
        let library = first.rank.library();
        let api = library.api();
        let start = slot(api.ncclGroupStart, "ncclGroupStart")?;
        let end = slot(api.ncclGroupEnd, "ncclGroupEnd")?;
        // SAFETY: takes nothing; the end follows on each path.
        library.check(unsafe { start() }, None, || "ncclGroupStart()".to_owned())?;
        let made = self.calls.iter().try_for_each(Queued::queue);
        // SAFETY: as above, on the same thread.
        let ended = library.check(unsafe { end() }, Some(first.rank.raw()), || {
            format!("ncclGroupEnd({} calls)", self.calls.len())
        });
        made.and(ended)
    }
}

/// A call on its way into a group: it takes its memory, and checks what it got.
struct Taking<'g> {
    name: &'static str,
    rank: &'g Communicator,
    stream: &'g Stream,
}

impl<'g> Taking<'g> {
    fn new(name: &'static str, rank: &'g Communicator, stream: &'g Stream) -> Result<Self> {
        if stream.device() != rank.device() {
            return Err(Error::WrongDevice {
                call: name,
                stream: stream.device().ordinal(),
                communicator: rank.device().ordinal(),
            });
        }
        if stream.is_recording() {
            return Err(Error::Captured { call: name });
        }
        stream.check_uncaptured()?;
        Ok(Self { name, rank, stream })
    }

    fn read<M: DeviceMemory + 'g>(&self, memory: M) -> Result<DeviceSlice<'g, M::Element>> {
        let slice = memory.read_on(self.stream).map_err(|error| self.refused(error))?;
        self.check_stream(slice.stream())?;
        Ok(slice)
    }

    fn write<M: DeviceMemoryMut + 'g>(&self, memory: M) -> Result<DeviceSliceMut<'g, M::Element>> {
        let slice = memory.write_on(self.stream).map_err(|error| self.refused(error))?;
        self.check_stream(slice.stream())?;
        Ok(slice)
    }

    fn refused(&self, error: hip::Error) -> Error {
        match error {
            hip::Error::WrongStream { .. } => Error::WrongStream { call: self.name },
            error => error.into(),
        }
    }

    fn check_stream(&self, stream: &Stream) -> Result<()> {
        match *stream == *self.stream {
            true => Ok(()),
            false => Err(Error::WrongStream { call: self.name }),
        }
    }

    /// Memory as long as other memory.
    fn same(&self, argument: &'static str, len: usize, needed: usize) -> Result<()> {
        if len == needed {
            return Ok(());
        }
        Err(Error::Length {
            call: self.name,
            argument,
            len,
            needed,
            ranks: self.rank.ranks(),
        })
    }

    /// Memory for a part of every rank.
    fn all(&self, argument: &'static str, len: usize, part: usize) -> Result<()> {
        self.same(argument, len, part.saturating_mul(self.rank.ranks()))
    }

    /// The length of a rank's part.
    fn part(&self, len: usize) -> Result<usize> {
        let ranks = self.rank.ranks();
        if ranks > 0 && len.is_multiple_of(ranks) {
            return Ok(len / ranks);
        }
        Err(Error::NotDivisible {
            call: self.name,
            len,
            ranks,
        })
    }

    fn peer(&self, rank: usize) -> Result<i32> {
        let ranks = self.rank.ranks();
        let raw = i32::try_from(rank).ok().filter(|_| rank < ranks);
        raw.ok_or(Error::NoRank {
            call: self.name,
            rank,
            ranks,
        })
    }
}

impl Queued<'_> {
    /// That no byte that one writes is used by the other, or by both arguments of one.
    fn apart_from(&self, other: &Self) -> Result<()> {
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

    fn queue(&self) -> Result<()> {
        self.stream.device().make_current()?;
        // Before the call: what it queued in part is waited for too.
        self.rank.used_on(self.stream);
        let code = self.call()?;
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

    fn call(&self) -> Result<ncclResult_t> {
        let api = self.rank.library().api();
        let (comm, stream): (ncclComm_t, _) = (self.rank.raw(), self.stream.raw());
        let Self {
            from,
            to,
            count,
            datatype,
            ..
        } = *self;
        let raw = |op: ReduceOp| -> ncclRedOp_t { op.raw() };
        // SAFETY, for each: communicator and stream are alive and of one device. The group has borrowed the memory, as
        // long as the routine takes it to be, and its users are ordered after the stream's work, which comes now. Root
        // and peer are ranks.
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

impl fmt::Debug for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.calls.iter().map(|call| call.name);
        f.debug_list().entries(names).finish()
    }
}
