//! Kernels under AddressSanitizer. Each case has a process of its own, because the sanitizer has to be there from its
//! start.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::*;
use hip_sys::hiprtcResult;

/// One value for each thread; the last argument moves the access.
const SOURCE: &str = r#"
extern "C" __global__ void fill(int* out, int shift) {
    out[threadIdx.x + shift] = 7; // line 3
}
extern "C" __global__ void through_shared(int* out, int shift) {
    extern __shared__ int tile[];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x + shift]; // line 9
}"#;

/// GCC's runtime, if the machine's compiler has it.
fn runtime() -> Option<String> {
    let output = Command::new("c++").arg("-print-file-name=libasan.so").output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    Path::new(&path).is_absolute().then_some(path)
}

fn checked(case: &str, extra: &[(&str, &str)]) -> Option<Output> {
    let Some(runtime) = runtime() else {
        skip(case, "the C++ compiler has no libasan.so");
        return None;
    };
    let mut environment = vec![
        ("HIP_HOST_SANITIZE", "address"),
        ("LD_PRELOAD", &runtime),
        ("ASAN_OPTIONS", "detect_leaks=0"),
        ("HIPCL_CXX", "c++"),
    ];
    environment.extend_from_slice(extra);
    Some(run_child(case, &environment))
}

/// Runs `kernel` over 10 integers with 10 threads and gives back what it wrote.
fn run(kernel: &str, shared: u32, shift: i32) -> Vec<i32> {
    let out = malloc(40);
    let kernel = function(load(&compile(SOURCE)), kernel);
    let mut arguments = params![out, shift];
    let stream = std::ptr::null_mut();
    assert_eq!(launch(kernel, [1; 3], [10, 1, 1], shared, stream, &mut arguments), OK);
    download(out, 10)
}

fn assert_reported(output: &Output, line: u32) {
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{report}");
    assert!(report.contains("AddressSanitizer"), "{report}");
    assert!(report.contains(&format!("user.hip:{line}")), "{report}");
}

#[test]
fn a_kernel_within_bounds_runs_as_ever() {
    const CASE: &str = "a_kernel_within_bounds_runs_as_ever";
    if is_child() {
        assert_eq!(run("fill", 0, 0), [7; 10]);
        // more shared memory first, so that the second launch finds a larger array than its own
        assert_eq!(run("through_shared", 400, 0)[9], 9);
        assert_eq!(run("through_shared", 40, 0)[9], 9);
        return;
    }
    if let Some(output) = checked(CASE, &[]) {
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn one_element_too_far_is_reported_with_its_line() {
    const CASE: &str = "one_element_too_far_is_reported_with_its_line";
    if is_child() {
        // element 10 of 10: within the padding, where no guard page is
        let shift = if std::env::var_os("BEFORE").is_some() { -1 } else { 1 };
        run("fill", 0, shift);
        return;
    }
    for extra in [&[][..], &[("BEFORE", "1")]] {
        if let Some(output) = checked(CASE, extra) {
            assert_reported(&output, 3);
        }
    }
}

#[test]
fn dynamic_shared_memory_ends_where_the_launch_says() {
    const CASE: &str = "dynamic_shared_memory_ends_where_the_launch_says";
    if is_child() {
        run("through_shared", 400, 1);
        run("through_shared", 40, 1);
        return;
    }
    if let Some(output) = checked(CASE, &[]) {
        assert_reported(&output, 9);
    }
}

#[test]
fn freed_memory_is_reported() {
    const CASE: &str = "freed_memory_is_reported";
    if is_child() {
        let out = malloc(40);
        ok!(hipFree(out));
        let kernel = function(load(&compile(SOURCE)), "fill");
        let (stream, shift) = (std::ptr::null_mut(), 0i32);
        let mut arguments = params![out, shift];
        let _ = launch(kernel, [1; 3], [10, 1, 1], 0, stream, &mut arguments);
        ok!(hipDeviceSynchronize());
        return;
    }
    if let Some(output) = checked(CASE, &[]) {
        assert_reported(&output, 3);
    }
}

#[test]
fn without_its_runtime_or_with_another_name_the_log_says_what_to_do() {
    const CASE: &str = "without_its_runtime_or_with_another_name_the_log_says_what_to_do";
    if is_child() {
        let (result, log, _) = compile_with(SOURCE, &[], &[]);
        assert_eq!(result, hiprtcResult::HIPRTC_ERROR_COMPILATION);
        print!("LOG {log}");
        return;
    }
    for (value, expected) in [
        ("address", &["LD_PRELOAD=", "asan"][..]),
        ("thread", &["`thread`", "`address`"]),
    ] {
        let output = run_child(CASE, &[("HIP_HOST_SANITIZE", value), ("LD_PRELOAD", "")]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let log = text.split("LOG ").nth(1).unwrap().lines().next().unwrap();
        assert!(expected.iter().all(|part| log.contains(part)), "{log}");
    }
}
