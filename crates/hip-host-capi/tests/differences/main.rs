//! Random sequences of calls, made on the host platform and on AMD's own library, and the differences between the
//! answers.
//!
//! | module | what |
//! |---|---|
//! | `random`, `world` | choices by a seed; what a sequence made, and its log |
//! | `memory`, `streams`, `graphs`, `modules`, `external`, `managed` | the calls, area by area |
//! | `sequence` | one sequence from its number |
//! | `run` | sequences in processes of their own, here or where AMD's library lies |
//! | `compare` | differences, without those that are known |
//!
//! `recorded.txt` holds what ROCm 7.2.4 answered, so that every machine can hold the model to it; `known.txt` holds the
//! differences that are known, each with its reason. A change of the calls changes what a number stands for: then both
//! libraries have to be asked anew, by `cargo xtask differences --real FOLDER --record`.

mod compare;
mod external;
mod graphs;
#[path = "../toolchain/library.rs"]
mod library;
mod managed;
mod memory;
mod modules;
mod random;
mod run;
mod sequence;
mod streams;
mod world;

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::ops::Range;
use std::path::Path;

use compare::{Differences, Known, Recorded};
use hip_sys::{Api, RtcApi};
use libloading::Library;
use world::World;

/// The first sequence and the one after the last, for a process that only makes calls.
const RANGE: &str = "HIPCL_SEQUENCES";
/// The library to call, a path or a name for the loader.
const LIBRARY: &str = "HIPCL_SEQUENCES_LIBRARY";
/// The library with HIPRTC, if it is another.
const HIPRTC: &str = "HIPCL_SEQUENCES_HIPRTC";
/// The host platform's library, if it is not to be built.
const OURS: &str = "HIPCL_SEQUENCES_OURS";
/// The folder with AMD's library and the emulator.
const REAL: &str = "HIPCL_SEQUENCES_REAL";
/// Names the file to record AMD's answers in, or to read them from instead of the recorded ones.
const RECORD: &str = "HIPCL_SEQUENCES_RECORD";

const RECORDED: &str = include_str!("recorded.txt");
const KNOWN: &str = include_str!("known.txt");

fn range() -> Option<Range<u64>> {
    let text = std::env::var(RANGE).ok()?;
    let (first, end) = text.split_once("..")?;
    Some(first.parse().ok()?..end.parse().ok()?)
}

fn symbol(library: &Library, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: only the address is taken, and the library stays loaded.
    unsafe {
        let symbol = library.get::<*mut c_void>(name.to_bytes_with_nul());
        symbol.ok().and_then(|symbol| symbol.try_as_raw_ptr())
    }
}

/// The calls themselves, in a process of their own.
#[test]
#[ignore = "a part of the other tests, which start it"]
fn sequences() {
    let (Some(range), Ok(library)) = (range(), std::env::var(LIBRARY)) else {
        return;
    };
    let open = |name: &str| {
        // SAFETY: loading HIP runs its initialisers, as in every program that uses it. It stays loaded to the end.
        let library = unsafe { Library::new(name) }.ok()?;
        Some(&*Box::leak(Box::new(library)))
    };
    let hip = open(&library).expect("the library loads");
    let rtc = std::env::var(HIPRTC).unwrap_or(library);
    let rtc = open(&rtc);
    // SAFETY: each slot has the signature of the HIP or HIPRTC function that it is named after.
    let (hip, rtc) = unsafe {
        (
            Api::from_symbols(|name| symbol(hip, name)),
            rtc.map(|rtc| RtcApi::from_symbols(|name| symbol(rtc, name))),
        )
    };
    let mut world = World::new(hip, rtc);
    for number in range {
        sequence::run(&mut world, number);
    }
    // What the libraries do at the end of a process is not looked at here.
    run::end_at_once();
}

#[test]
fn the_model_answers_as_rocm_did() {
    let other = std::env::var(RECORD).map(|path| std::fs::read_to_string(path).unwrap());
    let recorded = Recorded::read(other.as_deref().unwrap_or(RECORDED));
    let known = Known::read(KNOWN);
    let mut differences = Differences::default();
    for range in recorded.ranges() {
        let log: BTreeMap<_, _> = run::here(range.clone()).into_iter().collect();
        for number in range {
            let lines = log.get(&number).map_or(&[][..], Vec::as_slice);
            assert!(!lines.is_empty(), "sequence {number} was not run");
            differences.compare_recorded(number, lines, recorded.of(number), &known);
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
#[ignore = "needs AMD's library on the emulator: `cargo xtask differences --real FOLDER`"]
fn with_real_rocm() {
    let range = range().unwrap_or(0..5000);
    let folder = std::env::var(REAL).expect("HIPCL_SEQUENCES_REAL names the folder");
    let known = Known::read(KNOWN);
    let real = run::real(Path::new(&folder), range.clone());
    if let Ok(path) = std::env::var(RECORD) {
        std::fs::write(path, compare::recording(&real)).expect("the recording is written");
    }
    let ours: BTreeMap<_, _> = run::here(range).into_iter().collect();
    let mut differences = Differences::default();
    for (number, lines) in &real {
        differences.compare(*number, &ours[number], lines, &known);
    }
    println!("{differences}\n{known}");
}
