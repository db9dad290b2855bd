//! Plans: the choice of a way, its kernels and its tables.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Direction;
use super::factor::radices;
use super::memory::Form;
use super::route::{Place, Route};
use super::scratch::{self, Scratches, grown};
use super::steps::{Maker, Steps};
use super::tuning::Tuning;
use super::way::{Way, choose, suits};
use crate::C32;
use crate::cache::ProgramCache;
use crate::context::Context;
use crate::error::{Error, Result, bytes_of};
use crate::kernel::Arg;
use crate::queue::Queue;

/// The transform of `batch` rows of `len` complex numbers, one row behind the other.
///
/// A plan may be used from several threads and on several queues at once. A clone is the same plan.
#[derive(Clone)]
pub struct Plan(Arc<Inner>);

struct Inner {
    context: Context,
    programs: ProgramCache,
    len: usize,
    batch: usize,
    way: Way,
    tuning: Tuning,
    forward: Mutex<Option<Arc<Steps>>>,
    inverse: Mutex<Option<Arc<Steps>>>,
    scratch: Scratches,
}
impl Plan {
    /// Plans `batch` transforms of length `len`, in the way that suits the device.
    ///
    /// The kernels of a direction are compiled on its first use; [`prepare`](Self::prepare) does so
    /// earlier.
    ///
    /// # Errors
    ///
    /// [`Error::FftFactor`] with the factor if `len` has one other than 2, 3 and 5;
    /// [`Error::Zero`]; [`Error::TooLarge`] if the data does not fit into the address space;
    /// [`Error::ContextMismatch`] if the cache is of another context.
    pub fn new(
        context: &Context,
        programs: &ProgramCache,
        len: usize,
        batch: usize,
    ) -> Result<Self> {
        radices(len, 8)?;
        Self::with_way(context, programs, len, batch, choose(context, len))
    }

    /// As [`new`](Self::new), in a given way.
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
    ) -> Result<Self> {
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
    ) -> Result<Self> {
        radices(len, 8)?;
        if batch == 0 {
            return Err(Error::Zero {
                what: "the number of transforms",
            });
        }
        if programs.context() != context {
            return Err(Error::ContextMismatch {
                what: "the program cache",
            });
        }
        let all = len.checked_mul(batch).ok_or(Error::TooLarge {
            what: "the data of an FFT",
            got: format!("{len} x {batch} complex numbers"),
            limit: isize::MAX as u64,
        })?;
        bytes_of::<C32>("the data of an FFT", all)?;
        if u32::try_from(len).is_err() {
            return Err(Error::TooLarge {
                what: "the length of an FFT",
                got: len.to_string(),
                limit: u32::MAX.into(),
            });
        }
        if let Err(reason) = suits(context, len, way, &tuning) {
            return Err(Error::NotSupported {
                what: format!("an FFT of length {len} by {way}"),
                device: context.device().name().to_owned(),
                reason,
            });
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

    /// Compiles the kernels and makes the tables of a direction, if that was not done yet.
    ///
    /// # Errors
    ///
    /// As [`Program::build`](crate::Program::build).
    pub fn prepare(&self, direction: Direction) -> Result<()> {
        self.steps(direction).map(drop)
    }

    /// Enqueues the transform of `data` into `out`; the same argument for both transforms in place.
    /// It returns at once.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`] unless both arguments are buffers or both are SVM pointers;
    /// [`Error::ContextMismatch`] for a queue of another context; what building and launching
    /// answer.
    ///
    /// # Safety
    ///
    /// Both arguments are alive, and stay alive as [`Kernel::launch`](crate::Kernel::launch) says. Each holds
    /// `len * batch` complex numbers in single precision. They are the same, or do not overlap.
    /// Until the transform has ended, nothing else writes either of them, and nothing else reads
    /// `out`.
    pub unsafe fn enqueue(
        &self,
        queue: &Queue,
        direction: Direction,
        data: Arg<'_>,
        out: Arg<'_>,
    ) -> Result<()> {
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
        let steps = self.steps(direction)?;
        let batch = inner.batch as u64;
        match inner.way {
            Way::Rows | Way::Columns | Way::Local | Way::Registers => {
                let mut args = vec![data, out];
                args.extend(steps.tables[0].iter().map(|table| table.arg(form)));
                args.push(Arg::scalar(&batch));
                // SAFETY: the caller's promise; the kernel stays within `batch` rows.
                unsafe { steps.kernels[0].launch(queue, steps.ranges[0], &args) }?;
                Ok(())
            }
            Way::Split { .. } | Way::Stages { .. } | Way::Passes => {
                // SAFETY: the caller's promise.
                unsafe { self.enqueue_steps(queue, &steps, form, data, out, in_place) }
            }
        }
    }

    /// Enqueues several kernels that hand the data on, a chunk of the batch at a time.
    ///
    /// # Safety
    ///
    /// As [`enqueue`](Self::enqueue).
    unsafe fn enqueue_steps(
        &self,
        queue: &Queue,
        steps: &Steps,
        form: Form,
        data: Arg<'_>,
        out: Arg<'_>,
        in_place: bool,
    ) -> Result<()> {
        let inner = &*self.0;
        let count = steps.kernels.len();
        let route = Route::of(inner.way, count, in_place);
        let chunk = if route.scratches == 0 {
            inner.batch
        } else {
            let bytes = inner.len * size_of::<C32>() * route.scratches;
            (scratch::bytes(&inner.context) / bytes).clamp(1, inner.batch)
        };
        let scratch = (route.scratches > 0).then(|| inner.scratch.of(queue));
        let mut scratch = scratch.as_ref().map(|scratch| scratch.0.lock());
        let scratch = match &mut scratch {
            Some(kept) => Some(grown(
                kept,
                &inner.context,
                inner.len * chunk * route.scratches,
            )?),
            None => None,
        };
        // The places lie in one allocation; a kernel takes the offset of its place in elements.
        let second = (inner.len * chunk) as u64;
        let mut begin = 0;
        while begin < inner.batch {
            let rows = chunk.min(inner.batch - begin);
            let start = (begin * inner.len) as u64;
            for (index, kernel) in steps.kernels.iter().enumerate() {
                let place = |place: Place| match (place, scratch) {
                    (Place::Data, _) => (data, start),
                    (Place::Out, _) => (out, start),
                    (Place::First, Some(memory)) => (memory.arg(form), 0),
                    (Place::Second, Some(memory)) => (memory.arg(form), second),
                    (Place::First | Place::Second, None) => (out, start),
                };
                let (from, from_offset) = place(route.places[index]);
                let (to, to_offset) = place(route.places[index + 1]);
                let mut args = vec![from, to];
                args.extend(steps.tables[index].iter().map(|table| table.arg(form)));
                args.push(Arg::scalar(&from_offset));
                args.push(Arg::scalar(&to_offset));
                let mut range = steps.ranges[index];
                range.global[1] = rows;
                // SAFETY: the caller's promise; the kernel stays within `rows` rows from the
                // offsets on, which lie in data, out and scratch memory. The queue's order keeps
                // a chunk from overwriting scratch memory that the one before still reads.
                unsafe { kernel.launch(queue, range, &args) }?;
            }
            begin += rows;
        }
        Ok(())
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

    /// What the compiler said about the kernels of a direction, which are compiled if they were not
    /// yet: one text for each kernel.
    ///
    /// # Errors
    ///
    /// As [`prepare`](Self::prepare) and [`Program::build_log`](crate::Program::build_log).
    pub fn build_logs(&self, direction: Direction) -> Result<Vec<String>> {
        let steps = self.steps(direction)?;
        let logs = steps.kernels.iter();
        logs.map(|kernel| kernel.program().build_log()).collect()
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

    fn steps(&self, direction: Direction) -> Result<Arc<Steps>> {
        let inner = &*self.0;
        let place = match direction {
            Direction::Forward => &inner.forward,
            Direction::Inverse => &inner.inverse,
        };
        let mut kept = place.lock();
        if let Some(steps) = &*kept {
            return Ok(steps.clone());
        }
        let steps = Arc::new(
            Maker {
                context: &inner.context,
                programs: &inner.programs,
                len: inner.len,
                batch: inner.batch,
                tuning: &inner.tuning,
            }
            .make(inner.way, direction)?,
        );
        *kept = Some(steps.clone());
        Ok(steps)
    }
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
