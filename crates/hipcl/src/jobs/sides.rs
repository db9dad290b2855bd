//! The sides of a job: an OpenCL queue and a HIP stream, or one HIP stream for both. A job writes each OpenCL launch
//! once.
//!
//! | here | on a queue | on the stream |
//! |---|---|---|
//! | [`Kernel`] | `clmgr::Kernel` | `interop::StreamKernel` |
//! | [`Fft`] | `clmgr_fft::Plan` | `interop::StreamFft` |
//! | [`Sides::read`] | `Shared::cl` | `Shared::hip` |
//! | [`Sides::write`] | `Shared::cl_mut` | `Shared::hip_mut` |
//!
//! One `Sides` makes all of a job, so its launches and their arguments are of the same kind.

use bytemuck::Pod;
use clmgr::{Arg, NdRange};
use clmgr_fft::{Direction, Plan};
use interop::{
    Bridge, ClGuard, ClGuardMut, HipGuard, HipGuardMut, Shared, StreamArg, StreamFft, StreamKernel, StreamProgram,
};

use crate::outcome::Kernels;
use crate::timing::ApiName;
use crate::{C32, Result};

const MIXED: &str = "a job's kernels and their arguments are made by one `Sides`";

/// Where a job queues its work.
#[derive(Clone)]
pub(super) struct Sides {
    /// OpenCL's queue; none if its kernels go into the stream.
    pub queue: Option<clmgr::Queue>,
    pub stream: hip::Stream,
}

/// An OpenCL program.
pub(super) enum Program {
    Queue(clmgr::Program),
    Stream(StreamProgram),
}

/// An OpenCL kernel.
pub(super) enum Kernel {
    Queue(clmgr::Kernel),
    Stream(StreamKernel),
}

/// Equal Fourier transforms by OpenCL, in one direction.
pub(super) struct Fft {
    direction: Direction,
    plan: OnSide,
}

enum OnSide {
    Queue(Plan),
    Stream(StreamFft),
}

/// Memory that OpenCL's side may read.
pub(super) enum Reading<'a, T: Pod> {
    Queue(ClGuard<'a, T>),
    Stream(HipGuard<'a, T>),
}

/// Memory that OpenCL's side may read and write.
pub(super) enum Writing<'a, T: Pod> {
    Queue(ClGuardMut<'a, T>),
    Stream(HipGuardMut<'a, T>),
}

/// An argument of an OpenCL kernel: memory, or the bytes of a value.
#[derive(Clone, Copy)]
pub(super) enum KernelArg<'a> {
    Queue(Arg<'a>),
    Stream(StreamArg<'a>),
    Value(&'a [u8]),
}

impl Sides {
    /// A new stream, and a new queue if OpenCL's kernels are for one.
    pub fn new(bridge: &Bridge, kernels: Kernels) -> Result<Self> {
        Ok(Self {
            queue: match kernels {
                Kernels::Queue => Some(bridge.queue()?),
                Kernels::Stream => None,
            },
            stream: bridge.stream()?,
        })
    }

    /// Compiles an OpenCL program; fails where HIP cannot run it, if it is for the stream.
    pub fn program(&self, bridge: &Bridge, source: &str) -> Result<Program> {
        let program = bridge.programs().get(source, "")?;
        Ok(match self.queue {
            Some(_) => Program::Queue(program),
            None => Program::Stream(bridge.stream_program(&program)?),
        })
    }

    /// `batch` transforms of `len` numbers, ready to run: nothing is left to compile or to copy.
    pub fn fft(&self, bridge: &Bridge, len: usize, batch: usize, direction: Direction) -> Result<Fft> {
        let plan = Plan::new(bridge.cl_context(), bridge.programs(), len, batch)?;
        let plan = match self.queue {
            Some(_) => {
                plan.prepare(direction)?;
                OnSide::Queue(plan)
            }
            None => {
                let fft = bridge.stream_fft(&plan)?;
                fft.prepare(direction)?;
                OnSide::Stream(fft)
            }
        };
        Ok(Fft { direction, plan })
    }

    /// Memory for OpenCL's kernels to read.
    pub fn read<'a, T: Pod>(&'a self, memory: &'a Shared<T>) -> Result<Reading<'a, T>> {
        Ok(match &self.queue {
            Some(queue) => Reading::Queue(memory.cl(queue)?),
            None => Reading::Stream(memory.hip(&self.stream)?),
        })
    }

    /// Memory for OpenCL's kernels to read and write.
    pub fn write<'a, T: Pod>(&'a self, memory: &'a mut Shared<T>) -> Result<Writing<'a, T>> {
        Ok(match &self.queue {
            Some(queue) => Writing::Queue(memory.cl_mut(queue)?),
            None => Writing::Stream(memory.hip_mut(&self.stream)?),
        })
    }

    /// Waits for what was queued for `api`.
    pub fn wait(&self, api: ApiName) -> Result<()> {
        match (&self.queue, api) {
            (Some(queue), ApiName::OpenCl) => queue.finish()?,
            _ => self.stream.synchronize()?,
        }
        Ok(())
    }
}

impl Program {
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        Ok(match self {
            Self::Queue(program) => Kernel::Queue(program.kernel(name)?),
            Self::Stream(program) => Kernel::Stream(program.kernel(name)?),
        })
    }
}

impl Kernel {
    /// Queues the kernel.
    ///
    /// # Safety
    /// The kernel takes these arguments, stays inside their memory, and ends.
    pub unsafe fn launch<const N: usize>(&self, sides: &Sides, range: NdRange, args: [KernelArg<'_>; N]) -> Result<()> {
        match (self, &sides.queue) {
            (Self::Queue(kernel), Some(queue)) => {
                // SAFETY: the caller's promise.
                unsafe { kernel.launch(queue, range, &args.map(KernelArg::for_queue)) }?;
            }
            (Self::Stream(kernel), None) => {
                let args = args.map(KernelArg::for_stream);
                // SAFETY: the caller's promise.
                unsafe { kernel.launch(&sides.stream, range, &args) }?;
            }
            _ => unreachable!("{MIXED}"),
        }
        Ok(())
    }
}

impl Fft {
    /// Queues the transform of `data` into `out`.
    ///
    /// # Safety
    /// Both hold as many numbers as the transforms have.
    pub unsafe fn enqueue(&self, sides: &Sides, data: &Reading<'_, C32>, out: &mut Writing<'_, C32>) -> Result<()> {
        let direction = self.direction;
        match (&self.plan, &sides.queue, data, out) {
            (OnSide::Queue(plan), Some(queue), Reading::Queue(data), Writing::Queue(out)) => {
                // SAFETY: the caller's promise; the guards order other users.
                unsafe { plan.enqueue(queue, direction, data.arg(), out.arg()) }?;
            }
            (OnSide::Stream(fft), None, Reading::Stream(data), Writing::Stream(out)) => {
                fft.enqueue(&sides.stream, direction, data.slice(), out.slice_mut())?;
            }
            _ => unreachable!("{MIXED}"),
        }
        Ok(())
    }

    /// Queues the transform of `data` in place.
    ///
    /// # Safety
    /// It holds as many numbers as the transforms have.
    pub unsafe fn enqueue_in_place(&self, sides: &Sides, data: &mut Writing<'_, C32>) -> Result<()> {
        let direction = self.direction;
        match (&self.plan, &sides.queue, data) {
            (OnSide::Queue(plan), Some(queue), Writing::Queue(data)) => {
                // SAFETY: the caller's promise; the guard orders other users.
                unsafe { plan.enqueue(queue, direction, data.arg(), data.arg()) }?;
            }
            (OnSide::Stream(fft), None, Writing::Stream(data)) => {
                fft.enqueue_in_place(&sides.stream, direction, data.slice_mut())?;
            }
            _ => unreachable!("{MIXED}"),
        }
        Ok(())
    }

    /// Memory traffic of the transforms from one memory into another.
    pub fn bytes_moved(&self) -> u64 {
        match &self.plan {
            OnSide::Queue(plan) => plan.bytes_moved(),
            OnSide::Stream(fft) => fft.plan().bytes_moved(),
        }
    }
}

impl<T: Pod> Reading<'_, T> {
    pub fn arg(&self) -> KernelArg<'_> {
        match self {
            Self::Queue(guard) => KernelArg::Queue(guard.arg()),
            Self::Stream(guard) => KernelArg::Stream(guard.arg()),
        }
    }
}

impl<T: Pod> Writing<'_, T> {
    pub fn arg(&mut self) -> KernelArg<'_> {
        match self {
            Self::Queue(guard) => KernelArg::Queue(guard.arg()),
            Self::Stream(guard) => KernelArg::Stream(guard.arg()),
        }
    }
}

impl<'a> KernelArg<'a> {
    pub fn scalar<T: Pod>(value: &'a T) -> Self {
        Self::Value(bytemuck::bytes_of(value))
    }

    fn for_queue(self) -> Arg<'a> {
        match self {
            Self::Queue(arg) => arg,
            Self::Value(bytes) => Arg::Bytes(bytes),
            Self::Stream(_) => unreachable!("{MIXED}"),
        }
    }

    fn for_stream(self) -> StreamArg<'a> {
        match self {
            Self::Stream(arg) => arg,
            Self::Value(bytes) => StreamArg::bytes(bytes),
            Self::Queue(_) => unreachable!("{MIXED}"),
        }
    }
}
