//! ROCm installations in every layout, also incomplete and contradictory ones, made of real shared libraries that
//! answer one call each.
//!
//! The libraries are found through the environment, which a test can set only for a child process: each test runs
//! itself again.

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

/// The files of ROCm 10 (SONAMEs as HIP 7 has them), each with the function that it is known by.
const BESIDE: [(&str, &str); 3] = [
    ("libhiprtc.so.7", "int hiprtcCompileProgram(void) { return 0; }"),
    ("librocblas.so.5", "int rocblas_create_handle(void) { return 0; }"),
    ("librocsolver.so.0", "int rocsolver_cpotrf(void) { return 0; }"),
];

/// HIP that says it is of the release with this number: 71,526,333 is the HIP 7.15 of ROCm 10.0.
fn hip_of(number: u32) -> String {
    format!("{HIP}int hipRuntimeGetVersion(int *number) {{ *number = {number}; return 0; }}\n")
}

/// A complete installation.
fn install(root: &Path, number: u32) {
    let hsa = library(root, "libhsa-runtime64.so.1", HSA, &[]);
    library(root, "libamdhip64.so.7", &hip_of(number), &[&hsa]);
    for (file, source) in BESIDE {
        library(root, file, source, &[]);
    }
}

/// Compiles `source` to `lib/<file>` in an installation, linked with the libraries given.
fn library(installation: &Path, file: &str, source: &str, needs: &[&Path]) -> PathBuf {
    let folder = installation.join("lib");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (output, text) = (folder.join(file), folder.join(format!("{file}.c")));
    std::fs::write(&text, source).expect("a source file");
    let compiler = std::env::var_os("CC").filter(|name| !name.is_empty());
    let status = Command::new(compiler.unwrap_or_else(|| "cc".into()))
        .args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"])
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
    in_child_with(test, folder, &[("ROCM_PATH", installation)]);
}

/// As [`in_child`], with these variables.
fn in_child_with(test: &str, folder: &Path, variables: &[(&str, &Path)]) {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        let of_rocm = name.starts_with("HIP") || name.starts_with("ROCM");
        if of_rocm || ["VIRTUAL_ENV", "CONDA_PREFIX"].contains(&&*name) {
            child.env_remove(variable);
        }
    }
    let output = child
        .args(["--exact", test])
        .env(CHILD, folder)
        .envs(variables.iter().copied())
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// In the child: every library is loaded from these folders; gives HIP's report.
fn all_from(hip: &Path, blas: &Path) -> platform::LibraryReport {
    let real = |path: &Path| path.canonicalize().expect("it is there");
    let selection = platform::select_named(Some("amd")).expect("a complete installation");
    for report in &selection.libraries {
        let LibraryState::Loaded(path) = &report.state else {
            panic!("{}: {}", report.name, report.state)
        };
        let expected = match report.name {
            "rocBLAS" | "rocSOLVER" => blas,
            _ => hip,
        };
        let folder = path.parent().expect("a folder");
        assert_eq!(real(folder), real(expected), "{}", report.name);
    }
    let mut names: Vec<_> = selection.libraries.iter().map(|it| it.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["HIP", "HIPRTC", "HSA", "rocBLAS", "rocSOLVER"]);
    let mut reports = selection.libraries.into_iter();
    reports.find(|report| report.name == "HIP").expect("HIP")
}

#[test]
fn rocm_10_is_one_installation_behind_the_links_of_its_packages() {
    let test = "rocm_10_is_one_installation_behind_the_links_of_its_packages";
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        let folder = tempfile::tempdir().expect("a folder");
        let rocm = folder.path().join("rocm");
        install(&rocm.join("core-10.0"), 71_526_333);
        install(&rocm.join("core-10.1"), 71_600_000);
        std::os::unix::fs::symlink("core-10.0/lib", rocm.join("lib")).expect("a link");
        return in_child(test, folder.path(), &rocm);
    };
    let lib = folder.join("rocm/core-10.0/lib");
    let hip = all_from(&lib, &lib);
    assert_eq!(hip.release, Some(hip_sys::Release::new(7, 15)));
    assert!(!hip.is_newer_than_known());
}

#[test]
fn a_hip_of_another_name_is_asked_for_the_hiprtc_inside_it() {
    let test = "a_hip_of_another_name_is_asked_for_the_hiprtc_inside_it";
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        let folder = tempfile::tempdir().expect("a folder");
        let both = format!("{HIP}int hiprtcCompileProgram(void) {{ return 0; }}\n");
        let hip = library(folder.path(), "libmine.so", &both, &[]);
        return in_child_with(test, folder.path(), &[("HIPCL_HIP_LIBRARY", &hip)]);
    };
    let selection = platform::select_named(Some("amd")).expect("HIP");
    let mut reports = selection.libraries.into_iter();
    let rtc = reports.find(|report| report.name == "HIPRTC").expect("its report");
    let LibraryState::Loaded(path) = rtc.state else {
        panic!("{}", rtc.state)
    };
    let real = |path: PathBuf| path.canonicalize().expect("it is there");
    assert_eq!(real(path), real(folder.join("lib/libmine.so")));
}

#[test]
fn rocm_path_may_name_one_release_of_rocm_10() {
    let test = "rocm_path_may_name_one_release_of_rocm_10";
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        let folder = tempfile::tempdir().expect("a folder");
        let rocm = folder.path().join("rocm");
        install(&rocm.join("core-10.0"), 71_526_333);
        install(&rocm.join("core-10.1"), 71_600_000);
        return in_child(test, folder.path(), &rocm.join("core-10.0"));
    };
    let lib = folder.join("rocm/core-10.0/lib");
    all_from(&lib, &lib);
}

#[test]
fn the_wheels_of_rocm_10_are_one_installation_in_two_folders() {
    let test = "the_wheels_of_rocm_10_are_one_installation_in_two_folders";
    let site = Path::new("venv/lib/python3.12/site-packages");
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        let folder = tempfile::tempdir().expect("a folder");
        let (core, libraries) = (
            folder.path().join(site).join("_rocm_sdk_core"),
            folder.path().join(site).join("_rocm_sdk_libraries"),
        );
        install(&core, 71_526_333);
        for (file, source) in &BESIDE[1..] {
            std::fs::remove_file(core.join("lib").join(file)).expect("the file");
            library(&libraries, file, source, &[]);
        }
        for wheel in ["core", "libraries"] {
            let record = format!("rocm_sdk_{wheel}-10.0.0.dist-info");
            std::fs::create_dir(folder.path().join(site).join(record)).expect("a record");
        }
        let venv = folder.path().join("venv");
        return in_child_with(test, folder.path(), &[("VIRTUAL_ENV", &venv)]);
    };
    let site = folder.join(site);
    all_from(&site.join("_rocm_sdk_core/lib"), &site.join("_rocm_sdk_libraries/lib"));
}

#[test]
fn a_library_of_another_release_of_rocm_10_is_refused_with_both_files() {
    let test = "a_library_of_another_release_of_rocm_10_is_refused_with_both_files";
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        let folder = tempfile::tempdir().expect("a folder");
        let [older, newer] = ["core-10.0", "core-10.1"].map(|name| folder.path().join(name));
        install(&older, 71_526_333);
        install(&newer, 71_600_000);
        let blas = newer.join("lib/librocblas.so.5");
        let variables = [("ROCM_PATH", older.as_path()), ("HIPCL_ROCBLAS_LIBRARY", &blas)];
        return in_child_with(test, folder.path(), &variables);
    };
    let error = platform::select_named(Some("amd")).expect_err("two releases");
    let Error::MixedReleases { first, second, .. } = &error else {
        panic!("{error}")
    };
    assert!(first.ends_with("core-10.0/lib/libamdhip64.so.7"), "{error}");
    assert_eq!(
        second.canonicalize().expect("it is there"),
        folder
            .join("core-10.1/lib/librocblas.so.5")
            .canonicalize()
            .expect("likewise")
    );
}

#[test]
fn a_hip_newer_than_any_known_one_loads_and_says_so() {
    let test = "a_hip_newer_than_any_known_one_loads_and_says_so";
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("core-12.0");
        let hsa = library(&root, "libhsa-runtime64.so.1", HSA, &[]);
        library(&root, "libamdhip64.so.9", &hip_of(90_100_000), &[&hsa]);
        for (file, source) in BESIDE {
            library(&root, &file.replace(".so.5", ".so.6"), source, &[]);
        }
        return in_child(test, folder.path(), &root);
    };
    let lib = folder.join("core-12.0/lib");
    let hip = all_from(&lib, &lib);
    assert_eq!(hip.release, Some(hip_sys::Release::new(9, 1)));
    assert!(hip.is_newer_than_known());
    assert!(platform::NEWEST_KNOWN < hip.release.expect("as above"));
}

#[test]
fn a_missing_rocblas_leaves_hip_usable() {
    if std::env::var_os(CHILD).is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        library(folder.path(), "libamdhip64.so.6", HIP, &[]);
        return in_child("a_missing_rocblas_leaves_hip_usable", folder.path(), folder.path());
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
        assert!(reason.contains(&format!("/lib/{name} (")), "{name}: {reason}");
    }
    assert!(!reason.contains('\n'));
}

#[test]
fn a_runtime_alone_leaves_the_libraries_of_linear_algebra_unopened() {
    let test = "a_runtime_alone_leaves_the_libraries_of_linear_algebra_unopened";
    if std::env::var_os(CHILD).is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        install(folder.path(), 71_526_333);
        return in_child(test, folder.path(), folder.path());
    }
    let maps = || std::fs::read_to_string("/proc/self/maps").expect("a map");
    let asked = Some(("amd", "a test"));
    let selection = platform::select_runtime(asked).expect("a complete installation");
    let tables = selection.tables();
    assert!(tables.rtc.is_some() && tables.hsa.is_some());
    assert!(tables.rocblas.is_none() && tables.rocsolver.is_none());
    assert!(maps().contains("libamdhip64"));
    for library in ["librocblas", "librocsolver"] {
        assert!(!maps().contains(library), "{library}");
    }
    let selection = platform::select_named(Some("amd")).expect("a complete installation");
    assert!(selection.tables().rocblas.is_some());
    assert!(maps().contains("librocblas") && maps().contains("librocsolver"));
}

#[test]
fn a_second_hsa_runtime_in_the_process_is_refused_with_both_files() {
    if std::env::var_os(CHILD).is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let rocm = folder.path().join("rocm");
        let hsa = library(&rocm, "libhsa-runtime64.so.1", HSA, &[]);
        library(&rocm, "libamdhip64.so.6", HIP, &[&hsa]);
        // A Python wheel renames its copy, so the dynamic linker does not see that it is the same library.
        library(&folder.path().join("wheel"), "libhsa-runtime64-5f1c.so.1", HSA, &[]);
        return in_child(
            "a_second_hsa_runtime_in_the_process_is_refused_with_both_files",
            folder.path(),
            &rocm,
        );
    }
    let folder = PathBuf::from(std::env::var_os(CHILD).expect("the parent set it"));
    let wheel = folder.join("wheel/lib/libhsa-runtime64-5f1c.so.1");
    // SAFETY: a stand-in without initialisers.
    unsafe { hsa_sys::Api::load_from(&wheel) }.expect("one copy is no problem");
    let error = platform::select_named(Some("amd")).expect_err("HIP brings a second copy");
    assert!(matches!(error, Error::NoLibrary { .. }), "{error}");
    let text = error.to_string();
    for part in [
        "two different copies of libhsa-runtime64",
        "wheel/lib/libhsa-runtime64-5f1c.so.1",
        "rocm/lib/libhsa-runtime64.so.1",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains('\n'));
}
