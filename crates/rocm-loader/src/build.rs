//! The link line, for the build scripts of the `-sys` crates and their feature `linked`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::installations;

/// Variables that name the root of a ROCm installation, in their order.
const ROOTS: [&str; 2] = ["ROCM_PATH", "HIP_PATH"];

/// Prints what Cargo needs to link the program with these libraries (`amdhip64` for `libamdhip64.so`), in this order.
///
/// Each is looked for in the `lib` folders of `$ROCM_PATH` and `$HIP_PATH`, then, unless the build is for another
/// machine, in `/opt/rocm/lib`, in the releases below `/opt` (the newest first) and in the system's own folders. If one
/// is missing, the build fails with one line that lists the places. Documentation builds need no library (`DOCS_RS`).
pub fn link(libraries: &[&str]) {
    for root in ROOTS {
        println!("cargo::rerun-if-env-changed={root}");
    }
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if variable("DOCS_RS").is_some() {
        return;
    }
    let installed = installations::roots(Path::new(installations::OPT));
    match plan(libraries, &variable, &installed, &|file| file.exists()) {
        Ok(lines) => lines.iter().for_each(|line| println!("cargo::{line}")),
        Err(problem) => println!("cargo::error={problem}"),
    }
}

fn plan(
    libraries: &[&str],
    variable: &dyn Fn(&str) -> Option<OsString>,
    installed: &[PathBuf],
    exists: &dyn Fn(&Path) -> bool,
) -> Result<Vec<String>, String> {
    let family = variable("CARGO_CFG_TARGET_FAMILY").unwrap_or_default();
    if !family.to_string_lossy().split(',').any(|name| name == "unix") {
        return Err(
            "the feature `linked` needs a Unix dynamic linker; without it the library is opened at run time".into(),
        );
    }
    let mut folders: Vec<PathBuf> = ROOTS
        .iter()
        .filter_map(|root| Some(Path::new(&variable(root)?).join("lib")))
        .collect();
    if variable("HOST") == variable("TARGET") {
        folders.extend(installed.iter().map(|root| root.join("lib")));
        let processor = variable("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
        folders.push(format!("/usr/lib/{}-linux-gnu", processor.to_string_lossy()).into());
        folders.extend(["/usr/lib64", "/usr/lib"].map(PathBuf::from));
    }
    let mut lines: Vec<String> = Vec::new();
    for library in libraries {
        let file = format!("lib{library}.so");
        let found = folders.iter().find(|folder| exists(&folder.join(&file)));
        let folder = found.ok_or_else(|| {
            let places: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            format!(
                "no {file} in {}; install ROCm's development package, set ROCM_PATH, or disable the feature `linked`",
                places.join(", ")
            )
        })?;
        let search = format!("rustc-link-search=native={}", folder.display());
        if !lines.contains(&search) {
            lines.push(search);
        }
        lines.push(format!("rustc-link-lib=dylib={library}"));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: [(&str, &str); 4] = [
        ("CARGO_CFG_TARGET_FAMILY", "unix"),
        ("CARGO_CFG_TARGET_ARCH", "x86_64"),
        ("HOST", "a"),
        ("TARGET", "a"),
    ];

    fn planned(libraries: &[&str], more: &[(&str, &str)], files: &[&str]) -> Result<Vec<String>, String> {
        let variable = |name: &str| {
            let found = more.iter().chain(&NATIVE).find(|(key, _)| *key == name);
            found.map(|(_, value)| value.into())
        };
        let installed = ["/opt/rocm", "/opt/rocm/core-10.1"].map(PathBuf::from);
        plan(libraries, &variable, &installed, &|file| {
            files.iter().any(|known| Path::new(known) == file)
        })
    }

    #[test]
    fn the_named_installation_comes_before_the_usual_one() {
        let files = ["/opt/rocm/lib/libx.so", "/r/lib/libx.so", "/h/lib/libx.so"];
        let named = [("HIP_PATH", "/h"), ("ROCM_PATH", "/r")];
        assert_eq!(
            planned(&["x"], &named, &files).expect("it is there"),
            ["rustc-link-search=native=/r/lib", "rustc-link-lib=dylib=x"]
        );
        assert_eq!(
            planned(&["x"], &named[..1], &files).expect("it is there")[0],
            "rustc-link-search=native=/h/lib"
        );
        assert_eq!(
            planned(&["x"], &[], &files).expect("it is there")[0],
            "rustc-link-search=native=/opt/rocm/lib"
        );
    }

    #[test]
    fn a_release_that_is_linked_nowhere_is_found_after_the_chosen_one() {
        let newest = "/opt/rocm/core-10.1/lib/libx.so";
        assert_eq!(
            planned(&["x"], &[], &[newest]).expect("it is there")[0],
            "rustc-link-search=native=/opt/rocm/core-10.1/lib"
        );
        let both = [newest, "/opt/rocm/lib/libx.so"];
        assert_eq!(
            planned(&["x"], &[], &both).expect("both are there")[0],
            "rustc-link-search=native=/opt/rocm/lib"
        );
    }

    #[test]
    fn libraries_keep_their_order_and_share_a_folder() {
        let files = ["/opt/rocm/lib/libx.so", "/opt/rocm/lib/liby.so"];
        assert_eq!(
            planned(&["y", "x"], &[], &files).expect("both are there"),
            [
                "rustc-link-search=native=/opt/rocm/lib",
                "rustc-link-lib=dylib=y",
                "rustc-link-lib=dylib=x"
            ]
        );
    }

    #[test]
    fn an_absent_library_is_one_line_with_every_place_and_the_remedy() {
        let error = planned(&["x"], &[("ROCM_PATH", "/r")], &["/r/libx.so"]).expect_err("absent");
        for part in [
            "libx.so",
            "/r/lib",
            "/opt/rocm/lib",
            "x86_64-linux-gnu",
            "set ROCM_PATH",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
        assert!(!error.contains('\n'));
    }

    #[test]
    fn a_system_with_another_dynamic_linker_is_told_to_open_the_library() {
        let error = planned(&["x"], &[("CARGO_CFG_TARGET_FAMILY", "windows")], &["/usr/lib/libx.so"]);
        assert!(error.expect_err("not Unix").contains("at run time"));
    }

    #[test]
    fn a_build_for_another_machine_never_takes_this_machines_libraries() {
        let files = ["/opt/rocm/lib/libx.so", "/usr/lib/libx.so"];
        assert!(planned(&["x"], &[("TARGET", "b")], &files).is_err());
    }
}
