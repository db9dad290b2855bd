//! The four kernels on several data sets at once, through a [`Pipeline`].
//!
//! Where a change of side is expensive, because the device switches between two contexts, alternating on one data set
//! pays for two changes an iteration. Here each side takes the data sets that wait for it together, so a change is paid
//! once for all of them. The data sets stay on the device; nothing is uploaded or downloaded between iterations.

use std::time::Duration;

use interop::{Bridge, Pipeline, Shared};

use super::kernels::{ClHalf, HipHalf};
use super::{TOLERANCE, TOLERANCE_PER_STEP, error, generate};
use crate::jobs::sides::Sides;
use crate::outcome::Kernels;
use crate::timing::ApiName;
use crate::{C32, Error, Result};

/// How it went.
#[derive(Clone, Copy, Debug)]
pub struct Sustained {
    /// Wall time by the number of iterations.
    pub iteration: Duration,
    /// Memory traffic of one iteration, in bytes.
    pub bytes: u64,
    /// The largest deviation of any data set from the closed form, relative to its largest value.
    pub max_rel_error: f64,
    /// The limit for `max_rel_error`.
    pub tolerance: f64,
}

impl Sustained {
    /// Whether every data set is correct.
    #[must_use]
    pub fn verified(&self) -> bool {
        self.max_rel_error <= self.tolerance
    }
}

/// One data set.
struct DataSet {
    x: Shared<C32>,
    squared: Shared<f32>,
    steps: usize,
}

/// Runs `rounds` timed iterations on each of `slots` data sets of `samples` complex samples, all in flight together,
/// after one round to warm up, and verifies every data set.
///
/// # Errors
/// A number that is 0, memory that cannot be allocated, or a failed call.
pub fn run(bridge: &Bridge, samples: usize, slots: usize, rounds: usize, seed: u64) -> Result<Sustained> {
    if samples == 0 || slots == 0 || rounds == 0 {
        return Err(Error::input("samples, slots and rounds must be at least 1 each"));
    }
    let input = generate(samples, seed);
    let sets = (0..slots)
        .map(|_| {
            let mut x: Shared<C32> = bridge.alloc(samples)?;
            x.upload(&input)?;
            let squared = bridge.alloc(samples)?;
            Ok(DataSet { x, squared, steps: 0 })
        })
        .collect::<Result<Vec<_>>>()?;
    let sides = &Sides::new(bridge, Kernels::Queue)?;
    let opencl = &ClHalf::new(bridge, sides, samples)?;
    let hip = &HipHalf::new(bridge, &sides.stream, samples)?;
    // One batch on each side.
    let most = slots.div_ceil(2);
    let mut pipeline = Pipeline::new(sets)
        .batched_stage(
            "opencl",
            most,
            |set: &mut DataSet, _| {
                let mut x = sides.write(&mut set.x)?;
                // SAFETY: the buffer is of the length that the half was made for.
                unsafe {
                    opencl.add(sides, x.arg())?;
                    opencl.rotate(sides, x.arg())
                }
            },
            |_, _| sides.wait(ApiName::OpenCl),
        )
        .batched_stage(
            "hip",
            most,
            |set, _| {
                let mut x = set.x.hip_mut(&sides.stream)?;
                let mut squared = set.squared.hip_mut(&sides.stream)?;
                hip.scale(&mut x.slice_mut(), set.steps)?;
                hip.magnitude(&mut x.slice_mut(), &mut squared.slice_mut())?;
                set.steps += 1;
                Ok(())
            },
            |_, _| sides.wait(ApiName::Hip),
        );
    let mut elapsed = Duration::ZERO;
    for rounds in [1, rounds] {
        let mut failure = None;
        let summary = pipeline.run(
            &mut (0..rounds * slots),
            |_, _| Ok(()),
            |_| Ok(()),
            |_, outcome| failure = failure.take().or(outcome.err()),
        )?;
        if let Some(failure) = failure {
            return Err(match failure.cause {
                interop::pipeline::Cause::Failed(error) => error,
                _ => Error::input(failure.to_string()),
            });
        }
        elapsed = summary.elapsed;
    }
    let (mut worst, mut steps) = (0.0, 0);
    let mut last = vec![C32::default(); samples];
    let mut last_squared = vec![0.0; samples];
    for set in pipeline.into_slots() {
        set.x.download(&mut last)?;
        set.squared.download(&mut last_squared)?;
        worst = super::worst_of(worst, error(&input, &last, &last_squared, set.steps));
        steps = steps.max(set.steps);
    }
    let iterations = (rounds * slots) as u32;
    Ok(Sustained {
        iteration: elapsed / iterations,
        bytes: super::traffic(samples),
        max_rel_error: worst,
        tolerance: TOLERANCE + TOLERANCE_PER_STEP * steps as f64,
    })
}
