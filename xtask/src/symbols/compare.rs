//! `cargo xtask symbols A B`: what changed in the declarations between two releases.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::facts::{Facts, KINDS};
use crate::codegen::Result;
use crate::codegen::releases::{RELEASES, Release};
use crate::codegen::tables::TABLES;

/// The changes from one release to another, library by library.
pub fn run(root: &Path, from: &str, to: &str) -> Result<String> {
    let (from, to) = (named(from)?, named(to)?);
    let mut text = String::new();
    let libraries: BTreeSet<(&str, &str)> = TABLES.iter().map(|table| (table.headers, table.package)).collect();
    for (library, package) in libraries {
        let (Some(old), Some(new)) = (from.header_package(package), to.header_package(package)) else {
            writeln!(text, "{library}: not available for both releases")?;
            continue;
        };
        writeln!(text, "{library}: ROCm {} -> {}", old.release(), new.release())?;
        let changes = changes(&Facts::read(root, library, old)?, &Facts::read(root, library, new)?);
        for change in &changes {
            writeln!(text, "  {change}")?;
        }
        if changes.is_empty() {
            writeln!(text, "  no change")?;
        }
    }
    Ok(text)
}

fn named(name: &str) -> Result<&'static Release> {
    let known: Vec<&str> = RELEASES.iter().map(|release| release.name).collect();
    RELEASES
        .iter()
        .find(|release| release.name == name)
        .ok_or_else(|| format!("unknown release {name:?}; use {}", known.join(", ")).into())
}

/// One line each: added (`+`), removed (`-`) and changed (`~`) declarations. The fields of a structure that came or
/// went are not listed.
fn changes(old: &Facts, new: &Facts) -> Vec<String> {
    let mut changes = Vec::new();
    for kind in KINDS {
        let names: BTreeSet<&str> = old.of(kind).chain(new.of(kind)).map(|(name, _)| name).collect();
        for name in names {
            let of_known_structure = |facts: &Facts| {
                let structure = name.split('.').next().unwrap_or(name);
                kind != "field" || facts.get("struct", structure).is_some()
            };
            match (old.get(kind, name), new.get(kind, name)) {
                (None, Some(what)) if of_known_structure(old) => {
                    changes.push(format!("+ {kind} {name}: {what}"));
                }
                (Some(what), None) if of_known_structure(new) => {
                    changes.push(format!("- {kind} {name}: {what}"));
                }
                (Some(before), Some(after)) if before != after => {
                    changes.push(format!("~ {kind} {name}: {before} => {after}"));
                }
                _ => {}
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(lines: &str) -> Facts {
        Facts::parse(&format!("# libx 1\n{lines}")).expect("well formed")
    }

    #[test]
    fn additions_removals_and_changes_are_told_apart() {
        let old = facts("enum e::A = 1\nfn f(i32) -> void\nfn g() -> void\nstruct s: 8 bytes, aligned to 4\n");
        let new = facts("enum e::A = 2\nfn f(u64) -> void\nfn h() -> void\nstruct s: 8 bytes, aligned to 4\n");
        assert_eq!(
            changes(&old, &new),
            [
                "~ fn f: (i32) -> void => (u64) -> void",
                "- fn g: () -> void",
                "+ fn h: () -> void",
                "~ enum e::A: 1 => 2",
            ]
        );
        assert!(changes(&old, &old).is_empty());
    }

    #[test]
    fn fields_are_listed_for_structures_of_both_releases_only() {
        let old = facts("field s.x @ 0: i4\nstruct s: 4 bytes, aligned to 4\n");
        let new = facts(
            "field s.x @ 4: i4\nfield t.y @ 0: i4\nstruct s: 8 bytes, aligned to 4\nstruct t: 4 bytes, aligned to 4\n",
        );
        let changes = changes(&old, &new);
        assert!(
            changes.contains(&"~ field s.x: 0: i4 => 4: i4".to_owned()),
            "{changes:?}"
        );
        assert!(!changes.iter().any(|change| change.contains("field t")), "{changes:?}");
    }

    #[test]
    fn the_committed_facts_know_what_hip_7_changed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let text = run(root, "6.4", "7.2").expect("both are committed");
        for line in [
            "~ fn hipDrvGraphAddMemsetNode: ",
            "+ fn hipLaunchKernelExC: ",
            "- fn rocblas_sgemm_kernel_name: ",
            "~ struct hipLaunchAttributeValue: 32 bytes, aligned to 8 => 64 bytes, aligned to 8",
        ] {
            let found = text.lines().any(|text| text.trim_start().starts_with(line));
            assert!(found, "{line}");
        }
        assert!(run(root, "6.4", "9.9").is_err());
    }
}
