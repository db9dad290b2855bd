//! `cargo xtask capi`: the C library in a folder, under the names that programs look for.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use xshell::cmd;

use crate::dist::paths::{self, Paths};
use crate::error::{Error, Result};
use crate::workspace::{Workspace, cargo, package_of};

/// Where to install.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The folder that gets `lib` and `include`, with what pkg-config and CMake look for
    #[arg(value_name = "PREFIX")]
    prefix: PathBuf,
    /// Cargo features of the library, such as nvidia
    #[arg(long, value_name = "FEATURES")]
    features: Option<String>,
}

/// The name that the dynamic linker looks for, which `crates/interop-capi/package/link.sh` writes into the library.
const SONAME: &str = "libhipcl.so.0";

/// The headers, in their folder and in `include`.
const HEADERS: [&str; 22] = [
    "hipcl.h",
    "hipcl.hpp",
    "hipcl/manager_opencl.hpp",
    "hipcl/manager_opencl/opencl.hpp",
    "hipcl/manager_opencl/bytes.hpp",
    "hipcl/manager_opencl/event.hpp",
    "hipcl/manager_opencl/log.hpp",
    "hipcl/manager_opencl/queues.hpp",
    "hipcl/manager_opencl/registry.hpp",
    "hipcl/manager_opencl/arguments.hpp",
    "hipcl/manager_opencl/order.hpp",
    "hipcl/manager_opencl/session.hpp",
    "hipcl/manager_opencl/memory.hpp",
    "hipcl/manager_opencl/launch.hpp",
    "hipcl/manager_opencl/device.hpp",
    "hipcl/manager_opencl/external_info.hpp",
    "hipcl/manager_opencl/buffers.hpp",
    "hipcl/manager_opencl/gpu_memory_buffer.hpp",
    "hipcl/manager_opencl/factory.hpp",
    "hipcl/manager_opencl/programs.hpp",
    "hipcl/manager_opencl/engine.hpp",
    "hipcl/manager_opencl/external.hpp",
];

/// Builds the library with optimisation and copies it.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    build(workspace, &["interop-capi"], options.features.as_deref(), None)?;
    install(workspace, &options.prefix)?;
    println!("installed {}", options.prefix.display());
    Ok(())
}

/// Builds these crates with optimisation, and with paths of this machine replaced in the binaries if `hidden` are given.
pub fn build(workspace: &Workspace, packages: &[&str], features: Option<&str>, hidden: Option<&Paths>) -> Result<()> {
    let (sh, cargo) = (workspace.shell()?, cargo());
    let packages = packages
        .iter()
        .flat_map(|name| ["--package".to_owned(), package_of(name)]);
    let features = features.iter().flat_map(|features| ["--features", features]);
    let environment = hidden.map(|paths| (paths::ENCODED_FLAGS, paths.encoded_flags()));
    cmd!(sh, "{cargo} build --release {packages...} {features...}")
        .envs(environment)
        .run()
        .map_err(|_| Error::Failed("the C library does not build, see above".into()))
}

/// The version of the library, which is the workspace's.
pub fn version(workspace: &Workspace) -> Result<String> {
    let packages = workspace.metadata()["packages"].as_array();
    let own = packages.and_then(|packages| packages.iter().find(|package| package["name"] == "interop-capi"));
    own.and_then(|package| package["version"].as_str())
        .map(str::to_owned)
        .ok_or_else(|| Error::Failed("`cargo metadata` names no version of interop-capi".into()))
}

/// Copies the built library and its headers, links the shared one, and adds what pkg-config and CMake look for.
pub fn install(workspace: &Workspace, prefix: &Path) -> Result<()> {
    install_from(
        &workspace.target().join("release"),
        &workspace.root().join("crates/interop-capi"),
        &version(workspace)?,
        prefix,
    )
}

fn install_from(built: &Path, package: &Path, version: &str, prefix: &Path) -> Result<()> {
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let (pkg_config, cmake) = (lib.join("pkgconfig"), lib.join("cmake/hipcl"));
    let mut files = vec![(built.join("libhipcl_c.a"), lib.join("libhipcl.a"))];
    files.extend(HEADERS.map(|header| (package.join("include").join(header), include.join(header))));
    let folder_of = |path: &Path| path.parent().unwrap_or(prefix).to_owned();
    let folders = files.iter().map(|(_, to)| folder_of(to));
    for folder in folders.chain([pkg_config.clone(), cmake.clone()]) {
        fs::create_dir_all(&folder).map_err(|error| Error::io(folder.display(), error))?;
    }
    for (from, to) in files {
        fs::copy(&from, &to).map_err(|error| Error::io(format!("{} to {}", from.display(), to.display()), error))?;
    }
    link(package, &lib)?;
    for (name, folder) in [
        ("hipcl.pc", &pkg_config),
        ("hipcl-config.cmake", &cmake),
        ("hipcl-config-version.cmake", &cmake),
    ] {
        let from = package.join("package").join(name);
        let text = fs::read_to_string(&from).map_err(|error| Error::io(from.display(), error))?;
        let to = folder.join(name);
        fs::write(&to, text.replace("@VERSION@", version)).map_err(|error| Error::io(to.display(), error))?;
    }
    let link = lib.join("libhipcl.so");
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link).map_err(|error| Error::io(link.display(), error))?;
    }
    symlink(SONAME, &link).map_err(|error| Error::io(link.display(), error))
}

/// Links the shared library from the static one.
fn link(package: &Path, lib: &Path) -> Result<()> {
    // Not in place: a program may be using it.
    let (new, library) = (lib.join("libhipcl.new"), lib.join(SONAME));
    let linked = Command::new(package.join("package/link.sh"))
        .args([&lib.join("libhipcl.a"), &new])
        .arg("-Wl,--strip-debug")
        .status()
        .map_err(|error| Error::io("package/link.sh", error))?;
    if !linked.success() {
        return Err(Error::Failed(
            "the shared library cannot be linked, see above; it needs a C compiler, `cc` or the one that CC names"
                .into(),
        ));
    }
    fs::rename(&new, &library).map_err(|error| Error::io(library.display(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A static library with every function that is exported.
    fn archive(folder: &Path) {
        let map = Workspace::discover()
            .unwrap()
            .root()
            .join("crates/interop-capi/package/libhipcl.map");
        let map = fs::read_to_string(map).unwrap();
        let names = map
            .lines()
            .filter_map(|line| line.trim().strip_suffix(';').filter(|name| name.starts_with("hipcl_")));
        let code: String = names.map(|name| format!("void {name}(void) {{}}\n")).collect();
        fs::write(folder.join("a.c"), code).unwrap();
        for command in ["cc -fPIC -c a.c", "ar rc libhipcl_c.a a.o"] {
            let mut words = command.split(' ');
            let mut tool = Command::new(words.next().unwrap());
            assert!(tool.args(words).current_dir(folder).status().unwrap().success());
        }
    }

    #[test]
    fn an_installation_has_the_names_that_programs_look_for_and_can_be_renewed() {
        let workspace = Workspace::discover().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (built, prefix) = (folder.path().join("built"), folder.path().join("prefix"));
        fs::create_dir_all(&built).unwrap();
        archive(&built);
        let package = workspace.root().join("crates/interop-capi");
        for version in ["7.8.9", "7.8.10"] {
            install_from(&built, &package, version, &prefix).unwrap();
            let library = |name: &str| fs::read(prefix.join("lib").join(name)).unwrap();
            let versioned = library("libhipcl.so.0");
            assert!(versioned.windows(9).any(|bytes| bytes == b"HIPCL_0.1"));
            assert_eq!(library("libhipcl.so"), versioned);
            assert!(library("libhipcl.a").starts_with(b"!<arch>"));
            assert!(!prefix.join("lib/libhipcl.new").exists());
            for header in HEADERS {
                assert!(prefix.join("include").join(header).is_file(), "{header}");
            }
            let text = |path: &str| fs::read_to_string(prefix.join(path)).unwrap();
            assert!(text("lib/pkgconfig/hipcl.pc").contains(&format!("\nVersion: {version}\n")));
            let cmake = text("lib/cmake/hipcl/hipcl-config-version.cmake");
            assert!(
                cmake.contains(&format!("set(PACKAGE_VERSION \"{version}\")")),
                "{cmake}"
            );
            assert!(text("lib/cmake/hipcl/hipcl-config.cmake").contains(SONAME));
        }
    }

    #[test]
    fn every_header_that_another_one_includes_is_installed() {
        let include = Workspace::discover()
            .unwrap()
            .root()
            .join("crates/interop-capi/include");
        for header in HEADERS {
            let path = include.join(header);
            let text = fs::read_to_string(&path).unwrap();
            let included = text
                .lines()
                .filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
            for name in included {
                let included = path.with_file_name(name).canonicalize().unwrap();
                let is_installed = HEADERS
                    .iter()
                    .any(|header| include.join(header).canonicalize().unwrap() == included);
                assert!(is_installed, "{header} includes {name}");
            }
        }
    }

    #[test]
    fn a_missing_library_is_named() {
        let workspace = Workspace::discover().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let package = workspace.root().join("crates/interop-capi");
        let error = install_from(folder.path(), &package, "1.0.0", &folder.path().join("prefix")).unwrap_err();
        assert!(error.to_string().contains("libhipcl_c.a"), "{error}");
    }

    #[test]
    fn the_library_is_installed_by_its_soname() {
        let workspace = Workspace::discover().unwrap();
        let script = workspace.root().join("crates/interop-capi/package/link.sh");
        assert!(fs::read_to_string(script).unwrap().contains(SONAME));
    }
}
