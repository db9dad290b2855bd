use std::time::Duration;

use crate::access::{Ordered, User};
use crate::handoff::{Handoff, Host};
use crate::values::Mechanisms;
use crate::{Grade, Result};

/// The order of a stream of one GPU after the users of another GPU's memory: HIP keeps it between streams of two
/// devices by an event; OpenCL's queues are waited for on the host.
pub(super) struct Across(Host);

impl Across {
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self(Host::new(limit))
    }
}

impl Handoff for Across {
    fn grade(&self) -> Grade {
        Grade::Host
    }

    fn mechanisms(&self) -> Mechanisms {
        self.0.mechanisms()
    }

    fn limit(&self) -> Option<Duration> {
        self.0.limit()
    }

    fn order(&self, before: &User, after: &User, subject: clmgr::Arg<'_>) -> Result<Ordered> {
        if let (User::Hip(before), User::Hip(after)) = (before, after) {
            after.wait_for(before)?;
            return Ok(Ordered::Queued(None));
        }
        self.0.order(before, after, subject)
    }
}
