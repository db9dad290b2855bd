//! The committed facts about the headers, read back: see `codegen::facts` for the form of the lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::list;
use crate::codegen::Result;
use crate::codegen::releases::Package;

/// The kinds of lines, in the order of a report.
pub const KINDS: [&str; 6] = ["fn", "struct", "field", "type", "enum", "const"];

/// One library's declarations in one release.
#[derive(Debug, Default)]
pub struct Facts {
    /// For each kind, the text for each name.
    lines: BTreeMap<String, BTreeMap<String, String>>,
}

impl Facts {
    /// Reads the facts of this package.
    pub fn read(root: &Path, library: &str, package: &Package) -> Result<Self> {
        let path = format!("xtask/symbols/{library}/{}.headers.txt", package.release());
        let text = fs::read_to_string(root.join(&path))
            .map_err(|error| format!("cannot read {path}: {error}; run `cargo xtask codegen`"))?;
        if text.lines().next() != Some(&format!("# {}", list::source(package))) {
            return Err(format!(
                "{path} does not belong to {}; run `cargo xtask codegen`",
                list::source(package)
            )
            .into());
        }
        Self::parse(&text).ok_or_else(|| format!("{path} is malformed").into())
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut facts = Self::default();
        for line in text.lines().skip(1) {
            let (kind, rest) = line.split_once(' ')?;
            let end = match kind {
                "fn" => rest.find('(')?,
                "struct" => rest.find(": ")?,
                "field" => rest.find(" @ ")?,
                "type" | "enum" | "const" => rest.find(" = ")?,
                _ => return None,
            };
            let (name, what) = rest.split_at(end);
            let what = what.trim_start_matches([' ', '=', ':', '@']);
            let of_kind = facts.lines.entry(kind.to_owned()).or_default();
            of_kind.insert(name.to_owned(), what.to_owned());
        }
        Some(facts)
    }

    /// The text for the names of a kind.
    pub fn of(&self, kind: &str) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.lines.get(kind).into_iter().flatten();
        lines.map(|(name, what)| (name.as_str(), what.as_str()))
    }

    pub fn get(&self, kind: &str, name: &str) -> Option<&str> {
        self.lines.get(kind)?.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_read_by_its_name() {
        let text = "# libx 1\nconst A = 1u32\nenum e_t::B = 2\nfield s_t.x.y @ 8: i4\nfn f(*mut s_t) -> e_t\n\
             struct s_t: 16 bytes, aligned to 8\ntype t = s_t\n";
        let facts = Facts::parse(text).expect("well formed");
        for (kind, name, what) in [
            ("const", "A", "1u32"),
            ("enum", "e_t::B", "2"),
            ("field", "s_t.x.y", "8: i4"),
            ("fn", "f", "(*mut s_t) -> e_t"),
            ("struct", "s_t", "16 bytes, aligned to 8"),
            ("type", "t", "s_t"),
        ] {
            assert!(KINDS.contains(&kind));
            assert_eq!(facts.get(kind, name), Some(what), "{kind}");
        }
        assert!(Facts::parse("# libx 1\nunion u\n").is_none());
    }
}
