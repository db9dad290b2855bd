//! C programs that use the library as its users do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::toolchain::{
    C, C_COMPILERS, CLANG, CLANGPP, CPP, CPP_COMPILERS, CPP23, Compiler, Linked, available, crate_folder, on_platform,
    run, scratch, skip,
};

fn source(name: &str) -> PathBuf {
    crate_folder().join("tests/c").join(name)
}

/// An example of the project, such as `c/covariance.c`.
fn example(name: &str) -> PathBuf {
    crate_folder().join("../../examples").join(name)
}

/// Compiles and runs a program, which checks itself; none without the compiler, or if it says that it cannot run here.
fn tried(compiler: Compiler, source: &Path, test: &str, linked: Linked) -> Option<String> {
    if !available(compiler.program) {
        skip(test, &format!("no {}", compiler.program));
        return None;
    }
    let program = compiler.program(source, test, linked);
    let text = run(&mut Command::new(program), test);
    if let Some(reason) = text.trim().strip_prefix("skipped: ") {
        skip(test, reason);
        return None;
    }
    Some(text)
}

macro_rules! programs {
    ($($test:ident: $source:literal;)*) => {$(
        #[test]
        fn $test() {
            tried(C, &source($source), stringify!($test), Linked::Shared);
        }
    )*};
}
programs! {
    handles_keep_their_rules_across_threads_and_in_every_order: "objects.c";
    the_callers_own_objects_and_memory_of_every_origin_are_taken: "foreign.c";
    products_inverses_transforms_and_kernels_are_right: "compute.c";
    what_fails_while_an_object_is_destroyed_is_told_once: "deferred.c";
    the_device_of_a_stream_is_taken_where_no_number_is_given: "devices.c";
    parts_of_buffers_are_transferred_filled_and_copied_on_every_route: "transfers.c";
}

#[test]
fn the_example_is_right_and_copies_no_data_set() {
    for compiler in C_COMPILERS {
        let test = format!("the_example_is_right_and_copies_no_data_set-{}", compiler.program);
        if let Some(text) = tried(compiler, &example("c/covariance.c"), &test, Linked::Shared) {
            assert!(text.contains("copies of the data set 0 bytes"), "{text}");
        }
    }
}

#[test]
fn the_example_in_cpp_is_right_and_copies_no_data_set() {
    for compiler in CPP_COMPILERS {
        let test = format!(
            "the_example_in_cpp_is_right_and_copies_no_data_set-{}",
            compiler.program
        );
        if let Some(text) = tried(compiler, &example("cpp/covariance.cpp"), &test, Linked::Shared) {
            assert!(text.contains("copies of the data set 0 bytes"), "{text}");
        }
    }
}

#[test]
fn a_library_that_knows_cl_mem_only_works_on_shared_memory() {
    let in_c = C_COMPILERS.map(|compiler| (compiler, "c/clfft.c"));
    let in_cpp = CPP_COMPILERS.map(|compiler| (compiler, "cpp/clfft.cpp"));
    for (compiler, name) in in_c.into_iter().chain(in_cpp) {
        let test = format!("clfft-{}", compiler.program);
        if let Some(text) = tried(compiler, &example(name), &test, Linked::Shared)
            && text.contains("skipped")
        {
            skip(&test, text.trim());
        }
    }
}

/// Which of them run with clang is above; the others are compiled.
#[test]
fn every_program_and_example_is_without_a_warning_of_clang() {
    let test = "every_program_and_example_is_without_a_warning_of_clang";
    let mut tried = 0;
    for folder in [crate_folder().join("tests/c"), example("c"), example("cpp")] {
        for entry in fs::read_dir(&folder).expect("the folder") {
            let path = entry.expect("an entry").path();
            let compiler = match path.extension().and_then(|extension| extension.to_str()) {
                Some("c") => CLANG,
                Some("cpp") => CLANGPP,
                _ => continue,
            };
            if !available(compiler.program) {
                return skip(test, &format!("no {}", compiler.program));
            }
            let output = compiler
                .command()
                .args(["-D_GNU_SOURCE", "-fsyntax-only"])
                .arg(&path)
                .output();
            let output = output.expect("the compiler starts");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {errors}", path.display());
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried} programs");
}

#[test]
fn the_example_runs_with_the_static_library() {
    let test = "the_example_runs_with_the_static_library";
    for compiler in C_COMPILERS {
        let name = format!("{test}-{}", compiler.program);
        tried(compiler, &example("c/covariance.c"), &name, Linked::Static);
    }
}

#[test]
fn a_cpp_program_uses_the_header() {
    tried(CPP, &source("use.cpp"), "a_cpp_program_uses_the_header", Linked::Shared);
}

#[test]
fn an_exception_that_leaves_a_callback_ends_the_process() {
    for compiler in CPP_COMPILERS {
        let test = format!(
            "an_exception_that_leaves_a_callback_ends_the_process-{}",
            compiler.program
        );
        tried(compiler, &source("throws.cpp"), &test, Linked::Shared);
    }
}

#[test]
fn cpp_objects_own_their_handles_and_throw() {
    tried(
        CPP,
        &source("wrapper.cpp"),
        "cpp_objects_own_their_handles_and_throw",
        Linked::Shared,
    );
}

/// Whether the compiler has `std::expected`, which came with GCC 12.
fn has_expected(test: &str) -> bool {
    let probe = "#include <expected>\n#ifndef __cpp_lib_expected\n#error none\n#endif\n";
    let probed = scratch().join(format!("{test}-probe.cpp"));
    fs::write(&probed, probe).expect("a source");
    Command::new(CPP23.program)
        .args([CPP23.standard, "-fsyntax-only"])
        .arg(&probed)
        .output()
        .is_ok_and(|output| output.status.success())
}

#[test]
fn cpp_objects_return_errors_where_nothing_is_thrown() {
    let test = "cpp_objects_return_errors_where_nothing_is_thrown";
    if !has_expected(test) {
        return skip(test, "g++ has no std::expected");
    }
    let own = scratch().join(format!("{test}.cpp"));
    let text = fs::read_to_string(source("wrapper.cpp")).expect("the program");
    fs::write(&own, format!("#define HIPCL_EXPECTED\n{text}")).expect("a source");
    tried(CPP23, &own, test, Linked::Shared);
}

#[test]
fn files_that_throw_and_files_that_do_not_make_one_program() {
    let test = "files_that_throw_and_files_that_do_not_make_one_program";
    if !has_expected(test) {
        return skip(test, "g++ has no std::expected");
    }
    let other = scratch().join(format!("{test}-other.cpp"));
    let text = "#define HIPCL_EXPECTED\n#include \"hipcl.hpp\"\n\
        bool refused() { auto made = hipcl::Bridge().queue(); return !made && made.error().status() == HIPCL_ERROR_HANDLE; }\n";
    fs::write(&other, text).expect("a source");
    let own = scratch().join(format!("{test}.cpp"));
    let text = "#include \"hipcl.hpp\"\nbool refused();\n\
        int main() {\n  if (!refused()) return 1;\n  try {\n    auto made = hipcl::Bridge().queue();\n    return 2;\n  } catch \
        (const hipcl::Error &error) {\n    return error.status() == HIPCL_ERROR_HANDLE ? 0 : 3;\n  }\n}\n";
    fs::write(&own, text).expect("a source");
    let other = other.to_str().expect("a text");
    let program = CPP23.program_with(&[other], &own, test, Linked::Shared);
    run(&mut Command::new(program), test);
}

/// What the header says of the exit: nothing need be destroyed once its work is done, and no thread of the library ends the
/// process otherwise.
#[test]
fn a_process_may_end_with_its_objects_alive() {
    let test = "a_process_may_end_with_its_objects_alive";
    if !available(C.program) {
        return skip(test, "no gcc");
    }
    let program = C.program(&source("exit.c"), test, Linked::Shared);
    for way in ["return", "exit", "_exit", "thread"] {
        let output = on_platform(Command::new(&program).arg(way)).output();
        let output = output.expect("a program that was just compiled starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{way}: {}\n{errors}", output.status);
    }
}

/// The command's part is played by scripts: what it is asked, and how each of its ends is told.
#[test]
fn the_doctor_is_asked_and_its_end_is_told() {
    let test = "the_doctor_is_asked_and_its_end_is_told";
    let folder = scratch().join("doctor");
    fs::create_dir_all(&folder).expect("a folder");
    let script = |name: &str, body: &str| {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    };
    script("works", "echo \"asked: $*\"");
    script("no-route", "echo \"asked: $*\"; exit 1");
    script("fails", "echo 'error: planted' >&2; exit 2");
    script("dies", "kill -9 $$");
    if !available(C.program) {
        return skip(test, "no gcc");
    }
    let program = C.program(&source("doctor.c"), test, Linked::Shared);
    run(Command::new(program).arg(&folder), test);
}
