//! PoCL from the distribution's own packages, unpacked without root, for machines without Python or its pip.
//!
//! `apt-get` lists which packages an installation would add and downloads them with its own package lists, so
//! neither the system's lists nor its packages change. Three things make the unpacked tree work where it lies:
//! the libraries get a search path relative to themselves; the ICD loader is taken along, because PoCL's library
//! offers its functions through a loader only; and a small library, compiled here, tells the loader where PoCL is.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::Machine;

const WANTED: [&str; 3] = ["pocl-opencl-icd", "ocl-icd-libopencl1", "patchelf"];

/// The library that `clmgr` opens. Its functions are those of the loader it is linked with.
///
/// The loader reads the variable when it is first called, which is after this ran. Setting it is not safe against other
/// threads that read the environment through C, so programs load OpenCL before they start such threads.
const FRONT: &str = r#"
#include <dlfcn.h>
#include <cstdlib>
#include <string>

__attribute__((constructor)) static void name_the_driver() {
    Dl_info here;
    if (!dladdr(reinterpret_cast<void *>(&name_the_driver), &here)) return;
    std::string driver(here.dli_fname);
    driver.resize(driver.rfind('/') + 1);
    driver += "libpocl.so.2";
    setenv("OCL_ICD_VENDORS", driver.c_str(), /*overwrite=*/0);
}
"#;

/// Fetches and unpacks the packages and makes them relocatable.
pub fn fill(machine: &Machine<'_>, folder: &Path) -> Result<PathBuf, String> {
    let sh = machine.workspace.shell().map_err(|error| error.to_string())?;
    println!("OpenCL: PoCL is under the MIT licence. About 80 MB to download, 300 MB on disk.");
    let debs = download(&sh, folder, &WANTED)?;
    for deb in debs {
        cmd!(sh, "dpkg-deb -x {deb} {folder}")
            .quiet()
            .run()
            .map_err(|error| error.to_string())?;
    }
    // Downloads and documentation are not needed any more; what cannot be removed does no harm.
    let _ = fs::remove_dir_all(folder.join("apt"));
    let libraries = libraries_folder(folder, "libpocl.so.2")?;
    make_relocatable(&sh, folder, &libraries)?;
    front(&sh, machine, folder, &libraries)
}

/// Fetches the packages and those of their needs that the system lacks, into a folder below `folder`.
pub fn download(sh: &Shell, folder: &Path, wanted: &[&str]) -> Result<Vec<PathBuf>, String> {
    let text = |error: xshell::Error| error.to_string();
    for tool in ["apt-get", "dpkg-deb"] {
        if cmd!(sh, "{tool} --version")
            .quiet()
            .ignore_stdout()
            .ignore_stderr()
            .run()
            .is_err()
        {
            return Err(format!("it needs {tool}, which is not installed"));
        }
    }
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial", "debs"] {
        sh.create_dir(apt.join(part)).map_err(text)?;
    }
    let lists = apt.join("lists");
    let cache = apt.join("cache");
    // Without the sandbox user, which may not write here.
    let options = [
        format!("-oDir::State::Lists={}", lists.display()),
        format!("-oDir::Cache={}", cache.display()),
        "-oAPT::Sandbox::User=root".to_string(),
        "-oDebug::NoLocking=1".to_string(),
    ];
    let options = &options;
    cmd!(sh, "apt-get {options...} --quiet update")
        .run()
        .map_err(|_| "apt-get could not fetch the package lists, see above".to_string())?;
    let simulated = cmd!(
        sh,
        "apt-get {options...} --simulate --no-install-recommends install {wanted...}"
    )
    .quiet()
    .read()
    .map_err(|_| {
        format!(
            "apt-get cannot find {}, see above (is there a network?)",
            wanted.join(" or ")
        )
    })?;
    let packages = to_install(&simulated);
    let missing: Vec<&str> = wanted
        .iter()
        .copied()
        .filter(|wanted| !packages.contains(&wanted.to_string()))
        .collect();
    let debs = apt.join("debs");
    {
        let _inside = sh.push_dir(&debs);
        // Those that the system has already are taken along as well: the tree must hold the loader and the driver.
        cmd!(sh, "apt-get {options...} --quiet download {packages...} {missing...}")
            .run()
            .map_err(|_| "apt-get could not download the packages, see above".to_string())?;
    }
    sh.read_dir(&debs).map_err(text)
}

/// The package names in the lines `Inst <name> (<version> …)` of a simulated installation.
fn to_install(simulated: &str) -> Vec<String> {
    simulated
        .lines()
        .filter_map(|line| line.strip_prefix("Inst "))
        .filter_map(|rest| rest.split_whitespace().next())
        .map(str::to_string)
        .collect()
}

/// The folder with this library, for example `usr/lib/x86_64-linux-gnu`.
pub(super) fn libraries_folder(folder: &Path, library: &str) -> Result<PathBuf, String> {
    let lib = folder.join("usr/lib");
    let entries = fs::read_dir(&lib).map_err(|error| format!("{}: {error}", lib.display()))?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.join(library).exists())
        .ok_or_else(|| format!("the packages contain no {library}"))
}

/// Gives the libraries a search path relative to themselves. `patchelf` is one of the packages.
pub(super) fn make_relocatable(sh: &Shell, folder: &Path, libraries: &Path) -> Result<(), String> {
    let patchelf = folder.join("usr/bin/patchelf");
    let mut files = Vec::new();
    shared_libraries(&folder.join("usr/lib"), &mut files).map_err(|error| format!("{}: {error}", folder.display()))?;
    for file in files {
        let search = search_path(&file, folder, libraries);
        // The older kind of search path also holds for what these libraries need in turn.
        cmd!(sh, "{patchelf} --force-rpath --set-rpath {search} {file}")
            .quiet()
            .run()
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// From a library in `folder` to the folder of all libraries, as the loader writes it.
fn search_path(file: &Path, folder: &Path, libraries: &Path) -> String {
    let depth = file
        .strip_prefix(folder)
        .map_or(0, |inside| inside.components().count() - 1);
    let target = libraries.strip_prefix(folder).unwrap_or(libraries);
    format!("$ORIGIN/{}{}", "../".repeat(depth), target.display())
}

/// Regular files in the ELF format named like shared libraries.
fn shared_libraries(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            shared_libraries(&entry.path(), found)?;
        } else if kind.is_file() && entry.file_name().to_string_lossy().contains(".so") {
            let mut magic = [0; 4];
            let mut file = fs::File::open(entry.path())?;
            let elf = std::io::Read::read_exact(&mut file, &mut magic).is_ok();
            if elf && magic == *b"\x7fELF" {
                found.push(entry.path());
            }
        }
    }
    Ok(())
}

fn front(sh: &Shell, machine: &Machine<'_>, folder: &Path, libraries: &Path) -> Result<PathBuf, String> {
    let source = libraries.join("hipcl-pocl.cpp");
    let library = libraries.join("libhipcl-pocl.so");
    let loader = libraries.join("libOpenCL.so.1");
    sh.write_file(&source, FRONT).map_err(|error| error.to_string())?;
    let compiler = &machine.compiler;
    cmd!(
        sh,
        "{compiler} -std=c++17 -O1 -shared -fPIC -o {library} {source} -Wl,--no-as-needed {loader}
         -Wl,-rpath,$ORIGIN -Wl,--disable-new-dtags -ldl"
    )
    .quiet()
    .run()
    .map_err(|error| error.to_string())?;
    let inside = library.strip_prefix(folder).unwrap_or(&library);
    Ok(inside.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_a_simulated_installation_are_read() {
        let simulated = "Reading package lists...\nInst libpocl2 (3.1-3 Debian [amd64])\n\
            Inst patchelf [0.1] (0.14 Debian [amd64])\nConf libpocl2 (3.1-3 Debian [amd64])\n";
        assert_eq!(to_install(simulated), ["libpocl2", "patchelf"]);
    }

    #[test]
    fn search_paths_lead_from_the_library_to_the_libraries() {
        let root = Path::new("/r");
        let libraries = Path::new("/r/usr/lib/arch");
        for (file, expected) in [
            ("/r/usr/lib/arch/libx.so", "$ORIGIN/../../../usr/lib/arch"),
            ("/r/usr/lib/arch/pocl/libd.so", "$ORIGIN/../../../../usr/lib/arch"),
        ] {
            assert_eq!(search_path(Path::new(file), root, libraries), expected);
        }
    }
}
