//! Plans: the choice of a way, its kernels and its tables.

use std::fmt;
use std::sync::Arc;

use clmgr::{Arg, C32, Context, Error, ProgramCache, Queue, Result};
use parking_lot::Mutex;

use crate::Direction;
use crate::error;
use crate::factor::radices;
use crate::memory::Form;
use crate::schedule::{Launch, Operand, Prepared, Schedule, Shape, Stages};
use crate::scratch::{self, Scratches, grown};
use crate::steps::Maker;
use crate::tuning::Tuning;
use crate::way::{Way, choose, suits};

/// The transform of `batch` rows of `len` complex numbers, one row behind the other.
///
/// Several threads and queues may use a plan at the same time. Clones share the plan.
#[derive(Clone)]
pub struct Plan(Arc<Inner>);

struct Inner {
    context: Context,
    programs: ProgramCache,
    len: usize,
    batch: usize,
    way: Way,
    tuning: Tuning,
    forward: Mutex<Option<Arc<Prepared>>>,
    inverse: Mutex<Option<Arc<Prepared>>>,
    scratch: Scratches,
}

/// The memory of one transform.
#[derive(Clone, Copy)]
struct Places<'a> {
    form: Form,
    data: Arg<'a>,
    out: Arg<'a>,
}

impl Plan {
    /// Plans `batch` transforms of length `len`, in the way that suits the device.
    ///
    /// The kernels of a direction are compiled on its first use; [`prepare`](Self::prepare) does so
    /// earlier.
    ///
    /// # Errors
    ///
    /// [`Length`](crate::Error::Length) with the factor if `len` has one other than 2, 3 and 5;
    /// [`Error::Zero`]; [`Error::TooLarge`] if the data does not fit into the address space;
    /// [`Error::ContextMismatch`] if the cache is of another context.
    pub fn new(context: &Context, programs: &ProgramCache, len: usize, batch: usize) -> error::Result<Self> {
        radices(len, 8)?;
        Self::with_way(context, programs, len, batch, choose(context, len))
    }

    /// As [`new`](Self::new), in this way.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and [`Error::NotSupported`] if the way does not take this length on
    /// this device.
    pub fn with_way(
        context: &Context,
        programs: &ProgramCache,
        len: usize,
        batch: usize,
        way: Way,
    ) -> error::Result<Self> {
        Self::with_tuning(context, programs, len, batch, way, Tuning::default())
    }

    /// As [`with_way`](Self::with_way), with another shape of the work-groups than the rule's.
    ///
    /// # Errors
    ///
    /// As [`with_way`](Self::with_way); [`Error::NotSupported`] too if the device does not take
    /// such work-groups.
    pub fn with_tuning(
        context: &Context,
        programs: &ProgramCache,
        len: usize,
        batch: usize,
        way: Way,
        tuning: Tuning,
    ) -> error::Result<Self> {
        radices(len, 8)?;
        if batch == 0 {
            return Err(Error::Zero {
                what: "the number of transforms",
            }
            .into());
        }
        if programs.context() != context {
            return Err(Error::ContextMismatch {
                what: "the program cache",
            }
            .into());
        }
        let all = len.checked_mul(batch);
        let bytes = all.and_then(|all| all.checked_mul(size_of::<C32>()));
        if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(too_large(
                "the data of an FFT",
                format!("{len} x {batch} complex numbers"),
                isize::MAX as u64,
            ));
        }
        if u32::try_from(len).is_err() {
            return Err(too_large("the length of an FFT", len.to_string(), u32::MAX.into()));
        }
        if let Err(reason) = suits(context, len, way, &tuning) {
            return Err(Error::NotSupported {
                what: format!("an FFT of length {len} by {way}"),
                device: context.device().name().to_owned(),
                reason,
            }
            .into());
        }
        Ok(Self(Arc::new(Inner {
            context: context.clone(),
            programs: programs.clone(),
            len,
            batch,
            way,
            tuning,
            forward: Mutex::default(),
            inverse: Mutex::default(),
            scratch: Scratches::default(),
        })))
    }

    /// Compiles the kernels and makes the tables of a direction, if not yet done.
    ///
    /// # Errors
    ///
    /// As [`Program::build`](clmgr::Program::build).
    pub fn prepare(&self, direction: Direction) -> Result<()> {
        self.prepared(direction).map(drop)
    }

    /// Enqueues the transform of `data` into `out`; the same argument for both transforms in place. It does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`] unless both arguments are buffers or both are SVM pointers;
    /// [`Error::ContextMismatch`] for a queue of another context; an error from building or launching.
    ///
    /// # Safety
    ///
    /// Both arguments are alive, and stay alive as [`Kernel::launch`](clmgr::Kernel::launch) says. Each holds
    /// `len * batch` complex numbers in single precision. They are the same, or do not overlap.
    /// Until the transform has ended, nothing else writes either of them, and nothing else reads
    /// `out`.
    pub unsafe fn enqueue(&self, queue: &Queue, direction: Direction, data: Arg<'_>, out: Arg<'_>) -> Result<()> {
        let inner = &*self.0;
        if queue.context() != &inner.context {
            return Err(Error::ContextMismatch { what: "the queue" });
        }
        let (form, in_place) = match (data, out) {
            (Arg::Mem(a), Arg::Mem(b)) => (Form::Object, a == b),
            (Arg::Svm(a), Arg::Svm(b)) => (Form::Svm, a == b),
            _ => {
                return Err(Error::Launch {
                    kernel: "fft".to_owned(),
                    reason: "data and out must both be buffers or both be SVM pointers".to_owned(),
                });
            }
        };
        let prepared = self.prepared(direction)?;
        let stages = prepared.stages(in_place);
        let places = Places { form, data, out };
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_stages(queue, &prepared, stages, places) }
    }

    /// # Safety
    ///
    /// As [`enqueue`](Self::enqueue).
    unsafe fn enqueue_stages(
        &self,
        queue: &Queue,
        prepared: &Prepared,
        stages: &Stages,
        places: Places<'_>,
    ) -> Result<()> {
        let inner = &*self.0;
        let scratch = (stages.scratch > 0).then(|| inner.scratch.of(queue));
        let mut scratch = scratch.as_ref().map(|scratch| scratch.0.lock());
        let scratch = match &mut scratch {
            Some(kept) => Some(grown(kept, &inner.context, stages.scratch)?),
            None => None,
        };
        let Places { form, data, out } = places;
        for stage in &stages.list {
            let arg = |operand: &'_ Operand| match (operand, scratch) {
                (Operand::Data, _) => data,
                (Operand::Scratch, Some(memory)) => memory.arg(form),
                (Operand::Out | Operand::Scratch, _) => out,
                (Operand::Table(index), _) => prepared.tables[*index].arg(form),
                (Operand::Number(_), _) => unreachable!("a scalar is not memory"),
            };
            let args: Vec<Arg<'_>> = stage
                .operands
                .iter()
                .map(|operand| match operand {
                    Operand::Number(number) => Arg::scalar(number),
                    memory => arg(memory),
                })
                .collect();
            let kernel = &prepared.kernels[stage.kernel];
            // SAFETY: the caller's promise; the kernel stays within its rows of data, out and scratch memory.
            unsafe { kernel.launch(queue, stage.range, &args) }?;
        }
        Ok(())
    }

    /// The launches of a transform, for code that launches OpenCL kernels itself, on a HIP stream for example.
    ///
    /// # Errors
    ///
    /// As [`prepare`](Self::prepare), or an error from reading the tables.
    pub fn schedule(&self, direction: Direction, in_place: bool) -> Result<Schedule> {
        let prepared = self.prepared(direction)?;
        let queue = self.0.context.queue()?;
        let stages = prepared.stages(in_place);
        let tables = prepared.tables.iter();
        Ok(Schedule {
            launches: stages
                .list
                .iter()
                .map(|stage| Launch {
                    kernel: prepared.kernels[stage.kernel].clone(),
                    range: stage.range,
                    operands: stage.operands.clone(),
                })
                .collect(),
            tables: tables.map(|table| table.read(&queue)).collect::<Result<_>>()?,
            scratch: stages.scratch,
        })
    }

    /// The least memory traffic of the transform in bytes: each number read once and written once.
    #[must_use]
    pub fn bytes_moved(&self) -> u64 {
        2 * (self.0.len * self.0.batch * size_of::<C32>()) as u64
    }

    /// How often the data is read and written: the number of kernels, one behind the other.
    #[must_use]
    pub fn passes(&self) -> usize {
        match self.0.way {
            Way::Rows | Way::Columns | Way::Local | Way::Registers => 1,
            Way::Split { .. } | Way::Stages { .. } => 2,
            Way::Passes => radices(self.0.len, 16).map_or(1, |radices| radices.len()),
        }
    }

    /// The compiler's log for the kernels of a direction, which are compiled if not yet done: one text for each kernel.
    ///
    /// # Errors
    ///
    /// As [`prepare`](Self::prepare) and [`Program::build_log`](clmgr::Program::build_log).
    pub fn build_logs(&self, direction: Direction) -> Result<Vec<String>> {
        let prepared = self.prepared(direction)?;
        let logs = prepared.kernels.iter();
        logs.map(|kernel| kernel.program().build_log()).collect()
    }

    /// The context of its memory and kernels.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The length of a transform.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// The number of transforms.
    #[must_use]
    pub fn batch(&self) -> usize {
        self.0.batch
    }

    /// The way in which the plan transforms.
    #[must_use]
    pub fn way(&self) -> Way {
        self.0.way
    }

    fn prepared(&self, direction: Direction) -> Result<Arc<Prepared>> {
        let inner = &*self.0;
        let place = match direction {
            Direction::Forward => &inner.forward,
            Direction::Inverse => &inner.inverse,
        };
        let mut kept = place.lock();
        if let Some(prepared) = &*kept {
            return Ok(prepared.clone());
        }
        let steps = Maker {
            context: &inner.context,
            programs: &inner.programs,
            len: inner.len,
            batch: inner.batch,
            tuning: &inner.tuning,
        }
        .make(inner.way, direction)?;
        let shape = Shape {
            way: inner.way,
            len: inner.len,
            batch: inner.batch,
            scratch: scratch::bytes(&inner.context),
        };
        let prepared = Arc::new(Prepared::new(steps, shape));
        *kept = Some(prepared.clone());
        Ok(prepared)
    }
}

fn too_large(what: &'static str, got: String, limit: u64) -> error::Error {
    Error::TooLarge { what, got, limit }.into()
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("len", &self.0.len)
            .field("batch", &self.0.batch)
            .field("way", &self.0.way)
            .finish_non_exhaustive()
    }
}
