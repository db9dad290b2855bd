//! One call that allocates.

use interop::{Allocation, AllocationTrial, Extent, Residency, Witness};
use platform::Selection;
use serde::{Deserialize, Serialize};

use super::answer::tell;
use crate::doctor::findings::rounded;
use crate::error::one_line;

/// What a child found about an allocation.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::doctor) struct Tried {
    /// Where the memory lies and who says so; `None` where that is unknown.
    pub(in crate::doctor) place: Option<(String, String)>,
    /// Why the call returned no memory.
    pub(in crate::doctor) reason: Option<String>,
    pub(in crate::doctor) opencl: Rate,
    pub(in crate::doctor) hip: Rate,
}

/// How fast one API accesses the memory, if measured, or why it cannot.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::doctor) struct Rate {
    pub(in crate::doctor) gb_s: Option<f64>,
    pub(in crate::doctor) missing: Option<String>,
}

impl Rate {
    fn of(rate: Result<Option<f64>, String>) -> Self {
        match rate {
            Ok(rate) => Self {
                gb_s: rate.map(rounded),
                missing: None,
            },
            Err(reason) => Self {
                gb_s: None,
                missing: Some(one_line(&reason)),
            },
        }
    }
}

impl Tried {
    /// An allocation that was not reached, and why.
    pub(super) fn not_begun(reason: &str) -> Self {
        let none = || Rate {
            gb_s: None,
            missing: None,
        };
        Self {
            place: None,
            reason: Some(one_line(reason)),
            opencl: none(),
            hip: none(),
        }
    }
}

pub(super) fn look(selection: &Selection, allocation: Allocation, extent: Extent) -> Tried {
    let options = interop::Options::default();
    match AllocationTrial::run(selection, &options, allocation, extent, tell) {
        Ok(trial) => tried(trial),
        Err(error) => Tried::not_begun(&error.to_string()),
    }
}

fn tried(trial: AllocationTrial) -> Tried {
    let (place, reason) = match trial.whereabouts {
        Ok(at) if at.residency == Residency::Unknown || at.witness == Witness::None => (None, None),
        Ok(at) => (Some((at.residency.to_string(), at.witness.to_string())), None),
        Err(reason) => return Tried::not_begun(&reason),
    };
    Tried {
        place,
        reason,
        opencl: Rate::of(trial.opencl_gb_s),
        hip: Rate::of(trial.hip_gb_s),
    }
}
