//! Single calls, without a group: nothing is allocated for them.

use hip::{DeviceMemory, DeviceMemoryMut, Stream};

use crate::group::Queued;
use crate::{Communicator, Element, ReduceOp, Result};

/// # Collectives and messages
///
/// Each fails as follows: [`Error::Length`](crate::Error::Length) and
/// [`NotDivisible`](crate::Error::NotDivisible) where memory does not fit, [`NoRank`](crate::Error::NoRank),
/// [`WrongDevice`](crate::Error::WrongDevice), [`WrongStream`](crate::Error::WrongStream),
/// [`Overlap`](crate::Error::Overlap) and [`Captured`](crate::Error::Captured), before anything is queued; or the library
/// refuses the call. What other ranks do wrong is seen by [`check`](Communicator::check) and
/// [`wait`](Communicator::wait).
impl Communicator {
    /// Gives every rank the elements of all ranks, reduced one by one. `send` and `recv` are equally long.
    ///
    /// # Errors
    /// See above.
    #[doc(alias = "ncclAllReduce")]
    pub fn all_reduce<'g, S, R>(&'g self, send: S, recv: R, op: ReduceOp, stream: &'g Stream) -> Result<()>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        Queued::all_reduce(self, send, recv, op, stream)?.queue()
    }

    /// As [`all_reduce`](Self::all_reduce), with the result where the elements were.
    ///
    /// # Errors
    /// See above.
    #[doc(alias = "ncclAllReduce")]
    pub fn all_reduce_in_place<'g, M>(&'g self, memory: M, op: ReduceOp, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        Queued::all_reduce_in_place(self, memory, op, stream)?.queue()
    }

    /// Gives the root the elements of all ranks, reduced one by one. On the other ranks `recv` keeps its contents.
    ///
    /// # Errors
    /// See above.
    #[doc(alias = "ncclReduce")]
    pub fn reduce<'g, S, R>(&'g self, send: S, recv: R, op: ReduceOp, root: usize, stream: &'g Stream) -> Result<()>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        Queued::reduce(self, send, recv, (op, root), stream)?.queue()
    }

    /// As [`reduce`](Self::reduce), with the root's result where its elements were.
    ///
    /// # Errors
    /// See above.
    #[doc(alias = "ncclReduce")]
    pub fn reduce_in_place<'g, M>(&'g self, memory: M, op: ReduceOp, root: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        Queued::reduce_in_place(self, memory, (op, root), stream)?.queue()
    }

    /// Gives every rank what the root's memory holds.
    ///
    /// # Errors
    /// See above.
    #[doc(alias("ncclBroadcast", "ncclBcast"))]
    pub fn broadcast<'g, M>(&'g self, memory: M, root: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        Queued::broadcast(self, memory, root, stream)?.queue()
    }

    /// Gives every rank the elements of all, one rank after the other: `recv` is as long as all `send`.
    ///
    /// # Errors
    /// See above.
    #[doc(alias = "ncclAllGather")]
    pub fn all_gather<'g, S, R>(&'g self, send: S, recv: R, stream: &'g Stream) -> Result<()>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        Queued::all_gather(self, send, recv, stream)?.queue()
    }

    /// As [`all_gather`](Self::all_gather): each rank's own part lies in its place already.
    ///
    /// # Errors
    /// See above.
    #[doc(alias = "ncclAllGather")]
    pub fn all_gather_in_place<'g, M>(&'g self, memory: M, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        Queued::all_gather_in_place(self, memory, stream)?.queue()
    }

    /// Reduces the elements of all ranks one by one, and gives each rank its part of the result: `send` is as long as all
    /// `recv`.
    ///
    /// # Errors
    /// See above.
    #[doc(alias = "ncclReduceScatter")]
    pub fn reduce_scatter<'g, S, R>(&'g self, send: S, recv: R, op: ReduceOp, stream: &'g Stream) -> Result<()>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        Queued::reduce_scatter(self, send, recv, op, stream)?.queue()
    }

    /// As [`reduce_scatter`](Self::reduce_scatter), with the rank's part of the result in its place in the memory. What
    /// the rest of it holds then is not specified.
    ///
    /// # Errors
    /// See above.
    #[doc(alias = "ncclReduceScatter")]
    pub fn reduce_scatter_in_place<'g, M>(&'g self, memory: M, op: ReduceOp, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        Queued::reduce_scatter_in_place(self, memory, op, stream)?.queue()
    }

    /// Sends to a peer, which receives as many elements of the same type. An exchange, where both send, needs a
    /// [group](crate::Library::group).
    ///
    /// # Errors
    /// See above.
    #[doc(alias = "ncclSend")]
    pub fn send<'g, M>(&'g self, memory: M, peer: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemory<Element: Element> + 'g,
    {
        Queued::send(self, memory, peer, stream)?.queue()
    }

    /// Receives what a peer sends.
    ///
    /// # Errors
    /// See above.
    #[doc(alias = "ncclRecv")]
    pub fn recv<'g, M>(&'g self, memory: M, peer: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        Queued::recv(self, memory, peer, stream)?.queue()
    }
}
