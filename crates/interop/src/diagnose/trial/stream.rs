use platform::Selection;

use super::{Extent, Step, bridge_by_host, on_each_pair};
use crate::bridge::open::{Libraries, Pair};
use crate::diagnose::measure::{self, StreamLaunchCost};
use crate::{Options, Result};

/// Whether OpenCL kernels run on HIP streams ([`Bridge::stream_program`](crate::Bridge::stream_program)), and the cost.
///
/// As with a [`Trial`](super::Trial), a driver that crashes takes the process along: try an unknown machine in a
/// process of its own.
#[derive(Clone, Debug)]
pub struct StreamTrial {
    /// What the stream ran, if every word is right that a HIP kernel and an OpenCL kernel with local arguments, an
    /// offset and constants left; else why not.
    pub outcome: Result<&'static str, String>,
    /// The cost of an empty kernel; or why that could not be measured. `None` where it does not work, or nothing but the
    /// proof was asked for.
    pub cost: Option<Result<StreamLaunchCost, String>>,
}

impl StreamTrial {
    /// Tries it between the devices that `options` describes; its `route`, `grade` and `policy` play no part: one
    /// stream needs none. `observe` is called before each step.
    ///
    /// # Errors
    /// If OpenCL or HIP is missing, no two devices pair, or the probe's kernels do not compile. It is not an error if
    /// OpenCL kernels do not run on HIP streams.
    pub fn run(
        selection: &Selection,
        options: &Options,
        extent: Extent,
        mut observe: impl FnMut(Step),
    ) -> Result<Self> {
        observe(Step::Pair);
        let libraries = Libraries::load(selection)?;
        on_each_pair(
            &libraries,
            options,
            |pair| one(&libraries, pair, options, extent, &mut observe),
            |trial| trial.outcome.is_ok(),
        )
    }
}

fn one(
    libraries: &Libraries<'_>,
    pair: Pair,
    options: &Options,
    extent: Extent,
    observe: &mut impl FnMut(Step),
) -> Result<StreamTrial> {
    observe(Step::Allocate);
    let bridge = bridge_by_host(libraries, pair, options)?;
    observe(Step::Load);
    let outcome = bridge.prove_one_stream().map_err(|error| error.to_string());
    let cost = (outcome.is_ok() && extent == Extent::Figures).then(|| {
        observe(Step::Launch);
        measure::launch_on_stream(&bridge).map_err(|error| error.to_string())
    });
    Ok(StreamTrial { outcome, cost })
}
