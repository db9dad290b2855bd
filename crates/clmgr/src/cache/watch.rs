//! Whether the way to a file was changed, also if it was changed back.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, inotify};
use rustix::io::Errno;

/// What a name in a folder stands for, or its content, is another one.
const CHANGES: inotify::WatchFlags = inotify::WatchFlags::CREATE
    .union(inotify::WatchFlags::DELETE)
    .union(inotify::WatchFlags::MOVE)
    .union(inotify::WatchFlags::MODIFY)
    .union(inotify::WatchFlags::ATTRIB)
    .union(inotify::WatchFlags::ONLYDIR);

/// As many symbolic links as Linux follows on one way.
const LINKS: usize = 40;

/// Watches each name on the way to files, in the folder that holds it: of the file, of the folders above it, and of
/// symbolic links. A file that changes under another of its names is not noticed.
pub(super) struct Watch {
    events: OwnedFd,
    names: HashMap<i32, BTreeSet<OsString>>,
}

impl Watch {
    /// # Errors
    /// From the system, whose watches are few, or [`Errno::LOOP`].
    pub(super) fn of<'a>(files: impl IntoIterator<Item = &'a Path>) -> rustix::io::Result<Self> {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let mut watch = Self {
            events: inotify::init(flags)?,
            names: HashMap::new(),
        };
        files.into_iter().try_for_each(|file| watch.add(file))?;
        Ok(watch)
    }

    /// Each name is watched before it is looked up, so that the way leads on from what it stands for.
    fn add(&mut self, file: &Path) -> rustix::io::Result<()> {
        let file = std::path::absolute(file).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOENT))?;
        let mut folder = PathBuf::from("/");
        let mut left = parts(&file);
        let mut links = 0;
        while let Some(part) = left.pop_front() {
            match part.as_bytes() {
                b"/" => folder = part.into(),
                b".." => _ = folder.pop(),
                _ => {
                    self.name(&folder, &part)?;
                    folder.push(&part);
                    match rustix::fs::lstat(&folder).map(|it| FileType::from_raw_mode(it.st_mode)) {
                        Ok(FileType::Directory) => {}
                        Ok(FileType::Symlink) if links == LINKS => return Err(Errno::LOOP),
                        Ok(FileType::Symlink) => {
                            links += 1;
                            let target = rustix::fs::readlink(&folder, Vec::new())?.into_bytes();
                            folder.pop();
                            for part in parts(Path::new(&OsString::from_vec(target))).into_iter().rev() {
                                left.push_front(part);
                            }
                        }
                        // The file, or nothing: a name that appears is noticed.
                        _ => return Ok(()),
                    }
                }
            }
        }
        Ok(())
    }

    fn name(&mut self, folder: &Path, name: &OsStr) -> rustix::io::Result<()> {
        let number = inotify::add_watch(&self.events, folder, CHANGES)?;
        self.names.entry(number).or_default().insert(name.to_owned());
        Ok(())
    }

    /// Whether nothing has happened to a watched name so far.
    pub(super) fn is_quiet(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        loop {
            match events.next() {
                Err(Errno::WOULDBLOCK) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
                Ok(event) => {
                    let names = self.names.get(&event.wd());
                    // Without a name: events were lost, or the folder is gone.
                    let is_other = |name: &OsStr| names.is_some_and(|names| !names.contains(name));
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    if !name.is_some_and(is_other) {
                        return false;
                    }
                }
            }
        }
    }
}

/// The names on the way, without those that lead nowhere.
fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_name_on_the_way_that_changes_and_changes_back_is_noticed() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        fs::create_dir_all(at("folder/deep")).unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at("folder/deep/a.h"), "").unwrap();
        symlink("folder", at("link")).unwrap();
        symlink(at("link/deep/a.h"), at("a.h")).unwrap();
        let there_and_back = |from: &str, to: &str| {
            fs::rename(at(from), at(to)).unwrap();
            fs::rename(at(to), at(from)).unwrap();
        };
        let changes: [&dyn Fn(); 8] = [
            &|| there_and_back("a.h", "kept"),
            &|| there_and_back("link", "kept"),
            &|| there_and_back("folder", "kept"),
            &|| there_and_back("folder/deep", "folder/kept"),
            &|| there_and_back("folder/deep/a.h", "folder/deep/kept"),
            &|| fs::write(at("folder/deep/a.h"), "int a;").unwrap(),
            &|| {
                symlink("other", at("new")).unwrap();
                fs::rename(at("new"), at("link")).unwrap();
            },
            &|| {
                fs::remove_file(at("link")).unwrap();
                symlink("folder", at("link")).unwrap();
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let watch = Watch::of([at("a.h").as_path()]).unwrap();
            fs::write(at(&format!("folder/deep/{number}")), "another name").unwrap();
            fs::write(at(&number.to_string()), "another name").unwrap();
            assert!(watch.is_quiet(), "{number}");
            change();
            assert!(!watch.is_quiet(), "{number}");
        }
    }

    #[test]
    fn a_name_that_appears_is_noticed_and_a_circle_refused() {
        let base = tempfile::tempdir().unwrap();
        let missing = base.path().join("folder/a.h");
        let watch = Watch::of([missing.as_path()]).unwrap();
        assert!(watch.is_quiet());
        fs::create_dir(base.path().join("folder")).unwrap();
        fs::remove_dir(base.path().join("folder")).unwrap();
        assert!(!watch.is_quiet());

        symlink("circle", base.path().join("circle")).unwrap();
        let circle = Watch::of([base.path().join("circle/a.h").as_path()]);
        assert_eq!(circle.err(), Some(Errno::LOOP));
    }
}
