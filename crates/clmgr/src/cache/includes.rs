//! The files that a source includes, as far as they can be known before it is compiled.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kernel_cache::{NotUnderstood, Scan};
use rustix::fs::{Mode, OFlags};

/// Environment variables from which drivers take options (clr: rocclr/utils/flags.hpp; pocl:
/// lib/CL/pocl_build.c).
const DRIVER_VARIABLES: [&str; 3] = [
    "AMD_OCL_BUILD_OPTIONS",
    "AMD_OCL_BUILD_OPTIONS_APPEND",
    "POCL_EXTRA_BUILD_FLAGS",
];

/// Every file that a directive may mean.
///
/// Which of them a compiler takes depends on the driver, so all are kept: if one appears, changes or vanishes, the
/// compilation may yield something else.
pub(super) type Includes = BTreeMap<PathBuf, Include>;

/// A file that a directive may mean.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Include {
    /// None where there is no such file.
    pub(super) content: Option<Vec<u8>>,
    /// Other contents that were in the file in between leave another stamp.
    stamp: Option<Stamp>,
}

/// Which file it is, and when it was changed last.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        Self {
            file: (file.dev(), file.ino()),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

/// Follows the includes of a source and of what it includes.
///
/// # Errors
///
/// What can't be resolved: a directive that names its file through a macro, a test whether a file
/// exists, a file that can't be found or is not UTF-8, or an option that may include one. Directives in skipped parts
/// count too.
pub(super) fn of(source: &str, options: &str) -> Result<Includes, NotUnderstood> {
    kernel_cache::unset(&kernel_cache::INCLUDE_VARIABLES)?;
    kernel_cache::unset(&DRIVER_VARIABLES)?;
    if options.contains(['\\', '\'']) {
        return Err(NotUnderstood::new(
            "drivers interpret `\\` and `'` in build options differently",
        ));
    }
    if options.contains(|c: char| c.is_whitespace() && !c.is_ascii_whitespace()) {
        return Err(NotUnderstood::new(
            "drivers do not split build options at every kind of blank; use the ordinary one",
        ));
    }
    let options = kernel_cache::words(options);
    let (folders, others) = include_folders(&options);
    // Clang reads such a file as a map from the names of headers to other files.
    let is_file = |folder: &&&str| Path::new(folder).metadata().is_ok_and(|it| !it.is_dir());
    if let Some(file) = folders.iter().find(is_file) {
        return Err(NotUnderstood::new(format!("the include folder `{file}` is a file")));
    }
    let mut scan = Scan::default();
    scan.options(others)?;
    let mut includes = Includes::new();
    // The folder of a source without a file is the driver's choice; most take the current one.
    let mut open: Vec<(PathBuf, String)> = vec![(PathBuf::new(), source.to_owned())];
    while let Some((folder, text)) = open.pop() {
        for name in scan.text(&text)? {
            let beside = [folder.as_path(), Path::new("")];
            let mut exists = false;
            for base in beside.into_iter().chain(folders.iter().copied().map(Path::new)) {
                let path = base.join(&name);
                if let Some(known) = includes.get(&path) {
                    exists |= known.content.is_some();
                    continue;
                }
                let include = read(&path, &name)?;
                if let Some(content) = &include.content {
                    exists = true;
                    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
                    let text = String::from_utf8(content.clone())
                        .map_err(|_| NotUnderstood::new(format!("the include `{name}` is not UTF-8")))?;
                    open.push((folder, text));
                }
                includes.insert(path, include);
            }
            if !exists {
                return Err(NotUnderstood::new(format!(
                    "the include `{name}` was not found in any folder"
                )));
            }
        }
    }
    Ok(includes)
}

/// The largest include that is looked through.
const LARGEST: u64 = 64 << 20;

/// What stands at the path of an include. Directives that the compiler skips count, so it may never open the file.
fn read(path: &Path, name: &str) -> Result<Include, NotUnderstood> {
    let missing = Include {
        content: None,
        stamp: None,
    };
    // A pipe is opened without waiting for its writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else {
        return Ok(missing);
    };
    let file = File::from(file);
    let stamp = match file.metadata() {
        Ok(found) if found.is_dir() => return Ok(missing),
        Ok(found) if found.is_file() && found.len() < LARGEST => Stamp::of(&found),
        _ => {
            return Err(NotUnderstood::new(format!(
                "the include `{name}` is no regular file of less than {} MiB",
                LARGEST >> 20
            )));
        }
    };
    let mut content = Vec::new();
    Ok(Include {
        content: file.take(LARGEST).read_to_end(&mut content).ok().map(|_| content),
        stamp: Some(stamp),
    })
}

/// The include folders from the options, and the other options.
fn include_folders(options: &[String]) -> (Vec<&str>, Vec<&str>) {
    let (mut folders, mut others) = (Vec::new(), Vec::new());
    let mut words = options.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word.strip_prefix("-I") {
            Some("") => folders.extend(words.next()),
            Some(folder) => folders.push(folder),
            None => others.push(word),
        }
    }
    (folders, others)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn folders_are_read_from_the_options_as_compilers_do() {
        let options = kernel_cache::words("-DA=1 -Ione -I two -I \"three four\" -cl-mad-enable -I");
        assert_eq!(
            include_folders(&options),
            (vec!["one", "two", "three four"], vec!["-DA=1", "-cl-mad-enable"])
        );
        assert!(of("", "-include x.h").is_err() && of("", "-isystem d").is_err());
        assert!(of("", "-DX='a'").is_err());
        for blank in ['\u{a0}', '\u{3000}', '\u{b}'] {
            assert!(of("", &format!("-Iu{blank}")).is_err());
        }
    }

    #[test]
    fn every_file_that_may_be_meant_counts_and_files_that_include_each_other_end() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("a.h"), "#include \"deep/b.h\"\n").unwrap();
        fs::write(at("deep/b.h"), "#include \"c.h\"\n#include \"../a.h\"\n").unwrap();
        fs::write(at("deep/c.h"), "int c;\n").unwrap();
        let options = format!("-I {}", folder.path().display());
        let includes = of("#include <a.h>\n", &options).unwrap();
        let content = |name: &str| includes.get(&at(name)).unwrap().content.as_deref();
        assert_eq!(content("deep/c.h"), Some(&b"int c;\n"[..]));
        // Another folder that is searched has no such file so far.
        assert_eq!(content("c.h"), None);
        assert!(
            of("#include <d.h>\n", &options)
                .unwrap_err()
                .to_string()
                .contains("`d.h`")
        );
        assert!(of("kernel void f() {}", &options).unwrap().is_empty());
    }

    #[test]
    fn what_was_there_in_between_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.h"), "int a;\n").unwrap();
        fs::write(at("other.h"), "int b;\n").unwrap();
        let options = format!("-I {}", folder.path().display());
        let found = || of("#include <a.h>\n", &options).unwrap();
        // The file system's clock ticks by milliseconds: each change is repeated until its time is another.
        let changes = |change: &dyn Fn()| {
            let before = found();
            let is_noticed = (0..100_000).any(|_| {
                change();
                found() != before
            });
            assert!(is_noticed);
            let after = found();
            for (path, include) in &before {
                assert_eq!(include.content, after[path].content, "{}", path.display());
            }
        };
        assert_eq!(found(), found());
        changes(&|| {
            fs::rename(at("a.h"), at("kept.h")).unwrap();
            fs::rename(at("other.h"), at("a.h")).unwrap();
            fs::rename(at("a.h"), at("other.h")).unwrap();
            fs::rename(at("kept.h"), at("a.h")).unwrap();
        });
        changes(&|| {
            fs::write(at("a.h"), "int c;\n").unwrap();
            fs::write(at("a.h"), "int a;\n").unwrap();
        });
    }

    #[test]
    fn a_file_that_cannot_be_read_as_a_compiler_reads_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("-I {}", folder.path().display());
        for (content, why) in [
            (&b"#include \"\xff.h\"\n"[..], "UTF-8"),
            (b"#\0include \"b.h\"\n", "NUL"),
        ] {
            fs::write(folder.path().join("a.h"), content).unwrap();
            let error = of("#include \"a.h\"\n", &options).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn an_include_folder_that_is_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let map = folder.path().join("names.hmap");
        fs::write(folder.path().join("a.h"), "").unwrap();
        let options = format!("-I {} -I {}", map.display(), folder.path().display());
        of("#include \"a.h\"\n", &options).unwrap();
        fs::write(&map, "").unwrap();
        let error = of("#include \"a.h\"\n", &options).unwrap_err().to_string();
        assert!(error.contains("names.hmap"), "{error}");
    }

    #[test]
    fn an_include_without_an_end_is_not_read() {
        for text in ["#include \"/dev/zero\"\n", "#if 0\n#include \"/dev/zero\"\n#endif\n"] {
            let reason = of(text, "").unwrap_err().to_string();
            assert!(reason.contains("no regular file"), "{reason}");
        }
    }
}
