//! Which OpenCL devices may be the same hardware as the HIP device.

use clmgr::DeviceKind;
use platform::Platform;

use crate::values::Pairing;
use crate::{Error, Result};

/// OpenCL devices that may pair with `hip`, most likely first.
///
/// Names and indices are never compared: two cards of one model have the same name, and the
/// environment can renumber each API's devices separately.
pub(crate) fn candidates(
    platform: Platform,
    hip: &hip::Device,
    devices: &[clmgr::Device],
    asked: Option<usize>,
) -> Result<Vec<(clmgr::Device, Pairing)>> {
    let considered = match asked {
        None => devices,
        Some(index) => devices.get(index..=index).ok_or_else(|| Error::NoPair {
            hip: describe(hip),
            reason: format!(
                "there is no OpenCL device {index}; there are {} (counted from 0)",
                devices.len()
            ),
        })?,
    };
    let paired: Vec<_> = match platform.facts().is_model {
        // It is this machine's processor: memory of any other OpenCL device could not be read by it.
        true => considered
            .iter()
            .filter(|device| device.kind() == DeviceKind::Cpu)
            .map(|device| (device.clone(), Pairing::Processor))
            .collect(),
        false => {
            let address = hip.pci_address()?;
            considered
                .iter()
                .filter(|device| same_place(device, &address))
                .map(|device| (device.clone(), Pairing::Pci(address.to_string())))
                .collect()
        }
    };
    if paired.is_empty() {
        return Err(Error::NoPair {
            hip: describe(hip),
            reason: refusal(platform, considered),
        });
    }
    Ok(paired)
}

/// Why this very OpenCL device pairs with `hip`.
pub(crate) fn of(platform: Platform, hip: &hip::Device, device: &clmgr::Device) -> Result<Pairing> {
    let devices = std::slice::from_ref(device);
    let (_, pairing) = candidates(platform, hip, devices, Some(0))?.remove(0);
    Ok(pairing)
}

/// AMD's OpenCL reports no PCI domain, so a missing domain matches any; the pattern test decides.
fn same_place(device: &clmgr::Device, hip: &hip::PciAddress) -> bool {
    device.pci_address().is_some_and(|cl| {
        (cl.bus, cl.device, cl.function) == (hip.bus, hip.device, hip.function)
            && cl.domain.is_none_or(|domain| domain == hip.domain)
    })
}

fn describe(hip: &hip::Device) -> String {
    let name = hip.name().unwrap_or_else(|_| "unnamed".into());
    match hip.pci_address() {
        Ok(address) => format!("HIP device {} ({name}, {address})", hip.ordinal()),
        Err(_) => format!("HIP device {} ({name})", hip.ordinal()),
    }
}

fn refusal(platform: Platform, devices: &[clmgr::Device]) -> String {
    if devices.is_empty() {
        return "OpenCL reports no device; install an OpenCL runtime or set HIPCL_OPENCL".into();
    }
    let one = |device: &clmgr::Device| match device.pci_address() {
        Some(address) => format!("{} ({address})", device.name()),
        None => format!("{} (no PCI address)", device.name()),
    };
    let seen = devices.iter().map(one).collect::<Vec<_>>().join(", ");
    match platform.facts().is_model {
        true => {
            format!(
                "none of {seen} is a CPU, which the software device needs; install an OpenCL runtime for CPUs (Debian: pocl-opencl-icd)"
            )
        }
        false => format!(
            "none of {seen} is at that PCI address; check ROCR_VISIBLE_DEVICES, \
             HIP_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL"
        ),
    }
}
