//! Hand-offs between OpenCL and HIP by Vulkan semaphores.

use std::sync::Arc;
use std::time::Duration;

use super::link::Link;
use super::semaphores::Semaphores;
use crate::bridge::{LIMIT, PROBE_LIMIT};
use crate::handoff::{Handoff, Nearby};
use crate::{Bridge, Error, Grade, Result};

impl Bridge {
    /// The same bridge with [`Grade::Device`] by semaphores, in both directions, for the buffers it makes from now on:
    /// `link` creates the semaphores, and OpenCL and HIP import them. A pattern has crossed both ways under it before
    /// this returns. `limit` is as [`Options::handoff_limit`](crate::Options::handoff_limit); a Vulkan queue that does
    /// nothing else signals for a side that does not end in time. Streams of another GPU ([`Peer`](crate::Peer)) have
    /// no imports: where OpenCL comes after them, the host waits.
    ///
    /// # Errors
    /// [`Error::NoGrade`] where OpenCL or HIP takes no semaphores (ROCm on Linux; a CPU), where Vulkan's
    /// device has no second queue, or if the proof failed.
    pub fn with_semaphores(&self, link: &Arc<Link>, limit: Option<Duration>) -> Result<Self> {
        if !Arc::ptr_eq(self.core(), link.bridge().core()) {
            return Err(Error::OtherOwner {
                what: "link",
                owner: "bridge",
            });
        }
        if let Err(reason) = &link.report().semaphores {
            return Err(Error::NoGrade {
                grade: Grade::Device,
                reason: reason.clone(),
            });
        }
        link.check_rescue().map_err(|error| Error::NoGrade {
            grade: Grade::Device,
            reason: error.to_string(),
        })?;
        let start = |limit| -> Result<Arc<dyn Handoff>> {
            Ok(Arc::new(Nearby {
                inner: Semaphores::start(self.core(), link, limit)?,
                device: self.hip_device().ordinal(),
            }))
        };
        let trial = start(PROBE_LIMIT)?;
        let proof = self.probe().prove_handoff(self.core(), self.route(), &trial);
        proof.map_err(|error| Error::NoGrade {
            grade: Grade::Device,
            reason: error.to_string(),
        })?;
        Ok(self.with_handoff(start(limit.unwrap_or(LIMIT))?))
    }
}
