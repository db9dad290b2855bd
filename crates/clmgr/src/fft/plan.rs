//! Plans: the choice of a way, its kernels and its tables.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Direction;
use super::factor::{radices, split};
use super::memory::{Form, Memory};
use super::source::{Source, WidePasses, global_body, local_body, pass_name, wide_body};
use super::tables::{beside_factors, coarse_and_fine, pass_factors, row_factors};
use crate::C32;
use crate::cache::ProgramCache;
use crate::context::Context;
use crate::device::DeviceKind;
use crate::error::{Error, Result, bytes_of};
use crate::kernel::{Arg, Kernel, NdRange};
use crate::queue::Queue;

/// The longest row whose two private arrays a CPU's cache and a driver's stack hold.
const LONGEST_ROW: usize = 16384;
/// The longest transform of eight columns at once, for the same reason.
const LONGEST_COLUMNS: usize = 4096;
/// The longest row that is read in order before its first pass, by measurement.
const LONGEST_STAGED: usize = 2048;
/// About the bytes that a work-item on a CPU should have, so that its start costs nothing.
const BYTES_OF_ITEM: usize = 64 << 10;
/// The scratch memory of passes and splits. A chunk of the batch that fits is done at a time, which
/// keeps the scratch memory in a CPU's cache.
const SCRATCH_ON_CPU: usize = 4 << 20;
const SCRATCH_ON_GPU: usize = 256 << 20;
/// The queues whose scratch memory a plan keeps.
const SCRATCHES: usize = 4;

/// The way in which a plan transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// One row at a time by a CPU's work-item.
    Rows,
    /// Eight rows at a time by a CPU's work-item.
    Columns,
    /// Rows as matrices of this many rows and columns.
    Split {
        /// The length of the first step's transforms.
        height: usize,
        /// The length of the second step's transforms.
        width: usize,
    },
    /// Work-groups in local memory.
    Local,
    /// Passes in global memory.
    Passes,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => f.write_str("rows"),
            Self::Columns => f.write_str("columns"),
            Self::Split { height, width } => write!(f, "split {height} x {width}"),
            Self::Local => f.write_str("local"),
            Self::Passes => f.write_str("passes"),
        }
    }
}

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
    forward: Mutex<Option<Arc<Steps>>>,
    inverse: Mutex<Option<Arc<Steps>>>,
    scratch: Mutex<Vec<(Queue, Arc<Scratch>)>>,
}

/// The scratch memory of a plan on one queue. The lock is held while the kernels of one transform
/// are enqueued: those of another would overwrite what the first ones hand on.
#[derive(Default)]
struct Scratch(Mutex<Option<Memory<C32>>>);

/// The kernels and tables of one direction.
struct Steps {
    kernels: Vec<Kernel>,
    /// For each kernel, the tables that follow its data arguments.
    tables: Vec<Vec<Arc<Table>>>,
    ranges: Vec<NdRange>,
}

enum Table {
    Floats(Memory<f32>),
    Complex(Memory<C32>),
}

impl Table {
    fn arg(&self, form: Form) -> Arg<'_> {
        match self {
            Self::Floats(memory) => memory.arg(form),
            Self::Complex(memory) => memory.arg(form),
        }
    }
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
        if let Err(reason) = suits(context, len, way) {
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
            forward: Mutex::default(),
            inverse: Mutex::default(),
            scratch: Mutex::default(),
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
    /// Both arguments are alive, and stay alive as [`Kernel::launch`] says. Each holds
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
            Way::Rows | Way::Columns | Way::Local => {
                let mut args = vec![data, out];
                args.extend(steps.tables[0].iter().map(|table| table.arg(form)));
                args.push(Arg::scalar(&batch));
                // SAFETY: the caller's promise; the kernel stays within `batch` rows.
                unsafe { steps.kernels[0].launch(queue, steps.ranges[0], &args) }?;
                Ok(())
            }
            Way::Split { .. } | Way::Passes => {
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
            (inner.scratch_bytes() / bytes).clamp(1, inner.batch)
        };
        let scratch = (route.scratches > 0).then(|| self.scratch_of(queue));
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
            Way::Rows | Way::Columns | Way::Local => 1,
            Way::Split { .. } => 2,
            Way::Passes => radices(self.0.len, 16).map_or(1, |radices| radices.len()),
        }
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
        let steps = Arc::new(inner.make_steps(direction)?);
        *kept = Some(steps.clone());
        Ok(steps)
    }

    /// The scratch memory for this queue, whose order keeps one transform after the other.
    fn scratch_of(&self, queue: &Queue) -> Arc<Scratch> {
        let mut kept = self.0.scratch.lock();
        let found = kept.iter().position(|(of, _)| of == queue);
        let entry = match found {
            Some(position) => kept.remove(position),
            None => (queue.clone(), Arc::default()),
        };
        let scratch = entry.1.clone();
        kept.push(entry);
        // The one that was not used for longest goes. Its drop waits for its last use, which is not
        // done under the lock.
        let gone = (kept.len() > SCRATCHES).then(|| kept.remove(0));
        drop(kept);
        drop(gone);
        scratch
    }
}

/// The memory in `kept`, replaced if it holds less than `len` numbers.
fn grown<'a>(
    kept: &'a mut Option<Memory<C32>>,
    context: &Context,
    len: usize,
) -> Result<&'a Memory<C32>> {
    if kept.as_ref().is_some_and(|memory| memory.len() < len) {
        *kept = None;
    }
    match kept {
        Some(memory) => Ok(memory),
        empty => Ok(empty.insert(Memory::new(context, len)?)),
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

/// Where the data is between two kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Data,
    Out,
    First,
    Second,
}

/// The places before the first kernel and after each one.
struct Route {
    places: Vec<Place>,
    scratches: usize,
}

impl Route {
    /// A kernel of the passes, or the first step of a split, never writes where it reads, unless it
    /// is the only one; the second step of a split works in place.
    fn of(way: Way, kernels: usize, in_place: bool) -> Self {
        let mut places = vec![Place::Data];
        match (way, in_place) {
            (Way::Split { .. }, false) => places.extend([Place::Out, Place::Out]),
            (Way::Split { .. }, true) => places.extend([Place::First, Place::Out]),
            // Back from the last place, out and scratch take turns.
            (_, false) => {
                places.extend((0..kernels).map(|index| match (kernels - 1 - index) % 2 {
                    0 => Place::Out,
                    _ => Place::First,
                }));
            }
            (_, true) if kernels == 1 => places.push(Place::Out),
            // The first place must not be the data: of an odd number one goes to a second scratch.
            (_, true) => {
                places.extend((0..kernels).map(|index| match kernels - 1 - index {
                    0 => Place::Out,
                    left if left % 2 == 1 => Place::First,
                    _ if index == 0 => Place::Second,
                    _ => Place::Out,
                }));
            }
        }
        let scratches = if places.contains(&Place::Second) {
            2
        } else {
            usize::from(places.contains(&Place::First))
        };
        Self { places, scratches }
    }
}

/// The way that suits a device best.
fn choose(context: &Context, len: usize) -> Way {
    if context.device().kind() != DeviceKind::Cpu {
        return match suits(context, len, Way::Local) {
            Ok(()) => Way::Local,
            Err(_) => Way::Passes,
        };
    }
    if len > 64 && suits(context, len, Way::Rows).is_ok() {
        return Way::Rows;
    }
    if suits(context, len, Way::Columns).is_ok() {
        return Way::Columns;
    }
    match split(len, LONGEST_COLUMNS) {
        Some((height, width)) => Way::Split { height, width },
        None => Way::Passes,
    }
}

/// Whether a way takes a length on a device, or why not.
fn suits(context: &Context, len: usize, way: Way) -> std::result::Result<(), String> {
    let most = |limit: usize, why: &str| {
        if len <= limit {
            Ok(())
        } else {
            Err(format!("{why} takes at most {limit}"))
        }
    };
    match way {
        Way::Rows if !len.is_multiple_of(8) || len < 64 => {
            Err("a row is a multiple of 8 and at least 64".to_owned())
        }
        Way::Rows => most(LONGEST_ROW, "a row"),
        Way::Columns if len < 2 => Err("a column has at least 2 elements".to_owned()),
        Way::Columns => most(LONGEST_COLUMNS, "a column"),
        Way::Local if len < 2 => Err("a work-group takes at least 2 elements".to_owned()),
        Way::Local => {
            let bytes = usize::try_from(context.device().local_bytes()).unwrap_or(usize::MAX);
            // Beyond this a work-item would hold more than its registers.
            let registers = LocalShape::items(context) * 32;
            most((bytes / size_of::<C32>()).min(registers), "local memory")
        }
        Way::Passes => Ok(()),
        Way::Split { height, width } => {
            let fits = height.checked_mul(width) == Some(len)
                && height.is_multiple_of(8)
                && (8..=LONGEST_COLUMNS).contains(&height)
                && (8..=LONGEST_COLUMNS).contains(&width);
            if fits {
                Ok(())
            } else {
                Err(format!(
                    "both factors must be 8 to {LONGEST_COLUMNS}, and the first a multiple of 8"
                ))
            }
        }
    }
}

/// The work-groups of the kernel in local memory.
struct LocalShape {
    items: usize,
    group: usize,
}

impl LocalShape {
    fn items(context: &Context) -> usize {
        context.device().max_work_group().clamp(1, 256)
    }

    fn of(context: &Context, len: usize) -> Self {
        let most = Self::items(context);
        let bytes = usize::try_from(context.device().local_bytes()).unwrap_or(usize::MAX);
        let fit = bytes / (len * size_of::<C32>());
        // Four elements for each work-item keep all busy without much local memory.
        let group = (4 * most / len).clamp(1, fit.max(1));
        let items = (len * group).div_ceil(8).next_multiple_of(64).min(most);
        Self { items, group }
    }
}

impl Inner {
    fn scratch_bytes(&self) -> usize {
        match self.context.device().kind() {
            DeviceKind::Cpu => SCRATCH_ON_CPU,
            _ => SCRATCH_ON_GPU,
        }
    }

    fn make_steps(&self, direction: Direction) -> Result<Steps> {
        let queue = self.context.queue()?;
        let steps = match self.way {
            Way::Rows => self.make_rows(direction, &queue)?,
            Way::Columns => self.make_columns(direction, &queue)?,
            Way::Split { height, width } => self.make_split(direction, &queue, height, width)?,
            Way::Local => self.make_local(direction, &queue)?,
            Way::Passes => self.make_passes(direction, &queue)?,
        };
        Ok(steps)
    }

    fn kernel(&self, source: Source, name: &str) -> Result<Kernel> {
        self.programs.get(&source.finish(), "")?.kernel(name)
    }

    fn floats(&self, queue: &Queue, data: &[f32]) -> Result<Arc<Table>> {
        Ok(Arc::new(Table::Floats(Memory::filled(
            &self.context,
            queue,
            data,
        )?)))
    }

    fn complex(&self, queue: &Queue, data: &[C32]) -> Result<Arc<Table>> {
        Ok(Arc::new(Table::Complex(Memory::filled(
            &self.context,
            queue,
            data,
        )?)))
    }

    fn make_rows(&self, direction: Direction, queue: &Queue) -> Result<Steps> {
        let inner_len = self.len / 8;
        let radices = radices(inner_len, 8)?;
        let factors = pass_factors(&radices, direction, true);
        let (body, _) = wide_body(&WidePasses {
            radices: &radices,
            offsets: &factors.offsets,
            load: "LOAD_A",
            store: Some("STORE_OUT"),
        });
        let lines = (BYTES_OF_ITEM / (self.len * size_of::<C32>())).max(1);
        let mut source = Source::new(inner_len, direction)
            .define("FFT_WIDE", 1)
            .define("FFT_ROWS", 1)
            .define("LINES", lines)
            .define("FFT_BODY", body);
        if self.len <= LONGEST_STAGED {
            source = source.define("FFT_STAGED", 1);
        }
        Ok(Steps {
            kernels: vec![self.kernel(source, "fft_rows")?],
            tables: vec![vec![
                self.floats(queue, &factors.data)?,
                self.complex(queue, &row_factors(self.len, direction))?,
            ]],
            ranges: vec![NdRange::d1_local(self.batch.div_ceil(lines), 1)],
        })
    }

    fn make_columns(&self, direction: Direction, queue: &Queue) -> Result<Steps> {
        let radices = radices(self.len, 8)?;
        let factors = pass_factors(&radices, direction, true);
        let (body, result) = wide_body(&WidePasses {
            radices: &radices,
            offsets: &factors.offsets,
            load: "LOAD_A",
            store: None,
        });
        let blocks = (BYTES_OF_ITEM / (8 * self.len * size_of::<C32>())).max(1);
        let source = Source::new(self.len, direction)
            .define("FFT_WIDE", 1)
            .define("FFT_COLUMNS", 1)
            .define("BLOCKS", blocks)
            .define("RESULT", result)
            .define("FFT_BODY", body);
        Ok(Steps {
            kernels: vec![self.kernel(source, "fft_columns")?],
            tables: vec![vec![self.floats(queue, &factors.data)?]],
            ranges: vec![NdRange::d1_local(self.batch.div_ceil(8 * blocks), 1)],
        })
    }

    fn make_split(
        &self,
        direction: Direction,
        queue: &Queue,
        height: usize,
        width: usize,
    ) -> Result<Steps> {
        let (coarse, fine) = coarse_and_fine(self.len, direction);
        let coarse = self.complex(queue, &coarse)?;
        let fine = self.complex(queue, &fine)?;
        let mut kernels = Vec::new();
        let mut tables = Vec::new();
        let mut ranges = Vec::new();
        for (length, columns, turns) in [(height, width, true), (width, height, false)] {
            let radices = radices(length, 8)?;
            let factors = pass_factors(&radices, direction, true);
            let (body, result) = wide_body(&WidePasses {
                radices: &radices,
                offsets: &factors.offsets,
                load: "LOAD_IN",
                store: (!turns).then_some("STORE_OUT"),
            });
            let mut source = Source::new(length, direction)
                .define("FFT_WIDE", 1)
                .define("FFT_SPLIT", 1)
                .define("WIDTH", columns)
                .define("RESULT", result)
                .define("FFT_BODY", body);
            if turns {
                source = source.define("FFT_TURN", 1);
            }
            kernels.push(self.kernel(source, "fft_split")?);
            tables.push(vec![
                self.floats(queue, &factors.data)?,
                coarse.clone(),
                fine.clone(),
                self.complex(queue, &beside_factors(length, self.len, direction))?,
            ]);
            ranges.push(NdRange::d2(columns.div_ceil(8), 1).with_local([1, 1, 1]));
        }
        Ok(Steps {
            kernels,
            tables,
            ranges,
        })
    }

    fn make_local(&self, direction: Direction, queue: &Queue) -> Result<Steps> {
        let radices = radices(self.len, 8)?;
        let factors = pass_factors(&radices, direction, false);
        let LocalShape { items, group } = LocalShape::of(&self.context, self.len);
        let source = Source::new(self.len, direction)
            .define("FFT_LOCAL", 1)
            .define("ITEMS", items)
            .define("GROUP", group)
            .define(
                "FFT_BODY",
                local_body(&radices, &factors.offsets, group, items),
            );
        Ok(Steps {
            kernels: vec![self.kernel(source, "fft_local")?],
            tables: vec![vec![self.floats(queue, &factors.data)?]],
            ranges: vec![NdRange::d1_local(self.batch.div_ceil(group) * items, items)],
        })
    }

    fn make_passes(&self, direction: Direction, queue: &Queue) -> Result<Steps> {
        let radices = radices(self.len, 16)?;
        let (coarse, fine) = coarse_and_fine(self.len, direction);
        let tables = vec![self.complex(queue, &coarse)?, self.complex(queue, &fine)?];
        let source = Source::new(self.len, direction)
            .define("FFT_PASSES", 1)
            .define("FFT_BODY", global_body(&radices));
        let program = self.programs.get(&source.finish(), "")?;
        Ok(Steps {
            kernels: (0..radices.len())
                .map(|index| program.kernel(&pass_name(index)))
                .collect::<Result<_>>()?,
            tables: vec![tables; radices.len()],
            ranges: radices
                .iter()
                .map(|radix| NdRange::d2(self.len / radix, 1))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pass_writes_where_it_reads_and_the_last_writes_to_out() {
        for kernels in 1..9 {
            for in_place in [false, true] {
                let route = Route::of(Way::Passes, kernels, in_place);
                assert_eq!(route.places.len(), kernels + 1);
                assert_eq!(route.places[kernels], Place::Out);
                for pair in route.places.windows(2) {
                    let same =
                        pair[0] == pair[1] || (in_place && pair == [Place::Data, Place::Out]);
                    assert!(
                        !same || kernels == 1,
                        "{kernels} kernels: {:?}",
                        route.places
                    );
                }
            }
        }
    }
}
