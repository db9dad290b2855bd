//! The pipeline on the devices.

use clmgr::fft::{Direction, Plan};
use clmgr::{Arg, NdRange};
use hip::{DeviceBuffer, LaunchConfig};
use interop::{Bridge, Category, Meter, Shared, blas};
use platform::Platform;
use rocblas::{Fill, Handle, Matrix, MatrixMut, Op, solver};

use super::scene::Shape;
use super::{Options, detect, singular};
use crate::timing::{ApiName, StageTimer, Work};
use crate::{C32, Error, Result};

const BLOCK: u32 = 64;
const COMPLEX: u64 = size_of::<C32>() as u64;

/// Where elimination leaves less than this of a diagonal entry, what is left is rounding.
const SMALLEST_PIVOT: f32 = 64.0 * f32::EPSILON;

/// What one iteration found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
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
    channel: u32,
    loading: f32,
    grid: &'a [f64],
    queue: clmgr::Queue,
    plan: Plan,
    select: clmgr::Kernel,
    spectrum: Shared<C32>,
    snapshots: Shared<C32>,
    hip: HipSide,
}

/// What only HIP works on.
struct HipSide {
    stream: hip::Stream,
    blas: Handle,
    kernels: Kernels,
    /// Products over parts of the segments, none where one call makes the whole covariance.
    parts: DeviceBuffer<C32>,
    /// Covariance, then its Cholesky factor, then its inverse.
    matrix: DeviceBuffer<C32>,
    /// Diagonal of the covariance, then what elimination left of it.
    kept: DeviceBuffer<f32>,
    coarse: Search,
    fine: Search,
}

/// One set of directions on the device.
struct Search {
    sines: DeviceBuffer<f64>,
    /// Directions x elements.
    responses: DeviceBuffer<C32>,
    /// `R^-1 a`, the same way round.
    steered: DeviceBuffer<C32>,
    power: DeviceBuffer<f32>,
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
        shape: Shape,
        options: &Options,
        grid: &'a [f64],
    ) -> Result<Self> {
        let Shape {
            elements,
            segments,
            channels,
        } = shape;
        let program = bridge
            .programs()
            .get(include_str!("../../../kernels/capon.cl"), "")?;
        let mut job = Self {
            meter: bridge.meter(),
            shape,
            channel: options.channel as u32,
            loading: options.loading,
            grid,
            queue: bridge.queue()?,
            plan: Plan::new(
                bridge.cl_context(),
                bridge.programs(),
                channels,
                elements * segments,
            )?,
            select: program.kernel("select_channel")?,
            spectrum: bridge.alloc(elements * shape.samples())?,
            snapshots: bridge.alloc(elements * segments)?,
            hip: HipSide::new(platform, bridge, shape, grid.len())?,
        };
        job.hip.aim(job.meter, Which::Coarse, grid)?;
        Ok(job)
    }

    /// The buffer that OpenCL writes and HIP reads.
    pub(super) fn snapshots(&self) -> &Shared<C32> {
        &self.snapshots
    }

    pub(super) fn iteration(&mut self, timer: &mut StageTimer, raw: &Shared<C32>) -> Result<Found> {
        self.channelize(timer, raw)?;
        self.covariance(timer)?;
        self.hip.invert(timer, self.meter)?;

        let directions = self.grid.len();
        let n = self.shape.elements as u64;
        let work = Work {
            bytes: (2 * directions as u64 * n + n * n) * COMPLEX,
            operations: 8 * directions as u64 * n * n,
        };
        timer.stage("steer", ApiName::Hip, work, || {
            self.hip.steer(Which::Coarse, directions)?;
            Ok(self.hip.stream.synchronize()?)
        })?;
        let traffic = 2 * directions as u64 * n * COMPLEX;
        let power = timer.stage("power", ApiName::Hip, traffic, || {
            self.hip.power(self.meter, Which::Coarse, directions)
        })?;

        let limit = detect::floor(&power)
            * detect::threshold(self.shape.elements, self.shape.segments, directions);
        let peaks = detect::peaks(&power, limit);
        let fine_grid: Vec<f64> = peaks
            .iter()
            .flat_map(|&peak| detect::fine_grid(self.grid, peak))
            .collect();
        let mut found = Found {
            power,
            limit,
            fine_grid,
            ..Found::default()
        };
        if peaks.is_empty() {
            return Ok(found);
        }
        let directions = found.fine_grid.len();
        let traffic = (4 * directions as u64 * n + n * n) * COMPLEX;
        found.fine_power = timer.stage("refine", ApiName::Hip, traffic, || {
            self.hip.aim(self.meter, Which::Fine, &found.fine_grid)?;
            self.hip.steer(Which::Fine, directions)?;
            self.hip.power(self.meter, Which::Fine, directions)
        })?;
        let searches = found
            .fine_grid
            .chunks(detect::FINE)
            .zip(found.fine_power.chunks(detect::FINE));
        let tops = searches
            .map(|(grid, power)| detect::top(grid, power))
            .collect();
        found.tops = detect::distinct(tops, self.shape.elements);
        Ok(found)
    }

    /// OpenCL's part: the transforms, and one channel of them.
    fn channelize(&mut self, timer: &mut StageTimer, raw: &Shared<C32>) -> Result<()> {
        let Shape {
            elements,
            segments,
            channels,
        } = self.shape;
        let queue = &self.queue;
        let raw = raw.cl(queue)?;
        let spectrum = self.spectrum.cl_mut(queue)?;
        timer.stage(
            "channelize",
            ApiName::OpenCl,
            self.plan.bytes_moved(),
            || {
                // SAFETY: both buffers hold elements * segments transforms of `channels` samples, which is what the plan was made for.
                unsafe {
                    self.plan
                        .enqueue(queue, Direction::Forward, raw.arg(), spectrum.arg())
                }?;
                Ok(queue.finish()?)
            },
        )?;
        let snapshots = self.snapshots.cl_mut(queue)?;
        let traffic = 2 * (elements * segments) as u64 * COMPLEX;
        timer.stage("select channel", ApiName::OpenCl, traffic, || {
            let [e, s, c] = [elements, segments, channels].map(|n| n as u32);
            let scale = 1.0 / channels as f32;
            let args = [
                spectrum.arg(),
                snapshots.arg(),
                Arg::scalar(&e),
                Arg::scalar(&s),
                Arg::scalar(&c),
                Arg::scalar(&self.channel),
                Arg::scalar(&scale),
            ];
            // SAFETY: the arguments are of the kernel's types; it reads one bin of each of the elements * segments transforms
            // (`channel` is below `channels`) and writes as many snapshots, which is the length of that buffer.
            unsafe {
                self.select
                    .launch(queue, NdRange::d2(elements, segments), &args)
            }?;
            Ok(queue.finish()?)
        })
    }

    /// `R = Z Z^H / K`, lower triangle.
    fn covariance(&mut self, timer: &mut StageTimer) -> Result<()> {
        let Shape {
            elements, segments, ..
        } = self.shape;
        let HipSide {
            stream,
            blas: handle,
            kernels,
            parts,
            matrix,
            kept,
            ..
        } = &mut self.hip;
        let n = elements as u64;
        timer.stage(
            "covariance",
            ApiName::Hip,
            Work {
                bytes: (n * segments as u64 + n * n) * COMPLEX,
                // of a complex product, of which one triangle is needed
                operations: 4 * n * n * segments as u64,
            },
            || {
                let scale = 1.0 / segments as f32;
                if parts.is_empty() {
                    let z = blas::Matrix::new(&self.snapshots, elements, segments, elements);
                    let r = blas::Matrix::new(&mut *matrix, elements, elements, elements);
                    blas::herk(handle, Fill::Lower, Op::None, scale, z, 0.0, r)?;
                } else {
                    let each = elements * elements;
                    let count = parts.len() / each;
                    let (columns, stride) = (segments / count, elements * segments / count);
                    let z = blas::Batch::new(
                        &self.snapshots,
                        elements,
                        columns,
                        elements,
                        stride,
                        count,
                    );
                    let p =
                        blas::Batch::new(&mut *parts, elements, elements, elements, each, count);
                    let (one, zero) = (C32::new(1.0, 0.0), C32::new(0.0, 0.0));
                    blas::gemm_strided_batched(
                        handle,
                        Op::None,
                        Op::ConjTranspose,
                        one,
                        z,
                        z,
                        zero,
                        p,
                    )?;
                    let args: [&dyn hip::KernelArg; 5] = [
                        &parts.on(stream)?,
                        &matrix.on_mut(stream)?,
                        &(elements as i32),
                        &(count as i32),
                        &scale,
                    ];
                    let whole = LaunchConfig::linear(each, BLOCK)?;
                    // SAFETY: the arguments are of the kernel's types; it reads `count` matrices of elements x elements and writes one.
                    unsafe { kernels.sum_parts.launch(stream, whole, &args) }?;
                }
                let matrix = matrix.on_mut(stream)?;
                let mut kept = kept.on_mut(stream)?;
                let order = elements as i32;
                let grid = LaunchConfig::linear(elements, BLOCK)?;
                // SAFETY: the arguments are of the kernels' types; both touch the diagonal of an elements x elements matrix and as
                // many numbers of `kept`.
                unsafe {
                    kernels.diagonal.launch(
                        stream,
                        grid,
                        &[&matrix.as_slice(), &kept.reborrow(), &order],
                    )?;
                    if self.loading > 0.0 {
                        kernels.load_diagonal.launch(
                            stream,
                            grid,
                            &[&matrix, &kept.as_slice(), &order, &self.loading],
                        )?;
                    }
                }
                Ok(stream.synchronize()?)
            },
        )
    }
}

/// In how many parts of the segments the covariance is made. A card's libraries give each block a tile of the result, of which a matrix
/// of a few hundred rows has too few to occupy the card; products over parts of the sum have as many each.
fn parts(platform: Platform, shape: Shape) -> usize {
    const TILE: usize = 64;
    const MOST: usize = 16;
    /// A few for each compute unit of a large card.
    const TILES: usize = 640;
    let tiles = shape.elements.div_ceil(TILE).pow(2);
    let most = match platform {
        Platform::Host => 1,
        _ => (TILES / tiles).clamp(1, MOST),
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
    fn new(platform: Platform, bridge: &Bridge, shape: Shape, directions: usize) -> Result<Self> {
        let elements = shape.elements;
        let parts = match parts(platform, shape) {
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
        let stream = bridge.stream()?;
        let search = |directions: usize| -> Result<Search> {
            Ok(Search {
                sines: device.alloc(directions)?,
                responses: device.alloc(directions * elements)?,
                steered: device.alloc(directions * elements)?,
                power: device.alloc(directions)?,
            })
        };
        Ok(Self {
            blas: Handle::new(&bridge.blas()?, &stream)?,
            kernels,
            parts: device.alloc(parts * elements * elements)?,
            matrix: device.alloc(elements * elements)?,
            kept: device.alloc(elements)?,
            coarse: search(directions)?,
            fine: search(detect::MOST_PEAKS * detect::FINE)?,
            stream,
        })
    }

    fn elements(&self) -> usize {
        self.kept.len()
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
        let mut device_sines = search.sines.on_mut(stream)?;
        let mut device_sines = device_sines.slice_mut(..sines.len())?;
        // the search directions are a parameter of the job, not part of the data set
        meter.count_as(Category::Control, || device_sines.copy_from_slice(sines))?;
        let mut responses = search.responses.on_mut(stream)?;
        let grid = LaunchConfig::linear(sines.len() * elements, BLOCK)?;
        let (directions, elements) = (sines.len() as i32, elements as i32);
        // SAFETY: the arguments are of the kernel's types; it writes directions * elements responses, for which there is room.
        unsafe {
            let args: [&dyn hip::KernelArg; 4] = [
                &responses.reborrow(),
                &device_sines.as_slice(),
                &directions,
                &elements,
            ];
            kernels.steering.launch(stream, grid, &args)?;
        }
        Ok(())
    }

    /// Replaces the covariance by its inverse, both triangles.
    fn invert(&mut self, timer: &mut StageTimer, meter: &Meter) -> Result<()> {
        let n = self.elements();
        // a Cholesky factorisation, an inversion, and the other triangle: the matrix is read and written three times at least
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
            ..
        } = self;
        let invert = || {
            let order = n as i32;
            let mut matrix = matrix.on_mut(stream)?;
            let mut kept = kept.on_mut(stream)?;
            let covariance = MatrixMut::new(matrix.reborrow(), n, n, n)?;
            let factor = solver::potrf(blas, Fill::Lower, covariance)?;
            factor.check().map_err(explain)?;
            let diagonal = LaunchConfig::linear(n, BLOCK)?;
            // SAFETY: as for the covariance stage's kernels.
            unsafe {
                kernels.pivots.launch(
                    stream,
                    diagonal,
                    &[
                        &factor.factor().as_matrix().data(),
                        &kept.reborrow(),
                        &order,
                    ],
                )
            }?;
            let mut left = vec![0.0; n];
            kept.as_slice().copy_to_slice(&mut left)?;
            // single precision may carry a singular matrix through with pivots of pure rounding
            if let Some(row) = left
                .iter()
                .position(|left| left.is_nan() || *left < SMALLEST_PIVOT)
            {
                return Err(Error::Input(singular(
                    row + 1,
                    "its pivot is zero within single precision",
                )));
            }
            solver::potri(blas, factor)?.check().map_err(explain)?;
            let whole = LaunchConfig::linear(n * n, BLOCK)?;
            // SAFETY: the arguments are of the kernel's types; it touches an n x n matrix.
            unsafe { kernels.fill_upper.launch(stream, whole, &[&matrix, &order]) }?;
            Ok(stream.synchronize()?)
        };
        timer.stage("invert", ApiName::Hip, work, || {
            meter.count_as(Category::Control, invert)
        })
    }

    /// `R^-1 a` for the first `directions` directions.
    fn steer(&mut self, which: Which, directions: usize) -> Result<()> {
        let n = self.elements();
        let Self {
            stream,
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
        let len = directions * n;
        let responses = Matrix::new(
            search.responses.on(stream)?.slice(..len)?,
            directions,
            n,
            directions,
        )?;
        let inverse = Matrix::new(matrix.on(stream)?, n, n, n)?;
        let mut steered = search.steered.on_mut(stream)?;
        let steered = MatrixMut::new(steered.slice_mut(..len)?, directions, n, directions)?;
        let (one, zero) = (C32::new(1.0, 0.0), C32::new(0.0, 0.0));
        // rows of `responses` are the responses themselves, so that R^-1 stands transposed on the right
        blas.gemm(
            Op::None,
            Op::Transpose,
            one,
            responses,
            inverse,
            zero,
            steered,
        )?;
        Ok(())
    }

    /// Power in the first `directions` directions, brought to the host.
    fn power(&mut self, meter: &Meter, which: Which, directions: usize) -> Result<Vec<f32>> {
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
        let mut power = search.power.on_mut(stream)?;
        let grid = LaunchConfig::linear(directions, BLOCK)?;
        let count = directions as i32;
        // SAFETY: the arguments are of the kernel's types; it reads directions * elements entries of both matrices and writes
        // `directions` numbers.
        unsafe {
            let args: [&dyn hip::KernelArg; 5] =
                [&responses, &steered, &power.reborrow(), &count, &elements];
            kernels.power.launch(stream, grid, &args)?;
        }
        let mut values = vec![0.0; directions];
        let power = power.as_slice();
        let power = power.slice(..directions)?;
        meter.count_as(Category::Result, || power.copy_to_slice(&mut values))?;
        Ok(values)
    }
}

/// A covariance matrix without an inverse is bad input; anything else is a failed call.
fn explain(error: rocblas::Error) -> Error {
    match error {
        rocblas::Error::NotPositiveDefinite { minor } => {
            Error::Input(singular(minor, "not positive definite"))
        }
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
        assert_eq!(parts(Platform::Nvidia, shape(341, 1024)), 16);
        assert_eq!(parts(Platform::Amd, shape(341, 1000)), 10);
        assert_eq!(parts(Platform::Nvidia, shape(341, 1021)), 1);
        assert_eq!(parts(Platform::Nvidia, shape(4000, 1024)), 1);
        assert_eq!(parts(Platform::Host, shape(341, 1024)), 1);
    }
}
