//! Memory of any kind.

use std::sync::Arc;

use bytemuck::Pod;

use super::policy::BufferStrategy;
use crate::buffer::{HostPtrBuffer, MemRef, RegularBuffer, SvmBuffer, SvmGrain};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::external::ExternalBuffer;
use crate::queue::Queue;
use crate::usage::Usage;

pub(crate) enum Memory<T> {
    Regular(RegularBuffer<T>),
    Svm(SvmBuffer<T>),
    HostPtr(HostPtrBuffer<T>),
    External(ExternalBuffer<T>),
}

/// Calls the same method on any kind.
macro_rules! each {
    ($memory:expr, $buffer:ident => $call:expr) => {
        match $memory {
            Memory::Regular($buffer) => $call,
            Memory::Svm($buffer) => $call,
            Memory::HostPtr($buffer) => $call,
            Memory::External($buffer) => $call,
        }
    };
}
pub(super) use each;

impl<T: Pod> Memory<T> {
    /// New memory of this kind and of no other.
    pub fn allocate(context: &Context, strategy: BufferStrategy, len: usize) -> Result<Self> {
        Ok(match strategy {
            BufferStrategy::Regular => Self::Regular(RegularBuffer::new(context, len)?),
            BufferStrategy::SvmCoarse => Self::Svm(SvmBuffer::new(context, len, SvmGrain::Coarse)?),
            BufferStrategy::SvmFine => Self::Svm(SvmBuffer::new(context, len, SvmGrain::Fine)?),
            BufferStrategy::SvmSystem => Self::Svm(SvmBuffer::new(context, len, SvmGrain::System)?),
            BufferStrategy::HostPtr => Self::HostPtr(HostPtrBuffer::new(context, len)?),
            BufferStrategy::External => {
                return Err(Error::NotSupported {
                    what: "allocating a foreign buffer".to_owned(),
                    device: context.device().name().to_owned(),
                    reason: "a foreign buffer already exists; use `BufferFactory::adopt`".to_owned(),
                });
            }
        })
    }

    /// Enqueues a copy between memory of any two kinds.
    pub fn copy_from(&mut self, queue: &Queue, to: usize, source: &Self, from: usize, count: usize) -> Result<Event> {
        let source = match source {
            Self::Regular(buffer) => MemRef::from(buffer),
            Self::HostPtr(buffer) => MemRef::from(buffer),
            Self::External(buffer) => MemRef::from(buffer),
            Self::Svm(source) => {
                return match self {
                    Self::Regular(buffer) => source.copy_into(queue, from, buffer, to, count),
                    Self::HostPtr(buffer) => source.copy_into(queue, from, buffer, to, count),
                    Self::External(buffer) => source.copy_into(queue, from, buffer, to, count),
                    Self::Svm(buffer) => buffer.copy_from_svm(queue, to, source, from, count),
                };
            }
        };
        each!(self, buffer => buffer.copy_from(queue, to, source, from, count))
    }
}

impl<T> Memory<T> {
    pub fn usage(&self) -> &Arc<Usage> {
        match self {
            Self::Regular(buffer) => buffer.object().usage(),
            Self::Svm(buffer) => &buffer.allocation().usage,
            Self::HostPtr(buffer) => buffer.object().usage(),
            Self::External(buffer) => buffer.object().usage(),
        }
    }

    /// Undoes leaked maps; the queues keep what fails. Returns whether the memory is unmapped and
    /// has no other holder.
    pub fn retire(&self) -> bool {
        match self {
            Self::Regular(buffer) => buffer.object().unmap_in_drop(),
            Self::Svm(buffer) => buffer.allocation().unmap_in_drop() && buffer.is_sole_owner(),
            Self::HostPtr(_) | Self::External(_) => false,
        }
    }

    /// The same memory with other elements, which must fit; only for kinds that a pool keeps.
    pub fn retype<U>(self, len: usize) -> Memory<U> {
        match self {
            Self::Regular(buffer) => Memory::Regular(buffer.retype(len)),
            Self::Svm(buffer) => Memory::Svm(buffer.retype(len)),
            Self::HostPtr(_) | Self::External(_) => unreachable!("a pool keeps no such memory"),
        }
    }
}
