//! Finds and opens OpenCL libraries.
//!
//! The order: the library named by `HIPCL_OPENCL`, and then nothing else; the system's ICD loader;
//! the drivers named by the `*.icd` files of a `hipcl-opencl` folder. A library that was opened is
//! never closed, because its functions are in tables that outlive every owner.

mod drivers;
mod icd;

use std::any::Any;
use std::ffi::{CStr, OsString, c_void};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::elf::{FileHeader64, PT_LOAD};
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};

use crate::api::Api;
use crate::ending::{self, First};
use crate::error::{Error, Tried};
use crate::handle::Handle;
use crate::platform;

/// Names an OpenCL library to use instead of searching for one.
const LIBRARY_VARIABLE: &str = "HIPCL_OPENCL";

/// An opened OpenCL library. It is never closed.
pub(crate) struct Library {
    pub path: PathBuf,
    /// What the hook returned that saw the library's table.
    pub _kept: Arc<dyn Any + Send + Sync>,
}

/// How a library came to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Variable,
    System,
    DriverFile,
}

/// An opened library with at least one platform.
pub(crate) struct Opened {
    pub path: PathBuf,
    pub origin: Origin,
    pub platforms: Vec<(Handle, Api)>,
}

/// Opens every library of the search order that yields a platform.
pub(crate) fn open_all(hook: &dyn Fn(&mut Api)) -> (Vec<Opened>, Vec<Tried>) {
    let mut search = Search {
        hook,
        opened: Vec::new(),
        tried: Vec::new(),
    };
    if let Some(path) = named() {
        search.attempt(Path::new(&path), Origin::Variable);
        return (search.opened, search.tried);
    }
    for name in ["libOpenCL.so.1", "libOpenCL.so"] {
        search.attempt(Path::new(name), Origin::System);
    }
    let folders = drivers::folders();
    for folder in &folders {
        for driver in drivers::named_in(folder) {
            match driver {
                Ok(path) => search.attempt(&path, Origin::DriverFile),
                Err(failure) => search.tried.push(failure),
            }
        }
    }
    if folders.is_empty() {
        search.tried.push(Tried {
            path: PathBuf::from(drivers::FOLDER),
            reason: "no such folder above the executable or in a `target` folder".to_owned(),
        });
    }
    (search.opened, search.tried)
}

/// The library that the environment names.
fn named() -> Option<OsString> {
    std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty())
}

struct Search<'a> {
    hook: &'a dyn Fn(&mut Api),
    opened: Vec<Opened>,
    tried: Vec<Tried>,
}

impl Search<'_> {
    fn attempt(&mut self, path: &Path, origin: Origin) {
        match open(path, self.hook) {
            Ok(mut platforms) => {
                for (platform, _) in &platforms {
                    ending::register_behind(platform.0.addr(), First::Load);
                }
                // A driver that the system's loader found already answers with the same platforms.
                let known = |id: &Handle| self.opened.iter().any(|o| o.platforms.iter().any(|(p, _)| p == id));
                platforms.retain(|(id, _)| !known(id));
                if !platforms.is_empty() {
                    self.opened.push(Opened {
                        path: path.to_owned(),
                        origin,
                        platforms,
                    });
                }
            }
            Err(reason) => self.tried.push(Tried {
                path: path.to_owned(),
                reason,
            }),
        }
    }
}

/// Opens one library and queries its platforms.
fn open(path: &Path, hook: &dyn Fn(&mut Api)) -> std::result::Result<Vec<(Handle, Api)>, String> {
    // The dynamic linker would wait for a pipe's writer.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    // A name without a folder is the dynamic linker's to find, and other files are its to refuse.
    if let Some((length, needed)) = File::open(path).ok().and_then(truncated) {
        return Err(format!("it is truncated: {length} of {needed} bytes; install it again"));
    }
    // SAFETY: loading runs the library's initialisers. The library is one that the system or the
    // user names as its OpenCL implementation, which is made to be loaded this way.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| one_line(&error))?;
    // Never closed: the table's functions must stay valid for ever.
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    let resolve = |name: &CStr| {
        // SAFETY: the symbol is only taken as an address here.
        unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }
            .ok()
            .map(|symbol| *symbol)
    };
    // SAFETY: a library with these names exports OpenCL's functions under them, with OpenCL's
    // signatures, and it is never closed.
    let mut api = unsafe { Api::from_symbols(resolve) };
    if api.clGetPlatformIDs.is_none() || api.clCreateContext.is_none() {
        return icd::open(&api, &resolve, hook);
    }
    hook(&mut api);
    let platforms = platform::all(&api).map_err(|error| error.to_string())?;
    if platforms.is_empty() {
        return Err("it reports no platform".to_owned());
    }
    Ok(platforms.into_iter().map(|id| (id, api)).collect())
}

/// The length of a file and the length that its segments need, if it is shorter: the dynamic linker would map such a
/// library, and the process die of SIGBUS at the first missing page.
fn truncated(file: File) -> Option<(u64, u64)> {
    let length = file.metadata().ok()?.len();
    let file = ReadCache::new(file);
    let header = FileHeader64::<object::NativeEndian>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let Ok(segments) = header.program_headers(endian, &file) else {
        // Not even these are there.
        let all = u64::from(header.e_phnum(endian)) * u64::from(header.e_phentsize(endian));
        return Some((length, header.e_phoff(endian).saturating_add(all)));
    };
    let loaded = segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD);
    let ends = loaded.map(|segment| segment.p_offset(endian).saturating_add(segment.p_filesz(endian)));
    ends.max()
        .filter(|&needed| needed > length)
        .map(|needed| (length, needed))
}

/// A loader's message without its line breaks.
fn one_line(error: &dyn std::error::Error) -> String {
    let text = match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The error for a search that found no device.
pub(crate) fn nothing_found(tried: Vec<Tried>) -> Error {
    Error::NoRuntime {
        tried,
        is_named: named().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_no_opencl_is_refused_with_a_reason() {
        let reason = open(Path::new("libc.so.6"), &|_| {}).err().unwrap();
        assert!(reason.contains("clGetPlatformIDs"), "{reason}");
        let reason = open(Path::new("/dev/zero"), &|_| {}).err().unwrap();
        assert_eq!(reason, "it is not a regular file");
        let reason = open(Path::new("/nowhere/libnone.so"), &|_| {}).err().unwrap();
        assert!(
            reason.contains("/nowhere/libnone.so") && !reason.contains('\n'),
            "{reason}"
        );
    }

    #[test]
    fn a_truncated_library_is_refused_wherever_it_was_cut() {
        let whole = std::env::current_exe().unwrap();
        assert_eq!(truncated(File::open(&whole).unwrap()), None);
        let bytes = std::fs::read(&whole).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libcut.so");
        for length in [64, 100, 4096, bytes.len() / 2] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let reason = open(&path, &|_| {}).err().unwrap();
            assert!(
                reason.starts_with(&format!("it is truncated: {length} of ")),
                "{reason}"
            );
        }
    }
}
