//! The cards as the kernel shows them to ROCm: `/sys/class/kfd/kfd/topology`
//! (drivers/gpu/drm/amd/amdkfd/kfd_topology.c).

use std::collections::BTreeMap;

use super::super::findings::Check;
use super::Root;

const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";
/// Types of memory banks (kfd_crat.h, `HSA_MEM_HEAP_TYPE_*`): device memory that the host sees all of, and the other
/// kind.
const FRAME_BUFFER_PUBLIC: u64 = 1;
const FRAME_BUFFER_PRIVATE: u64 = 2;
/// Types of links (kfd_crat.h, `CRAT_IOLINK_TYPE_*`).
const LINK_PCIE: u64 = 2;
const LINK_XGMI: u64 = 11;

/// A node with compute units of a GPU.
#[derive(Debug)]
pub(super) struct Gpu {
    node: String,
    properties: Properties,
    /// Type and bytes of each bank.
    banks: Vec<(u64, u64)>,
    /// Type and other end of each link, to host and cards alike.
    links: Vec<(u64, String)>,
}

type Properties = BTreeMap<String, u64>;

/// Lines of a name and a number.
fn properties(root: &Root, path: &str) -> Option<Properties> {
    let text = root.text(path)?;
    let pair = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    Some(text.lines().filter_map(pair).collect())
}

/// The properties in each sub-folder.
fn each(root: &Root, folder: &str) -> Vec<Properties> {
    root.names(folder)
        .iter()
        .filter_map(|name| properties(root, &format!("{folder}/{name}/properties")))
        .collect()
}

pub(super) fn gpus(root: &Root) -> Vec<Gpu> {
    root.names(NODES)
        .into_iter()
        .filter_map(|node| {
            let folder = format!("{NODES}/{node}");
            let own = properties(root, &format!("{folder}/properties"))?;
            own.get("simd_count").filter(|&&count| count > 0)?;
            let get = |of: &Properties, key: &str| of.get(key).copied().unwrap_or_default();
            let banks = each(root, &format!("{folder}/mem_banks"));
            let mut links = each(root, &format!("{folder}/io_links"));
            // links between cards by way of PCIe have a folder of their own since Linux 6.0
            links.extend(each(root, &format!("{folder}/p2p_links")));
            Some(Gpu {
                properties: own,
                banks: banks
                    .iter()
                    .map(|bank| (get(bank, "heap_type"), get(bank, "size_in_bytes")))
                    .collect(),
                links: links
                    .iter()
                    .map(|link| (get(link, "type"), get(link, "node_to").to_string()))
                    .collect(),
                node,
            })
        })
        .collect()
}

impl Gpu {
    fn property(&self, name: &str) -> Option<u64> {
        self.properties.get(name).copied()
    }

    /// `gfx908` of 90008: two digits each of minor version and stepping, the stepping in base 16.
    fn architecture(&self) -> String {
        match self.property("gfx_target_version").filter(|&version| version > 0) {
            Some(version) => format!("gfx{}{}{:x}", version / 10_000, version / 100 % 100, version % 100),
            None => "unknown architecture".to_owned(),
        }
    }

    /// Bus, device and function in one number (kfd_topology.c: `pci_dev_id`).
    fn address(&self) -> String {
        let Some(place) = self.property("location_id") else {
            return "unknown PCI address".to_owned();
        };
        let domain = match self.property("domain") {
            Some(domain) => format!("{domain:04x}"),
            None => "????".to_owned(),
        };
        format!(
            "{domain}:{:02x}:{:02x}.{:x}",
            place >> 8 & 0xFF,
            place >> 3 & 0x1F,
            place & 7
        )
    }

    fn memory(&self) -> u64 {
        let device = |&&(kind, _): &&(u64, u64)| matches!(kind, FRAME_BUFFER_PUBLIC | FRAME_BUFFER_PRIVATE);
        self.banks.iter().filter(device).map(|bank| bank.1).sum()
    }

    fn has_private_memory(&self) -> bool {
        self.banks.iter().any(|bank| bank.0 == FRAME_BUFFER_PRIVATE)
    }
}

/// Whether the kernel shows cards at all.
pub(super) fn visible(root: &Root, gpus: &[Gpu]) -> Option<Check> {
    if !root.exists(NODES) {
        return Some(Check::bad(
            "KFD topology",
            "absent",
            "the kernel shows no GPU to ROCm: load amdgpu (from AMD's package, or from a kernel with CONFIG_HSA_AMD), and make /sys/class/kfd visible in a container",
        ));
    }
    gpus.is_empty().then(|| {
        Check::bad(
            "KFD topology",
            "no GPU among the nodes",
            "the kernel driver accepts no GPU for ROCm: look for `kfd` in `dmesg`; the GPU may be too old, or hidden from a container",
        )
    })
}

pub(super) fn checks(gpus: &[Gpu]) -> Vec<Check> {
    if gpus.is_empty() {
        return Vec::new();
    }
    let mut checks: Vec<Check> = gpus.iter().map(card).collect();
    checks.push(large_bar(gpus));
    if gpus.len() > 1 {
        checks.push(between(gpus));
    }
    checks
}

fn card(gpu: &Gpu) -> Check {
    let gib = gpu.memory() as f64 / (1_u64 << 30) as f64;
    let render = match gpu.property("drm_render_minor") {
        Some(minor @ 1..) => format!(", /dev/dri/renderD{minor}"),
        _ => String::new(),
    };
    Check::told(
        format!("KFD node {}", gpu.node),
        format!(
            "{} {}, {gib:.1} GiB of its own{render}",
            gpu.architecture(),
            gpu.address()
        ),
    )
}

/// With a large BAR the driver reports one public bank, else one private bank (kfd_crat.c,
/// `kfd_create_vcrat_image_gpu`).
fn large_bar(gpus: &[Gpu]) -> Check {
    const NAME: &str = "large BAR";
    if gpus.iter().any(|gpu| gpu.memory() == 0) {
        return Check::unknown(NAME, "a GPU reports no memory of its own");
    }
    let without: Vec<String> = gpus
        .iter()
        .filter(|gpu| gpu.has_private_memory())
        .map(Gpu::address)
        .collect();
    if without.is_empty() {
        return Check::good(NAME, "the host can access all GPU memory");
    }
    Check::bad(
        NAME,
        format!("the host cannot access all memory of {}", without.join(", ")),
        "no large BAR: GPUs cannot access each other's memory over PCIe, and HIP copies of OpenCL memory crash; enable Above 4G Decoding and Resizable BAR in the firmware",
    )
}

fn between(gpus: &[Gpu]) -> Check {
    const NAME: &str = "links of cards";
    let mut found = Vec::new();
    for (i, one) in gpus.iter().enumerate() {
        for other in &gpus[i + 1..] {
            let mut kinds: Vec<&str> = one
                .links
                .iter()
                .filter(|link| link.1 == other.node)
                .map(|link| match link.0 {
                    LINK_PCIE => "PCIe",
                    LINK_XGMI => "xGMI",
                    _ => "another kind",
                })
                .collect();
            kinds.dedup();
            let kinds = match kinds.is_empty() {
                true => "none".to_owned(),
                false => kinds.join(" and "),
            };
            found.push(format!("node {} to {}: {kinds}", one.node, other.node));
        }
    }
    Check::told(NAME, found.join("; "))
}
