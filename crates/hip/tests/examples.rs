//! The examples check themselves; here they are run.

use std::path::PathBuf;
use std::process::Command;

/// The program: `cargo test` has built it beside the tests; where one test alone was asked for, cargo builds it now.
fn program(example: &str) -> Command {
    let here = std::env::current_exe().unwrap();
    let built: PathBuf = here.ancestors().nth(2).unwrap().join("examples").join(example);
    if built.exists() {
        return Command::new(built);
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--package", "hipcl-hip", "--example", example]);
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

/// Runs the command that an example prints, and nothing else, and returns what that says.
fn says_how_to_let_pages_move_and_it_works(example: &str) {
    let first = program(example).env_remove("HSA_XNACK").output().unwrap();
    let text = String::from_utf8_lossy(&first.stdout);
    let mut lines = text.lines();
    let (advice, command) = (lines.next().unwrap(), lines.next().unwrap().trim());
    assert!(advice.starts_with("HSA_XNACK is not 1"), "{text}");
    assert!(command.starts_with("HSA_XNACK=1 "), "{text}");
    assert!(
        lines.next().unwrap().starts_with("platform "),
        "said before the runtime starts:\n{text}"
    );
    let again = Command::new("sh").args(["-c", command]).output().unwrap();
    let text = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success(), "{text}");
    assert!(text.starts_with("platform "), "{text}");
}

#[test]
fn managed_memory_says_how_to_let_pages_move_and_it_works() {
    says_how_to_let_pages_move_and_it_works("03_lazy_managed");
}

#[test]
fn a_mapped_file_says_how_to_let_pages_move_and_it_works() {
    says_how_to_let_pages_move_and_it_works("04_mmap_lazy");
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
    succeeds("04_mmap_lazy", &[&format!("{ring} cold"), &format!("{ring} warm")]);
}
