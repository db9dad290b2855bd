//! The bindings against the real headers of every release that `cargo xtask codegen` has fetched.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use layout_test::{Claim, Compiler, Value, all, ask, differences, of_release};

/// Set to any value it writes the lists instead of comparing with them.
const BLESS: &str = "HIPCL_BLESS";

const HOW_TO_BLESS: &str = "if every line is a difference between releases and not a mistake, write the lists with \
    `HIPCL_BLESS=1 cargo test -p layout-test` and review them";

/// Fewer agreeing claims than that are no comparison but a probe that fell silent.
const LEAST: [(&str, usize); 5] = [
    ("hip-sys", 2000),
    ("rocblas-sys", 700),
    ("rocsolver-sys", 700),
    ("hsa-sys", 800),
    ("rccl-sys", 100),
];

/// The supported releases, oldest first. Their headers are in `<target>/codegen/headers/<release>/usr/include`.
const RELEASES: [&str; 4] = ["5.7", "6.4", "7.2", "10.0"];

/// The releases of which only HIP was read.
const HIP_ALONE: [&str; 1] = ["10.0"];

/// Libraries that no package of a release has.
const LACKING: [(&str, &str); 1] = [("6.4", "rccl-sys")];

#[test]
fn the_bindings_are_what_the_headers_of_rocm_5_7_say() {
    compare("the_bindings_are_what_the_headers_of_rocm_5_7_say", "5.7");
}

#[test]
fn the_bindings_are_what_the_headers_of_rocm_6_4_say() {
    compare("the_bindings_are_what_the_headers_of_rocm_6_4_say", "6.4");
}

#[test]
fn the_bindings_are_what_the_headers_of_rocm_7_2_say() {
    compare("the_bindings_are_what_the_headers_of_rocm_7_2_say", "7.2");
}

/// Their headers are made again from AMD's bindings for Python.
#[test]
fn the_bindings_are_what_the_declarations_of_rocm_10_0_say() {
    compare("the_bindings_are_what_the_declarations_of_rocm_10_0_say", "10.0");
}

fn compare(test: &str, release: &str) {
    let Some(include) = headers(release) else {
        return skipped(test, &no_headers(release));
    };
    let compiler = Compiler::find().expect("a C compiler");
    let mut found = BTreeSet::new();
    for bindings in all() {
        if HIP_ALONE.contains(&release) && bindings.name != "hip-sys" || LACKING.contains(&(release, bindings.name)) {
            continue;
        }
        let claims = of_release(&bindings.claims, major(release));
        let answers = ask(&compiler, Some(&include), bindings.headers, &claims)
            .unwrap_or_else(|error| panic!("ROCm {release}, {}: {error}", bindings.name));
        let lines = differences(&claims, &answers);
        println!(
            "ROCm {release}, {}: {} claims, {} differences",
            bindings.name,
            claims.len(),
            lines.len()
        );
        let least = LEAST.iter().find(|(name, _)| *name == bindings.name);
        let agreed = claims.len().saturating_sub(lines.len());
        assert!(least.is_some_and(|(_, least)| agreed >= *least));
        let lines = lines.iter().map(|line| format!("{}: {line}", bindings.name));
        found.extend(lines);
    }
    let problems = judge(release, &found);
    assert!(problems.is_empty(), "{}\n{HOW_TO_BLESS}", problems.join("\n"));
}

#[test]
fn every_supported_release_that_was_fetched_is_compared() {
    let entries = std::fs::read_dir(header_sets()).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // Khronos' headers lie beside AMD's.
    for name in names.filter(|name| name != "opencl") {
        // Those below the oldest supported one are there for the record of what they lack.
        let supported = numbers(&name) >= numbers(RELEASES[0]);
        assert!(
            !supported || RELEASES.contains(&name.as_str()),
            "give ROCm {name} a test and a list, or remove {}",
            header_sets().join(&name).display()
        );
    }
}

#[test]
fn the_bindings_give_every_name_the_meaning_of_the_newest_release() {
    for bindings in all() {
        let name = bindings.name;
        let has = |release: &&&str| name == "hip-sys" || !HIP_ALONE.contains(release);
        let newest = RELEASES.iter().rev().find(has).expect("one has it");
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("differences/{newest}.txt"));
        let text = std::fs::read_to_string(list).expect("each release has a list");
        // A name that it lacks belongs to older releases; one that it has must not mean anything else.
        let other = |line: &&str| line.starts_with(name) && !line.contains(": no ");
        assert_eq!(text.lines().find(other), None);
    }
}

#[test]
fn a_planted_mistake_in_real_bindings_is_found_in_the_real_headers() {
    let release = RELEASES[2];
    let Some(include) = headers(release) else {
        return skipped(
            "a_planted_mistake_in_real_bindings_is_found_in_the_real_headers",
            &no_headers(release),
        );
    };
    let compiler = Compiler::find().expect("a C compiler");
    let hip = all().swap_remove(0);
    let lines = |claims: &[Claim]| {
        let answers = ask(&compiler, Some(&include), hip.headers, claims);
        differences(claims, &answers.expect("the compiler answers"))
    };
    let claims = of_release(&hip.claims, major(release));
    let known = lines(&claims);
    let mut planted = claims;
    let mut mistakes = 0;
    for claim in &mut planted {
        match (claim.subject().as_str(), &mut claim.value) {
            (
                "sizeof(hipMemcpy3DParms)"
                | "_Alignof(hipExtent)"
                | "offsetof(hipMemcpy3DParms, extent)"
                | "hipErrorNoDevice"
                | "hipHostMallocMapped",
                Value::Number(number),
            ) => *number += 4,
            ("bits of hipDeviceArch_t.hasDoubles", Value::Bytes(digits)) => {
                *digits = digits.chars().rev().collect();
            }
            ("hipMalloc()", Value::Declared) => claim.c = "hipMaloc".into(),
            _ => continue,
        }
        mistakes += 1;
    }
    assert_eq!(mistakes, 7, "the claims have other names in ROCm {release}");
    let found = lines(&planted);
    assert_eq!(found.difference(&known).count(), mistakes, "{found:#?}");
}

/// Compares with the committed list of the release, or writes it.
fn judge(release: &str, found: &BTreeSet<String>) -> Vec<String> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("differences")
        .join(format!("{release}.txt"));
    if std::env::var_os(BLESS).is_some() {
        let mut text = format!("# Where the headers of ROCm {release} are not what the bindings say.\n");
        text.extend(found.iter().map(|line| format!("{line}\n")));
        std::fs::write(&list, text).expect("the list can be written");
        return Vec::new();
    }
    let Ok(text) = std::fs::read_to_string(&list) else {
        return vec![format!("ROCm {release} has no list differences/{release}.txt")];
    };
    let expected: BTreeSet<String> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(str::to_owned)
        .collect();
    let new = found.difference(&expected);
    let gone = expected.difference(found);
    new.map(|line| format!("ROCm {release}: {line}"))
        .chain(gone.map(|line| format!("ROCm {release}: no longer so: {line}")))
        .collect()
}

/// Where `cargo xtask codegen` puts the headers.
fn header_sets() -> PathBuf {
    // Cargo's folder for tests lies in the target folder.
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../codegen/headers")
}

fn headers(release: &str) -> Option<PathBuf> {
    let include = header_sets().join(release).join("usr/include");
    include.join("hip").is_dir().then_some(include)
}

fn no_headers(release: &str) -> String {
    format!("no headers of ROCm {release} here; `cargo xtask codegen --check` fetches them")
}

/// `6.4` is 6.
fn major(release: &str) -> u32 {
    numbers(release)[0]
}

fn numbers(release: &str) -> Vec<u32> {
    let numbers = release.split('.').map(|number| number.parse());
    numbers
        .collect::<Result<_, _>>()
        .expect("a release is named by its numbers")
}

/// Tells a reader, and the test run's record, that nothing was tested here.
fn skipped(test: &str, reason: &str) {
    println!("skipped: {test}: {reason}");
    if let Some(log) = std::env::var_os("HIPCL_SKIP_LOG") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
        file.and_then(|mut file| file.write_all(format!("{test}: {reason}\n").as_bytes()))
            .expect("HIPCL_SKIP_LOG names a writable file");
    }
}
