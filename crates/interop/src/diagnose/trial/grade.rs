use std::time::Duration;

use platform::Selection;

use super::{Extent, Step, on_each_pair};
use crate::bridge::open::{Libraries, Pair};
use crate::diagnose::measure::{self, DirectionCost};
use crate::values::RouteReport;
use crate::{Error, Grade, Mechanisms, Options, Result, Route};

/// A watchdog's time, for grades that have one: exchanges of empty kernels take microseconds.
const LIMIT: Duration = Duration::from_secs(10);

/// The outcome of one hand-off grade, and its cost.
///
/// As with a [`Trial`](super::Trial), a driver that hangs takes the process along: on an unknown machine, try each
/// grade in a process of its own.
#[derive(Clone, Debug)]
pub struct GradeTrial {
    /// The grade.
    pub grade: Grade,
    /// The route whose memory was handed over.
    pub route: Route,
    /// What hands over, if a pattern crossed that way in both directions; else why the grade is unavailable.
    pub outcome: Result<Mechanisms, String>,
    /// Microseconds to hand over, in each direction; or why that could not be measured. `None` where the grade is
    /// unavailable, or nothing but the proof was asked for.
    pub cost: Option<Result<DirectionCost, String>>,
}

impl GradeTrial {
    /// Tries only `grade` on memory of `route`, between the devices that `options` describes; its `route`, `grade` and
    /// `policy` play no part. `observe` is called before each step.
    ///
    /// # Errors
    /// If OpenCL or HIP is missing, no two devices pair, the probe's kernels do not compile, or the route does not
    /// work. It is not an error if the grade is unavailable.
    pub fn run(
        selection: &Selection,
        options: &Options,
        (route, grade): (Route, Grade),
        extent: Extent,
        mut observe: impl FnMut(Step),
    ) -> Result<Self> {
        observe(Step::Pair);
        let libraries = Libraries::load(selection)?;
        on_each_pair(
            &libraries,
            options,
            |pair| one(&libraries, pair, options, (route, grade, extent), &mut observe),
            |trial| trial.outcome.is_ok(),
        )
    }
}

fn one(
    libraries: &Libraries<'_>,
    pair: Pair,
    options: &Options,
    (route, grade, extent): (Route, Grade, Extent),
    observe: &mut impl FnMut(Step),
) -> Result<GradeTrial> {
    observe(Step::Allocate);
    let ready = libraries.ready(pair, options)?;
    let report = RouteReport::of(route, ready.probe.prove(&ready.core, route));
    let limit = (grade != Grade::Host).then_some(LIMIT);
    let named = Options {
        route: Some(route),
        grade: Some(grade),
        handoff_limit: options.handoff_limit.or(limit),
        ..options.clone()
    };
    observe(Step::Handoff);
    let mut trial = GradeTrial {
        grade,
        route,
        outcome: Err("it was not probed".to_owned()),
        cost: None,
    };
    match libraries.finish(ready, vec![report], &named, &[grade]) {
        Ok(bridge) => {
            if let Some(report) = bridge.grades().iter().find(|report| report.grade == grade) {
                trial.outcome.clone_from(&report.outcome);
            }
            trial.cost = (extent == Extent::Figures)
                .then(|| measure::handoff_by_direction(&bridge).map_err(|error| error.to_string()));
        }
        Err(Error::NoGrade { reason, .. }) => trial.outcome = Err(reason),
        Err(error) => return Err(error),
    }
    Ok(trial)
}
