//! The tables against what the real libraries of each release export (`cargo xtask symbols` keeps the lists).

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::path::Path;

use rccl_sys::Api;

/// Never called: it only is an address.
unsafe extern "C" fn unused() {}

/// The functions that a library of this release exports.
fn exported(library: &str, release: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../xtask/symbols")
        .join(library)
        .join(format!("{release}.txt"));
    let text = std::fs::read_to_string(&path).expect("the list is in the repository");
    text.lines()
        .skip(1)
        .map(|line| line.split(' ').next().expect("a name").to_owned())
        .collect()
}

/// A slot for an older form of a function has the function's symbol.
fn symbol_of(slot: &str) -> &str {
    slot.split("_until_").next().expect("a first part")
}

/// Fails unless each exported function fills one slot, and nothing else does.
fn check(exported: &BTreeSet<String>, slots: &[&str], filled: &BTreeSet<&str>) {
    for symbol in slots.iter().map(|slot| symbol_of(slot)) {
        let forms = filled.iter().filter(|slot| symbol_of(slot) == symbol);
        assert_eq!(forms.count(), usize::from(exported.contains(symbol)), "{symbol}");
    }
}

fn table(exported: &BTreeSet<String>) -> Api {
    let resolve = |name: &CStr| {
        let name = name.to_str().expect("symbols are ASCII");
        exported.contains(name).then_some(unused as *mut c_void)
    };
    // SAFETY: no slot of this table is called.
    unsafe { Api::from_symbols(resolve) }
}

#[test]
fn every_release_fills_exactly_the_slots_of_its_functions() {
    for release in ["5.4", "7.2"] {
        let exported = exported("rccl", release);
        let api = table(&exported);
        let filled: BTreeSet<&str> = api.present().collect();
        check(&exported, Api::SYMBOLS, &filled);
        println!("RCCL {release}: {} slots", filled.len());
        assert!(filled.len() >= 29, "{release}: {}", filled.len());
    }
}
