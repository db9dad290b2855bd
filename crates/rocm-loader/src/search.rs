//! Where a library is looked for.

use std::ffi::{CStr, OsStr, OsString};
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::elf::{self, Verdict};
use crate::{Floor, LoadError, Loaded, Tried};

/// How one library is found.
///
/// Order: the file that `env` names (then nothing else is tried); a copy that this process already has; the `lib` folders of
/// `$ROCM_PATH` and `$HIP_PATH`; the names in `sonames`, left to the dynamic linker; the bare name; `/opt/rocm/lib`; all that
/// for `fallback`. A file that is found but can't be used is passed over, and its reason kept; one that is too old ends the
/// search, because it is in the process by then.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// The library without suffix, such as `libamdhip64`.
    pub library: &'static str,
    /// The environment variable that names the file explicitly.
    pub env: &'static str,
    /// Versioned names, newest first.
    pub sonames: &'static [&'static str],
    /// A function that every release has: a file without it is another library.
    pub key_symbol: &'static CStr,
    /// A library that holds the same functions in some releases, taken if this one is nowhere.
    pub fallback: Option<&'static Search>,
    /// The oldest release that is accepted, where the library can tell.
    pub floor: Option<Floor>,
}

impl Search {
    /// The first usable copy in the search order.
    pub fn load(&self) -> Result<Loaded, LoadError> {
        self.load_with(&|name| std::env::var_os(name))
    }

    /// As [`Search::load`], with the environment given.
    fn load_with(&self, env: &dyn Fn(&str) -> Option<OsString>) -> Result<Loaded, LoadError> {
        if let Some(path) = value(env, self.env) {
            return self
                .load_from(Path::new(&path))
                .map_err(|error| error.named_by(self.env));
        }
        if let Some(loaded) = self.already_in_process() {
            return self.recent_enough(loaded);
        }
        let mut attempts = Attempts::default();
        for variable in ["ROCM_PATH", "HIP_PATH"] {
            if let Some(root) = value(env, variable) {
                let folder = Path::new(&root).join("lib");
                attempts.all(self.names().map(|name| folder.join(name)), |path| {
                    self.load_from(path)
                });
            }
        }
        attempts.all(self.names().map(PathBuf::from), |name| self.open(name));
        let folder = Path::new("/opt/rocm/lib");
        attempts.all(self.names().map(|name| folder.join(name)), |path| {
            self.load_from(path)
        });
        attempts.finish(self, |fallback| fallback.load_with(env))
    }

    /// Loads one file.
    pub fn load_from(&self, path: &Path) -> Result<Loaded, LoadError> {
        let (library, path_buf) = (self.library, path.to_path_buf());
        match elf::inspect(path) {
            Verdict::Plausible => self.open(path),
            Verdict::Missing => Err(LoadError::Missing {
                library,
                path: path_buf,
                env: None,
            }),
            Verdict::NotALibrary(reason) => Err(LoadError::NotALibrary {
                library,
                path: path_buf,
                reason,
                env: None,
            }),
            Verdict::WrongArchitecture(found) => Err(LoadError::WrongArchitecture {
                library,
                path: path_buf,
                found,
                expected: elf::THIS_MACHINE,
                env: None,
            }),
        }
    }

    /// Loads the copy in the folder of another library, so that both are of one release.
    pub fn load_beside(&self, neighbour: &Loaded) -> Result<Loaded, LoadError> {
        let folder = neighbour.path.parent().unwrap_or(Path::new(""));
        let mut attempts = Attempts::default();
        attempts.all(self.names().map(|name| folder.join(name)), |path| {
            self.load_from(path)
        });
        attempts.finish(self, |fallback| fallback.load_beside(neighbour))
    }

    /// Versioned names, then the bare one.
    fn names(&self) -> impl Iterator<Item = String> + use<'_> {
        let bare = format!("{}.so", self.library);
        self.sonames
            .iter()
            .map(|name| (*name).to_owned())
            .chain(std::iter::once(bare))
    }

    /// Asks the dynamic linker. A name without a slash goes through its own search path.
    fn open(&self, path: &Path) -> Result<Loaded, LoadError> {
        let library = open_now(path.as_os_str()).map_err(|error| LoadError::Open {
            library: self.library,
            path: path.to_path_buf(),
            reason: one_line(&error),
            env: None,
        })?;
        let loaded = Loaded::new(library, path, self.key_symbol).ok_or_else(|| {
            LoadError::MissingSymbol {
                library: self.library,
                path: path.to_path_buf(),
                symbol: self.key_symbol.to_str().unwrap_or("?"),
                env: None,
            }
        })?;
        self.recent_enough(loaded)
    }

    fn recent_enough(&self, loaded: Loaded) -> Result<Loaded, LoadError> {
        let found = self.floor.and_then(|floor| {
            let found = (floor.release)(&loaded)?;
            found.is_before(floor.oldest).then_some((floor, found))
        });
        match found {
            None => Ok(loaded),
            Some((floor, found)) => Err(LoadError::TooOld {
                library: self.library,
                path: loaded.path,
                found,
                oldest: floor.oldest,
                lacking: floor.lacking,
                variable: self.env,
                env: None,
            }),
        }
    }

    /// A copy that something else in this process loaded must be used: two copies of a runtime do not know each other's memory.
    #[cfg(target_os = "linux")]
    fn already_in_process(&self) -> Option<Loaded> {
        use libloading::os::unix;
        // `dlfcn.h`: give the library only if it is resident. libloading does not name this flag.
        const RTLD_NOLOAD: i32 = 4;
        self.names().find_map(|name| {
            // SAFETY: with RTLD_NOLOAD nothing is mapped and no initialiser runs.
            let library =
                unsafe { unix::Library::open(Some(&name), unix::RTLD_LAZY | RTLD_NOLOAD) }.ok()?;
            Loaded::new(library.into(), Path::new(&name), self.key_symbol)
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn already_in_process(&self) -> Option<Loaded> {
        None
    }
}

/// The first success, or what was tried until then.
#[derive(Default)]
struct Attempts {
    loaded: Option<Loaded>,
    /// What ends the search without success.
    refused: Option<LoadError>,
    tried: Vec<Tried>,
}

impl Attempts {
    /// Tries places in turn, unless an earlier one had the library.
    fn all(
        &mut self,
        places: impl Iterator<Item = PathBuf>,
        load: impl Fn(&Path) -> Result<Loaded, LoadError>,
    ) {
        for path in places {
            if self.loaded.is_some() || self.refused.is_some() {
                return;
            }
            match load(&path) {
                Ok(loaded) => self.loaded = Some(loaded),
                Err(error @ LoadError::TooOld { .. }) => self.refused = Some(error),
                Err(error) => self.tried.push(Tried {
                    path,
                    reason: error.reason(),
                }),
            }
        }
    }

    fn finish(
        self,
        search: &Search,
        load_fallback: impl FnOnce(&Search) -> Result<Loaded, LoadError>,
    ) -> Result<Loaded, LoadError> {
        let mut tried = self.tried;
        if let Some(error) = self.refused {
            return Err(error);
        }
        if let Some(loaded) = self.loaded {
            return Ok(loaded);
        }
        match search.fallback.map(load_fallback) {
            Some(Ok(loaded)) => return Ok(loaded),
            Some(Err(LoadError::NotFound { tried: more, .. })) => tried.extend(more),
            Some(Err(error @ LoadError::TooOld { .. })) => return Err(error),
            Some(Err(error)) => {
                tried.push(Tried {
                    path: error.path().to_path_buf(),
                    reason: error.reason(),
                });
            }
            None => {}
        }
        Err(LoadError::NotFound {
            library: search.library,
            env: search.env,
            tried,
        })
    }
}

/// A variable that is set to nothing counts as unset.
fn value(env: &dyn Fn(&str) -> Option<OsString>, name: &str) -> Option<OsString> {
    env(name).filter(|value| !value.is_empty())
}

/// Undefined symbols show here, as an error, and not in the middle of a call.
#[cfg(unix)]
fn open_now(name: &OsStr) -> Result<Library, libloading::Error> {
    use libloading::os::unix;
    // SAFETY: the file's initialisers run. They belong to the ROCm library that the caller, its environment or the dynamic
    // linker's configuration named; a program that may set those can run code in this process anyway.
    unsafe { unix::Library::open(Some(name), unix::RTLD_NOW | unix::RTLD_LOCAL) }.map(Library::from)
}

#[cfg(not(unix))]
fn open_now(name: &OsStr) -> Result<Library, libloading::Error> {
    // SAFETY: as on Unix: the file's initialisers run, and the caller or the system's configuration named it.
    unsafe { Library::new(name) }
}

/// The dynamic linker's words without the line breaks.
fn one_line(error: &libloading::Error) -> String {
    let text =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::Release;

    /// The C library's mathematics stands in for a ROCm library: a real shared library that every Linux machine has.
    const SEARCH: Search = Search {
        library: "libstandin",
        env: "STANDIN_LIBRARY",
        sonames: &["libstandin.so.2", "libstandin.so.1"],
        key_symbol: c"cos",
        fallback: None,
        floor: None,
    };

    fn real_library() -> PathBuf {
        let search = Search {
            library: "libm",
            sonames: &["libm.so.6"],
            ..SEARCH
        };
        search
            .load_with(&|_| None)
            .expect("the C library has a mathematics part")
            .path
    }

    fn environment<'a>(
        values: &'a [(&'a str, &'a Path)],
    ) -> impl Fn(&str) -> Option<OsString> + 'a {
        move |name| {
            values
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, path)| path.as_os_str().to_owned())
        }
    }

    /// A ROCm folder whose `lib` holds the stand-in under this name.
    fn rocm_folder(name: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir(root.path().join("lib")).expect("its lib");
        symlink(real_library(), root.path().join("lib").join(name)).expect("a link");
        root
    }

    #[test]
    fn a_loaded_library_names_the_real_file_and_resolves_symbols() {
        let root = rocm_folder("libstandin.so.1");
        let loaded = SEARCH
            .load_with(&environment(&[("ROCM_PATH", root.path())]))
            .expect("it lies there");
        assert_eq!(loaded.path, real_library());
        assert!(loaded.symbol(c"sin").is_some());
        assert!(loaded.symbol(c"hipMalloc").is_none());
    }

    #[test]
    fn an_explicit_path_is_the_only_place_looked_at() {
        let root = rocm_folder("libstandin.so.1");
        let missing = root.path().join("absent.so");
        let env = [
            ("STANDIN_LIBRARY", missing.as_path()),
            ("ROCM_PATH", root.path()),
        ];
        let error = SEARCH
            .load_with(&environment(&env))
            .expect_err("the named file is absent");
        let LoadError::Missing { path, env, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((path, *env), (&missing, Some("STANDIN_LIBRARY")));
        assert!(
            error.to_string().contains("STANDIN_LIBRARY names it"),
            "{error}"
        );
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let env = [
            ("STANDIN_LIBRARY", Path::new("")),
            ("ROCM_PATH", Path::new("")),
        ];
        let error = SEARCH
            .load_with(&environment(&env))
            .expect_err("there is no such library");
        let LoadError::NotFound { tried, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(tried[0].path, Path::new("libstandin.so.2"));
    }

    #[test]
    fn the_error_lists_every_place_in_the_search_order_on_one_line() {
        let env = [
            ("ROCM_PATH", Path::new("/r")),
            ("HIP_PATH", Path::new("/h")),
        ];
        let error = SEARCH
            .load_with(&environment(&env))
            .expect_err("there is no such library");
        let LoadError::NotFound { tried, .. } = &error else {
            panic!("{error}")
        };
        let places: Vec<&str> = tried
            .iter()
            .filter_map(|tried| tried.path.to_str())
            .collect();
        let expected = [
            "/r/lib/libstandin.so.2",
            "/r/lib/libstandin.so.1",
            "/r/lib/libstandin.so",
            "/h/lib/libstandin.so.2",
            "/h/lib/libstandin.so.1",
            "/h/lib/libstandin.so",
            "libstandin.so.2",
            "libstandin.so.1",
            "libstandin.so",
            "/opt/rocm/lib/libstandin.so.2",
            "/opt/rocm/lib/libstandin.so.1",
            "/opt/rocm/lib/libstandin.so",
        ];
        assert_eq!(places, expected);
        let line = error.to_string();
        assert!(!line.contains('\n'), "{line}");
        for place in expected {
            assert!(line.contains(&format!("{place} (")), "{place} in {line}");
        }
        assert!(line.contains("STANDIN_LIBRARY"), "{line}");
    }

    #[test]
    fn an_unusable_file_is_passed_over_for_the_next_place() {
        let (old, new) = (
            rocm_folder("libstandin.so.1"),
            rocm_folder("libstandin.so.2"),
        );
        symlink(real_library(), old.path().join("lib/libstandin.so")).expect("a link");
        // Broken on purpose: it is tried only if the first folder has nothing.
        fs::remove_file(new.path().join("lib/libstandin.so.2")).expect("the link");
        fs::write(new.path().join("lib/libstandin.so.2"), "text").expect("a file");
        let env = [("ROCM_PATH", new.path()), ("HIP_PATH", old.path())];
        let loaded = SEARCH
            .load_with(&environment(&env))
            .expect("an unusable file is passed over");
        assert_eq!(loaded.path, real_library());
    }

    #[test]
    fn a_copy_in_the_process_is_used_before_any_folder() {
        let search = Search {
            library: "libc",
            sonames: &["libc.so.6"],
            key_symbol: c"getpid",
            ..SEARCH
        };
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir(root.path().join("lib")).expect("its lib");
        fs::write(root.path().join("lib/libc.so.6"), "text").expect("a decoy");
        let loaded = search
            .load_with(&environment(&[("ROCM_PATH", root.path())]))
            .expect("it is resident");
        assert!(!loaded.path.starts_with(root.path()));
        assert!(search.already_in_process().is_some());
        assert!(SEARCH.already_in_process().is_none());
    }

    #[test]
    fn a_file_that_is_no_library_and_one_of_another_processor_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("libstandin.so");
        fs::write(&file, "this is a text file, not a library").expect("a file");
        assert!(matches!(
            SEARCH.load_from(&file),
            Err(LoadError::NotALibrary { .. })
        ));
        fs::write(&file, "short").expect("a file");
        assert!(matches!(
            SEARCH.load_from(&file),
            Err(LoadError::NotALibrary { .. })
        ));
        assert!(matches!(
            SEARCH.load_from(folder.path()),
            Err(LoadError::NotALibrary { .. })
        ));

        let mut foreign = vec![0; 64];
        foreign[..6].copy_from_slice(b"\x7fELF\x02\x01");
        foreign[16] = 3;
        foreign[18] = 0xf3;
        fs::write(&file, &foreign).expect("a file");
        let error = SEARCH.load_from(&file).expect_err("a RISC-V library");
        let LoadError::WrongArchitecture { found, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(found, "riscv");

        // A header of the right kind with nothing behind it: only the dynamic linker can tell.
        let mut truncated = fs::read(real_library()).expect("the real file");
        truncated.truncate(64);
        fs::write(&file, &truncated).expect("a file");
        let error = SEARCH.load_from(&file).expect_err("a truncated library");
        assert!(matches!(error, LoadError::Open { .. }), "{error}");
        assert!(!error.to_string().contains('\n'));
    }

    #[test]
    fn another_library_is_recognised_by_the_missing_function() {
        let search = Search {
            key_symbol: c"hipGetDeviceCount",
            ..SEARCH
        };
        let error = search
            .load_from(&real_library())
            .expect_err("it is not HIP");
        let LoadError::MissingSymbol { symbol, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(*symbol, "hipGetDeviceCount");
    }

    #[test]
    fn a_neighbour_is_looked_for_in_its_folder_only() {
        let root = rocm_folder("libstandin.so.2");
        let mut neighbour = SEARCH.load_from(&real_library()).expect("a library");
        let other = Search {
            library: "libneighbour",
            sonames: &["libneighbour.so.0"],
            ..SEARCH
        };
        neighbour.path = root.path().join("lib/libstandin.so.2");
        let error = other
            .load_beside(&neighbour)
            .expect_err("no such neighbour");
        let LoadError::NotFound { tried, .. } = &error else {
            panic!("{error}")
        };
        assert!(
            tried
                .iter()
                .all(|tried| tried.path.starts_with(root.path()))
        );
        symlink(real_library(), root.path().join("lib/libneighbour.so.0")).expect("a link");
        assert!(other.load_beside(&neighbour).is_ok());
    }

    #[test]
    fn the_fallback_is_taken_last_and_its_places_are_listed() {
        static FALLBACK: Search = Search {
            library: "libolder",
            env: "OLDER_LIBRARY",
            sonames: &[],
            ..SEARCH
        };
        let search = Search {
            fallback: Some(&FALLBACK),
            ..SEARCH
        };
        let root = rocm_folder("libolder.so");
        let loaded = search
            .load_with(&environment(&[("ROCM_PATH", root.path())]))
            .expect("the older one has it");
        assert_eq!(loaded.path, real_library());

        let error = search.load_with(&|_| None).expect_err("neither is there");
        assert!(
            error.to_string().contains("/opt/rocm/lib/libolder.so ("),
            "{error}"
        );

        let broken = root.path().join("absent");
        let error = search
            .load_with(&environment(&[("OLDER_LIBRARY", &broken)]))
            .expect_err("neither is there");
        assert!(
            error.to_string().contains("absent (no such file)"),
            "{error}"
        );
    }

    #[test]
    fn a_library_that_is_too_old_ends_the_search_with_both_releases_and_a_remedy() {
        let (old, new) = (
            rocm_folder("libstandin.so.2"),
            rocm_folder("libstandin.so.2"),
        );
        let env = [("ROCM_PATH", old.path()), ("HIP_PATH", new.path())];
        let with_floor = |oldest, release| Search {
            floor: Some(Floor {
                oldest,
                release,
                lacking: "older ones can't count",
            }),
            ..SEARCH
        };
        let five_two = |_: &Loaded| Some(Release::new(5, 2));
        let error = with_floor(Release::new(5, 7), five_two)
            .load_with(&environment(&env))
            .expect_err("it says that it is too old");
        let LoadError::TooOld { found, oldest, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((*found, *oldest), (Release::new(5, 2), Release::new(5, 7)));
        let line = error.to_string();
        for part in ["ROCm 5.2", "5.7", "can't count", "STANDIN_LIBRARY"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(!line.contains('\n'), "{line}");

        for (oldest, release) in [
            (Release::new(5, 2), five_two as fn(&Loaded) -> _),
            (Release::new(5, 7), |_: &Loaded| None),
        ] {
            assert!(
                with_floor(oldest, release)
                    .load_with(&environment(&env))
                    .is_ok()
            );
        }
    }
}
