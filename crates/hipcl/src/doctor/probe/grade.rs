//! One way to hand over between the two devices.

use interop::{Extent, Grade, GradeTrial, Route};
use platform::Selection;
use serde::{Deserialize, Serialize};

use super::answer::tell;
use crate::doctor::findings::HandoffFigures;
use crate::error::one_line;

/// What a child found about a grade.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::doctor) struct Tried {
    /// What hands over from OpenCL to HIP and back, if the grade works.
    pub(in crate::doctor) mechanisms: Option<(String, String)>,
    /// Why it does not.
    pub(in crate::doctor) reason: Option<String>,
    pub(in crate::doctor) figures: Option<HandoffFigures>,
    /// Why there are no figures of a grade that works.
    pub(in crate::doctor) figures_missing: Option<String>,
}

impl Tried {
    /// A grade that was not reached, and why.
    pub(super) fn not_begun(reason: &str) -> Self {
        Self {
            mechanisms: None,
            reason: Some(one_line(reason)),
            figures: None,
            figures_missing: None,
        }
    }
}

pub(super) fn look(selection: &Selection, (grade, route): (Grade, Route), extent: Extent) -> Tried {
    let options = interop::Options::default();
    match GradeTrial::run(selection, &options, (route, grade), extent, tell) {
        Ok(trial) => tried(trial),
        Err(error) => Tried::not_begun(&error.to_string()),
    }
}

fn tried(trial: GradeTrial) -> Tried {
    let (mechanisms, reason) = match trial.outcome {
        Ok(by) => (Some((by.cl_to_hip.to_owned(), by.hip_to_cl.to_owned())), None),
        Err(reason) => (None, Some(one_line(&reason))),
    };
    let (figures, figures_missing) = match &trial.cost {
        Some(Ok(cost)) => (Some(HandoffFigures::from(cost)), None),
        Some(Err(reason)) => (None, Some(one_line(reason))),
        None => (None, None),
    };
    Tried {
        mechanisms,
        reason,
        figures,
        figures_missing,
    }
}
