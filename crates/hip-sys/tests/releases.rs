//! The tables against what the real libraries of each release export (`cargo xtask symbols` keeps the lists), and of
//! ROCm 10.0, whose library was not read, against what AMD declares.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::path::Path;

use hip_sys::{Api, RtcApi};

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

/// The functions that ROCm 10.0 declares, HIPRTC's apart.
fn declared_by_10() -> (BTreeSet<String>, BTreeSet<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/symbols/hip/10.0.headers.txt");
    let text = std::fs::read_to_string(&path).expect("the facts are in the repository");
    let functions = text.lines().filter_map(|line| line.strip_prefix("fn "));
    functions
        .map(|line| line.split('(').next().expect("a name").to_owned())
        .partition(|name| !name.starts_with("hiprtc"))
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
    for release in ["5.7", "6.4", "7.2"] {
        let exported = exported("hip", release);
        let api = table(&exported);
        let filled: BTreeSet<&str> = api.present().collect();
        check(&exported, Api::SYMBOLS, &filled);
        println!("HIP {release}: {} slots", filled.len());
        assert!(filled.len() > 400, "{release}: {}", filled.len());
    }
}

#[test]
fn every_function_that_rocm_10_declares_fills_the_slot_of_its_newest_form() {
    let (declared, of_hiprtc) = declared_by_10();
    let api = table(&declared);
    let filled: BTreeSet<&str> = api.present().collect();
    assert_eq!(filled, declared.iter().map(String::as_str).collect());
    assert!(filled.len() >= 530, "{}", filled.len());
    assert!(api.hipLaunchKernelExC.is_some() && api.hipDrvLaunchKernelEx.is_some());
    assert!(api.hipGetDevicePropertiesR0600.is_some() && api.hipGetDeviceProperties.is_none());
    assert_eq!(
        of_hiprtc.iter().map(String::as_str).collect::<Vec<_>>(),
        RtcApi::SYMBOLS
    );
}

#[test]
fn what_came_after_7_2_is_empty_there_and_the_slot_says_since_when() {
    let (declared, _) = declared_by_10();
    let exported = exported("hip", "7.2");
    let novel: Vec<&String> = declared
        .iter()
        .filter(|name| !exported.contains(*name))
        .filter(|name| *name != "hipExternalMemoryGetMappedMipmappedArray")
        .collect();
    assert_eq!(novel.len(), 36, "{novel:?}");
    let old = table(&exported);
    assert!(old.hipGreenCtxCreate.is_none() && old.hipKernelGetAttribute.is_none());
    // The list says of each function what the documentation of its slot ends with.
    let list: Vec<&str> = include_str!("../src/functions.rs")
        .split(";\n")
        .map(str::trim_start)
        .collect();
    for name in novel {
        let declared = list.iter().find(|declaration| {
            let begins = declaration.strip_prefix("pub other fn ");
            begins.is_some_and(|rest| rest.starts_with(&format!("{name}(")))
        });
        let declared = declared.expect("each function is declared");
        assert!(
            declared.ends_with("not in ROCm 7.2, but declared by 10.0 (HIP 7.15)\""),
            "{declared}"
        );
    }
}

#[test]
fn hiprtc_is_complete_in_every_release_wherever_it_lies() {
    for (library, release) in [("hip", "5.7"), ("hiprtc", "6.4"), ("hiprtc", "7.2")] {
        let exported = exported(library, release);
        // SAFETY: no slot of this table is called.
        let api = unsafe {
            RtcApi::from_symbols(|name| {
                let name = name.to_str().expect("symbols are ASCII");
                exported.contains(name).then_some(unused as *mut c_void)
            })
        };
        assert_eq!(api.present().count(), RtcApi::SYMBOLS.len(), "{release}");
    }
    // HIP 7 has no compiler inside any more, so the fallback must not be relied on.
    assert!(!exported("hip", "7.2").contains("hiprtcCompileProgram"));
}

#[test]
fn a_function_with_other_arguments_is_only_offered_in_the_form_of_its_release() {
    let forms = |release: &str| {
        let api = table(&exported("hip", release));
        (
            [api.hipDrvMemcpy3D.is_some(), api.hipDrvMemcpy3D_until_5.is_some()],
            [
                api.hipDrvGraphAddMemsetNode.is_some(),
                api.hipDrvGraphAddMemsetNode_until_6.is_some(),
            ],
            [
                api.hipSignalExternalSemaphoresAsync.is_some(),
                api.hipSignalExternalSemaphoresAsync_until_5.is_some(),
            ],
        )
    };
    let (newer, older, absent) = ([true, false], [false, true], [false, false]);
    assert_eq!(forms("5.7"), (older, absent, older));
    assert_eq!(forms("6.4"), (newer, older, newer));
    assert_eq!(forms("7.2"), (newer, newer, newer));
}

#[test]
fn the_library_after_the_newest_known_one_is_tried_second() {
    for (library, sonames) in [
        ("libamdhip64", Api::SEARCH.sonames),
        ("libhiprtc", RtcApi::SEARCH.sonames),
    ] {
        let numbers: Vec<_> = sonames
            .iter()
            .map(|name| name.strip_prefix(&format!("{library}.so.")))
            .collect();
        assert_eq!(numbers, [Some("7"), Some("8"), Some("6"), Some("5")]);
    }
}

#[test]
fn the_device_properties_of_5_7_are_a_slot_of_their_own() {
    let old = table(&exported("hip", "5.7"));
    assert!(old.hipGetDevicePropertiesR0600.is_none());
    assert!(old.hipGetDeviceProperties.is_some());
    let new = table(&exported("hip", "7.2"));
    assert!(new.hipGetDevicePropertiesR0600.is_some());
}

#[test]
fn extension_launches_are_bound_where_they_have_c_linkage() {
    let old = table(&exported("hip", "5.7"));
    assert!(old.hipExtLaunchKernel.is_some() && old.hipExtModuleLaunchKernel.is_none());
    for release in ["6.4", "7.2"] {
        let api = table(&exported("hip", release));
        assert!(api.hipExtLaunchKernel.is_some() && api.hipExtModuleLaunchKernel.is_some());
        assert!(api.hipHccModuleLaunchKernel.is_some());
    }
}
