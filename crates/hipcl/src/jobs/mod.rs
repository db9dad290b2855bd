//! The jobs of `hipcl pipeline`, and the options that all of them share.

use bytemuck::Pod;
use interop::{Route, Shared};

use crate::timing::{ApiName, StageTimer};

pub mod capon;
pub mod gps;
mod launch;
pub mod note;
mod plant;
pub mod radar;
pub(crate) mod ranks;
mod sides;
mod stages;

pub use launch::{Launch, Waits};
pub(crate) use plant::Plant;
pub use ranks::Ranks;

pub use crate::outcome::{Emitter, Kernels, Outcome, Picture, Satellite, Target};

/// Data-set bytes that are copied when this buffer, changed on one side, is used on the other: none on a direct route;
/// on `Staging` the whole of it out of one API's memory and into the other's.
pub fn crossing_bytes<T: Pod>(buffer: &Shared<T>) -> u64 {
    if buffer.is_copy() {
        2 * (buffer.len() * size_of::<T>()) as u64
    } else {
        0
    }
}

/// The options passed to every job.
#[derive(Clone, Debug, Default)]
pub struct Common<'a> {
    /// The route to use; `None` takes the best direct one.
    pub route: Option<Route>,
    /// Timed iterations; `None` leaves it to the job.
    pub iterations: Option<usize>,
    /// Seed of everything that is generated.
    pub seed: u64,
    /// Copy a little data-set memory through this API in every iteration, behind the pipeline's back: the counters must
    /// see it and the run must not verify.
    pub plant_copy: Option<ApiName>,
    /// The processes among which the job is divided; `None` runs all of it here.
    pub ranks: Option<&'a Ranks>,
}

impl Common<'_> {
    /// A clock for the requested number of iterations, or `default`, after one to warm up.
    pub fn timer(&self, default: usize) -> StageTimer {
        StageTimer::new(self.iterations.unwrap_or(default), 1).plant(self.plant_copy)
    }
}
