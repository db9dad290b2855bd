//! A kernel together with its arguments.

use std::fmt;
use std::sync::Arc;

use super::object::Object;
use super::{Arg, Kernel, NdRange, foreign};
use crate::error::Result;
use crate::event::Event;
use crate::queue::Queue;
use crate::usage::Usage;

/// A kernel with a range and arguments, from [`Kernel::bind`]. It can be enqueued any number of times, by
/// several threads.
///
/// It has its own OpenCL kernel object, so other launches of the kernel do not change its arguments.
pub struct BoundKernel {
    // Before the kernel, as there.
    object: Object,
    kernel: Kernel,
    range: NdRange,
    used: Vec<Arc<Usage>>,
    /// Whether the platform orders such launches only by waiting.
    waits: bool,
}

impl Kernel {
    /// The kernel with this range and these arguments, whose values are copied.
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch), as far as it concerns range and arguments.
    ///
    /// # Safety
    ///
    /// Each handle and pointer is alive now.
    pub unsafe fn bind(&self, range: NdRange, args: &[Arg<'_>]) -> Result<BoundKernel> {
        self.check(range, args)?;
        self.check_objects(args)?;
        let context = self.0.program.context();
        let object = Object::create(&self.0.program, &self.0.name)?;
        let waits = foreign::loses_order(context, args) && !object.take_token(context)?;
        // SAFETY: the caller's promise; no other thread has the object.
        unsafe { self.set(&object, args) }?;
        Ok(BoundKernel {
            kernel: self.clone(),
            object,
            range,
            used: args.iter().filter_map(|arg| self.usage_of(arg)).collect(),
            waits,
        })
    }
}

impl BoundKernel {
    /// Enqueues the kernel without waiting.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`](crate::Error::ContextMismatch) for a queue of another context, or a driver error.
    ///
    /// # Safety
    ///
    /// As [`Kernel::launch`].
    #[doc(alias = "clEnqueueNDRangeKernel")]
    pub unsafe fn enqueue(&self, queue: &Queue) -> Result<Event> {
        self.kernel.check_queue(queue)?;
        if self.waits {
            queue.drain()?;
        }
        let used = self.used.iter().cloned();
        // SAFETY: the arguments were set when this was made and never change; the caller's promise for the rest.
        unsafe { self.kernel.enqueue_object(&self.object, queue, self.range, used) }
    }
}

impl fmt::Debug for BoundKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundKernel")
            .field("kernel", &self.kernel)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

/// It is enqueued from several threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<BoundKernel>();
};
