//! The header packages of one ROCm release, fetched by a private apt configuration that touches nothing of the system.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::Result;
use super::sources::Mirror;

/// The ROCm release whose headers are used.
pub const RELEASE: &str = "6.4";

/// One binary package of the distribution.
pub struct Package {
    pub name: &'static str,
    pub version: &'static str,
    sha256: &'static str,
}

/// Debian's suite that carries the release.
const SUITE: &str = "testing";

pub const PACKAGES: [Package; 4] = [
    Package {
        name: "libamdhip64-dev",
        version: "6.4.3-5",
        sha256: "f2a3a542d41883f87a45e2d0554c1c84ccf350c836b9e8b35473dadbc34ced5e",
    },
    Package {
        name: "libhsa-runtime-dev",
        version: "6.4.3+dfsg-5",
        sha256: "ee294edb1c087a4df853da341112752514d5f4f48510ba69b04698b904e35500",
    },
    Package {
        name: "librocblas-dev",
        version: "6.4.4-4",
        sha256: "b86fdbe87a20759346214cbe961895bd25dea58e2303739de65b71c34eb5b05b",
    },
    Package {
        name: "librocsolver-dev",
        version: "6.4.3-2+b1",
        sha256: "1fa5aadaa28087c4422af4af03734d5c9eaf7b61729b8910cdd1b9b1eb0d1448",
    },
];

/// The `usr/include` folder of the unpacked packages; packages already in `work` are used again if their digests agree.
pub fn unpacked(shell: &Shell, work: &Path) -> Result<PathBuf> {
    let packages = work.join("packages");
    fs::create_dir_all(&packages)?;
    if found(shell, &packages)?.is_none() {
        download(shell, work, &packages)?;
    }
    let Some(files) = found(shell, &packages)? else {
        return Err("a downloaded header package has another digest than the pinned one".into());
    };
    let tree = work.join("headers");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    fs::create_dir_all(&tree)?;
    for file in files {
        cmd!(shell, "dpkg-deb -x {file} {tree}").quiet().run()?;
    }
    Ok(tree.join("usr/include"))
}

/// The package files in `folder`, in the order of [`PACKAGES`], if each is there with its pinned digest.
fn found(shell: &Shell, folder: &Path) -> Result<Option<Vec<PathBuf>>> {
    let mut files = Vec::new();
    for package in &PACKAGES {
        let prefix = format!("{}_", package.name);
        let file = fs::read_dir(folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
            });
        let Some(file) = file else { return Ok(None) };
        let digest = cmd!(shell, "sha256sum --binary {file}").quiet().read()?;
        if !digest.starts_with(package.sha256) {
            fs::remove_file(&file)?;
            return Ok(None);
        }
        files.push(file);
    }
    Ok(Some(files))
}

fn download(shell: &Shell, work: &Path, packages: &Path) -> Result<()> {
    println!(
        "codegen: fetching the headers of ROCm {RELEASE} ({} packages)",
        PACKAGES.len()
    );
    let mirror = Mirror::of_this_machine(shell)?;
    let apt = work.join("apt");
    for folder in ["lists/partial", "cache/archives/partial", "state"] {
        fs::create_dir_all(apt.join(folder))?;
    }
    fs::write(apt.join("status"), "")?;
    fs::write(apt.join("sources.list"), mirror.line(SUITE))?;
    let folder = apt.display();
    let config = apt.join("apt.conf");
    fs::write(
        &config,
        format!(
            "Dir::Etc::SourceList \"{folder}/sources.list\";\n\
             Dir::Etc::SourceParts \"-\";\n\
             Dir::State \"{folder}/state\";\n\
             Dir::State::Lists \"{folder}/lists\";\n\
             Dir::State::Status \"{folder}/status\";\n\
             Dir::Cache \"{folder}/cache\";\n\
             APT::Architecture \"amd64\";\n\
             APT::Sandbox::User \"\";\n\
             Acquire::Languages \"none\";\n\
             Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n"
        ),
    )?;
    let _folder = shell.push_dir(packages);
    let config = &config;
    cmd!(shell, "apt-get -qq update")
        .env("APT_CONFIG", config)
        .quiet()
        .run()?;
    let wanted = PACKAGES
        .iter()
        .map(|package| format!("{}={}", package.name, package.version));
    cmd!(shell, "apt-get -qq download {wanted...}")
        .env("APT_CONFIG", config)
        .quiet()
        .run()?;
    Ok(())
}
