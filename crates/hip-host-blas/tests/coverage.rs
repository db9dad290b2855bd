//! The book's page about the host platform lists exactly what is built.

#[path = "coverage/family.rs"]
mod family;

use std::fmt::Write;
use std::path::Path;

use hip_host::coverage::{self, Coverage};
use hip_host_blas::coverage as blas;

/// Everything behind this line is made from the tables.
const MARK: &str = "<!-- made from the code: see crates/hip-host-blas/tests/coverage.rs -->\n";

type Table = Vec<(&'static str, Coverage)>;

/// One row for each function.
fn rows(title: &str, absent: &str, table: &Table) -> String {
    let built = |table: &Table| {
        let built = table.iter().filter(|(_, c)| *c != Coverage::Absent);
        built.count()
    };
    let mut text = format!(
        "\n## {title}\n\n{} of {} functions.\n\n| function | built |\n|---|---|\n",
        built(table),
        table.len()
    );
    for (name, coverage) in table {
        writeln!(text, "| `{name}` | {} |", state(coverage, absent)).unwrap();
    }
    text
}

/// What the row of a family says.
fn state(coverage: &Coverage, absent: &str) -> String {
    match coverage {
        Coverage::Done => "done".to_owned(),
        Coverage::Partial(missing) => format!("partial: {missing}"),
        Coverage::Absent => format!("not: `{absent}`"),
    }
}

/// One row for each family of functions, for the libraries of a thousand: element types and forms in braces.
fn families(title: &str, absent: &str, table: &Table) -> String {
    let built = table.iter().filter(|(_, c)| *c != Coverage::Absent).count();
    let all = table.len();
    let mut text = format!(
        "\n## {title}\n\n{built} of {all} functions. Braces name one of several: element types, and forms.\n\n\
         | functions | built |\n|---|---|\n"
    );
    let states: Vec<_> = table
        .iter()
        .map(|(name, coverage)| (*name, state(coverage, absent)))
        .collect();
    for (family, state) in family::collapse(&states) {
        writeln!(text, "| `{family}` | {state} |").unwrap();
    }
    text
}

/// HSA: what is built, and the names of the rest.
fn list(title: &str, absent: &str, table: &Table) -> String {
    let (rest, built): (Table, Table) = table.iter().partition(|(_, coverage)| *coverage == Coverage::Absent);
    let mut text = format!(
        "\n## {title}\n\n{} of {} functions.\n\n| function | built |\n|---|---|\n",
        built.len(),
        table.len()
    );
    for (name, coverage) in built {
        writeln!(text, "| `{name}` | {} |", state(&coverage, "")).unwrap();
    }
    writeln!(text, "\n{absent}:\n").unwrap();
    for (name, _) in rest {
        writeln!(text, "`{name}`").unwrap();
    }
    text
}

fn tables() -> String {
    let internal = "HIPRTC_ERROR_INTERNAL_ERROR";
    let not_implemented = "rocblas_status_not_implemented";
    [
        rows("HIP", "hipErrorNotSupported", &coverage::hip()),
        rows("HIPRTC", internal, &coverage::rtc()),
        list(
            "HSA",
            "Not built, so empty slots in the Rust table and no names in the C library",
            &coverage::hsa(),
        ),
        families("rocBLAS", not_implemented, &blas::rocblas()),
        families("rocSOLVER", not_implemented, &blas::rocsolver()),
    ]
    .concat()
}

#[test]
fn the_families_name_every_function_once() {
    for table in [blas::rocblas(), blas::rocsolver()] {
        let states: Vec<_> = table
            .iter()
            .map(|(name, coverage)| (*name, state(coverage, "")))
            .collect();
        let mut named: Vec<_> = family::collapse(&states)
            .iter()
            .flat_map(|(family, state)| {
                let names = family::expand(family).into_iter();
                names.map(|name| (name, state.clone()))
            })
            .collect();
        named.sort();
        let mut expected: Vec<_> = states
            .into_iter()
            .map(|(name, state)| (name.to_owned(), state))
            .collect();
        expected.sort();
        assert_eq!(named, expected);
    }
}

#[test]
fn the_book_lists_what_is_built() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/host-functions.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, written) = text.split_once(MARK).unwrap();
    let tables = tables();
    if std::env::var_os("HIPCL_WRITE_TABLES").is_some() {
        std::fs::write(&page, format!("{head}{MARK}{tables}")).unwrap();
        return;
    }
    assert!(
        written == tables,
        "docs/src/host-functions.md is stale: run `cargo xtask tables` and commit it"
    );
}
