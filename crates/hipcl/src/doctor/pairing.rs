//! Which devices of the two APIs may be one: by PCI address, as the bridge pairs them.
//!
//! Names and numbers are never compared: two cards of one model have the same name, and variables can renumber each
//! API's devices separately.

use super::findings::{HipDevice, OpenClDevice, Pairing};

/// Each HIP device with the OpenCL devices that may be it.
pub(super) fn table(is_model: bool, hip: &[HipDevice], opencl: &[OpenClDevice]) -> Vec<Pairing> {
    hip.iter()
        .map(|device| Pairing {
            hip: device.ordinal,
            opencl: opencl
                .iter()
                .enumerate()
                .filter(|(_, other)| match is_model {
                    // it is this machine's processor
                    true => other.kind == "CPU",
                    false => match (&device.pci, &other.pci) {
                        (Some(one), Some(other)) => same_place(one, other),
                        _ => false,
                    },
                })
                .map(|(index, _)| index)
                .collect(),
        })
        .collect()
}

/// AMD's OpenCL reports no PCI domain: an unknown one matches any.
pub(super) fn same_place(one: &str, other: &str) -> bool {
    match (one.split_once(':'), other.split_once(':')) {
        (Some((domain, place)), Some((other_domain, other_place))) => {
            let unknown = |domain: &str| domain.contains('?');
            place == other_place && (domain == other_domain || unknown(domain) || unknown(other_domain))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::same_place;

    #[test]
    fn an_unknown_domain_is_any_and_a_known_one_is_compared() {
        assert!(same_place("0000:03:00.0", "????:03:00.0"));
        assert!(same_place("0000:03:00.0", "0000:03:00.0"));
        assert!(!same_place("0001:03:00.0", "0000:03:00.0"));
        assert!(!same_place("0000:03:00.0", "????:83:00.0"));
        assert!(!same_place("", ""));
    }
}
