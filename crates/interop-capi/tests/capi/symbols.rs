//! What the library exports: the header's functions with the recorded versions, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::declarations::functions;
use crate::toolchain::{C, available, crate_folder, libraries, skip};

fn output(tool: &str, args: &[&str]) -> String {
    let library = libraries().join("libhipcl.so.0");
    let output = Command::new(tool).args(args).arg(library).output();
    let output = output.expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names")
}

/// Whether the tools are there that link the library and read it.
fn is_readable(test: &str) -> bool {
    let missing = [C.program, "nm", "readelf"].into_iter().find(|tool| !available(tool));
    if let Some(tool) = missing {
        skip(test, &format!("no {tool}"));
    }
    missing.is_none()
}

/// The functions in `package/libhipcl.map`, the linker's list, with their versions. A function that goes, or a new one, is
/// seen in a review.
fn recorded() -> BTreeMap<String, String> {
    let text = fs::read_to_string(crate_folder().join("package/libhipcl.map")).expect("the list");
    let mut symbols = BTreeMap::new();
    let mut version = "";
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_suffix(" {") {
            version = name;
        } else if let Some(name) = line.strip_suffix(';').filter(|name| name.starts_with("hipcl_")) {
            let twice = symbols.insert(name.to_owned(), version.to_owned());
            assert_eq!(twice, None, "{name} has two versions");
        }
    }
    symbols
}

#[test]
fn every_function_of_the_header_has_a_version() {
    let declared: BTreeSet<String> = functions().into_iter().map(|function| function.name).collect();
    let recorded: BTreeSet<String> = recorded().into_keys().collect();
    assert_eq!(
        recorded, declared,
        "package/libhipcl.map must list what the header declares"
    );
}

#[test]
fn the_library_exports_the_recorded_functions_with_their_versions_and_nothing_else() {
    let test = "the_library_exports_the_recorded_functions_with_their_versions_and_nothing_else";
    if !is_readable(test) {
        return;
    }
    let names = output("nm", &["--dynamic", "--defined-only", "--format=posix"]);
    let names = names.lines().filter_map(|line| line.split_whitespace().next());
    let exported: BTreeSet<String> = names.map(str::to_owned).collect();
    let recorded = recorded();
    let mut expected: BTreeSet<String> = recorded.values().cloned().collect();
    expected.extend(recorded.iter().map(|(name, version)| format!("{name}@@{version}")));
    assert_eq!(exported, expected);
}

/// A program that was linked with a library of no versions, or of another version, is refused before it runs.
#[test]
fn a_program_asks_for_the_version_that_it_was_linked_with() {
    let test = "a_program_asks_for_the_version_that_it_was_linked_with";
    if !is_readable(test) {
        return;
    }
    let source = crate_folder().join("tests/c/objects.c");
    let program = C.program(&source, test, crate::toolchain::Linked::Shared);
    let needed = Command::new("readelf")
        .args(["--version-info", "--wide"])
        .arg(program)
        .output();
    let needed = String::from_utf8(needed.expect("readelf starts").stdout).expect("a text");
    let (_, of_library) = needed
        .split_once("File: libhipcl.so.0")
        .expect("versions of the library");
    assert!(of_library.contains("Name: HIPCL_0.1"), "{needed}");
}

#[test]
fn the_library_is_known_by_the_name_of_its_abi_and_stays_loaded() {
    if !is_readable("the_library_is_known_by_the_name_of_its_abi_and_stays_loaded") {
        return;
    }
    let dynamic = output("readelf", &["--dynamic", "--wide"]);
    assert!(dynamic.contains("Library soname: [libhipcl.so.0]"), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    // Nothing of either API is linked: both are opened when a bridge is.
    for line in dynamic.lines().filter(|line| line.contains("(NEEDED)")) {
        let system = [
            "libc.so",
            "libm.so",
            "libgcc_s.so",
            "libdl.so",
            "libpthread.so",
            "ld-linux",
        ];
        assert!(system.iter().any(|name| line.contains(name)), "{line}");
    }
}
