//! Every function of the header with wrong arguments: null, destroyed, of another type, invented, misaligned, oversized.
//!
//! A C program is generated from the header's declarations, so a new function is tried without a change here. Each call
//! has one wrong argument among right ones. The program exits with an error if a call that must be refused is not, or is
//! refused without a text; a crash speaks for itself.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::declarations::{Function, Parameter, functions};
use crate::toolchain::{C, Linked, available, crate_folder, run, scratch, skip};

/// A value, and what the call must return with it.
struct Wrong {
    value: String,
    expected: &'static str,
}

/// Any status will do, so long as the call returns.
const ANY: &str = "ANY";
const ARGUMENT: &str = "HIPCL_ERROR_ARGUMENT";

fn is_handle(ty: &str) -> bool {
    kind(ty).is_some()
}

/// `bridge` of `hipcl_bridge`, if it is the type of a handle.
fn kind(ty: &str) -> Option<&str> {
    const KINDS: [&str; 11] = [
        "bridge", "queue", "stream", "buffer", "access", "program", "kernel", "blas", "fft", "text", "event",
    ];
    ty.strip_prefix("hipcl_").filter(|kind| KINDS.contains(kind))
}

/// What a pointer that receives a result points to.
fn result(ty: &str) -> Option<&str> {
    let target = ty.strip_suffix('*')?.trim_end();
    let is_pointer = target.ends_with('*');
    let is_input = target.starts_with("const ") && !is_pointer;
    // OpenCL's and HIP's own handles are pointers themselves.
    let is_native = (target.starts_with("struct _cl_") || target == "struct ihipStream_t") && !is_pointer;
    (!is_input && !is_native && target != "void").then_some(target)
}

/// A structure that begins with its size.
fn is_structure(target: &str) -> bool {
    target.starts_with("struct hipcl_")
}

/// An argument with which the call can get as far as it can.
fn right(parameter: &Parameter) -> String {
    let Parameter { ty, name, .. } = parameter;
    if let Some(kind) = kind(ty) {
        let second = matches!(name.as_str(), "c" | "output" | "target");
        return format!("right_{kind}{}", if second { "_2" } else { "" });
    }
    if result(ty).is_some() {
        return format!("({ty})(void *)&results[{}]", slot(name));
    }
    match (ty.as_str(), name.as_str()) {
        ("const char *", "source") => "SOURCE",
        ("const char *", "name") => "\"f\"",
        ("const char *", "options") => "\"\"",
        ("const char *", _) => "\"/bin/false\"",
        ("const struct hipcl_bridge_options *", _) => "&right_options",
        ("const struct hipcl_fft_options *", _) => "&right_fft_options",
        ("const struct hipcl_range *", _) => "&right_range",
        ("const struct hipcl_arg *", _) => "right_arguments",
        ("const struct hipcl_complex *", _) => "&right_number",
        ("struct _cl_context *", _) => "natives.context",
        ("struct _cl_device_id *", _) => "natives.device",
        ("struct _cl_command_queue *", _) => "natives.queue",
        ("struct ihipStream_t *", _) => "natives.stream",
        ("struct _cl_mem *", _) => "NULL",
        ("const void *" | "void *", _) => "data",
        ("size_t", "bytes") => "BYTES",
        ("size_t", "pattern_bytes") => "4",
        ("size_t", "m" | "n" | "k" | "lda" | "ldb" | "ldc") => "2",
        ("size_t", "a_stride" | "b_stride" | "c_stride") => "4",
        ("size_t", "length") => "8",
        ("size_t", "count" | "batch") => "1",
        ("size_t", _) => "0",
        ("int", _) => "9999",
        ("hipcl_svm", _) => "HIPCL_SVM_COARSE",
        ("hipcl_access_mode", _) => "HIPCL_ACCESS_READ",
        ("hipcl_op", _) => "HIPCL_OP_NONE",
        ("hipcl_fill", _) => "HIPCL_FILL_LOWER",
        ("hipcl_fft_direction", _) => "HIPCL_FFT_FORWARD",
        ("hipcl_route" | "hipcl_format" | "hipcl_status", _) => "0",
        (ty, _) if ty.contains("(*)") => "released",
        (ty, name) => panic!("`{ty} {name}`: say what a right value is"),
    }
    .to_owned()
}

/// A place of its own for each result of a call.
fn slot(name: &str) -> usize {
    match name {
        "offset" => 1,
        "bytes" => 2,
        _ => 0,
    }
}

fn wrong(parameter: &Parameter) -> Vec<Wrong> {
    let Parameter { ty, may_be_null, .. } = parameter;
    let wrong = |value: &str, expected| Wrong {
        value: value.to_owned(),
        expected,
    };
    let null = wrong("NULL", if *may_be_null { ANY } else { ARGUMENT });
    if let Some(kind) = kind(ty) {
        let other = if kind == "text" { "bridge" } else { "text" };
        let invented = [
            "1",
            "UINTPTR_MAX",
            "(uintptr_t)data",
            "(uintptr_t)0x8A << 56 | 0xFFFFFF",
        ];
        let mut list = vec![
            wrong("NULL", "HIPCL_ERROR_HANDLE"),
            wrong(&format!("({ty})right_{other}"), "HIPCL_ERROR_HANDLE"),
            wrong(&format!("destroyed_{kind}"), "HIPCL_ERROR_STALE_HANDLE"),
        ];
        list.extend(invented.map(|value| wrong(&format!("({ty})({value})"), "HIPCL_ERROR_HANDLE")));
        return list;
    }
    if result(ty).is_some() || ty.starts_with("const struct ") {
        let misaligned = wrong(&format!("({ty})(void *)(data + 1)"), ARGUMENT);
        let mut list = vec![null, misaligned];
        if ty.contains("hipcl_complex") {
            list.push(wrong(&format!("({ty})(void *)zeros"), ANY));
        } else if ty.starts_with("const struct ") || result(ty).is_some_and(is_structure) {
            // It says that its size is 0.
            list.push(wrong(&format!("({ty})(void *)zeros"), ARGUMENT));
        }
        return list;
    }
    match ty.as_str() {
        "const char *" => vec![null, wrong("\"\\xFF\"", ARGUMENT)],
        "const void *" => vec![null],
        "void *" if parameter.name == "user" => Vec::new(),
        "void *" => vec![null],
        "size_t" => ["0", "1", "SIZE_MAX", "SIZE_MAX / 2", "SIZE_MAX / 8"]
            .map(|value| wrong(value, ANY))
            .into(),
        "int" => vec![wrong("-1", ARGUMENT), wrong("INT_MAX", ANY)],
        "hipcl_status" => ["-1", "INT32_MAX", "INT32_MIN"].map(|value| wrong(value, ANY)).into(),
        ty if ty.starts_with("hipcl_") => ["-1", "INT32_MAX", "INT32_MIN"]
            .map(|value| wrong(value, ARGUMENT))
            .into(),
        // OpenCL's and HIP's own handles: null is all that can be told from a right one.
        ty if ty.starts_with("struct ") => vec![null],
        ty if ty.contains("(*)") => vec![wrong("NULL", ANY)],
        ty => panic!("`{ty}`: say what wrong values are"),
    }
}

fn call(program: &mut String, function: &Function, replaced: Option<(usize, &Wrong)>) {
    let arguments = function.parameters.iter().enumerate().map(|(index, parameter)| {
        let value = match replaced {
            Some((at, wrong)) if at == index => wrong.value.clone(),
            _ => right(parameter),
        };
        format!("({}){value}", parameter.ty)
    });
    let arguments: Vec<String> = arguments.collect();
    let call = format!("{}({})", function.name, arguments.join(", "));
    let expected = replaced.map_or(ANY, |(_, wrong)| wrong.expected);
    let targets = function.parameters.iter().filter_map(|parameter| result(&parameter.ty));
    let fills_structure = targets.into_iter().any(is_structure);
    let _ = match function.returns.as_str() {
        "hipcl_status" => writeln!(
            program,
            "    begin({});\n    end(\"{}\", {:?}, {call}, {expected});",
            if fills_structure { "STRUCTURE" } else { "NO_STRUCTURE" },
            function.name,
            call
        ),
        "const char *" => writeln!(program, "    CHECK({call} != NULL);"),
        _ => writeln!(program, "    (void){call};"),
    };
    // What a call has made does not keep the next one from its objects.
    for parameter in &function.parameters {
        let made = match result(&parameter.ty) {
            Some(target) if is_handle(target) => {
                let kind = kind(target).expect("a handle");
                let end = if kind == "access" { "end" } else { "destroy" };
                format!("if (results[0] != 0) OK(hipcl_{kind}_{end}(({target})results[0]));")
            }
            Some("int") => "if ((int)results[0] > 0) CHECK(close((int)results[0]) == 0);".to_owned(),
            _ => continue,
        };
        let _ = writeln!(program, "    {made}");
    }
}

/// The program's source.
fn generate() -> String {
    let mut program = fs::read_to_string(crate_folder().join("tests/c/arguments.h")).expect("the frame");
    let functions = functions();
    for function in &functions {
        let _ = writeln!(program, "\nstatic void try_{}(void) {{", function.name);
        // A right call would take the objects away from the others.
        let ends = function.name.ends_with("_destroy") || function.name.ends_with("_end");
        if !ends {
            call(&mut program, function, None);
        }
        for (index, parameter) in function.parameters.iter().enumerate() {
            for wrong in wrong(parameter) {
                call(&mut program, function, Some((index, &wrong)));
            }
        }
        program.push_str("}\n");
    }
    program.push_str("\nint main(int count, char **values) {\n    set_up(count, values);\n");
    for function in &functions {
        let _ = writeln!(program, "    try_{}();", function.name);
    }
    program.push_str("    return finish();\n}\n");
    program
}

fn compiled(name: &str, options: &[&str]) -> PathBuf {
    let source = scratch().join(format!("{name}.c"));
    fs::write(&source, generate()).expect("a source");
    // For the frame's own headers.
    let include = format!("-I{}", crate_folder().join("tests/c").display());
    let options = [&[include.as_str()], options].concat();
    C.program_with(&options, &source, name, Linked::Shared)
}

#[test]
fn wrong_arguments_are_refused_and_nothing_crashes() {
    if !available("gcc") {
        return skip("wrong_arguments_are_refused_and_nothing_crashes", "no gcc");
    }
    let program = compiled("wrong_arguments", &[]);
    let text = run(&mut Command::new(program), "wrong_arguments");
    let calls = text.trim().strip_suffix(" calls").and_then(|calls| calls.parse().ok());
    let calls: u32 = calls.unwrap_or_else(|| panic!("{text}"));
    assert!(calls > 500, "{calls} calls");
}

/// Without a bridge: a JIT-compiled OpenCL kernel is nothing for valgrind. Every function sees the same wrong arguments,
/// and all handles but those of texts are wrong ones.
#[test]
fn wrong_arguments_pass_valgrind() {
    if !available("gcc") || !available("valgrind") {
        return skip("wrong_arguments_pass_valgrind", "no gcc or no valgrind");
    }
    let program = compiled("wrong_arguments_valgrind", &[]);
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
        .args(["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"])
        .arg(program)
        .arg("--without-bridge");
    run(&mut command, "wrong_arguments_valgrind");
}

/// With the allocator of AddressSanitizer in the whole process: what the library frees twice, or passes to the C library
/// after it was freed, ends the program. It looks for no leaks, because the program leaves its right objects alive.
#[test]
fn wrong_arguments_pass_address_sanitizer() {
    const SANITIZERS: [&str; 1] = ["-fsanitize=address,undefined"];
    let test = "wrong_arguments_pass_address_sanitizer";
    let empty = scratch().join(format!("{test}.c"));
    fs::write(&empty, "int main(void) { return 0; }\n").expect("a source");
    let probe = Command::new(C.program)
        .args(SANITIZERS)
        .arg(&empty)
        .arg("-o")
        .arg(scratch().join(format!("{test}-probe")))
        .output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skip(test, "no gcc with AddressSanitizer");
    }
    let program = compiled(test, &SANITIZERS);
    let mut command = Command::new(program);
    // An allocator gives no memory for an oversized request, and does not end the program.
    command.env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1");
    run(&mut command, test);
}
