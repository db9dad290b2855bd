//! A folder that belongs to its user only, and the files in it.
//!
//! All checks use open descriptors, so a file cannot be swapped between a check and its use.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};

/// The rights that others must not have on a trusted file or folder: write access.
const WRITABLE_BY_OTHERS: Mode = Mode::WGRP.union(Mode::WOTH);

pub(crate) struct Folder(OwnedFd);

impl Folder {
    /// Opens the folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        trust(&folder, FileType::Directory)?;
        Ok(Self(folder))
    }

    /// Opens the folder, creating it with access for its owner only.
    pub fn create(path: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Self::open(path)
    }

    /// A regular file, to be read.
    pub fn file(&self, name: &str) -> io::Result<File> {
        // A pipe is opened without blocking for its writer, and then refused.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::empty())?;
        trust(&file, FileType::RegularFile)?;
        Ok(File::from(file))
    }

    /// Atomically replaces `name` with a complete file; others see the old file or the new one.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let (temporary, file) = self.temporary()?;
        let written = File::from(file)
            .write_all(content)
            .and_then(|()| Ok(rustix::fs::renameat(&self.0, &temporary, &self.0, name)?));
        if written.is_err() {
            // A failure here is harmless: the name is never read.
            let _ = rustix::fs::unlinkat(&self.0, &temporary, AtFlags::empty());
        }
        written
    }

    /// A new file under a name that no other process uses, not even one that has ended.
    fn temporary(&self) -> io::Result<(String, OwnedFd)> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
            let name = format!(".{}.{serial}.tmp", std::process::id());
            match rustix::fs::openat(&self.0, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => return Ok((name, file)),
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Checks that it has this type and belongs to the process's user, and that only that user can write
/// it.
fn trust(file: impl AsFd, wanted: FileType) -> io::Result<()> {
    let found = rustix::fs::fstat(file)?;
    let user = rustix::process::geteuid().as_raw();
    let refused = |reason: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    if FileType::from_raw_mode(found.st_mode) != wanted {
        return refused("not a regular file; remove it".to_owned());
    }
    if found.st_uid != user {
        return refused(format!(
            "it belongs to user {}, not to user {user}; set HIPCL_CACHE_DIR to another folder",
            found.st_uid
        ));
    }
    let mode = Mode::from_raw_mode(found.st_mode);
    if mode.intersects(WRITABLE_BY_OTHERS) {
        return refused(format!(
            "other users may write to it (mode {:o}); remove it, or revoke write access with `chmod go-w`",
            mode.as_raw_mode() & 0o7777
        ));
    }
    Ok(())
}
