//! Compiled code objects on disk.
//!
//! The key is the content: source, headers, options, instances, architecture, compiler and driver. A file that is
//! missing, truncated, altered, untrusted or for another key is ignored, and the program is compiled. The same happens
//! if the folder cannot be read or written, or if the program may read files.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use kernel_cache::{Key, KeyBuilder, NotUnderstood, Scan, Store};
use parking_lot::Mutex;

use super::call::rtc_call;
use super::{Compiled, Program, Target};
use crate::{Device, Module, Result};

/// Changed whenever the meaning of a key or the form of a file does.
const FORMAT: &[u8; 16] = b"hipcl-hiprtc-002";

/// Variables that change what a compiler makes of the same input: HIPRTC's own (rocclr/utils/flags.hpp) and the host
/// platform's.
const VARIABLES: [&str; 5] = [
    "HIPRTC_COMPILE_OPTIONS_APPEND",
    "HIPRTC_LINK_OPTIONS_APPEND",
    "HIP_HOST_MARCH",
    "HIPCL_CXX",
    "CXX",
];

/// Headers that are built into the compiler, or that it takes from its own release if no option names a folder.
const BUILT_IN: [&str; 8] = [
    "hip/hip_runtime.h",
    "hip/hip_runtime_api.h",
    "hip/hip_fp16.h",
    "hip/hip_complex.h",
    "hip/hip_cooperative_groups.h",
    "hip/hip_vector_types.h",
    "hip/math_functions.h",
    "hip/device_functions.h",
];

/// Compiled programs in a folder, for use by several threads and processes at once.
///
/// Write access to the folder decides what code runs. So it is created with access for its owner only, and a folder or
/// file that belongs to another user, or that others can write, is not used.
///
/// ```
/// # use std::sync::Arc;
/// # // SAFETY: both tables come from one platform.
/// # let runtime = unsafe {
/// #     hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), Some(Arc::new(hip_host::rtc_api())))
/// # }?;
/// # let device = runtime.device(0)?;
/// # let folder = tempfile::tempdir().unwrap();
/// let program = hip::rtc::Program::new("extern \"C\" __global__ void nothing() {}");
/// // SAFETY: only the cache writes to this folder.
/// let cache = unsafe { hip::rtc::Cache::open_in(folder.path()) };
/// cache.compile(&program, &device)?;
/// cache.compile(&program, &device)?;
/// assert_eq!((cache.stats().compiled, cache.stats().hits), (1, 1));
/// # Ok::<(), hip::Error>(())
/// ```
pub struct Cache {
    store: Option<Store>,
    hits: AtomicU64,
    compiled: AtomicU64,
    trouble: Mutex<Option<String>>,
}

/// Where a cache's programs came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheStats {
    /// Requests answered from disk.
    pub hits: u64,
    /// Requests that compiled.
    pub compiled: u64,
    /// The last problem with the disk, or with a program that may read files; it only cost a compilation.
    pub trouble: Option<String>,
}

impl Cache {
    /// A cache in the folder that `HIPCL_CACHE_DIR` names, else in the user's cache folder; without either, everything
    /// is compiled. Who starts the process answers for what other programs, and other code of this one, write there.
    #[must_use]
    pub fn open() -> Self {
        Self::with_folder(kernel_cache::folder("hiprtc"))
    }

    /// A cache in `folder`, which is created when it is first written to.
    ///
    /// # Safety
    ///
    /// Only caches of this type have written or write to the folder: what it holds is loaded as code. Damage is noticed;
    /// an entry that was written to be taken for a program of the compiler is not.
    ///
    /// ```compile_fail,E0133
    /// let cache = hip::rtc::Cache::open_in("downloads".as_ref());
    /// ```
    #[must_use]
    pub unsafe fn open_in(folder: &Path) -> Self {
        Self::with_folder(Some(folder.to_owned()))
    }

    fn with_folder(folder: Option<PathBuf>) -> Self {
        Self {
            store: folder.map(|folder| Store::new(&folder, FORMAT, "hco")),
            hits: AtomicU64::new(0),
            compiled: AtomicU64::new(0),
            trouble: Mutex::default(),
        }
    }

    /// As [`Program::compile`], unless the folder already has the result.
    ///
    /// A program that may read files is always compiled, since the key would not see them change: its options name
    /// files (`-I`, `-include`), it includes something that is not among its [headers](Program::header), or the scan
    /// cannot tell.
    ///
    /// # Errors
    ///
    /// As [`Program::compile`]. Trouble with the disk is not an error, see [`stats`](Self::stats).
    pub fn compile(&self, program: &Program, device: &Device) -> Result<Module> {
        let target = program.target(device)?;
        let Some(store) = &self.store else {
            return self.run(program, &target)?.load(device);
        };
        if let Err(reason) = reads_no_file(program) {
            self.note(&format_args!("not kept: {reason}"));
            return self.run(program, &target)?.load(device);
        }
        let key = key(program, &target, device);
        if let Some(kept) = self.read(store, key) {
            match kept.load(device) {
                Ok(module) => {
                    self.hits.fetch_add(1, Ordering::Relaxed);
                    return Ok(module);
                }
                Err(error) => {
                    self.note(&format_args!("{}: {error}", store.path(key).display()));
                }
            }
        }
        let made = self.run(program, &target)?;
        // SAFETY: the compiler made it just now, of what is in the key.
        if let Err(trouble) = unsafe { store.write(key, &pack(&made)) } {
            self.note(&trouble);
        }
        made.load(device)
    }

    fn run(&self, program: &Program, target: &Target<'_>) -> Result<Compiled> {
        let made = program.run(target)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        Ok(made)
    }

    /// Where the programs came from so far.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            compiled: self.compiled.load(Ordering::Relaxed),
            trouble: self.trouble.lock().clone(),
        }
    }

    /// The folder, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.store.as_ref().map(Store::folder)
    }

    fn read(&self, store: &Store, key: Key) -> Option<Compiled> {
        match store.read(key) {
            Ok(content) => unpack(&content?),
            Err(trouble) => {
                self.note(&trouble);
                None
            }
        }
    }

    fn note(&self, what: &dyn fmt::Display) {
        *self.trouble.lock() = Some(what.to_string());
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("folder", &self.folder())
            .field("stats", &self.stats())
            .finish()
    }
}

/// Checks that the key covers everything the compiler reads.
fn reads_no_file(program: &Program) -> std::result::Result<(), NotUnderstood> {
    kernel_cache::unset(&kernel_cache::INCLUDE_VARIABLES)?;
    let mut scan = Scan::default();
    scan.options(program.options.iter().map(String::as_str))?;
    for variable in VARIABLES {
        let value = std::env::var(variable).unwrap_or_default();
        let words = kernel_cache::words(&value);
        // The host platform's compiler is identified with its options.
        let options = words.iter().filter(|word| word.starts_with(['-', '@']));
        scan.options(options.map(String::as_str))?;
    }
    let headers = program.headers.iter().map(|(_, text)| text);
    let texts = std::iter::once(&program.source).chain(headers);
    for text in texts.chain(&program.instances) {
        for name in scan.text(text)? {
            if !BUILT_IN.contains(&name.as_str()) && !is_given(program, &name) {
                return Err(NotUnderstood::new(format!(
                    "the program has no header `{name}`, which it includes"
                )));
            }
        }
    }
    Ok(())
}

/// Whether the program provides this header, under a name that cannot match a file.
fn is_given(program: &Program, name: &str) -> bool {
    let mut parts = Path::new(name).components();
    parts.all(|part| matches!(part, Component::Normal(_))) && program.headers.iter().any(|(given, _)| given == name)
}

fn key(program: &Program, target: &Target<'_>, device: &Device) -> Key {
    let mut key = KeyBuilder::default();
    key.part(&program.source).part(&program.name);
    key.list(&program.options).list(&program.instances);
    key.list(program.headers.iter().flat_map(|(name, text)| [name, text]));
    key.part(&target.arch);
    // What cannot be told is the same as not having it: then the rest of the key has to be enough.
    key.part(device.name().unwrap_or_default());
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes one int to each of the addresses given.
    let told = unsafe { rtc_call!(target.table, hiprtcVersion(&mut major, &mut minor), "hiprtcVersion()") };
    let compiler = told.ok().map(|()| (major, minor));
    let versions = device.runtime().versions().ok();
    key.part(format!("{compiler:?} {versions:?}"));
    for variable in VARIABLES {
        key.part(format!("{:?}", std::env::var_os(variable)));
    }
    key.finish()
}

/// An entry: the number of symbols, each name and symbol with its length, then the code.
fn pack(program: &Compiled) -> Vec<u8> {
    let mut content = Vec::new();
    content.extend((program.symbols.len() as u64).to_le_bytes());
    for text in program.symbols.iter().flat_map(|(name, to)| [name, to]) {
        content.extend((text.len() as u64).to_le_bytes());
        content.extend(text.as_bytes());
    }
    content.extend(&program.code);
    content
}

/// The contents of an entry.
fn unpack(mut content: &[u8]) -> Option<Compiled> {
    let count = number(&mut content)?;
    let mut symbols = Vec::new();
    for _ in 0..count {
        symbols.push((text(&mut content)?, text(&mut content)?));
    }
    (!content.is_empty()).then(|| Compiled {
        code: content.to_vec(),
        symbols,
    })
}

fn number(content: &mut &[u8]) -> Option<u64> {
    let (number, rest) = content.split_first_chunk()?;
    *content = rest;
    Some(u64::from_le_bytes(*number))
}

fn text(content: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(number(content)?).ok()?;
    let (text, rest) = content.split_at_checked(length)?;
    *content = rest;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::{Compiled, pack, unpack};

    #[test]
    fn packed_entries_round_trip_and_truncated_ones_are_rejected() {
        let program = Compiled {
            code: b"code".to_vec(),
            symbols: vec![("f<int>".to_owned(), "_Z1fIiEvv".to_owned())],
        };
        let content = pack(&program);
        let kept = unpack(&content).unwrap();
        for length in 0..content.len() - program.code.len() {
            assert!(unpack(&content[..length]).is_none(), "{length}");
        }
        assert_eq!((kept.code, kept.symbols), (program.code, program.symbols));
    }
}
