//! `/dev/kfd`, `/dev/dri/renderD*`, and containers, which often lack them.

use super::super::findings::Check;
use super::Root;
use super::driver::Card;
use super::identity::{Group, Rights};

/// What container engines leave behind: Docker, Podman, systemd-nspawn and others.
const SIGNS: [&str; 3] = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"];

fn in_container(root: &Root) -> Option<&'static str> {
    SIGNS.into_iter().find(|sign| root.exists(sign))
}

pub(super) fn container(root: &Root) -> Check {
    match in_container(root) {
        Some(sign) => Check::told("container", format!("yes: found {sign}")),
        None => Check::told("container", "no sign of one"),
    }
}

pub(super) fn checks(root: &Root, cards: &[Card]) -> Vec<Check> {
    let mut paths = vec![KFD.to_owned()];
    let renders: Vec<String> = root
        .names("/dev/dri")
        .into_iter()
        .filter(|name| name.starts_with("renderD"))
        .collect();
    if renders.is_empty() {
        paths.push("/dev/dri/renderD*".to_owned());
    }
    // a card of another maker has its own, which need not be ours to open
    let only_amd = cards.iter().all(Card::is_amd);
    for name in renders {
        let vendor = root.text(&format!("/sys/class/drm/{name}/device/vendor"));
        if vendor.map_or(only_amd, |vendor| vendor == "0x1002") {
            paths.push(format!("/dev/dri/{name}"));
        }
    }
    let nodes: Vec<(String, Rights)> = paths
        .into_iter()
        .map(|path| {
            let rights = Rights::of(root, &path);
            (path, rights)
        })
        .collect();
    let checks = nodes.iter();
    checks.map(|(path, rights)| check(root, path, rights, &nodes)).collect()
}

const KFD: &str = "/dev/kfd";

/// `all` are the nodes: what helps several of them is one advice, in the same words at each.
fn check(root: &Root, path: &str, rights: &Rights, all: &[(String, Rights)]) -> Check {
    let alike = |like: &dyn Fn(&Rights) -> bool| -> String {
        let paths = all.iter().filter(|(_, other)| like(other));
        paths.map(|(path, _)| path.as_str()).collect::<Vec<_>>().join(" and ")
    };
    match rights {
        Rights::Granted => Check::good(path, "readable and writable"),
        Rights::Missing => {
            let paths = alike(&|other| *other == Rights::Missing);
            Check::bad(path, "missing", missing(root, &paths))
        }
        Rights::Unknown => Check::unknown(path, "cannot read /proc/self/status"),
        Rights::Denied { detail, group } => {
            let paths = alike(&|other| matches!(other, Rights::Denied { group: its, .. } if its == group));
            Check::bad(
                path,
                format!("may not be read and written: {detail}"),
                join(root, &paths, group),
            )
        }
    }
}

/// What a user namespace shows of a group that it does not map (`user_namespaces(7)`, the overflow group).
const UNMAPPED: u32 = 65534;

/// How to get permission to open them.
fn join(root: &Root, paths: &str, group: &Group) -> String {
    let number = group.number;
    if !group.helps || number == 0 {
        return format!(
            "no group has access to {paths}: install AMD's udev rules, which grant it to `render`, and log in again"
        );
    }
    if in_container(root).is_some() {
        return match number {
            UNMAPPED => format!(
                "this container may not open {paths}, because it lacks the host's group: start it with `--group-add keep-groups` (Podman), or as root"
            ),
            _ => format!("this container may not open {paths}: start it with `--group-add {number}`"),
        };
    }
    match &group.name {
        Some(name) => format!(
            "this user may not open {paths}: join the group with `sudo usermod -aG {name} $USER`, and log in again"
        ),
        None => format!(
            "this user may not open {paths}, whose group {number} has no name: create it with `sudo groupadd -g {number} kfd`, join it with `sudo usermod -aG kfd $USER`, and log in again"
        ),
    }
}

fn missing(root: &Root, paths: &str) -> String {
    match in_container(root) {
        Some(_) => format!("missing in this container: {paths}; start it with `--device=/dev/kfd --device=/dev/dri`"),
        None => format!("missing: {paths}; the driver amdgpu did not create them, check `dmesg`"),
    }
}
