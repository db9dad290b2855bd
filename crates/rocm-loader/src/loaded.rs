//! An open library.

use std::ffi::{CStr, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::installations;

/// A shared library that stays open until the process ends.
///
/// Closing ROCm's libraries is never sound: their worker threads and exit handlers run code that `dlclose` would unmap.
#[derive(Debug)]
pub struct Loaded {
    /// The file as the system mapped it (links resolved) where that is known, else the name it was opened by.
    pub(crate) path: PathBuf,
    source: Source,
}

/// Where symbols are looked up.
#[derive(Debug)]
enum Source {
    /// One library, opened at run time.
    Library(ManuallyDrop<Library>),
    /// The dynamic linker, for what this program was linked with.
    #[cfg(unix)]
    Linked,
}

impl Loaded {
    /// The file as the system mapped it (links resolved) where that is known, else the name it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `path` is replaced by the file that really holds `symbol`, if the system reports it.
    pub(crate) fn new(library: Library, path: &Path, symbol: &CStr) -> Option<Self> {
        Self {
            path: path.to_path_buf(),
            source: Source::Library(ManuallyDrop::new(library)),
        }
        .holding(symbol)
    }

    /// The library that the dynamic linker gave this program for `symbol`.
    #[cfg(unix)]
    pub(crate) fn linked(name: &Path, symbol: &CStr) -> Option<Self> {
        Self {
            path: name.to_path_buf(),
            source: Source::Linked,
        }
        .holding(symbol)
    }

    fn holding(mut self, symbol: &CStr) -> Option<Self> {
        let address = self.symbol(symbol)?;
        if let Some(real) = file_mapped_at(address as usize) {
            self.path = real;
        }
        Some(self)
    }

    /// Whether both libraries lie in one installation, hence are of one release.
    #[must_use]
    pub fn is_together_with(&self, other: &Self) -> bool {
        let folder = |loaded: &Self| loaded.path.parent().map(Path::to_path_buf);
        match (folder(self), folder(other)) {
            (Some(first), Some(second)) => installations::together(&first, &second),
            _ => false,
        }
    }

    /// The address of a symbol; `None` if the library has none of that name.
    ///
    /// For a symbol with several versions this is the default one, the newest.
    pub fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        let address = match &self.source {
            // SAFETY: the address is only read as a number here; who calls through it answers for its type.
            Source::Library(library) => unsafe { *library.get::<*mut c_void>(name.to_bytes_with_nul()).ok()? },
            #[cfg(unix)]
            Source::Linked => linked_symbol(name),
        };
        (!address.is_null()).then_some(address)
    }
}

/// Searches in the order in which the dynamic linker resolved this program, preloaded libraries first.
///
/// Not the program's own handle (`dlopen` of null): that one does not see what was linked to a plug-in, which is how a
/// Python extension has this code.
#[cfg(unix)]
fn linked_symbol(name: &CStr) -> *mut c_void {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const core::ffi::c_char) -> *mut c_void;
    }
    // `dlfcn.h` of each system.
    const RTLD_DEFAULT: *mut c_void = core::ptr::without_provenance_mut(
        if cfg!(any(
            target_vendor = "apple",
            target_os = "freebsd",
            target_os = "netbsd",
            target_os = "openbsd",
            target_os = "dragonfly"
        )) {
            usize::MAX - 1
        } else {
            0
        },
    );
    // SAFETY: the name ends with a null byte, and RTLD_DEFAULT is a handle that every process has.
    unsafe { dlsym(RTLD_DEFAULT, name.as_ptr()) }
}

/// The file that is mapped at an address.
#[cfg(target_os = "linux")]
fn file_mapped_at(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    file_in_maps(&maps, address)
}

#[cfg(not(target_os = "linux"))]
fn file_mapped_at(_address: usize) -> Option<PathBuf> {
    None
}

/// Lines look like `7f00-7f10 r-xp 00000000 08:01 42    /opt/rocm/lib/libamdhip64.so.6`.
#[cfg(any(target_os = "linux", test))]
fn file_in_maps(maps: &str, address: usize) -> Option<PathBuf> {
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let inside = (usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?).contains(&address);
        let path = rest.find('/').map(|at| PathBuf::from(&rest[at..]));
        if inside { path } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_traced_to_its_file() {
        let maps = "1000-2000 r--p 00000000 08:01 42   /opt/rocm 6/lib/liba.so\n2000-3000 r-xp 00000000 00:00 0 \n";
        assert_eq!(
            file_in_maps(maps, 0x1fff),
            Some(PathBuf::from("/opt/rocm 6/lib/liba.so"))
        );
        assert_eq!(file_in_maps(maps, 0x2000), None);
        assert_eq!(file_in_maps(maps, 0x9000), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_program_is_linked_with_is_found_by_name_and_file() {
        let loaded = Loaded::linked(Path::new("libc"), c"getpid").expect("every program has it");
        assert!(loaded.path.is_absolute(), "{}", loaded.path.display());
        assert!(loaded.symbol(c"getppid").is_some());
        assert!(loaded.symbol(c"hipGetDeviceCount").is_none());
        assert!(Loaded::linked(Path::new("libamdhip64"), c"hipGetDeviceCount").is_none());
    }
}
