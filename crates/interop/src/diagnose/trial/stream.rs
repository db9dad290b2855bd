use platform::Selection;

use super::{Step, on_each_pair};
use crate::bridge::open::{Libraries, Pair};
use crate::diagnose::measure::{self, StreamLaunchCost};
use crate::values::RouteReport;
use crate::{Grade, Options, Result, Route};

/// Whether OpenCL kernels run on HIP streams ([`Bridge::stream_program`](crate::Bridge::stream_program)), and the cost.
///
/// As with a [`Trial`](super::Trial), a driver that crashes takes the process along: try an unknown machine in a
/// process of its own.
#[derive(Clone, Debug)]
pub struct StreamTrial {
    /// What the stream ran, if every word is right that a HIP kernel and an OpenCL kernel with local arguments, an
    /// offset and constants left; else why not.
    pub outcome: Result<&'static str, String>,
    /// The cost of an empty kernel; or why that could not be measured. `None` where it does not work.
    pub cost: Option<Result<StreamLaunchCost, String>>,
}

impl StreamTrial {
    /// Tries it between the devices that `options` describes; its `route`, `grade` and `policy` play no part: one
    /// stream needs none. `observe` is called before each step.
    ///
    /// # Errors
    /// If OpenCL or HIP is missing, no two devices pair, or the probe's kernels do not compile. It is not an error if
    /// OpenCL kernels do not run on HIP streams.
    pub fn run(selection: &Selection, options: &Options, mut observe: impl FnMut(Step)) -> Result<Self> {
        observe(Step::Pair);
        let libraries = Libraries::load(selection)?;
        on_each_pair(
            &libraries,
            options,
            |pair| one(&libraries, pair, options, &mut observe),
            |trial| trial.outcome.is_ok(),
        )
    }
}

fn one(
    libraries: &Libraries<'_>,
    pair: Pair,
    options: &Options,
    observe: &mut impl FnMut(Step),
) -> Result<StreamTrial> {
    observe(Step::Allocate);
    let ready = libraries.ready(pair, options)?;
    // A bridge has a route; this one asks the least.
    let route = Route::Staging;
    let report = RouteReport::of(route, ready.probe.prove(&ready.core, route));
    let named = Options {
        route: Some(route),
        grade: None,
        ..options.clone()
    };
    let bridge = libraries.finish(ready, vec![report], &named, &[Grade::Host])?;
    observe(Step::Load);
    let outcome = bridge.prove_one_stream().map_err(|error| error.to_string());
    let cost = outcome.is_ok().then(|| {
        observe(Step::Launch);
        measure::launch_on_stream(&bridge).map_err(|error| error.to_string())
    });
    Ok(StreamTrial { outcome, cost })
}
