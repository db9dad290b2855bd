//! OpenCL kernels on HIP streams.

use interop::{Extent, StreamTrial};
use platform::Selection;
use serde::{Deserialize, Serialize};

use super::answer::tell;
use crate::doctor::findings::StreamFigures;
use crate::error::one_line;

/// What a child found.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::doctor) struct Tried {
    /// What the stream ran, if the result is right.
    pub(in crate::doctor) how: Option<String>,
    /// Why it did not.
    pub(in crate::doctor) reason: Option<String>,
    pub(in crate::doctor) figures: Option<StreamFigures>,
    /// Why there are no figures although it works.
    pub(in crate::doctor) figures_missing: Option<String>,
}

impl Tried {
    /// The trial did not begin, and why.
    pub(super) fn not_begun(reason: &str) -> Self {
        Self {
            how: None,
            reason: Some(one_line(reason)),
            figures: None,
            figures_missing: None,
        }
    }
}

pub(super) fn look(selection: &Selection, extent: Extent) -> Tried {
    let trial = match StreamTrial::run(selection, &interop::Options::default(), extent, tell) {
        Ok(trial) => trial,
        Err(error) => return Tried::not_begun(&error.to_string()),
    };
    let (figures, figures_missing) = match &trial.cost {
        Some(Ok(cost)) => (Some(StreamFigures::from(cost)), None),
        Some(Err(reason)) => (None, Some(one_line(reason))),
        None => (None, None),
    };
    match trial.outcome {
        Ok(how) => Tried {
            how: Some(how.to_owned()),
            reason: None,
            figures,
            figures_missing,
        },
        Err(reason) => Tried::not_begun(&reason),
    }
}
