//! `/dev/kfd`, `/dev/dri/renderD*`, and containers, which often lack them.

use super::super::findings::Check;
use super::Root;
use super::driver::Card;
use super::identity::Rights;

/// What container engines leave behind: Docker, Podman, systemd-nspawn and others.
const SIGNS: [&str; 3] = [
    "/.dockerenv",
    "/run/.containerenv",
    "/run/systemd/container",
];

fn in_container(root: &Root) -> Option<&'static str> {
    SIGNS.into_iter().find(|sign| root.exists(sign))
}

pub(super) fn container(root: &Root) -> Check {
    match in_container(root) {
        Some(sign) => Check::told("container", format!("yes: there is {sign}")),
        None => Check::told("container", "no sign of one"),
    }
}

pub(super) fn checks(root: &Root, cards: &[Card]) -> Vec<Check> {
    let mut checks = vec![node(root, "/dev/kfd")];
    let renders: Vec<String> = root
        .names("/dev/dri")
        .into_iter()
        .filter(|name| name.starts_with("renderD"))
        .collect();
    if renders.is_empty() {
        checks.push(missing(root, "/dev/dri/renderD*"));
    }
    // a card of another maker has its own, which need not be ours to open
    let only_amd = cards.iter().all(Card::is_amd);
    for name in renders {
        let path = format!("/dev/dri/{name}");
        let vendor = root.text(&format!("/sys/class/drm/{name}/device/vendor"));
        if vendor.map_or(only_amd, |vendor| vendor == "0x1002") {
            checks.push(node(root, &path));
        }
    }
    checks
}

fn node(root: &Root, path: &str) -> Check {
    match Rights::of(root, path) {
        Rights::Granted => Check::good(path, "may be read and written"),
        Rights::Missing => missing(root, path),
        Rights::Unknown => Check::unknown(path, "/proc/self/status can't be read"),
        Rights::Denied { detail, group } => Check::bad(
            path,
            format!("may not be read and written: {detail}"),
            match (in_container(root), group.as_str()) {
                (Some(_), group) => format!(
                    "{path} may not be opened in this container: start it with `--group-add` and the host's number of the group (here {group})"
                ),
                (None, "root") => format!(
                    "{path} belongs to the group root: install AMD's udev rules, which give it to `render`, and log in again"
                ),
                (None, group) => format!(
                    "{path} may not be opened: become a member of its group by `sudo usermod -aG {group} $USER`, and log in again"
                ),
            },
        ),
    }
}

fn missing(root: &Root, path: &str) -> Check {
    let advice = match in_container(root) {
        Some(_) => format!(
            "{path} is missing in this container: start it with `--device=/dev/kfd --device=/dev/dri`"
        ),
        None => format!("{path} is missing: the driver amdgpu made none; look into `dmesg`"),
    };
    Check::bad(path, "missing", advice)
}
