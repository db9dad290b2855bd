//! Mesa's software Vulkan driver from the distribution's own packages, unpacked into `target/` without root.
//!
//! Only on request: no test needs it to pass, but with it those of `interop::vulkan` run on the host platform.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::{debian, install};
use crate::error::Error;
use crate::workspace::Workspace;

/// The folder in `target/`.
const FOLDER: &str = "hipcl-vulkan";
const WANTED: [&str; 3] = ["libvulkan1", "mesa-vulkan-drivers", "patchelf"];
const DRIVER: &str = "libvulkan_lvp.so";
const MANIFEST: &str = "lavapipe.json";

/// How programs find the driver.
pub struct Software {
    loader: PathBuf,
    manifest: PathBuf,
}

impl Software {
    /// The one that was installed, if any.
    pub fn find(workspace: &Workspace) -> Option<Self> {
        Self::within(&workspace.target().join(FOLDER))
    }

    fn within(folder: &Path) -> Option<Self> {
        let manifest = folder.join(MANIFEST);
        let loader = debian::libraries_folder(folder, DRIVER).ok()?.join("libvulkan.so.1");
        (manifest.exists() && loader.exists()).then_some(Self { loader, manifest })
    }

    /// Name and value of each variable: the loader for `interop`, the driver for the loader.
    pub fn variables(&self) -> [(&'static str, &Path); 2] {
        [("HIPCL_VULKAN", &self.loader), ("VK_DRIVER_FILES", &self.manifest)]
    }
}

/// Installs the driver unless present, and prints how programs find it.
pub fn ensure(workspace: &Workspace) -> crate::error::Result<()> {
    let software = match Software::find(workspace) {
        Some(software) => software,
        None => {
            let folder = workspace.target().join(FOLDER);
            let sh = workspace.shell()?;
            fill(&sh, &folder).map_err(|reason| {
                // The next set-up begins anew; what cannot be removed is in its way and named then.
                let _ = install::remove(&folder);
                Error::Missing(format!(
                    "no software Vulkan driver: {reason}; install one yourself (Debian, Ubuntu: \
                     `apt install libvulkan1 mesa-vulkan-drivers`)"
                ))
            })?
        }
    };
    println!("Vulkan: Mesa's software driver. `cargo xtask test` uses it; for other programs:");
    for (name, value) in software.variables() {
        println!("  export {name}={}", value.display());
    }
    Ok(())
}

fn fill(sh: &Shell, folder: &Path) -> Result<Software, String> {
    println!("Vulkan: Mesa is under the MIT licence. 10 to 60 MB to download, up to 250 MB on disk.");
    install::remove(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for deb in debian::download(sh, folder, &WANTED)? {
        cmd!(sh, "dpkg-deb -x {deb} {folder}")
            .quiet()
            .run()
            .map_err(|error| error.to_string())?;
    }
    let _ = fs::remove_dir_all(folder.join("apt"));
    let libraries = debian::libraries_folder(folder, DRIVER)?;
    debian::make_relocatable(sh, folder, &libraries)?;
    let manifest = manifest(folder, &libraries.join(DRIVER))?;
    // Last: its presence says that the rest is complete.
    sh.write_file(folder.join(MANIFEST), manifest.to_string())
        .map_err(|error| error.to_string())?;
    Software::within(folder).ok_or_else(|| "the packages contain no libvulkan.so.1".to_string())
}

/// What names the driver to Vulkan's loader, which takes a path with a slash in it from the manifest's own folder on:
/// so the folder may be moved.
fn manifest(folder: &Path, driver: &Path) -> Result<serde_json::Value, String> {
    let inside = driver
        .strip_prefix(folder)
        .map_err(|_| format!("the driver {} is not in {}", driver.display(), folder.display()))?;
    Ok(serde_json::json!({
        "file_format_version": "1.0.0",
        "ICD": { "library_path": Path::new(".").join(inside), "api_version": "1.1.0" },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_the_driver_from_its_own_folder_on() {
        let folder = Path::new("/somewhere/target/hipcl-vulkan");
        let driver = folder.join("usr/lib/arch").join(DRIVER);
        let written = manifest(folder, &driver).unwrap();
        assert_eq!(written["ICD"]["library_path"], format!("./usr/lib/arch/{DRIVER}"));
        assert!(manifest(Path::new("/other"), &driver).is_err());
    }

    #[test]
    fn a_half_filled_folder_is_no_driver() {
        let folder = tempfile::tempdir().unwrap();
        let libraries = folder.path().join("usr/lib/arch");
        fs::create_dir_all(&libraries).unwrap();
        assert!(Software::within(folder.path()).is_none());
        for library in [DRIVER, "libvulkan.so.1"] {
            fs::write(libraries.join(library), "").unwrap();
        }
        assert!(Software::within(folder.path()).is_none());
        fs::write(folder.path().join(MANIFEST), "{}").unwrap();
        let found = Software::within(folder.path()).unwrap();
        let [(_, loader), (_, manifest)] = found.variables();
        assert!(loader.exists() && manifest.exists());
    }
}
