//! A module's code, loaded as a library.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use hip_sys::hipError_t;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::abi::{self, Entry, Parameter, Table};
use super::container::Code;
use super::elf::{self, Layout, Refusal};
use crate::sanitizer;

/// A module's code in the process.
pub(crate) struct Image {
    library: Library,
    table: *const Table,
    // Open as long as the library is: its number is part of the library's name (see `open`).
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
    #[error(
        "the code was made by another compiler, for another processor, with other checks, or by another version of the \
         host platform: compile it again"
    )]
    OtherMaker,
    #[error("the code is not loaded: {0}")]
    Refused(#[from] Refusal),
    #[error("the code could not be loaded: {0}")]
    System(String),
}

impl LoadError {
    pub(crate) fn code(&self) -> hipError_t {
        match self {
            Self::OtherPlatform | Self::OtherMaker => hipError_t::hipErrorNoBinaryForGpu,
            Self::Damaged | Self::Refused(_) => hipError_t::hipErrorInvalidImage,
            Self::System(_) => hipError_t::hipErrorSharedObjectInitFailed,
        }
    }
}

impl Image {
    /// Loads a shared library that our compiler driver made.
    ///
    /// It holds the caller's code too, so neither that it loads quietly nor what its table says is taken on trust.
    pub(crate) fn load(code: &Code<'_>) -> std::result::Result<Self, LoadError> {
        let checked = sanitizer::runtime().is_some();
        let layout = elf::examine(code.library, &code.table, checked)?;
        // SAFETY: loading it runs no code of it but the sanitizer's, which is asked for.
        let (library, file) = unsafe { open(code.library) }?;
        // SAFETY: only the symbol's address is used.
        let table = unsafe { library.get::<*const c_void>(code.table.as_bytes()) }
            .map_err(|_| LoadError::Damaged)?
            .into_raw() as *const Table;
        let image = Self {
            library,
            table,
            _file: file,
        };
        let base = (table as u64).wrapping_sub(layout.table);
        if image.library_base().map(|start| start as u64) != Some(base.wrapping_add(layout.start)) {
            return Err(LoadError::Damaged);
        }
        // SAFETY: the library is loaded at `base`, as its own headers and the loader agree.
        if !unsafe { is_sound(table, base, &layout) } {
            return Err(LoadError::Damaged);
        }
        Ok(image)
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

/// Whether the table, its entries and their lists of parameters lie where nothing can write, and name code.
///
/// # Safety
/// The library that `layout` describes is loaded at `base`.
unsafe fn is_sound(table: *const Table, base: u64, layout: &Layout) -> bool {
    fn lies_in<T>(layout: &Layout, base: u64, at: *const T, count: u32) -> bool {
        let start = (at as u64).wrapping_sub(base);
        let end = start.checked_add(u64::from(count) * size_of::<T>() as u64);
        at.is_aligned() && end.is_some_and(|end| layout.is_read_only(start..end))
    }
    if !lies_in(layout, base, table, 1) {
        return false;
    }
    // SAFETY: the table is aligned and readable; it holds integers and a pointer, which every bit pattern is.
    let table = unsafe { &*table };
    if table.version != abi::VERSION || !lies_in(layout, base, table.entries, table.count) {
        return false;
    }
    (0..table.count as usize).all(|index| {
        // SAFETY: the entries are aligned and readable. Their functions are read as addresses, which may be null.
        let (functions, parameters, count) = unsafe {
            let entry = table.entries.add(index);
            let functions = [
                (&raw const (*entry).run_blocks).cast::<usize>().read(),
                (&raw const (*entry).run_thread).cast::<usize>().read(),
            ];
            (functions, (*entry).parameters, (*entry).parameter_count)
        };
        functions
            .iter()
            .all(|&at| layout.is_code((at as u64).wrapping_sub(base)))
            && lies_in::<Parameter>(layout, base, parameters, count)
    })
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

/// `RTLD_NOLOAD`: opens a library only if the process has it already.
const NOT_ANEW: c_int = 4;

/// Opens a library that lies in memory, under a name that no other one in the process has: the loader takes two libraries
/// of the same name for one.
///
/// The name is that of an open file's number, which is free again when the file is closed, while a library may stay.
///
/// # Safety
/// The library's initialisers may run.
unsafe fn open(bytes: &[u8]) -> std::result::Result<(Library, OwnedFd), LoadError> {
    let failed = |error: &dyn std::fmt::Display| LoadError::System(error.to_string());
    let mut file = in_memory(bytes).map_err(|error| failed(&error))?;
    loop {
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        // SAFETY: opens nothing anew.
        if unsafe { Library::open(Some(&path), RTLD_NOW | NOT_ANEW) }.is_err() {
            // SAFETY: the caller's promise.
            let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
            return Ok((library.map_err(|error| failed(&error))?, file));
        }
        let next = rustix::io::fcntl_dupfd_cloexec(&file, file.as_raw_fd() + 1);
        file = next.map_err(|error| failed(&error))?;
    }
}

/// Puts bytes where the loader finds them: in memory, or in an unnamed file where that is unavailable.
fn in_memory(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let Ok(fd) = memfd_create("hip-host module", flags) else {
        // An unnamed file takes no seal.
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        return Ok(file.into());
    };
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes)?;
    seal(&file, bytes)?;
    Ok(file.into())
}

/// Forbids all changes of a file in memory that holds these bytes. The loader maps the file, so a program that opened it
/// by the process's list of descriptors would change code that runs.
fn seal(file: &std::fs::File, bytes: &[u8]) -> std::io::Result<()> {
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(file, seals).map_err(|error| {
        let reason = "another part of the program opened its file and forbids to seal it";
        std::io::Error::other(format!("{reason} ({error}); load the code again"))
    })?;
    check_written(file, bytes)
}

/// That the file holds these bytes and no others: it could be written until it was sealed.
fn check_written(file: &std::fs::File, bytes: &[u8]) -> std::io::Result<()> {
    let mut written = vec![0; bytes.len()];
    file.read_exact_at(&mut written, 0)?;
    match file.metadata()?.len() == bytes.len() as u64 && written == bytes {
        true => Ok(()),
        false => Err(std::io::Error::other("its file was changed while it was written")),
    }
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A library that stays in the process for good, with a function that returns `number`.
    fn staying(number: i32) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let [source, library] = ["one.c", "one.so"].map(|name| folder.path().join(name));
        std::fs::write(&source, format!("int number(void) {{ return {number}; }}\n")).unwrap();
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-Wl,-z,nodelete", "-o"])
            .args([&library, &source]);
        assert!(compiler.status().unwrap().success());
        std::fs::read(library).unwrap()
    }

    #[test]
    fn a_library_that_stays_in_the_process_is_not_taken_for_the_next() {
        for number in 1..=3 {
            // SAFETY: it has no initialisers.
            let (library, _file) = unsafe { open(&staying(number)) }.unwrap();
            // SAFETY: the function's type.
            let call = unsafe { library.get::<unsafe extern "C" fn() -> c_int>(b"number\0") }.unwrap();
            // SAFETY: as above; it takes nothing.
            assert_eq!(unsafe { call() }, number);
        }
    }

    #[test]
    fn the_file_behind_loaded_code_cannot_be_written() {
        let bytes = staying(7);
        // SAFETY: it has no initialisers.
        let (_library, file) = unsafe { open(&bytes) }.unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let again = std::fs::OpenOptions::new().write(true).open(&path);
        assert!(again.and_then(|mut file| file.write_all(b"no code")).is_err());
        assert_eq!(std::fs::read(path).unwrap(), bytes);
    }

    #[test]
    fn code_whose_file_cannot_be_sealed_is_not_loaded() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        for (others, taken) in [(SealFlags::empty(), true), (SealFlags::SEAL, false)] {
            let mut file = std::fs::File::from(memfd_create("module", flags).unwrap());
            file.write_all(b"module").unwrap();
            fcntl_add_seals(&file, others).unwrap();
            assert_eq!(seal(&file, b"module").is_ok(), taken, "{others:?}");
        }
    }

    #[test]
    fn code_that_was_changed_before_it_was_sealed_is_not_loaded() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"module").unwrap();
        assert!(check_written(&file, b"module").is_ok());
        for other in [&b"Module"[..], b"modul", b"modules", b""] {
            assert!(check_written(&file, other).is_err());
        }
    }
}
