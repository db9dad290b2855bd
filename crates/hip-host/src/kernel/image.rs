//! A module's code, loaded as a library.

use std::ffi::{CStr, c_char, c_void};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use hip_sys::hipError_t;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::abi::{self, Entry, Table};

/// A module's code in the process.
pub(crate) struct Image {
    library: Library,
    table: *const Table,
    // Open as long as the library is: its number is part of the library's name, and the loader takes two libraries of
    // the same name for one.
    _file: OwnedFd,
}

// SAFETY: the table is constant data of the library, which lives as long as the image; the library handle may be used
// from any thread.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

/// Why code could not be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("the code is not for the host platform")]
    OtherPlatform,
    #[error("the code is damaged, or was made by another version of the host platform")]
    Damaged,
    #[error("cannot load the code: {0}")]
    System(String),
}

impl LoadError {
    pub(crate) fn code(&self) -> hipError_t {
        match self {
            Self::OtherPlatform => hipError_t::hipErrorNoBinaryForGpu,
            Self::Damaged => hipError_t::hipErrorInvalidImage,
            Self::System(_) => hipError_t::hipErrorSharedObjectInitFailed,
        }
    }
}

impl Image {
    /// Loads a shared library that our compiler driver made.
    pub(crate) fn load(library: &[u8]) -> std::result::Result<Self, LoadError> {
        let (file, path) = in_memory(library).map_err(|error| LoadError::System(error.to_string()))?;
        // SAFETY: the bytes were made by our compiler driver (a digest was compared), so loading runs no code but the
        // initialisers of a kernel's globals.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| LoadError::System(error.to_string()))?;
        // SAFETY: the symbol, if there, is the table our own prelude declares; its version is checked before use.
        let table = unsafe { library.get::<*const Table>(b"__hipcl_kernels\0") }
            .map_err(|_| LoadError::Damaged)?
            .into_raw() as *const Table;
        // SAFETY: the version is the first word of every version's table.
        if unsafe { (*table).version } != abi::VERSION {
            return Err(LoadError::Damaged);
        }
        Ok(Self {
            library,
            table,
            _file: file,
        })
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        // SAFETY: the table was checked at loading; it is constant and lives as long as the library.
        unsafe { std::slice::from_raw_parts((*self.table).entries, (*self.table).count as usize) }
    }

    /// The linker's name of the kernel at `index`.
    pub(crate) fn symbol_of(&self, index: usize) -> Option<String> {
        let address = self.entries().get(index)?.kernel;
        let mut info = DlInfo::empty();
        // SAFETY: the address lies in a loaded library; `info` is laid out as `Dl_info`.
        let found = unsafe { dladdr(address, &mut info) };
        if found == 0 || info.name.is_null() || info.address.cast_const() != address {
            return None;
        }
        // SAFETY: the loader's answer is a terminated string that lives as long as the library.
        Some(unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned())
    }

    pub(crate) fn index_of(&self, name: &CStr) -> Option<usize> {
        // SAFETY: only the symbol's address is used.
        let address = unsafe { self.library.get::<*const c_void>(name.to_bytes_with_nul()) }
            .ok()?
            .into_raw();
        self.entries()
            .iter()
            .position(|entry| entry.kernel == address.cast_const())
    }
}

#[repr(C)]
struct DlInfo {
    file: *const c_char,
    base: *mut c_void,
    name: *const c_char,
    address: *mut c_void,
}

impl DlInfo {
    fn empty() -> Self {
        Self {
            file: std::ptr::null(),
            base: std::ptr::null_mut(),
            name: std::ptr::null(),
            address: std::ptr::null_mut(),
        }
    }
}

/// A symbol as the loader keeps it, `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// `RTLD_DL_SYMENT`: the extra answer is the symbol.
const WITH_SYMBOL: std::ffi::c_int = 1;

unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut DlInfo) -> std::ffi::c_int;
    fn dladdr1(
        address: *const c_void,
        info: *mut DlInfo,
        extra: *mut *const Symbol,
        flags: std::ffi::c_int,
    ) -> std::ffi::c_int;
}

/// Puts bytes where the loader finds them: in memory, or in an unnamed file where that is unavailable.
fn in_memory(bytes: &[u8]) -> std::io::Result<(OwnedFd, PathBuf)> {
    let fd = match rustix::fs::memfd_create("hip-host module", rustix::fs::MemfdFlags::CLOEXEC) {
        Ok(fd) => fd,
        Err(_) => tempfile::tempfile()?.into(),
    };
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes)?;
    let fd = OwnedFd::from(file);
    let path = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    Ok((fd, path))
}

impl Image {
    /// Address and size of a variable in the module's data.
    pub(crate) fn variable(&self, name: &CStr) -> Option<(usize, usize)> {
        // SAFETY: only the symbol's address is used.
        let address = unsafe { self.library.get::<*const c_void>(name.to_bytes_with_nul()) }
            .ok()?
            .into_raw();
        let mut info = DlInfo::empty();
        let mut symbol: *const Symbol = std::ptr::null();
        // SAFETY: `info` and `symbol` are laid out as the loader's; the flag asks for a symbol.
        let found = unsafe { dladdr1(address, &mut info, &mut symbol, WITH_SYMBOL) };
        let own = self.library_base();
        if found == 0 || symbol.is_null() || info.address != address || own != Some(info.base as usize) {
            return None;
        }
        // SAFETY: the loader's answer, which lives as long as the library.
        let (kind, size) = unsafe { ((*symbol).info & 0xf, (*symbol).size) };
        const OBJECT: u8 = 1;
        (kind == OBJECT && size > 0).then_some((address as usize, size as usize))
    }

    /// Where the library was loaded: a name from a library it needs is not a variable of the module.
    fn library_base(&self) -> Option<usize> {
        let mut info = DlInfo::empty();
        // SAFETY: the table lies in the library; `info` is laid out as `Dl_info`.
        let found = unsafe { dladdr(self.table.cast(), &mut info) };
        (found != 0).then_some(info.base as usize)
    }
}
