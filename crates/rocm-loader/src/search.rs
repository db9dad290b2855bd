//! Where a library is looked for.

use std::ffi::{CStr, OsStr, OsString};
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::elf::{self, Verdict};
use crate::{Floor, LoadError, Loaded, Tried, installations, once};

/// How one library is found.
///
/// Order: the file that `env` names (then nothing else is tried); a copy that this process already has; the `lib`
/// folders of `$ROCM_PATH` and `$HIP_PATH`; the names in `sonames` and the bare name, left to the dynamic linker;
/// `/opt/rocm/lib`; the releases in `/opt/rocm/core-*` and in `/opt/rocm-*`, the newest of each first; AMD's wheels in
/// the active Python environment; all that for `fallback`. A file that is found but unusable is passed over, and the
/// reason kept.
///
/// In a folder the names in `sonames` are tried first, then the bare name, then versioned names with a greater number:
/// a library that is newer than any known here is taken where no known one is.
///
/// A loaded file stays in the process for good, so two failures end the search: a release below `floor`, and a second
/// file of a library in `once`.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// The library without suffix, such as `libamdhip64`.
    pub library: &'static str,
    /// The environment variable that names the file explicitly.
    pub env: &'static str,
    /// Versioned names, in the order in which they are tried: the newest known first, the one that comes after it
    /// second.
    pub sonames: &'static [&'static str],
    /// A function that every release has: a file without it is another library.
    pub key_symbol: &'static CStr,
    /// Libraries (without suffix) that keep state, so a process may have one file of each: two are
    /// [`LoadError::TwoCopies`]. Checked on Linux.
    pub once: &'static [&'static str],
    /// A library that holds the same functions in some releases, used if this one is not found.
    pub fallback: Option<&'static Search>,
    /// The oldest release that is accepted, where the library can tell.
    pub floor: Option<Floor>,
}

impl Search {
    /// The first usable copy in the search order.
    ///
    /// # Errors
    /// [`LoadError::NotFound`] with every place that was tried; the particular error of the file that `env` names;
    /// [`LoadError::TooOld`] and [`LoadError::TwoCopies`].
    ///
    /// # Safety
    /// Files of these names are libraries whose initialisers may run in this process, and `floor` calls the functions
    /// of one as they are.
    pub unsafe fn load(&self) -> Result<Loaded, LoadError> {
        self.load_on(&Machine {
            env: &|name| std::env::var_os(name),
            opt: Path::new(installations::OPT),
        })
    }

    /// As [`Search::load`], on this machine.
    fn load_on(&self, machine: &Machine<'_>) -> Result<Loaded, LoadError> {
        match machine.value(self.env) {
            Some(path) => self
                .load_file(Path::new(&path))
                .map_err(|error| error.named_by(self.env)),
            None => self.find(machine).and_then(|loaded| self.accept(loaded)),
        }
    }

    fn find(&self, machine: &Machine<'_>) -> Result<Loaded, LoadError> {
        if let Some(loaded) = self.already_in_process() {
            return Ok(loaded);
        }
        let mut attempts = Attempts::default();
        for variable in ["ROCM_PATH", "HIP_PATH"] {
            if let Some(root) = machine.value(variable) {
                attempts.folder(self, &Path::new(&root).join("lib"));
            }
        }
        attempts.all(self.names().map(PathBuf::from), |name| self.open(name));
        for root in installations::roots(machine.opt) {
            attempts.folder(self, &root.join("lib"));
        }
        for folder in installations::wheels(&|name| machine.value(name)) {
            attempts.folder(self, &folder);
        }
        attempts.finish(self, |fallback| fallback.load_on(machine))
    }

    /// Loads one file.
    ///
    /// # Errors
    /// Every [`LoadError`] except [`LoadError::NotFound`]: what is wrong with this file.
    ///
    /// # Safety
    /// As for [`load`](Self::load), of this file: safe code cannot open one.
    pub unsafe fn load_from(&self, path: &Path) -> Result<Loaded, LoadError> {
        self.load_file(path)
    }

    fn load_file(&self, path: &Path) -> Result<Loaded, LoadError> {
        self.open_file(path).and_then(|loaded| self.accept(loaded))
    }

    fn open_file(&self, path: &Path) -> Result<Loaded, LoadError> {
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

    /// Loads the copy in the folder of another library, or in the wheel that belongs to that library's, so both are of
    /// one release.
    ///
    /// # Errors
    /// [`LoadError::NotFound`] with the files of those folders that were tried; [`LoadError::TooOld`] and
    /// [`LoadError::TwoCopies`].
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    pub unsafe fn load_beside(&self, neighbour: &Loaded) -> Result<Loaded, LoadError> {
        self.load_next_to(neighbour)
    }

    fn load_next_to(&self, neighbour: &Loaded) -> Result<Loaded, LoadError> {
        self.find_beside(neighbour).and_then(|loaded| self.accept(loaded))
    }

    fn find_beside(&self, neighbour: &Loaded) -> Result<Loaded, LoadError> {
        let folder = neighbour.path.parent().unwrap_or(Path::new(""));
        let mut attempts = Attempts::default();
        attempts.folder(self, folder);
        for other in installations::beside(folder) {
            attempts.folder(self, &other);
        }
        attempts.finish(self, |fallback| {
            // The neighbour may be the fallback's library under a name of its own.
            fallback.load_next_to(neighbour).or_else(|error| match error {
                LoadError::NotFound { .. } => fallback.open_file(&neighbour.path).map_err(|_| error),
                _ => Err(error),
            })
        })
    }

    /// The library that the dynamic linker gave this program at its start, because the program was linked with it.
    ///
    /// `function` is the address of one of the library's functions, as the program sees it: what refers to it makes the
    /// linker record the library. It is not called.
    ///
    /// # Errors
    /// [`LoadError::TwoCopies`]; [`LoadError::NotLinked`] if the dynamic linker has no such symbol for this program.
    ///
    /// # Safety
    /// As for [`load`](Self::load). The answer's path, beside which further libraries are opened, may be the name in
    /// this search: the system need not know a file for the symbol.
    ///
    /// Hence safe code cannot say where a neighbour lies:
    ///
    /// ```compile_fail,E0133
    /// use rocm_loader::{LoadError, Loaded, Search};
    ///
    /// extern "C" fn function() {}
    ///
    /// fn linked(search: &Search) -> Result<Loaded, LoadError> {
    ///     search.linked(function)
    /// }
    /// ```
    #[cfg(unix)]
    #[doc(hidden)]
    pub unsafe fn linked(&self, function: unsafe extern "C" fn()) -> Result<Loaded, LoadError> {
        core::hint::black_box(function);
        Loaded::linked(self.library.as_ref(), self.key_symbol)
            .ok_or(LoadError::NotLinked {
                library: self.library,
                symbol: self.key_symbol.to_str().unwrap_or("?"),
            })
            .and_then(|loaded| self.accept(loaded))
    }

    /// Whether what was found can be used: the process has no second copy of a runtime, which this library may have
    /// brought along, and it is recent enough.
    fn accept(&self, loaded: Loaded) -> Result<Loaded, LoadError> {
        once::check(self.once)?;
        let Some(floor) = self.floor else {
            return Ok(loaded);
        };
        match (floor.release)(&loaded) {
            Some(found) if found.is_before(floor.oldest) => Err(LoadError::TooOld {
                library: self.library,
                path: loaded.path,
                found,
                oldest: floor.oldest,
                lacking: floor.lacking,
                variable: self.env,
                env: None,
            }),
            _ => Ok(loaded),
        }
    }

    /// Versioned names, then the bare one.
    fn names(&self) -> impl Iterator<Item = String> + use<'_> {
        let bare = format!("{}.so", self.library);
        self.sonames
            .iter()
            .map(|name| (*name).to_owned())
            .chain(std::iter::once(bare))
    }

    /// Where this library may be in a folder. That it is there is certain only of a newer one than known.
    fn files_in(&self, folder: &Path) -> impl Iterator<Item = PathBuf> {
        let newer = self.newer_in(folder).into_iter();
        let names = self.names().chain(newer);
        names.map(|name| folder.join(name)).collect::<Vec<_>>().into_iter()
    }

    /// The versioned names in a folder whose number is greater than that of every known name, the smallest first: the
    /// less it is ahead, the more of it is known.
    fn newer_in(&self, folder: &Path) -> Vec<String> {
        let versioned = format!("{}.so.", self.library);
        let number = |name: &str| name.strip_prefix(&versioned)?.parse::<u32>().ok();
        let newest = self.sonames.iter().filter_map(|name| number(name)).max();
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut newer: Vec<(u32, String)> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter_map(|name| Some((number(&name)?, name)))
            .filter(|(number, _)| Some(*number) > newest)
            .collect();
        newer.sort();
        newer.into_iter().map(|(_, name)| name).collect()
    }

    /// Calls the dynamic linker. A name without a slash goes through its own search path.
    fn open(&self, path: &Path) -> Result<Loaded, LoadError> {
        let library = open_now(path.as_os_str()).map_err(|error| LoadError::Open {
            library: self.library,
            path: path.to_path_buf(),
            reason: one_line(&error, path),
            env: None,
        })?;
        Loaded::new(library, path, self.key_symbol).ok_or_else(|| LoadError::MissingSymbol {
            library: self.library,
            path: path.to_path_buf(),
            symbol: self.key_symbol.to_str().unwrap_or("?"),
            env: None,
        })
    }

    /// A copy that something else in this process loaded must be used: two copies of a runtime do not know each other's
    /// memory.
    #[cfg(target_os = "linux")]
    fn already_in_process(&self) -> Option<Loaded> {
        use libloading::os::unix;
        // `dlfcn.h`: give the library only if it is resident. libloading does not name this flag.
        const RTLD_NOLOAD: i32 = 4;
        self.names().find_map(|name| {
            // SAFETY: with RTLD_NOLOAD nothing is mapped and no initialiser runs.
            let library = unsafe { unix::Library::open(Some(&name), unix::RTLD_LAZY | RTLD_NOLOAD) }.ok()?;
            Loaded::new(library.into(), Path::new(&name), self.key_symbol)
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn already_in_process(&self) -> Option<Loaded> {
        None
    }
}

/// What a search reads of the machine it runs on.
struct Machine<'a> {
    env: &'a dyn Fn(&str) -> Option<OsString>,
    /// The folder of installations.
    opt: &'a Path,
}

impl Machine<'_> {
    /// A variable that is set to nothing counts as unset.
    fn value(&self, name: &str) -> Option<OsString> {
        (self.env)(name).filter(|value| !value.is_empty())
    }
}

/// The first success, or what was tried until then.
#[derive(Default)]
struct Attempts {
    loaded: Option<Loaded>,
    tried: Vec<Tried>,
}

impl Attempts {
    /// Tries places in turn, unless an earlier one had the library.
    fn all(&mut self, places: impl Iterator<Item = PathBuf>, load: impl Fn(&Path) -> Result<Loaded, LoadError>) {
        for path in places {
            if self.loaded.is_some() {
                return;
            }
            match load(&path) {
                Ok(loaded) => self.loaded = Some(loaded),
                Err(error) => self.tried.push(Tried {
                    path,
                    reason: error.reason(),
                }),
            }
        }
    }

    /// Tries the files of a folder, unless an earlier place had the library.
    fn folder(&mut self, search: &Search, folder: &Path) {
        self.all(search.files_in(folder), |path| search.open_file(path));
    }

    fn finish(
        self,
        search: &Search,
        load_fallback: impl FnOnce(&Search) -> Result<Loaded, LoadError>,
    ) -> Result<Loaded, LoadError> {
        let mut tried = self.tried;
        if let Some(loaded) = self.loaded {
            return Ok(loaded);
        }
        match search.fallback.map(load_fallback) {
            Some(Ok(loaded)) => return Ok(loaded),
            Some(Err(LoadError::NotFound { tried: more, .. })) => tried.extend(more),
            Some(Err(error @ (LoadError::TooOld { .. } | LoadError::TwoCopies { .. }))) => {
                return Err(error);
            }
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

/// Undefined symbols show here, as an error, and not in the middle of a call.
#[cfg(unix)]
fn open_now(name: &OsStr) -> Result<Library, libloading::Error> {
    use libloading::os::unix;
    // SAFETY: the file's initialisers run. The callers of the public functions promised that they may, for the names
    // that they gave; a user who sets the environment's paths can run code in this process anyway.
    unsafe { unix::Library::open(Some(name), unix::RTLD_NOW | unix::RTLD_LOCAL) }.map(Library::from)
}

#[cfg(not(unix))]
fn open_now(name: &OsStr) -> Result<Library, libloading::Error> {
    // SAFETY: as on Unix.
    unsafe { Library::new(name) }
}

/// The dynamic linker's words without line breaks and without what the reader sees beside them: the name, and that a
/// file that was not found could not be opened.
fn one_line(error: &libloading::Error, path: &Path) -> String {
    let text = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = format!("{}: ", path.display());
    match text.strip_prefix(&named).unwrap_or(&text) {
        "cannot open shared object file: No such file or directory" => "not found".to_owned(),
        reason => reason.to_owned(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
