//! Two GPUs of one process.
//!
//! A [`Peer`] is a proven pair: kernels of the second device have read a pattern in the memory of the first, or it is
//! known that they cannot and that HIP's copies go through the host.

mod access;
mod copy;
mod order;
mod probe;

use crate::{Bridge, Error, Result};

/// Memory of one GPU for another, proven by [`Bridge::peer`].
#[derive(Clone, Debug)]
pub struct Peer {
    from: Bridge,
    to: Bridge,
    report: PeerReport,
}

/// How one GPU accesses another's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerPath {
    /// Kernels of the second device reach the memory of the first.
    Direct,
    /// They do not, and copies go through host memory, inside HIP.
    Staged,
}

impl std::fmt::Display for PeerPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Staged => "staged through the host",
        })
    }
}

/// The result of proving two GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerReport {
    /// Ordinal of the HIP device that has the memory.
    pub from: usize,
    /// Ordinal of the HIP device that uses it.
    pub to: usize,
    /// How it does so.
    pub path: PeerPath,
    /// Throughput of a HIP copy in 10^9 bytes a second; the median of several.
    pub gb_s: f64,
}

impl std::fmt::Display for PeerReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { from, to, path, gb_s } = self;
        write!(f, "HIP device {from} to {to}: {path}, {gb_s:.1} GB/s")
    }
}

impl Bridge {
    /// Makes the memory of this bridge's GPU available to that of `to`, and proves it: access is enabled, a kernel of
    /// the other device reads a pattern that this one wrote, and one copy is checked and timed. Only the direction from
    /// here to there is proven.
    ///
    /// # Errors
    /// [`Error::NoPeer`] for one and the same device, for bridges that were not opened
    /// [together](Self::open_all), or if a single word was wrong; driver errors.
    pub fn peer(&self, to: &Bridge) -> Result<Peer> {
        let (from, other) = (self.hip_device(), to.hip_device());
        if from.ordinal() == other.ordinal() {
            return Err(no_peer(self, to, "both are the same device"));
        }
        if !std::ptr::eq(self.hip_runtime().api(), to.hip_runtime().api()) {
            let reason = "the bridges were opened separately; open them with Bridge::open_all";
            return Err(no_peer(self, to, reason));
        }
        let path = probe::prove(self, to)?;
        let report = PeerReport {
            from: from.ordinal(),
            to: other.ordinal(),
            path,
            gb_s: probe::speed(self, to)?,
        };
        Ok(Peer {
            from: self.clone(),
            to: to.clone(),
            report,
        })
    }
}

impl Peer {
    /// What the proof found.
    #[must_use]
    pub fn report(&self) -> &PeerReport {
        &self.report
    }

    /// The bridge that owns the memory.
    #[must_use]
    pub fn from(&self) -> &Bridge {
        &self.from
    }

    /// The bridge that uses it.
    #[must_use]
    pub fn to(&self) -> &Bridge {
        &self.to
    }
}

fn no_peer(from: &Bridge, to: &Bridge, reason: impl Into<String>) -> Error {
    Error::NoPeer {
        from: from.hip_device().ordinal(),
        to: to.hip_device().ordinal(),
        reason: reason.into(),
    }
}
