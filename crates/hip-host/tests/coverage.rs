//! The book's page about the host platform lists exactly what is built.

use std::fmt::Write;
use std::path::Path;

use hip_host::coverage::{self, Coverage};

/// Set to anything, the page is written anew instead of compared.
const WRITE: &str = "HIP_HOST_WRITE_COVERAGE";

/// Everything behind this line is made from the tables.
const MARK: &str = "<!-- made from the code: see crates/hip-host/tests/coverage.rs -->\n";

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
        let state = match coverage {
            Coverage::Done => "done".to_owned(),
            Coverage::Partial(missing) => format!("partial: {missing}"),
            Coverage::Absent => format!("not: `{absent}`"),
        };
        writeln!(text, "| `{name}` | {state} |").unwrap();
    }
    text
}

/// The built functions only, for the libraries of a thousand functions.
fn list(title: &str, absent: &str, table: &Table) -> String {
    let built: Vec<_> = table
        .iter()
        .filter(|(_, c)| *c != Coverage::Absent)
        .collect();
    let mut text = format!(
        "\n## {title}\n\n{} of {} functions; the others answer {absent}.\n\n",
        built.len(),
        table.len()
    );
    for (name, coverage) in built {
        match coverage {
            Coverage::Partial(missing) => writeln!(text, "- `{name}` (partial: {missing})"),
            _ => writeln!(text, "- `{name}`"),
        }
        .unwrap();
    }
    text
}

fn tables() -> String {
    let internal = "HIPRTC_ERROR_INTERNAL_ERROR";
    let not_implemented = "`rocblas_status_not_implemented`";
    [
        rows("HIP", "hipErrorNotSupported", &coverage::hip()),
        rows("HIPRTC", internal, &coverage::rtc()),
        list("HSA", "nothing: they are empty slots", &coverage::hsa()),
        list("rocBLAS", not_implemented, &coverage::rocblas()),
        list("rocSOLVER", not_implemented, &coverage::rocsolver()),
    ]
    .concat()
}

#[test]
fn the_book_lists_what_is_built() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/host-platform.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, written) = text.split_once(MARK).unwrap();
    let tables = tables();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&page, format!("{head}{MARK}{tables}")).unwrap();
        return;
    }
    assert!(
        written == tables,
        "docs/src/host-platform.md is stale: run `{WRITE}=1 cargo test -p hip-host --test coverage` and commit it"
    );
}
