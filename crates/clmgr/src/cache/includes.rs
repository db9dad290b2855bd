//! The files that a source includes, as far as they can be known before it is compiled.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file that a directive may mean, with its content; none where there is no such file.
///
/// Which of them a compiler takes depends on the driver, so that all are kept: if one appears,
/// changes or goes, the compilation may give something else.
pub(super) type Includes = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Follows the includes of a source and of what it includes.
///
/// # Errors
///
/// What can't be followed: a directive that names its file by a macro, a file that is nowhere, or an
/// option that includes one. Directives in comments and in parts that are left out count too.
pub(super) fn of(source: &str, options: &str) -> Result<Includes, String> {
    let options = words(options);
    let folders = include_folders(&options)?;
    let mut includes = Includes::new();
    // The folder of a source without a file is the driver's choice; most take the current one.
    let mut open: Vec<(PathBuf, String)> = vec![(PathBuf::new(), source.to_owned())];
    while let Some((folder, text)) = open.pop() {
        for name in directives(&text) {
            let name = name?;
            let beside = [folder.as_path(), Path::new("")];
            let mut exists = false;
            for base in beside.into_iter().chain(folders.iter().map(Path::new)) {
                let path = base.join(&name);
                if let Some(known) = includes.get(&path) {
                    exists |= known.is_some();
                    continue;
                }
                let content = fs::read(&path).ok();
                if let Some(content) = &content {
                    exists = true;
                    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
                    open.push((folder, String::from_utf8_lossy(content).into_owned()));
                }
                includes.insert(path, content);
            }
            if !exists {
                return Err(format!("the include `{name}` is nowhere to be found"));
            }
        }
    }
    Ok(includes)
}

/// The words of an option string, in which quotes hold blanks together.
fn words(options: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut begun) = (String::new(), false, false);
    for c in options.chars() {
        match c {
            '"' => (quoted, begun) = (!quoted, true),
            c if c.is_whitespace() && !quoted => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

fn include_folders(options: &[String]) -> Result<Vec<String>, String> {
    let mut folders = Vec::new();
    let mut words = options.iter();
    while let Some(word) = words.next() {
        if let Some(folder) = word.strip_prefix("-I") {
            match (folder, words.as_slice()) {
                ("", [next, ..]) => {
                    folders.push(next.clone());
                    words.next();
                }
                ("", []) => {}
                (folder, _) => folders.push(folder.to_owned()),
            }
        } else if word.starts_with("-i") {
            // OpenCL has no such option; compilers have several that add files or folders.
            return Err(format!("the option `{word}` may include files"));
        }
    }
    Ok(folders)
}

/// The file names of the include directives.
fn directives(text: &str) -> impl Iterator<Item = Result<String, String>> {
    let spliced = text.replace("\\\r\n", "").replace("\\\n", "");
    let found: Vec<_> = spliced.lines().filter_map(directive).collect();
    found.into_iter()
}

fn directive(line: &str) -> Option<Result<String, String>> {
    let line = line.trim_start();
    let line = line.strip_prefix('#').or_else(|| line.strip_prefix("%:"))?;
    let rest = line.trim_start().strip_prefix("include")?;
    let rest = rest.strip_prefix("_next").unwrap_or(rest).trim_start();
    let name = match rest.chars().next()? {
        '"' => rest[1..].split_once('"'),
        '<' => rest[1..].split_once('>'),
        _ => None,
    };
    Some(match name {
        Some((name, _)) => Ok(name.to_owned()),
        None => Err(format!("`#include {}` names no file", rest.trim_end())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        directives(text).map(Result::unwrap).collect()
    }

    #[test]
    fn directives_are_found_however_they_are_written() {
        let text = "#include \"a.h\"\n  #  include <b.h> // why\n%:include \"c.h\"\n#inc\\\nlude \"d.h\"\nint include;\n#define include\n";
        assert_eq!(names(text), ["a.h", "b.h", "c.h", "d.h"]);
        assert!(directives("#include FILE\n").any(|name| name.is_err()));
        assert!(directives("#include \"a.h\n").any(|name| name.is_err()));
    }

    #[test]
    fn folders_are_read_from_the_options_as_compilers_do() {
        let folders = |options: &str| include_folders(&words(options));
        assert_eq!(
            folders("-DA=1 -Ione -I two -I \"three four\" -cl-mad-enable -I").unwrap(),
            ["one", "two", "three four"]
        );
        assert!(folders("-include x.h").is_err() && folders("-isystem d").is_err());
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
        let content = |name: &str| includes.get(&at(name)).unwrap().as_deref();
        assert_eq!(content("deep/c.h"), Some(&b"int c;\n"[..]));
        // Another folder that is searched has no such file so far.
        assert_eq!(content("c.h"), None);
        assert!(
            of("#include <d.h>\n", &options)
                .unwrap_err()
                .contains("`d.h`")
        );
        assert!(of("kernel void f() {}", &options).unwrap().is_empty());
    }
}
