//! Compiled programs kept in memory and on disk.
//!
//! The key is the content: source, what it includes, options, device, driver and platform. A file
//! that is missing, truncated, altered or of another key means that the program is compiled; so does
//! a folder that can't be read or written, and an include that can't be followed. Readers take no
//! lock: a file appears under its name only once it is complete.

mod includes;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use includes::Includes;
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::Result;
use crate::program::{ARGUMENT_INFO, Program};

/// Changed whenever the meaning of a key or the form of a file does.
const FORMAT: &[u8; 16] = b"hipcl-clprog-002";
const FOLDER_VARIABLE: &str = "HIPCL_CACHE_DIR";
const DIGEST: usize = blake3::OUT_LEN;

/// Programs of one context, compiled at most once. A clone is the same cache.
#[derive(Clone)]
pub struct ProgramCache(Arc<Inner>);

struct Inner {
    context: Context,
    folder: Option<PathBuf>,
    memory: Mutex<HashMap<blake3::Hash, Arc<Mutex<Option<Program>>>>>,
    memory_hits: AtomicU64,
    disk_hits: AtomicU64,
    compiled: AtomicU64,
    disk_trouble: Mutex<Option<String>>,
}

/// Where a cache's programs came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheStats {
    /// Requests answered from memory.
    pub memory_hits: u64,
    /// Requests answered from disk.
    pub disk_hits: u64,
    /// Requests that compiled.
    pub compiled: u64,
    /// The last trouble with the disk, or with an include that could not be followed; it cost a
    /// compilation and nothing else.
    pub disk_trouble: Option<String>,
}

impl ProgramCache {
    /// A cache in the folder that `HIPCL_CACHE_DIR` names, else in the user's cache folder; without
    /// either, in memory only.
    #[must_use]
    pub fn open(context: &Context) -> Self {
        let named = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty());
        let folder = match named {
            Some(folder) => Some(PathBuf::from(folder)),
            None => directories::BaseDirs::new().map(|base| base.cache_dir().join("hipcl")),
        };
        Self::with_folder(context, folder.map(|folder| folder.join("opencl")))
    }

    /// A cache in `folder`, which is created when it is first written to.
    #[must_use]
    pub fn open_in(context: &Context, folder: &Path) -> Self {
        Self::with_folder(context, Some(folder.to_owned()))
    }

    /// A cache that keeps nothing on disk.
    #[must_use]
    pub fn in_memory(context: &Context) -> Self {
        Self::with_folder(context, None)
    }

    fn with_folder(context: &Context, folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner {
            context: context.clone(),
            folder,
            memory: Mutex::default(),
            memory_hits: AtomicU64::new(0),
            disk_hits: AtomicU64::new(0),
            compiled: AtomicU64::new(0),
            disk_trouble: Mutex::default(),
        }))
    }

    /// The program of this source and these options, compiled only if it is nowhere kept.
    ///
    /// Threads that ask for the same program at once wait for one compilation. A program is another
    /// one when a file that it includes has changed; one with an include that can't be followed, by a
    /// macro or in a folder of the compiler's own, is compiled each time.
    ///
    /// # Errors
    ///
    /// As [`Program::build`]. Trouble with the disk is no error, see [`stats`](Self::stats).
    pub fn get(&self, source: &str, options: &str) -> Result<Program> {
        let inner = &*self.0;
        let key = match includes::of(source, options) {
            Ok(includes) => self.key(source, &includes, options),
            Err(reason) => {
                *inner.disk_trouble.lock() = Some(format!("not kept: {reason}"));
                let program = Program::build(&inner.context, source, options)?;
                inner.compiled.fetch_add(1, Ordering::Relaxed);
                return Ok(program);
            }
        };
        let place = inner.memory.lock().entry(key).or_default().clone();
        // The compiler runs under the lock of this one key.
        let mut kept = place.lock();
        if let Some(program) = &*kept {
            inner.memory_hits.fetch_add(1, Ordering::Relaxed);
            return Ok(program.clone());
        }
        let program = match self.read(key, options) {
            Some(program) => {
                inner.disk_hits.fetch_add(1, Ordering::Relaxed);
                program
            }
            None => {
                let program = Program::build(&inner.context, source, options)?;
                inner.compiled.fetch_add(1, Ordering::Relaxed);
                self.write(key, &program);
                program
            }
        };
        *kept = Some(program.clone());
        Ok(program)
    }

    /// Where the programs came from so far.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let inner = &*self.0;
        CacheStats {
            memory_hits: inner.memory_hits.load(Ordering::Relaxed),
            disk_hits: inner.disk_hits.load(Ordering::Relaxed),
            compiled: inner.compiled.load(Ordering::Relaxed),
            disk_trouble: inner.disk_trouble.lock().clone(),
        }
    }

    /// The cache's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The cache's folder, if it has one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.0.folder.as_deref()
    }

    fn key(&self, source: &str, includes: &Includes, options: &str) -> blake3::Hash {
        let device = self.0.context.device();
        let mut hasher = blake3::Hasher::new();
        hasher.update(FORMAT);
        // The length keeps two parts from being taken for another division of the same text.
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        for part in [
            source,
            options,
            ARGUMENT_INFO,
            device.name(),
            device.version(),
            device.driver_version(),
            device.platform_name(),
            device.platform_version(),
        ] {
            add(part.as_bytes());
        }
        for (path, content) in includes {
            add(path.as_os_str().as_encoded_bytes());
            add(&[u8::from(content.is_some())]);
            add(content.as_deref().unwrap_or_default());
        }
        hasher.finalize()
    }

    fn path(&self, key: blake3::Hash) -> Option<PathBuf> {
        Some(self.0.folder.as_ref()?.join(format!("{key}.bin")))
    }

    fn read(&self, key: blake3::Hash, options: &str) -> Option<Program> {
        let path = self.path(key)?;
        let file = match fs::read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.trouble(&path, &error);
                return None;
            }
        };
        let Some(binary) = unpack(key, &file) else {
            self.trouble(&path, &"not a complete program of this key");
            return None;
        };
        Program::from_binary(&self.0.context, binary, options)
            .inspect_err(|error| self.trouble(&path, error))
            .ok()
    }

    fn write(&self, key: blake3::Hash, program: &Program) {
        let (Some(folder), Some(path)) = (self.0.folder.as_ref(), self.path(key)) else {
            return;
        };
        match program.binary() {
            Ok(binary) if binary.is_empty() => {}
            Ok(binary) => {
                if let Err(error) = replace(folder, &path, &pack(key, &binary)) {
                    self.trouble(&path, &error);
                }
            }
            Err(error) => self.trouble(&path, &error),
        }
    }

    fn trouble(&self, path: &Path, what: &dyn fmt::Display) {
        *self.0.disk_trouble.lock() = Some(format!("{}: {what}", path.display()));
    }
}

impl fmt::Debug for ProgramCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramCache")
            .field("folder", &self.0.folder)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// A file: format, key, digest of the binary, binary.
fn pack(key: blake3::Hash, binary: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(FORMAT.len() + 2 * DIGEST + binary.len());
    file.extend_from_slice(FORMAT);
    file.extend_from_slice(key.as_bytes());
    file.extend_from_slice(blake3::hash(binary).as_bytes());
    file.extend_from_slice(binary);
    file
}

/// The binary of a file, if the file is whole and of this key.
fn unpack(key: blake3::Hash, file: &[u8]) -> Option<&[u8]> {
    let rest = file.strip_prefix(FORMAT)?.strip_prefix(key.as_bytes())?;
    let (digest, binary) = rest.split_at_checked(DIGEST)?;
    (!binary.is_empty() && blake3::hash(binary).as_bytes() == digest).then_some(binary)
}

/// Puts a complete file in place of `path`; other processes see the old one or the new one.
fn replace(folder: &Path, path: &Path, content: &[u8]) -> std::io::Result<()> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    fs::create_dir_all(folder)?;
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{}.{serial}.tmp", std::process::id()));
    let written = fs::File::options()
        .write(true)
        .create_new(true)
        .open(&temporary)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // Nothing is lost if this fails too: the name is never read.
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_whole_or_of_another_key_holds_nothing() {
        let (key, other) = (blake3::hash(b"a"), blake3::hash(b"b"));
        let file = pack(key, b"binary");
        assert_eq!(unpack(key, &file), Some(&b"binary"[..]));
        assert_eq!(unpack(other, &file), None);
        for length in 0..file.len() {
            assert_eq!(unpack(key, &file[..length]), None, "{length}");
        }
        for position in 0..file.len() {
            let mut altered = file.clone();
            altered[position] ^= 1;
            assert_eq!(unpack(key, &altered), None, "{position}");
        }
    }
}
