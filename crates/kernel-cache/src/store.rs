//! Entries in a folder.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fmt, io};

#[cfg(unix)]
use crate::folder::Folder;
use crate::key::Key;

const DIGEST: usize = blake3::OUT_LEN;

/// A place for compiled code: a folder, and the format of its files.
///
/// Several threads and processes can share a folder. Readers take no lock: a file appears under its
/// name only once it is complete.
///
/// ```
/// # use kernel_cache::{KeyBuilder, Store};
/// let folder = tempfile::tempdir()?;
/// let store = Store::new(&folder.path().join("kernels"), b"an-example-00001", "bin");
/// let key = KeyBuilder::default().part("source").part("options").finish();
/// assert_eq!(store.read(key)?, None);
/// // SAFETY: this format's entries are text that is compared, not run.
/// unsafe { store.write(key, b"code") }?;
/// assert_eq!(store.read(key)?.as_deref(), Some(&b"code"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    format: &'static [u8; 16],
    extension: &'static str,
}

/// Why an entry was not read or written; the code has to be compiled.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct Trouble {
    path: PathBuf,
    reason: String,
}

impl Store {
    /// A store in `folder`, which the first write creates. `format` changes whenever the meaning of a
    /// key or of an entry changes.
    #[must_use]
    pub fn new(folder: &Path, format: &'static [u8; 16], extension: &'static str) -> Self {
        Self {
            folder: folder.to_owned(),
            format,
            extension,
        }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of the entry for `key`, whether or not it exists.
    #[must_use]
    pub fn path(&self, key: Key) -> PathBuf {
        self.folder.join(self.name(key))
    }

    /// The entry for `key`, if there is one.
    ///
    /// # Errors
    ///
    /// The file is not a complete entry for this key, or is not trusted.
    pub fn read(&self, key: Key) -> Result<Option<Vec<u8>>, Trouble> {
        match self.read_file(key) {
            Ok(Some(content)) => Ok(Some(content)),
            Ok(None) => Err(self.trouble(key, &"not a complete program for this key")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.trouble(key, &error)),
        }
    }

    /// Stores an entry under `key`, replacing any earlier one.
    ///
    /// # Errors
    ///
    /// The folder can't be written, or is not trusted.
    ///
    /// # Safety
    ///
    /// Who reads an entry runs it: `content` is what a compiler made of all that is in `key`, in the form that the
    /// readers of this store's format expect. The digest beside it is no secret, so it proves nothing of the kind.
    ///
    /// ```compile_fail,E0133
    /// # use kernel_cache::{KeyBuilder, Store};
    /// let store = Store::new("kernels".as_ref(), b"an-example-00001", "bin");
    /// store.write(KeyBuilder::default().finish(), b"code of any kind");
    /// ```
    pub unsafe fn write(&self, key: Key, content: &[u8]) -> Result<(), Trouble> {
        self.write_file(key, &pack(self.format, key, content))
            .map_err(|error| self.trouble(key, &error))
    }

    #[cfg(unix)]
    fn read_file(&self, key: Key) -> io::Result<Option<Vec<u8>>> {
        let mut file = Folder::open(&self.folder)?.file(&self.name(key))?;
        let bytes = file.metadata()?.len();
        unpack(self.format, key, &mut file, bytes)
    }

    #[cfg(unix)]
    fn write_file(&self, key: Key, file: &[u8]) -> io::Result<()> {
        Folder::create(&self.folder)?.replace(&self.name(key), file)
    }

    /// Other systems do not report a file's owner, so nothing is cached there.
    #[cfg(not(unix))]
    fn read_file(&self, _: Key) -> io::Result<Option<Vec<u8>>> {
        Err(io::ErrorKind::NotFound.into())
    }

    #[cfg(not(unix))]
    fn write_file(&self, _: Key, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn name(&self, key: Key) -> String {
        format!("{key}.{}", self.extension)
    }

    fn trouble(&self, key: Key, reason: &dyn fmt::Display) -> Trouble {
        Trouble {
            path: self.path(key),
            reason: reason.to_string(),
        }
    }
}

/// Format, key, length of the content, digest.
const HEAD: usize = 16 + DIGEST + size_of::<u64>() + DIGEST;

/// A file: the head, content.
fn pack(format: &[u8; 16], key: Key, content: &[u8]) -> Vec<u8> {
    [
        format.as_slice(),
        key.0.as_bytes(),
        &(content.len() as u64).to_le_bytes(),
        digest(format, key, content).as_bytes(),
        content,
    ]
    .concat()
}

/// The content of a file of this many bytes, if it is complete and for this key. No more is read than the head and what it
/// promises.
fn unpack(format: &[u8; 16], key: Key, file: &mut impl Read, bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(length) = bytes.checked_sub(HEAD as u64).filter(|length| *length > 0) else {
        return Ok(None);
    };
    let mut head = [0; HEAD];
    file.read_exact(&mut head)?;
    let promised = [format.as_slice(), key.0.as_bytes(), &length.to_le_bytes()].concat();
    let (found, expected) = head.split_at(promised.len());
    if found != promised {
        return Ok(None);
    }
    let mut content = Vec::new();
    file.take(length).read_to_end(&mut content)?;
    let is_whole = digest(format, key, &content).as_bytes() == expected;
    Ok(is_whole.then_some(content))
}

/// It includes the key, so content under another entry's header is rejected.
fn digest(format: &[u8; 16], key: Key, content: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format).update(key.0.as_bytes()).update(content);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &[u8; 16] = b"a-test-000000001";

    fn key(text: &str) -> Key {
        Key(blake3::hash(text.as_bytes()))
    }

    fn unpacked(format: &[u8; 16], key: Key, file: &[u8]) -> Option<Vec<u8>> {
        unpack(format, key, &mut &file[..], file.len() as u64).unwrap()
    }

    #[test]
    fn incomplete_files_and_other_keys_or_formats_are_rejected() {
        let file = pack(FORMAT, key("a"), b"code");
        assert_eq!(unpacked(FORMAT, key("a"), &file), Some(b"code".to_vec()));
        assert_eq!(unpacked(FORMAT, key("b"), &file), None);
        assert_eq!(unpacked(b"a-test-000000002", key("a"), &file), None);
        for length in 0..file.len() {
            assert_eq!(unpacked(FORMAT, key("a"), &file[..length]), None, "{length}");
        }
        for position in 0..file.len() {
            let mut altered = file.clone();
            altered[position] ^= 1;
            assert_eq!(unpacked(FORMAT, key("a"), &altered), None, "{position}");
        }
    }

    #[test]
    fn content_under_a_foreign_header_is_rejected() {
        // Where the digest begins.
        const AT: usize = HEAD - DIGEST;
        let (a, b) = (pack(FORMAT, key("a"), b"a"), pack(FORMAT, key("b"), b"b"));
        let spliced = [&a[..AT], &b[AT..]].concat();
        assert_eq!(unpacked(FORMAT, key("a"), &spliced), None);
        let other = pack(b"a-test-000000002", key("a"), b"a");
        let spliced = [&a[..AT], &other[AT..]].concat();
        assert_eq!(unpacked(FORMAT, key("a"), &spliced), None);
    }

    /// A crash or a full disk can leave one.
    #[test]
    fn of_a_lengthened_file_no_more_is_read_than_its_head() {
        let file = pack(FORMAT, key("a"), b"code");
        let mut rest = &file[..];
        assert_eq!(unpack(FORMAT, key("a"), &mut rest, 4 << 30).unwrap(), None);
        assert_eq!(rest, b"code");
    }
}
