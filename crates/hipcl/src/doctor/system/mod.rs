//! The system around the libraries: read, never changed, and never guessed at.
//!
//! | module | what it reads |
//! |---|---|
//! | `root` | files below `/`, or below a folder that stands for it |
//! | `identity` | who runs this, and what it may open |
//! | `kernel` | release, options, IOMMU, limits |
//! | `driver` | the cards on the bus and their driver |
//! | `topology` | the cards as the kernel shows them to ROCm |
//! | `nodes` | `/dev/kfd`, `/dev/dri/renderD*`, containers |
//! | `environment` | variables that hide devices, XNACK |
//! | `duplicates` | runtimes of which there must be one |

mod driver;
mod duplicates;
mod environment;
mod identity;
mod kernel;
mod nodes;
mod root;
mod topology;

pub use environment::Environment;
pub use root::Root;

use super::findings::{Check, State};

/// What the libraries report, for comparison with the system.
#[derive(Clone, Debug, Default)]
pub struct RuntimeReport {
    /// Whether the platform reaches its devices through AMD's kernel driver.
    pub uses_kfd: bool,
    /// Architectures and names of all devices of both APIs: `gfx908:sramecc+:xnack-`.
    pub devices: Vec<String>,
    /// PCI addresses of the HIP devices.
    pub hip: Vec<String>,
    /// PCI addresses of the OpenCL GPUs.
    pub opencl: Vec<String>,
    /// The runtimes' library files in a process that used both APIs.
    pub loaded: Vec<String>,
    /// Whether OpenCL and HIP reach each other's memory on an AMD card.
    pub works: bool,
}

/// The cards on the bus that one of the platforms could use.
pub fn cards(root: &Root) -> Vec<String> {
    let name = |card: &driver::Card| format!("the card at {}", card.address);
    driver::cards(root).iter().map(name).collect()
}

/// Runs all checks.
pub fn checks(root: &Root, environment: &Environment, runtime: &RuntimeReport) -> Vec<Check> {
    let cards = driver::cards(root);
    let gpus = topology::gpus(root);
    // without a sign of AMD hardware what it would need is not a failure
    let amd = runtime.uses_kfd || !gpus.is_empty() || cards.iter().any(driver::Card::is_amd);
    let mut checks = vec![kernel::release(root), nodes::container(root)];
    checks.extend(driver::checks(root, &cards));
    if amd {
        let mut ways = nodes::checks(root, &cards);
        ways.extend(topology::visible(root, &gpus));
        ways.extend(kernel::options(root, gpus.len()));
        if runtime.works {
            // What a card needs is not a failure where a card works without it.
            ways = ways.into_iter().map(Check::only_told).collect();
        }
        checks.extend(ways);
        checks.extend(topology::checks(&gpus));
        checks.push(environment::xnack(root, environment, runtime));
    }
    checks.push(kernel::iommu(root, if amd { gpus.len() } else { 0 }));
    checks.push(kernel::locked_memory(root));
    checks.extend(environment::visibility(environment, runtime));
    checks.extend(duplicates::checks(root, environment, runtime, amd));
    checks
}

impl Check {
    fn new(name: impl Into<String>, state: State, found: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state,
            found: found.into(),
            advice: None,
        }
    }

    fn good(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, State::Good, found)
    }

    fn told(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, State::Info, found)
    }

    fn unknown(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, State::Unknown, found)
    }

    /// The same without a verdict if it is bad.
    fn only_told(self) -> Self {
        match self.state {
            State::Bad => Self::told(self.name, self.found),
            _ => self,
        }
    }

    fn bad(name: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            advice: Some(advice.into()),
            ..Self::new(name, State::Bad, found)
        }
    }
}
