//! A hand-off between OpenCL and the streams of one device, where streams of other devices use the memory too.

use std::time::Duration;

use super::{Handoff, Host, Ordered};
use crate::access::{User, Worker};
use crate::values::Mechanisms;
use crate::{Grade, Result};

/// What `H` does, but the host waits where OpenCL meets a stream of another device: `H`'s mechanism was imported for
/// one of them. Two streams order each other by an event, wherever they are.
pub(crate) struct Nearby<H> {
    pub(crate) inner: H,
    /// Ordinal of the device.
    pub(crate) device: usize,
}

impl<H> Nearby<H> {
    fn is_foreign(&self, user: &User) -> bool {
        matches!(user, User::Hip(stream) if stream.device().ordinal() != self.device)
    }
}

impl<H: Handoff> Handoff for Nearby<H> {
    fn grade(&self) -> Grade {
        self.inner.grade()
    }

    fn mechanisms(&self) -> Mechanisms {
        self.inner.mechanisms()
    }

    fn limit(&self) -> Option<Duration> {
        self.inner.limit()
    }

    fn follows_queues(&self) -> bool {
        self.inner.follows_queues()
    }

    fn order(&self, before: &User, after: &User, subject: clmgr::Arg<'_>) -> Result<Ordered> {
        if before.shares_api(after) || !(self.is_foreign(before) || self.is_foreign(after)) {
            return self.inner.order(before, after, subject);
        }
        Host::new(self.limit()).order(before, after, subject)
    }
}
