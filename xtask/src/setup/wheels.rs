//! Intel's OpenCL runtime for CPUs, from the wheels its maker publishes.
//!
//! A wheel is a zip archive. Only the shared libraries in its `data` tree are needed, so this requires neither Python
//! nor pip.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use zip::ZipArchive;

use super::download::{Client, Wanted, copy};
use super::pip::Settings;
use super::{Machine, index};

/// One file of one project in the index.
struct Wheel {
    project: &'static str,
    file: Wanted<'static>,
}

/// The runtime and its dependencies, as exact files: a file that changed after this was written is refused.
static WHEELS: [Wheel; 5] = [
    Wheel {
        project: "intel-opencl-rt",
        file: Wanted {
            name: "intel_opencl_rt-2026.2.0-py2.py3-none-manylinux_2_28_x86_64.whl",
            bytes: 224_964_968,
            sha256: "6b6215a420598b4999ee01caca6d5cbe106aa4155c46c52377619c5aafce9f67",
        },
    },
    Wheel {
        project: "intel-cmplr-lib-rt",
        file: Wanted {
            name: "intel_cmplr_lib_rt-2026.2.0-py2.py3-none-manylinux_2_28_x86_64.whl",
            bytes: 41_454_395,
            sha256: "9f713083073a820d2496a6da8e8d4f3482aba6640f74521d25ea48dcebe72748",
        },
    },
    Wheel {
        project: "intel-cmplr-lic-rt",
        file: Wanted {
            name: "intel_cmplr_lic_rt-2026.2.0-py2.py3-none-manylinux_2_28_x86_64.whl",
            bytes: 18_913,
            sha256: "402d9bc7fd418ab2df7a75b0545cf447bb52e02bedf4e3af0e7d5809b66d749d",
        },
    },
    Wheel {
        project: "tbb",
        file: Wanted {
            name: "tbb-2023.2.0-py2.py3-none-manylinux_2_28_x86_64.whl",
            bytes: 6_864_088,
            sha256: "7d80615b6e970f11671fa05b6eaa9483ac864fbfe525ac280271a78b37870b7c",
        },
    },
    Wheel {
        project: "tcmlib",
        file: Wanted {
            name: "tcmlib-1.6.0-py2.py3-none-manylinux_2_28_x86_64.whl",
            bytes: 2_802_717,
            sha256: "46c2491988bfd18c4733eeb08aca6a386706a497b92cc51d155f37ddea003c14",
        },
    },
];

/// Fetches and unpacks the wheels.
pub fn fill(_: &Machine<'_>, folder: &Path) -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Err("is published only for x86-64 Linux with glibc".into());
    }
    println!(
        "OpenCL: Intel's runtime has Intel's licence (stored in {}); this project only fetches it. About 280 MB to download, 850 MB on disk.",
        folder.with_extension("").join("licensing").display()
    );
    let settings = Settings::of_this_process()?;
    let client = Client::new(&settings)?;
    for Wheel { project, file } in &WHEELS {
        let wheel = folder.join(file.name);
        fetch(&client, &settings, project, file, &wheel)?;
        println!("OpenCL: unpacking {}", file.name);
        unpack(&wheel, folder).map_err(|error| format!("cannot unpack {}: {error}", file.name))?;
        fs::remove_file(&wheel).map_err(|error| format!("{}: {error}", wheel.display()))?;
    }
    Ok("lib/libintelocl.so".into())
}

/// From the first source that has it: a local folder, then the indexes in order.
fn fetch(client: &Client, settings: &Settings, project: &str, file: &Wanted<'_>, wheel: &Path) -> Result<(), String> {
    let here = settings.folders.iter().map(|folder| folder.join(file.name));
    if let Some(here) = here.into_iter().find(|path| path.is_file()) {
        return copy(&here, file, wheel);
    }
    let mut reasons = Vec::new();
    for index in &settings.indexes {
        let page = format!("{index}/{project}/");
        let address = match client.page(&page, index::ACCEPT) {
            Ok(Some((media_type, text))) => index::find(&page, &media_type, &text, file.name, file.sha256),
            Ok(None) => Ok(None),
            Err(reason) => Err(reason),
        };
        match address {
            Ok(Some(address)) => return client.file(&address, file, wheel),
            Ok(None) => reasons.push(format!("an index has no {}", file.name)),
            Err(reason) => reasons.push(reason),
        }
    }
    if reasons.is_empty() {
        reasons.push(format!("no index is allowed, and no folder contains {}", file.name));
    }
    Err(reasons.join("; "))
}

/// Unpacks the data tree into `folder`, and the licence into a folder named after the package.
fn unpack(wheel: &Path, folder: &Path) -> io::Result<()> {
    let mut archive = ZipArchive::new(File::open(wheel)?)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let name = entry.enclosed_name().ok_or_else(|| {
            io::Error::other(format!(
                "{} points outside the archive",
                String::from_utf8_lossy(entry.name_raw())
            ))
        })?;
        let Some(place) = place_of(&name).filter(|_| !entry.is_dir()) else {
            continue;
        };
        let place = folder.join(place);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        io::copy(&mut entry, &mut File::create(&place)?)?;
    }
    Ok(())
}

/// Where a file of a wheel belongs: `NAME.data/data/REST` to `REST`, and the licence in `NAME.dist-info` below
/// `licensing`.
fn place_of(name: &Path) -> Option<PathBuf> {
    let mut parts = name.components();
    let Some(Component::Normal(tree)) = parts.next() else {
        return None;
    };
    let tree = Path::new(tree);
    let rest = parts.as_path();
    match tree.extension()?.to_str()? {
        "data" => Some(rest.strip_prefix("data").ok()?.to_path_buf()),
        "dist-info" if rest == Path::new("LICENSE.txt") => {
            let package = tree.file_stem()?;
            Some(Path::new("licensing").join(package).join(rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;

    fn wheel(path: &Path, files: &[(&str, &str)]) {
        let mut archive = ZipWriter::new(File::create(path).unwrap());
        for (name, text) in files {
            archive.start_file(*name, SimpleFileOptions::default()).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        archive.finish().unwrap();
    }

    #[test]
    fn only_the_data_tree_and_the_licence_of_a_wheel_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool.whl");
        wheel(
            &path,
            &[
                ("tool/__init__.py", "code"),
                ("tool-1.0.data/data/lib/libtool.so", "library"),
                ("tool-1.0.data/purelib/other.py", "code"),
                ("tool-1.0.dist-info/LICENSE.txt", "licence"),
                ("tool-1.0.dist-info/RECORD", "record"),
            ],
        );
        let runtime = folder.path().join("runtime");
        unpack(&path, &runtime).unwrap();
        let text = |name: &str| fs::read_to_string(runtime.join(name)).unwrap();
        assert_eq!(text("lib/libtool.so"), "library");
        assert_eq!(text("licensing/tool-1.0/LICENSE.txt"), "licence");
        assert_eq!(fs::read_dir(&runtime).unwrap().count(), 2);
    }

    #[test]
    fn a_wheel_with_paths_outside_its_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool.whl");
        wheel(&path, &[("tool-1.0.data/data/../../../outside", "x")]);
        let runtime = folder.path().join("a/runtime");
        let error = unpack(&path, &runtime).unwrap_err();
        assert!(error.to_string().contains("points outside"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_an_archive_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool.whl");
        fs::write(&path, "<html>not found</html>").unwrap();
        assert!(unpack(&path, folder.path()).is_err());
    }

    #[test]
    fn without_an_index_the_reason_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::default();
        let client = Client::new(&settings).unwrap();
        let Wheel { project, file } = &WHEELS[0];
        let reason = fetch(&client, &settings, project, file, &folder.path().join("x")).unwrap_err();
        assert!(reason.contains(file.name), "{reason}");
    }
}
