//! The search on the devices: OpenCL makes the correlations, HIP works on the same bytes.

use bytemuck::{Pod, Zeroable};
use clmgr::{Arg, NdRange, RegularBuffer, fft};
use hip::{DeviceBuffer, LaunchConfig};
use interop::blas::{self, Batch};
use interop::{Bridge, Category, Residency, Route, Shared};
use rocblas::Op;

use super::ca_code::{self, PRNS};
use super::detect::Peak;
use super::geometry::Geometry;
use crate::presets::crossing_bytes;
use crate::timing::{ApiName, StageTimer};
use crate::{C32, Error, Result};

/// Threads of a HIP block. `peak_delays` counts on exactly this number.
const THREADS: u32 = 256;
/// Blocks that count the digits of one satellite's powers together, and their threads: few, because each block adds its whole histogram.
const CHUNKS: u32 = 16;
const CHUNK_THREADS: u32 = 64;
/// Values of a digit of the selection.
const DIGITS: usize = 2048;

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

/// A search with everything it needs allocated and compiled; one serves any number of signals.
pub struct Search {
    geometry: Geometry,
    meter: interop::Meter,
    opencl: OpenCl,
    /// `[prn][coarse Doppler][block][delay]`: written by OpenCL, read by HIP.
    correlations: Shared<C32>,
    hip: Hip,
    /// What makes the noise power of a sub-interval 1 and undoes the gain of the two transforms.
    scale: f32,
}

struct OpenCl {
    queue: clmgr::Queue,
    wipe_off: clmgr::Kernel,
    product: clmgr::Kernel,
    forward: fft::Plan,
    inverse: fft::Plan,
    samples: RegularBuffer<C32>,
    steps: RegularBuffer<u64>,
    /// `[coarse Doppler][block][sample or frequency]`.
    baseband: RegularBuffer<C32>,
    /// `[prn][frequency]`.
    codes: RegularBuffer<C32>,
}

struct Hip {
    stream: hip::Stream,
    blas: rocblas::Handle,
    kernels: Kernels,
    /// Blocks of a sub-interval x fine Doppler bins.
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
}

struct Kernels {
    power: hip::Function,
    peak_rows: hip::Function,
    peak_delays: hip::Function,
    select_begin: hip::Function,
    count_digits: hip::Function,
    select_digit: hip::Function,
}

impl Search {
    /// Allocates, compiles, and transforms the codes.
    ///
    /// # Errors
    /// [`Error::Input`] if the devices can't hold a search of this size, else what the APIs say.
    pub fn new(bridge: &Bridge, geometry: &Geometry) -> Result<Self> {
        let bytes = geometry.correlations() * size_of::<C32>();
        let most = bridge.cl_device().max_alloc_bytes();
        if bytes as u64 > most || i32::try_from(geometry.cells()).is_err() {
            return Err(Error::input(format!(
                "the correlations take {bytes} bytes, the OpenCL device's largest buffer has {most}: give fewer --blocks, a larger --doppler-step or a smaller --doppler-max"
            )));
        }
        let meter = bridge.meter();
        Ok(Self {
            meter: meter.clone(),
            opencl: meter.count_as(Category::Input, || OpenCl::new(bridge, geometry))?,
            correlations: bridge.alloc(geometry.correlations())?,
            hip: meter.count_as(Category::Input, || Hip::new(bridge, geometry))?,
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

    /// Bytes that one [`run`](Self::run) has to copy because of the route: on a copying one, the correlations from OpenCL to the host
    /// and from there to HIP.
    pub fn expected_copies_bytes(&self) -> u64 {
        crossing_bytes(&self.correlations)
    }

    /// Takes the samples of the next search.
    ///
    /// # Errors
    /// If there are not as many as the geometry needs, or they have no power; else what OpenCL says.
    pub fn load(&mut self, samples: &[C32]) -> Result<()> {
        let power =
            samples.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>() / samples.len() as f64;
        if samples.len() != self.geometry.samples() || !(power > 0.0 && power.is_finite()) {
            return Err(Error::input(format!(
                "a search takes {} samples with a finite power above 0, not {} of power {power}",
                self.geometry.samples(),
                samples.len()
            )));
        }
        let block = self.geometry.block() as f64;
        self.scale = (1.0 / (block * (power * block * self.geometry.sub() as f64).sqrt())) as f32;
        let opencl = &mut self.opencl;
        self.meter.count_as(Category::Input, || {
            opencl.samples.write(&opencl.queue, samples)
        })?;
        Ok(())
    }

    /// One search, stage by stage.
    ///
    /// # Errors
    /// What the APIs say.
    pub fn run(&mut self, timer: &mut StageTimer) -> Result<()> {
        self.correlate(timer)?;
        self.fine_doppler(timer)?;
        self.peaks_and_medians(timer)
    }

    /// OpenCL: samples to correlations.
    fn correlate(&mut self, timer: &mut StageTimer) -> Result<()> {
        let Self {
            geometry,
            opencl,
            correlations,
            scale,
            ..
        } = self;
        let OpenCl {
            queue,
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

        timer.stage(
            "wipe-off",
            ApiName::OpenCl,
            bytes::<C32>(samples.len()) + baseband_bytes,
            || {
                let range = NdRange::d2(geometry.samples(), coarse);
                // SAFETY: the kernel reads `samples` at its first index, `steps` at its second, and writes `baseband` at
                // second * samples + first; the buffers have these lengths, belong to `self`, and only this in-order queue uses them.
                unsafe {
                    wipe_off.launch(queue, range, &[samples.arg(), steps.arg(), baseband.arg()])?
                };
                Ok(queue.finish()?)
            },
        )?;
        timer.stage("fft", ApiName::OpenCl, 2 * baseband_bytes, || {
            // SAFETY: the plan is for blocks of `block` values, as many as `baseband` holds; only this queue uses it.
            unsafe {
                forward.enqueue(
                    queue,
                    fft::Direction::Forward,
                    baseband.arg(),
                    baseband.arg(),
                )?
            };
            Ok(queue.finish()?)
        })?;
        timer.stage(
            "product",
            ApiName::OpenCl,
            baseband_bytes + bytes::<C32>(codes.len()) + correlation_bytes,
            || {
                let correlations = correlations.cl_mut(queue)?;
                let args = [
                    baseband.arg(),
                    codes.arg(),
                    Arg::scalar(scale),
                    correlations.arg(),
                ];
                let range = NdRange::d3(block, coarse * geometry.blocks(), PRNS);
                // SAFETY: the indices run over a block's frequencies, the blocks of `baseband` and the codes; the kernel writes one value
                // for each triple, as many as `correlations` holds, to which the guard gives write access on this queue.
                unsafe { product.launch(queue, range, &args)? };
                Ok(queue.finish()?)
            },
        )?;
        timer.stage(
            "inverse fft",
            ApiName::OpenCl,
            2 * correlation_bytes,
            || {
                let correlations = correlations.cl_mut(queue)?;
                // SAFETY: the plan is for blocks of `block` values, as many as the correlations hold; the guard gives write access.
                unsafe {
                    inverse.enqueue(
                        queue,
                        fft::Direction::Inverse,
                        correlations.arg(),
                        correlations.arg(),
                    )?
                };
                Ok(queue.finish()?)
            },
        )
    }

    /// HIP: correlations to the power map.
    fn fine_doppler(&mut self, timer: &mut StageTimer) -> Result<()> {
        let Self {
            geometry,
            correlations,
            hip,
            ..
        } = self;
        let (delays, sub, bins) = (geometry.block(), geometry.sub(), geometry.fine_hz().len());
        let segments = PRNS * geometry.coarse_hz().len();
        let batches = segments * geometry.sub_intervals();
        let fine_bytes = bytes::<C32>(hip.fine.len());

        timer.stage(
            "fine doppler",
            ApiName::Hip,
            bytes::<C32>(correlations.len()) + fine_bytes,
            || {
                blas::gemm_strided_batched(
                    &hip.blas,
                    Op::None,
                    Op::None,
                    C32::ONE,
                    Batch::new(&*correlations, delays, sub, delays, delays * sub, batches),
                    Batch::new(&hip.steering, sub, bins, sub, 0, batches),
                    C32::ZERO,
                    Batch::new(&mut hip.fine, delays, bins, delays, delays * bins, batches),
                )?;
                Ok(hip.stream.synchronize()?)
            },
        )?;
        timer.stage(
            "power",
            ApiName::Hip,
            fine_bytes + bytes::<f32>(hip.power.len()),
            || {
                let stream = &hip.stream;
                let length = (bins * delays) as u32;
                let config = grid(length as usize, segments as u32)?;
                let args: [&dyn hip::KernelArg; 4] = [
                    &hip.fine.on(stream)?,
                    &hip.power.on_mut(stream)?,
                    &length,
                    &(geometry.sub_intervals() as u32),
                ];
                // SAFETY: the grid covers `length` values of each segment, and the kernel leaves out what lies beyond; `fine` holds them for
                // every sub-interval, `power` once.
                unsafe { hip.kernels.power.launch(stream, config, &args)? };
                Ok(stream.synchronize()?)
            },
        )
    }

    /// HIP: each satellite's peak and median.
    fn peaks_and_medians(&mut self, timer: &mut StageTimer) -> Result<()> {
        let Self { geometry, hip, .. } = self;
        let stream = &hip.stream;
        let delays = geometry.block() as u32;
        let rows = geometry.rows() as u32;
        let cells = geometry.cells() as u32;
        let satellites = PRNS as u32;
        let map_bytes = bytes::<f32>(hip.power.len());

        timer.stage("peak", ApiName::Hip, map_bytes, || {
            {
                let args: [&dyn hip::KernelArg; 5] = [
                    &hip.power.on(stream)?,
                    &hip.best.on_mut(stream)?,
                    &hip.best_row.on_mut(stream)?,
                    &delays,
                    &rows,
                ];
                // SAFETY: the grid covers the delays of every satellite and the kernel leaves out what lies beyond; `power` holds
                // `rows` x `delays` values a satellite, the other two `delays`.
                unsafe {
                    hip.kernels.peak_rows.launch(
                        stream,
                        grid(delays as usize, satellites)?,
                        &args,
                    )?
                };
            }
            let config = LaunchConfig {
                grid: (satellites, 1, 1),
                block: (THREADS, 1, 1),
                shared_bytes: 0,
            };
            let args: [&dyn hip::KernelArg; 6] = [
                &hip.power.on(stream)?,
                &hip.best.on(stream)?,
                &hip.best_row.on(stream)?,
                &hip.peaks.on_mut(stream)?,
                &delays,
                &rows,
            ];
            // SAFETY: one block of the size the kernel is written for a satellite; the buffers are as above, `peaks` holds a record a
            // satellite, and rows and delays in them come from the kernel before.
            unsafe { hip.kernels.peak_delays.launch(stream, config, &args)? };
            Ok(stream.synchronize()?)
        })?;

        timer.stage("median", ApiName::Hip, 3 * map_bytes, || {
            let per_satellite = LaunchConfig::linear(PRNS, 32)?;
            {
                let args: [&dyn hip::KernelArg; 4] = [
                    &hip.selections.on_mut(stream)?,
                    &hip.histograms.on_mut(stream)?,
                    &satellites,
                    &(cells / 2),
                ];
                // SAFETY: `histograms` holds a histogram a satellite, which the grid covers; `selections` an entry a satellite.
                unsafe {
                    hip.kernels.select_begin.launch(
                        stream,
                        LaunchConfig::linear(PRNS * DIGITS, THREADS)?,
                        &args,
                    )?
                };
            }
            for (shift, fixed) in [(21u32, 0u32), (10, 0xffe0_0000), (0, 0xffff_fc00)] {
                {
                    let config = LaunchConfig {
                        grid: (CHUNKS, satellites, 1),
                        block: (CHUNK_THREADS, 1, 1),
                        shared_bytes: 0,
                    };
                    let args: [&dyn hip::KernelArg; 6] = [
                        &hip.power.on(stream)?,
                        &hip.selections.on(stream)?,
                        &hip.histograms.on_mut(stream)?,
                        &cells,
                        &shift,
                        &fixed,
                    ];
                    // SAFETY: the kernel reads `cells` powers a satellite, which is what `power` holds, and adds to one histogram a
                    // satellite; a digit is below the histogram's length.
                    unsafe { hip.kernels.count_digits.launch(stream, config, &args)? };
                }
                let args: [&dyn hip::KernelArg; 5] = [
                    &hip.selections.on_mut(stream)?,
                    &hip.histograms.on_mut(stream)?,
                    &hip.peaks.on_mut(stream)?,
                    &satellites,
                    &shift,
                ];
                // SAFETY: the kernel touches one selection, histogram and peak a satellite, and leaves out threads beyond them.
                unsafe {
                    hip.kernels
                        .select_digit
                        .launch(stream, per_satellite, &args)?
                };
            }
            Ok(stream.synchronize()?)
        })
    }

    /// The peaks of the last run, PRN 1 first.
    ///
    /// # Errors
    /// What HIP says.
    pub fn peaks(&self) -> Result<Vec<Peak>> {
        let mut records = vec![PeakRecord::zeroed(); PRNS];
        let Hip { peaks, stream, .. } = &self.hip;
        self.meter.count_as(Category::Result, || {
            peaks.copy_to_slice(stream, &mut records)
        })?;
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

    /// The power map of the last run, `[prn][row][delay]`, in units of the power that one sub-interval had if all of the signal were noise.
    ///
    /// # Errors
    /// What HIP says.
    pub fn power_map(&self) -> Result<Vec<f32>> {
        let Hip { power, stream, .. } = &self.hip;
        let mut map = vec![0.0; power.len()];
        self.meter
            .count_as(Category::Result, || power.copy_to_slice(stream, &mut map))?;
        Ok(map)
    }
}

impl OpenCl {
    fn new(bridge: &Bridge, geometry: &Geometry) -> Result<Self> {
        let context = bridge.cl_context();
        let block = geometry.block();
        let coarse_hz = geometry.coarse_hz();
        let queue = bridge.queue()?;
        let program = bridge
            .programs()
            .get(include_str!("../../../kernels/gps.cl"), "")?;
        let plan = |batch, direction| {
            let plan = fft::Plan::new(context, bridge.programs(), block, batch)?;
            // its tables are written now, not inside a loop whose copies are counted
            plan.prepare(direction)?;
            Ok::<_, Error>(plan)
        };

        let steps: Vec<u64> = coarse_hz
            .iter()
            .map(|hz| phase_step(hz / geometry.rate_hz()))
            .collect();
        let mut steps_buffer = RegularBuffer::new(context, steps.len())?;
        steps_buffer.write(&queue, &steps)?;

        let replicas: Vec<C32> = (1..=PRNS as u8)
            .filter_map(|prn| ca_code::sampled(prn, block))
            .flatten()
            .map(C32::from)
            .collect();
        let mut codes = RegularBuffer::new(context, replicas.len())?;
        codes.write(&queue, &replicas)?;
        // SAFETY: the plan is for as many blocks as `codes` holds, and only this queue uses them.
        unsafe {
            plan(PRNS, fft::Direction::Forward)?.enqueue(
                &queue,
                fft::Direction::Forward,
                codes.arg(),
                codes.arg(),
            )?
        };
        queue.finish()?;

        Ok(Self {
            wipe_off: program.kernel("wipe_off")?,
            product: program.kernel("product")?,
            forward: plan(coarse_hz.len() * geometry.blocks(), fft::Direction::Forward)?,
            inverse: plan(
                PRNS * coarse_hz.len() * geometry.blocks(),
                fft::Direction::Inverse,
            )?,
            samples: RegularBuffer::new(context, geometry.samples())?,
            baseband: RegularBuffer::new(context, coarse_hz.len() * geometry.samples())?,
            steps: steps_buffer,
            codes,
            queue,
        })
    }
}

impl Hip {
    fn new(bridge: &Bridge, geometry: &Geometry) -> Result<Self> {
        let device = bridge.hip_device();
        let stream = bridge.stream()?;
        let module = hip::rtc::Program::new(include_str!("../../../kernels/gps.hip"))
            .name("gps.hip")
            .compile(device)?;
        let map = PRNS * geometry.cells();
        Ok(Self {
            blas: rocblas::Handle::new(&bridge.blas()?, &stream)?,
            kernels: Kernels {
                power: module.function("power")?,
                peak_rows: module.function("peak_rows")?,
                peak_delays: module.function("peak_delays")?,
                select_begin: module.function("select_begin")?,
                count_digits: module.function("count_digits")?,
                select_digit: module.function("select_digit")?,
            },
            steering: device.alloc_from(&stream, &steering(geometry))?,
            fine: device.alloc(map * geometry.sub_intervals())?,
            power: device.alloc(map)?,
            best: device.alloc(PRNS * geometry.block())?,
            best_row: device.alloc(PRNS * geometry.block())?,
            peaks: device.alloc(PRNS)?,
            selections: device.alloc(PRNS)?,
            histograms: device.alloc(PRNS * DIGITS)?,
            stream,
        })
    }
}

/// Phase advance of one sample in units of 2^-64 cycles.
fn phase_step(cycles: f64) -> u64 {
    // a fraction that rounds up to 1 saturates, which is 2^-64 cycles off
    (cycles.rem_euclid(1.0) * 2f64.powi(64)) as u64
}

/// Steering matrix, blocks of a sub-interval x fine bins, column-major. The wipe-off's phase runs on across blocks, so what is left of a
/// satellite turns by its distance from the coarse bin times 1 ms a block; a sub-interval's own start only turns all of its sum.
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

    #[test]
    fn phase_steps_of_opposite_frequencies_cancel() {
        assert_eq!(phase_step(0.25), 1 << 62);
        assert_eq!(phase_step(-0.25).wrapping_add(phase_step(0.25)), 0);
        assert_eq!(phase_step(3.0), 0);
    }
}
