use std::time::Duration;

use super::{Handoff, Ordered, Parties, Side, wait_within};
use crate::access::User;
use crate::values::Mechanisms;
use crate::{Grade, Result};

/// [`Grade::Host`].
pub(crate) struct Host {
    limit: Option<Duration>,
}

impl Host {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { limit }
    }
}

impl Handoff for Host {
    fn grade(&self) -> Grade {
        Grade::Host
    }

    fn mechanisms(&self) -> Mechanisms {
        Mechanisms {
            cl_to_hip: "clFinish",
            hip_to_cl: "hipStreamSynchronize",
        }
    }

    fn limit(&self) -> Option<Duration> {
        self.limit
    }

    fn order(&self, before: &User, after: &User, _: clmgr::Arg<'_>) -> Result<Ordered> {
        let parties = Parties {
            grade: Grade::Host,
            before: Side::of(before),
            after: Side::of(after),
        };
        wait_within(before, self.limit, &parties)?;
        Ok(Ordered::Waited)
    }
}
