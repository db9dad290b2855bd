//! Standard output, and output files that appear whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Gid, OFlags, Uid, fchown};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

use crate::{Error, Result};

/// Writes to standard output; a reader that has gone away changes nothing about the run.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Error::Io {
            action: "write",
            path: "standard output".into(),
            cause: error,
            remedy: "check the redirection",
        }),
        _ => Ok(()),
    }
}

/// How long a pipe may lack a reader at the beginning, or its reader may stall at the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest chain of links (the limit in Linux).
const LINKS: usize = 40;
const SUFFIX: &str = ".part";

/// A file to be written at the end of a run, checked for being writable at its beginning.
///
/// | what the path names | what happens |
/// |---|---|
/// | nothing yet | the file appears when it is complete, with the mode that the umask gives |
/// | a file | the complete new one takes its place, its mode and its owner |
/// | a symbolic link | the same, for the file that it leads to |
/// | a pipe or a device | is opened at the beginning and written at the end; it is waited for 10 s each time |
/// | the file or the pipe that is standard output or error | is written as those are |
///
/// Nothing is written to the folder before [`commit`](Self::commit). Then the bytes go to a file `.NAME.*.part` beside
/// the final one, which exists only during the write. If the process ends during that write, the next run that writes
/// the same file removes the leftover.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    target: Target,
    patience: Duration,
}

#[derive(Debug)]
enum Target {
    /// Written in place.
    Open(File),
    /// Renamed when complete.
    Named(PathBuf),
}

impl OutputFile {
    /// Makes sure that `path` can be written.
    ///
    /// # Errors
    /// [`Error::Io`] naming the file.
    pub fn reserve(path: &Path) -> Result<Self> {
        Self::reserve_within(path, PATIENCE)
    }

    fn reserve_within(path: &Path, patience: Duration) -> Result<Self> {
        let target = Target::find(path, patience).map_err(|source| Error::write(path, source))?;
        Ok(Self {
            path: path.into(),
            target,
            patience,
        })
    }

    /// The final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses a report and a picture under one name.
    pub(crate) fn apart(json: Option<&Self>, plot: Option<&Self>) -> Result<()> {
        match (json, plot) {
            (Some(json), Some(plot)) if json.is_same(plot) => Err(Error::input(format!(
                "--json and --plot both name `{}`; use a separate file for each",
                json.path.display()
            ))),
            _ => Ok(()),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let named = matches!((&self.target, &other.target), (Target::Named(one), Target::Named(two)) if one == two);
        named || self.path == other.path
    }

    /// Writes `bytes` and gives the file its final name.
    ///
    /// # Errors
    /// [`Error::Io`] naming the file; nothing of it is left then.
    pub fn commit(self, bytes: &[u8]) -> Result<()> {
        match self.target {
            Target::Open(file) => write_open(&file, bytes, self.patience),
            Target::Named(path) => replace(&path, bytes),
        }
        .map_err(|source| Error::write(&self.path, source))
    }
}

impl Target {
    fn find(path: &Path, patience: Duration) -> io::Result<Self> {
        let there = match fs::metadata(path) {
            Ok(there) => there,
            Err(_) => {
                let path = followed(path)?;
                let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?;
                return Self::named(fs::canonicalize(folder(&path))?.join(name));
            }
        };
        if there.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if let Some(standard) = standard_stream(&there)? {
            return Ok(Self::Open(standard));
        }
        if !there.is_file() {
            return open_special(path, &there, patience).map(Self::Open);
        }
        // Opening it honours a read-only file, which a rename would silently replace.
        let file = OpenOptions::new().append(true).open(path)?;
        match fs::canonicalize(path) {
            Ok(found) if fs::metadata(&found).is_ok_and(|it| is_same(&it, &there)) => Self::named(found),
            // A descriptor's name in /proc may point to a file that no longer has a name.
            _ => Ok(Self::Open(file)),
        }
    }

    fn named(path: PathBuf) -> io::Result<Self> {
        remove_leftovers(&path);
        // Checks that the folder accepts a new file.
        part(&path, 0o600)?.close()?;
        Ok(Self::Named(path))
    }
}

fn is_same(one: &Metadata, two: &Metadata) -> bool {
    (one.dev(), one.ino()) == (two.dev(), two.ino())
}

/// The target of the last link in a dangling chain.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            // A relative link is resolved from its own folder.
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(Errno::LOOP.into())
}

/// Standard output or error, if the path is one: their file position differs from that of another descriptor.
fn standard_stream(there: &Metadata) -> io::Result<Option<File>> {
    for stream in [io::stdout().as_fd(), io::stderr().as_fd()] {
        // A closed stream is not a file.
        let Ok(stream) = stream.try_clone_to_owned() else {
            continue;
        };
        let stream = File::from(stream);
        if is_same(&stream.metadata()?, there) {
            return Ok(Some(stream));
        }
    }
    Ok(None)
}

/// A pipe or a device. Nothing here blocks forever: opening a pipe without a reader fails, and is retried.
fn open_special(path: &Path, there: &Metadata, patience: Duration) -> io::Result<File> {
    let deadline = Instant::now() + patience;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    loop {
        let opened = OpenOptions::new()
            .write(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path);
        match opened {
            Err(error) if there.file_type().is_fifo() && error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                if Instant::now() >= deadline {
                    return Err(io::Error::new(ErrorKind::TimedOut, "nothing reads from the pipe"));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

/// Writes as much at a time as the reader accepts, as long as it makes progress.
fn write_open(mut file: &File, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(file, PollFlags::OUT)];
                let timeout = Timespec::try_from(patience).ok();
                match poll(&mut fds, timeout.as_ref()) {
                    Ok(0) => {
                        return Err(io::Error::new(ErrorKind::TimedOut, "its reader does not read"));
                    }
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            Err(error) => return Err(error),
        }
    }
    file.flush()
}

/// Puts the complete file in place of the old one, if any.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = fs::metadata(path).ok();
    let mut part = part(path, if old.is_some() { 0o600 } else { 0o666 })?;
    part.write_all(bytes)?;
    if let Some(old) = old
        && !takes_after(part.as_file(), &old)?
    {
        // A new file would belong to another user.
        return fs::write(path, bytes);
    }
    part.as_file().sync_all()?;
    part.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Gives the file the owner and mode of the old one, if permitted.
fn takes_after(new: &File, old: &Metadata) -> io::Result<bool> {
    let is = new.metadata()?;
    if (is.uid(), is.gid()) != (old.uid(), old.gid()) {
        let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        if fchown(new, Some(owner), Some(group)).is_err() {
            return Ok(false);
        }
    }
    // After the owner, because changing it clears mode bits.
    new.set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
    Ok(true)
}

/// The prefix of the names of a file's parts.
fn prefix(path: &Path) -> io::Result<OsString> {
    let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?;
    Ok([OsStr::new("."), name, OsStr::new(".")].into_iter().collect())
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// A new file beside `path`, locked while it is open, and removed unless it is renamed.
fn part(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let prefix = prefix(path)?;
    loop {
        let part = Builder::new()
            .prefix(&prefix)
            .suffix(SUFFIX)
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder(path))?;
        // If the file system has no locks, leftovers cannot be identified, and nothing is removed.
        let _ = part.as_file().try_lock();
        // Another run may have taken it for a leftover before it was locked.
        let made = part.as_file().metadata()?;
        if fs::symlink_metadata(part.path()).is_ok_and(|there| is_same(&there, &made)) {
            return Ok(part);
        }
    }
}

/// Removes the parts of runs that ended in the middle of writing. A live run's parts are locked.
fn remove_leftovers(path: &Path) {
    let (Ok(prefix), Ok(entries)) = (prefix(path), fs::read_dir(folder(path))) else {
        return;
    };
    let us = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let is_part = name.starts_with(prefix.as_encoded_bytes())
            && name.ends_with(SUFFIX.as_bytes())
            && entry.metadata().is_ok_and(|it| it.is_file() && it.uid() == us);
        if !is_part {
            continue;
        }
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(entry.path());
        // A leftover that cannot be removed does no harm.
        if let Ok(file) = opened
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn pipe(folder: &Path) -> PathBuf {
        let path = folder.join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }

    #[test]
    fn the_folder_stays_empty_before_the_commit() {
        let folder = tempfile::tempdir().unwrap();
        let reserved = OutputFile::reserve(&folder.path().join("a.json")).unwrap();
        assert_eq!(entries(folder.path()), 0);
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
    fn a_private_report_stays_private_and_a_new_one_has_the_default_mode() {
        let folder = tempfile::tempdir().unwrap();
        for kept in [0o600, 0o640, 0o664] {
            let path = folder.path().join(format!("{kept:o}.json"));
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
            OutputFile::reserve(&path).unwrap().commit(b"new").unwrap();
            assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".into(), kept));
        }
        let (plain, path) = (folder.path().join("plain"), folder.path().join("new.json"));
        fs::write(&plain, "").unwrap();
        OutputFile::reserve(&path).unwrap().commit(b"new").unwrap();
        assert_eq!(mode(&path), mode(&plain));
    }

    #[test]
    fn the_file_behind_a_link_is_written_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("far")).unwrap();
        for (name, old) in [("there", Some("old")), ("not-yet", None)] {
            let file = folder.path().join("far").join(name);
            if let Some(old) = old {
                fs::write(&file, old).unwrap();
            }
            // From link to link, each resolved from its own folder.
            let (outer, inner) = (
                folder.path().join(name),
                folder.path().join("far").join(format!("{name}-link")),
            );
            symlink(name, &inner).unwrap();
            symlink(Path::new("far").join(format!("{name}-link")), &outer).unwrap();
            OutputFile::reserve(&outer).unwrap().commit(b"new").unwrap();
            assert_eq!(fs::read(&file).unwrap(), b"new");
            assert!(fs::symlink_metadata(&outer).unwrap().is_symlink());
            assert!(fs::symlink_metadata(&inner).unwrap().is_symlink());
        }
        let ring = folder.path().join("ring");
        symlink("ring", &ring).unwrap();
        assert!(OutputFile::reserve(&ring).is_err());
    }

    #[test]
    fn a_pipe_is_opened_once_and_its_reader_gets_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(folder.path());
        let bytes = vec![7; 1 << 20];
        let read = std::thread::scope(|scope| {
            let reader = scope.spawn(|| fs::read(&path).unwrap());
            OutputFile::reserve(&path).unwrap().commit(&bytes).unwrap();
            reader.join().unwrap()
        });
        assert!(read == bytes);
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    }

    #[test]
    fn a_pipe_without_an_active_reader_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(folder.path());
        let soon = Duration::from_millis(20);
        let message = OutputFile::reserve_within(&path, soon).unwrap_err().to_string();
        assert!(message.contains("nothing reads"), "{message}");
        let mut reader = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&path)
            .unwrap();
        let reserved = OutputFile::reserve_within(&path, soon).unwrap();
        let message = reserved.commit(&vec![7; 1 << 20]).unwrap_err().to_string();
        assert!(message.contains("does not read"), "{message}");
        assert!(reader.read(&mut [0]).unwrap() > 0);
        let gone = OutputFile::reserve_within(&path, soon).unwrap();
        drop(reader);
        assert!(gone.commit(b"x").is_err());
    }

    #[test]
    fn leftovers_of_ended_runs_are_removed_and_live_parts_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let left = folder.path().join(".a.json.1234-0.part");
        let of_others = folder.path().join(".b.json.1234-0.part");
        for leftover in [&left, &of_others] {
            fs::write(leftover, "half").unwrap();
        }
        let living = part(&path, 0o600).unwrap();
        OutputFile::reserve(&path).unwrap().commit(b"new").unwrap();
        assert!(!left.exists() && of_others.exists() && living.path().exists());
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
            assert!(message.contains("cannot write"), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
    }
}
