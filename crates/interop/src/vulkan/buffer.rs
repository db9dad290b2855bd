//! Vulkan memory that OpenCL and HIP see.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use ash::vk;
use bytemuck::Pod;

use super::memory::Memory;
use crate::{ClGuardMut, HipGuardMut, Result, Shared};

/// A Vulkan buffer that is also a [`Shared`] buffer. Vulkan owns the memory, which lives as long as this value.
///
/// It dereferences to the shared buffer for read-only methods. Vulkan's commands use it in
/// [`Link::enqueue`](super::Link::enqueue), under a guard of the stream.
pub struct Buffer<T: Pod> {
    // Dropped first: it waits for its users.
    shared: Shared<T>,
    memory: Arc<Memory>,
}

impl<T: Pod> Buffer<T> {
    pub(super) fn new(shared: Shared<T>, memory: Arc<Memory>) -> Self {
        Self { shared, memory }
    }

    /// Vulkan's buffer, valid for as long as this value lives.
    #[must_use]
    pub fn raw(&self) -> vk::Buffer {
        self.memory.buffer
    }

    /// Whether the memory was allocated for this buffer alone, as some drivers require for export.
    #[must_use]
    pub fn is_dedicated(&self) -> bool {
        self.memory.dedicated
    }

    /// As [`Shared::cl_mut`].
    ///
    /// # Errors
    /// As there.
    pub fn cl_mut<'a>(&'a mut self, queue: &'a clmgr::Queue) -> Result<ClGuardMut<'a, T>> {
        self.shared.cl_mut(queue)
    }

    /// As [`Shared::hip_mut`].
    ///
    /// # Errors
    /// As there.
    pub fn hip_mut<'a>(&'a mut self, stream: &'a hip::Stream) -> Result<HipGuardMut<'a, T>> {
        self.shared.hip_mut(stream)
    }

    /// As [`Shared::upload`].
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn upload(&mut self, data: &[T]) -> Result<()> {
        self.shared.upload(data)
    }

    /// For the proofs of this crate, which keep the memory where it is.
    pub(super) fn shared_mut(&mut self) -> &mut Shared<T> {
        &mut self.shared
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = Shared<T>;

    fn deref(&self) -> &Shared<T> {
        &self.shared
    }
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("shared", &self.shared)
            .field("dedicated", &self.memory.dedicated)
            .finish()
    }
}
