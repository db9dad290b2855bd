//! `hipcl doctor` before a ROCm that cannot be used: what is wrong with it is a finding, and the rest of the report is
//! there.

mod common;

use std::path::Path;
use std::process::Command;

use common::Run;
use serde_json::Value;

/// Compiles a HIP library that answers these two calls.
fn hip(folder: &Path, init: &str, count: &str) -> std::path::PathBuf {
    let (source, library) = (folder.join("hip.c"), folder.join("libamdhip64.so.6"));
    let text = format!(
        "#include <stdlib.h>\n\
         int hipInit(unsigned flags) {{ (void)flags; {init} }}\n\
         int hipGetDeviceCount(int *count) {{ *count = 0; {count} }}\n"
    );
    std::fs::write(&source, text).expect("a file");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(compiler)
        .args(["-shared", "-fPIC", "-Wl,-soname,libamdhip64.so.6", "-o"])
        .args([&library, &source])
        .status()
        .expect("a C compiler");
    assert!(status.success());
    library
}

/// `hipcl doctor` on AMD's platform with what `prepare` puts in its way.
fn doctor(more: &[&str], prepare: impl FnOnce(&mut common::Prepared)) -> (Run, Value) {
    let all = [&["doctor", "--json", "FOLDER/d.json"], more].concat();
    let run = Run::with(&all, |run| {
        run.command.env_remove("HIP_PLATFORM");
        prepare(run);
    });
    let findings = run.json("d.json");
    (run, findings)
}

/// The parts that need no HIP.
#[track_caller]
fn assert_whole(run: &Run, findings: &Value) {
    assert_eq!(run.status(), Some(1), "{}{}", run.stdout(), run.stderr());
    assert_eq!(findings["platform"], "amd");
    assert_eq!(findings["healthy"], false);
    let checks = findings["checks"].as_array().expect("a list");
    for name in ["kernel", "cards", "/dev/kfd", "KFD topology", "CONFIG_HSA_AMD", "IOMMU"] {
        let found = checks.iter().any(|check| check["name"] == name);
        assert!(
            found || name == "KFD topology" && checks.iter().any(|check| check["name"] == "large BAR"),
            "{name} in {checks:#?}"
        );
    }
    let opencl = |key: &str| !findings[key].as_array().expect("a list").is_empty();
    assert!(opencl("opencl_devices") || opencl("opencl_tried"), "{findings:#}");
    for part in ["platform   amd", "system", "shared memory", "advice: ", "not healthy"] {
        assert!(run.stdout().contains(part), "{part} in {}", run.stdout());
    }
}

fn advice(findings: &Value) -> Vec<&str> {
    let advice = findings["advice"].as_array().expect("a list");
    advice.iter().filter_map(Value::as_str).collect()
}

#[test]
fn a_missing_hip_library_leaves_the_rest_of_the_report() {
    let (run, findings) = doctor(&[], |run| {
        run.env("HIPCL_PLATFORM", "amd");
        run.env("HIPCL_HIP_LIBRARY", "/nonexistent/libamdhip64.so.6");
    });
    assert_whole(&run, &findings);
    assert_eq!(findings["platform_why"], "requested by HIPCL_PLATFORM");
    assert_eq!(findings["platform_failure"], "its HIP library cannot be loaded");
    let hip = &findings["libraries"][0];
    assert_eq!((&hip["name"], &hip["usable"]), (&"HIP".into(), &false.into()));
    let place = hip["place"].as_str().expect("a text");
    assert!(place.contains("/nonexistent/libamdhip64.so.6"), "{place}");
    let said = advice(&findings);
    assert!(said.iter().any(|line| line.contains("set ROCM_PATH")), "{said:?}");
    // the list of places is told once
    let count = run.stdout().matches("/nonexistent/libamdhip64.so.6").count();
    assert_eq!(count, 1, "{}", run.stdout());
}

#[test]
fn a_hip_without_a_device_is_told_with_the_option_that_asked_for_it() {
    let (run, findings) = doctor(&["--platform", "amd"], |run| {
        let library = hip(&run.folder, "return 0;", "return 100;");
        run.env("HIPCL_PLATFORM", "host");
        run.env("HIPCL_HIP_LIBRARY", library);
    });
    assert_whole(&run, &findings);
    assert_eq!(findings["platform_why"], "requested by --platform");
    let failure = findings["platform_failure"].as_str().expect("a reason");
    assert!(
        failure.contains("hipGetDeviceCount") && failure.contains("--platform host"),
        "{failure}"
    );
    assert!(!failure.contains("HIPCL_PLATFORM"), "{failure}");
    assert!(advice(&findings).contains(&failure));
    assert_eq!(findings["libraries"][0]["usable"], true);
    assert_eq!(findings["libraries"][1]["usable"], false, "HIPRTC");
}

#[test]
fn a_hip_that_crashes_when_it_starts_keeps_the_platforms_name() {
    let (run, findings) = doctor(&[], |run| {
        let library = hip(&run.folder, "abort();", "return 0;");
        run.env("HIPCL_PLATFORM", "amd");
        run.env("HIPCL_HIP_LIBRARY", library);
    });
    assert_whole(&run, &findings);
    let said = advice(&findings).join("\n");
    assert!(said.contains("died by SIGABRT in the probe of hip"), "{said}");
    assert!(said.contains("HIPCL_HIP_LIBRARY"), "{said}");
}

#[test]
fn an_opencl_library_that_crashes_is_told_with_the_variable_that_named_it() {
    let (_, findings) = doctor(&["--platform", "amd"], |run| {
        let source = run.folder.join("opencl.c");
        let library = run.folder.join("libOpenCL.so.1");
        std::fs::write(
            &source,
            "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }\n",
        )
        .expect("a file");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let status = Command::new(compiler)
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status()
            .expect("a C compiler");
        assert!(status.success());
        run.env("HIPCL_HIP_LIBRARY", "/nonexistent/libamdhip64.so.6");
        run.env("HIPCL_OPENCL", library);
    });
    let said = advice(&findings);
    let line = said.iter().find(|line| line.contains("probe of opencl"));
    let line = line.unwrap_or_else(|| panic!("{said:?}"));
    assert!(
        line.contains("unset HIPCL_OPENCL") && line.contains("libOpenCL.so.1"),
        "{line}"
    );
}
