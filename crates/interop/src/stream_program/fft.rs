//! clmgr's FFT on HIP streams.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use clmgr::{C32, NdRange};
use clmgr_fft::{Direction, Number, Operand, Plan, Sample, Side};
use hip::{DeviceBuffer, DeviceSlice, DeviceSliceMut, Stream};
use parking_lot::Mutex;

use super::{StreamArg, StreamKernel};
use crate::core::Core;
use crate::{Bridge, Result};

/// The transforms of a [`Plan`] on HIP streams, from [`Bridge::stream_fft`]: OpenCL kernels, in order with all other
/// work on the stream. Cloning is cheap; several threads and streams may use it at once. Neither direction is scaled.
///
/// ```
/// use clmgr_fft::{Direction, Plan};
/// use interop::{Bridge, Options};
///
/// let platform = platform::select()?;
/// let bridge = Bridge::open(&platform, &Options::default())?;
/// let plan = Plan::new(bridge.cl_context(), bridge.programs(), 1024, 16)?;
/// let fft = bridge.stream_fft(&plan)?;
///
/// let stream = bridge.stream()?;
/// let ones = vec![clmgr::C32::new(1.0, 0.0); 1024 * 16];
/// let mut data = bridge.hip_device().alloc_from(&stream, &ones)?;
/// fft.enqueue_in_place(&stream, Direction::Forward, data.on_mut(&stream)?)?;
/// let mut spectrum = ones.clone();
/// data.copy_to_slice(&stream, &mut spectrum)?;
/// assert_eq!(spectrum[0].re, 1024.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct StreamFft(Arc<Inner>);

struct Inner {
    plan: Plan,
    bridge: Bridge,
    /// Forward and inverse, each out of place and in place.
    loaded: [[Mutex<Option<Arc<Loaded>>>; 2]; 2],
}

/// The launches of one direction, and their memory.
struct Loaded {
    stages: Vec<Stage>,
    tables: Vec<DeviceBuffer<u8>>,
    /// Complex numbers of scratch memory.
    scratch_len: usize,
    /// Used by one stream after the other.
    scratch: Mutex<Option<DeviceBuffer<C32>>>,
}

struct Stage {
    kernel: StreamKernel,
    range: NdRange,
    operands: Vec<Operand>,
}

impl Bridge {
    /// The transforms of this plan on HIP streams.
    ///
    /// A direction's kernels are loaded on its first use, outside a capture; [`StreamFft::prepare`] does so earlier.
    ///
    /// # Errors
    /// [`clmgr::Error::ContextMismatch`] for a plan of another context than [the bridge's](Self::cl_context).
    pub fn stream_fft(&self, plan: &Plan) -> Result<StreamFft> {
        if plan.context() != self.cl_context() {
            return Err(clmgr::Error::ContextMismatch { what: "the plan" }.into());
        }
        Ok(StreamFft(Arc::new(Inner {
            plan: plan.clone(),
            bridge: self.clone(),
            loaded: Default::default(),
        })))
    }
}

impl StreamFft {
    /// Loads the kernels and tables of a direction, if not yet loaded, for transforms out of place and, where the plan does
    /// such, in place.
    ///
    /// # Errors
    /// As [`Plan::prepare`] and [`Bridge::stream_program`].
    pub fn prepare(&self, direction: Direction) -> Result<()> {
        self.loaded(direction, false)?;
        match self.0.plan.check_in_place() {
            Ok(()) => self.loaded(direction, true).map(drop),
            Err(_) => Ok(()),
        }
    }

    /// Queues the transform of `data` into `out`, real or complex numbers as the plan has them.
    ///
    /// # Errors
    /// [`clmgr::Error::Launch`] if one of them has the other type of numbers than the plan's
    /// [`input`](Plan::input) or [`output`](Plan::output), has fewer than their extent, does not begin at a multiple of
    /// its numbers' size, or overlaps the other one, and for a direction that the plan does not have;
    /// [`hip::Error::WrongStream`] if one was granted to another stream, [`Error::NoStreamProgram`](crate::Error::NoStreamProgram), or HIP's error.
    pub fn enqueue<I: Sample, O: Sample>(
        &self,
        stream: &Stream,
        direction: Direction,
        data: DeviceSlice<'_, I>,
        out: DeviceSliceMut<'_, O>,
    ) -> Result<()> {
        let plan = &self.0.plan;
        let (from, to) = (data.as_ptr().addr(), out.as_slice().as_ptr().addr());
        check(plan.input(), I::NUMBER, data.len(), from)?;
        check(plan.output(), O::NUMBER, out.len(), to)?;
        plan.check_apart(from, to)?;
        self.run(stream, direction, from == to, data.into(), out.into())
    }

    /// Queues the transform of `data` in place.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue), and [`clmgr::Error::Launch`] for a plan that does not transform in place.
    pub fn enqueue_in_place(&self, stream: &Stream, direction: Direction, data: DeviceSliceMut<'_, C32>) -> Result<()> {
        self.0.plan.check_in_place()?;
        let (len, address) = (data.len(), data.as_slice().as_ptr().addr());
        for side in [self.0.plan.input(), self.0.plan.output()] {
            check(side, Number::Complex, len, address)?;
        }
        let data: StreamArg<'_> = data.into();
        self.run(stream, direction, true, data, data)
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.0.plan
    }

    fn run(
        &self,
        stream: &Stream,
        direction: Direction,
        in_place: bool,
        data: StreamArg<'_>,
        out: StreamArg<'_>,
    ) -> Result<()> {
        let loaded = self.loaded(direction, in_place)?;
        // A graph runs whenever its owner likes, so it gets scratch memory of its own. It keeps all of this from the
        // start: a capture may go on after a launch that failed.
        if stream.is_recording() {
            let own = Arc::new(Mutex::new(loaded.new_scratch(self.0.bridge.core())?));
            stream.keep_if_recording(&loaded);
            stream.keep_if_recording(&own);
            return loaded.launch(stream, own.lock().as_mut(), data, out);
        }
        let mut scratch = loaded.scratch.lock();
        if scratch.is_none() {
            *scratch = loaded.new_scratch(self.0.bridge.core())?;
        }
        loaded.launch(stream, scratch.as_mut(), data, out)
    }

    fn loaded(&self, direction: Direction, in_place: bool) -> Result<Arc<Loaded>> {
        let inner = &*self.0;
        let [out_of_place, alone] = match direction {
            Direction::Forward => &inner.loaded[0],
            Direction::Inverse => &inner.loaded[1],
        };
        let mut kept = if in_place { alone.lock() } else { out_of_place.lock() };
        if let Some(loaded) = &*kept {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(Loaded::new(&inner.bridge, &inner.plan, direction, in_place)?);
        *kept = Some(Arc::clone(&loaded));
        Ok(loaded)
    }
}

/// That memory of `len` numbers at this address holds a side of a plan.
fn check(side: Side, number: Number, len: usize, address: usize) -> Result<()> {
    let needed = side.extent;
    let reason = if number != side.number {
        format!(
            "got {number} numbers, but the plan has {} ones there; give memory of their type",
            side.number
        )
    } else if len < needed {
        format!("got {len} {number} numbers, it transforms {needed}")
    } else if !address.is_multiple_of(number.bytes()) {
        format!(
            "the numbers begin at {address:#x}, but its kernels need a multiple of {}",
            number.bytes()
        )
    } else {
        return Ok(());
    };
    let kernel = "fft".to_owned();
    Err(clmgr::Error::Launch { kernel, reason }.into())
}

impl Loaded {
    fn new(bridge: &Bridge, plan: &Plan, direction: Direction, in_place: bool) -> Result<Self> {
        let schedule = plan.schedule(direction, in_place)?;
        // A stream of its own: the caller's may be recorded, and a copy from the host waits.
        let stream = bridge.stream()?;
        // By the plan's program and the kernel's name: a chunk of the batch has the same kernels as the one before.
        let mut loaded: HashMap<(usize, String), StreamKernel> = HashMap::new();
        let mut stages = Vec::new();
        for launch in schedule.launches {
            let (program, name) = (launch.kernel.program(), launch.kernel.name());
            let kernel = match loaded.entry((program.raw().addr(), name.to_owned())) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => new.insert(bridge.stream_program(program)?.kernel(name)?).clone(),
            };
            stages.push(Stage {
                kernel,
                range: launch.range,
                operands: launch.operands,
            });
        }
        let tables = schedule.tables.iter();
        let tables = tables.map(|table| bridge.hip_device().alloc_from(&stream, table));
        Ok(Self {
            stages,
            tables: tables.collect::<hip::Result<_>>()?,
            scratch_len: schedule.scratch,
            scratch: Mutex::new(None),
        })
    }

    fn new_scratch(&self, core: &Core) -> Result<Option<DeviceBuffer<C32>>> {
        match self.scratch_len {
            0 => Ok(None),
            len => Ok(Some(core.hip_device.alloc(len)?)),
        }
    }

    fn launch(
        &self,
        stream: &Stream,
        scratch: Option<&mut DeviceBuffer<C32>>,
        data: StreamArg<'_>,
        out: StreamArg<'_>,
    ) -> Result<()> {
        let scratch: Option<StreamArg<'_>> = match scratch {
            Some(buffer) => Some(buffer.on_mut(stream)?.into()),
            None => None,
        };
        let tables = self.tables.iter().map(|table| Ok(table.on(stream)?.into()));
        let tables: Vec<StreamArg<'_>> = tables.collect::<Result<_>>()?;
        for stage in &self.stages {
            let arg = |operand| match operand {
                &Operand::Data => data,
                &Operand::Out => out,
                &Operand::Table(index) => tables[index],
                Operand::Number(number) => StreamArg::scalar(number),
                Operand::Scratch => scratch.unwrap_or(out),
            };
            let args: Vec<StreamArg<'_>> = stage.operands.iter().map(arg).collect();
            // SAFETY: the plan's own kernels with their arguments: data and out hold the plan's numbers, scratch memory
            // and tables are as long as the schedule says.
            unsafe { stage.kernel.launch(stream, stage.range, &args) }?;
        }
        Ok(())
    }
}

impl fmt::Debug for StreamFft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamFft").field(&self.0.plan).finish()
    }
}

/// A plan may be used from several threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<StreamFft>();
};
