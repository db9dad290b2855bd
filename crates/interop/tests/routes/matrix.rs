//! The table of routes and platforms in the book, made from what the routes do here.
//!
//! After a change: `HIPCL_WRITE_MATRIX=1 cargo test -p interop --test routes matrix`.

use std::fmt::Write;
use std::path::Path;

use interop::{Bridge, BridgeReport, Options, Route};

use crate::{amd, common, descriptors, evidence};

const BEGIN: &str = "<!-- routes: made by `HIPCL_WRITE_MATRIX=1 cargo test -p interop --test routes matrix`, do not edit -->\n";
const END: &str = "<!-- routes: end -->\n";

/// What is known of one route on one platform.
fn cell(report: &BridgeReport, route: Route, state: &str) -> String {
    let found = report.routes.iter().find(|report| report.route == route);
    match &found.expect("every route is reported").outcome {
        Ok(residency) => format!("{state}: {residency}"),
        // Addresses and names of devices differ from machine to machine, the last clause does not.
        Err(reason) => {
            let clause = reason.rsplit(": ").next().unwrap_or(reason);
            format!("skipped: {clause}")
        }
    }
}

/// Where the platform cannot run here: a shim's proof if there is one, else why not.
fn nvidia(shim: &BridgeReport, route: Route) -> String {
    match route {
        Route::ExternalFd => cell(shim, route, "shim"),
        Route::HostPinned | Route::Staging => "skipped: no such device here".into(),
        _ => "skipped: OpenCL and CUDA are two contexts".into(),
    }
}

fn table() -> String {
    let seen = evidence::all();
    let _alone = amd::alone();
    let strict = amd::open();
    let imports = descriptors::open();
    let host = Bridge::open(&common::host(), &Options::default()).expect("a bridge");
    let mut text =
        "| route | oldest ROCm | amd | nvidia | host |\n|---|---|---|---|---|\n".to_owned();
    for route in Route::ALL {
        // what was seen on hardware outweighs what was modelled
        let amd = evidence::cell(&seen, "amd", route)
            .unwrap_or_else(|| cell(strict.report(), route, "shim"));
        let nvidia = evidence::cell(&seen, "nvidia", route)
            .unwrap_or_else(|| nvidia(imports.report(), route));
        let host = cell(host.report(), route, "host");
        let oldest = route.oldest_rocm().unwrap_or("none");
        writeln!(text, "| `{route}` | {oldest} | {amd} | {nvidia} | {host} |").expect("a string");
    }
    text
}

#[test]
fn the_books_table_of_routes_is_what_the_routes_do() {
    let table = table();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/status.md");
    let book = std::fs::read_to_string(&path).expect("the book");
    let (before, rest) = book.split_once(BEGIN).expect("the table's begin");
    let (written, after) = rest.split_once(END).expect("the table's end");
    if std::env::var_os("HIPCL_WRITE_MATRIX").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}\n{table}\n{END}{after}")).expect("written");
        return;
    }
    let host = Bridge::open(&common::host(), &Options::default()).expect("a bridge");
    if !host.report().opencl_platform.contains("Intel") {
        eprintln!(
            "skipped: the book's table is that of the runtime which `cargo xtask setup` installs"
        );
        return;
    }
    assert_eq!(
        written.trim(),
        table.trim(),
        "run HIPCL_WRITE_MATRIX=1 cargo test -p interop --test routes matrix"
    );
}
