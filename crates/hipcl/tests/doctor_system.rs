//! What `hipcl doctor` reads of the system, on trees of files that stand for machines.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use hipcl::doctor::system::{Environment, Root, RuntimeReport, checks};
use hipcl::doctor::{Check, State};
use tempfile::TempDir;

const RELEASE: &str = "6.8.0-45-generic";
const CONFIG: &str =
    "CONFIG_HSA_AMD=y\nCONFIG_PCI_P2PDMA=y\nCONFIG_DMABUF_MOVE_NOTIFY=y\nCONFIG_HSA_AMD_SVM=y\nCONFIG_HSA_AMD_P2P=y\n";
/// Heap types of `/sys/class/kfd/kfd/topology/nodes/*/mem_banks/*/properties`.
const PUBLIC: u64 = 1;
const PRIVATE: u64 = 2;

struct Machine {
    folder: TempDir,
    environment: Vec<(&'static str, &'static str)>,
    runtime: RuntimeReport,
}

impl Machine {
    /// A kernel and a user in the group `render`, and no card.
    fn new() -> Self {
        let machine = Self {
            folder: TempDir::new().expect("a folder"),
            environment: Vec::new(),
            runtime: RuntimeReport::default(),
        };
        machine.write("proc/sys/kernel/osrelease", &format!("{RELEASE}\n"));
        machine.write(
            "proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         65536                65536                bytes\n",
        );
        machine.write("etc/passwd", "root:x:0:0::/:/bin/sh\nada:x:4242:4242::/:/bin/sh\n");
        machine.write("etc/group", "root:x:0:\nada:x:4242:\nrender:x:4343:ada\n");
        machine.user(&[4242, 4343]);
        machine.folder("sys/bus/pci/devices");
        machine.folder("sys/kernel/iommu_groups");
        machine
    }

    /// An AMD card, with its driver, seen by ROCm as this node.
    fn card(mut self, node: u32, address: &str, heap: u64) -> Self {
        let pci = format!("sys/bus/pci/devices/{address}");
        self.write(&format!("{pci}/vendor"), "0x1002\n");
        self.write(&format!("{pci}/device"), "0x738c\n");
        self.write(&format!("{pci}/class"), "0x038000\n");
        self.write("sys/module/amdgpu/version", "6.8.5\n");
        self.write("sys/module/amdgpu/parameters/noretry", "-1\n");
        let nodes = "sys/class/kfd/kfd/topology/nodes";
        self.write(&format!("{nodes}/0/properties"), "cpu_cores_count 32\nsimd_count 0\n");
        let bus = u32::from_str_radix(&address[5..7], 16).expect("a bus");
        let minor = 127 + node;
        self.write(
            &format!("{nodes}/{node}/properties"),
            &format!("cpu_cores_count 0\nsimd_count 480\ngfx_target_version 90008\nlocation_id {}\ndomain 0\ndrm_render_minor {minor}\n", bus << 8),
        );
        self.write(
            &format!("{nodes}/{node}/mem_banks/0/properties"),
            &format!("heap_type {heap}\nsize_in_bytes 34342961152\nflags 0\n"),
        );
        self.write(
            &format!("{nodes}/{node}/io_links/0/properties"),
            &format!("type 2\nnode_from {node}\nnode_to 0\n"),
        );
        self.node("dev/kfd", 0o666);
        self.node(&format!("dev/dri/renderD{minor}"), 0o666);
        self.runtime.uses_kfd = true;
        self.runtime.devices = vec!["gfx908:sramecc+:xnack-".into()];
        self.runtime.hip.push(address.into());
        self.runtime.opencl.push(address.into());
        self
    }

    fn config(self, text: &str) -> Self {
        self.write(&format!("boot/config-{RELEASE}"), text);
        self
    }

    fn user(&self, groups: &[u32]) {
        let groups: Vec<String> = groups.iter().map(u32::to_string).collect();
        let groups = groups.join(" ");
        self.write(
            "proc/self/status",
            &format!("Name:\thipcl\nUid:\t4242\t4242\t4242\t4242\nGid:\t4242\t4242\t4242\t4242\nGroups:\t{groups} \n"),
        );
    }

    fn node(&self, path: &str, mode: u32) {
        self.write(path, "");
        let path = self.folder.path().join(path);
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.folder.path().join(path)).expect("a folder");
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn remove(&self, path: &str) {
        let path = self.folder.path().join(path);
        match path.is_dir() {
            true => fs::remove_dir_all(path).expect("removed"),
            false => fs::remove_file(path).expect("removed"),
        }
    }

    fn look(&self) -> Vec<Check> {
        checks(
            &Root::at(self.folder.path()),
            &Environment::of(&self.environment),
            &self.runtime,
        )
    }

    #[track_caller]
    fn check(&self, name: &str) -> Check {
        let all = self.look();
        let found = all.iter().find(|check| check.name == name);
        found.unwrap_or_else(|| panic!("no {name} in {all:#?}")).clone()
    }

    #[track_caller]
    fn bad(&self, name: &str, advice: &str) -> Check {
        let check = self.check(name);
        assert_eq!(check.state, State::Bad, "{check:?}");
        let said = check.advice.as_deref().expect("an advice");
        assert!(said.contains(advice), "{said}");
        assert_eq!(said.lines().count(), 1);
        check
    }
}

/// The checks by which something is in the way.
fn bad(checks: &[Check]) -> Vec<&str> {
    let bad = checks.iter().filter(|check| check.state == State::Bad);
    bad.map(|check| check.name.as_str()).collect()
}

#[test]
fn one_mi100_in_order_has_no_complaint() {
    let machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config(CONFIG);
    let all = machine.look();
    assert_eq!(bad(&all), [""; 0], "{all:#?}");
    assert!(all.iter().all(|check| check.advice.is_none()), "{all:#?}");
    assert_eq!(
        machine.check("KFD node 1").found,
        "gfx908 0000:03:00.0, 32.0 GiB of its own, /dev/dri/renderD128"
    );
    assert_eq!(machine.check("large BAR").state, State::Good);
    assert_eq!(machine.check("kernel").found, RELEASE);
    assert_eq!(machine.check("amdgpu driver").found, "version 6.8.5, noretry=-1");
    assert_eq!(machine.check("cards").found, "0000:03:00.0 AMD 738c");
    assert_eq!(
        machine.check("XNACK").found,
        "HSA_XNACK is not set, amdgpu.noretry=-1, devices report xnack-"
    );
    assert_eq!(machine.check("locked memory").found, "limited to 65536 bytes");
}

#[test]
fn a_machine_without_amds_hardware_is_not_asked_for_its_driver() {
    let all = Machine::new().look();
    assert_eq!(bad(&all), [""; 0], "{all:#?}");
    assert!(!all.iter().any(|check| check.name.contains("kfd")), "{all:#?}");
}

#[test]
fn two_cards_are_told_apart_with_their_links() {
    let machine = Machine::new()
        .card(1, "0000:03:00.0", PUBLIC)
        .card(2, "0000:83:00.0", PUBLIC)
        .config(CONFIG);
    let nodes = "sys/class/kfd/kfd/topology/nodes";
    machine.write(
        &format!("{nodes}/1/io_links/1/properties"),
        "type 11\nnode_from 1\nnode_to 2\n",
    );
    let all = machine.look();
    assert_eq!(bad(&all), [""; 0], "{all:#?}");
    assert!(machine.check("KFD node 2").found.contains("0000:83:00.0"));
    assert_eq!(machine.check("links of cards").found, "node 1 to 2: xGMI");
    machine.remove(&format!("{nodes}/1/io_links/1"));
    assert_eq!(machine.check("links of cards").found, "node 1 to 2: none");
    machine.write(
        &format!("{nodes}/1/p2p_links/0/properties"),
        "type 2\nnode_from 1\nnode_to 2\n",
    );
    assert_eq!(machine.check("links of cards").found, "node 1 to 2: PCIe");
    machine.write("sys/kernel/iommu_groups/0/type", "DMA-FQ\n");
    machine.bad("IOMMU", "iommu=pt");
}

#[test]
fn a_small_bar_is_told_with_what_it_costs() {
    let machine = Machine::new().card(1, "0000:03:00.0", PRIVATE).config(CONFIG);
    let check = machine.bad("large BAR", "Resizable BAR");
    assert!(check.found.contains("0000:03:00.0"), "{}", check.found);
}

#[test]
fn a_user_outside_the_group_is_told_which_one_to_join() {
    let machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config(CONFIG);
    machine.node("dev/kfd", 0o660);
    // the user who runs the test owns the file, so the user of the fixture is neither owner nor, by chance, in its
    // group
    machine.user(&[4242]);
    let check = machine.check("/dev/kfd");
    assert_eq!(check.state, State::Bad, "{check:?}");
    assert!(check.found.contains("mode 0660"), "{}", check.found);
    assert!(
        check.found.contains("this is user ada in the groups ada"),
        "{}",
        check.found
    );
    assert!(check.advice.expect("an advice").contains("log in again"));
    machine.node("dev/kfd", 0o666);
    assert_eq!(machine.check("/dev/kfd").state, State::Good);
}

/// Two nodes that this user may not open, and the advice at both.
fn denied(machine: &Machine) -> String {
    let nodes = ["dev/kfd", "dev/dri/renderD128"];
    for node in nodes {
        machine.node(node, 0o660);
    }
    machine.user(&[4242]);
    let advice = nodes.map(|node| {
        let check = machine.check(&format!("/{node}"));
        assert_eq!(check.state, State::Bad, "{check:?}");
        check.advice.expect("an advice")
    });
    assert_eq!(advice[0], advice[1], "one advice, to be said once");
    assert!(advice[0].contains("/dev/kfd and /dev/dri/renderD128"), "{}", advice[0]);
    advice[0].clone()
}

#[test]
fn nodes_of_one_group_share_an_advice_that_names_it() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config(CONFIG);
    let path = |node: &str| machine.folder.path().join(node);
    // who runs this as root owns files of the group root, which gets another advice; anybody else may not give them
    // away
    for node in ["dev/kfd", "dev/dri/renderD128"] {
        let _ = chown(path(node), None, Some(4343));
    }
    let group = fs::metadata(path("dev/kfd")).expect("a file").gid();
    machine.write("etc/group", &format!("ada:x:4242:\nrender:x:{group}:\n"));
    assert!(denied(&machine).contains("usermod -aG render"));
    machine.write("etc/group", "ada:x:4242:\n");
    assert!(denied(&machine).contains(&format!("groupadd -g {group} ")));
    machine.write(".dockerenv", "");
    assert!(denied(&machine).contains(&format!("`--group-add {group}`")));
    machine.remove(".dockerenv");
    // the group is of no use to its members
    for node in ["dev/kfd", "dev/dri/renderD128"] {
        machine.node(node, 0o600);
    }
    machine.bad("/dev/kfd", "udev rules");
}

#[test]
fn a_container_without_device_nodes_is_told_how_to_be_started() {
    let machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config(CONFIG);
    machine.write(".dockerenv", "");
    machine.remove("dev/kfd");
    machine.remove("dev/dri");
    let advice = ["/dev/kfd", "/dev/dri/renderD*"].map(|name| {
        let check = machine.bad(name, "--device=/dev/kfd --device=/dev/dri");
        check.advice.expect("an advice")
    });
    assert_eq!(advice[0], advice[1], "one advice, to be said once");
    assert!(machine.check("container").found.contains("/.dockerenv"));
    machine.remove(".dockerenv");
    machine.bad("/dev/kfd", "dmesg");
}

#[test]
fn what_a_card_needs_is_only_told_where_a_card_works_without_it() {
    let mut machine = Machine::new()
        .card(1, "0000:03:00.0", PUBLIC)
        .config("# CONFIG_PCI_P2PDMA is not set\n");
    machine.remove("dev/kfd");
    let names = ["/dev/kfd", "CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY"];
    for name in names {
        assert!(machine.check(name).advice.is_some(), "{name}");
    }
    machine.runtime.works = true;
    for name in names {
        let check = machine.check(name);
        assert_eq!((check.state, check.advice), (State::Info, None), "{name}");
    }
    assert_eq!(bad(&machine.look()), [""; 0]);
}

#[test]
fn a_card_without_its_driver_or_without_the_kfd_is_told_of() {
    let machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config(CONFIG);
    machine.remove("sys/class/kfd/kfd/topology/nodes/1");
    machine.bad("KFD topology", "dmesg");
    machine.remove("sys/class/kfd");
    machine.bad("KFD topology", "CONFIG_HSA_AMD");
    machine.remove("sys/module/amdgpu");
    machine.bad("amdgpu driver", "modprobe amdgpu");
}

#[test]
fn an_old_kernel_lacks_options_and_an_unknown_one_is_not_accused() {
    let old = "CONFIG_HSA_AMD=y\nCONFIG_HSA_AMD_SVM=y\n# CONFIG_PCI_P2PDMA is not set\n";
    let machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config(old);
    machine.remove("sys/module/amdgpu/version");
    machine.bad("CONFIG_PCI_P2PDMA", "dma-buf may be refused");
    machine.bad("CONFIG_DMABUF_MOVE_NOTIFY", "moved to host memory");
    // a single card has no peer to share with
    assert_eq!(machine.check("CONFIG_HSA_AMD_P2P").state, State::Info);
    let machine = machine.card(2, "0000:83:00.0", PUBLIC);
    machine.remove("sys/module/amdgpu/version");
    machine.bad("CONFIG_HSA_AMD_P2P", "cannot access each other's memory");
    machine.remove(&format!("boot/config-{RELEASE}"));
    for option in ["CONFIG_HSA_AMD", "CONFIG_PCI_P2PDMA", "CONFIG_HSA_AMD_P2P"] {
        assert_eq!(machine.check(option).state, State::Unknown);
    }
}

#[test]
fn a_packaged_driver_is_not_held_against_the_kernels_options() {
    let machine = Machine::new()
        .card(1, "0000:03:00.0", PUBLIC)
        .card(2, "0000:83:00.0", PUBLIC)
        .config("CONFIG_PCI_P2PDMA=y\n");
    for option in ["CONFIG_HSA_AMD", "CONFIG_HSA_AMD_SVM", "CONFIG_HSA_AMD_P2P"] {
        let check = machine.check(option);
        assert_eq!((check.state, check.advice), (State::Info, None), "{option}");
    }
    // of the kernel around the driver
    machine.bad("CONFIG_DMABUF_MOVE_NOTIFY", "moved to host memory");
    machine.remove("sys/module/amdgpu/version");
    for option in ["CONFIG_HSA_AMD", "CONFIG_HSA_AMD_SVM", "CONFIG_HSA_AMD_P2P"] {
        machine.bad(option, "use a kernel with this option");
    }
}

#[test]
fn the_running_kernels_own_configuration_comes_first() {
    let machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config("");
    let packed = machine.folder.path().join("proc/config.gz");
    let mut writer =
        flate2::write::GzEncoder::new(fs::File::create(packed).expect("a file"), flate2::Compression::fast());
    writer.write_all(CONFIG.as_bytes()).expect("written");
    writer.finish().expect("written");
    assert_eq!(machine.check("CONFIG_PCI_P2PDMA").found, "y (/proc/config.gz)");
}

#[test]
fn nothing_to_read_is_unknown_and_not_a_failure() {
    let empty = TempDir::new().expect("a folder");
    let runtime = RuntimeReport::default();
    let all = checks(&Root::at(empty.path()), &Environment::default(), &runtime);
    assert_eq!(bad(&all), [""; 0], "{all:#?}");
    let unknown = |name| {
        let check = all.iter().find(|check| check.name == name);
        assert_eq!(check.expect(name).state, State::Unknown, "{name}");
    };
    for name in ["kernel", "cards", "IOMMU", "locked memory"] {
        unknown(name);
    }
}

#[test]
fn variables_that_hide_different_cards_from_the_two_apis_are_named() {
    let mut machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config(CONFIG);
    machine.environment = vec![("HIP_VISIBLE_DEVICES", "1")];
    machine.runtime.hip = vec!["0000:83:00.0".into()];
    machine.bad("visible devices", "ROCR_VISIBLE_DEVICES");
    // the same cards on both sides: told, not accused
    machine.runtime.opencl = vec!["????:83:00.0".into()];
    let check = machine.check("visible devices");
    assert_eq!((check.state, &*check.found), (State::Info, "HIP_VISIBLE_DEVICES=1"));
}

#[test]
fn xnack_that_was_asked_for_and_not_given_is_told_of() {
    let mut machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config(CONFIG);
    machine.environment = vec![("HSA_XNACK", "1")];
    machine.bad("XNACK", "managed memory does not migrate");
    machine.runtime.devices = vec!["gfx90a:sramecc+:xnack+".into()];
    assert_eq!(machine.check("XNACK").state, State::Info);
    machine.runtime.devices = vec!["gfx90a".into()];
    assert_eq!(machine.check("XNACK").state, State::Unknown);
}

#[test]
fn two_files_of_one_runtime_in_a_process_are_a_failure_and_two_names_of_one_file_are_none() {
    let mut machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config(CONFIG);
    let lib = "opt/rocm-6.3.0/lib";
    machine.write(&format!("{lib}/libhsa-runtime64.so.1.14.60300"), "");
    link(machine.folder.path(), lib, "libhsa-runtime64.so.1");
    link(machine.folder.path(), lib, "libhsa-runtime64.so");
    machine.runtime.loaded = vec!["/opt/rocm-6.3.0/lib/libhsa-runtime64.so.1.14.60300".into()];
    let check = machine.check("libhsa-runtime64");
    assert_eq!(check.state, State::Good, "{check:?}");
    assert_eq!(
        check.found,
        "loaded /opt/rocm-6.3.0/lib/libhsa-runtime64.so.1.14.60300; installed: /opt/rocm-6.3.0/lib/libhsa-runtime64.so.1.14.60300"
    );
    machine.runtime.loaded.push("/wheel/libhsa-runtime64.so".into());
    let check = machine.bad("libhsa-runtime64", "remove one");
    assert!(check.found.starts_with("loaded 2 times"), "{}", check.found);
}

#[test]
fn the_runtimes_of_rocm_10_are_listed_wherever_they_lie() {
    let mut machine = Machine::new().card(1, "0000:03:00.0", PUBLIC).config(CONFIG);
    let file = "libhsa-runtime64.so.1.18.100000";
    let site = "srv/v/lib/python3.12/site-packages/_rocm_sdk_core/lib";
    for folder in ["opt/rocm/core-10.0/lib", "opt/rocm/core-10.1/lib", site] {
        machine.write(&format!("{folder}/{file}"), "");
    }
    // the packages' link to the chosen release is no further file
    symlink("core-10.0/lib", machine.folder.path().join("opt/rocm/lib")).expect("a link");
    let installed = |machine: &Machine| machine.check("libhsa-runtime64").found;
    let found = installed(&machine);
    let expected = format!("not loaded; installed: /opt/rocm/core-10.0/lib/{file}, /opt/rocm/core-10.1/lib/{file}");
    assert_eq!(found, expected);
    machine.environment.push(("VIRTUAL_ENV", "/srv/v"));
    assert_eq!(installed(&machine), format!("{expected}, /{site}/{file}"));
}

fn link(root: &Path, folder: &str, name: &str) {
    symlink("libhsa-runtime64.so.1.14.60300", root.join(folder).join(name)).expect("a link");
}
