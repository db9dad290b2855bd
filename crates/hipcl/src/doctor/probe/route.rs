//! One route between the two devices.

use interop::{Extent, Route, Trial};
use platform::Selection;
use serde::{Deserialize, Serialize};

use super::answer::tell;
use crate::doctor::findings::RouteFigures;
use crate::error::one_line;

/// What a child found about a route.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::doctor) struct Tried {
    /// The OpenCL device, the HIP device, and why they are taken for one.
    pub(in crate::doctor) pair: Option<(String, String, String)>,
    /// Where compiled OpenCL programs are kept.
    pub(in crate::doctor) program_cache: Option<String>,
    pub(in crate::doctor) crossings: Vec<Crossing>,
    /// Where the memory lives, if the route works.
    pub(in crate::doctor) residency: Option<String>,
    /// Why it does not.
    pub(in crate::doctor) reason: Option<String>,
    /// The route does not exist between the two devices.
    pub(in crate::doctor) impossible: bool,
    pub(in crate::doctor) figures: Option<RouteFigures>,
    /// Why there are no figures of a route that works.
    pub(in crate::doctor) figures_missing: Option<String>,
}

impl Tried {
    /// A route that was not reached, and why.
    pub(super) fn not_begun(reason: &str) -> Self {
        Self {
            pair: None,
            program_cache: None,
            crossings: Vec::new(),
            residency: None,
            reason: Some(one_line(reason)),
            impossible: false,
            figures: None,
            figures_missing: None,
        }
    }
}

/// A pattern written through one API and read through the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossing {
    /// "OpenCL to HIP" or "HIP to OpenCL".
    pub direction: String,
    /// Whether every word arrived.
    pub agrees: bool,
    /// What went wrong.
    pub reason: Option<String>,
}

pub(super) fn look(selection: &Selection, route: Route, extent: Extent) -> Tried {
    let options = interop::Options::default();
    match Trial::run(selection, &options, route, extent, tell) {
        Ok(trial) => tried(trial),
        Err(error) => Tried::not_begun(&error.to_string()),
    }
}

fn tried(trial: Trial) -> Tried {
    let (residency, reason) = match &trial.report.outcome {
        Ok(residency) => (Some(residency.to_string()), None),
        Err(reason) => (None, Some(one_line(reason))),
    };
    let (figures, figures_missing) = match &trial.figures {
        Some(Ok(figures)) => (Some(RouteFigures::from(figures)), None),
        Some(Err(reason)) => (None, Some(one_line(reason))),
        None => (None, None),
    };
    Tried {
        pair: Some((trial.opencl_device, trial.hip_device, trial.pairing.to_string())),
        program_cache: trial.program_cache.map(|folder| folder.display().to_string()),
        crossings: trial
            .crossings
            .iter()
            .map(|(direction, outcome)| Crossing {
                direction: direction.to_string(),
                agrees: outcome.is_ok(),
                reason: outcome.as_ref().err().map(|reason| one_line(reason)),
            })
            .collect(),
        residency,
        reason,
        impossible: trial.report.impossible,
        figures,
        figures_missing,
    }
}
