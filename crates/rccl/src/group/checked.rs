//! A call of each kind, with its memory, checked.

use hip::{DeviceMemory, DeviceMemoryMut, Stream};

use super::queued::{Queued, Routine};
use super::taking::Taking;
use crate::{Communicator, Element, ReduceOp, Result};

impl<'g> Queued<'g> {
    pub(crate) fn all_reduce<S, R>(
        rank: &'g Communicator,
        send: S,
        recv: R,
        op: ReduceOp,
        stream: &'g Stream,
    ) -> Result<Self>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        let taken = Taking::new("all_reduce", rank, stream)?;
        let (send, recv) = (taken.read(send)?, taken.write(recv)?);
        taken.same("recv", recv.len(), send.len())?;
        let count = send.len();
        Self::new(taken, Routine::AllReduce(op), Some(send), Some(recv), count)
    }

    pub(crate) fn all_reduce_in_place<M>(
        rank: &'g Communicator,
        memory: M,
        op: ReduceOp,
        stream: &'g Stream,
    ) -> Result<Self>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("all_reduce_in_place", rank, stream)?;
        let memory = taken.write(memory)?;
        let count = memory.len();
        Self::new(taken, Routine::AllReduce(op), None, Some(memory), count)
    }

    pub(crate) fn reduce<S, R>(
        rank: &'g Communicator,
        send: S,
        recv: R,
        (op, root): (ReduceOp, usize),
        stream: &'g Stream,
    ) -> Result<Self>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        let taken = Taking::new("reduce", rank, stream)?;
        let root = taken.peer(root)?;
        let (send, recv) = (taken.read(send)?, taken.write(recv)?);
        taken.same("recv", recv.len(), send.len())?;
        let count = send.len();
        Self::new(taken, Routine::Reduce(op, root), Some(send), Some(recv), count)
    }

    pub(crate) fn reduce_in_place<M>(
        rank: &'g Communicator,
        memory: M,
        (op, root): (ReduceOp, usize),
        stream: &'g Stream,
    ) -> Result<Self>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("reduce_in_place", rank, stream)?;
        let root = taken.peer(root)?;
        let memory = taken.write(memory)?;
        let count = memory.len();
        Self::new(taken, Routine::Reduce(op, root), None, Some(memory), count)
    }

    pub(crate) fn broadcast<M>(rank: &'g Communicator, memory: M, root: usize, stream: &'g Stream) -> Result<Self>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("broadcast", rank, stream)?;
        let root = taken.peer(root)?;
        let memory = taken.write(memory)?;
        let count = memory.len();
        Self::new(taken, Routine::Broadcast(root), None, Some(memory), count)
    }

    pub(crate) fn all_gather<S, R>(rank: &'g Communicator, send: S, recv: R, stream: &'g Stream) -> Result<Self>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        let taken = Taking::new("all_gather", rank, stream)?;
        let (send, recv) = (taken.read(send)?, taken.write(recv)?);
        taken.all("recv", recv.len(), send.len())?;
        let count = send.len();
        Self::new(taken, Routine::AllGather, Some(send), Some(recv), count)
    }

    pub(crate) fn all_gather_in_place<M>(rank: &'g Communicator, memory: M, stream: &'g Stream) -> Result<Self>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("all_gather_in_place", rank, stream)?;
        let memory = taken.write(memory)?;
        let count = taken.part(memory.len())?;
        Self::new(taken, Routine::AllGather, None, Some(memory), count)
    }

    pub(crate) fn reduce_scatter<S, R>(
        rank: &'g Communicator,
        send: S,
        recv: R,
        op: ReduceOp,
        stream: &'g Stream,
    ) -> Result<Self>
    where
        S: DeviceMemory<Element: Element> + 'g,
        R: DeviceMemoryMut<Element = S::Element> + 'g,
    {
        let taken = Taking::new("reduce_scatter", rank, stream)?;
        let (send, recv) = (taken.read(send)?, taken.write(recv)?);
        taken.all("send", send.len(), recv.len())?;
        let count = recv.len();
        Self::new(taken, Routine::ReduceScatter(op), Some(send), Some(recv), count)
    }

    pub(crate) fn reduce_scatter_in_place<M>(
        rank: &'g Communicator,
        memory: M,
        op: ReduceOp,
        stream: &'g Stream,
    ) -> Result<Self>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("reduce_scatter_in_place", rank, stream)?;
        let memory = taken.write(memory)?;
        let count = taken.part(memory.len())?;
        Self::new(taken, Routine::ReduceScatter(op), None, Some(memory), count)
    }

    pub(crate) fn send<M>(rank: &'g Communicator, memory: M, peer: usize, stream: &'g Stream) -> Result<Self>
    where
        M: DeviceMemory<Element: Element> + 'g,
    {
        let taken = Taking::new("send", rank, stream)?;
        let peer = taken.peer(peer)?;
        let memory = taken.read(memory)?;
        let count = memory.len();
        Self::new(taken, Routine::Send(peer), Some(memory), None, count)
    }

    pub(crate) fn recv<M>(rank: &'g Communicator, memory: M, peer: usize, stream: &'g Stream) -> Result<Self>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let taken = Taking::new("recv", rank, stream)?;
        let peer = taken.peer(peer)?;
        let memory = taken.write(memory)?;
        let count = memory.len();
        Self::new(taken, Routine::Recv(peer), None, Some(memory), count)
    }
}
