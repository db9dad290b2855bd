//! The licences of the crates that the binaries contain.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use xshell::cmd;

use crate::error::{Error, Result};
use crate::workspace::{Workspace, cargo, package_of};

/// A package of the workspace with the features that it is built with.
pub type Root<'a> = (&'a str, Option<&'a str>);

/// The licences whose terms this text and the archive meet. A crate with another one is refused until somebody has read
/// that.
const KNOWN: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "LLVM-exception",
    "MIT",
    "MIT-0",
    // Its source is named, as it demands.
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The beginnings of the names of files that hold a licence or a notice, in small letters.
const FILES: [&str; 6] = ["licen", "copying", "copyright", "notice", "unlicen", "ofl"];

/// A crate from outside of the workspace.
struct Crate {
    name: String,
    version: String,
    licence: String,
    authors: Vec<String>,
    folder: PathBuf,
}

/// The notices of every crate that is linked into these packages.
pub fn text(workspace: &Workspace, roots: &[Root<'_>]) -> Result<String> {
    let own = workspace.root().join("LICENSE-MIT");
    let own = fs::read_to_string(&own).map_err(|error| Error::io(own.display(), error))?;
    render(&crates(workspace, roots)?, &own)
}

fn render(crates: &[Crate], own_licence: &str) -> Result<String> {
    let mut list = String::new();
    // Each text once, with the crates that it belongs to.
    let mut texts: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for each in crates {
        if let Some(unknown) = identifiers(&each.licence).find(|name| !KNOWN.contains(name)) {
            return Err(Error::Failed(format!(
                "{} {} has the licence `{unknown}`, which has not been read; add it to KNOWN in xtask/src/dist/notices.rs if the archive \
                 may contain it",
                each.name, each.version
            )));
        }
        let Crate {
            name, version, licence, ..
        } = each;
        writeln!(
            list,
            "{name} {version}: {licence}; https://docs.rs/crate/{name}/{version}"
        )
        .expect("a text grows");
        let mut own = licence_files(&each.folder)?;
        if own.is_empty() {
            own.push(written(each, own_licence)?);
        }
        for text in own {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let entry = texts.entry(words).or_insert_with(|| (text, BTreeSet::new()));
            entry.1.insert(format!("{name} {version}"));
        }
    }
    let mut all = format!(
        "The binaries of this archive contain these crates. Their licences follow. RUST-LIBRARY.html has those of Rust's standard\n\
         library, which the binaries contain too.\n\n{list}"
    );
    let mut texts: Vec<_> = texts.into_values().collect();
    texts.sort_by(|(_, one), (_, other)| one.cmp(other));
    for (text, names) in texts {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let line = "-".repeat(78);
        write!(all, "\n{line}\n{names}\n{line}\n\n{}\n", text.trim_end()).expect("a text grows");
    }
    Ok(all)
}

/// The licences and exceptions in an expression, such as `(MIT OR Apache-2.0) AND Unicode-3.0`.
fn identifiers(licence: &str) -> impl Iterator<Item = &str> {
    let names = licence.split(|c: char| !(c.is_ascii_alphanumeric() || "-.+".contains(c)));
    names.filter(|name| !["", "OR", "AND", "WITH"].contains(name))
}

/// Every text in the crate's folder, in the order of the names: what it took from elsewhere may have one of its own.
fn licence_files(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let mut entries = fs::read_dir(folder)
        .and_then(|entries| entries.collect::<std::io::Result<Vec<_>>>())
        .map_err(|error| Error::io(folder.display(), error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if path.is_dir() {
            texts.extend(licence_files(&path)?);
        } else if FILES.iter().any(|file| name.starts_with(file)) && !name.ends_with(".rs") {
            let bytes = fs::read(&path).map_err(|error| Error::io(path.display(), error))?;
            texts.push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(texts)
}

/// The MIT licence of a crate that has no file of it, with the authors that it names. `own` is this project's.
fn written(each: &Crate, own: &str) -> Result<String> {
    let terms = own.find("Permission is hereby granted").map(|at| &own[at..]);
    let authors = match each.authors.as_slice() {
        [] => format!("the authors of {}", each.name),
        named => named.join(", "),
    };
    match terms.filter(|_| identifiers(&each.licence).any(|name| name == "MIT")) {
        Some(terms) => Ok(format!("Copyright (c) {authors}\n\n{terms}")),
        None => Err(Error::Failed(format!(
            "{} {} has no file with its licence, {}, and is not under MIT, which is written for such a crate",
            each.name, each.version, each.licence
        ))),
    }
}

/// The linked crates, in the order of their names. What only build scripts and macros use is in no binary.
fn crates(workspace: &Workspace, roots: &[Root<'_>]) -> Result<Vec<Crate>> {
    let (sh, cargo) = (workspace.shell()?, cargo());
    let target = "x86_64-unknown-linux-gnu";
    let mut linked = BTreeSet::new();
    for (name, features) in roots {
        let package = package_of(name);
        let features = features.iter().flat_map(|features| ["--features", features]);
        let tree = cmd!(
            sh,
            "{cargo} tree --locked --package {package} {features...} --edges normal,no-proc-macro --target {target} --prefix none --no-dedupe"
        );
        let tree = tree.quiet().ignore_stderr().read();
        let tree = tree.map_err(|_| Error::Failed(format!("`cargo tree` failed for {package}")))?;
        // `name vVERSION`, and in brackets where a member of the workspace lies, or that it is a macro.
        linked.extend(tree.lines().filter_map(|line| {
            let (name, version) = line.split_once(" v")?;
            (!version.contains('(')).then(|| (name.to_owned(), version.trim().to_owned()))
        }));
    }
    let metadata = cmd!(
        sh,
        "{cargo} metadata --locked --format-version 1 --filter-platform {target}"
    );
    let metadata: Value = serde_json::from_str(&metadata.quiet().ignore_stderr().read()?)
        .map_err(|error| Error::Failed(format!("`cargo metadata` is not JSON: {error}")))?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let field = |package: &Value, name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let described = |(name, version): &(String, String)| {
        let own = |package: &&Value| package["name"] == **name && package["version"] == **version;
        let package = packages.iter().find(own);
        let package =
            package.ok_or_else(|| Error::Failed(format!("`cargo metadata` does not name {name} {version}")))?;
        let authors = package["authors"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(Crate {
            name: name.clone(),
            version: version.clone(),
            licence: field(package, "license"),
            authors: authors.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            folder: Path::new(&field(package, "manifest_path"))
                .parent()
                .unwrap_or(Path::new(""))
                .to_owned(),
        })
    };
    linked.iter().map(described).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "Copyright (c) us\n\nPermission is hereby granted, ...";

    fn one(folder: &Path, name: &str, licence: &str, files: &[(&str, &str)]) -> Crate {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Crate {
            name: name.into(),
            version: "1.0.0".into(),
            licence: licence.into(),
            authors: vec!["A. Author".into()],
            folder,
        }
    }

    /// Those of the archive, with no feature and with one.
    #[test]
    fn every_linked_crate_is_named_with_a_licence_that_was_read() {
        let workspace = Workspace::discover().unwrap();
        for features in [None, Some("nvidia")] {
            let roots = crate::dist::roots(features);
            let crates = crates(&workspace, &roots).unwrap();
            let text = text(&workspace, &roots).unwrap();
            for each in &crates {
                // In the list, and above a text.
                let name = format!("{} {}", each.name, each.version);
                assert!(text.matches(&name).count() >= 2, "{name}");
            }
            let names: Vec<&str> = crates.iter().map(|each| each.name.as_str()).collect();
            for name in ["blake3", "faer", "libloading", "clap", "rustfft", "option-ext"] {
                assert!(names.contains(&name), "{name}: {names:?}");
            }
            // A macro, what tests use, and a member.
            for name in ["syn", "proptest", "hipcl-interop", "serde_derive"] {
                assert!(!names.contains(&name), "{name}: {names:?}");
            }
            assert_eq!(names.contains(&"cudarc"), features.is_some());
        }
    }

    #[test]
    fn texts_are_told_once_and_those_in_folders_too() {
        let folder = tempfile::tempdir().unwrap();
        let crates = [
            one(
                folder.path(),
                "a",
                "MIT OR Apache-2.0",
                &[("LICENSE-MIT", "one\n text"), ("src/COPYING", "of other code")],
            ),
            one(
                folder.path(),
                "b",
                "MIT",
                &[
                    ("license.md", "one text\n"),
                    ("NOTICE", "b's"),
                    ("src/licence.rs", "a program"),
                ],
            ),
            one(folder.path(), "c", "MIT", &[]),
        ];
        let text = render(&crates, OWN).unwrap();
        assert_eq!(text.matches("text").count(), 1, "{text}");
        for part in [
            "a 1.0.0: MIT OR Apache-2.0; https://docs.rs/crate/a/1.0.0\n",
            "\na 1.0.0, b 1.0.0\n",
            "of other code",
            "b's",
            "\nc 1.0.0\n",
            "Copyright (c) A. Author\n\nPermission is hereby granted",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("a program") && !text.contains("(c) us"), "{text}");
    }

    #[test]
    fn an_unread_licence_and_a_text_that_cannot_be_written_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = [("LICENSE", "a text")];
        let unread = one(folder.path(), "a", "MIT OR (GPL-3.0-only AND ISC)", &file);
        let error = render(&[unread], OWN).err().unwrap().to_string();
        assert!(error.starts_with("a 1.0.0 has the licence `GPL-3.0-only`"), "{error}");
        let without = one(folder.path(), "b", "ISC", &[]);
        let error = render(&[without], OWN).err().unwrap().to_string();
        assert!(error.contains("b 1.0.0 has no file with its licence, ISC"), "{error}");
        let mut anonymous = one(folder.path(), "c", "MIT", &[]);
        anonymous.authors.clear();
        assert!(render(&[anonymous], OWN).unwrap().contains("(c) the authors of c\n"));
    }
}
