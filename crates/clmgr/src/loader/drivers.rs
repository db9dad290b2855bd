//! Drivers that the `*.icd` files of a `hipcl-opencl` folder name.
//!
//! The folder is searched for unasked, and a driver is code: one that another user could have put there is refused.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::error::Tried;

/// The folder, near the executable or in `target`.
pub(super) const FOLDER: &str = "hipcl-opencl";

/// The variable with which cargo tells the programs and tests that it starts where their package is.
const PACKAGE_VARIABLE: &str = "CARGO_MANIFEST_DIR";

/// The longest text that names a library.
const LONGEST: u64 = 64 << 10;

const OTHERS_MAY_WRITE: u32 = 0o002;
const GROUP_MAY_WRITE: u32 = 0o020;
/// In such a folder only a file's owner can replace it.
const STICKY: u32 = 0o1000;

/// Those that exist, nearest first: beside or above the executable; and for what cargo starts, in a `target` folder of
/// the package or above, because the executable of an example in the documentation lies elsewhere.
pub(super) fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut consider = |folder: PathBuf| {
        if folder.is_dir() && !folders.contains(&folder) {
            folders.push(folder);
        }
    };
    if let Ok(executable) = std::env::current_exe() {
        for ancestor in executable.ancestors().skip(1) {
            consider(ancestor.join(FOLDER));
        }
    }
    if let Some(package) = std::env::var_os(PACKAGE_VARIABLE) {
        for ancestor in Path::new(&package).ancestors() {
            consider(ancestor.join("target").join(FOLDER));
        }
    }
    folders
}

/// The drivers that the files of `folder` name, in the order of the file names.
pub(super) fn named_in(folder: &Path) -> Vec<Result<PathBuf, Tried>> {
    let failed = |path: &Path, reason: String| Tried {
        path: path.to_owned(),
        reason,
    };
    let entries = match trusted(folder).and_then(|()| std::fs::read_dir(folder).map_err(|error| error.to_string())) {
        Ok(entries) => entries,
        Err(reason) => return vec![Err(failed(folder, reason))],
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension() == Some(OsStr::new("icd")))
        .collect();
    files.sort();
    let named = |file: &PathBuf| driver(file).map_err(|reason| failed(file, reason));
    files.iter().map(named).collect()
}

/// The driver that the file names.
fn driver(file: &Path) -> Result<PathBuf, String> {
    // A pipe is opened without waiting for its writer, and then refused.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(file, flags, Mode::empty()).map_err(|error| error.to_string())?;
    let opened = File::from(opened);
    let metadata = opened.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    trust(&metadata)?;
    let mut text = String::new();
    let read = opened.take(LONGEST).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let library = PathBuf::from(line.ok_or("names no library")?);
    // A bare name is one of the system's.
    if let Some(folder) = library.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let of = |path: &Path, reason: String| format!("names {}: {reason}", path.display());
        // What is not there now may be another user's when it is loaded.
        trusted(folder).map_err(|reason| of(folder, reason))?;
        trusted(&library).map_err(|reason| of(&library, reason))?;
    }
    Ok(library)
}

fn trusted(path: &Path) -> Result<(), String> {
    path.metadata()
        .map_err(|error| error.to_string())
        .and_then(|metadata| trust(&metadata))
}

/// Whether only root, the process's user and that user's own group can have written it.
fn trust(found: &Metadata) -> Result<(), String> {
    let user = rustix::process::geteuid().as_raw();
    if ![0, user].contains(&found.uid()) {
        return Err(format!(
            "it belongs to user {}, not to user {user} or root, so it may be anything; set HIPCL_OPENCL to its library if \
             you trust it",
            found.uid()
        ));
    }
    let by_others = found.mode() & OTHERS_MAY_WRITE != 0;
    let by_group = found.mode() & GROUP_MAY_WRITE != 0 && found.gid() != rustix::process::getegid().as_raw();
    // A file's sticky bit protects nothing.
    let is_sticky = found.is_dir() && found.mode() & STICKY != 0;
    if (by_others || by_group) && !is_sticky {
        return Err(format!(
            "other users may write it (mode {:o}), so it may be anything; revoke that with `chmod go-w`, or set \
             HIPCL_OPENCL to its library if you trust it",
            found.mode() & 0o7777
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A file that passes for a library: this program.
    fn any() -> PathBuf {
        std::env::current_exe().unwrap()
    }

    fn write(path: &Path, mode: u32) {
        std::fs::write(path, any().display().to_string()).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn driver_files_are_read_in_order_and_bad_ones_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let library = any();
        std::fs::write(folder.path().join("b.icd"), format!("\n {} \n", library.display())).unwrap();
        std::fs::write(folder.path().join("a.icd"), "libofthesystem.so").unwrap();
        std::fs::write(folder.path().join("c.icd"), "  \n").unwrap();
        std::fs::write(
            folder.path().join("d.icd"),
            folder.path().join("gone.so").display().to_string(),
        )
        .unwrap();
        std::fs::write(folder.path().join("notes.txt"), library.display().to_string()).unwrap();
        let drivers = named_in(folder.path());
        assert_eq!(drivers.len(), 4);
        assert_eq!(drivers[0].as_deref().unwrap(), Path::new("libofthesystem.so"));
        assert_eq!(drivers[1].as_deref().unwrap(), library);
        let reason = |at: usize| drivers[at].as_ref().unwrap_err().reason.as_str();
        assert!(reason(2).contains("names no library"));
        // It may be another user's by the time it is loaded.
        assert!(reason(3).contains("gone.so: No such file"), "{}", reason(3));
    }

    #[test]
    fn what_others_may_write_names_no_driver() {
        let folder = tempfile::tempdir().unwrap();
        let (file, inner) = (folder.path().join("a.icd"), folder.path().join("inner"));
        write(&file, 0o644);
        assert_eq!(named_in(folder.path())[0].as_deref().unwrap(), any());
        write(&file, 0o666);
        let reason = named_in(folder.path()).remove(0).unwrap_err().reason;
        assert!(reason.contains("other users may write it (mode 666)"), "{reason}");
        write(&file, 0o1666);
        assert!(
            named_in(folder.path())[0].is_err(),
            "the sticky bit of a file means nothing"
        );
        std::fs::create_dir(&inner).unwrap();
        write(&inner.join("b.icd"), 0o644);
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o757)).unwrap();
        let refused = named_in(&inner).remove(0).unwrap_err();
        assert_eq!(refused.path, inner);
        // The library and its folder are asked, too.
        let library = inner.join("libdriver.so");
        write(&library, 0o644);
        std::fs::write(&file, library.display().to_string()).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let reason = named_in(folder.path()).remove(0).unwrap_err().reason;
        assert!(reason.contains("inner: other users"), "{reason}");
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(named_in(folder.path())[0].is_ok());
        std::fs::set_permissions(&library, std::fs::Permissions::from_mode(0o646)).unwrap();
        assert!(named_in(folder.path())[0].is_err());
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        // Only root can give a file away.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.icd");
        write(&file, 0o644);
        if std::os::unix::fs::chown(&file, Some(54321), None).is_ok() {
            let reason = named_in(folder.path()).remove(0).unwrap_err().reason;
            assert!(reason.contains("belongs to user 54321"), "{reason}");
        }
    }

    #[test]
    fn a_pipe_and_a_long_file_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path().join("a.icd"))
            .status();
        assert!(made.expect("mkfifo is a standard tool").success());
        std::fs::write(folder.path().join("b.icd"), vec![b' '; 1 << 20]).unwrap();
        let reasons = named_in(folder.path())
            .into_iter()
            .map(|found| found.unwrap_err().reason);
        assert_eq!(
            reasons.collect::<Vec<_>>(),
            ["it is not a regular file", "names no library"]
        );
    }
}
