//! An iteration: the four kernels over one data set.

use hip::KernelArg;
use interop::{Bridge, Shared};

use super::kernels::{ClHalf, HipHalf};
use crate::jobs::Waits;
use crate::jobs::sides::Sides;
use crate::jobs::stages::{Recorded, Stages};
use crate::outcome::Kernels;
use crate::timing::{ApiName, StageTimer};
use crate::{C32, Result};

/// Iterations in a graph, one for each factor: it is recorded with the kernel.
pub(super) const GRAPH_STEPS: u32 = 2;

pub(super) struct Job {
    sides: Sides,
    opencl: ClHalf,
    hip: HipHalf,
    pub x: Shared<C32>,
    pub squared: Shared<f32>,
}

impl Job {
    pub fn new(bridge: &Bridge, kernels: Kernels, input: &[C32]) -> Result<Self> {
        let sides = Sides::new(bridge, kernels)?;
        let mut job = Self {
            opencl: ClHalf::new(bridge, &sides, input.len())?,
            hip: HipHalf::new(bridge, &sides.stream, input.len())?,
            sides,
            x: bridge.alloc(input.len())?,
            squared: bridge.alloc(input.len())?,
        };
        job.x.upload(input)?;
        Ok(job)
    }

    /// The iteration that the timer is at.
    pub fn run(&mut self, timer: &mut StageTimer, waits: Waits) -> Result<()> {
        let (sides, step) = (self.sides.clone(), timer.steps());
        Stages::timed(timer, &sides, waits, |stages| self.queue(stages, step))
    }

    /// A graph of [`GRAPH_STEPS`] iterations, for [`replay`](Self::replay).
    pub fn record(&mut self) -> Result<Recorded> {
        let sides = self.sides.clone();
        // The stream comes after the upload before it is recorded: a graph holds no order among streams.
        drop(self.x.hip_mut(&sides.stream)?);
        drop(self.squared.hip_mut(&sides.stream)?);
        let mut recorded = Stages::record(&sides, None, |stages| {
            (0..GRAPH_STEPS as usize).try_for_each(|step| self.queue(stages, step))
        })?;
        recorded.span.work.bytes /= u64::from(GRAPH_STEPS);
        Ok(recorded)
    }

    pub fn replay(&mut self, timer: &mut StageTimer, recorded: &Recorded) -> Result<()> {
        let stream = &self.sides.stream;
        let (x, squared) = (&mut self.x, &mut self.squared);
        Stages::timed(timer, &self.sides, Waits::Iteration, |stages| {
            stages.replay(recorded.span, || {
                let (mut x, mut squared) = (x.hip_mut(stream)?, squared.hip_mut(stream)?);
                let slices: [&dyn KernelArg; 2] = [&x.slice_mut(), &squared.slice_mut()];
                // SAFETY: this is all memory that the kernels touch.
                Ok(unsafe { recorded.graph.launch(stream, &slices) }?)
            })
        })
    }

    /// With two sides HIP works after the rotation on what OpenCL wrote, and the next `add` on what HIP wrote.
    fn queue(&mut self, stages: &mut Stages<'_>, step: usize) -> Result<()> {
        let Self {
            sides,
            opencl,
            hip,
            x,
            squared,
        } = self;
        let count = x.len();
        let in_place = (2 * count * size_of::<C32>()) as u64;
        let to_magnitude = (count * (size_of::<C32>() + size_of::<f32>())) as u64;
        {
            let mut x = sides.write(x)?;
            stages.stage("add", ApiName::OpenCl, in_place, || {
                // SAFETY: the buffer is of the length that the half was made for.
                unsafe { opencl.add(sides, x.arg()) }
            })?;
            stages.stage("rotate 30 deg", ApiName::OpenCl, in_place, || {
                // SAFETY: as above.
                unsafe { opencl.rotate(sides, x.arg()) }
            })?;
        }
        let mut x = x.hip_mut(&sides.stream)?;
        let mut squared = squared.hip_mut(&sides.stream)?;
        stages.stage("scale", ApiName::Hip, in_place, || hip.scale(&mut x.slice_mut(), step))?;
        stages.stage("magnitude", ApiName::Hip, to_magnitude, || {
            hip.magnitude(&mut x.slice_mut(), &mut squared.slice_mut())
        })
    }
}
