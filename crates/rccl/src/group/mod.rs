//! Calls that are queued at once. A single call is a group of one.

mod queued;
mod taking;

use std::fmt;
use std::marker::PhantomData;

use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Stream};
use queued::{Queued, Routine};
use taking::Taking;

use crate::library::slot;
use crate::{Communicator, Element, Library, ReduceOp, Result};

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
        let call = Queued::new(taken, routine, send, recv, count)?;
        self.calls.iter().try_for_each(|other| call.apart_from(other))?;
        self.calls.push(call);
        Ok(())
    }

    /// Queues the calls at once.
    ///
    /// # Errors
    ///
    /// [`Error::Captured`](crate::Error::Captured), and then none of the calls is made; or the library refused a call. It
    /// may have made some of the others: abort the communicators.
    pub fn launch(self) -> Result<()> {
        self.calls.iter().try_for_each(Queued::check)?;
        self.queue()
    }

    /// As [`launch`](Self::launch), of calls that were added just now.
    pub(crate) fn queue(self) -> Result<()> {
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

impl fmt::Debug for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.calls.iter().map(|call| call.name);
        f.debug_list().entries(names).finish()
    }
}
