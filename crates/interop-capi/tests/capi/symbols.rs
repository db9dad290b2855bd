//! What the library exports: the header's functions and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::declarations::functions;
use crate::toolchain::{available, built, crate_folder, skip};

/// Writes the list instead of comparing with it.
const WRITE: &str = "HIPCL_WRITE_SYMBOLS";

fn output(tool: &str, args: &[&str]) -> String {
    let output = Command::new(tool).args(args).arg(built("libhipcl_c.so")).output();
    let output = output.expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names")
}

fn exported() -> BTreeSet<String> {
    let names = output("nm", &["--dynamic", "--defined-only", "--format=posix"]);
    let names = names.lines().filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_library_exports_the_functions_of_the_header_and_nothing_else() {
    if !available("nm") {
        return skip(
            "the_library_exports_the_functions_of_the_header_and_nothing_else",
            "no nm",
        );
    }
    let declared: BTreeSet<String> = functions().into_iter().map(|function| function.name).collect();
    assert_eq!(exported(), declared);
}

/// A symbol that goes, or a new one, is seen in a review. Where programs must be compiled anew, the SONAME in `build.rs`
/// changes too.
#[test]
fn the_exported_symbols_are_the_recorded_ones() {
    if !available("nm") {
        return skip("the_exported_symbols_are_the_recorded_ones", "no nm");
    }
    let path = crate_folder().join("symbols.txt");
    let exported: String = exported().iter().map(|name| format!("{name}\n")).collect();
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, &exported).expect("the list can be written");
    }
    let recorded = fs::read_to_string(&path).expect("the list");
    assert_eq!(
        exported, recorded,
        "if this is intended, run the test with {WRITE}=1 and commit"
    );
}

#[test]
fn the_library_is_known_by_the_name_of_its_abi() {
    if !available("readelf") {
        return skip("the_library_is_known_by_the_name_of_its_abi", "no readelf");
    }
    let dynamic = output("readelf", &["--dynamic", "--wide"]);
    assert!(dynamic.contains("Library soname: [libhipcl.so.0]"), "{dynamic}");
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
