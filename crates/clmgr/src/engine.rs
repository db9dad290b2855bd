//! Everything for one device in one value.

use std::fs;
use std::path::Path;

use bytemuck::Pod;
use opencl_sys::cl_mem;

use crate::cache::ProgramCache;
use crate::context::Context;
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::external::{ExternalBuffer, ExternalContexts, Needs};
use crate::factory::{Buffer, BufferFactory, BufferPolicy, BufferRequest, BufferStrategy};
use crate::kernel::Kernel;
use crate::manager::Manager;
use crate::pool::{CommandQueuePool, QueueLease};
use crate::program::Program;
use crate::queue::Queue;

/// A context with its queues, programs and buffers. A clone is cheap and shares them.
///
/// Each part is a type of its own, and the accessors return it.
///
/// | part | accessor | at first |
/// |---|---|---|
/// | [`Context`] | [`context`](Self::context) | a new one of the device |
/// | [`CommandQueuePool`] | [`queues`](Self::queues) | [`QUEUES`](Self::QUEUES) queues, created on demand |
/// | [`ProgramCache`] | [`programs`](Self::programs) | in the user's cache folder, see [`ProgramCache::open`] |
/// | [`BufferFactory`] | [`buffers`](Self::buffers) | [`BufferPolicy::for_kernels`] |
/// | [`ExternalContexts`] | [`external`](Self::external) | for objects that other code created |
///
/// ```
/// use clmgr::{Arg, Engine, NdRange};
///
/// # fn main() -> clmgr::Result<()> {
/// let engine = Engine::open()?;
/// let queue = engine.queue()?;
/// let scale = engine.kernel("kernel void scale(global float *x, float by) { x[get_global_id(0)] *= by; }", "scale")?;
/// let data = engine.alloc_from(&queue, &[2.0f32; 1000])?;
/// // SAFETY: the kernel touches the 1000 elements of `data`, which nothing else uses.
/// unsafe { scale.launch(&queue, NdRange::d1(data.len()), &[data.arg(), Arg::scalar(&1.5f32)])? };
/// assert!(data.map(&queue)?.iter().all(|&x| x == 3.0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Engine {
    queues: CommandQueuePool,
    programs: ProgramCache,
    buffers: BufferFactory,
    external: ExternalContexts,
    context: Context,
}

impl Engine {
    /// Queues of an engine: as many as ROCm runs at once (`GPU_MAX_HW_QUEUES`).
    pub const QUEUES: usize = 4;

    /// An engine on the first GPU, or on the first device if there is no GPU.
    ///
    /// # Errors
    ///
    /// As [`Manager::load`] and [`new`](Self::new).
    pub fn open() -> Result<Self> {
        let manager = Manager::load()?;
        let mut devices = manager.devices();
        let gpu = devices.iter().position(|device| device.kind() == DeviceKind::Gpu);
        // a manager has one device at least
        let device = devices.swap_remove(gpu.unwrap_or(0));
        Self::new(&manager, &device)
    }

    /// An engine in a new context of `device`.
    ///
    /// # Errors
    ///
    /// An error from `clCreateContext`.
    pub fn new(manager: &Manager, device: &Device) -> Result<Self> {
        Self::within(manager, &Context::new(device)?)
    }

    /// An engine in a context that already exists, for instance one from [`ExternalContexts::context`].
    ///
    /// # Errors
    ///
    /// As [`CommandQueuePool::new`]: none with [`QUEUES`](Self::QUEUES), and queues are created on demand.
    pub fn within(manager: &Manager, context: &Context) -> Result<Self> {
        Ok(Self {
            queues: CommandQueuePool::new(context, Self::QUEUES)?,
            programs: ProgramCache::open(context),
            buffers: BufferFactory::new(context),
            external: manager.external(context.device()),
            context: context.clone(),
        })
    }

    /// The same engine, with a new pool of at most `cap` queues.
    ///
    /// # Errors
    ///
    /// [`Error::Zero`] if `cap` is zero.
    pub fn with_queues(mut self, cap: usize) -> Result<Self> {
        self.queues = CommandQueuePool::new(&self.context, cap)?;
        Ok(self)
    }

    /// The same engine, whose buffers follow `policy`.
    #[must_use]
    pub fn with_policy(mut self, policy: BufferPolicy) -> Self {
        self.buffers = BufferFactory::with_policy(&self.context, policy);
        self
    }

    /// The same engine, with these programs.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`] if they are of another context.
    pub fn with_programs(mut self, programs: ProgramCache) -> Result<Self> {
        if programs.context() != &self.context {
            return Err(Error::ContextMismatch {
                what: "the program cache",
            });
        }
        self.programs = programs;
        Ok(self)
    }

    /// A queue for this caller alone, until the lease is dropped; see [`CommandQueuePool::lease`].
    ///
    /// # Errors
    ///
    /// An error from creating a queue.
    pub fn queue(&self) -> Result<QueueLease> {
        self.queues.lease()
    }

    /// The program of this source and these options, compiled only if it is not cached.
    ///
    /// # Errors
    ///
    /// As [`ProgramCache::get`].
    pub fn program(&self, source: &str, options: &str) -> Result<Program> {
        self.programs.get(source, options)
    }

    /// The program of the source in a file, compiled only if it is not cached. The compiler searches the folders that
    /// `options` names for what the file includes, not the file's own.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read or is no text; [`Program::from_file`] also loads binaries and SPIR-V.
    /// Otherwise as [`ProgramCache::get`].
    pub fn program_file(&self, path: &Path, options: &str) -> Result<Program> {
        let failed = |reason: String| Error::File {
            path: path.to_owned(),
            reason,
        };
        let content = fs::read(path).map_err(|error| failed(error.to_string()))?;
        let source = String::from_utf8(content).map_err(|_| {
            failed("it is not UTF-8 text; load a binary or SPIR-V with `Program::from_file`".to_owned())
        })?;
        self.program(&source, options)
    }

    /// A kernel of this source, compiled only if it is not cached.
    ///
    /// # Errors
    ///
    /// As [`ProgramCache::get`] and [`Program::kernel`].
    pub fn kernel(&self, source: &str, name: &str) -> Result<Kernel> {
        self.program(source, "")?.kernel(name)
    }

    /// A buffer of `len` elements, of the kind that the engine's policy chooses.
    ///
    /// # Errors
    ///
    /// As [`BufferFactory::alloc`].
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        self.buffers.alloc(len, BufferRequest::Best)
    }

    /// A buffer of `len` elements, of this kind and no other.
    ///
    /// # Errors
    ///
    /// As [`BufferFactory::alloc`].
    pub fn alloc_as<T: Pod>(&self, strategy: BufferStrategy, len: usize) -> Result<Buffer<T>> {
        self.buffers.alloc(len, BufferRequest::Exactly(strategy))
    }

    /// A buffer that holds `data`, of the kind that the engine's policy chooses.
    ///
    /// # Errors
    ///
    /// As [`BufferFactory::alloc`] and [`Buffer::write`].
    pub fn alloc_from<T: Pod>(&self, queue: &Queue, data: &[T]) -> Result<Buffer<T>> {
        let mut buffer = self.alloc(data.len())?;
        buffer.write(queue, data)?;
        Ok(buffer)
    }

    /// A buffer of the engine's context that other code created.
    ///
    /// # Errors
    ///
    /// As [`ExternalBuffer::wrap`] and [`BufferFactory::adopt`].
    ///
    /// # Safety
    ///
    /// As [`ExternalBuffer::wrap`].
    pub unsafe fn adopt<T: Pod>(&self, raw: cl_mem, needs: Needs) -> Result<Buffer<T>> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { ExternalBuffer::wrap(&self.external, raw, needs) }?;
        self.buffers.adopt(buffer)
    }

    /// The engine's device.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.context.device()
    }

    /// The engine's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The engine's queues.
    #[must_use]
    pub fn queues(&self) -> &CommandQueuePool {
        &self.queues
    }

    /// The engine's programs.
    #[must_use]
    pub fn programs(&self) -> &ProgramCache {
        &self.programs
    }

    /// The maker of the engine's buffers.
    #[must_use]
    pub fn buffers(&self) -> &BufferFactory {
        &self.buffers
    }

    /// The foreign objects of the device's library.
    #[must_use]
    pub fn external(&self) -> &ExternalContexts {
        &self.external
    }
}
