//! The pipeline on the devices.

use clmgr::fft::{Direction, Plan};
use clmgr::{Arg, NdRange};
use hip::{DeviceBuffer, LaunchConfig};
use interop::{Bridge, Category, Meter, Shared, blas};
use rocblas::{Fill, Handle, Matrix, MatrixMut, Op, solver};

use super::scene::Shape;
use super::{Options, detect, singular};
use crate::timing::{ApiName, StageTimer};
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
    diagonal: hip::Function,
    load_diagonal: hip::Function,
    pivots: hip::Function,
    fill_upper: hip::Function,
    steering: hip::Function,
    power: hip::Function,
}

impl<'a> Job<'a> {
    pub(super) fn new(
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
            hip: HipSide::new(bridge, elements, grid.len())?,
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
        let traffic = (2 * directions as u64 * n + n * n) * COMPLEX;
        timer.stage("steer", ApiName::Hip, traffic, || {
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
            matrix,
            kept,
            ..
        } = &mut self.hip;
        let n = elements as u64;
        timer.stage(
            "covariance",
            ApiName::Hip,
            (n * segments as u64 + n * n) * COMPLEX,
            || {
                let z = blas::Matrix::new(&self.snapshots, elements, segments, elements);
                let r = blas::Matrix::new(&mut *matrix, elements, elements, elements);
                let scale = 1.0 / segments as f32;
                blas::herk(handle, Fill::Lower, Op::None, scale, z, 0.0, r)?;
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

/// Which set of directions.
#[derive(Clone, Copy)]
enum Which {
    Coarse,
    Fine,
}

impl HipSide {
    fn new(bridge: &Bridge, elements: usize, directions: usize) -> Result<Self> {
        let device = bridge.hip_device();
        let module = hip::rtc::Program::new(include_str!("../../../kernels/capon.hip"))
            .name("capon.hip")
            .option("-O3")
            .compile(device)?;
        let kernels = Kernels {
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
        let traffic = 6 * (n * n) as u64 * COMPLEX;
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
        timer.stage("invert", ApiName::Hip, traffic, || {
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
