//! Where ROCm is installed when no variable names it, and which files belong together.
//!
//! | installation | its libraries |
//! |---|---|
//! | AMD's packages, the release that is chosen | `/opt/rocm/lib` |
//! | ROCm 10 and later, packages or an unpacked archive | `/opt/rocm/core-10.1/lib`, one folder for each release |
//! | before ROCm 10 | `/opt/rocm-7.2.4/lib`, likewise |
//! | AMD's Python wheels | `site-packages/_rocm_sdk_core/lib`, and the BLAS in `_rocm_sdk_libraries/lib` beside it |
//!
//! `/opt/rocm/extras-10` is not searched: it holds software built on ROCm, and no part of ROCm itself.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// The folder of installations.
pub(crate) const OPT: &str = "/opt";

/// The roots of the installations in `opt`: the one that AMD's packages chose, whether it is there or not, then every
/// release that is, the newest first.
pub(crate) fn roots(opt: &Path) -> Vec<PathBuf> {
    let chosen = opt.join("rocm");
    let mut roots = vec![chosen.clone()];
    let core = chosen.join("core");
    roots.extend(core.is_dir().then_some(core));
    for (folder, prefix) in [(chosen.as_path(), "core-"), (opt, "rocm-")] {
        roots.extend(newest_first(folder, prefix));
    }
    roots
}

/// The folders named `prefix` and a number with dots, by number: 10.1, 10.0, 7.2.4, 7.2.
fn newest_first(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<(Vec<u32>, PathBuf)> = folders(folder)
        .filter_map(|(name, path)| Some((numbers(name.strip_prefix(prefix)?)?, path)))
        .collect();
    found.sort_by_key(|(number, _)| Reverse(number.clone()));
    found.into_iter().map(|(_, path)| path).collect()
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

fn folders(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
}

#[cfg(any(feature = "load", test))]
pub(crate) use wheels::{beside, together, wheels};

/// AMD's Python wheels. One wheel has the runtime, one the BLAS; both are of one release if they lie in one
/// `site-packages` and Python's records name the same release.
#[cfg(any(feature = "load", test))]
mod wheels {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use super::{folders, newest_first};

    const CORE: &str = "_rocm_sdk_core";
    const LIBRARIES: &str = "_rocm_sdk_libraries";

    /// Variables that name the Python environment that is active.
    const ENVIRONMENTS: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

    /// The folders of libraries in the wheels of the active Python environment, those of the newest Python first.
    pub(crate) fn wheels(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for environment in ENVIRONMENTS.iter().filter_map(|name| variable(name)) {
            for python in newest_first(&Path::new(&environment).join("lib"), "python") {
                let site = python.join("site-packages");
                for wheel in [CORE, LIBRARIES] {
                    found.extend(of_kind(&site, wheel, "").map(|wheel| wheel.join("lib")));
                }
            }
        }
        found
    }

    /// Where a library of the same installation may lie other than in this folder.
    pub(crate) fn beside(folder: &Path) -> Vec<PathBuf> {
        let Some(wheel) = Wheel::of(folder).filter(|wheel| wheel.kind == CORE) else {
            return Vec::new();
        };
        of_kind(wheel.site, LIBRARIES, wheel.mark)
            .map(|other| other.join("lib"))
            .filter(|other| together(folder, other))
            .collect()
    }

    /// Whether the libraries of two folders are of one installation. Symbolic links such as `/opt/rocm` are followed
    /// first.
    pub(crate) fn together(first: &Path, second: &Path) -> bool {
        let real = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let (first, second) = (real(first), real(second));
        if first == second {
            return true;
        }
        let (Some(first), Some(second)) = (Wheel::of(&first), Wheel::of(&second)) else {
            return false;
        };
        let marked = match (first.kind, second.kind) {
            (CORE, LIBRARIES) => second.name.ends_with(first.mark),
            (LIBRARIES, CORE) => first.name.ends_with(second.mark),
            _ => false,
        };
        let same_release = match (first.release(), second.release()) {
            (Some(first), Some(second)) => first == second,
            _ => true,
        };
        marked && first.site == second.site && same_release
    }

    fn of_kind(site: &Path, kind: &'static str, mark: &str) -> impl Iterator<Item = PathBuf> {
        let mut found: Vec<PathBuf> = folders(site)
            .filter(|(name, _)| name.starts_with(kind) && name.ends_with(mark))
            .map(|(_, path)| path)
            .collect();
        found.sort();
        found.into_iter()
    }

    /// A wheel's package of libraries.
    struct Wheel<'a> {
        site: &'a Path,
        /// Such as `_rocm_sdk_libraries_gfx94X_dcgpu`.
        name: &'a str,
        kind: &'static str,
        /// What AMD puts behind the names of all packages of one build, mostly nothing; only the runtime's shows it
        /// alone.
        mark: &'a str,
    }

    impl<'a> Wheel<'a> {
        /// The wheel whose `lib` this folder is.
        fn of(folder: &'a Path) -> Option<Self> {
            let package = folder.parent()?;
            let name = package.file_name()?.to_str()?;
            let kind = [CORE, LIBRARIES].into_iter().find(|kind| name.starts_with(kind))?;
            Some(Self {
                site: package.parent()?,
                name,
                kind,
                mark: if kind == CORE { &name[kind.len()..] } else { "" },
            })
        }

        /// The release in the name of Python's record of the wheel, `rocm_sdk_core-10.0.0.dist-info`.
        fn release(&self) -> Option<String> {
            // The record's name has no mark, and small letters.
            let name = self.name.trim_start_matches('_').to_ascii_lowercase();
            folders(self.site)
                .filter_map(|(record, _)| {
                    let record = record.strip_suffix(".dist-info")?.to_ascii_lowercase();
                    let (owner, release) = record.split_once('-')?;
                    let of_this = name == owner || self.kind == CORE && name.starts_with(owner);
                    of_this.then(|| release.to_owned())
                })
                .next()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tree(folders: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for folder in folders {
            fs::create_dir_all(root.path().join(folder)).expect("a folder in it");
        }
        root
    }

    fn relative(root: &Path, paths: Vec<PathBuf>) -> Vec<String> {
        paths
            .iter()
            .map(|path| path.strip_prefix(root).expect("below the root"))
            .map(|path| path.display().to_string())
            .collect()
    }

    #[test]
    fn releases_are_ordered_by_their_numbers_the_newest_first() {
        let root = tree(&[
            "rocm/core-10.0",
            "rocm/core-10.1",
            "rocm/core-7.14",
            "rocm/core-9.9",
            "rocm/core-preview",
            "rocm/extras-10",
            "rocm-6.4",
            "rocm-6.10",
            "rocm-7.2",
            "rocm-7.2.4",
            "rocm-old",
            "rocmlike-8.0",
        ]);
        fs::write(root.path().join("rocm/core-11.0"), "a file").expect("no folder");
        assert_eq!(
            relative(root.path(), roots(root.path())),
            [
                "rocm",
                "rocm/core-10.1",
                "rocm/core-10.0",
                "rocm/core-9.9",
                "rocm/core-7.14",
                "rocm-7.2.4",
                "rocm-7.2",
                "rocm-6.10",
                "rocm-6.4",
            ]
        );
    }

    #[test]
    fn the_usual_place_is_named_even_where_nothing_is_installed() {
        let root = tree(&[]);
        assert_eq!(roots(root.path()), [root.path().join("rocm")]);
        let root = tree(&["rocm/core", "rocm/core-10"]);
        assert_eq!(
            relative(root.path(), roots(root.path())),
            ["rocm", "rocm/core", "rocm/core-10"]
        );
    }

    #[test]
    fn wheels_are_found_in_the_active_environment_of_the_newest_python() {
        let root = tree(&[
            "v/lib/python3.9/site-packages/_rocm_sdk_core/lib",
            "v/lib/python3.12/site-packages/_rocm_sdk_core/lib",
            "v/lib/python3.12/site-packages/_rocm_sdk_libraries/lib",
            "v/lib/python3.12/site-packages/_rocm_sdk_devel/lib",
        ]);
        let active = |name: &str| (name == "VIRTUAL_ENV").then(|| root.path().join("v").into());
        assert_eq!(
            relative(root.path(), wheels(&active)),
            [
                "v/lib/python3.12/site-packages/_rocm_sdk_core/lib",
                "v/lib/python3.12/site-packages/_rocm_sdk_libraries/lib",
                "v/lib/python3.9/site-packages/_rocm_sdk_core/lib",
            ]
        );
        assert_eq!(wheels(&|_| None), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_blas_of_the_same_wheels_belongs_to_the_runtime_and_no_other_does() {
        let root = tree(&[
            "a/_rocm_sdk_core/lib",
            "a/_rocm_sdk_libraries_gfx94X_dcgpu/lib",
            "a/rocm_sdk_core-10.0.0.dist-info",
            "a/rocm_sdk_libraries_gfx94x_dcgpu-10.0.0.dist-info",
            "b/_rocm_sdk_core/lib",
            "b/_rocm_sdk_libraries/lib",
            "b/rocm_sdk_core-10.0.0.dist-info",
            "b/rocm_sdk_libraries-10.1.0.dist-info",
            "c/_rocm_sdk_core_n1/lib",
            "c/_rocm_sdk_libraries_n1/lib",
            "c/_rocm_sdk_libraries_n2/lib",
        ]);
        let path = |path: &str| root.path().join(path);
        let blas = path("a/_rocm_sdk_libraries_gfx94X_dcgpu/lib");
        assert_eq!(beside(&path("a/_rocm_sdk_core/lib")), std::slice::from_ref(&blas));
        assert!(together(&blas, &path("a/_rocm_sdk_core/lib")));
        assert!(!together(&blas, &path("b/_rocm_sdk_core/lib")));
        assert_eq!(
            beside(&path("b/_rocm_sdk_core/lib")),
            Vec::<PathBuf>::new(),
            "the records tell two releases"
        );
        assert_eq!(
            beside(&path("c/_rocm_sdk_core_n1/lib")),
            [path("c/_rocm_sdk_libraries_n1/lib")]
        );
        let other_build = path("c/_rocm_sdk_libraries_n2/lib");
        assert!(!together(&path("c/_rocm_sdk_core_n1/lib"), &other_build));
        assert!(!together(&other_build, &path("c/_rocm_sdk_core_n1/lib")));
        assert_eq!(beside(&path("opt/rocm/lib")), Vec::<PathBuf>::new());
    }

    #[test]
    fn links_to_one_folder_are_one_installation() {
        let root = tree(&["rocm/core-10.0/lib", "rocm/core-10.1/lib"]);
        let path = |path: &str| root.path().join(path);
        std::os::unix::fs::symlink("core-10.1/lib", path("rocm/lib")).expect("a link");
        assert!(together(&path("rocm/lib"), &path("rocm/core-10.1/lib")));
        assert!(!together(&path("rocm/lib"), &path("rocm/core-10.0/lib")));
    }
}
