//! Compiled programs kept in memory and on disk.
//!
//! The key is the content: the source with its includes in their places, options, device, driver and platform. The
//! compiler gets this one text and reads no file. A kept file that is missing, truncated, altered, untrusted or for
//! another key is ignored, and the program is compiled. The same happens if the folder cannot be read or written. Where
//! an include cannot be resolved, the compiler reads it, and nothing is kept.

mod inline;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kernel_cache::{Key, KeyBuilder, NotUnderstood, Store};
use parking_lot::Mutex;

use crate::context::Context;
use crate::device::Device;
use crate::error::Result;
use crate::pocl;
use crate::program::{ARGUMENT_INFO, Program, unlaunched};

/// Changed whenever the meaning of a key or the form of a file does.
const FORMAT: &[u8; 16] = b"hipcl-clprog-005";

/// Programs of one context, compiled at most once. Clones share the cache.
#[derive(Clone)]
pub struct ProgramCache(Arc<Inner>);

struct Inner {
    context: Context,
    store: Option<Store>,
    memory: Mutex<HashMap<Key, Arc<Mutex<Option<Program>>>>>,
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
    /// The last trouble with the disk, or with an include that could not be followed; it only cost a compilation.
    pub disk_trouble: Option<String>,
}

impl ProgramCache {
    /// A cache in the folder that `HIPCL_CACHE_DIR` names, else in the user's cache folder; without either, and on PoCL,
    /// which keeps compiled kernels itself, in memory only. Who starts the process answers for what other programs, and
    /// other code of this one, write there.
    #[must_use]
    pub fn open(context: &Context) -> Self {
        Self::with_folder(context, kernel_cache::folder("opencl"))
    }

    /// A cache in `folder`, which the first write creates with access for its owner only. A folder or
    /// file that belongs to another user, or that others can write, is not used. On PoCL as [`in_memory`](Self::in_memory).
    ///
    /// # Safety
    ///
    /// Only caches of this type have written or write to the folder: the driver runs what it holds. Damage is noticed; an
    /// entry that was written to be taken for a binary of the driver is not.
    ///
    /// ```compile_fail,E0133
    /// fn cache(context: &clmgr::Context) -> clmgr::ProgramCache {
    ///     clmgr::ProgramCache::open_in(context, "downloads".as_ref())
    /// }
    /// ```
    #[must_use]
    pub unsafe fn open_in(context: &Context, folder: &Path) -> Self {
        Self::with_folder(context, Some(folder.to_owned()))
    }

    /// A cache that keeps nothing on disk.
    #[must_use]
    pub fn in_memory(context: &Context) -> Self {
        Self::with_folder(context, None)
    }

    fn with_folder(context: &Context, folder: Option<PathBuf>) -> Self {
        let folder = folder.filter(|_| !pocl::drives(context.device()));
        Self(Arc::new(Inner {
            context: context.clone(),
            store: folder.map(|folder| Store::new(&folder, FORMAT, "bin")),
            memory: Mutex::default(),
            memory_hits: AtomicU64::new(0),
            disk_hits: AtomicU64::new(0),
            compiled: AtomicU64::new(0),
            disk_trouble: Mutex::default(),
        }))
    }

    /// The program of this source and these options, compiled only if it is not cached.
    ///
    /// Threads that request the same program at once wait for one compilation. A change to an included file makes it
    /// another program. The compiler gets the source with the texts of its includes in their places. A program is never
    /// cached if an include cannot be resolved that way: through a macro, in a compiler-internal folder, in two folders,
    /// twice where `#pragma once` counts, or with `__FILE__`, `__LINE__` or `__has_include`.
    ///
    /// # Errors
    ///
    /// As [`Program::build`]. Trouble with the disk is not an error, see [`stats`](Self::stats).
    pub fn get(&self, source: &str, options: &str) -> Result<Program> {
        let inner = &*self.0;
        let text = unset_for(inner.context.device()).and_then(|()| inline::inline(source, options));
        let text = match text {
            Ok(text) => text,
            Err(reason) => return self.build_as_it_is(source, options, &reason),
        };
        let key = self.key(&text, options);
        let place = inner.memory.lock().entry(key).or_default().clone();
        // The compiler runs under the lock of this one key.
        let mut kept = place.lock();
        if let Some(program) = &*kept {
            inner.memory_hits.fetch_add(1, Ordering::Relaxed);
            return Ok(program.clone());
        }
        let program = match self.read(key, &text, options) {
            Some(program) => {
                inner.disk_hits.fetch_add(1, Ordering::Relaxed);
                program
            }
            None => match Program::build(&inner.context, &text, options) {
                Ok(program) => {
                    inner.compiled.fetch_add(1, Ordering::Relaxed);
                    self.write(key, &program);
                    program
                }
                Err(error) if *text == *source => return Err(error),
                // The compiler's messages should name the files.
                Err(error) => return self.build_as_it_is(source, options, &error),
            },
        };
        *kept = Some(program.clone());
        Ok(program)
    }

    /// For what can't be kept.
    fn build_as_it_is(&self, source: &str, options: &str, reason: &dyn fmt::Display) -> Result<Program> {
        let program = Program::build(&self.0.context, source, options)?;
        self.trouble(&format_args!("not kept: {reason}"));
        self.0.compiled.fetch_add(1, Ordering::Relaxed);
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
        self.0.store.as_ref().map(Store::folder)
    }

    fn key(&self, text: &str, options: &str) -> Key {
        let device = self.0.context.device();
        let mut key = KeyBuilder::default();
        key.list([
            text,
            options,
            ARGUMENT_INFO,
            unlaunched::before(device),
            device.name(),
            device.version(),
            device.driver_version(),
            device.platform_name(),
            device.platform_version(),
        ]);
        key.finish()
    }

    fn read(&self, key: Key, source: &str, options: &str) -> Option<Program> {
        let store = self.0.store.as_ref()?;
        let binary = match store.read(key) {
            Ok(binary) => binary?,
            Err(trouble) => {
                self.trouble(&trouble);
                return None;
            }
        };
        // A build that keeps nothing of the kind may not be the one that wrote the file.
        let loaded =
            unlaunched::refuse(&binary).and_then(|()| Program::load_binary(&self.0.context, &binary, source, options));
        loaded
            .inspect_err(|error| {
                self.trouble(&format_args!("{}: {error}", store.path(key).display()));
            })
            .ok()
    }

    fn write(&self, key: Key, program: &Program) {
        let Some(store) = &self.0.store else { return };
        match program.binary() {
            Ok(binary) if binary.is_empty() => {}
            Ok(binary) => {
                // SAFETY: the driver made it just now, of what is in the key.
                if let Err(trouble) = unsafe { store.write(key, &binary) } {
                    self.trouble(&trouble);
                }
            }
            Err(error) => self.trouble(&error),
        }
    }

    fn trouble(&self, what: &dyn fmt::Display) {
        *self.0.disk_trouble.lock() = Some(what.to_string());
    }
}

/// Checks that no variable is set by which Intel's driver makes other code, even of another source.
fn unset_for(device: &Device) -> std::result::Result<(), NotUnderstood> {
    if device.platform_name() != unlaunched::INTEL {
        return Ok(());
    }
    let mut names = std::env::vars_os().map(|(name, _)| name);
    match names.find(|name| name.as_encoded_bytes().starts_with(b"CL_CONFIG_")) {
        None => Ok(()),
        Some(name) => Err(NotUnderstood::new(format!(
            "the variable {} may change what the driver makes of the source",
            name.display()
        ))),
    }
}

impl fmt::Debug for ProgramCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramCache")
            .field("folder", &self.folder())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
