//! Where `pip` would look for packages: its variables and configuration files, read without Python.
//!
//! A site that mirrors the public index has already configured `pip` for it. The rules are those of pip's
//! documentation ("Configuration"): variables override files, a later file overrides an earlier one, and a
//! command's section overrides `[global]`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use configparser::ini::Ini;

/// The host of the public index, which serves projects under `/simple`.
const PUBLIC_HOST: &str = "pypi.org";

/// The sections that apply to a download, the strongest last.
const SECTIONS: [&str; 2] = ["global", "download"];

/// The part of pip's configuration that matters for a download.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The index addresses, in the order of the queries.
    pub indexes: Vec<String>,
    /// Local folders that may already hold the files.
    pub folders: Vec<PathBuf>,
    /// A certificate file that replaces the system's certificates.
    pub certificates: Option<PathBuf>,
    /// The proxy; without it the usual variables apply (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`).
    pub proxy: Option<String>,
}

/// The value of an environment variable, if it is set.
type Variable<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

impl Settings {
    /// The settings for this process.
    ///
    /// # Errors
    /// If a configuration file exists but cannot be read.
    pub fn of_this_process() -> Result<Self, String> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self::read(Path::new("/etc"), &variable)
    }

    /// On a machine whose system-wide files are in `etc`.
    fn read(etc: &Path, variable: &Variable<'_>) -> Result<Self, String> {
        let mut files = Vec::new();
        for path in configuration_files(etc, variable) {
            if path.is_file() {
                let mut file = Ini::new();
                // A comment takes a whole line; a `#` or `;` within a line belongs to an address.
                file.set_inline_comment_symbols(Some(&[]));
                file.set_multiline(true);
                file.load(&path)
                    .map_err(|reason| format!("pip's configuration {}: {reason}", path.display()))?;
                files.push(file);
            }
        }
        let setting = |key: &str| -> Option<String> {
            let name = format!("PIP_{}", key.to_uppercase().replace('-', "_"));
            let of_files = || {
                let places = files.iter().flat_map(|file| SECTIONS.map(|section| (file, section)));
                places
                    .filter_map(|(file, section)| {
                        file.get(section, key)
                            .or_else(|| file.get(section, &key.replace('-', "_")))
                    })
                    .next_back()
            };
            let named = variable(&name).map(|value| value.to_string_lossy().into_owned());
            named.or_else(of_files).filter(|value| !value.trim().is_empty())
        };
        let list = |key: &str| -> Vec<String> {
            let text = setting(key).unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect()
        };

        let mut indexes = Vec::new();
        if !setting("no-index").is_some_and(|value| is_true(&value)) {
            indexes.push(setting("index-url").unwrap_or_else(|| format!("https://{PUBLIC_HOST}/simple")));
            indexes.extend(list("extra-index-url"));
        }
        for index in &mut indexes {
            index.truncate(index.trim_end_matches('/').len());
        }
        let folders = list("find-links");
        Ok(Self {
            indexes,
            folders: folders.iter().filter_map(|place| folder(place)).collect(),
            certificates: setting("cert").map(PathBuf::from),
            proxy: setting("proxy"),
        })
    }
}

/// The weakest first. `PIP_CONFIG_FILE` replaces the user's own files; set to the null device, it disables all
/// files.
fn configuration_files(etc: &Path, variable: &Variable<'_>) -> Vec<PathBuf> {
    let named = variable("PIP_CONFIG_FILE").map(PathBuf::from);
    if named.as_deref() == Some(Path::new("/dev/null")) {
        return Vec::new();
    }
    let shared = variable("XDG_CONFIG_DIRS").unwrap_or_else(|| etc.join("xdg").into());
    let mut files: Vec<PathBuf> = std::env::split_paths(&shared)
        .map(|folder| folder.join("pip/pip.conf"))
        .collect();
    files.push(etc.join("pip.conf"));
    if !named.as_ref().is_some_and(|file| file.exists())
        && let Some(home) = variable("HOME").map(PathBuf::from)
    {
        let own = variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        files.extend([home.join(".pip/pip.conf"), own.join("pip/pip.conf")]);
    }
    if let Some(environment) = variable("VIRTUAL_ENV") {
        files.push(Path::new(&environment).join("pip.conf"));
    }
    files.extend(named);
    files
}

/// A local folder of files.
fn folder(place: &str) -> Option<PathBuf> {
    match place.strip_prefix("file://") {
        Some(path) => Some(path.into()),
        None if place.contains("://") => None,
        None => Some(place.into()),
    }
}

fn is_true(value: &str) -> bool {
    ["1", "true", "yes", "on", "y", "t"].contains(&value.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The settings of a machine with these variables and with all folders in `home`.
    fn settings(home: &Path, variables: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::read(home, &|name| {
            let own = variables.iter().find(|(known, _)| *known == name);
            match (own, name) {
                (Some((_, value)), _) => Some(value.into()),
                (None, "HOME" | "XDG_CONFIG_DIRS") => Some(home.into()),
                _ => None,
            }
        })
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_public_index_is_the_default() {
        let home = tempfile::tempdir().unwrap();
        write(
            &home.path().join("pip.conf"),
            "[global]\nindex-url = https://x.example\n",
        );
        let set = settings(home.path(), &[("PIP_CONFIG_FILE", "/dev/null")]).unwrap();
        assert_eq!(set.indexes, [format!("https://{PUBLIC_HOST}/simple")]);
        assert_eq!(set.folders, [""; 0].map(PathBuf::from));
    }

    #[test]
    fn variables_override_files_and_later_files_override_earlier_ones() {
        let home = tempfile::tempdir().unwrap();
        let own = home.path().join(".config/pip/pip.conf");
        write(
            &home.path().join("pip/pip.conf"),
            "[global]\nindex-url = https://shared.example/simple\nproxy = http://shared.example:3128\n",
        );
        write(
            &own,
            "# a mirror\n[global]\nindex-url = https://own.example/a;b#c/\n\
             extra-index-url =\n    https://one.example/simple\n    https://two.example/simple/\n\
             [install]\nindex-url = https://not-for-downloads.example\n",
        );
        let set = settings(home.path(), &[]).unwrap();
        assert_eq!(
            set.indexes,
            [
                "https://own.example/a;b#c",
                "https://one.example/simple",
                "https://two.example/simple"
            ]
        );
        assert_eq!(set.proxy.as_deref(), Some("http://shared.example:3128"));

        let named = ("PIP_INDEX_URL", "https://named.example/simple/");
        let set = settings(home.path(), &[named]).unwrap();
        assert_eq!(set.indexes[0], "https://named.example/simple");

        write(
            &own,
            "[download]\nindex_url = https://command.example\n[global]\nindex-url = https://x.example\n",
        );
        let set = settings(home.path(), &[]).unwrap();
        assert_eq!(set.indexes, ["https://command.example"]);
    }

    #[test]
    fn a_named_file_replaces_the_user_files() {
        let home = tempfile::tempdir().unwrap();
        write(
            &home.path().join(".config/pip/pip.conf"),
            "[global]\nindex-url = https://own.example\ncert = /own.pem\n",
        );
        let file = home.path().join("named.conf");
        write(&file, "[global]\nindex-url = https://named.example\n");
        let set = settings(home.path(), &[("PIP_CONFIG_FILE", file.to_str().unwrap())]).unwrap();
        assert_eq!(set.indexes, ["https://named.example"]);
        assert_eq!(set.certificates, None);
    }

    #[test]
    fn without_an_index_only_folders_are_used() {
        let home = tempfile::tempdir().unwrap();
        let variables = [
            ("PIP_NO_INDEX", "1"),
            ("PIP_FIND_LINKS", "/wheels file:///more https://elsewhere.example/"),
            ("PIP_CERT", "/certificates.pem"),
        ];
        let set = settings(home.path(), &variables).unwrap();
        assert_eq!(set.indexes, [""; 0]);
        assert_eq!(set.folders, ["/wheels", "/more"].map(PathBuf::from));
        assert_eq!(set.certificates.as_deref(), Some(Path::new("/certificates.pem")));
    }

    #[test]
    fn an_invalid_configuration_file_is_named() {
        let home = tempfile::tempdir().unwrap();
        let own = home.path().join(".config/pip/pip.conf");
        write(&own, "[global\nindex-url\n");
        let reason = settings(home.path(), &[]).unwrap_err();
        assert!(
            reason.contains(own.to_str().unwrap()) && !reason.contains('\n'),
            "{reason}"
        );
    }
}
