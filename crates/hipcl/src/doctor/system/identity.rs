//! The user of this process, and what it may open.

use std::os::unix::fs::MetadataExt as _;

use super::Root;

/// The user of this process (`proc_pid_status(5)`).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity {
    uid: u32,
    groups: Vec<u32>,
}

impl Identity {
    pub(super) fn of_this_process(root: &Root) -> Option<Self> {
        let status = root.text("/proc/self/status")?;
        let numbers = |key: &str| -> Option<Vec<u32>> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.split_whitespace().flat_map(str::parse).collect())
        };
        // real, effective, saved, file system: the last is what opening a file goes by
        let uid = *numbers("Uid:")?.get(3)?;
        let mut groups = vec![*numbers("Gid:")?.get(3)?];
        groups.extend(numbers("Groups:").unwrap_or_default());
        Some(Self { uid, groups })
    }
}

/// Whether a device node can be opened for reading and writing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rights {
    Granted,
    /// With the obstacle: "mode 0660, owner root, group render; this is user 1000".
    Denied {
        detail: String,
        group: Group,
    },
    Missing,
    Unknown,
}

/// The group of a device node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) number: u32,
    /// `None` if the number has no name here, as in a container.
    pub(super) name: Option<String>,
    /// Whether its members may read and write.
    pub(super) helps: bool,
}

impl Rights {
    pub(super) fn of(root: &Root, path: &str) -> Self {
        let Some(metadata) = root.metadata(path) else {
            return Self::Missing;
        };
        let Some(identity) = Identity::of_this_process(root) else {
            return Self::Unknown;
        };
        let granted = if root.is_real() {
            // also knows of access lists, which a login manager gives for render nodes
            let both = rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK;
            rustix::fs::access(path, both).is_ok()
        } else {
            by_mode(&identity, metadata.mode(), metadata.uid(), metadata.gid())
        };
        if granted {
            return Self::Granted;
        }
        let group = Group {
            number: metadata.gid(),
            name: known(root, "/etc/group", metadata.gid()),
            helps: metadata.mode() >> 3 & 0o6 == 0o6,
        };
        Self::Denied {
            detail: format!(
                "mode {:04o}, owner {}, group {}; this is user {} in the groups {}",
                metadata.mode() & 0o7777,
                name(root, "/etc/passwd", metadata.uid()),
                name(root, "/etc/group", metadata.gid()),
                name(root, "/etc/passwd", identity.uid),
                identity
                    .groups
                    .iter()
                    .map(|&group| name(root, "/etc/group", group))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            group,
        }
    }
}

/// The kernel's rule for a file without an access list (`path_resolution(7)`).
fn by_mode(identity: &Identity, mode: u32, uid: u32, gid: u32) -> bool {
    if identity.uid == 0 {
        return true;
    }
    let class = if identity.uid == uid {
        mode >> 6
    } else if identity.groups.contains(&gid) {
        mode >> 3
    } else {
        mode
    };
    class & 0o6 == 0o6
}

/// The name of a number in `/etc/passwd` or `/etc/group`: name, password, number, ….
fn known(root: &Root, table: &str, number: u32) -> Option<String> {
    let text = root.text(table)?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number)).then(|| name.to_owned())
    })
}

/// The same, or the number itself.
fn name(root: &Root, table: &str, number: u32) -> String {
    known(root, table, number).unwrap_or_else(|| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_class_that_applies_decides() {
        let user = Identity {
            uid: 1000,
            groups: vec![1000, 44],
        };
        assert!(by_mode(&user, 0o660, 0, 44));
        assert!(!by_mode(&user, 0o660, 0, 109));
        assert!(by_mode(&user, 0o666, 0, 109));
        // the owner's class is the owner's, even where others may do more
        assert!(!by_mode(&user, 0o066, 1000, 44));
        assert!(!by_mode(&user, 0o640, 0, 44));
    }
}
