//! Which Vulkan device is the bridge's hardware.

use std::ffi::CStr;
use std::fmt;

use ash::vk;

use super::Error;
use crate::core::Core;
use crate::error::vulkan::call;

/// What identifies a Vulkan device.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// `VK_EXT_pci_bus_info`: domain, bus, device, function.
    pub pci: Option<[u32; 4]>,
    /// `deviceUUID`, which OpenCL may know too (`CL_DEVICE_UUID_KHR`).
    pub uuid: [u8; vk::UUID_SIZE],
    /// Whether it is a processor.
    pub is_cpu: bool,
}

/// Why a Vulkan device is taken for the HIP device, before patterns decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Match {
    /// Both name the same PCI address.
    Pci,
    /// The software device and this one are both the machine's processor.
    Processor,
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pci => "PCI address",
            Self::Processor => "processor",
        })
    }
}

/// Whether a physical device has an extension.
pub(super) fn has_extension(instance: &ash::Instance, device: vk::PhysicalDevice, name: &CStr) -> Result<bool, Error> {
    // SAFETY: a living instance and a device of its own.
    let all = unsafe { instance.enumerate_device_extension_properties(device) }
        .map_err(call("vkEnumerateDeviceExtensionProperties"))?;
    Ok(all
        .iter()
        .any(|extension| extension.extension_name_as_c_str() == Ok(name)))
}

impl Identity {
    pub(super) fn of(instance: &ash::Instance, device: vk::PhysicalDevice) -> Result<Self, Error> {
        let has_pci = has_extension(instance, device, ash::ext::pci_bus_info::NAME)?;
        let mut ids = vk::PhysicalDeviceIDProperties::default();
        let mut pci = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut ids);
        if has_pci {
            properties = properties.push_next(&mut pci);
        }
        // SAFETY: a living instance of Vulkan 1.1 or later and a device of its own; the structures
        // in the chain are of extensions that the device has.
        unsafe { instance.get_physical_device_properties2(device, &mut properties) };
        let basic = properties.properties;
        Ok(Self {
            name: basic
                .device_name_as_c_str()
                .map_or_else(|_| "unnamed".into(), |name| name.to_string_lossy().into()),
            pci: has_pci.then_some([pci.pci_domain, pci.pci_bus, pci.pci_device, pci.pci_function]),
            uuid: ids.device_uuid,
            is_cpu: basic.device_type == vk::PhysicalDeviceType::CPU,
        })
    }

    /// Names and indices are never compared, see the pairing of OpenCL devices.
    pub(super) fn matches(&self, core: &Core) -> Result<Option<Match>, crate::Error> {
        if core.platform.facts().is_model {
            return Ok(self.is_cpu.then_some(Match::Processor));
        }
        let hip = core.hip_device.pci_address()?;
        let same = self.pci == Some([hip.domain, hip.bus, hip.device, hip.function]);
        Ok(same.then_some(Match::Pci))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pci {
            Some([domain, bus, device, function]) => {
                write!(f, "{} ({domain:04x}:{bus:02x}:{device:02x}.{function:x})", self.name)
            }
            None => write!(f, "{} (no PCI address)", self.name),
        }
    }
}

/// For messages.
pub(super) fn describe(core: &Core) -> String {
    let name = core.hip_device.name().unwrap_or_else(|_| "device".into());
    match core.hip_device.pci_address() {
        Ok(address) => format!("{name} ({address})"),
        Err(_) => name,
    }
}
