use std::fmt;
use std::path::PathBuf;

use super::{Residency, Route};

/// What a bridge found when it was opened.
#[derive(Clone, Debug)]
pub struct BridgeReport {
    /// The platform that HIP's functions come from.
    pub platform: platform::Platform,
    /// Why that platform was chosen.
    pub platform_why: String,
    /// Name of the HIP device.
    pub hip_device: String,
    /// Its PCI address, if it has one.
    pub hip_pci: Option<String>,
    /// Name of the OpenCL device.
    pub opencl_device: String,
    /// Its platform and version.
    pub opencl_platform: String,
    /// The library file it was found through.
    pub opencl_library: PathBuf,
    /// Why the two are taken for the same device.
    pub pairing: Pairing,
    /// Every route that was tried, best first: the one that [`Options::route`](crate::Options::route) names, or all.
    pub routes: Vec<RouteReport>,
    /// OpenCL devices that were examined and not chosen, with the reason.
    pub passed_over: Vec<(String, String)>,
    /// Whether every OpenCL copy call is counted.
    pub opencl_counted: bool,
}

impl BridgeReport {
    /// The routes that were proven, best first.
    pub fn working(&self) -> impl Iterator<Item = Route> + '_ {
        let works = |report: &&RouteReport| report.works();
        self.routes.iter().filter(works).map(|report| report.route)
    }
}

/// Why an OpenCL device and a HIP device are taken for the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pairing {
    /// Both name this PCI address, and the pattern test agreed where a direct route works.
    Pci(String),
    /// The host platform's device is this machine's processor, and so is the OpenCL device.
    Processor,
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci(address) => write!(f, "PCI address {address}"),
            Self::Processor => f.write_str("both are this machine's processor"),
        }
    }
}

/// What the probe of one route found.
#[derive(Clone, Debug)]
pub struct RouteReport {
    /// The route.
    pub route: Route,
    /// Where its memory lives if patterns written through either API were read through the other, else why it cannot be
    /// used.
    pub outcome: Result<Residency, String>,
    /// Whether the route does not exist between the two devices; one that exists but does not work has failed.
    pub impossible: bool,
}

impl RouteReport {
    /// Whether the route was proven.
    #[must_use]
    pub fn works(&self) -> bool {
        self.outcome.is_ok()
    }

    /// Whether the route exists, but its proof failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.outcome.is_err() && !self.impossible
    }
}

/// A route that failed at run time, and the one that was taken instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// The route that failed.
    pub from: Route,
    /// The route that was taken.
    pub to: Route,
    /// What was being done, such as `allocation` or `upload`.
    pub during: &'static str,
    /// What went wrong.
    pub reason: String,
}

impl fmt::Display for Failover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            from,
            to,
            during,
            reason,
        } = self;
        write!(f, "{during}: {from} failed ({reason}); {to} was used instead")?;
        if to.is_copy() {
            f.write_str(", which copies")?;
        }
        Ok(())
    }
}
