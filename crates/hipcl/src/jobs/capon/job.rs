//! The pipeline on the devices.

use std::rc::Rc;
use std::time::Instant;

use clmgr::NdRange;
use clmgr_fft::Direction;
use hip::{DeviceBuffer, LaunchConfig, PinnedBuffer};
use interop::rccl::ReduceOp;
use interop::{Bridge, Category, Meter, Shared};
use platform::Platform;
use rocblas::{Fill, Handle, Matrix, Op, solver};

use super::scene::Shape;
use super::{Options, Part, detect, singular};
use crate::jobs::sides::{Fft, Kernel, KernelArg, Sides};
use crate::jobs::stages::{Recorded, Stages};
use crate::jobs::{Ranks, Waits, crossing_bytes};
use crate::outcome::Kernels as Where;
use crate::timing::{ApiName, StageTimer, Work};
use crate::{C32, Error, Result};

const BLOCK: u32 = 64;
const COMPLEX: u64 = size_of::<C32>() as u64;

/// Where elimination leaves less than this of a diagonal entry, what is left is rounding.
const SMALLEST_PIVOT: f32 = 64.0 * f32::EPSILON;

/// What one iteration found.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    /// Power in the directions of the coarse grid.
    pub power: Vec<f32>,
    /// What a peak has to exceed.
    pub limit: f64,
    /// Sines of the directions around the peaks.
    pub fine_grid: Vec<f64>,
    /// Power in them.
    pub fine_power: Vec<f32>,
    /// Sine and power of every peak's top.
    pub tops: Vec<(f64, f64)>,
}

/// Everything that stays from one iteration to the next.
pub(super) struct Job<'a> {
    meter: &'a Meter,
    shape: Shape,
    /// Of all ranks.
    segments: usize,
    ranks: Option<&'a Ranks>,
    channel: u32,
    loading: f32,
    grid: &'a [f64],
    sides: Sides,
    channelizer: Fft,
    select: Kernel,
    raw: Shared<C32>,
    spectrum: Shared<C32>,
    snapshots: Shared<C32>,
    hip: HipSide,
    /// The stages before the inverse and those after it, if they are graphs.
    graphs: Option<[Recorded; 2]>,
}

/// What only HIP works on.
struct HipSide {
    stream: hip::Stream,
    /// Shared with the closure that records its calls.
    blas: Rc<Handle>,
    kernels: Kernels,
    /// Products over parts of the segments, none where one call makes the whole covariance.
    parts: DeviceBuffer<C32>,
    /// Covariance, then its Cholesky factor, then its inverse.
    matrix: DeviceBuffer<C32>,
    /// Diagonal of the covariance, then what elimination left of it.
    kept: DeviceBuffer<f32>,
    /// What elimination left, for the host.
    left: PinnedBuffer<f32>,
    coarse: Search,
    fine: Search,
}

/// One set of directions on the device.
struct Search {
    /// From the host.
    sines: PinnedBuffer<f64>,
    device_sines: DeviceBuffer<f64>,
    /// Directions x elements.
    responses: DeviceBuffer<C32>,
    /// `R^-1 a`, the same way round.
    steered: DeviceBuffer<C32>,
    device_power: DeviceBuffer<f32>,
    /// For the host.
    power: PinnedBuffer<f32>,
}

struct Kernels {
    sum_parts: hip::Function,
    diagonal: hip::Function,
    load_diagonal: hip::Function,
    pivots: hip::Function,
    fill_upper: hip::Function,
    steering: hip::Function,
    power: hip::Function,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        platform: Platform,
        bridge: &'a Bridge,
        kernels: Where,
        part: &Part<'a>,
        options: &Options,
        grid: &'a [f64],
    ) -> Result<Self> {
        let (shape, samples) = (part.shape, &*part.samples);
        let Shape {
            elements,
            segments,
            channels,
        } = shape;
        let sides = Sides::new(bridge, kernels)?;
        let program = sides.program(bridge, include_str!("../../../kernels/capon.cl"))?;
        let transforms = elements * segments;
        let mut job = Self {
            meter: bridge.meter(),
            shape,
            segments: part.segments,
            ranks: part.ranks,
            channel: options.channel as u32,
            loading: options.loading,
            grid,
            channelizer: sides.fft(bridge, channels, transforms, Direction::Forward)?,
            select: program.kernel("select_channel")?,
            raw: bridge.alloc(samples.len())?,
            spectrum: bridge.alloc(elements * shape.samples())?,
            snapshots: bridge.alloc(elements * segments)?,
            hip: HipSide::new(platform, bridge, &sides.stream, shape, grid.len())?,
            sides,
            graphs: None,
        };
        job.hip.aim(job.meter, Which::Coarse, grid)?;
        if options.launch.graph {
            job.record(samples)?;
        } else {
            job.raw.upload(samples)?;
        }
        Ok(job)
    }

    /// The buffer that OpenCL writes and HIP reads.
    pub(super) fn snapshots(&self) -> &Shared<C32> {
        &self.snapshots
    }

    /// Bytes that an iteration has to copy because of the route.
    pub(super) fn expected_copies_bytes(&self) -> u64 {
        match self.sides.queue {
            Some(_) => crossing_bytes(&self.snapshots),
            None => 0,
        }
    }

    /// The host looks at the spectrum before it knows where to refine, so it waits there, however seldom it waits else.
    pub(super) fn iteration(&mut self, timer: &mut StageTimer, waits: Waits) -> Result<Estimate> {
        let inverse = if self.graphs.is_some() {
            self.replay(timer)?
        } else {
            let sides = self.sides.clone();
            Stages::timed(timer, &sides, waits, |stages| {
                self.before_inverse(stages)?;
                let inverse = self.hip.invert(stages, self.meter)?;
                self.after_inverse(stages)?;
                Ok(inverse)
            })?
        };
        let start = Instant::now();
        self.meter
            .count_as(Category::Control, || inverse.check())
            .map_err(explain)?;
        self.hip.check_pivots()?;
        let (found, traffic) = self.refine()?;
        timer.keep("refine", ApiName::Hip, traffic, start.elapsed());
        Ok(found)
    }

    fn before_inverse(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        self.channelize(stages)?;
        self.covariance(stages)
    }

    fn after_inverse(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let (directions, n) = (self.grid.len(), self.shape.elements as u64);
        let work = Work {
            bytes: (2 * directions as u64 * n + n * n) * COMPLEX,
            operations: 8 * directions as u64 * n * n,
        };
        stages.stage("steer", ApiName::Hip, work, || {
            self.hip.steer(Which::Coarse, directions)
        })?;
        let traffic = 2 * directions as u64 * n * COMPLEX;
        stages.stage("power", ApiName::Hip, traffic, || {
            self.hip.power(self.meter, Which::Coarse, directions)
        })
    }

    /// Takes the samples, and records the stages as two graphs. Between them stays the inverse: what its calls find
    /// about the matrix belongs to one call, and cannot be recorded.
    fn record(&mut self, samples: &[C32]) -> Result<()> {
        // What is loaded or allocated on first use cannot be recorded, so an iteration comes first: over other samples,
        // so that what is found later is the graphs' own.
        let doubled: Vec<C32> = samples.iter().map(|sample| sample * 2.0).collect();
        self.raw.upload(&doubled)?;
        self.iteration(&mut StageTimer::new(1, 0), Waits::Iteration)?;
        self.raw.upload(samples)?;
        // The stream comes after the upload before it is recorded: a graph holds no order among streams.
        drop(self.raw.hip(&self.sides.stream)?);
        let (sides, blas) = (self.sides.clone(), Rc::clone(&self.hip.blas));
        self.graphs = Some([
            Stages::record(&sides, Some(&blas), |stages| self.before_inverse(stages))?,
            Stages::record(&sides, Some(&blas), |stages| self.after_inverse(stages))?,
        ]);
        Ok(())
    }

    /// The stages up to the spectrum by the graphs, with one wait.
    fn replay(&mut self, timer: &mut StageTimer) -> Result<solver::Info> {
        let Self {
            meter,
            sides,
            raw,
            spectrum,
            snapshots,
            hip,
            graphs: Some([before, after]),
            ..
        } = self
        else {
            unreachable!("the graphs were recorded")
        };
        let stream = &sides.stream;
        Stages::timed(timer, sides, Waits::Iteration, |stages| {
            stages.replay(before.span, || {
                let raw = raw.hip(stream)?;
                let (mut spectrum, mut snapshots) = (spectrum.hip_mut(stream)?, snapshots.hip_mut(stream)?);
                let slices: [&dyn hip::KernelArg; 6] = [
                    &raw.slice(),
                    &spectrum.slice_mut(),
                    &snapshots.slice_mut(),
                    &hip.parts.on_mut(stream)?,
                    &hip.matrix.on_mut(stream)?,
                    &hip.kept.on_mut(stream)?,
                ];
                // SAFETY: this is all memory that these stages touch, and what they were recorded with stays as it is:
                // a job owns both. The rocBLAS handle is used on this stream only.
                Ok(unsafe { before.graph.launch(stream, &slices) }?)
            })?;
            let inverse = hip.invert(stages, meter)?;
            stages.replay(after.span, || {
                let coarse = &mut hip.coarse;
                let slices: [&dyn hip::KernelArg; 5] = [
                    &hip.matrix.on(stream)?,
                    &coarse.responses.on(stream)?,
                    &coarse.steered.on_mut(stream)?,
                    &coarse.device_power.on_mut(stream)?,
                    &coarse.power.on_mut(stream)?,
                ];
                // SAFETY: as above.
                Ok(unsafe { after.graph.launch(stream, &slices) }?)
            })?;
            Ok(inverse)
        })
    }

    /// The findings, and the memory traffic of the search around the peaks.
    fn refine(&mut self) -> Result<(Estimate, u64)> {
        let n = self.shape.elements as u64;
        let power = self.hip.coarse.power.host()?.to_vec();
        let limit = detect::floor(&power) * detect::threshold(self.shape.elements, self.segments, power.len());
        let peaks = detect::peaks(&power, limit);
        let fine_grid: Vec<f64> = peaks
            .iter()
            .flat_map(|&peak| detect::fine_grid(self.grid, peak))
            .collect();
        let mut found = Estimate {
            power,
            limit,
            fine_grid,
            ..Estimate::default()
        };
        if peaks.is_empty() {
            return Ok((found, 0));
        }
        let directions = found.fine_grid.len();
        self.hip.aim(self.meter, Which::Fine, &found.fine_grid)?;
        self.hip.steer(Which::Fine, directions)?;
        self.hip.power(self.meter, Which::Fine, directions)?;
        found.fine_power = self.hip.fine.power.host()?[..directions].to_vec();
        let searches = found
            .fine_grid
            .chunks(detect::FINE)
            .zip(found.fine_power.chunks(detect::FINE));
        let tops = searches.map(|(grid, power)| detect::top(grid, power)).collect();
        found.tops = detect::distinct(tops, self.shape.elements);
        Ok((found, (4 * directions as u64 * n + n * n) * COMPLEX))
    }

    /// OpenCL's part: the transforms, and one channel of them.
    fn channelize(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let Shape {
            elements,
            segments,
            channels,
        } = self.shape;
        let sides = &self.sides;
        let raw = sides.read(&self.raw)?;
        let mut spectrum = sides.write(&mut self.spectrum)?;
        stages.stage("channelize", ApiName::OpenCl, self.channelizer.bytes_moved(), || {
            // SAFETY: both buffers hold elements * segments transforms of `channels` samples, for which the FFT was
            // made.
            unsafe { self.channelizer.enqueue(sides, &raw, &mut spectrum) }
        })?;
        let mut snapshots = sides.write(&mut self.snapshots)?;
        let traffic = 2 * (elements * segments) as u64 * COMPLEX;
        stages.stage("select channel", ApiName::OpenCl, traffic, || {
            let [e, s, c] = [elements, segments, channels].map(|n| n as u32);
            let scale = 1.0 / channels as f32;
            let args = [
                spectrum.arg(),
                snapshots.arg(),
                KernelArg::scalar(&e),
                KernelArg::scalar(&s),
                KernelArg::scalar(&c),
                KernelArg::scalar(&self.channel),
                KernelArg::scalar(&scale),
            ];
            // SAFETY: the arguments are of the kernel's types; it reads one bin of each of the elements * segments
            // transforms (`channel` is below `channels`) and writes as many snapshots, which is the length of that
            // buffer.
            unsafe { self.select.launch(sides, NdRange::d2(elements, segments), args) }
        })
    }

    /// `R = Z Z^H / K`, lower triangle, with its diagonal loaded.
    fn covariance(&mut self, stages: &mut Stages<'_>) -> Result<()> {
        let Shape { elements, segments, .. } = self.shape;
        let n = elements as u64;
        let work = Work {
            bytes: (n * segments as u64 + n * n) * COMPLEX,
            // of a complex product, of which one triangle is needed
            operations: 4 * n * n * segments as u64,
        };
        let scale = 1.0 / self.segments as f32;
        let (hip, snapshots, loading) = (&mut self.hip, &self.snapshots, self.loading);
        let Some(ranks) = self.ranks else {
            return stages.stage("covariance", ApiName::Hip, work, || {
                hip.products(snapshots, elements, segments, scale)?;
                hip.load(loading)
            });
        };
        stages.stage("covariance", ApiName::Hip, work, || {
            hip.products(snapshots, elements, segments, scale)
        })?;
        stages.stage("sum over ranks", ApiName::Hip, 2 * n * n * COMPLEX, || {
            // The other triangle is added up too, and overwritten later.
            let matrix = hip.matrix.on_mut(&hip.stream)?.cast::<f32>()?;
            ranks.all_reduce(matrix, ReduceOp::Sum, &hip.stream)?;
            hip.load(loading)
        })
    }
}

/// In how many parts of the segments the covariance is made. A card's libraries give each block a tile of the result,
/// of which a matrix of a few hundred rows has too few to occupy the card; products over parts of the sum have as many
/// each.
fn parts(is_model: bool, shape: Shape) -> usize {
    const TILE: usize = 64;
    const MOST: usize = 16;
    /// A few for each compute unit of a large card.
    const TILES: usize = 640;
    let tiles = shape.elements.div_ceil(TILE).pow(2);
    let most = match is_model {
        true => 1,
        false => (TILES / tiles).clamp(1, MOST),
    };
    // there is always 1
    (1..=most)
        .rev()
        .find(|&count| shape.segments.is_multiple_of(count))
        .unwrap_or(1)
}

/// Which set of directions.
#[derive(Clone, Copy)]
enum Which {
    Coarse,
    Fine,
}

impl HipSide {
    fn new(platform: Platform, bridge: &Bridge, stream: &hip::Stream, shape: Shape, directions: usize) -> Result<Self> {
        let elements = shape.elements;
        let parts = match parts(platform.facts().is_model, shape) {
            1 => 0,
            parts => parts,
        };
        let device = bridge.hip_device();
        let module = hip::rtc::Program::new(include_str!("../../../kernels/capon.hip"))
            .name("capon.hip")
            .option("-O3")
            .compile(device)?;
        let kernels = Kernels {
            sum_parts: module.function("sum_parts")?,
            diagonal: module.function("diagonal")?,
            load_diagonal: module.function("load_diagonal")?,
            pivots: module.function("pivots")?,
            fill_upper: module.function("fill_upper")?,
            steering: module.function("steering")?,
            power: module.function("power")?,
        };
        let search = |directions: usize| -> Result<Search> {
            Ok(Search {
                sines: device.alloc_pinned(directions)?,
                device_sines: device.alloc(directions)?,
                responses: device.alloc(directions * elements)?,
                steered: device.alloc(directions * elements)?,
                device_power: device.alloc(directions)?,
                power: device.alloc_pinned(directions)?,
            })
        };
        Ok(Self {
            blas: Rc::new(Handle::new(&bridge.blas()?, stream)?),
            kernels,
            parts: device.alloc(parts * elements * elements)?,
            matrix: device.alloc(elements * elements)?,
            kept: device.alloc(elements)?,
            left: device.alloc_pinned(elements)?,
            coarse: search(directions)?,
            fine: search(detect::MOST_PEAKS * detect::FINE)?,
            stream: stream.clone(),
        })
    }

    fn elements(&self) -> usize {
        self.kept.len()
    }

    /// `Z Z^H` times `scale`, lower triangle.
    fn products(&mut self, snapshots: &Shared<C32>, elements: usize, segments: usize, scale: f32) -> Result<()> {
        let Self {
            stream,
            blas,
            kernels,
            parts,
            matrix,
            ..
        } = self;
        if parts.is_empty() {
            let z = Matrix::new(snapshots, elements, segments, elements);
            let r = Matrix::new(&mut *matrix, elements, elements, elements);
            blas.herk(Fill::Lower, Op::None, scale, z, 0.0, r)?;
            return Ok(());
        }
        let each = elements * elements;
        let count = parts.len() / each;
        let (columns, stride) = (segments / count, elements * segments / count);
        let z = Matrix::new(snapshots, elements, columns, elements).batch(stride, count);
        let p = Matrix::new(&mut *parts, elements, elements, elements).batch(each, count);
        let (one, zero) = (C32::new(1.0, 0.0), C32::new(0.0, 0.0));
        blas.gemm_strided_batched(Op::None, Op::ConjTranspose, one, z, z, zero, p)?;
        let args: [&dyn hip::KernelArg; 5] = [
            &parts.on(stream)?,
            &matrix.on_mut(stream)?,
            &(elements as i32),
            &(count as i32),
            &scale,
        ];
        let whole = LaunchConfig::linear(each, BLOCK)?;
        // SAFETY: the arguments are of the kernel's types; it reads `count` matrices of elements x elements and writes
        // one.
        unsafe { kernels.sum_parts.launch(stream, whole, &args) }?;
        Ok(())
    }

    /// Keeps the diagonal of the covariance, and adds to it the part `loading` of its mean.
    fn load(&mut self, loading: f32) -> Result<()> {
        let elements = self.elements();
        let Self {
            stream,
            kernels,
            matrix,
            kept,
            ..
        } = self;
        let (matrix, mut kept) = (matrix.on_mut(stream)?, kept.on_mut(stream)?);
        let order = elements as i32;
        let grid = LaunchConfig::linear(elements, BLOCK)?;
        // SAFETY: the arguments are of the kernels' types; both touch the diagonal of an elements x elements matrix and
        // as many numbers of `kept`.
        unsafe {
            kernels
                .diagonal
                .launch(stream, grid, &[&matrix.as_slice(), &kept.reborrow(), &order])?;
            if loading > 0.0 {
                let args: [&dyn hip::KernelArg; 4] = [&matrix, &kept.as_slice(), &order, &loading];
                kernels.load_diagonal.launch(stream, grid, &args)?;
            }
        }
        Ok(())
    }

    /// Works out the array's responses in these directions.
    fn aim(&mut self, meter: &Meter, which: Which, sines: &[f64]) -> Result<()> {
        let elements = self.elements();
        let Self {
            stream,
            kernels,
            coarse,
            fine,
            ..
        } = self;
        let search = match which {
            Which::Coarse => coarse,
            Which::Fine => fine,
        };
        search.sines.host_mut()?[..sines.len()].copy_from_slice(sines);
        let mut device_sines = search.device_sines.on_mut(stream)?;
        let mut device_sines = device_sines.slice_mut(..sines.len())?;
        let pinned_sines = search.sines.on(stream)?.slice(..sines.len())?;
        // the search directions are a parameter of the job, not part of the data set
        meter.count_as(Category::Control, || device_sines.copy_from(pinned_sines))?;
        let mut responses = search.responses.on_mut(stream)?;
        let grid = LaunchConfig::linear(sines.len() * elements, BLOCK)?;
        let (directions, elements) = (sines.len() as i32, elements as i32);
        // SAFETY: the arguments are of the kernel's types; it writes directions * elements responses, for which there
        // is room.
        unsafe {
            let args: [&dyn hip::KernelArg; 4] =
                [&responses.reborrow(), &device_sines.as_slice(), &directions, &elements];
            kernels.steering.launch(stream, grid, &args)?;
        }
        Ok(())
    }

    /// Replaces the covariance by its inverse, both triangles. Whether there is one is in what it returns, and in what
    /// [`check_pivots`](Self::check_pivots) looks at.
    fn invert(&mut self, stages: &mut Stages<'_>, meter: &Meter) -> Result<solver::Info> {
        let n = self.elements();
        // a Cholesky factorisation, an inversion, and the other triangle: the matrix is read and written three times at
        // least
        let work = Work {
            bytes: 6 * (n * n) as u64 * COMPLEX,
            // n^3 / 3 and 2 n^3 / 3 complex multiplications and additions of halves of a matrix
            operations: 4 * (n as u64).pow(3),
        };
        let Self {
            stream,
            blas,
            kernels,
            matrix,
            kept,
            left,
            ..
        } = self;
        let invert = || {
            let order = n as i32;
            let mut matrix = matrix.on_mut(stream)?;
            let mut kept = kept.on_mut(stream)?;
            let covariance = Matrix::new(&mut matrix, n, n, n);
            let factor = solver::potrf(blas, Fill::Lower, covariance)?;
            let diagonal = LaunchConfig::linear(n, BLOCK)?;
            // SAFETY: as for the covariance stage's kernels.
            unsafe {
                kernels
                    .pivots
                    .launch(stream, diagonal, &[&factor.factor(), &kept.reborrow(), &order])
            }?;
            left.on_mut(stream)?.copy_from(kept.as_slice())?;
            // The kernel below completes the other triangle.
            let info = solver::potri(blas, factor)?.into_info();
            let whole = LaunchConfig::linear(n * n, BLOCK)?;
            // SAFETY: the arguments are of the kernel's types; it touches an n x n matrix.
            unsafe { kernels.fill_upper.launch(stream, whole, &[&matrix, &order]) }?;
            Ok(info)
        };
        stages.stage("invert", ApiName::Hip, work, || {
            meter.count_as(Category::Control, invert)
        })
    }

    /// Refuses a matrix that single precision may have carried through with pivots of pure rounding.
    fn check_pivots(&self) -> Result<()> {
        let singular_row = self
            .left
            .host()?
            .iter()
            .position(|left| left.is_nan() || *left < SMALLEST_PIVOT);
        match singular_row {
            None => Ok(()),
            Some(row) => Err(Error::Input(singular(
                row + 1,
                "its pivot is zero within single precision",
            ))),
        }
    }

    /// `R^-1 a` for the first `directions` directions.
    fn steer(&mut self, which: Which, directions: usize) -> Result<()> {
        let n = self.elements();
        let Self {
            blas,
            matrix,
            coarse,
            fine,
            ..
        } = self;
        let search = match which {
            Which::Coarse => coarse,
            Which::Fine => fine,
        };
        let responses = Matrix::new(&search.responses, directions, n, directions);
        let inverse = Matrix::new(&*matrix, n, n, n);
        let steered = Matrix::new(&mut search.steered, directions, n, directions);
        let (one, zero) = (C32::new(1.0, 0.0), C32::new(0.0, 0.0));
        // rows of `responses` are the responses themselves, so R^-1 stands transposed on the right
        blas.gemm(Op::None, Op::Transpose, one, responses, inverse, zero, steered)?;
        Ok(())
    }

    /// Power in the first `directions` directions, brought to the host's memory.
    fn power(&mut self, meter: &Meter, which: Which, directions: usize) -> Result<()> {
        let elements = self.elements() as i32;
        let Self {
            stream,
            kernels,
            coarse,
            fine,
            ..
        } = self;
        let search = match which {
            Which::Coarse => coarse,
            Which::Fine => fine,
        };
        let (responses, steered) = (search.responses.on(stream)?, search.steered.on(stream)?);
        let mut power = search.device_power.on_mut(stream)?;
        let grid = LaunchConfig::linear(directions, BLOCK)?;
        let count = directions as i32;
        // SAFETY: the arguments are of the kernel's types; it reads directions * elements entries of both matrices and
        // writes `directions` numbers.
        unsafe {
            let args: [&dyn hip::KernelArg; 5] = [&responses, &steered, &power.reborrow(), &count, &elements];
            kernels.power.launch(stream, grid, &args)?;
        }
        let power = power.as_slice().slice(..directions)?;
        let mut pinned = search.power.on_mut(stream)?;
        let mut pinned = pinned.slice_mut(..directions)?;
        meter.count_as(Category::Result, || pinned.copy_from(power))?;
        Ok(())
    }
}

/// A covariance matrix without an inverse is bad input; anything else is a failed call.
fn explain(error: rocblas::Error) -> Error {
    match error {
        rocblas::Error::NotPositiveDefinite { minor } => Error::Input(singular(minor, "not positive definite")),
        rocblas::Error::Singular { pivot } => Error::Input(singular(pivot, "a zero pivot")),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(elements: usize, segments: usize) -> Shape {
        Shape {
            elements,
            segments,
            channels: 32,
        }
    }

    #[test]
    fn a_small_covariance_is_made_in_parts_on_a_card() {
        assert_eq!(parts(false, shape(341, 1024)), 16);
        assert_eq!(parts(false, shape(341, 1000)), 10);
        assert_eq!(parts(false, shape(341, 1021)), 1);
        assert_eq!(parts(false, shape(4000, 1024)), 1);
        assert_eq!(parts(true, shape(341, 1024)), 1);
    }
}
