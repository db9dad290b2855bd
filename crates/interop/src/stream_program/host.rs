//! The host platform: OpenCL's own CPU runtime runs the kernel when the stream gets there.

use std::sync::Arc;

use clmgr::{Kernel, NdRange};
use parking_lot::Mutex;
use platform::{ForeignHooks, ForeignKernel};

use super::arg::StreamArg;
use crate::{Error, Result};

/// How kernels of one context are launched.
#[derive(Clone)]
pub(super) struct Host {
    hooks: ForeignHooks,
    queues: Arc<Queues>,
}

/// Queues that no stream uses now: each run of a kernel takes one for itself, so streams do not wait for each other.
struct Queues {
    context: clmgr::Context,
    idle: Mutex<Vec<clmgr::Queue>>,
}

impl Queues {
    /// Enqueues by `enqueue` and waits.
    fn run(&self, enqueue: impl FnOnce(&clmgr::Queue) -> clmgr::Result<clmgr::Event>) -> clmgr::Result<()> {
        let idle = self.idle.lock().pop();
        let queue = idle.map_or_else(|| self.context.queue(), Ok)?;
        enqueue(&queue)?.wait()?;
        self.idle.lock().push(queue);
        Ok(())
    }
}

impl Host {
    pub(super) fn new(hooks: ForeignHooks, context: &clmgr::Context) -> Self {
        Self {
            hooks,
            queues: Arc::new(Queues {
                context: context.clone(),
                idle: Mutex::default(),
            }),
        }
    }

    /// # Safety
    /// As [`StreamKernel::launch`](super::StreamKernel::launch), after its checks.
    pub(super) unsafe fn launch(
        &self,
        kernel: &Kernel,
        stream: &hip::Stream,
        range: NdRange,
        args: &[StreamArg<'_>],
    ) -> Result<()> {
        let pointers: Vec<usize> = args.iter().filter_map(StreamArg::address).collect();
        let for_queue: Vec<_> = args.iter().map(StreamArg::for_queue).collect();
        // SAFETY: the caller's promise.
        let bound = unsafe { kernel.bind(range, &for_queue) }?;
        let queues = Arc::clone(&self.queues);
        let run: ForeignKernel = Arc::new(move || {
            // SAFETY: the caller's promise. The stream runs the kernel at its place in the order, and waits for it.
            let ran = queues.run(|queue| unsafe { bound.enqueue(queue) });
            ran.map_err(|error| error.to_string())
        });
        // SAFETY: the kernel touches only the memory of its arguments, and the stream's handle is not kept.
        let queued = unsafe {
            stream.queue_by_handle("hipModuleLaunchKernel(an OpenCL kernel)", |raw| {
                (self.hooks.launch)(raw, run, &pointers)
            })
        };
        queued.map_err(Error::Hip)
    }
}
