//! Fills the runtime's folder so that it is either complete and tested, or absent.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{Machine, probe};

/// Fills an empty folder with a runtime; returns the driver library's path relative to that folder.
pub type Fill = fn(&Machine<'_>, &Path) -> Result<PathBuf, String>;

/// Fills a folder beside the final one, tries the driver there, then renames: an interrupted or broken installation is
/// never found, and the next one first removes it.
pub fn into(folder: &Path, icd: &str, fill: impl FnOnce(&Path) -> Result<PathBuf, String>) -> Result<String, String> {
    let partial = sibling(folder, "partial");
    let old = sibling(folder, "old");
    for leftover in [&partial, &old] {
        remove(leftover).map_err(|error| format!("cannot clear {}: {error}", leftover.display()))?;
    }
    let result = fs::create_dir_all(&partial)
        .map_err(|error| format!("cannot create {}: {error}", partial.display()))
        .and_then(|()| fill(&partial))
        .and_then(|library| finish(folder, &partial, &old, icd, &library));
    if result.is_err() {
        // The reason to report is the first one; what is left is cleared by the next run.
        let _ = remove(&partial);
    }
    result
}

fn finish(folder: &Path, partial: &Path, old: &Path, icd: &str, library: &Path) -> Result<String, String> {
    let found = probe::in_child(&partial.join(library))?;
    let describe = |error: io::Error| format!("cannot complete {}: {error}", folder.display());
    write_icd(partial, icd, &folder.join(library)).map_err(describe)?;
    if folder.exists() {
        fs::rename(folder, old).map_err(describe)?;
    }
    fs::rename(partial, folder).map_err(describe)?;
    remove(old).map_err(describe)?;
    Ok(found)
}

/// An `.icd` file is one line: the absolute path of the driver.
fn write_icd(folder: &Path, name: &str, library: &Path) -> io::Result<()> {
    let library = std::path::absolute(library)?;
    let mut line = library.into_os_string().into_encoded_bytes();
    line.push(b'\n');
    fs::write(folder.join(name), line)
}

/// The driver that the folder's `.icd` file of that name names. If the folder was moved since, the file is corrected.
pub fn driver(folder: &Path, icd: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(folder.join(icd)).ok()?;
    let named = PathBuf::from(text.lines().next()?.trim());
    if named.as_os_str().is_empty() {
        return None;
    }
    if named.exists() {
        return Some(named);
    }
    let inside = named
        .ancestors()
        .find(|ancestor| ancestor.file_name() == folder.file_name())
        .and_then(|old_folder| named.strip_prefix(old_folder).ok());
    let moved = inside.map(|inside| folder.join(inside));
    match moved {
        Some(moved) if moved.exists() && write_icd(folder, icd, &moved).is_ok() => Some(moved),
        _ => Some(named),
    }
}

fn sibling(folder: &Path, suffix: &str) -> PathBuf {
    let mut name = folder.as_os_str().to_os_string();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Removes a folder that need not be there.
pub fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_icd_file_names_its_driver_by_absolute_path_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("lib/libdriver.so");
        write_icd(folder.path(), "cpu.icd", &library).unwrap();
        let text = fs::read_to_string(folder.path().join("cpu.icd")).unwrap();
        assert_eq!(text, format!("{}\n", library.display()));
        assert!(Path::new(text.trim_end()).is_absolute());
        assert_eq!(driver(folder.path(), "cpu.icd"), Some(library));
        assert_eq!(driver(folder.path(), "other.icd"), None);
    }

    #[test]
    fn a_folder_that_was_moved_still_names_its_own_driver() {
        let base = tempfile::tempdir().unwrap();
        let (before, after) = (base.path().join("a/runtime"), base.path().join("b/runtime"));
        fs::create_dir_all(before.join("lib")).unwrap();
        fs::write(before.join("lib/driver.so"), "").unwrap();
        write_icd(&before, "cpu.icd", &before.join("lib/driver.so")).unwrap();
        fs::create_dir(base.path().join("b")).unwrap();
        fs::rename(&before, &after).unwrap();

        let found = driver(&after, "cpu.icd");

        assert_eq!(found, Some(after.join("lib/driver.so")));
        let text = fs::read_to_string(after.join("cpu.icd")).unwrap();
        assert_eq!(text.trim_end(), after.join("lib/driver.so").to_str().unwrap());
    }

    #[test]
    fn a_failed_installation_leaves_no_folder_and_keeps_the_old_one() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("runtime");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("kept"), "").unwrap();

        let error = into(&folder, "x.icd", |partial| {
            fs::write(partial.join("half"), "").unwrap();
            Err("the download broke".to_string())
        })
        .unwrap_err();

        assert_eq!(error, "the download broke");
        assert!(folder.join("kept").exists());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn leftovers_of_an_interrupted_installation_do_not_reach_the_next_one() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("runtime");
        let partial = sibling(&folder, "partial");
        fs::create_dir(&partial).unwrap();
        fs::write(partial.join("half"), "").unwrap();

        let error = into(&folder, "x.icd", |partial| {
            Err(format!("{} files", fs::read_dir(partial).unwrap().count()))
        })
        .unwrap_err();

        assert_eq!(error, "0 files");
    }
}
