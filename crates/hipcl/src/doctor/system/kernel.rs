//! The kernel: release, options, IOMMU, limits.

use super::super::findings::Check;
use super::{Root, driver};

pub(super) fn release(root: &Root) -> Check {
    match root.text("/proc/sys/kernel/osrelease") {
        Some(release) => Check::told("kernel", release),
        None => Check::unknown("kernel", "cannot read /proc/sys/kernel/osrelease"),
    }
}

/// An option of the kernel's configuration, and what is lost without it.
struct KernelOption {
    option: &'static str,
    lost: &'static str,
    /// Of no use to a single card.
    for_several: bool,
    /// An option of the driver rather than of the kernel around it.
    of_driver: bool,
}

/// `drivers/gpu/drm/amd/amdkfd/Kconfig` has the dependencies among them.
const OPTIONS: [KernelOption; 5] = [
    KernelOption {
        option: "CONFIG_HSA_AMD",
        lost: "ROCm has no /dev/kfd",
        for_several: false,
        of_driver: true,
    },
    KernelOption {
        option: "CONFIG_PCI_P2PDMA",
        lost: "other devices cannot access device memory, and its export as a dma-buf may be refused",
        for_several: false,
        of_driver: false,
    },
    KernelOption {
        option: "CONFIG_DMABUF_MOVE_NOTIFY",
        lost: "a dma-buf that another device uses is moved to host memory",
        for_several: false,
        of_driver: false,
    },
    KernelOption {
        option: "CONFIG_HSA_AMD_SVM",
        lost: "managed memory does not move between host and GPU",
        for_several: false,
        of_driver: true,
    },
    KernelOption {
        option: "CONFIG_HSA_AMD_P2P",
        lost: "GPUs cannot access each other's memory over PCIe",
        for_several: true,
        of_driver: true,
    },
];

pub(super) fn options(root: &Root, gpus: usize) -> Vec<Check> {
    let config = config(root);
    OPTIONS
        .iter()
        .map(|needed| {
            let name = needed.option;
            let Some((config, from)) = &config else {
                return Check::unknown(name, "the kernel configuration was not found");
            };
            match value(config, name) {
                // AMD's package brings a driver of its own, whose options are set when it is built (DKMS)
                None if needed.of_driver && root.exists(driver::PACKAGED) => Check::told(
                    name,
                    format!("not relevant: the driver is AMD's package, not part of this kernel (not set in {from})"),
                ),
                Some(value @ ("y" | "m")) => Check::good(name, format!("{value} ({from})")),
                _ if needed.for_several && gpus < 2 => {
                    Check::told(name, format!("not set; not needed for a single GPU ({from})"))
                }
                _ => Check::bad(
                    name,
                    format!("not set ({from})"),
                    format!(
                        "{name} is not set in this kernel: {}; use a kernel with this option",
                        needed.lost
                    ),
                ),
            }
        })
        .collect()
}

/// The running kernel's configuration, and where it was found.
fn config(root: &Root) -> Option<(String, String)> {
    if let Some(text) = root.unpacked("/proc/config.gz") {
        return Some((text, "/proc/config.gz".to_owned()));
    }
    let release = root.text("/proc/sys/kernel/osrelease")?;
    [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
    ]
    .into_iter()
    .find_map(|path| Some((root.text(&path)?, path)))
}

fn value<'a>(config: &'a str, option: &str) -> Option<&'a str> {
    config
        .lines()
        .find_map(|line| line.trim().strip_prefix(option)?.strip_prefix('='))
}

/// How the IOMMU treats devices (`Documentation/ABI/testing/sysfs-kernel-iommu_groups`).
pub(super) fn iommu(root: &Root, gpus: usize) -> Check {
    const NAME: &str = "IOMMU";
    const GROUPS: &str = "/sys/kernel/iommu_groups";
    if !root.exists("/sys/kernel") {
        return Check::unknown(NAME, "cannot read /sys/kernel");
    }
    let groups = root.names(GROUPS);
    if groups.is_empty() {
        return Check::told(NAME, "no groups: off, or absent");
    }
    let mut kinds: Vec<String> = groups
        .iter()
        .filter_map(|group| root.text(&format!("{GROUPS}/{group}/type")))
        .collect();
    kinds.sort();
    kinds.dedup();
    if kinds.is_empty() {
        return Check::unknown(NAME, "groups of an unknown type");
    }
    let found = format!("{} groups, type {}", groups.len(), kinds.join(", "));
    let translates = kinds.iter().any(|kind| kind.starts_with("DMA"));
    if gpus > 1 && translates {
        return Check::bad(
            NAME,
            found,
            "the IOMMU translates addresses: with several GPUs, AMD requires `iommu=pt` on the kernel command line",
        );
    }
    Check::told(NAME, found)
}

pub(super) fn locked_memory(root: &Root) -> Check {
    const NAME: &str = "locked memory";
    let limits = root.text("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    match line.and_then(|line| line.split_whitespace().next()) {
        Some("unlimited") => Check::told(NAME, "unlimited"),
        Some(bytes) => Check::told(NAME, format!("limited to {bytes} bytes")),
        None => Check::unknown(NAME, "not reported by /proc/self/limits"),
    }
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn an_option_is_not_taken_for_one_that_begins_like_it() {
        let config = "CONFIG_HSA_AMD_SVM=y\n# CONFIG_HSA_AMD_P2P is not set\nCONFIG_HSA_AMD=y\nCONFIG_A=m\n";
        assert_eq!(value(config, "CONFIG_HSA_AMD"), Some("y"));
        assert_eq!(value(config, "CONFIG_HSA_AMD_P2P"), None);
        assert_eq!(value(config, "CONFIG_A"), Some("m"));
    }
}
