//! A source with the texts of its includes in their places, so that its compiler reads no file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kernel_cache::{Include, Includes, NotUnderstood, Scan};
use rustix::fs::{Mode, OFlags};

/// Environment variables from which drivers take options (clr: rocclr/utils/flags.hpp; pocl:
/// lib/CL/pocl_build.c).
const DRIVER_VARIABLES: [&str; 3] = [
    "AMD_OCL_BUILD_OPTIONS",
    "AMD_OCL_BUILD_OPTIONS_APPEND",
    "POCL_EXTRA_BUILD_FLAGS",
];

/// The largest text.
const LARGEST: usize = 64 << 20;

/// Stands between two texts. A compiler looks for a macro's arguments neither behind a directive nor behind a file's end.
const SEAM: &str = "\n#line 1\n";

/// More includes than any program has.
const MOST: usize = 10_000;

/// Clang goes no deeper either.
const DEEPEST: usize = 200;

/// Replaces each include directive by the text of its file, and of what that includes.
///
/// # Errors
///
/// What drivers may resolve in another way, or not at all: a directive that names its file through a macro, a test
/// whether a file exists, a file that can't be found or that stands in more than one place, an option that may include
/// one, or a text whose meaning depends on its file. Directives in skipped parts count too.
pub(super) fn inline<'s>(source: &'s str, options: &str) -> Result<Cow<'s, str>, NotUnderstood> {
    inline_within(LARGEST, source, options)
}

fn inline_within<'s>(room: usize, source: &'s str, options: &str) -> Result<Cow<'s, str>, NotUnderstood> {
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
    let (folders, others) = include_folders(&options)?;
    let mut scan = Scan::default();
    scan.options(others.iter().copied())?;
    if scan.text(source)?.is_empty() {
        return Ok(source.into());
    }
    // Clang reads such a file as a map from the names of headers to other files.
    let is_file = |folder: &&&str| Path::new(folder).metadata().is_ok_and(|it| !it.is_dir());
    if let Some(file) = folders.iter().find(is_file) {
        return Err(NotUnderstood::new(format!("the include folder `{file}` is a file")));
    }
    let mut scan = Scan::default();
    scan.options(others)?;
    let mut inliner = Inliner {
        folders,
        scan,
        open: Vec::new(),
        included: HashMap::new(),
        count: 0,
        room,
        text: String::new(),
    };
    // The folder of a source without a file is the driver's choice; most take the current one.
    let found = inliner.scan.includes(source)?;
    inliner.add(source, found.directives, Path::new(""))?;
    Ok(inliner.text.into())
}

/// Device and number of a file.
type Identity = (u64, u64);

struct Inliner<'o> {
    folders: Vec<&'o str>,
    scan: Scan,
    /// The files that include what is looked at now.
    open: Vec<Identity>,
    /// The files that were included, and whether another time has the same effect.
    included: HashMap<Identity, bool>,
    count: usize,
    /// How long the text may become.
    room: usize,
    text: String,
}

/// A file that a directive names.
struct Found {
    identity: Identity,
    folder: PathBuf,
    text: String,
}

impl Inliner<'_> {
    fn add(&mut self, text: &str, directives: Vec<Include>, folder: &Path) -> Result<(), NotUnderstood> {
        let mut done = 0;
        for include in directives {
            let found = self.find(&include, folder)?;
            let Includes { directives, once } = self.scan.includes(&found.text)?;
            let repeats = include.is_plain && !once;
            let before = self.included.insert(found.identity, repeats);
            if self.open.contains(&found.identity) || before.is_some_and(|repeated| !(repeated && repeats)) {
                return Err(NotUnderstood::new(format!(
                    "the include `{}` is included again, which it may prevent",
                    include.name
                )));
            }
            self.count += 1;
            if self.count > MOST || self.open.len() >= DEEPEST {
                return Err(NotUnderstood::new(format!(
                    "there are more than {MOST} includes, or more than {DEEPEST} in each other"
                )));
            }
            self.put(&text[done..include.place.start])?;
            self.put(SEAM)?;
            self.open.push(found.identity);
            self.add(&found.text, directives, &found.folder)?;
            self.open.pop();
            self.put(SEAM)?;
            done = include.place.end;
        }
        self.put(&text[done..])
    }

    fn put(&mut self, text: &str) -> Result<(), NotUnderstood> {
        if self.text.len() + text.len() > self.room {
            return Err(NotUnderstood::new(format!(
                "with its includes the source has more than {} bytes",
                self.room
            )));
        }
        self.text.push_str(text);
        Ok(())
    }

    /// The only file that the directive may mean.
    fn find(&self, include: &Include, folder: &Path) -> Result<Found, NotUnderstood> {
        let name = &include.name;
        // Clang has such files itself, and takes those.
        if name.contains("opencl-c") {
            return Err(NotUnderstood::new(format!(
                "the include `{name}` may be the compiler's own"
            )));
        }
        let beside: &[&Path] = match include.is_quoted {
            true => &[folder, Path::new("")],
            false => &[],
        };
        let folders = beside.iter().copied().chain(self.folders.iter().map(Path::new));
        let mut only: Option<Found> = None;
        for folder in folders {
            let Some(found) = read(&folder.join(name), name)? else {
                continue;
            };
            match &only {
                Some(other) if other.identity == found.identity && other.folder == found.folder => {}
                Some(_) => {
                    return Err(NotUnderstood::new(format!(
                        "the include `{name}` stands in more than one folder, which drivers search in different orders"
                    )));
                }
                None => only = Some(found),
            }
        }
        only.ok_or_else(|| NotUnderstood::new(format!("the include `{name}` was not found in any folder")))
    }
}

/// The file at the path of an include. Directives that the compiler skips count, so it may never open the file.
fn read(path: &Path, name: &str) -> Result<Option<Found>, NotUnderstood> {
    // A pipe is opened without waiting for its writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else {
        return Ok(None);
    };
    let file = File::from(file);
    let identity = match file.metadata() {
        Ok(found) if found.is_dir() => return Ok(None),
        Ok(found) if found.is_file() && found.len() < LARGEST as u64 => (found.dev(), found.ino()),
        _ => {
            return Err(NotUnderstood::new(format!(
                "the include `{name}` is no regular file of less than {} MiB",
                LARGEST >> 20
            )));
        }
    };
    let mut content = Vec::new();
    let read = file.take(LARGEST as u64).read_to_end(&mut content);
    read.map_err(|error| NotUnderstood::new(format!("the include `{name}` can't be read: {error}")))?;
    let text =
        String::from_utf8(content).map_err(|_| NotUnderstood::new(format!("the include `{name}` is not UTF-8")))?;
    if text.trim_end().ends_with('\\') {
        return Err(NotUnderstood::new(format!(
            "the include `{name}` ends in a spliced line, which would go on behind it"
        )));
    }
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    Ok(Some(Found { identity, folder, text }))
}

/// The include folders from the options, and the other options.
///
/// # Errors
///
/// Drivers read the options in different ways.
fn include_folders(options: &[String]) -> Result<(Vec<&str>, Vec<&str>), NotUnderstood> {
    let (mut folders, mut others) = (Vec::new(), Vec::new());
    let mut words = options.iter().map(String::as_str);
    let unclear = || NotUnderstood::new("drivers understand an empty option, or `-I` without a folder, differently");
    while let Some(word) = words.next() {
        match word.strip_prefix("-I") {
            Some("") => folders.push(words.next().filter(|folder| !folder.is_empty()).ok_or_else(unclear)?),
            Some(folder) => folders.push(folder),
            None if word.is_empty() => return Err(unclear()),
            None => others.push(word),
        }
    }
    Ok((folders, others))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A folder with these files, and the option that names it.
    fn folder(files: &[(&str, &str)]) -> (TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let option = format!("-I {}", folder.path().display());
        (folder, option)
    }

    fn reason(source: &str, options: &str) -> String {
        inline(source, options).expect_err(source).to_string()
    }

    #[test]
    fn folders_are_read_from_the_options_as_compilers_do() {
        let options = kernel_cache::words("-DA=1 -Ione -I two -I \"three four\" -cl-mad-enable");
        assert_eq!(
            include_folders(&options).unwrap(),
            (vec!["one", "two", "three four"], vec!["-DA=1", "-cl-mad-enable"])
        );
        for options in [
            "-I",
            "-w -I ",
            "-I \"\" -Ia",
            "\"\" -Ia",
            "-include x.h",
            "-isystem d",
            "-DX='a'",
        ] {
            reason("", options);
        }
        for blank in ['\u{a0}', '\u{3000}', '\u{b}'] {
            reason("", &format!("-Iu{blank}"));
        }
    }

    #[test]
    fn a_text_without_includes_stays_as_it_is() {
        let source = "kernel void f() { printf(__FILE__); }\n#if 1\n";
        assert!(matches!(inline(source, "-I nowhere").unwrap(), Cow::Borrowed(text) if text == source));
    }

    #[test]
    fn texts_stand_in_the_places_of_their_directives() {
        let (_folder, option) = folder(&[
            ("a.h", "#include \"deep/b.h\"\nint a;"),
            ("deep/b.h", "int b;\n#include \"c.h\"\n"),
            ("deep/c.h", "int c;\n"),
        ]);
        let source = "int x; \\\n\r\n/* one\ntwo */ # include \\\r\n <a.h> // why\nint y;\n";
        let text = inline(source, &option).unwrap();
        let expected = "int x; \\\n\r\n||int b;\n|int c;\n|\n|\nint a;| // why\nint y;\n".replace('|', SEAM);
        assert_eq!(text, expected);
    }

    #[test]
    fn a_file_that_drivers_may_search_in_another_order_is_refused() {
        let (first, one) = folder(&[
            ("a.h", "int a;\n"),
            ("deep/b.h", "#include \"c.h\"\n"),
            ("deep/c.h", ""),
            ("deep/d.h", "#include <c.h>\n"),
        ]);
        let (second, two) = folder(&[("a.h", "int a;\n"), ("c.h", "")]);
        inline("#include <a.h>\n", &one).unwrap();
        inline("#include <deep/b.h>\n", &one).unwrap();
        let both = format!("{one} {two}");
        for source in ["#include <a.h>\n", "#include <deep/b.h>\n"] {
            let reason = reason(source, &both);
            assert!(reason.contains("more than one folder"), "{reason}");
        }
        // Beside the text that includes it, it counts for quotes only.
        inline("#include <deep/d.h>\n", &both).unwrap();
        // The same file by two ways counts once; the folder beside it does not.
        inline("#include <a.h>\n", &format!("{one} {one}")).unwrap();
        std::os::unix::fs::symlink(first.path().join("a.h"), second.path().join("b.h")).unwrap();
        fs::hard_link(first.path().join("a.h"), first.path().join("b.h")).unwrap();
        assert!(reason("#include <b.h>\n", &both).contains("more than one folder"));
    }

    #[test]
    fn a_file_that_may_count_once_is_included_once() {
        let (_folder, option) = folder(&[
            ("plain.h", "int a;\n"),
            ("once.h", "#pragma once\nint b;\n"),
            ("spliced.h", "#pragma on\\\r\nce\nint b;\n"),
            ("around.h", "#ifndef A\n#define A\n#include \"around.h\"\n#endif\n"),
        ]);
        let twice = |line: &str| format!("{line}\n{line}\n");
        let text = inline(&twice("#include <plain.h>"), &option).unwrap().into_owned();
        assert_eq!(text.matches("int a;").count(), 2);
        inline("#include <once.h>\n", &option).unwrap();
        inline("#import <plain.h>\n", &option).unwrap();
        for source in [
            twice("#include <once.h>"),
            twice("#include <spliced.h>"),
            twice("#import <plain.h>"),
            "#include <plain.h>\n#import <plain.h>\n".into(),
            "#import <plain.h>\n#include <plain.h>\n".into(),
            "#include <around.h>\n".into(),
        ] {
            let reason = reason(&source, &option);
            assert!(reason.contains("included again"), "{reason}");
        }
    }

    #[test]
    fn a_text_that_means_something_else_elsewhere_is_refused() {
        for (text, why) in [
            ("const char *f = __FILE__;\n", "__FILE__"),
            ("#if __INCLUDE_LEVEL__\n#endif\n", "__INCLUDE_LEVEL__"),
            ("#if __LINE__ > 400\n#endif\n", "__LINE__"),
            ("int x = __builtin_LINE();\n", "__builtin_LINE"),
            (
                "#define C(a, b) a##b\n#if C(__INCLUDE_LEV, EL__)\n#endif\n",
                "__INCLUDE_LEV",
            ),
            ("#include \"empty.h\" int x;\n", "behind"),
            ("#include <empty.h> /* one\ntwo */ int x;\n", "behind"),
            ("#include <empty.h> \\ \nint x;\n", "behind"),
            ("#include <opencl-c.h>\n", "own"),
            ("#if 1\nint x;\n", "#if"),
            ("#endif\n#if 1\n", "#if"),
            ("#else\n", "#if"),
            ("int x; /* \n", "unterminated"),
            ("// goes on \\\n", "spliced"),
            ("// goes on \\", "spliced"),
            ("#\0include \"b.h\"\n", "NUL"),
            ("#include \"missing.h\"\n", "`missing.h`"),
            ("#include NAME\n", "NAME"),
        ] {
            let (_folder, option) = folder(&[("a.h", text), ("empty.h", ""), ("opencl-c.h", "")]);
            let reason = reason("#if 1\n#include <a.h>\n#endif\n", &option);
            assert!(reason.contains(why), "{text}: {reason}");
        }
        let (folder, option) = folder(&[("b.h", "")]);
        assert!(reason("#include <b.h>\n", &format!("-DL=__INCLUDE_LEVEL__ {option}")).contains("__INCLUDE_LEVEL__"));
        fs::write(folder.path().join("a.h"), b"// \xff\n").unwrap();
        assert!(reason("#include \"a.h\"\n", &option).contains("UTF-8"));
    }

    #[test]
    fn an_include_folder_that_is_a_file_is_refused() {
        let (folder, option) = folder(&[("a.h", "")]);
        let map = folder.path().join("names.hmap");
        let options = format!("-I {} {option}", map.display());
        inline("#include \"a.h\"\n", &options).unwrap();
        fs::write(&map, "").unwrap();
        assert!(reason("#include \"a.h\"\n", &options).contains("names.hmap"));
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        for text in ["#include \"/dev/zero\"\n", "#if 0\n#include \"/dev/zero\"\n#endif\n"] {
            let reason = reason(text, "");
            assert!(reason.contains("no regular file"), "{reason}");
        }
        for repeated in [1, 2] {
            let files: Vec<(String, String)> = (0..300)
                .map(|at| {
                    (
                        format!("{at}.h"),
                        format!("#include \"{}.h\"\n", at + 1).repeat(repeated),
                    )
                })
                .collect();
            let files: Vec<(&str, &str)> = files
                .iter()
                .map(|(name, text)| (name.as_str(), text.as_str()))
                .collect();
            let (folder, option) = folder(&files);
            let from = |name: &str| reason(&format!("#include <{name}>\n"), &option);
            fs::write(folder.path().join("300.h"), "int x;\n").unwrap();
            assert!(from("0.h").contains("in each other"));
            inline("#include <290.h>\n", &option).unwrap();
        }
        let (_folder, option) = folder(&[("a.h", "int abc;\n")]);
        let source = "#include <a.h>\n".repeat(3);
        assert!(inline_within(200, &source, &option).is_ok());
        let reason = inline_within(60, &source, &option).unwrap_err().to_string();
        assert!(reason.contains("more than 60 bytes"), "{reason}");
    }
}
