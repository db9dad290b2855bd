//! Calls that are queued at once.

mod checked;
mod queued;
mod taking;

use std::fmt;
use std::marker::PhantomData;

use hip::{DeviceMemory, DeviceMemoryMut, Stream};
pub(crate) use queued::Queued;

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
        self.add(Queued::all_reduce(rank, send, recv, op, stream)?)
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
        self.add(Queued::all_reduce_in_place(rank, memory, op, stream)?)
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
        self.add(Queued::reduce(rank, send, recv, (op, root), stream)?)
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
        self.add(Queued::reduce_in_place(rank, memory, (op, root), stream)?)
    }

    /// As [`Communicator::broadcast`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn broadcast<M>(&mut self, rank: &'g Communicator, memory: M, root: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        self.add(Queued::broadcast(rank, memory, root, stream)?)
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
        self.add(Queued::all_gather(rank, send, recv, stream)?)
    }

    /// As [`Communicator::all_gather_in_place`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn all_gather_in_place<M>(&mut self, rank: &'g Communicator, memory: M, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        self.add(Queued::all_gather_in_place(rank, memory, stream)?)
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
        self.add(Queued::reduce_scatter(rank, send, recv, op, stream)?)
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
        self.add(Queued::reduce_scatter_in_place(rank, memory, op, stream)?)
    }

    /// As [`Communicator::send`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn send<M>(&mut self, rank: &'g Communicator, memory: M, peer: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemory<Element: Element> + 'g,
    {
        self.add(Queued::send(rank, memory, peer, stream)?)
    }

    /// As [`Communicator::recv`].
    ///
    /// # Errors
    /// As there, but for the library's own.
    pub fn recv<M>(&mut self, rank: &'g Communicator, memory: M, peer: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        self.add(Queued::recv(rank, memory, peer, stream)?)
    }

    fn add(&mut self, call: Queued<'g>) -> Result<()> {
        self.calls.iter().try_for_each(|other| call.apart_from(other))?;
        self.calls.push(call);
        Ok(())
    }

    /// Queues the calls at once, or records them where a capture of their streams goes on.
    ///
    /// # Errors
    ///
    /// [`Error::Captured`](crate::Error::Captured), and then none of the calls is made; or the library refused a call. It
    /// may have made some of the others, or recorded them: abort the communicators, and drop the graph.
    pub fn launch(self) -> Result<()> {
        let _held = self.calls.iter().map(Queued::check).collect::<Result<Vec<_>>>()?;
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
