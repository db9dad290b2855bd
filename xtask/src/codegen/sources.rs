//! The distribution's mirror that this machine's apt already trusts.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::Result;

/// A mirror and the keyring that signs it.
#[derive(Debug, PartialEq, Eq)]
pub struct Mirror {
    uri: String,
    /// Absent where apt's own keyrings are used.
    keyring: Option<String>,
}

/// One entry of apt's source lists, as far as it matters here.
#[derive(Debug, Default)]
struct Entry {
    uris: Vec<String>,
    suites: Vec<String>,
    components: Vec<String>,
    keyring: Option<String>,
    disabled: bool,
    binary: bool,
}

impl Mirror {
    /// Reads the source lists: apt's own listing of them is empty on a machine that never ran `apt-get update`.
    pub fn of_this_machine(shell: &Shell) -> Result<Self> {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let field = |name: &str| {
            let line = release
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
            Some(line.trim_matches('"').to_owned())
        };
        if field("ID").as_deref() != Some("debian") {
            return Err("this machine does not run Debian".into());
        }
        let codename = field("VERSION_CODENAME").unwrap_or_else(|| "sid".into());
        let entries = source_files(shell)?
            .iter()
            .flat_map(|file| entries(file))
            .collect::<Vec<_>>();
        Self::choose(entries, &codename).ok_or_else(|| "this machine's apt knows no Debian mirror".into())
    }

    fn choose(entries: Vec<Entry>, codename: &str) -> Option<Self> {
        let ours = [codename, "stable", "testing", "unstable", "sid"];
        let entry = entries.into_iter().find(|entry| {
            !entry.disabled
                && entry.binary
                && !entry.uris.is_empty()
                && entry.suites.iter().any(|suite| ours.contains(&suite.as_str()))
                && entry.components.iter().any(|component| component == "main")
        })?;
        Some(Self {
            uri: entry.uris.into_iter().next()?,
            keyring: entry.keyring,
        })
    }

    /// The line of a source list for a suite of this mirror.
    pub fn line(&self, suite: &str) -> String {
        let keyring = self.keyring.as_deref().map(|path| format!("[signed-by={path}] "));
        format!("deb {}{} {suite} main\n", keyring.unwrap_or_default(), self.uri)
    }
}

/// The files that apt reads, wherever this machine's configuration puts them.
fn source_files(shell: &Shell) -> Result<Vec<PathBuf>> {
    let places = cmd!(
        shell,
        "apt-config shell LIST Dir::Etc::sourcelist/f PARTS Dir::Etc::sourceparts/d"
    )
    .quiet()
    .read()
    .map_err(|_| "no `apt-config`: the header packages come from Debian")?;
    let mut files = Vec::new();
    for place in places.lines() {
        let Some((_, path)) = place.split_once('=') else {
            continue;
        };
        let path = Path::new(path.trim_matches('\''));
        if path.is_dir() {
            let mut parts: Vec<PathBuf> = fs::read_dir(path)?
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect();
            parts.sort();
            files.extend(parts);
        } else {
            files.push(path.to_path_buf());
        }
    }
    Ok(files)
}

fn entries(file: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(file).unwrap_or_default();
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("sources") => text.split("\n\n").map(stanza).collect(),
        Some("list") => text.lines().filter_map(one_line).collect(),
        _ => Vec::new(),
    }
}

/// `Types: deb`, `URIs: …`: one field a line, several values in a field.
fn stanza(text: &str) -> Entry {
    let mut entry = Entry::default();
    for line in text.lines() {
        let Some((field, value)) = line.split_once(':') else {
            continue;
        };
        let words = || value.split_whitespace().map(str::to_owned).collect();
        match field.to_ascii_lowercase().as_str() {
            "types" => entry.binary = value.split_whitespace().any(|kind| kind == "deb"),
            "uris" => entry.uris = words(),
            "suites" => entry.suites = words(),
            "components" => entry.components = words(),
            "signed-by" => entry.keyring = keyring(value),
            "enabled" => entry.disabled = value.trim().eq_ignore_ascii_case("no"),
            _ => {}
        }
    }
    entry
}

/// `deb [signed-by=/…] URI SUITE COMPONENT…`
fn one_line(line: &str) -> Option<Entry> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (uri, suite) = (words.next()?, words.next()?);
    Some(Entry {
        uris: vec![uri],
        suites: vec![suite],
        components: words.collect(),
        keyring: options
            .split_whitespace()
            .find_map(|option| keyring(option.strip_prefix("signed-by=")?)),
        disabled: false,
        binary: true,
    })
}

/// A key may also stand in the list itself; then apt's own keyrings have to do.
fn keyring(value: &str) -> Option<String> {
    let path = value.trim();
    path.starts_with('/').then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_taken_from_either_format_and_not_from_foreign_archives() {
        let foreign = one_line("deb [arch=amd64 signed-by=/k/f.gpg] proto://foreign/apt cloud-bookworm main");
        let security = stanza("Types: deb\nURIs: proto://debian/security\nSuites: bookworm-security\nComponents: main");
        let debian = stanza(
            "# comment: x\nTypes: deb deb-src\nURIs: proto://debian/debian\nSuites: bookworm bookworm-updates\n\
             Components: main contrib\nSigned-By: /k/debian.gpg",
        );
        let entries = vec![foreign.expect("a source line"), security, debian];
        let mirror = Mirror::choose(entries, "bookworm").expect("Debian is among them");
        assert_eq!(
            mirror.line("testing"),
            "deb [signed-by=/k/debian.gpg] proto://debian/debian testing main\n"
        );

        let plain = one_line("deb proto://debian/debian stable main").expect("a source line");
        let mirror = Mirror::choose(vec![plain], "bookworm").expect("a Debian suite");
        assert_eq!(mirror.line("testing"), "deb proto://debian/debian testing main\n");
    }

    #[test]
    fn disabled_and_source_only_entries_give_no_mirror() {
        let disabled = stanza("Enabled: no\nTypes: deb\nURIs: proto://d\nSuites: stable\nComponents: main");
        let sources = stanza("Types: deb-src\nURIs: proto://d\nSuites: stable\nComponents: main");
        assert_eq!(Mirror::choose(vec![disabled, sources], "bookworm"), None);
        assert!(one_line("# deb proto://d stable main").is_none());
    }
}
