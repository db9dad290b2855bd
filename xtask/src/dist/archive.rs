//! The archive and its checksum.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Packs the folder `name` of `stage` into `out`, with a checksum file beside it, and returns the archive. The same files
/// give the same bytes: they are sorted, and their owner, rights and times (seconds since 1970) are fixed.
pub fn pack(stage: &Path, name: &str, out: &Path, time: u64) -> Result<PathBuf> {
    let file = format!("{name}.tar.gz");
    let archive = out.join(&file);
    let packed = Command::new("tar")
        .args(["--create", "--format=gnu", "--sort=name", "--numeric-owner"])
        .args(["--owner=0", "--group=0", "--mode=u=rwX,go=rX"])
        .arg(format!("--mtime=@{time}"))
        // Without a name or a time of its own.
        .args(["--use-compress-program", "gzip --no-name --best"])
        .arg("--file")
        .arg(std::path::absolute(&archive).map_err(|error| Error::io(archive.display(), error))?)
        .arg(name)
        .current_dir(stage)
        .status()
        .map_err(|error| Error::Missing(format!("cannot start tar: {error}; install GNU tar and gzip")))?;
    if !packed.success() {
        return Err(Error::Failed("tar could not pack the archive, see above".into()));
    }
    let bytes = fs::read(&archive).map_err(|error| Error::io(archive.display(), error))?;
    let sum: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let beside = out.join(format!("{file}.sha256"));
    // As `sha256sum --check` reads it.
    fs::write(&beside, format!("{sum}  {file}\n")).map_err(|error| Error::io(beside.display(), error))?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// The same files, written in another order and with other rights of the group.
    fn staged(folder: &Path, names: [&str; 3], mode: u32) {
        for name in names {
            let path = folder.join("hipcl-1").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, name).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink("b", folder.join("hipcl-1/link")).unwrap();
    }

    #[test]
    fn the_same_files_give_the_same_bytes_and_a_checksum_that_fits() {
        let folder = tempfile::tempdir().unwrap();
        let mut archives = Vec::new();
        for (index, (names, mode)) in [(["a", "b", "c/d"], 0o755), (["c/d", "b", "a"], 0o700)]
            .into_iter()
            .enumerate()
        {
            let (stage, out) = (
                folder.path().join(format!("stage{index}")),
                folder.path().join(format!("out{index}")),
            );
            fs::create_dir_all(&out).unwrap();
            staged(&stage, names, mode);
            let archive = pack(&stage, "hipcl-1", &out, 1_700_000_000).unwrap();
            assert_eq!(archive, out.join("hipcl-1.tar.gz"));
            let checked = Command::new("sha256sum")
                .args(["--check", "--quiet", "hipcl-1.tar.gz.sha256"])
                .current_dir(&out)
                .status();
            assert!(checked.unwrap().success());
            archives.push(fs::read(archive).unwrap());
        }
        assert!(archives[0] == archives[1]);
        let out = folder.path().join("later");
        fs::create_dir_all(&out).unwrap();
        let later = pack(&folder.path().join("stage0"), "hipcl-1", &out, 1_700_000_001).unwrap();
        assert!(fs::read(later).unwrap() != archives[0], "the time is in it");
    }
}
