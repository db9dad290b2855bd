use bytemuck::Pod;

use super::Pipeline;
use crate::{Bridge, Result, Shared};

/// One shared buffer with its own queue and stream, so a wait for one block's work does not include another's.
#[derive(Debug)]
pub struct Slot<T: Pod> {
    /// The block's data.
    pub data: Shared<T>,
    /// For the OpenCL part.
    pub queue: clmgr::Queue,
    /// For the HIP part.
    pub stream: hip::Stream,
}

impl Bridge {
    /// `count` slots of `len` elements each, for a [`Pipeline`] whose blocks need one buffer. A
    /// pipeline takes slots of any type.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), or if a queue or stream is refused.
    pub fn slots<T: Pod>(&self, count: usize, len: usize) -> Result<Vec<Slot<T>>> {
        (0..count)
            .map(|_| {
                Ok(Slot {
                    data: self.alloc(len)?,
                    queue: self.queue()?,
                    stream: self.stream()?,
                })
            })
            .collect()
    }

    /// A pipeline of two slots of `len` elements: one is filled while the other is worked on.
    ///
    /// # Errors
    /// As [`slots`](Self::slots).
    pub fn double_buffer<'a, T: Pod + Send, E: Send>(&self, len: usize) -> Result<Pipeline<'a, Slot<T>, E>> {
        Ok(Pipeline::new(self.slots(2, len)?))
    }
}
