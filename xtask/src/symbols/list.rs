//! The committed symbol lists: what the real libraries export, kept because they are too big to fetch for every check.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::codegen::Result;
use crate::codegen::releases::Package;

/// The functions of one library in one release.
#[derive(Debug, PartialEq, Eq)]
pub struct SymbolList {
    /// The package that the library was in, with its version.
    pub source: String,
    /// Each function, with its node in the library's version script.
    pub functions: BTreeMap<String, Option<String>>,
}

impl SymbolList {
    /// Reads the list of this package's library.
    pub fn read(root: &Path, library: &str, package: &Package) -> Result<Self> {
        let path = path(library, package.release());
        let text = fs::read_to_string(root.join(&path)).map_err(|error| {
            format!(
                "cannot read {}: {error}; run `cargo xtask symbols --refresh`",
                path.display()
            )
        })?;
        let list = Self::parse(&text).ok_or_else(|| format!("{} is malformed", path.display()))?;
        if list.source != source(package) {
            return Err(format!(
                "{} belongs to {}, but {} is pinned; run `cargo xtask symbols --refresh`",
                path.display(),
                list.source,
                source(package)
            )
            .into());
        }
        Ok(list)
    }

    fn parse(text: &str) -> Option<Self> {
        let (first, rest) = text.split_once('\n')?;
        let functions = rest.lines().map(|line| match line.split_once(' ') {
            Some((name, node)) => (name.to_owned(), Some(node.to_owned())),
            None => (line.to_owned(), None),
        });
        Some(Self {
            source: first.strip_prefix("# ")?.to_owned(),
            functions: functions.collect(),
        })
    }

    /// Writes the list; returns its path relative to the workspace.
    #[cfg(feature = "codegen")]
    pub fn write(&self, root: &Path, library: &str, package: &Package) -> Result<PathBuf> {
        let path = path(library, package.release());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(root.join(folder))?;
        }
        fs::write(root.join(&path), self.text())?;
        Ok(path)
    }

    #[cfg(any(feature = "codegen", test))]
    fn text(&self) -> String {
        let mut text = format!("# {}\n", self.source);
        for (name, node) in &self.functions {
            text.push_str(name);
            if let Some(node) = node {
                text.push(' ');
                text.push_str(node);
            }
            text.push('\n');
        }
        text
    }
}

/// What the first line of a list says.
pub fn source(package: &Package) -> String {
    format!("{} {}", package.name, package.version)
}

fn path(library: &str, release: &str) -> PathBuf {
    PathBuf::from(format!("xtask/symbols/{library}/{release}.txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_what_it_writes() {
        let list = SymbolList {
            source: "libx 1.2.3-4".into(),
            functions: [("hipA".into(), Some("hip_4.2".into())), ("hipB".into(), None)].into(),
        };
        assert_eq!(SymbolList::parse(&list.text()), Some(list));
        assert_eq!(SymbolList::parse("hipA\n"), None);
    }
}
