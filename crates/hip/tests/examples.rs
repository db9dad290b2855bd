//! The examples check themselves; here they are run.

use std::path::PathBuf;
use std::process::Command;

/// The program: `cargo test` has built it beside the tests; where one test alone was asked for, cargo builds it now.
fn program(example: &str) -> Command {
    let here = std::env::current_exe().unwrap();
    let built: PathBuf = here
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples")
        .join(example);
    if built.exists() {
        return Command::new(built);
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--package", "hip", "--example", example]);
    cargo
}

fn succeeds(example: &str, says: &[&str]) {
    let output = program(example).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    for part in says {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn simple_add_finds_every_element_right() {
    succeeds("01_simple_add", &["1048576 elements are right"]);
}

#[test]
fn both_products_with_the_identity_are_the_matrix() {
    succeeds("02_matrix_mul", &["naive: C == A", "tiled: C == A"]);
}

#[test]
fn managed_memory_is_right_on_demand_and_prefetched() {
    succeeds("03_lazy_managed", &["on demand: ", "prefetched: "]);
}

#[test]
fn a_mapped_file_is_right_by_at_least_one_way() {
    let ring = "pread into a page-locked ring, page cache";
    succeeds(
        "04_mmap_lazy",
        &[&format!("{ring} cold"), &format!("{ring} warm")],
    );
}
