//! Pinned packages of the distribution, fetched by a private apt configuration that touches nothing of the system.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::Result;
use super::releases::Package;
use super::sources::Mirror;

/// Packages of one suite, kept below the work folder.
pub struct Archive<'a> {
    shell: &'a Shell,
    work: &'a Path,
    suite: &'static str,
}

impl<'a> Archive<'a> {
    pub fn new(shell: &'a Shell, work: &'a Path, suite: &'static str) -> Self {
        Self { shell, work, suite }
    }

    /// The files of `packages`, in their order. A file that is here with the pinned digest is not fetched again.
    pub fn fetch(&self, packages: &[Package]) -> Result<Vec<PathBuf>> {
        let folder = self.work.join("packages");
        fs::create_dir_all(&folder)?;
        let mut config = None;
        let mut files = Vec::new();
        for package in packages {
            let mut found = self.found(&folder, package)?;
            if found.is_none() {
                let config = match &config {
                    Some(config) => config,
                    None => config.insert(self.apt()?),
                };
                self.download(config, &folder, package)?;
                found = self.found(&folder, package)?;
            }
            files.push(found.ok_or_else(|| {
                format!(
                    "{} {} in {} does not have the pinned digest",
                    package.name, package.version, self.suite
                )
            })?);
        }
        Ok(files)
    }

    /// The package's file, if it is here with the pinned digest; one with another digest is removed.
    fn found(&self, folder: &Path, package: &Package) -> Result<Option<PathBuf>> {
        let shell = self.shell;
        // apt names a file after the package, its version and the architecture. Several releases' files lie side by
        // side.
        let prefix = format!("{}_", package.name);
        let pinned = format!("{prefix}{}_", package.version);
        for entry in fs::read_dir(folder)? {
            let file = entry?.path();
            let Some(name) = file.file_name().map(|name| name.to_string_lossy()) else {
                continue;
            };
            if !name.starts_with(&prefix) {
                continue;
            }
            let digest = cmd!(shell, "sha256sum --binary {file}").quiet().read()?;
            if package.sha256.iter().any(|pinned| digest.starts_with(pinned)) {
                return Ok(Some(file));
            }
            if name.starts_with(&pinned) {
                fs::remove_file(&file)?;
            }
        }
        Ok(None)
    }

    fn download(&self, config: &Path, folder: &Path, package: &Package) -> Result<()> {
        let Package { name, version, .. } = package;
        let shell = self.shell;
        let pinned = format!("{name}={version}");
        let known = cmd!(shell, "apt-cache show {pinned}")
            .env("APT_CONFIG", config)
            .quiet()
            .ignore_stderr()
            .read()
            .is_ok_and(|text| !text.is_empty());
        if !known {
            return Err(format!(
                "{name} {version} is no longer in Debian's {}; pin its current version in xtask/src/codegen/releases.rs",
                self.suite
            )
            .into());
        }
        let _folder = shell.push_dir(folder);
        cmd!(shell, "apt-get -qq download {pinned}")
            .env("APT_CONFIG", config)
            .quiet()
            .run()
            .map_err(|_| format!("cannot download {name} {version} from Debian's {}", self.suite))?;
        Ok(())
    }

    /// Writes a configuration with this suite alone and reads its package list; returns the configuration's path.
    fn apt(&self) -> Result<PathBuf> {
        let (shell, suite) = (self.shell, self.suite);
        println!("codegen: reading the package list of Debian's {suite}");
        let mirror = Mirror::of_this_machine(shell)?;
        let apt = self.work.join("apt").join(suite);
        for folder in ["lists/partial", "cache/archives/partial", "state"] {
            fs::create_dir_all(apt.join(folder))?;
        }
        fs::write(apt.join("status"), "")?;
        fs::write(apt.join("sources.list"), mirror.line(suite))?;
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
        cmd!(shell, "apt-get -qq update")
            .env("APT_CONFIG", &config)
            .quiet()
            .run()
            .map_err(|_| format!("cannot read the package list of Debian's {suite}"))?;
        Ok(config)
    }
}
