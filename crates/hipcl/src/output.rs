//! Output files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Error, Result};

/// A file to be written at the end of a run, checked for being writable at its beginning.
///
/// The bytes go to a temporary file in the same folder, which takes the final name when it is complete; dropping the value without
/// [`commit`](Self::commit) leaves nothing behind. A target that exists and is no regular file (a pipe, `/dev/stdout`) is written
/// directly.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    temporary: Option<PathBuf>,
}

impl OutputFile {
    /// Makes sure that `path` can be written.
    ///
    /// # Errors
    /// [`Error::Io`] naming the file.
    pub fn reserve(path: &Path) -> Result<Self> {
        let failed = |source| Error::write(path, source);
        if let Ok(metadata) = fs::metadata(path) {
            if metadata.is_dir() {
                return Err(failed(std::io::ErrorKind::IsADirectory.into()));
            }
            // opening for writing also honours a read-only file, which a rename would silently replace
            OpenOptions::new().append(true).open(path).map_err(failed)?;
            if !metadata.is_file() {
                return Ok(Self {
                    path: path.into(),
                    temporary: None,
                });
            }
        }
        let temporary = temporary_beside(path)
            .ok_or_else(|| failed(std::io::ErrorKind::InvalidFilename.into()))?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(failed)?;
        Ok(Self {
            path: path.into(),
            temporary: Some(temporary),
        })
    }

    /// The final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `bytes` and gives the file its final name.
    ///
    /// # Errors
    /// [`Error::Io`] naming the file; nothing of it is left then.
    pub fn commit(mut self, bytes: &[u8]) -> Result<()> {
        let failed = |source| Error::write(&self.path, source);
        match &self.temporary {
            None => OpenOptions::new()
                .write(true)
                .open(&self.path)
                .and_then(|mut file| file.write_all(bytes))
                .map_err(failed),
            Some(temporary) => {
                File::create(temporary)
                    .and_then(|mut file| file.write_all(bytes))
                    .map_err(failed)?;
                fs::rename(temporary, &self.path).map_err(failed)?;
                self.temporary = None;
                Ok(())
            }
        }
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // nothing can be done about a failure here, and the file is only a leftover
            let _ = fs::remove_file(temporary);
        }
    }
}

/// A name in the folder of `path` that no other run uses.
fn temporary_beside(path: &Path) -> Option<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(
        ".{}-{}.part",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    Some(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_file_that_is_not_committed_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let reserved = OutputFile::reserve(&folder.path().join("a.json")).unwrap();
        drop(reserved);
        assert_eq!(entries(folder.path()), 0);
    }

    #[test]
    fn a_committed_file_replaces_the_old_one_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "old and longer").unwrap();
        let reserved = OutputFile::reserve(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old and longer");
        reserved.commit(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(entries(folder.path()), 1);
    }

    #[test]
    fn a_folder_or_a_missing_folder_is_refused_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            folder.path().to_path_buf(),
            folder.path().join("no/such/folder.json"),
            PathBuf::from("/"),
        ] {
            let message = OutputFile::reserve(&path).unwrap_err().to_string();
            assert!(message.contains("can't write"), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
    }
}
