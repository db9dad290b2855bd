//! One buffer type over all kinds of memory, of which a policy chooses one.

mod memory;
mod policy;

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
pub(crate) use memory::Memory;
use memory::each;
use opencl_sys::cl_mem;
pub use policy::{BufferChoice, BufferPolicy, BufferRule, BufferStrategy};

use crate::buffer::{ClMap, ClMapMut, Pending, SvmMap, SvmMapMut};
#[allow(unused_imports, reason = "the documentation names them")]
use crate::buffer::{HostPtrBuffer, RegularBuffer, SvmBuffer};
use crate::context::Context;
use crate::error::{Error, Result, bytes_of};
use crate::event::Event;
use crate::external::ExternalBuffer;
use crate::kernel::Arg;
use crate::queue::Queue;

/// A request to a [`BufferFactory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BufferRequest {
    /// What the factory's policy chooses for the size.
    #[default]
    Best,
    /// This kind and no other; refused if the device lacks it.
    Exactly(BufferStrategy),
}

/// Makes buffers of one context by a [`BufferPolicy`] and explains why it chose their kind.
#[derive(Clone, Debug)]
pub struct BufferFactory {
    context: Context,
    policy: BufferPolicy,
}

impl BufferFactory {
    /// A factory for buffers of `context`, with the policy [`BufferPolicy::for_kernels`].
    #[must_use]
    pub fn new(context: &Context) -> Self {
        Self::with_policy(context, BufferPolicy::default())
    }

    /// A factory for buffers of `context`, with this policy.
    #[must_use]
    pub fn with_policy(context: &Context, policy: BufferPolicy) -> Self {
        Self {
            context: context.clone(),
            policy,
        }
    }

    /// A buffer of `len` elements.
    ///
    /// # Errors
    ///
    /// As [`choose`](Self::choose) and the constructors of the kinds; nothing else is tried if the
    /// chosen kind is refused.
    pub fn alloc<T: Pod>(&self, len: usize, request: BufferRequest) -> Result<Buffer<T>> {
        let choice = self.choose(request, bytes_of::<T>("the length of a buffer", len)?)?;
        Ok(Buffer {
            memory: Memory::allocate(&self.context, choice.strategy, len)?,
            strategy: choice.strategy,
            reason: choice.reason.into(),
        })
    }

    /// A foreign buffer as one of this factory's.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`] if it is not of the factory's context.
    pub fn adopt<T: Pod>(&self, buffer: ExternalBuffer<T>) -> Result<Buffer<T>> {
        if buffer.context() != &self.context {
            return Err(Error::ContextMismatch {
                what: "the foreign buffer",
            });
        }
        let reason = format!("adopted, {} bytes, {}", buffer.bytes(), buffer.access());
        Ok(Buffer {
            memory: Memory::External(buffer),
            strategy: BufferStrategy::External,
            reason: reason.into(),
        })
    }

    /// The kind of memory that a request for this size leads to on this device, and why.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] with each rule's reason if no rule of the policy serves the size
    /// here.
    pub fn choose(&self, request: BufferRequest, bytes: usize) -> Result<BufferChoice> {
        match request {
            BufferRequest::Exactly(strategy) => Ok(BufferChoice {
                strategy,
                reason: "requested by the caller".to_owned(),
            }),
            BufferRequest::Best => self.policy.choose(&self.context, bytes),
        }
    }

    /// What [`choose`](Self::choose) would return, or why it would refuse, in one line.
    #[must_use]
    pub fn explain(&self, request: BufferRequest, bytes: usize) -> String {
        match self.choose(request, bytes) {
            Ok(choice) => choice.to_string(),
            Err(error) => format!("refused: {error}"),
        }
    }

    /// The factory's policy.
    #[must_use]
    pub fn policy(&self) -> &BufferPolicy {
        &self.policy
    }
}

/// A buffer of any kind.
pub struct Buffer<T> {
    memory: Memory<T>,
    strategy: BufferStrategy,
    reason: Cow<'static, str>,
}

impl<T: Pod> Buffer<T> {
    /// Copies the whole buffer into `out`, which has its length, and waits.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::read`].
    pub fn read(&self, queue: &Queue, out: &mut [T]) -> Result<()> {
        each!(&self.memory, buffer => buffer.read(queue, out))
    }

    /// Copies `data`, which has the buffer's length, into the buffer, and waits.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::write`].
    pub fn write(&mut self, queue: &Queue, data: &[T]) -> Result<()> {
        each!(&mut self.memory, buffer => buffer.write(queue, data))
    }

    /// Copies the elements from `offset` on into `out`, and waits.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::read_at`].
    pub fn read_at(&self, queue: &Queue, offset: usize, out: &mut [T]) -> Result<()> {
        each!(&self.memory, buffer => buffer.read_at(queue, offset, out))
    }

    /// Copies `data` into the buffer from `offset` on, and waits.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::write_at`].
    pub fn write_at(&mut self, queue: &Queue, offset: usize, data: &[T]) -> Result<()> {
        each!(&mut self.memory, buffer => buffer.write_at(queue, offset, data))
    }

    /// Enqueues a copy of the elements from `offset` on into `out`, as many as it holds, and returns `out` when the
    /// copy has ended.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::read_async`].
    pub fn read_async(&self, queue: &Queue, offset: usize, out: Vec<T>) -> Result<Pending<T>> {
        each!(&self.memory, buffer => buffer.read_async(queue, offset, out))
    }

    /// Enqueues a copy of `data` into the buffer from `offset` on, and returns `data` when the copy has ended.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::write_async`].
    pub fn write_async(&mut self, queue: &Queue, offset: usize, data: Vec<T>) -> Result<Pending<T>> {
        each!(&mut self.memory, buffer => buffer.write_async(queue, offset, data))
    }

    /// Enqueues a write of `value` to `count` elements from `offset` on.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::fill`].
    pub fn fill(&mut self, queue: &Queue, offset: usize, count: usize, value: T) -> Result<Event> {
        each!(&mut self.memory, buffer => buffer.fill(queue, offset, count, value))
    }

    /// Enqueues a copy of `count` elements of `source` from `from` on, to `to` in this buffer, whatever the kinds of
    /// the two.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::copy_from`]; where shared virtual memory takes part, as [`SvmBuffer::copy_from`],
    /// [`SvmBuffer::copy_into`] or [`SvmBuffer::copy_from_svm`].
    pub fn copy_from(
        &mut self,
        queue: &Queue,
        to: usize,
        source: &Buffer<T>,
        from: usize,
        count: usize,
    ) -> Result<Event> {
        self.memory.copy_from(queue, to, &source.memory, from, count)
    }

    /// Records that a command that uses the buffer was enqueued on `queue` through raw handles, so a read on another
    /// queue, or the buffer's drop, waits for it.
    pub fn note_use(&self, queue: &Queue) {
        each!(&self.memory, buffer => buffer.note_use(queue));
    }

    /// Maps the buffer for the host to read.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::map`].
    pub fn map(&self, queue: &Queue) -> Result<MapGuard<'_, T>> {
        Ok(match &self.memory {
            Memory::Regular(buffer) => MapGuard::Object(buffer.map(queue)?),
            Memory::HostPtr(buffer) => MapGuard::Object(buffer.map(queue)?),
            Memory::External(buffer) => MapGuard::Object(buffer.map(queue)?),
            Memory::Svm(buffer) => MapGuard::Svm(buffer.map(queue)?),
        })
    }

    /// Maps the buffer for the host to read and write.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::map_mut`].
    pub fn map_mut(&mut self, queue: &Queue) -> Result<MapGuardMut<'_, T>> {
        Ok(match &mut self.memory {
            Memory::Regular(buffer) => MapGuardMut::Object(buffer.map_mut(queue)?),
            Memory::HostPtr(buffer) => MapGuardMut::Object(buffer.map_mut(queue)?),
            Memory::External(buffer) => MapGuardMut::Object(buffer.map_mut(queue)?),
            Memory::Svm(buffer) => MapGuardMut::Svm(buffer.map_mut(queue)?),
        })
    }
}

impl<T> Buffer<T> {
    pub(crate) fn from_parts(memory: Memory<T>, strategy: BufferStrategy, reason: Cow<'static, str>) -> Self {
        Self {
            memory,
            strategy,
            reason,
        }
    }

    pub(crate) fn memory(&self) -> &Memory<T> {
        &self.memory
    }

    pub(crate) fn into_memory(self) -> Memory<T> {
        self.memory
    }

    /// The number of elements; never zero.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        each!(&self.memory, buffer => buffer.len())
    }

    /// The buffer as a kernel's argument.
    #[must_use]
    pub fn arg(&self) -> Arg<'_> {
        each!(&self.memory, buffer => buffer.arg())
    }

    /// The handle of the buffer object, valid for as long as the buffer lives; `None` for shared virtual memory.
    #[must_use]
    pub fn raw(&self) -> Option<cl_mem> {
        match self.arg() {
            Arg::Mem(raw) => Some(raw),
            _ => None,
        }
    }

    /// The address of shared virtual memory, for host and device; `None` for a buffer object. The host may use it only
    /// as [`SvmBuffer::grain`] allows.
    #[must_use]
    pub fn as_ptr(&self) -> Option<*mut T> {
        match &self.memory {
            Memory::Svm(buffer) => Some(buffer.as_ptr()),
            _ => None,
        }
    }

    /// The size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        each!(&self.memory, buffer => buffer.bytes())
    }

    /// The buffer's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        each!(&self.memory, buffer => buffer.context())
    }

    /// The kind of memory.
    #[must_use]
    pub fn strategy(&self) -> BufferStrategy {
        self.strategy
    }

    /// The kind of memory and why it was chosen, in one line.
    #[must_use]
    pub fn explain(&self) -> String {
        format!("{}: {}", self.strategy, self.reason)
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len())
            .field("strategy", &self.strategy)
            .finish_non_exhaustive()
    }
}

/// A [`Buffer`] mapped for the host to read.
#[derive(Debug)]
#[non_exhaustive]
pub enum MapGuard<'a, T: Pod> {
    /// Of a buffer object.
    Object(ClMap<'a, T>),
    /// Of shared virtual memory.
    Svm(SvmMap<'a, T>),
}

/// A [`Buffer`] mapped for the host to read and write.
#[derive(Debug)]
#[non_exhaustive]
pub enum MapGuardMut<'a, T: Pod> {
    /// Of a buffer object.
    Object(ClMapMut<'a, T>),
    /// Of shared virtual memory.
    Svm(SvmMapMut<'a, T>),
}

impl<T: Pod> Deref for MapGuard<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Object(map) => map,
            Self::Svm(map) => map,
        }
    }
}

impl<T: Pod> Deref for MapGuardMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Object(map) => map,
            Self::Svm(map) => map,
        }
    }
}

impl<T: Pod> DerefMut for MapGuardMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Object(map) => map,
            Self::Svm(map) => map,
        }
    }
}
