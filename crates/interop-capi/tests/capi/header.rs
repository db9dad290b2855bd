//! The header in each language, and its descriptions.

use std::fs;

use crate::declarations::functions;
use crate::toolchain::{C, CLANG, CLANGPP, CPP, Compiler, available, include, scratch, skip};

/// The header first, alone, and twice; then what OpenCL's and HIP's headers declare, beside it.
const USE: &str = r"
#include <hipcl.h>
#include <hipcl.h>
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct ihipStream_t *hipStream_t;
hipcl_status takes_what_their_headers_declare(cl_context, cl_device_id, cl_command_queue, hipStream_t, cl_mem);
hipcl_status takes_what_their_headers_declare(cl_context c, cl_device_id d, cl_command_queue q, hipStream_t s, cl_mem m) {
    hipcl_bridge bridge = 0;
    hipcl_buffer buffer = 0;
    hipcl_status status = hipcl_bridge_adopt(c, d, q, s, 0, &bridge);
    return status ? status : hipcl_buffer_adopt_cl_mem(bridge, m, HIPCL_ROUTE_AUTO, &buffer);
}
";

fn compiles(compiler: Compiler, test: &str) {
    if !available(compiler.program) {
        return skip(test, &format!("no {}", compiler.program));
    }
    let source = scratch().join(test);
    fs::write(&source, USE).expect("a source");
    let output = compiler.command().arg("-fsyntax-only").arg(&source).output();
    let output = output.expect("the compiler starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

#[test]
fn the_header_is_c11_without_a_warning() {
    compiles(C, "the_header_is_c11_without_a_warning");
}

#[test]
fn the_header_is_cpp17_without_a_warning() {
    compiles(CPP, "the_header_is_cpp17_without_a_warning");
}

#[test]
fn the_header_is_c11_without_a_warning_of_clang() {
    compiles(CLANG, "the_header_is_c11_without_a_warning_of_clang");
}

#[test]
fn the_header_is_cpp17_without_a_warning_of_clang() {
    compiles(CLANGPP, "the_header_is_cpp17_without_a_warning_of_clang");
}

/// Its users choose their warnings, and get those of a header that they include.
#[test]
fn the_cpp_wrapper_has_none_of_the_warnings_that_are_off_by_default() {
    let test = "the_cpp_wrapper_has_none_of_the_warnings_that_are_off_by_default";
    if !available(CPP.program) {
        return skip(test, "no g++");
    }
    let source = scratch().join(format!("{test}.cpp"));
    let text = "#include <hipcl.hpp>\nint main() { return hipcl::Range(1).in_groups_of(1).dimensions == 1; }\n";
    fs::write(&source, text).expect("a source");
    let output = CPP
        .command()
        .args(["-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wold-style-cast"])
        .args(["-Wnon-virtual-dtor", "-Woverloaded-virtual", "-fsyntax-only"])
        .arg(&source)
        .output();
    let output = output.expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A C function that the wrapper of C++ leaves out would be missed by its users.
#[test]
fn the_cpp_wrapper_calls_every_function() {
    let wrapper = fs::read_to_string(include().join("hipcl.hpp")).expect("the wrapper");
    // What an allocation by route includes, and what C++ code calls as it is.
    let left_out = ["hipcl_buffer_create", "hipcl_status_name", "hipcl_version"];
    let missing = functions().into_iter().map(|function| function.name).filter(|name| {
        let is_called = [format!("{name}("), format!("{name}>"), format!("{name};")];
        !left_out.contains(&name.as_str()) && !is_called.iter().any(|call| wrapper.contains(call))
    });
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn every_function_describes_its_parameters_and_errors() {
    let functions = functions();
    assert!(functions.len() > 40, "{} functions", functions.len());
    for function in functions {
        assert!(!function.text.trim().is_empty(), "{} has no description", function.name);
        // One object alone is what the function's name says.
        let named = function.parameters.len() > 1;
        for parameter in function.parameters {
            let described = function.text.contains(&format!("@param {} ", parameter.name));
            assert!(
                described || !named,
                "{} does not describe `{}`",
                function.name,
                parameter.name
            );
        }
    }
}
