//! Incomplete and contradictory ROCm installations, made of real shared libraries that answer one call each.
//!
//! The libraries are found through the environment, which a test can set only for a child process: each test runs itself again.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use platform::{Error, LibraryState};

/// Set in the child: the folder of the installations.
const CHILD: &str = "PLATFORM_TEST_INSTALLATIONS";

const HIP: &str = "
int hipInit(unsigned flags) { return (int)flags; }
int hipGetDeviceCount(int *count) { *count = 1; return 0; }
";
const HSA: &str = "int hsa_init(void) { return 0; }";

/// Compiles `source` to `lib/<file>` in an installation, linked with the libraries given.
fn library(installation: &Path, file: &str, source: &str, needs: &[&Path]) -> PathBuf {
    let folder = installation.join("lib");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (output, text) = (folder.join(file), folder.join(format!("{file}.c")));
    std::fs::write(&text, source).expect("a source file");
    let compiler = std::env::var_os("CC").filter(|name| !name.is_empty());
    let status = Command::new(compiler.unwrap_or_else(|| "cc".into()))
        .args([
            "-shared",
            "-fPIC",
            "-Wl,--no-as-needed",
            "-Wl,-rpath,$ORIGIN",
        ])
        .arg(format!("-Wl,-soname,{file}"))
        .arg("-o")
        .arg(&output)
        .arg(&text)
        .args(needs)
        .status()
        .expect("these tests need a C compiler: install gcc, or name yours in CC");
    assert!(status.success(), "{file} did not compile");
    output
}

/// Runs the test of this name in a child that sees `installation` and nothing else of ROCm.
fn in_child(test: &str, folder: &Path, installation: &Path) {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("HIP") {
            child.env_remove(variable);
        }
    }
    let output = child
        .args(["--exact", test])
        .env(CHILD, folder)
        .env("ROCM_PATH", installation)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_missing_rocblas_leaves_hip_usable() {
    if std::env::var_os(CHILD).is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        library(folder.path(), "libamdhip64.so.6", HIP, &[]);
        return in_child(
            "a_missing_rocblas_leaves_hip_usable",
            folder.path(),
            folder.path(),
        );
    }
    let selection = platform::select_named(Some("amd")).expect("HIP is there and has a device");
    assert!(selection.tables().rocblas.is_none() && selection.tables().rocsolver.is_none());
    assert!(selection.tables().rtc.is_none());
    let count = selection.tables().hip.hipGetDeviceCount;
    let mut devices = 0;
    // SAFETY: `devices` outlives the call.
    let status = unsafe { count.expect("the library has it")(&mut devices) };
    assert_eq!((status.0, devices), (0, 1));
    let rocblas = selection
        .libraries
        .iter()
        .find(|library| library.name == "rocBLAS")
        .expect("it is reported");
    let LibraryState::Missing(reason) = &rocblas.state else {
        panic!("{}", rocblas.state)
    };
    for name in ["librocblas.so.5", "librocblas.so.4", "librocblas.so.3"] {
        assert!(
            reason.contains(&format!("/lib/{name} (")),
            "{name}: {reason}"
        );
    }
    assert!(!reason.contains('\n'));
}

#[test]
fn a_second_hsa_runtime_in_the_process_is_refused_with_both_files() {
    if std::env::var_os(CHILD).is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let rocm = folder.path().join("rocm");
        let hsa = library(&rocm, "libhsa-runtime64.so.1", HSA, &[]);
        library(&rocm, "libamdhip64.so.6", HIP, &[&hsa]);
        // A Python wheel renames its copy, so the dynamic linker does not see that it is the same library.
        library(
            &folder.path().join("wheel"),
            "libhsa-runtime64-5f1c.so.1",
            HSA,
            &[],
        );
        return in_child(
            "a_second_hsa_runtime_in_the_process_is_refused_with_both_files",
            folder.path(),
            &rocm,
        );
    }
    let folder = PathBuf::from(std::env::var_os(CHILD).expect("the parent set it"));
    let wheel = folder.join("wheel/lib/libhsa-runtime64-5f1c.so.1");
    hsa_sys::Api::load_from(&wheel).expect("one copy is no problem");
    let error = platform::select_named(Some("amd"))
        .err()
        .expect("HIP brings a second copy");
    assert!(matches!(error, Error::NoLibrary { .. }), "{error}");
    let text = error.to_string();
    for part in [
        "two different libhsa-runtime64",
        "wheel/lib/libhsa-runtime64-5f1c.so.1",
        "rocm/lib/libhsa-runtime64.so.1",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains('\n'));
}
