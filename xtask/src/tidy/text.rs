//! What no file of the project may contain.

use std::path::{Path, PathBuf};

use xshell::cmd;

use crate::error::Result;
use crate::workspace::Workspace;

/// First folders of paths that exist on one machine only, without their slashes so that this file passes its own check.
const MACHINE_FOLDERS: &[&str] = &["home", "root", "Users", "work", "farm"];

/// Words that identify addresses of package registries.
const REGISTRIES: &[&str] = &["debian", "pypi", "pythonhosted", "npmjs", "crates"];

/// Leftovers that the finished code has no place for; written apart for the same reason.
const LEFTOVERS: &[(&str, &str)] = &[
    ("todo", "!("),
    ("unimplemented", "!("),
    ("dbg", "!("),
    ("FIX", "ME"),
    ("<<<<", "<<< "),
    (">>>>", ">>> "),
];

/// In bytes. Larger things are generated or fetched.
const LARGEST: u64 = 1 << 20;

/// The files git tracks or would add, or `None` outside a checkout (an unpacked archive).
pub fn tracked_files(workspace: &Workspace) -> Result<Option<Vec<PathBuf>>> {
    let sh = workspace.shell()?;
    let listed = cmd!(sh, "git ls-files -z --cached --others --exclude-standard")
        .quiet()
        .ignore_stderr()
        .read();
    Ok(listed.ok().map(|list| {
        list.split('\0')
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
            .collect()
    }))
}

/// In pieces, so this file passes.
const ECHO: &str = concat!("{sour", "ce}");

/// Every line that breaks a rule, as `file:line: what`.
pub fn violations(root: &Path, files: &[PathBuf]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files {
        // Cargo writes it; it names registries by design.
        if file.ends_with("Cargo.lock") {
            continue;
        }
        let Ok(bytes) = std::fs::read(root.join(file)) else {
            continue; // deleted, and not committed yet
        };
        if bytes.len() as u64 > LARGEST {
            problems.push(format!(
                "{}: {} KiB, more than {} KiB",
                file.display(),
                bytes.len() >> 10,
                LARGEST >> 10
            ));
        }
        let Ok(text) = std::str::from_utf8(&bytes) else {
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            for problem in line_problems(line) {
                problems.push(format!("{}:{}: {problem}", file.display(), index + 1));
            }
        }
    }
    problems
}

fn line_problems(line: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for folder in MACHINE_FOLDERS {
        let path = format!("/{folder}/");
        for (at, _) in line.match_indices(&path) {
            let before = line[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || "_-.}".contains(c)) {
                problems.push(format!("a path of one machine ({path}…)"));
            }
        }
    }
    for (at, scheme) in line.match_indices("://") {
        if !(line[..at].ends_with("http") || line[..at].ends_with("https")) {
            continue;
        }
        let host = line[at + scheme.len()..]
            .split(|c: char| !(c.is_ascii_alphanumeric() || ".-".contains(c)))
            .next()
            .unwrap_or("");
        if REGISTRIES.iter().any(|word| host.contains(word)) {
            problems.push(format!("the address of a package registry ({host})"));
        }
    }
    for (first, second) in LEFTOVERS {
        let leftover = format!("{first}{second}");
        if line.contains(&leftover) {
            problems.push(format!("leftover text ({leftover})"));
        }
    }
    if line.contains("#[error(") && line.contains(ECHO) {
        problems.push("an error that displays its source, which its chain displays too; name the field `cause`".into());
    }
    if line.trim() == concat!("#[", "ignore]") {
        problems.push("an ignored test without a reason".into());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_planted_trace_is_found_once() {
        let home = MACHINE_FOLDERS[0];
        let registry = REGISTRIES[1];
        for line in [
            format!("let data = \"/{home}/someone/data\";"),
            format!("see https://{registry}.org/simple"),
            format!("    {}{})", LEFTOVERS[0].0, LEFTOVERS[0].1),
            format!("    #[{}", "ignore]"),
            format!("    #[error(\"it failed: {ECHO}\")]"),
        ] {
            assert_eq!(line_problems(&line).len(), 1, "{line}");
        }
    }

    #[test]
    fn ordinary_lines_pass() {
        let below = MACHINE_FOLDERS[0];
        for line in [
            "let rocm = \"/opt/rocm/lib\"; // or /usr/lib".to_owned(),
            format!("see https://example.org/{below}/page and target/{below}/file"),
            format!("$HOME/{below}/x and ${{ROOT}}/{below}/x"),
            "#[ignore = \"needs four gigabytes\"]".to_owned(),
        ] {
            assert_eq!(line_problems(&line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn a_violation_names_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("fine\n/{}/x\n", MACHINE_FOLDERS[0]);
        std::fs::write(folder.path().join("a.txt"), text).unwrap();
        let problems = violations(folder.path(), &["a.txt".into(), "gone.txt".into()]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("a.txt:2: "), "{problems:?}");
    }
}
