//! The OpenCL libraries and their devices.

use serde::{Deserialize, Serialize};

use super::answer::tell;
use crate::doctor::findings::{Library, OpenClDevice, Tried};
use crate::error::one_line;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::doctor) struct OpenCl {
    pub(in crate::doctor) libraries: Vec<Library>,
    pub(in crate::doctor) tried: Vec<Tried>,
    pub(in crate::doctor) devices: Vec<OpenClDevice>,
    /// What went wrong, other than that there is none.
    pub(in crate::doctor) failure: Option<String>,
}

pub(super) fn look() -> OpenCl {
    tell("loading OpenCL and querying its devices");
    let manager = match clmgr::Manager::load() {
        Ok(manager) => manager,
        Err(clmgr::Error::NoRuntime { tried, .. }) => {
            return OpenCl {
                tried: self::tried(&tried),
                ..OpenCl::default()
            };
        }
        Err(error) => {
            return OpenCl {
                failure: Some(one_line(&error.to_string())),
                ..OpenCl::default()
            };
        }
    };
    OpenCl {
        libraries: manager
            .libraries()
            .iter()
            .map(|library| Library {
                name: library.platforms.join(", "),
                place: library.path.display().to_string(),
                usable: true,
                detail: library.kind.to_string(),
            })
            .collect(),
        tried: tried(manager.tried()),
        devices: manager.devices().iter().map(device).collect(),
        failure: None,
    }
}

fn tried(tried: &[clmgr::Tried]) -> Vec<Tried> {
    let one = |tried: &clmgr::Tried| Tried {
        what: tried.path.display().to_string(),
        reason: one_line(&tried.reason),
    };
    tried.iter().map(one).collect()
}

fn device(device: &clmgr::Device) -> OpenClDevice {
    OpenClDevice {
        name: device.name().trim().to_owned(),
        kind: format!("{:?}", device.kind()).to_uppercase(),
        platform: format!("{} {}", device.platform_name().trim(), device.platform_version().trim()),
        driver: device.driver_version().trim().to_owned(),
        svm: svm(device.svm()),
        pci: device.pci_address().map(|address| address.to_string()),
        memory_bytes: device.global_bytes(),
        library: device.library_path().display().to_string(),
    }
}

fn svm(capabilities: clmgr::SvmCapabilities) -> String {
    let names: Vec<String> = capabilities
        .iter_names()
        .map(|(name, _)| name.to_lowercase().replace('_', "-"))
        .collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(" ")
    }
}
