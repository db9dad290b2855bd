//! An open library.

use std::ffi::{CStr, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::Library;

/// A shared library that stays open until the process ends.
///
/// Closing ROCm's libraries is never sound: their worker threads and exit handlers run code that `dlclose` would unmap.
#[derive(Debug)]
pub struct Loaded {
    /// The file as the system mapped it (links resolved) where that can be told, else the name it was opened by.
    pub path: PathBuf,
    library: ManuallyDrop<Library>,
}

impl Loaded {
    /// `path` is replaced by the file that really holds `symbol`, if the system tells.
    pub(crate) fn new(library: Library, path: &Path, symbol: &CStr) -> Option<Self> {
        let mut loaded = Self {
            path: path.to_path_buf(),
            library: ManuallyDrop::new(library),
        };
        let address = loaded.symbol(symbol)?;
        if let Some(real) = file_mapped_at(address as usize) {
            loaded.path = real;
        }
        Some(loaded)
    }

    /// The address of a symbol; `None` if the library has none of that name.
    pub fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the address is only read as a number here; who calls through it answers for its type.
        let symbol = unsafe { self.library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
        let address = *symbol;
        (!address.is_null()).then_some(address)
    }
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
        let inside = (usize::from_str_radix(start, 16).ok()?
            ..usize::from_str_radix(end, 16).ok()?)
            .contains(&address);
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
}
