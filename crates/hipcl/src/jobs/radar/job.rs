//! The search on the devices: OpenCL compresses the pulses, HIP works on the same bytes.

use std::f64::consts::PI;
use std::rc::Rc;

use bytemuck::Zeroable as _;
use clmgr::NdRange;
use clmgr_fft::Direction;
use hip::{DeviceBuffer, LaunchConfig};
use interop::rccl::ReduceOp;
use interop::{Bridge, Category, Residency, Route, Shared};
use rocblas::{Matrix, Op};
use rustfft::FftPlanner;

use super::peaks::{Found, Peak};
use super::shape::Shape;
use crate::jobs::sides::{Fft, Kernel, KernelArg, Sides};
use crate::jobs::stages::{Recorded, Stages};
use crate::jobs::{Ranks, Waits, crossing_bytes};
use crate::outcome::Kernels as Where;
use crate::timing::{ApiName, StageTimer, Work};
use crate::{C32, C64, Error, Result};

/// Threads of a HIP block, as many as the kernels have room for.
const THREADS: u32 = 256;
/// Threads of a block that looks for peaks on the software device, whose threads take turns at every barrier.
const MODEL_THREADS: u32 = 8;

/// A search with everything it needs allocated and compiled; one serves any number of batches.
pub struct Search<'a> {
    shape: Shape,
    /// Of a batch, of which this search may have a share.
    blocks: usize,
    /// Among which they are divided.
    ranks: Option<&'a Ranks>,
    meter: interop::Meter,
    sides: Sides,
    /// Shared with the closure that records its calls.
    blas: Rc<rocblas::Handle>,
    opencl: OpenCl,
    /// `[block][channel][frequency or delay]`: written by OpenCL, read by HIP.
    compressed: Shared<C32>,
    hip: Hip,
    graph: Option<Recorded>,
}

struct OpenCl {
    align: Kernel,
    compress: Kernel,
    forward: Fft,
    inverse: Fft,
    /// `[block][channel][sample]`.
    samples: Shared<C32>,
    taper: Shared<f32>,
    /// Delay of each channel in samples: its floor, and what is left.
    whole: Shared<i32>,
    fraction: Shared<f32>,
    /// Conjugate spectrum of the replica.
    filter: Shared<C32>,
}

struct Hip {
    /// Of a block that looks for peaks; a power of two.
    threads: u32,
    mean_power: hip::Function,
    beam_peaks: hip::Function,
    best_peaks: hip::Function,
    /// Channels x beams.
    weights: DeviceBuffer<C32>,
    /// `[block][beam][delay]`.
    beams: DeviceBuffer<C32>,
    /// `[beam][delay]`.
    power: DeviceBuffer<f32>,
    /// A power and a delay each.
    candidates: DeviceBuffer<[u32; 2]>,
    means: DeviceBuffer<f32>,
    peaks: DeviceBuffer<Peak>,
    noise: DeviceBuffer<f32>,
}

impl std::fmt::Debug for Search<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

impl<'a> Search<'a> {
    /// Allocates and compiles. Channel `c` comes `skew[c]` samples late; `peaks` maxima are looked for.
    ///
    /// # Errors
    /// [`Error::Input`] if the devices can't hold a batch, [`interop::Error::NoStreamProgram`] if HIP can't launch
    /// OpenCL's kernels, else the APIs' errors.
    pub fn new(bridge: &Bridge, kernels: Where, shape: &Shape, skew: &[f64], peaks: usize) -> Result<Self> {
        shape.check_size(bridge.cl_device().max_alloc_bytes() / size_of::<C32>() as u64)?;
        let meter = bridge.meter();
        let sides = Sides::new(bridge, kernels)?;
        let rows = shape.blocks * shape.channels;
        Ok(Self {
            meter: meter.clone(),
            blas: Rc::new(rocblas::Handle::new(&bridge.blas()?, &sides.stream)?),
            opencl: meter.count_as(Category::Input, || OpenCl::new(bridge, &sides, shape, skew))?,
            compressed: bridge.alloc(rows * shape.padded())?,
            hip: meter.count_as(Category::Input, || Hip::new(bridge, &sides.stream, shape, peaks))?,
            sides,
            shape: shape.clone(),
            blocks: shape.blocks,
            ranks: None,
            graph: None,
        })
    }

    /// A search of a share of `blocks`: its map and its peaks are of those of all ranks.
    #[must_use]
    pub fn among(self, ranks: Option<&'a Ranks>, blocks: usize) -> Self {
        Self { ranks, blocks, ..self }
    }

    /// Route of the compressed pulses.
    pub fn route(&self) -> Route {
        self.compressed.route()
    }

    /// Where the compressed pulses live.
    pub fn residency(&self) -> Residency {
        self.compressed.residency()
    }

    /// Bytes that one [`run`](Self::run) has to copy because of the route: on a copying one, the compressed pulses from
    /// OpenCL to the host and from there to HIP. On one stream they stay with HIP.
    pub fn expected_copies_bytes(&self) -> u64 {
        match self.sides.queue {
            Some(_) => crossing_bytes(&self.compressed),
            None => 0,
        }
    }

    /// Takes the samples of the next batch, `[block][channel][sample]`, and returns when they have arrived.
    ///
    /// # Errors
    /// The wrong number of samples, or the API's error.
    pub fn load(&mut self, samples: &[C32]) -> Result<()> {
        Ok(self.opencl.samples.upload(samples)?)
    }

    /// Records the search as a graph, which [`run`](Self::run) replays from now on.
    ///
    /// # Errors
    /// A stage that can't be recorded, or the APIs' errors.
    pub fn record(&mut self) -> Result<()> {
        // What is loaded or allocated on first use cannot be recorded, so a search comes first: in silence, so what is
        // found later is the graph's own.
        self.load(&vec![C32::ZERO; self.shape.batch()])?;
        self.run(&mut StageTimer::new(1, 0), Waits::Iteration)?;
        // The stream comes after the upload before it is recorded: a graph holds no order among streams.
        drop(self.opencl.samples.hip(&self.sides.stream)?);
        let (sides, blas) = (self.sides.clone(), Rc::clone(&self.blas));
        self.graph = Some(Stages::record(&sides, Some(&blas), |stages| self.queue(stages))?);
        Ok(())
    }

    /// One search. With two sides the host must wait after each stage; a recorded search has one wait.
    ///
    /// # Errors
    /// The APIs' errors.
    pub fn run(&mut self, timer: &mut StageTimer, waits: Waits) -> Result<()> {
        if self.graph.is_some() {
            return self.replay(timer);
        }
        let sides = self.sides.clone();
        Stages::timed(timer, &sides, waits, |stages| self.queue(stages))
    }

    fn replay(&mut self, timer: &mut StageTimer) -> Result<()> {
        let Self {
            sides,
            opencl,
            compressed,
            hip,
            graph: Some(recorded),
            ..
        } = self
        else {
            unreachable!("the graph was recorded")
        };
        let stream = &sides.stream;
        let launch = || {
            let (samples, taper) = (opencl.samples.hip(stream)?, opencl.taper.hip(stream)?);
            let (whole, fraction) = (opencl.whole.hip(stream)?, opencl.fraction.hip(stream)?);
            let filter = opencl.filter.hip(stream)?;
            let mut compressed = compressed.hip_mut(stream)?;
            let slices: [&dyn hip::KernelArg; 13] = [
                &samples.slice(),
                &taper.slice(),
                &whole.slice(),
                &fraction.slice(),
                &filter.slice(),
                &compressed.slice_mut(),
                &hip.weights.on(stream)?,
                &hip.beams.on_mut(stream)?,
                &hip.power.on_mut(stream)?,
                &hip.candidates.on_mut(stream)?,
                &hip.means.on_mut(stream)?,
                &hip.peaks.on_mut(stream)?,
                &hip.noise.on_mut(stream)?,
            ];
            // SAFETY: this is all memory that the stages touch, and what they were recorded with stays as it is: a
            // search owns both. The rocBLAS handle is used by nothing else meanwhile.
            Ok(unsafe { recorded.graph.launch(stream, &slices) }?)
        };
        Stages::timed(timer, sides, Waits::Iteration, |stages| {
            stages.replay(recorded.span, launch)
        })
    }

    fn queue(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        self.compress(stages)?;
        self.form_beams(stages)?;
        self.mean_over_ranks(stages)?;
        self.find_peaks(stages)
    }

    /// RCCL: the mean of the powers, of which each rank has what its blocks add.
    fn mean_over_ranks(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let Some(ranks) = self.ranks else { return Ok(()) };
        let (hip, stream) = (&mut self.hip, &self.sides.stream);
        let traffic = 2 * bytes::<f32>(hip.power.len());
        stages.stage("mean over ranks", ApiName::Hip, traffic, || {
            ranks.all_reduce(&mut hip.power, ReduceOp::Sum, stream)
        })
    }

    /// OpenCL: samples to compressed pulses.
    fn compress(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let Self {
            shape,
            sides,
            opencl,
            compressed,
            ..
        } = self;
        let OpenCl {
            align,
            compress,
            forward,
            inverse,
            samples,
            taper,
            whole,
            fraction,
            filter,
        } = opencl;
        let range = NdRange::d2(shape.padded(), shape.blocks * shape.channels);
        let in_place = 2 * bytes::<C32>(compressed.len());

        let traffic = bytes::<C32>(samples.len() + compressed.len());
        stages.stage("align", ApiName::OpenCl, traffic, || {
            let (samples, taper) = (sides.read(samples)?, sides.read(taper)?);
            let (whole, fraction) = (sides.read(whole)?, sides.read(fraction)?);
            let mut out = sides.write(compressed)?;
            let (channels, count) = (shape.channels as u32, shape.samples as u32);
            let args = [
                samples.arg(),
                taper.arg(),
                whole.arg(),
                fraction.arg(),
                out.arg(),
                KernelArg::scalar(&channels),
                KernelArg::scalar(&count),
            ];
            // SAFETY: the arguments are of the kernel's types. It reads `count` samples of each row and as many weights
            // of the taper, a delay for each channel, and writes each place of the range once, as many as `compressed`
            // has; the guards give access.
            unsafe { align.launch(sides, range, args) }
        })?;
        stages.stage("fft", ApiName::OpenCl, in_place, || {
            // SAFETY: the transforms are of the rows of `compressed`.
            unsafe { forward.enqueue_in_place(sides, &mut sides.write(compressed)?) }
        })?;
        let traffic = in_place + bytes::<C32>(filter.len());
        stages.stage("matched filter", ApiName::OpenCl, traffic, || {
            let filter = sides.read(filter)?;
            let mut spectrum = sides.write(compressed)?;
            let args = [spectrum.arg(), filter.arg()];
            // SAFETY: the arguments are of the kernel's types; it touches each place of the range once, as many as
            // `compressed` has, and reads a row's length of the filter; the guards give access.
            unsafe { compress.launch(sides, range, args) }
        })?;
        stages.stage("inverse fft", ApiName::OpenCl, in_place, || {
            // SAFETY: as for the forward transforms.
            unsafe { inverse.enqueue_in_place(sides, &mut sides.write(compressed)?) }
        })
    }

    /// HIP: compressed pulses to the power map.
    fn form_beams(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let Self {
            shape,
            blocks: of,
            sides,
            blas,
            compressed,
            hip,
            ..
        } = self;
        let stream = &sides.stream;
        let (delays, channels, beams, blocks) = (shape.samples, shape.channels, shape.beams, shape.blocks);
        let padded = shape.padded();
        let formed = bytes::<C32>(hip.beams.len());
        let work = Work {
            bytes: bytes::<C32>(blocks * channels * delays) + formed,
            operations: 8 * (blocks * channels) as u64 * shape.cells() as u64,
        };
        stages.stage("beams", ApiName::Hip, work, || {
            // A block is a column-major matrix of delays x channels whose columns are longer: the rest is what the
            // zeros behind the samples left.
            blas.gemm_strided_batched(
                Op::None,
                Op::None,
                C32::ONE,
                Matrix::new(&*compressed, delays, channels, padded).batch(padded * channels, blocks),
                Matrix::new(&hip.weights, channels, beams, channels).batch(0, blocks),
                C32::ZERO,
                Matrix::new(&mut hip.beams, delays, beams, delays).batch(delays * beams, blocks),
            )?;
            Ok(())
        })?;
        let traffic = formed + bytes::<f32>(hip.power.len());
        stages.stage("power", ApiName::Hip, traffic, || {
            let args: [&dyn hip::KernelArg; 5] = [
                &hip.beams.on(stream)?,
                &hip.power.on_mut(stream)?,
                &(shape.cells() as u32),
                &(blocks as u32),
                &(*of as u32),
            ];
            let config = LaunchConfig::linear(shape.cells(), THREADS)?;
            // SAFETY: the arguments are of the kernel's types; the grid covers the cells and the kernel leaves out what
            // lies beyond; `beams` holds them for every block, `power` once.
            unsafe { hip.mean_power.launch(stream, config, &args) }?;
            Ok(())
        })
    }

    /// HIP: the largest local maxima of the map.
    fn find_peaks(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let Self { shape, sides, hip, .. } = self;
        let stream = &sides.stream;
        let (delays, beams) = (shape.samples as u32, shape.beams as u32);
        let (whole, count) = ((shape.samples - shape.pulse + 1) as u32, hip.peaks.len() as u32);
        // each maximum is looked for again, and the means before them
        let traffic = (u64::from(count) + 1) * bytes::<f32>(hip.power.len());
        stages.stage("peaks", ApiName::Hip, traffic, || {
            let blocks = |blocks: u32| LaunchConfig {
                grid: (blocks, 1, 1),
                block: (hip.threads, 1, 1),
                shared_bytes: 0,
            };
            {
                let args: [&dyn hip::KernelArg; 7] = [
                    &hip.power.on(stream)?,
                    &hip.candidates.on_mut(stream)?,
                    &hip.means.on_mut(stream)?,
                    &delays,
                    &whole,
                    &beams,
                    &count,
                ];
                // SAFETY: the arguments are of the kernel's types, and it gets a block for each beam, whose threads are
                // a power of two up to `THREADS`. `power` holds `delays` values for each beam, `means` one, `candidates` `count`.
                unsafe { hip.beam_peaks.launch(stream, blocks(beams), &args) }?;
            }
            let args: [&dyn hip::KernelArg; 8] = [
                &hip.power.on(stream)?,
                &hip.candidates.on(stream)?,
                &hip.means.on(stream)?,
                &hip.peaks.on_mut(stream)?,
                &hip.noise.on_mut(stream)?,
                &delays,
                &beams,
                &count,
            ];
            // SAFETY: as above, with one block; `peaks` holds `count` records, `noise` one number, and the delays of
            // the candidates come from the kernel before, which leaves out the first and the last.
            unsafe { hip.best_peaks.launch(stream, blocks(1), &args) }?;
            Ok(())
        })
    }

    /// What the last batch gave.
    ///
    /// # Errors
    /// HIP's error.
    pub fn found(&self) -> Result<Found> {
        let stream = &self.sides.stream;
        let mut peaks = vec![Peak::zeroed(); self.hip.peaks.len()];
        let mut noise = [0.0];
        self.meter.count_as(Category::Result, || {
            self.hip.peaks.copy_to_slice(stream, &mut peaks)?;
            self.hip.noise.copy_to_slice(stream, &mut noise)
        })?;
        peaks.retain(|peak| peak.power > 0.0);
        let [noise] = noise;
        Ok(Found { peaks, noise })
    }

    /// The power map of the last batch, `[beam][delay]`.
    ///
    /// # Errors
    /// HIP's error.
    pub fn map(&self) -> Result<Vec<f32>> {
        let mut map = vec![0.0; self.hip.power.len()];
        let (power, stream) = (&self.hip.power, &self.sides.stream);
        self.meter
            .count_as(Category::Result, || power.copy_to_slice(stream, &mut map))?;
        Ok(map)
    }

    /// The samples of the last batch, `[block][channel][sample]`.
    ///
    /// # Errors
    /// The API's error.
    pub fn samples(&self) -> Result<Vec<C32>> {
        let mut samples = vec![C32::ZERO; self.shape.batch()];
        self.opencl.samples.download(&mut samples)?;
        Ok(samples)
    }
}

impl OpenCl {
    fn new(bridge: &Bridge, sides: &Sides, shape: &Shape, skew: &[f64]) -> Result<Self> {
        if skew.len() != shape.channels {
            return Err(Error::input(format!(
                "there are {} delays for {} channels; give one for each",
                skew.len(),
                shape.channels
            )));
        }
        let program = sides.program(bridge, include_str!("../../../kernels/radar.cl"))?;
        let (padded, rows) = (shape.padded(), shape.blocks * shape.channels);
        let whole: Vec<i32> = skew.iter().map(|skew| skew.floor() as i32).collect();
        let fraction: Vec<f32> = skew.iter().map(|skew| (skew - skew.floor()) as f32).collect();
        let shared = |values: &[f32]| -> Result<Shared<f32>> {
            let mut memory = bridge.alloc(values.len())?;
            memory.upload(values)?;
            Ok(memory)
        };
        let mut all = Self {
            align: program.kernel("align")?,
            compress: program.kernel("compress")?,
            forward: sides.fft(bridge, padded, rows, Direction::Forward)?,
            inverse: sides.fft(bridge, padded, rows, Direction::Inverse)?,
            samples: bridge.alloc(shape.batch())?,
            taper: shared(&shape.taper())?,
            whole: bridge.alloc(whole.len())?,
            fraction: shared(&fraction)?,
            filter: bridge.alloc(padded)?,
        };
        all.whole.upload(&whole)?;
        all.filter.upload(&filter(shape))?;
        Ok(all)
    }
}

impl Hip {
    fn new(bridge: &Bridge, stream: &hip::Stream, shape: &Shape, peaks: usize) -> Result<Self> {
        let device = bridge.hip_device();
        let module = hip::rtc::Program::new(include_str!("../../../kernels/radar.hip"))
            .name("radar.hip")
            .compile(device)?;
        Ok(Self {
            threads: match bridge.report().platform.facts().is_model {
                true => MODEL_THREADS,
                false => THREADS,
            },
            mean_power: module.function("mean_power")?,
            beam_peaks: module.function("beam_peaks")?,
            best_peaks: module.function("best_peaks")?,
            weights: device.alloc_from(stream, &weights(shape))?,
            beams: device.alloc(shape.blocks * shape.cells())?,
            power: device.alloc(shape.cells())?,
            candidates: device.alloc(shape.beams * peaks)?,
            means: device.alloc(shape.beams)?,
            peaks: device.alloc(peaks)?,
            noise: device.alloc(1)?,
        })
    }
}

/// Conjugate spectrum of the weighted replica, over its gain and the length of the transforms, which do not scale.
fn filter(shape: &Shape) -> Vec<C32> {
    let padded = shape.padded();
    let mut replica: Vec<C64> = (0..shape.pulse)
        .map(|n| shape.chirp(n as f64) * shape.replica_weight(n))
        .collect();
    replica.resize(padded, C64::default());
    FftPlanner::new().plan_fft_forward(padded).process(&mut replica);
    let scale = 1.0 / (shape.gain() * padded as f64);
    replica
        .into_iter()
        .map(|x| C32::new((x.re * scale) as f32, (-x.im * scale) as f32))
        .collect()
}

/// Weights of the beams, channels x beams, column-major.
fn weights(shape: &Shape) -> Vec<C32> {
    (0..shape.beams)
        .flat_map(|beam| {
            let sine = shape.sine(beam as f64);
            (0..shape.channels).map(move |channel| (channel, sine))
        })
        .map(|(channel, sine)| {
            let weight = C64::from_polar(shape.channel_weight(channel), -PI * channel as f64 * sine);
            C32::new(weight.re as f32, weight.im as f32)
        })
        .collect()
}

fn bytes<T>(len: usize) -> u64 {
    (len * size_of::<T>()) as u64
}
