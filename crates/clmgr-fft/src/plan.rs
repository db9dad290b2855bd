//! Plans: the choice of a way, its kernels and its tables.

use std::fmt;
use std::sync::Arc;

use clmgr::{Arg, C32, Context, Error, ProgramCache, Queue, Result};
use parking_lot::Mutex;

use crate::Direction;
use crate::builder::Builder;
use crate::error;
use crate::memory::Form;
use crate::recipe::Recipe;
use crate::schedule::{Launch, Operand, Prepared, Schedule, Stages};
use crate::scratch::{Scratches, grown};
use crate::spec::{Kind, Side, Spec, too_large};
use crate::steps::Maker;
use crate::tuning::Tuning;
use crate::way::{Way, choose, choose_smooth, suits};

/// The transforms of a batch of rows.
///
/// Several threads and queues may use a plan at the same time. Clones share the plan.
#[derive(Clone)]
pub struct Plan(Arc<Inner>);

struct Inner {
    context: Context,
    programs: ProgramCache,
    spec: Spec,
    way: Way,
    /// That of each complex transform which it is made of.
    inner: Way,
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
    /// Plans the transforms of `batch` rows of `len` complex numbers, one row behind the other.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new(context: &Context, programs: &ProgramCache, len: usize, batch: usize) -> error::Result<Self> {
        Self::builder(len).batch(batch).build(context, programs)
    }

    /// Options for transforms of length `len`: real ones, short rows, windows, scales, strides.
    pub fn builder(len: usize) -> Builder {
        Builder::new(len)
    }

    pub(crate) fn build(builder: &Builder, context: &Context, programs: &ProgramCache) -> error::Result<Self> {
        let spec = Spec::new(&builder.options)?;
        if programs.context() != context {
            return Err(Error::ContextMismatch {
                what: "the program cache",
            }
            .into());
        }
        // The launches of a batch are listed when it is prepared.
        let most = context.device().global_bytes();
        for side in [&spec.input, &spec.output] {
            if side.bytes() as u64 > most {
                let rows = format!(
                    "{} x {} {} numbers, {} bytes",
                    spec.batch,
                    side.len,
                    side.number,
                    side.bytes()
                );
                return Err(too_large("the data of an FFT", rows, most));
            }
        }
        let len = spec.transform();
        let Some(way) = builder.way.or_else(|| choose(context, len)) else {
            return Err(too_large(
                "the length of an FFT with other factors than 2, 3, 5 and 7",
                len.to_string(),
                1 << 31,
            ));
        };
        if let Err(reason) = suits(context, len, way, &builder.tuning) {
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
            spec,
            way,
            inner: match way {
                Way::Bluestein { convolution } => choose_smooth(context, convolution),
                way => way,
            },
            tuning: builder.tuning.clone(),
            forward: Mutex::default(),
            inverse: Mutex::default(),
            scratch: Scratches::default(),
        })))
    }

    /// Compiles the kernels and makes the tables of a direction, if not yet done.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`] if the plan does not transform in this direction; as
    /// [`Program::build`](clmgr::Program::build).
    pub fn prepare(&self, direction: Direction) -> Result<()> {
        self.prepared(direction).map(drop)
    }

    /// Enqueues the transform of `data` into `out`; the same argument for both transforms in place. It does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`] unless both arguments are buffers or both are SVM pointers, if SVM pointers overlap, or if the plan
    /// does not transform in this direction or not in place; [`Error::ContextMismatch`] for a queue of another context; an
    /// error from building or launching.
    ///
    /// # Safety
    ///
    /// Both arguments are alive, and stay alive as [`Kernel::launch`](clmgr::Kernel::launch) says. `data` holds the
    /// [`extent`](Side::extent) of [`input`](Self::input) and `out` that of [`output`](Self::output), of their types. They
    /// are the same, or do not overlap. Until the transform has ended, nothing else writes either of them, and nothing else
    /// reads `out`.
    pub unsafe fn enqueue(&self, queue: &Queue, direction: Direction, data: Arg<'_>, out: Arg<'_>) -> Result<()> {
        let inner = &*self.0;
        if queue.context() != &inner.context {
            return Err(Error::ContextMismatch { what: "the queue" });
        }
        let (form, in_place) = match (data, out) {
            (Arg::Mem(a), Arg::Mem(b)) => (Form::Object, a == b),
            (Arg::Svm(a), Arg::Svm(b)) => {
                self.check_apart(a.addr(), b.addr())?;
                (Form::Svm, a == b)
            }
            _ => {
                return Err(refused("data and out must both be buffers or both be SVM pointers"));
            }
        };
        let prepared = self.prepared(direction)?;
        let stages = self.stages(&prepared, in_place)?;
        let places = Places { form, data, out };
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_stages(queue, &prepared, stages, places) }
    }

    /// That the input from the first address on and the output from the second one on are the same memory, or do not
    /// overlap.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`] if they do.
    pub fn check_apart(&self, data: usize, out: usize) -> Result<()> {
        let (read, written) = (self.input().bytes(), self.output().bytes());
        if data != out && data < out.saturating_add(written) && out < data.saturating_add(read) {
            return Err(refused(format!(
                "the {read} bytes of data from {data:#x} on and the {written} of out from {out:#x} on overlap; use one place for both, or separate memory"
            )));
        }
        Ok(())
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
    /// As [`prepare`](Self::prepare), [`Error::Launch`] if the plan does not transform in place, or an error from reading
    /// the tables.
    pub fn schedule(&self, direction: Direction, in_place: bool) -> Result<Schedule> {
        let prepared = self.prepared(direction)?;
        let queue = self.0.context.queue()?;
        let stages = self.stages(&prepared, in_place)?;
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

    /// The least memory traffic of the transform in bytes: each number of the input read once, each one of the output
    /// written once.
    #[must_use]
    pub fn bytes_moved(&self) -> u64 {
        let (input, output) = (self.input(), self.output());
        let row = input.len * input.number.bytes() + output.len * output.number.bytes();
        (row * self.batch()) as u64
    }

    /// The memory traffic of the plan's kernels in bytes: what they read and write of the data, and of what they hand on
    /// in [scratch memory](Self::scratch_bytes). Their tables are not counted.
    #[must_use]
    pub fn traffic(&self) -> u64 {
        let row = self.recipe(self.usual_direction()).traffic_of_row(&self.0.spec);
        (row * self.batch()) as u64
    }

    /// How often the data is read and written: the number of kernels, one behind the other.
    #[must_use]
    pub fn passes(&self) -> usize {
        self.recipe(self.usual_direction()).passes()
    }

    /// The bytes of scratch memory that the plan allocates for each queue on which it is used; 0 if it needs none.
    #[must_use]
    pub fn scratch_bytes(&self, in_place: bool) -> usize {
        let recipe = self.recipe(self.usual_direction());
        recipe.scratch(self.context(), self.batch(), in_place).len() * size_of::<C32>()
    }

    /// The bound of the error of a row: the norm of the difference to the exact result, as a part of that result's norm.
    ///
    /// With u = 2<sup>-24</sup>, half the distance from 1 to the next number, it is u (log2 `len` + 4), and for
    /// [`Bluestein`](Way::Bluestein) u (2 log2 `convolution` + 8). Errors of rounding that all add up could exceed it; those
    /// of signals and noise stay at half of it.
    #[must_use]
    pub fn error_bound(&self) -> f64 {
        let unit = f64::from(f32::EPSILON) / 2.0;
        let steps = |len: usize| (len as f64).log2() + 4.0;
        unit * match self.way() {
            Way::Bluestein { convolution } => 2.0 * steps(convolution),
            _ => steps(self.len()),
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
        self.0.spec.len
    }

    /// The number of transforms.
    #[must_use]
    pub fn batch(&self) -> usize {
        self.0.spec.batch
    }

    /// What it reads and writes.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.spec.kind
    }

    /// The input.
    #[must_use]
    pub fn input(&self) -> Side {
        self.0.spec.input
    }

    /// The output.
    #[must_use]
    pub fn output(&self) -> Side {
        self.0.spec.output
    }

    /// That input and output may be the same memory: complex numbers in one layout.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`] if they may not.
    pub fn check_in_place(&self) -> Result<()> {
        self.0.spec.not_in_place().map_or(Ok(()), |reason| Err(refused(reason)))
    }

    /// The way in which the plan transforms: that of the complex transform which a real one is made of, which has half
    /// its length if that is even.
    #[must_use]
    pub fn way(&self) -> Way {
        self.0.way
    }

    fn recipe(&self, direction: Direction) -> Recipe {
        Recipe::new(&self.0.spec, self.0.way, self.0.inner, direction)
    }

    /// The only direction of a real transform, or one of the two, whose kernels move the same bytes.
    fn usual_direction(&self) -> Direction {
        match self.kind() {
            Kind::ComplexToReal => Direction::Inverse,
            Kind::Complex | Kind::RealToComplex => Direction::Forward,
        }
    }

    fn stages<'a>(&self, prepared: &'a Prepared, in_place: bool) -> Result<&'a Stages> {
        if in_place {
            self.check_in_place()?;
        }
        Ok(prepared.stages(in_place))
    }

    fn prepared(&self, direction: Direction) -> Result<Arc<Prepared>> {
        let inner = &*self.0;
        if let Some(reason) = inner.spec.wrong_direction(direction) {
            return Err(refused(reason));
        }
        let place = match direction {
            Direction::Forward => &inner.forward,
            Direction::Inverse => &inner.inverse,
        };
        let mut kept = place.lock();
        if let Some(prepared) = &*kept {
            return Ok(prepared.clone());
        }
        let queue = inner.context.queue()?;
        let recipe = self.recipe(direction);
        let steps = |leg| {
            Maker {
                context: &inner.context,
                programs: &inner.programs,
                queue: &queue,
                tuning: &inner.tuning,
                leg,
            }
            .make()
        };
        let steps = recipe.legs.iter().map(steps).collect::<Result<_>>()?;
        let completion = recipe.completion.as_ref();
        let completion = completion.map(|completion| completion.make(&inner.context, &inner.programs, &queue));
        let scratch = |in_place| recipe.scratch(&inner.context, inner.spec.batch, in_place);
        let prepared = Arc::new(Prepared::new(
            steps,
            completion.transpose()?,
            &recipe,
            &inner.spec,
            scratch,
        ));
        *kept = Some(prepared.clone());
        Ok(prepared)
    }
}

fn refused(reason: impl Into<String>) -> Error {
    Error::Launch {
        kernel: "fft".to_owned(),
        reason: reason.into(),
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("len", &self.0.spec.len)
            .field("batch", &self.0.spec.batch)
            .field("kind", &self.0.spec.kind)
            .field("way", &self.0.way)
            .finish_non_exhaustive()
    }
}
