//! Variables that hide devices, and XNACK.

use std::collections::BTreeMap;

use super::super::findings::Check;
use super::super::pairing::same_place;
use super::{Root, RuntimeReport};

/// The variables that matter here.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

/// Hides devices from both APIs.
const BOTH: [&str; 1] = ["ROCR_VISIBLE_DEVICES"];
/// Hides devices from HIP (hipamd/src/hip_context.cpp takes either name).
const HIP: [&str; 2] = ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"];
/// Hides devices from AMD's OpenCL (rocclr/device/rocm/rocdevice.cpp, `GPU_DEVICE_ORDINAL`).
const OPENCL: [&str; 1] = ["GPU_DEVICE_ORDINAL"];

impl Environment {
    /// That of this process.
    pub fn of_this_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned(),
            )
        };
        Self(std::env::vars_os().map(text).collect())
    }

    /// One made of these.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self(variables.iter().map(own).collect())
    }

    /// The value, if it is set to something.
    pub(in crate::doctor) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name)?;
        (!value.is_empty()).then_some(value)
    }

    fn set(&self, names: &[&str]) -> Vec<String> {
        let one = |name: &&str| Some(format!("{name}={}", self.get(name)?));
        names.iter().filter_map(one).collect()
    }
}

pub(super) fn visibility(environment: &Environment, runtime: &RuntimeReport) -> Vec<Check> {
    const NAME: &str = "visible devices";
    let (hip, opencl) = (environment.set(&HIP), environment.set(&OPENCL));
    let mut all = environment.set(&BOTH);
    all.extend(hip.iter().chain(&opencl).cloned());
    if all.is_empty() {
        return vec![Check::told(NAME, "no variable hides a device")];
    }
    let found = all.join(", ");
    let apart = runtime
        .hip
        .iter()
        .filter(|device| !runtime.opencl.iter().any(|other| same_place(device, other)))
        .count();
    // both lists must be known to be told apart
    let differ = apart > 0 && !runtime.opencl.is_empty();
    // one at least of those that only one API obeys
    vec![if differ && !(hip.is_empty() && opencl.is_empty()) {
        Check::bad(
            NAME,
            found,
            "HIP and OpenCL see different GPUs: HIP_VISIBLE_DEVICES affects only HIP, and GPU_DEVICE_ORDINAL only OpenCL; use ROCR_VISIBLE_DEVICES, which affects both",
        )
    } else {
        Check::told(NAME, found)
    }]
}

/// Whether the card retries accesses to missing pages, which managed memory needs in order to move.
pub(super) fn xnack(root: &Root, environment: &Environment, runtime: &RuntimeReport) -> Check {
    const NAME: &str = "XNACK";
    let asked = environment.get("HSA_XNACK");
    let modes: Vec<&str> = ["xnack+", "xnack-"]
        .into_iter()
        .filter(|mode| runtime.devices.iter().any(|name| name.contains(mode)))
        .collect();
    let mut found = vec![match asked {
        Some(value) => format!("HSA_XNACK={value}"),
        None => "HSA_XNACK is not set".to_owned(),
    }];
    if let Some(value) = root.text("/sys/module/amdgpu/parameters/noretry") {
        found.push(format!("amdgpu.noretry={value}"));
    }
    found.push(match modes.as_slice() {
        [] => "no device reports its mode".to_owned(),
        modes => format!("devices report {}", modes.join(" and ")),
    });
    let found = found.join(", ");
    if asked == Some("1") && modes == ["xnack-"] {
        return Check::bad(
            NAME,
            found,
            "HSA_XNACK=1 has no effect: the GPU or the driver (amdgpu.noretry=0) does not support it, so managed memory does not migrate",
        );
    }
    if modes.is_empty() {
        return Check::unknown(NAME, found);
    }
    Check::told(NAME, found)
}
