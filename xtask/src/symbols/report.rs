//! `cargo xtask symbols`: how far each release's real library fills each table.

use std::fmt::Write as _;
use std::path::Path;

use super::check::bound;
use super::list::SymbolList;
use crate::codegen::Result;
use crate::codegen::releases::RELEASES;
use crate::codegen::tables::TABLES;

/// One line for each library and release; with `verbose` also the functions that are missing there, and those that
/// the library exports beyond its headers.
pub fn text(root: &Path, verbose: bool) -> Result<String> {
    let mut text = String::from(
        "| table | ROCm | library | functions | found | missing | exported, not declared |\n|---|---|---|---|---|---|---|\n",
    );
    let mut details = String::new();
    for table in &TABLES {
        let bound = bound(root, table)?;
        for release in RELEASES.iter().filter(|release| release.supported) {
            let Some(library) = release.library(table) else {
                continue;
            };
            let list = SymbolList::read(root, library.name, &library.package)?;
            let missing: Vec<&str> = bound
                .iter()
                .filter(|name| !list.functions.contains_key(*name))
                .map(String::as_str)
                .collect();
            // A library may hold the functions of another table as well.
            let beyond: Vec<&str> = list
                .functions
                .keys()
                .map(String::as_str)
                .filter(|name| {
                    let of_other_table = TABLES
                        .iter()
                        .any(|other| other.file != table.file && name.starts_with(other.prefixes[0]));
                    name.starts_with(table.prefixes[0]) && !of_other_table && !bound.contains(*name)
                })
                .collect();
            let of = format!("{} {}", table.what, library.package.release());
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                table.what,
                library.package.release(),
                list.source,
                bound.len(),
                bound.len() - missing.len(),
                missing.len(),
                beyond.len()
            )?;
            if verbose {
                writeln!(details, "\n{of} lacks: {}", names(&missing))?;
                writeln!(details, "{of} exports beyond its headers: {}", names(&beyond))?;
            }
        }
    }
    Ok(text + &details)
}

fn names(names: &[&str]) -> String {
    if names.is_empty() {
        "nothing".into()
    } else {
        names.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::UNPACKAGED;
    use super::*;

    #[test]
    fn the_book_shows_the_report_as_it_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let book = std::fs::read_to_string(root.join("docs/src/raw-bindings.md"));
        let report = text(root, false).expect("the lists are committed");
        assert!(
            book.expect("the chapter").contains(&report),
            "copy the output of `cargo xtask symbols` into docs/src/raw-bindings.md"
        );
    }

    #[test]
    fn every_table_is_reported_for_every_release_whose_libraries_were_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let brief = text(root, false).expect("the lists are committed");
        let rows = brief.lines().skip(2).count();
        let read = RELEASES
            .iter()
            .filter(|release| release.supported && !release.libraries.is_empty())
            .count();
        assert_eq!(rows, TABLES.len() * read - UNPACKAGED.len());
        let long = text(root, true).expect("as before");
        assert!(long.starts_with(&brief));
        assert!(long.contains("HIP 5.7 lacks: ") && long.contains("hipLaunchKernelExC"));
    }
}
