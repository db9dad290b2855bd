//! `hipcl doctor` before drivers that crash, hang, lie and chatter: an OpenCL library with one fault stands in front of
//! the real one.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Run, ready_on_host};
use serde_json::Value;

/// Compiles the planted library in front of the OpenCL library that the tests run on.
fn library(folder: &Path) -> PathBuf {
    let manager = clmgr::Manager::load().expect("OpenCL");
    let real = manager.libraries()[0].path.clone();
    let (source, planted) = (folder.join("planted.c"), folder.join("libplanted.so"));
    std::fs::write(&source, include_str!("planted/opencl.c")).expect("a file");
    compile(&source, &planted, |cc| {
        match real.parent().filter(|folder| folder.is_dir()) {
            Some(folder) => {
                let mut path = std::ffi::OsString::from("-Wl,-rpath,");
                path.push(std::fs::canonicalize(folder).expect("the library's folder"));
                cc.arg(&real).arg(path);
            }
            // a name that the linker finds by itself
            None => {
                cc.arg(format!("-l:{}", real.display()));
            }
        }
    });
    planted
}

/// Makes a library of C code; `with` adds what to link.
fn compile(source: &Path, library: &Path, with: impl FnOnce(&mut Command)) {
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-shared", "-fPIC", "-O1", "-Wl,--no-as-needed", "-o"])
        .arg(library)
        .arg(source);
    with(&mut cc);
    let compiled = cc.output().expect("a C compiler");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
}

/// `hipcl doctor` on these routes, with this fault.
fn doctor(plant: &str, arguments: &[&str]) -> Option<(Run, Value)> {
    if !ready_on_host(plant) {
        return None;
    }
    let mut all = vec!["doctor", "--platform", "host", "--json", "FOLDER/d.json"];
    all.extend(arguments);
    let run = Run::with(&all, |run| {
        let library = library(&run.folder);
        run.env("HIPCL_OPENCL", library);
        run.env("PLANT", plant);
    });
    let findings = run.json("d.json");
    Some((run, findings))
}

fn route_of<'a>(findings: &'a Value, name: &str) -> &'a Value {
    let routes = findings["routes"].as_array().expect("a list");
    let found = routes.iter().find(|route| route["route"] == name);
    found.expect("the route")
}

#[test]
fn a_crash_on_one_route_is_a_finding_and_the_next_route_is_tried() {
    let routes = ["--route", "svm-coarse", "--route", "host-pinned"];
    let Some((run, findings)) = doctor("crash", &routes) else {
        return;
    };
    assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
    let died = &route_of(&findings, "svm-coarse")["died"];
    assert_eq!(died["how"], "died by SIGSEGV");
    assert_eq!(died["step"], "allocating");
    assert_eq!(died["stderr"][0], "planted: about to crash");
    assert_eq!(route_of(&findings, "svm-coarse")["works"], false);
    assert_eq!(route_of(&findings, "host-pinned")["works"], true);
    let text = run.stdout();
    assert!(
        text.contains("advice: route svm-coarse: died by SIGSEGV in the probe of svm-coarse"),
        "{text}"
    );
    assert!(text.contains("planted: about to crash"), "{text}");
}

#[test]
fn a_hung_driver_is_killed_and_told_of() {
    let Some((run, findings)) = doctor("hang", &["--route", "svm-coarse", "--limit", "5"]) else {
        return;
    };
    assert_eq!(run.status(), Some(1), "{}{}", run.stdout(), run.stderr());
    let state = route_of(&findings, "svm-coarse");
    assert_eq!(state["died"]["how"], "hung, and was killed after 5 s");
    assert_eq!(findings["healthy"], false);
}

#[test]
fn a_process_that_ends_without_an_answer_has_not_proven_its_route() {
    let Some((_, findings)) = doctor("leave", &["--route", "svm-coarse"]) else {
        return;
    };
    let state = route_of(&findings, "svm-coarse");
    assert_eq!(state["works"], false);
    assert_eq!(state["died"]["how"], "ended without an answer");
}

#[test]
fn a_wrong_pattern_names_its_direction() {
    let Some((run, findings)) = doctor("short", &["--route", "svm-coarse"]) else {
        return;
    };
    let state = route_of(&findings, "svm-coarse");
    assert_eq!(state["works"], false);
    assert_eq!(state["impossible"], false);
    let crossing = &state["crossings"][0];
    assert_eq!(crossing["direction"], "OpenCL to HIP");
    assert_eq!(crossing["agrees"], false);
    let reason = crossing["reason"].as_str().expect("a reason");
    assert!(reason.contains("65535 of 65536"), "{reason}");
    assert!(state["figures"].is_null(), "{state}");
    let text = run.stdout();
    assert!(text.contains("advice: route svm-coarse"), "{text}");
}

fn row<'a>(findings: &'a Value, table: &str, key: &str, name: &str) -> &'a Value {
    let rows = findings[table].as_array().expect("a list");
    let found = rows.iter().find(|row| row[key] == name);
    found.unwrap_or_else(|| panic!("{name} in {rows:#?}"))
}

#[test]
fn a_hand_off_that_deadlocks_is_a_finding_and_costs_no_other_row_its_figures() {
    let Some((run, findings)) = doctor("deadlock-in-callback", &["--limit", "15"]) else {
        return;
    };
    assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
    let callback = row(&findings, "grades", "grade", "callback");
    assert_eq!(callback["works"], false);
    assert_eq!(callback["died"]["how"], "hung, and was killed after 15 s");
    assert_eq!(callback["died"]["step"], "timing the hand-off");
    assert!(
        run.stdout().contains("advice: hand-off callback: hung"),
        "{}",
        run.stdout()
    );
    let host = row(&findings, "grades", "grade", "host");
    assert_eq!(host["works"], true, "{host:#}");
    for route in ["svm-coarse", "host-pinned"] {
        let state = route_of(&findings, route);
        assert_eq!(state["works"], true, "{state:#}");
        assert!(state["figures"].is_object(), "{state:#}");
    }
}

#[test]
fn a_hand_off_whose_callback_never_comes_says_so() {
    let Some((_, findings)) = doctor("no-callback", &[]) else {
        return;
    };
    let callback = row(&findings, "grades", "grade", "callback");
    assert_eq!(callback["works"], false);
    let reason = callback["reason"].as_str().expect("a reason");
    assert!(reason.contains("did not hand over"), "{reason}");
    assert!(callback["died"].is_null(), "{callback:#}");
    // the host waits by itself
    assert_eq!(row(&findings, "grades", "grade", "host")["works"], true);
}

#[test]
fn a_kernel_that_copies_nothing_gives_no_rate() {
    let Some((run, findings)) = doctor("short-copy", &[]) else {
        return;
    };
    let buffer = row(&findings, "allocations", "allocation", "cl-buffer");
    assert!(buffer["opencl_gb_s"].is_null(), "{buffer:#}");
    let missing = buffer["opencl_missing"].as_str().expect("a reason");
    assert!(missing.contains("words written by OpenCL"), "{missing}");
    assert!(buffer["hip_gb_s"].is_number(), "{buffer:#}");
    assert!(run.stdout().contains("(1) OpenCL: "), "{}", run.stdout());
}

#[test]
fn a_library_that_aborts_when_it_is_loaded_leaves_the_rest_of_the_findings() {
    let Some((run, findings)) = doctor("abort-on-load", &[]) else {
        return;
    };
    assert_eq!(run.status(), Some(1), "{}{}", run.stdout(), run.stderr());
    assert_eq!(findings["platform"], "host");
    assert_eq!(findings["hip_devices"][0]["arch"], "host");
    let tried = findings["opencl_tried"][0]["reason"].as_str();
    let tried = tried.expect("a reason");
    assert!(tried.contains("died by SIGABRT"), "{tried}");
    assert!(tried.contains("planted: no such firmware"), "{tried}");
    // each route has its reason, and no process was spent on it
    let reason = &route_of(&findings, "svm-coarse")["reason"];
    assert_eq!(*reason, "not tried: there is no OpenCL device");
}

#[test]
fn what_a_library_prints_is_not_taken_for_an_answer() {
    let Some((run, findings)) = doctor("noise", &["--route", "svm-coarse"]) else {
        return;
    };
    assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
    assert_eq!(route_of(&findings, "svm-coarse")["works"], true);
    assert!(!run.stdout().contains("from a library"), "{}", run.stdout());
}

#[test]
fn a_crash_at_the_end_of_a_process_leaves_its_answer() {
    let Some((run, findings)) = doctor("crash-on-exit", &["--route", "svm-coarse"]) else {
        return;
    };
    assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
    let state = route_of(&findings, "svm-coarse");
    assert_eq!(state["works"], true);
    assert_eq!(state["died"]["how"], "died by SIGBUS");
    let text = run.stdout();
    assert!(text.contains("the probe answered, but then died by"), "{text}");
}

#[test]
fn a_crash_on_a_buffer_object_of_hips_memory_is_a_finding_and_no_proof() {
    let routes = ["--route", "hip-pointer"];
    let Some((run, findings)) = doctor("crash-in-place", &routes) else {
        return;
    };
    assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
    assert_eq!(route_of(&findings, "hip-pointer")["works"], true);
    let host_ptr = &findings["host_ptr"];
    assert_eq!(host_ptr["proof"], Value::Null);
    assert_eq!(host_ptr["died"]["how"], "died by SIGSEGV");
    assert_eq!(host_ptr["died"]["step"], "creating a buffer object over HIP memory");
    let text = run.stdout();
    assert!(
        text.contains("no HIP memory as a cl_mem: died by SIGSEGV in the probe of host-ptr"),
        "{text}"
    );
}

#[test]
fn a_proof_of_a_process_that_crashes_at_its_exit_is_none() {
    let Some((_, findings)) = doctor("crash-on-exit", &["--route", "hip-pointer"]) else {
        return;
    };
    let host_ptr = &findings["host_ptr"];
    assert_eq!(host_ptr["proof"], Value::Null, "{host_ptr}");
    assert_eq!(host_ptr["died"]["how"], "died by SIGBUS");
}

/// A library with the emulator's name stands for the emulator.
#[test]
fn under_an_emulator_everything_is_proven_and_nothing_measured() {
    if !ready_on_host("under_an_emulator_everything_is_proven_and_nothing_measured") {
        return;
    }
    let run = Run::with(&["doctor", "--platform", "host", "--json", "FOLDER/d.json"], |run| {
        let (source, emulator) = (run.folder.join("empty.c"), run.folder.join("librocjitsu.so"));
        std::fs::write(&source, "int nothing;\n").expect("a file");
        compile(&source, &emulator, |_| {});
        run.env("LD_PRELOAD", emulator);
    });
    let findings = run.json("d.json");
    assert_eq!(findings["emulator"], "rocjitsu", "{}", run.stdout());
    assert_eq!(findings["healthy"], true, "{}", run.stdout());
    for table in ["routes", "grades", "carriers", "allocations"] {
        for row in findings[table].as_array().expect("a list") {
            for figure in ["figures", "opencl_gb_s", "hip_gb_s"] {
                assert!(row[figure].is_null(), "{row:#}");
            }
        }
    }
    assert_eq!(findings["one_stream"]["works"], true);
    assert!(findings["one_stream"]["figures"].is_null());
    let coarse = row(&findings, "allocations", "allocation", "cl-svm-coarse");
    assert!(
        coarse["works"] == true && coarse["opencl_missing"].is_null(),
        "{coarse:#}"
    );
}
