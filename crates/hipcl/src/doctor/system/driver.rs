//! The cards on the bus and their driver.

use super::super::findings::Check;
use super::Root;

/// AMD's packaged driver has a version, the kernel's own has not.
pub(super) const PACKAGED: &str = "/sys/module/amdgpu/version";

const AMD: u32 = 0x1002;
const NVIDIA: u32 = 0x10DE;

/// A display controller or processing accelerator on the PCI bus.
#[derive(Debug)]
pub(super) struct Card {
    pub(super) address: String,
    vendor: u32,
    device: u32,
}

impl Card {
    pub(super) fn is_amd(&self) -> bool {
        self.vendor == AMD
    }
}

/// Number in a file of sysfs: `0x1002`.
fn hexadecimal(root: &Root, path: &str) -> Option<u32> {
    u32::from_str_radix(root.text(path)?.trim_start_matches("0x"), 16).ok()
}

pub(super) fn cards(root: &Root) -> Vec<Card> {
    const BUS: &str = "/sys/bus/pci/devices";
    root.names(BUS)
        .into_iter()
        .filter_map(|address| {
            let read = |file: &str| hexadecimal(root, &format!("{BUS}/{address}/{file}"));
            // base class 3 is a display controller, 12h a processing accelerator (PCI Code and ID Assignment)
            matches!(read("class")? >> 16, 0x03 | 0x12).then_some(())?;
            Some(Card {
                vendor: read("vendor")?,
                device: read("device")?,
                address,
            })
        })
        .filter(|card| matches!(card.vendor, AMD | NVIDIA))
        .collect()
}

pub(super) fn checks(root: &Root, cards: &[Card]) -> Vec<Check> {
    let mut checks = vec![on_the_bus(root, cards)];
    if cards.iter().any(Card::is_amd) || root.exists("/sys/module/amdgpu") {
        checks.push(amdgpu(root));
    }
    if let Some(version) = root.text("/proc/driver/nvidia/version") {
        let line = version.lines().next().unwrap_or_default();
        let line = line.trim_start_matches("NVRM version:");
        let words: Vec<&str> = line.split_whitespace().collect();
        checks.push(Check::told("nvidia driver", words.join(" ")));
    }
    checks
}

fn on_the_bus(root: &Root, cards: &[Card]) -> Check {
    const NAME: &str = "cards";
    if !root.exists("/sys/bus/pci/devices") {
        return Check::unknown(NAME, "cannot read /sys/bus/pci/devices");
    }
    if cards.is_empty() {
        return Check::told(NAME, "no AMD or NVIDIA GPU on the PCI bus");
    }
    let one = |card: &Card| {
        let vendor = if card.is_amd() { "AMD" } else { "NVIDIA" };
        format!("{} {vendor} {:04x}", card.address, card.device)
    };
    let cards: Vec<String> = cards.iter().map(one).collect();
    Check::told(NAME, cards.join(", "))
}

fn amdgpu(root: &Root) -> Check {
    const NAME: &str = "amdgpu driver";
    const MODULE: &str = "/sys/module/amdgpu";
    if !root.exists(MODULE) {
        return Check::bad(
            NAME,
            "not loaded",
            "the AMD GPU has no driver: load it with `modprobe amdgpu`, and check `dmesg` if it does not stay loaded",
        );
    }
    let mut found = match root.text(PACKAGED) {
        Some(version) => format!("version {version}"),
        None => "part of the kernel, without a version".to_owned(),
    };
    for parameter in ["noretry", "pcie_p2p", "use_xgmi_p2p", "gttsize"] {
        if let Some(value) = root.text(&format!("{MODULE}/parameters/{parameter}")) {
            found.push_str(&format!(", {parameter}={value}"));
        }
    }
    Check::good(NAME, found)
}
