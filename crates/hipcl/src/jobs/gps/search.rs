//! The search on the devices: OpenCL makes the correlations, HIP works on the same bytes.

use std::ops::Range;
use std::rc::Rc;

use bytemuck::{Pod, Zeroable};
use clmgr::NdRange;
use clmgr_fft::Direction;
use hip::{DeviceBuffer, LaunchConfig};
use interop::{Bridge, Category, Residency, Route, Shared};
use platform::Platform;
use rocblas::{Matrix, Op};

use super::ca_code::{self, PRNS};
use super::detect::Peak;
use super::geometry::Geometry;
use crate::jobs::sides::{Fft, Kernel, KernelArg, Sides};
use crate::jobs::stages::{Recorded, Stages};
use crate::jobs::{Ranks, Waits, crossing_bytes};
use crate::outcome::Kernels as Where;
use crate::timing::{ApiName, StageTimer, Work};
use crate::{C32, Error, Result};

/// Threads of a HIP block. `peak_delays` counts on exactly this number.
const THREADS: u32 = 256;
/// Values of a digit of the selection.
const DIGITS: usize = 2048;
/// Threads of the block that selects one of them, on which `select_digit` counts.
const SELECTORS: u32 = 64;

/// A satellite's peak as the kernels write it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct PeakRecord {
    row: u32,
    delay: u32,
    power: f32,
    earlier: f32,
    later: f32,
    below: f32,
    above: f32,
    median: f32,
}

impl std::fmt::Debug for Search<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search").finish_non_exhaustive()
    }
}

/// A search with everything it needs allocated and compiled; one serves any number of signals.
pub struct Search<'a> {
    geometry: Geometry,
    /// The satellites of this process, as indices from 0.
    codes: Range<usize>,
    /// Among which the satellites are divided.
    ranks: Option<&'a Ranks>,
    meter: interop::Meter,
    sides: Sides,
    /// Shared with the closure that records its calls.
    blas: Rc<rocblas::Handle>,
    opencl: OpenCl,
    /// `[prn][coarse Doppler][block][delay]`: written by OpenCL, read by HIP.
    correlations: Shared<C32>,
    hip: Hip,
    /// What makes the noise power of a sub-interval 1 and undoes the gain of the two transforms.
    scale: f32,
}

struct OpenCl {
    wipe_off: Kernel,
    product: Kernel,
    forward: Fft,
    inverse: Fft,
    samples: Shared<C32>,
    steps: Shared<u64>,
    /// `[coarse Doppler][block][sample or frequency]`.
    baseband: Shared<C32>,
    /// `[prn][frequency]`.
    codes: Shared<C32>,
}

struct Hip {
    kernels: Kernels,
    /// Sub-intervals that one product takes.
    together: usize,
    /// Blocks of a sub-interval x fine Doppler bins, for each of these sub-intervals on the diagonal.
    steering: DeviceBuffer<C32>,
    /// `[prn][coarse Doppler][sub-interval][fine Doppler][delay]`.
    fine: DeviceBuffer<C32>,
    /// `[prn][row][delay]`.
    power: DeviceBuffer<f32>,
    best: DeviceBuffer<f32>,
    best_row: DeviceBuffer<u32>,
    peaks: DeviceBuffer<PeakRecord>,
    selections: DeviceBuffer<[u32; 2]>,
    histograms: DeviceBuffer<u32>,
    counting: Counting,
}

/// How the digits of one satellite's powers are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counting {
    /// Blocks that share a satellite: few, because each adds its whole histogram.
    chunks: u32,
    threads: u32,
    /// Histograms of a block.
    copies: u32,
}

impl Counting {
    /// For a device with so many compute units, all of them busy.
    fn new(is_model: bool, units: u32) -> Self {
        match is_model {
            // its threads take turns: none waits for another's histogram
            true => Self {
                chunks: 16,
                threads: 64,
                copies: 1,
            },
            // as many threads as a unit of an H200 holds: four of these blocks
            false => Self {
                chunks: (4 * units).div_ceil(PRNS as u32).max(1),
                threads: 512,
                copies: 4,
            },
        }
    }
}

struct Kernels {
    power: hip::Function,
    peak_rows: hip::Function,
    peak_delays: hip::Function,
    select_begin: hip::Function,
    count_digits: hip::Function,
    select_digit: hip::Function,
}

impl<'a> Search<'a> {
    /// Allocates, compiles, and transforms the codes. OpenCL's kernels are launched where `kernels` says.
    ///
    /// # Errors
    /// [`Error::Input`] if the devices cannot hold a search of this size, [`interop::Error::NoStreamProgram`] if HIP
    /// cannot launch OpenCL's kernels, else the APIs' errors.
    pub fn new(bridge: &Bridge, geometry: &Geometry, kernels: Where) -> Result<Self> {
        Self::as_for(bridge.report().platform, bridge, geometry, kernels, None)
    }

    /// As [`new`](Self::new), with the shapes of products and launches that suit `platform`, whichever the bridge's is:
    /// the same results. With `ranks`, this process searches its share of the satellites, and all get the peaks of all.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if there are more processes than satellites.
    pub fn as_for(
        platform: Platform,
        bridge: &Bridge,
        geometry: &Geometry,
        kernels: Where,
        ranks: Option<&'a Ranks>,
    ) -> Result<Self> {
        let codes = match ranks {
            Some(ranks) => ranks.share(PRNS, "satellites", "there are no more")?,
            None => 0..PRNS,
        };
        let correlations = codes.len() * geometry.correlations_of_one();
        let bytes = correlations * size_of::<C32>();
        let most = bridge.cl_device().max_alloc_bytes();
        if bytes as u64 > most || i32::try_from(geometry.cells()).is_err() {
            return Err(Error::input(format!(
                "the correlations need {bytes} bytes, but the largest buffer of the OpenCL device has {most}; use fewer --blocks, a larger --doppler-step or a smaller --doppler-max"
            )));
        }
        let meter = bridge.meter();
        let sides = Sides::new(bridge, kernels)?;
        Ok(Self {
            meter: meter.clone(),
            blas: Rc::new(rocblas::Handle::new(&bridge.blas()?, &sides.stream)?),
            opencl: meter.count_as(Category::Input, || OpenCl::new(bridge, geometry, &codes, &sides))?,
            correlations: bridge.alloc(correlations)?,
            hip: meter.count_as(Category::Input, || {
                Hip::new(platform, bridge, geometry, codes.len(), &sides.stream)
            })?,
            codes,
            ranks,
            sides,
            geometry: geometry.clone(),
            scale: 0.0,
        })
    }

    /// What is searched.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Route of the correlations.
    pub fn route(&self) -> Route {
        self.correlations.route()
    }

    /// Where the correlations live.
    pub fn residency(&self) -> Residency {
        self.correlations.residency()
    }

    /// Bytes that one [`run`](Self::run) has to copy because of the route: on a copying one, the correlations from
    /// OpenCL to the host and from there to HIP. On one stream they stay with HIP.
    pub fn expected_copies_bytes(&self) -> u64 {
        match self.sides.queue {
            Some(_) => crossing_bytes(&self.correlations),
            None => 0,
        }
    }

    /// Takes the samples of the next search.
    ///
    /// # Errors
    /// If there are not as many as the geometry needs, or they have no power; else OpenCL's error.
    pub fn load(&mut self, samples: &[C32]) -> Result<()> {
        let power = samples.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>() / samples.len() as f64;
        if samples.len() != self.geometry.samples() || !(power > 0.0 && power.is_finite()) {
            return Err(Error::input(format!(
                "a search needs {} samples with a finite power above 0, not {} of power {power}",
                self.geometry.samples(),
                samples.len()
            )));
        }
        let block = self.geometry.block() as f64;
        self.scale = (1.0 / (block * (power * block * self.geometry.sub() as f64).sqrt())) as f32;
        Ok(self.opencl.samples.upload(samples)?)
    }

    /// One search. With two sides the host must wait after each stage.
    ///
    /// # Errors
    /// The APIs' errors.
    pub fn run(&mut self, timer: &mut StageTimer, waits: Waits) -> Result<()> {
        let sides = self.sides.clone();
        Stages::timed(timer, &sides, waits, |stages| self.queue(stages))
    }

    /// Takes the samples, and a graph of the search in them, for [`replay`](Self::replay).
    pub(super) fn record(&mut self, samples: &[C32]) -> Result<Recorded> {
        // What is loaded or allocated on first use cannot be recorded, so a search comes first: in silence, so what is
        // found later is the graph's own.
        self.opencl.samples.upload(&vec![C32::ZERO; samples.len()])?;
        self.run(&mut StageTimer::new(1, 0), Waits::Iteration)?;
        self.load(samples)?;
        // The stream comes after the upload before it is recorded: a graph holds no order among streams.
        drop(self.opencl.samples.hip(&self.sides.stream)?);
        let (sides, blas) = (self.sides.clone(), Rc::clone(&self.blas));
        Stages::record(&sides, Some(&blas), |stages| self.queue(stages))
    }

    /// One search by the graph.
    pub(super) fn replay(&mut self, timer: &mut StageTimer, recorded: &Recorded) -> Result<()> {
        let Self {
            sides,
            opencl,
            correlations,
            hip,
            ..
        } = self;
        let stream = &sides.stream;
        let launch = || {
            let (samples, steps) = (opencl.samples.hip(stream)?, opencl.steps.hip(stream)?);
            let codes = opencl.codes.hip(stream)?;
            let mut baseband = opencl.baseband.hip_mut(stream)?;
            let mut correlations = correlations.hip_mut(stream)?;
            let slices: [&dyn hip::KernelArg; 13] = [
                &samples.slice(),
                &steps.slice(),
                &codes.slice(),
                &baseband.slice_mut(),
                &correlations.slice_mut(),
                &hip.steering.on(stream)?,
                &hip.fine.on_mut(stream)?,
                &hip.power.on_mut(stream)?,
                &hip.best.on_mut(stream)?,
                &hip.best_row.on_mut(stream)?,
                &hip.peaks.on_mut(stream)?,
                &hip.selections.on_mut(stream)?,
                &hip.histograms.on_mut(stream)?,
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
        self.correlate(stages)?;
        self.fine_doppler(stages)?;
        self.peaks_and_medians(stages)?;
        self.gather(stages)
    }

    /// RCCL: the peaks of all satellites from those of each process's.
    fn gather(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let Some(ranks) = self.ranks else { return Ok(()) };
        let (hip, stream) = (&mut self.hip, &self.sides.stream);
        let traffic = 2 * bytes::<PeakRecord>(PRNS);
        stages.stage("peaks of all ranks", ApiName::Hip, traffic, || {
            let records = hip.peaks.on_mut(stream)?.cast::<u32>()?;
            ranks.all_gather(records, PRNS, stream)
        })
    }

    /// OpenCL: samples to correlations.
    fn correlate(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let Self {
            geometry,
            codes: satellites,
            sides,
            opencl,
            correlations,
            scale,
            ..
        } = self;
        let OpenCl {
            wipe_off,
            product,
            forward,
            inverse,
            samples,
            steps,
            baseband,
            codes,
        } = opencl;
        let block = geometry.block();
        let coarse = geometry.coarse_hz().len();
        let baseband_bytes = bytes::<C32>(baseband.len());
        let correlation_bytes = bytes::<C32>(correlations.len());

        stages.stage(
            "wipe-off",
            ApiName::OpenCl,
            bytes::<C32>(samples.len()) + baseband_bytes,
            || {
                let (samples, steps) = (sides.read(samples)?, sides.read(steps)?);
                let mut baseband = sides.write(baseband)?;
                let range = NdRange::d2(geometry.samples(), coarse);
                let args = [samples.arg(), steps.arg(), baseband.arg()];
                // SAFETY: the kernel reads `samples` at its first index, `steps` at its second, and writes `baseband`
                // at second * samples + first; the buffers have these lengths, and the guards give access to them.
                unsafe { wipe_off.launch(sides, range, args) }
            },
        )?;
        stages.stage("fft", ApiName::OpenCl, 2 * baseband_bytes, || {
            // SAFETY: the transforms are of blocks of `block` values, as many as `baseband` holds.
            unsafe { forward.enqueue_in_place(sides, &mut sides.write(baseband)?) }
        })?;
        stages.stage(
            "product",
            ApiName::OpenCl,
            baseband_bytes + bytes::<C32>(codes.len()) + correlation_bytes,
            || {
                let (baseband, codes) = (sides.read(baseband)?, sides.read(codes)?);
                let mut correlations = sides.write(correlations)?;
                let args = [
                    baseband.arg(),
                    codes.arg(),
                    KernelArg::scalar(scale),
                    correlations.arg(),
                ];
                let range = NdRange::d3(block, coarse * geometry.blocks(), satellites.len());
                // SAFETY: the indices run over a block's frequencies, the blocks of `baseband` and the codes; the
                // kernel writes one value for each triple, as many as `correlations` holds, to which the guard gives
                // write access.
                unsafe { product.launch(sides, range, args) }
            },
        )?;
        stages.stage("inverse fft", ApiName::OpenCl, 2 * correlation_bytes, || {
            // SAFETY: the transforms are of blocks of `block` values, as many as the correlations hold.
            unsafe { inverse.enqueue_in_place(sides, &mut sides.write(correlations)?) }
        })
    }

    /// HIP: correlations to the power map.
    fn fine_doppler(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let Self {
            geometry,
            codes,
            sides,
            blas: handle,
            correlations,
            hip,
            ..
        } = self;
        let stream = &sides.stream;
        let (delays, sub, bins) = (geometry.block(), geometry.sub(), geometry.fine_hz().len());
        let segments = codes.len() * geometry.coarse_hz().len();
        let together = hip.together;
        let batches = segments * geometry.sub_intervals() / together;
        let fine_bytes = bytes::<C32>(hip.fine.len());
        // columns of the correlations, of the steering matrix and of what comes out, all without gaps
        let (sub, bins) = (sub * together, bins * together);

        stages.stage(
            "fine doppler",
            ApiName::Hip,
            Work {
                bytes: bytes::<C32>(correlations.len()) + fine_bytes,
                operations: 8 * correlations.len() as u64 * geometry.fine_hz().len() as u64,
            },
            || {
                handle.gemm_strided_batched(
                    Op::None,
                    Op::None,
                    C32::ONE,
                    Matrix::new(&*correlations, delays, sub, delays).batch(delays * sub, batches),
                    Matrix::new(&hip.steering, sub, bins, sub).batch(0, batches),
                    C32::ZERO,
                    Matrix::new(&mut hip.fine, delays, bins, delays).batch(delays * bins, batches),
                )?;
                Ok(())
            },
        )?;
        stages.stage(
            "power",
            ApiName::Hip,
            fine_bytes + bytes::<f32>(hip.power.len()),
            || {
                let length = (geometry.fine_hz().len() * delays) as u32;
                let config = grid(length as usize, segments as u32)?;
                let args: [&dyn hip::KernelArg; 4] = [
                    &hip.fine.on(stream)?,
                    &hip.power.on_mut(stream)?,
                    &length,
                    &(geometry.sub_intervals() as u32),
                ];
                // SAFETY: the grid covers `length` values of each segment, and the kernel leaves out what lies beyond;
                // `fine` holds them for every sub-interval, `power` once.
                unsafe { hip.kernels.power.launch(stream, config, &args)? };
                Ok(())
            },
        )
    }

    /// HIP: each satellite's peak and median.
    fn peaks_and_medians(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let Self {
            geometry,
            codes,
            sides,
            hip,
            ..
        } = self;
        let stream = &sides.stream;
        let delays = geometry.block() as u32;
        let rows = geometry.rows() as u32;
        let cells = geometry.cells() as u32;
        let satellites = codes.len() as u32;
        let map_bytes = bytes::<f32>(hip.power.len());

        stages.stage("peak", ApiName::Hip, map_bytes, || {
            {
                let args: [&dyn hip::KernelArg; 5] = [
                    &hip.power.on(stream)?,
                    &hip.best.on_mut(stream)?,
                    &hip.best_row.on_mut(stream)?,
                    &delays,
                    &rows,
                ];
                // SAFETY: the grid covers the delays of every satellite and the kernel leaves out what lies beyond;
                // `power` holds `rows` x `delays` values a satellite, the other two `delays`.
                unsafe {
                    hip.kernels
                        .peak_rows
                        .launch(stream, grid(delays as usize, satellites)?, &args)?
                };
            }
            let config = LaunchConfig {
                grid: (satellites, 1, 1),
                block: (THREADS, 1, 1),
                shared_bytes: 0,
            };
            let mut peaks = hip.peaks.on_mut(stream)?;
            let args: [&dyn hip::KernelArg; 6] = [
                &hip.power.on(stream)?,
                &hip.best.on(stream)?,
                &hip.best_row.on(stream)?,
                &peaks.slice_mut(codes.clone())?,
                &delays,
                &rows,
            ];
            // SAFETY: one block of the size the kernel is written for a satellite; the buffers are as above, the slice
            // of `peaks` holds a record a satellite, and rows and delays in them come from the kernel before.
            unsafe { hip.kernels.peak_delays.launch(stream, config, &args)? };
            Ok(())
        })?;

        stages.stage("median", ApiName::Hip, 3 * map_bytes, || {
            let per_satellite = LaunchConfig {
                grid: (satellites, 1, 1),
                block: (SELECTORS, 1, 1),
                shared_bytes: 0,
            };
            let Counting {
                chunks,
                threads,
                copies,
            } = hip.counting;
            {
                let args: [&dyn hip::KernelArg; 4] = [
                    &hip.selections.on_mut(stream)?,
                    &hip.histograms.on_mut(stream)?,
                    &satellites,
                    &(cells / 2),
                ];
                // SAFETY: `histograms` holds a histogram a satellite, which the grid covers; `selections` an entry a
                // satellite.
                unsafe {
                    hip.kernels.select_begin.launch(
                        stream,
                        LaunchConfig::linear(codes.len() * DIGITS, THREADS)?,
                        &args,
                    )?
                };
            }
            for (shift, fixed) in [(21u32, 0u32), (10, 0xffe0_0000), (0, 0xffff_fc00)] {
                {
                    let config = LaunchConfig {
                        grid: (chunks, satellites, 1),
                        block: (threads, 1, 1),
                        shared_bytes: 0,
                    };
                    let args: [&dyn hip::KernelArg; 7] = [
                        &hip.power.on(stream)?,
                        &hip.selections.on(stream)?,
                        &hip.histograms.on_mut(stream)?,
                        &cells,
                        &shift,
                        &fixed,
                        &copies,
                    ];
                    // SAFETY: the kernel reads `cells` powers a satellite, which is what `power` holds, and adds to one
                    // histogram a satellite; a digit is below the histogram's length.
                    unsafe { hip.kernels.count_digits.launch(stream, config, &args)? };
                }
                let mut peaks = hip.peaks.on_mut(stream)?;
                let args: [&dyn hip::KernelArg; 4] = [
                    &hip.selections.on_mut(stream)?,
                    &hip.histograms.on_mut(stream)?,
                    &peaks.slice_mut(codes.clone())?,
                    &shift,
                ];
                // SAFETY: one block of the size the kernel is written for a satellite, and one selection, histogram and
                // peak each.
                unsafe { hip.kernels.select_digit.launch(stream, per_satellite, &args)? };
            }
            Ok(())
        })
    }

    /// The peaks of the last run, PRN 1 first: of all satellites, also where each process searches a share of them.
    ///
    /// # Errors
    /// HIP's error.
    pub fn peaks(&self) -> Result<Vec<Peak>> {
        let mut records = vec![PeakRecord::zeroed(); PRNS];
        let (peaks, stream) = (&self.hip.peaks, &self.sides.stream);
        self.meter
            .count_as(Category::Result, || peaks.copy_to_slice(stream, &mut records))?;
        let last = self.geometry.rows() as u32 - 1;
        Ok(records
            .into_iter()
            .map(|record| Peak {
                row: record.row as usize,
                delay: record.delay as usize,
                power: record.power,
                beside: [record.earlier, record.later],
                around: [
                    (record.row > 0).then_some(record.below),
                    (record.row < last).then_some(record.above),
                ],
                median: record.median,
            })
            .collect())
    }

    /// The power map of the last run, `[prn][row][delay]`, in units of the power that one sub-interval had if all of
    /// the signal were noise: of all satellites, also where each process searches a share of them.
    ///
    /// # Errors
    /// HIP's error.
    pub fn power_map(&self) -> Result<Vec<f32>> {
        let (power, stream) = (&self.hip.power, &self.sides.stream);
        let mut map = vec![0.0; PRNS * self.geometry.cells()];
        self.meter.count_as(Category::Result, || {
            let Some(ranks) = self.ranks else {
                return Ok(power.copy_to_slice(stream, &mut map)?);
            };
            let mut all = ranks.communicator().device().alloc::<f32>(map.len())?;
            let begin = self.codes.start * self.geometry.cells();
            all.on_mut(stream)?
                .slice_mut(begin..begin + power.len())?
                .copy_from(power.on(stream)?)?;
            ranks.all_gather(&mut all, PRNS, stream)?;
            ranks.communicator().wait(stream)?;
            Ok::<_, Error>(all.copy_to_slice(stream, &mut map)?)
        })?;
        Ok(map)
    }
}

impl OpenCl {
    fn new(bridge: &Bridge, geometry: &Geometry, satellites: &Range<usize>, sides: &Sides) -> Result<Self> {
        let block = geometry.block();
        let coarse_hz = geometry.coarse_hz();
        let program = sides.program(bridge, include_str!("../../../kernels/gps.cl"))?;
        let fft = |batch, direction| sides.fft(bridge, block, batch, direction);

        let steps: Vec<u64> = coarse_hz.iter().map(|hz| phase_step(hz / geometry.rate_hz())).collect();
        let mut steps_buffer: Shared<u64> = bridge.alloc(steps.len())?;
        steps_buffer.upload(&steps)?;

        let replicas: Vec<C32> = satellites
            .clone()
            .filter_map(|index| ca_code::sampled(index as u8 + 1, block))
            .flatten()
            .map(C32::from)
            .collect();
        let mut codes: Shared<C32> = bridge.alloc(replicas.len())?;
        codes.upload(&replicas)?;
        let transform = fft(satellites.len(), Direction::Forward)?;
        // SAFETY: the transforms are as many as `codes` holds.
        unsafe { transform.enqueue_in_place(sides, &mut sides.write(&mut codes)?) }?;
        sides.wait(ApiName::OpenCl)?;

        Ok(Self {
            wipe_off: program.kernel("wipe_off")?,
            product: program.kernel("product")?,
            forward: fft(coarse_hz.len() * geometry.blocks(), Direction::Forward)?,
            inverse: fft(
                satellites.len() * coarse_hz.len() * geometry.blocks(),
                Direction::Inverse,
            )?,
            samples: bridge.alloc(geometry.samples())?,
            baseband: bridge.alloc(coarse_hz.len() * geometry.samples())?,
            steps: steps_buffer,
            codes,
        })
    }
}

impl Hip {
    fn new(
        platform: Platform,
        bridge: &Bridge,
        geometry: &Geometry,
        satellites: usize,
        stream: &hip::Stream,
    ) -> Result<Self> {
        let device = bridge.hip_device();
        let module = hip::rtc::Program::new(include_str!("../../../kernels/gps.hip"))
            .name("gps.hip")
            .compile(device)?;
        let map = satellites * geometry.cells();
        let together = together(platform.facts().is_model, geometry, satellites);
        Ok(Self {
            kernels: Kernels {
                power: module.function("power")?,
                peak_rows: module.function("peak_rows")?,
                peak_delays: module.function("peak_delays")?,
                select_begin: module.function("select_begin")?,
                count_digits: module.function("count_digits")?,
                select_digit: module.function("select_digit")?,
            },
            together,
            steering: device.alloc_from(stream, &on_diagonal(&steering(geometry), geometry, together))?,
            fine: device.alloc(map * geometry.sub_intervals())?,
            power: device.alloc(map)?,
            best: device.alloc(satellites * geometry.block())?,
            best_row: device.alloc(satellites * geometry.block())?,
            peaks: device.alloc(PRNS)?,
            selections: device.alloc(satellites)?,
            histograms: device.alloc(satellites * DIGITS)?,
            counting: Counting::new(platform.facts().is_model, device.compute_units()?),
        })
    }
}

/// Phase advance of one sample in units of 2^-64 cycles.
fn phase_step(cycles: f64) -> u64 {
    // a fraction that rounds up to 1 saturates, which is 2^-64 cycles off
    (cycles.rem_euclid(1.0) * 2f64.powi(64)) as u64
}

/// Steering matrix, blocks of a sub-interval x fine bins, column-major. The wipe-off's phase runs on across blocks, so
/// what is left of a satellite turns by its distance from the coarse bin times 1 ms a block; a sub-interval's own start
/// only turns all of its sum.
fn steering(geometry: &Geometry) -> Vec<C32> {
    geometry
        .fine_hz()
        .iter()
        .flat_map(|hz| {
            (0..geometry.sub()).map(move |block| {
                let (sin, cos) = (-std::f64::consts::TAU * hz * 1e-3 * block as f64).sin_cos();
                C32::new(cos as f32, sin as f32)
            })
        })
        .collect()
}

/// How many sub-intervals one product takes, each with zeros for the others: a card's libraries compute tiles of 32
/// columns and more, and with the few columns of one sub-interval they spend their time on beginning and ending. The
/// software device computes exactly what it gets.
fn together(is_model: bool, geometry: &Geometry, satellites: usize) -> usize {
    const TILE: usize = 32;
    let columns = geometry.sub().max(geometry.fine_hz().len());
    let most = match is_model {
        true => 1,
        false => (TILE / columns).max(1),
    };
    let all = satellites * geometry.coarse_hz().len() * geometry.sub_intervals();
    // there is always 1
    (1..=most).rev().find(|&count| all.is_multiple_of(count)).unwrap_or(1)
}

/// The steering matrix on the diagonal of one for `together` sub-intervals.
fn on_diagonal(steering: &[C32], geometry: &Geometry, together: usize) -> Vec<C32> {
    let (sub, bins) = (geometry.sub(), geometry.fine_hz().len());
    let mut all = vec![C32::ZERO; steering.len() * together * together];
    for (column, values) in (0..together * bins).zip(steering.chunks(sub).cycle()) {
        let from = column * sub * together + column / bins * sub;
        all[from..from + sub].copy_from_slice(values);
    }
    all
}

/// A grid over `items` values in x and `lines` lines in y.
fn grid(items: usize, lines: u32) -> Result<LaunchConfig> {
    let mut config = LaunchConfig::linear(items, THREADS)?;
    config.grid.1 = lines;
    Ok(config)
}

fn bytes<T>(len: usize) -> u64 {
    (len * size_of::<T>()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(blocks: usize, sub: usize) -> Geometry {
        Geometry::new(&super::super::geometry::Parameters {
            rate_hz: 4e6,
            doppler_max_hz: 5000.0,
            doppler_step_hz: 500.0,
            blocks,
            sub,
        })
        .unwrap()
    }

    #[test]
    fn sub_intervals_go_together_as_a_tile_takes_them() {
        assert_eq!(together(false, &geometry(10, 5), PRNS), 6);
        assert_eq!(together(false, &geometry(20, 10), PRNS), 3);
        assert_eq!(together(false, &geometry(40, 20), PRNS), 1);
        assert_eq!(together(true, &geometry(10, 5), PRNS), 1);
    }

    #[test]
    fn each_of_several_sub_intervals_has_its_steering_matrix() {
        let geometry = geometry(8, 4);
        let one = steering(&geometry);
        let (sub, bins) = (4, geometry.fine_hz().len());
        assert_eq!(on_diagonal(&one, &geometry, 1), one);
        let all = on_diagonal(&one, &geometry, 3);
        for (column, row) in (0..3 * bins).flat_map(|column| (0..3 * sub).map(move |row| (column, row))) {
            let here = row / sub == column / bins;
            let wanted = if here {
                one[row % sub + column % bins * sub]
            } else {
                C32::ZERO
            };
            assert_eq!(all[row + column * 3 * sub], wanted, "({row}, {column})");
        }
    }

    #[test]
    fn the_digits_are_counted_by_every_unit_of_a_card() {
        for units in [1, 80, 120, 132] {
            let Counting {
                chunks,
                threads,
                copies,
            } = Counting::new(false, units);
            assert!(chunks * PRNS as u32 >= 4 * units && chunks < units.max(2));
            // what the kernel has room for
            assert!(threads <= 1024 && copies <= 4);
        }
    }

    #[test]
    fn phase_steps_of_opposite_frequencies_cancel() {
        assert_eq!(phase_step(0.25), 1 << 62);
        assert_eq!(phase_step(-0.25).wrapping_add(phase_step(0.25)), 0);
        assert_eq!(phase_step(3.0), 0);
    }
}
