//! Compiled code objects on disk.
//!
//! The key is the content: source, headers, options, instances, architecture, compiler and driver. A file that is missing,
//! truncated, altered or of another key means that the program is compiled; so does a folder that cannot be read or
//! written. Readers take no lock: a file appears under its name only once it is complete.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{Compiled, Program, Target};
use crate::call::rtc_call;
use crate::{Device, Module, Result};

/// Changed whenever the meaning of a key or the form of a file does.
const FORMAT: &[u8; 16] = b"hipcl-hiprtc-001";
const FOLDER_VARIABLE: &str = "HIPCL_CACHE_DIR";
const DIGEST: usize = blake3::OUT_LEN;

/// Variables that change what a compiler makes of the same input: HIPRTC's own (rocclr/utils/flags.hpp) and the host
/// platform's.
const VARIABLES: [&str; 5] = [
    "HIPRTC_COMPILE_OPTIONS_APPEND",
    "HIPRTC_LINK_OPTIONS_APPEND",
    "HIP_HOST_MARCH",
    "HIPCL_CXX",
    "CXX",
];

/// Options that name files, whose content is not in the key.
const NAMING_FILES: [&str; 9] = [
    "-I",
    "-include",
    "--include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "@",
];

/// Compiled programs in a folder, for use by several threads and processes at once.
///
/// Whoever can write to the folder decides what code runs; it is created for its owner alone.
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
/// let cache = hip::rtc::Cache::open_in(folder.path());
/// cache.compile(&program, &device)?;
/// cache.compile(&program, &device)?;
/// assert_eq!((cache.stats().compiled, cache.stats().hits), (1, 1));
/// # Ok::<(), hip::Error>(())
/// ```
pub struct Cache {
    folder: Option<PathBuf>,
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
    /// The last trouble with the disk; it cost a compilation and nothing else.
    pub trouble: Option<String>,
}

impl Cache {
    /// A cache in the folder that `HIPCL_CACHE_DIR` names, else in the user's cache folder; without either, everything is
    /// compiled.
    #[must_use]
    pub fn open() -> Self {
        let named = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty());
        let folder = match named {
            Some(folder) => Some(PathBuf::from(folder)),
            None => directories::BaseDirs::new().map(|base| base.cache_dir().join("hipcl")),
        };
        Self::with_folder(folder.map(|folder| folder.join("hiprtc")))
    }

    /// A cache in `folder`, which is created when it is first written to.
    #[must_use]
    pub fn open_in(folder: &Path) -> Self {
        Self::with_folder(Some(folder.to_owned()))
    }

    fn with_folder(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            hits: AtomicU64::new(0),
            compiled: AtomicU64::new(0),
            trouble: Mutex::default(),
        }
    }

    /// As [`Program::compile`], unless the folder already has the result.
    ///
    /// A program whose options name files (`-I`, `-include`) is always compiled: the key would not see those files change.
    /// Give headers as [texts](Program::header) instead.
    ///
    /// # Errors
    ///
    /// As [`Program::compile`]. Trouble with the disk is no error, see [`stats`](Self::stats).
    pub fn compile(&self, program: &Program, device: &Device) -> Result<Module> {
        let target = program.target(device)?;
        let place = self.folder.as_ref().filter(|_| !names_files(program));
        let Some(folder) = place else {
            self.compiled.fetch_add(1, Ordering::Relaxed);
            return program.run(&target)?.load(device);
        };
        let key = key(program, &target, device);
        let path = folder.join(format!("{key}.hco"));
        if let Some(kept) = self.read(key, &path) {
            match kept.load(device) {
                Ok(module) => {
                    self.hits.fetch_add(1, Ordering::Relaxed);
                    return Ok(module);
                }
                Err(error) => self.note(&path, &error),
            }
        }
        let made = program.run(&target)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = replace(folder, &path, &pack(key, &made)) {
            self.note(&path, &error);
        }
        made.load(device)
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
        self.folder.as_deref()
    }

    fn read(&self, key: blake3::Hash, path: &Path) -> Option<Compiled> {
        let file = match fs::read(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.note(path, &error);
                return None;
            }
        };
        let kept = unpack(key, &file);
        if kept.is_none() {
            self.note(path, &"not a complete program of this key");
        }
        kept
    }

    fn note(&self, path: &Path, what: &dyn fmt::Display) {
        *self.trouble.lock() = Some(format!("{}: {what}", path.display()));
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("folder", &self.folder)
            .field("stats", &self.stats())
            .finish()
    }
}

fn names_files(program: &Program) -> bool {
    program
        .options
        .iter()
        .any(|option| NAMING_FILES.iter().any(|start| option.starts_with(start)))
}

fn key(program: &Program, target: &Target<'_>, device: &Device) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(FORMAT);
    let mut part = |bytes: &[u8]| {
        // The length keeps two parts from being taken for another division of the same text.
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(program.source.as_bytes());
    part(program.name.as_bytes());
    for list in [&program.options, &program.instances] {
        part(&(list.len() as u64).to_le_bytes());
        list.iter().for_each(|text| part(text.as_bytes()));
    }
    for (name, text) in &program.headers {
        part(name.as_bytes());
        part(text.as_bytes());
    }
    part(target.arch.as_bytes());
    // What cannot be told is the same as not having it: then the rest of the key has to be enough.
    part(device.name().unwrap_or_default().as_bytes());
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes one int to each of the addresses given.
    let told = unsafe {
        rtc_call!(
            target.table,
            hiprtcVersion(&mut major, &mut minor),
            "hiprtcVersion()"
        )
    };
    let compiler = told.ok().map(|()| (major, minor));
    let versions = device.runtime().versions().ok();
    part(format!("{compiler:?} {versions:?}").as_bytes());
    for variable in VARIABLES {
        part(format!("{:?}", std::env::var_os(variable)).as_bytes());
    }
    hasher.finalize()
}

/// A file: format, key, digest of the rest, the rest: number of symbols, each name and symbol with its length, code.
fn pack(key: blake3::Hash, program: &Compiled) -> Vec<u8> {
    let mut content = Vec::new();
    content.extend((program.symbols.len() as u64).to_le_bytes());
    for text in program.symbols.iter().flat_map(|(name, to)| [name, to]) {
        content.extend((text.len() as u64).to_le_bytes());
        content.extend(text.as_bytes());
    }
    content.extend(&program.code);
    let mut file = Vec::with_capacity(FORMAT.len() + 2 * DIGEST + content.len());
    file.extend(FORMAT);
    file.extend(key.as_bytes());
    file.extend(blake3::hash(&content).as_bytes());
    file.extend(content);
    file
}

/// What a file holds, if it is whole and of this key.
fn unpack(key: blake3::Hash, file: &[u8]) -> Option<Compiled> {
    let rest = file.strip_prefix(FORMAT)?.strip_prefix(key.as_bytes())?;
    let (digest, mut content) = rest.split_at_checked(DIGEST)?;
    if blake3::hash(content).as_bytes() != digest {
        return None;
    }
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

/// Puts a complete file in place of `path`; other processes see the old one or the new one.
fn replace(folder: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    create(folder)?;
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

fn create(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::{Compiled, pack, unpack};

    #[test]
    fn a_file_that_is_not_whole_or_of_another_key_holds_nothing() {
        let (key, other) = (blake3::hash(b"a"), blake3::hash(b"b"));
        let program = Compiled {
            code: b"code".to_vec(),
            symbols: vec![("f<int>".to_owned(), "_Z1fIiEvv".to_owned())],
        };
        let file = pack(key, &program);
        let kept = unpack(key, &file).unwrap();
        assert_eq!((kept.code, kept.symbols), (program.code, program.symbols));
        assert!(unpack(other, &file).is_none());
        for length in 0..file.len() {
            assert!(unpack(key, &file[..length]).is_none(), "{length}");
        }
        for position in 0..file.len() {
            let mut altered = file.clone();
            altered[position] ^= 1;
            assert!(unpack(key, &altered).is_none(), "{position}");
        }
    }
}
