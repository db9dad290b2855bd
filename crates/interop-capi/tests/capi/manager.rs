//! `hipcl/manager_opencl.hpp`, the classes of ManagerOpenCL, and the snippets of the book's guide to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::toolchain::{CLANGPP, CPP, CPP_COMPILERS, Compiler, Linked, available, crate_folder, run, scratch, skip};

/// Beyond the strictest warnings of the other programs.
const CONVERSION: &str = "-Wconversion";

fn example(name: &str) -> PathBuf {
    crate_folder().join("../../examples/cpp").join(name)
}

/// Compiles and runs a program, which checks itself; none without the compiler.
fn tried_by(compiler: Compiler, source: &Path, options: &[&str], test: &str) -> Option<String> {
    if !available(compiler.program) {
        skip(test, &format!("no {}", compiler.program));
        return None;
    }
    let options = [&[CONVERSION], options].concat();
    let program = compiler.program_with(&options, source, test, Linked::Shared);
    Some(run(&mut Command::new(program), test))
}

fn tried(source: &Path, options: &[&str], test: &str) -> Option<String> {
    tried_by(CPP, source, options, test)
}

/// Alone, and with OpenCL's own header where the machine has it: the header includes that itself.
fn compiles(compiler: Compiler, test: &str) {
    if !available(compiler.program) {
        return skip(test, &format!("no {}", compiler.program));
    }
    let source = scratch().join(test);
    fs::write(
        &source,
        "#include <hipcl/manager_opencl.hpp>\n#include <hipcl/manager_opencl.hpp>\n",
    )
    .expect("a source");
    let output = compiler
        .command()
        .args([CONVERSION, "-fsyntax-only"])
        .arg(&source)
        .output();
    let output = output.expect("the compiler starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

#[test]
fn the_manager_header_is_cpp17_without_a_warning() {
    compiles(CPP, "the_manager_header_is_cpp17_without_a_warning");
}

#[test]
fn the_manager_header_is_cpp17_without_a_warning_of_clang() {
    compiles(CLANGPP, "the_manager_header_is_cpp17_without_a_warning_of_clang");
}

fn tried_by_all(program: &str, test: &str) {
    for compiler in CPP_COMPILERS {
        let name = format!("{test}-{}", compiler.program);
        tried_by(compiler, &crate_folder().join("tests/c").join(program), &[], &name);
    }
}

#[test]
fn the_manager_keeps_its_rules_with_other_owners_contexts_and_threads() {
    let test = "the_manager_keeps_its_rules_with_other_owners_contexts_and_threads";
    tried_by_all("manager.cpp", test);
}

#[test]
fn commands_on_common_bytes_run_in_the_order_of_the_calls() {
    tried_by_all("ordering.cpp", "commands_on_common_bytes_run_in_the_order_of_the_calls");
}

/// The lines of a program that are in both of its forms, those of the old form only, and those of the new form only.
struct Forms {
    both: Vec<String>,
    old: Vec<String>,
    new: Vec<String>,
}

fn forms(source: &str) -> Forms {
    let mut forms = Forms {
        both: Vec::new(),
        old: Vec::new(),
        new: Vec::new(),
    };
    let mut block = None;
    for line in source.lines() {
        match line.trim() {
            "#ifdef WITH_HIP" => block = Some(true),
            "#else" if block.is_some() => block = Some(false),
            "#endif" if block.is_some() => block = None,
            "" => {}
            code if code.starts_with("//") => {}
            code => match block {
                None => forms.both.push(code.to_owned()),
                Some(true) => forms.new.push(code.to_owned()),
                Some(false) => forms.old.push(code.to_owned()),
            },
        }
    }
    forms
}

#[test]
fn a_program_of_the_old_classes_is_right_and_copies_no_data_set() {
    let test = "a_program_of_the_old_classes_is_right_and_copies_no_data_set";
    let source = example("manager_opencl.cpp");
    let forms = forms(&fs::read_to_string(&source).expect("the example"));
    let lines = forms.both.len() + forms.old.len();
    assert!(lines >= 300, "{lines} lines of code");
    // Of hipcl it sees the header's name only.
    let own = forms
        .both
        .iter()
        .chain(&forms.old)
        .filter(|line| line.contains("hipcl") || line.contains("HIPCL"));
    assert_eq!(own.collect::<Vec<_>>(), ["#include <hipcl/manager_opencl.hpp>"]);
    if let Some(text) = tried(&source, &[], test) {
        assert!(text.contains("copies of the data set 0 bytes"), "{text}");
    }
}

#[test]
fn the_same_program_uses_rocblas_and_rocsolver_after_ten_changed_lines() {
    let test = "the_same_program_uses_rocblas_and_rocsolver_after_ten_changed_lines";
    let source = example("manager_opencl.cpp");
    let forms = forms(&fs::read_to_string(&source).expect("the example"));
    let changed = forms.old.len().max(forms.new.len());
    assert!((1..=10).contains(&changed), "{changed} changed lines");
    for call in ["cgemm", "cinverse_hermitian"] {
        assert!(forms.new.iter().any(|line| line.contains(call)), "no {call}");
    }
    if let Some(text) = tried(&source, &["-DWITH_HIP"], test) {
        assert!(text.contains("copies of the data set 0 bytes"), "{text}");
    }
}

#[test]
fn the_guide_from_manager_opencl_is_right() {
    tried(&example("moving.cpp"), &[], "the_guide_from_manager_opencl_is_right");
}

#[test]
fn what_the_guide_says_about_the_zero_copy_note_is_right() {
    let test = "what_the_guide_says_about_the_zero_copy_note_is_right";
    tried(&example("zero_copy_note.cpp"), &[], test);
}
