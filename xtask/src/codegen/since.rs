//! Which releases have a function, by the symbols of the real libraries.

use super::releases::{RELEASES, Release};
use crate::symbols::list::SymbolList;

/// The oldest supported release.
pub const FLOOR: &str = "5.7";

/// A library's symbol lists, oldest first, each with its release.
pub struct Lists(pub Vec<(&'static str, SymbolList)>);

impl Lists {
    /// What to say of a symbol's releases; `None` if every supported release has it. `declared` are the releases whose
    /// headers have it, oldest first.
    ///
    /// A library's version node dates a function to the release, if it does not contradict what the libraries export:
    /// AMD's scripts give some later functions the first node. Without a node only the two releases around the step are
    /// known.
    pub fn describe(&self, symbol: &str, declared: &[&str]) -> Option<String> {
        let has: Vec<bool> = self
            .0
            .iter()
            .map(|(_, list)| list.functions.contains_key(symbol))
            .collect();
        let (Some(first), Some(last)) = (has.iter().position(|has| *has), has.iter().rposition(|has| *has)) else {
            return Some(self.describe_declared(declared));
        };
        let mut parts = Vec::new();
        if number(self.0[first].0) > number(FLOOR) {
            parts.push(match self.node(symbol) {
                Some(node)
                    if number(node) <= number(self.0[first].0)
                        && (first == 0 || number(node) > number(self.0[first - 1].0)) =>
                {
                    format!("since ROCm {node}")
                }
                _ if first == 0 => format!("in ROCm {} and later", self.0[first].0),
                _ => format!("not in ROCm {}, but in {}", self.0[first - 1].0, self.0[first].0),
            });
        }
        if last + 1 < has.len() {
            parts.push(format!(
                "last seen in ROCm {}, gone in {}",
                self.0[last].0,
                self.0[last + 1].0
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// What to say of a symbol that no list has: of a release without a library only the declarations are known.
    fn describe_declared(&self, declared: &[&str]) -> String {
        let read = |release: &str| self.0.iter().any(|(known, _)| *known == release);
        match (declared.first(), self.0.last()) {
            (Some(first), Some((last, _))) if !declared.iter().any(|release| read(release)) => {
                format!("not in ROCm {last}, but declared by {}", title(first))
            }
            _ => "declared, but exported by no release that was read".into(),
        }
    }

    /// The release that a node such as `hip_6.1` names, from the newest library that has the symbol.
    fn node(&self, symbol: &str) -> Option<&str> {
        let (_, list) = self
            .0
            .iter()
            .rev()
            .find(|(_, list)| list.functions.contains_key(symbol))?;
        let node = list.functions.get(symbol)?.as_ref()?.strip_prefix("hip_")?;
        // What was to be ROCm 6.5 was published as 7.0.
        Some(if node == "6.5" { "7.0" } else { node })
    }
}

/// What a reader calls a release.
fn title(release: &str) -> String {
    RELEASES
        .iter()
        .find(|known| known.name == release)
        .map_or_else(|| release.to_owned(), Release::title)
}

/// Major and minor number.
pub fn number(release: &str) -> (u32, u32) {
    let (major, minor) = release.split_once('.').unwrap_or((release, "0"));
    (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(of: &[(&'static str, &[(&str, &str)])]) -> Lists {
        let list = |symbols: &[(&str, &str)]| SymbolList {
            source: "libx 1".into(),
            functions: symbols
                .iter()
                .map(|(name, node)| ((*name).into(), (!node.is_empty()).then(|| (*node).into())))
                .collect(),
        };
        Lists(of.iter().map(|(release, symbols)| (*release, list(symbols))).collect())
    }

    #[test]
    fn a_function_of_every_supported_release_needs_no_note() {
        let all = lists(&[("5.7", &[("a", "hip_4.2")]), ("6.4", &[("a", "hip_4.2")])]);
        assert_eq!(all.describe("a", &["5.7", "6.4"]), None);
        let since_5_7 = lists(&[("5.2", &[]), ("5.7", &[("a", "")])]);
        assert_eq!(since_5_7.describe("a", &["5.7"]), None);
    }

    #[test]
    fn the_node_dates_a_function_unless_the_libraries_contradict_it() {
        let plain = lists(&[("5.7", &[]), ("6.4", &[("a", "hip_6.1")])]);
        assert_eq!(plain.describe("a", &["6.4"]).as_deref(), Some("since ROCm 6.1"));
        let wrong = lists(&[("5.7", &[]), ("6.4", &[("a", "hip_4.2")])]);
        assert_eq!(
            wrong.describe("a", &["6.4"]).as_deref(),
            Some("not in ROCm 5.7, but in 6.4")
        );
        let none = lists(&[("5.5", &[]), ("6.4", &[("a", "")])]);
        assert_eq!(
            none.describe("a", &["6.4"]).as_deref(),
            Some("not in ROCm 5.5, but in 6.4")
        );
    }

    #[test]
    fn a_function_that_went_and_one_that_never_came_are_told() {
        let gone = lists(&[("5.7", &[("a", "")]), ("6.4", &[("a", "")]), ("7.2", &[])]);
        assert_eq!(
            gone.describe("a", &["5.7", "6.4"]).as_deref(),
            Some("last seen in ROCm 6.4, gone in 7.2")
        );
        assert_eq!(
            gone.describe("b", &["7.2", "10.0"]).as_deref(),
            Some("declared, but exported by no release that was read")
        );
    }

    #[test]
    fn a_function_of_a_release_without_a_library_is_told_by_its_declaration() {
        let read = lists(&[("5.7", &[("a", "")]), ("7.2", &[("a", "")])]);
        assert_eq!(
            read.describe("b", &["10.0"]).as_deref(),
            Some("not in ROCm 7.2, but declared by 10.0 (HIP 7.15)")
        );
        // What the libraries that were read have needs no word about a later one.
        assert_eq!(read.describe("a", &["5.7", "7.2", "10.0"]), None);
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        assert!(number("6.10") > number("6.4"));
        assert!(number("7.0") > number("6.10"));
    }
}
