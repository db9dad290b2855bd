//! The place on the PCI bus.

use std::fmt;

use super::query::Query;

/// Where a device sits on the PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// The domain; AMD's query has none.
    pub domain: Option<u32>,
    /// The bus.
    pub bus: u32,
    /// The device on the bus.
    pub device: u32,
    /// The function of the device.
    pub function: u32,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.domain {
            Some(domain) => write!(f, "{domain:04x}:")?,
            None => f.write_str("????:")?,
        }
        write!(f, "{:02x}:{:02x}.{:x}", self.bus, self.device, self.function)
    }
}

impl PciAddress {
    /// By `cl_khr_pci_bus_info` (domain, bus, device, function), else by AMD's query.
    pub(super) fn ask(device: &Query<'_>) -> Option<Self> {
        let khr = device.value::<[u32; 4]>(opencl_sys::CL_DEVICE_PCI_BUS_INFO_KHR);
        if let Ok([domain, bus, device, function]) = khr {
            return Some(Self {
                domain: Some(domain),
                bus,
                device,
                function,
            });
        }
        let topology = device.value::<[u8; 24]>(opencl_sys::CL_DEVICE_TOPOLOGY_AMD);
        amd_address(&topology.ok()?)
    }
}

/// Reads `cl_device_topology_amd`: a `cl_uint` type, 17 unused bytes, then bus, device, function.
fn amd_address(topology: &[u8; 24]) -> Option<PciAddress> {
    const PCIE: u32 = 1;
    let [a, b, c, d, .., bus, device, function] = *topology;
    (u32::from_ne_bytes([a, b, c, d]) == PCIE).then(|| PciAddress {
        domain: None,
        bus: bus.into(),
        device: device.into(),
        function: function.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amds_topology_gives_an_address_without_a_domain() {
        let mut topology = [0u8; 24];
        topology[..4].copy_from_slice(&1u32.to_ne_bytes());
        topology[21..].copy_from_slice(&[0xC3, 2, 1]);
        let address = amd_address(&topology).unwrap();
        assert_eq!(
            (address.domain, address.bus, address.device, address.function),
            (None, 0xC3, 2, 1)
        );
        topology[0] = 9;
        assert_eq!(amd_address(&topology), None);
    }
}
