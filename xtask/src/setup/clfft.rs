//! clFFT from the distribution's own packages, unpacked into `target/` without root, with the ICD loader that it is linked
//! with.
//!
//! Only on request: the examples with it say that they skip where it is missing.

use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::{debian, install};
use crate::error::Error;
use crate::workspace::Workspace;

/// The folder in `target/`.
const FOLDER: &str = "hipcl-clfft";
const WANTED: [&str; 3] = ["libclfft2", "ocl-icd-libopencl1", "patchelf"];
const LIBRARY: &str = "libclFFT.so.2";
/// What the examples read.
pub const VARIABLE: &str = "HIPCL_CLFFT";

/// The library that was installed, if any.
pub fn find(workspace: &Workspace) -> Option<PathBuf> {
    within(&workspace.target().join(FOLDER))
}

fn within(folder: &Path) -> Option<PathBuf> {
    let library = debian::libraries_folder(folder, LIBRARY).ok()?.join(LIBRARY);
    // Removed last: then the rest is complete.
    (!folder.join("apt").exists()).then_some(library)
}

/// Installs the library unless present, and prints how programs find it.
pub fn ensure(workspace: &Workspace) -> crate::error::Result<()> {
    let library = match find(workspace) {
        Some(library) => library,
        None => {
            let folder = workspace.target().join(FOLDER);
            let sh = workspace.shell()?;
            fill(&sh, &folder).map_err(|reason| {
                // The next set-up begins anew; what cannot be removed is in its way and named then.
                let _ = install::remove(&folder);
                Error::Missing(format!(
                    "no clFFT: {reason}; install it yourself (Debian, Ubuntu: `apt install libclfft2`), or set {VARIABLE} to it"
                ))
            })?
        }
    };
    println!("clFFT: `cargo xtask test` uses it; for other programs:");
    println!("  export {VARIABLE}={}", library.display());
    Ok(())
}

fn fill(sh: &Shell, folder: &Path) -> Result<PathBuf, String> {
    println!("clFFT: it is under the Apache licence 2.0. About 1 MB to download.");
    install::remove(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for deb in debian::download(sh, folder, &WANTED)? {
        cmd!(sh, "dpkg-deb -x {deb} {folder}")
            .quiet()
            .run()
            .map_err(|error| error.to_string())?;
    }
    let libraries = debian::libraries_folder(folder, LIBRARY)?;
    debian::make_relocatable(sh, folder, &libraries)?;
    let apt = folder.join("apt");
    install::remove(&apt).map_err(|error| format!("{}: {error}", apt.display()))?;
    within(folder).ok_or_else(|| format!("the packages contain no {LIBRARY}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_half_filled_folder_holds_no_library() {
        let folder = tempfile::tempdir().unwrap();
        let libraries = folder.path().join("usr/lib/arch");
        fs::create_dir_all(&libraries).unwrap();
        assert_eq!(within(folder.path()), None);
        fs::write(libraries.join(LIBRARY), "").unwrap();
        fs::create_dir(folder.path().join("apt")).unwrap();
        assert_eq!(within(folder.path()), None);
        fs::remove_dir(folder.path().join("apt")).unwrap();
        assert_eq!(within(folder.path()), Some(libraries.join(LIBRARY)));
    }
}
