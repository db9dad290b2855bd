//! Whether headers, libraries and tables agree, as far as the committed facts show.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::facts::Facts;
use super::list::SymbolList;
use crate::codegen::Result;
use crate::codegen::releases::{Origin, RELEASES};
use crate::codegen::tables::{TABLES, Table, table_of};

/// Functions that a release's headers declare and its library does not export. AMD wrote the declaration first.
const DECLARED_ONLY: &[(&str, &[&str])] = &[
    (
        "5.7",
        &[
            "hipGraphAddExternalSemaphoresSignalNode",
            "hipGraphAddExternalSemaphoresWaitNode",
            "hipGraphExecExternalSemaphoresSignalNodeSetParams",
            "hipGraphExecExternalSemaphoresWaitNodeSetParams",
            "hipGraphExternalSemaphoresSignalNodeGetParams",
            "hipGraphExternalSemaphoresSignalNodeSetParams",
            "hipGraphExternalSemaphoresWaitNodeGetParams",
            "hipGraphExternalSemaphoresWaitNodeSetParams",
            "hipTexRefGetMipMappedArray",
        ],
    ),
    (
        "6.4",
        &[
            "hipDeviceGetTexture1DLinearMaxWidth",
            "hipExternalMemoryGetMappedMipmappedArray",
            "hipGraphAddExternalSemaphoresSignalNode",
            "hipGraphAddExternalSemaphoresWaitNode",
            "hipGraphExecExternalSemaphoresSignalNodeSetParams",
            "hipGraphExecExternalSemaphoresWaitNodeSetParams",
            "hipGraphExternalSemaphoresSignalNodeGetParams",
            "hipGraphExternalSemaphoresSignalNodeSetParams",
            "hipGraphExternalSemaphoresWaitNodeGetParams",
            "hipGraphExternalSemaphoresWaitNodeSetParams",
        ],
    ),
    ("7.2", &["hipExternalMemoryGetMappedMipmappedArray"]),
];

/// Libraries that no suite of Debian has for a release.
pub(super) const UNPACKAGED: &[(&str, &str)] = &[("6.4", "RCCL")];

/// Fails with the first disagreement; the error says how many there are.
pub fn run(root: &Path) -> Result<()> {
    let mut problems = Vec::new();
    for table in &TABLES {
        let bound = bound(root, table)?;
        let mut declared_somewhere = BTreeSet::new();
        for release in RELEASES.iter().filter(|release| release.supported) {
            let headers = release.header_package(table.package);
            let (headers, library) = match (headers, release.library(table), &release.origin) {
                (Some(headers), library @ Some(_), _) => (headers, library),
                // The bindings of a release are of HIP alone, and declare what a library has that was not read.
                (Some(headers), None, Origin::Python { .. }) => (headers, None),
                (None, None, Origin::Python { .. }) => continue,
                (None, None, _) if UNPACKAGED.contains(&(release.name, table.what)) => continue,
                _ => return Err(format!("ROCm {} lacks {}", release.name, table.what).into()),
            };
            let facts = Facts::read(root, table.headers, headers)?;
            let declared: BTreeSet<&str> = facts
                .of("fn")
                .map(|(name, _)| name)
                .filter(|name| table_of(table.owner, name).is_some_and(|of| of.file == table.file))
                .collect();
            let list = library
                .map(|library| SymbolList::read(root, library.name, &library.package))
                .transpose()?;
            let exported = list
                .as_ref()
                .map(|list| list.functions.keys().map(String::as_str).collect());
            problems.extend(disagreements(
                &format!("{} of ROCm {}", table.what, headers.release()),
                &declared,
                exported.as_ref(),
                &bound,
                declared_only(release.name),
            ));
            declared_somewhere.extend(declared.into_iter().map(str::to_owned));
        }
        problems.extend(
            bound
                .iter()
                .filter(|name| !declared_somewhere.contains(*name))
                .map(|name| format!("{}: no release declares `{name}`", table.what)),
        );
    }
    problems.extend(wrong_values(root)?);
    match problems.first() {
        None => Ok(()),
        Some(first) => Err(format!("{first} ({} disagreements in all)", problems.len()).into()),
    }
}

fn declared_only(release: &str) -> &'static [&'static str] {
    DECLARED_ONLY
        .iter()
        .find(|(of, _)| *of == release)
        .map_or(&[], |(_, names)| names)
}

/// The functions that a table has slots for, read from its source.
pub fn bound(root: &Path, table: &Table) -> Result<BTreeSet<String>> {
    let path = format!("crates/{}/src/{}", table.owner, table.file);
    let text = fs::read_to_string(root.join(&path)).map_err(|error| format!("cannot read {path}: {error}"))?;
    bound_in(&text).ok_or_else(|| format!("{path} declares no functions").into())
}

fn bound_in(source: &str) -> Option<BTreeSet<String>> {
    let symbol = |line: &str| {
        let declaration = line.trim_start().strip_prefix("pub ")?;
        // A form's slot has another name than its symbol.
        let (keyword, end) = match declaration.contains("form ") {
            true => ("form ", ' '),
            false => ("fn ", '('),
        };
        let (symbol, _) = declaration.split_once(keyword)?.1.split_once(end)?;
        Some(symbol.to_owned())
    };
    let symbols: BTreeSet<String> = source.lines().filter_map(symbol).collect();
    (!symbols.is_empty()).then_some(symbols)
}

/// The disagreements in one release of one library; `exported` is absent where the library was not read.
fn disagreements(
    what: &str,
    declared: &BTreeSet<&str>,
    exported: Option<&BTreeSet<&str>>,
    bound: &BTreeSet<String>,
    declared_only: &[&str],
) -> Vec<String> {
    let mut problems = Vec::new();
    for name in declared {
        if !bound.contains(*name) {
            problems.push(format!("{what}: `{name}` is declared, but has no slot"));
        }
        let Some(exported) = exported else {
            continue;
        };
        match (exported.contains(name), declared_only.contains(name)) {
            (false, false) => {
                problems.push(format!("{what}: `{name}` is declared, but not exported"));
            }
            (true, true) => problems.push(format!(
                "{what}: `{name}` is exported; remove it from the list of functions that are not"
            )),
            _ => {}
        }
    }
    problems
}

/// Values of the newest headers that the bindings have with another number, or not at all.
fn wrong_values(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for table in &TABLES {
        let newest = RELEASES
            .iter()
            .rev()
            .find_map(|release| release.header_package(table.package));
        let Some(package) = newest else {
            return Err(format!("no release has {}", table.what).into());
        };
        let facts = Facts::read(root, table.headers, package)?;
        let path = format!("crates/{}/src/types.rs", table.owner);
        let types = fs::read_to_string(root.join(&path)).map_err(|error| format!("cannot read {path}: {error}"))?;
        problems.extend(values_missing(&facts, &types).map(|line| format!("{path} lacks `{line}`")));
    }
    Ok(problems)
}

fn values_missing<'a>(facts: &'a Facts, types: &str) -> impl Iterator<Item = String> + 'a {
    // Long lines are broken and get a comma.
    let compact: String = types.split_whitespace().collect::<String>().replace(",)", ")");
    facts.of("enum").filter_map(move |(name, number)| {
        let (owner, value) = name.split_once("::")?;
        let line = format!("pubconst{value}:{owner}={owner}({number});");
        (!compact.contains(&line)).then(|| format!("{name} = {number}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<'a>(names: &[&'a str]) -> BTreeSet<&'a str> {
        names.iter().copied().collect()
    }

    fn slots(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn headers_libraries_and_tables_of_the_repository_agree() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        run(root).expect("no disagreement");
    }

    #[test]
    fn a_wrong_symbol_anywhere_is_found() {
        let good = ["hipFree", "hipMalloc"];
        let check = |declared: &[&str], exported: &[&str], bound: &[&str]| {
            disagreements("HIP", &set(declared), Some(&set(exported)), &slots(bound), &[])
        };
        assert!(check(&good, &good, &good).is_empty());
        for (declared, exported, bound) in [
            (["hipFree", "hipMaloc"], good, good),
            (good, ["hipFree", "hipMaloc"], good),
            (good, good, ["hipFree", "hipMaloc"]),
        ] {
            let problems = check(&declared, &exported, &bound);
            assert!(!problems.is_empty(), "{declared:?} {exported:?} {bound:?}");
        }
    }

    #[test]
    fn of_a_library_that_was_not_read_only_the_slots_are_asked_for() {
        let declared = set(&["hipFree", "hipNovelty"]);
        let problems = |bound| disagreements("HIP", &declared, None, &slots(bound), &[]);
        assert!(problems(&["hipFree", "hipNovelty"]).is_empty());
        assert_eq!(
            problems(&["hipFree"]),
            ["HIP: `hipNovelty` is declared, but has no slot"]
        );
    }

    #[test]
    fn an_exception_that_is_none_any_more_is_found() {
        let names = set(&["hipLate"]);
        let problems = |exported: &BTreeSet<&str>| {
            disagreements("HIP", &names, Some(exported), &slots(&["hipLate"]), &["hipLate"])
        };
        assert!(problems(&BTreeSet::new()).is_empty());
        assert_eq!(problems(&names).len(), 1);
    }

    #[test]
    fn a_wrong_number_in_the_bindings_is_found() {
        let facts = Facts::parse("# libx 1\nenum e_t::A = 1\nenum e_t::B = 2\n").expect("facts");
        let types = "impl e_t {\n    pub const A: e_t = e_t(1);\n    pub const B: e_t = e_t(\n        2,\n    );\n}";
        assert_eq!(values_missing(&facts, types).count(), 0);
        let wrong = types.replace("(1)", "(3)");
        assert_eq!(values_missing(&facts, &wrong).collect::<Vec<_>>(), ["e_t::A = 1"]);
    }

    #[test]
    fn the_slots_are_read_from_the_source_of_a_table() {
        let source = r#"$($with)::+! { $($first)*
            pub fn hipFree(ptr: *mut ::core::ffi::c_void) -> hipError_t;
            #[doc(alias = "other")]
            pub form hipMalloc if (c"hipFree", false) fn hipMalloc_until_5(ptr: *mut *mut ::core::ffi::c_void,
                size: usize) -> hipError_t, "in some";
            pub other fn hipNovelty(), "in others"; }"#;
        assert_eq!(bound_in(source), Some(slots(&["hipFree", "hipMalloc", "hipNovelty"])));
        assert_eq!(bound_in("struct Api;"), None);
    }
}
