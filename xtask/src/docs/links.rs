//! Links inside the repository's Markdown must lead somewhere: to a file, and to a heading in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every chapter under `src`, and that the summary lists each of them.
pub fn check_book(src: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let mut chapters = Vec::new();
    collect(src, &mut chapters, &mut problems);
    let summary = src.join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> = match fs::read_to_string(&summary) {
        Ok(text) => targets(&text).into_iter().map(|link| src.join(link)).collect(),
        Err(error) => {
            problems.push(format!("{}: {error}", summary.display()));
            BTreeSet::new()
        }
    };
    for chapter in &chapters {
        if *chapter != summary && !listed.contains(chapter) {
            problems.push(format!("{}: not in SUMMARY.md", chapter.display()));
        }
        problems.extend(check_file(chapter));
    }
    problems
}

/// The links of one file. Addresses with a scheme are not followed: the check needs no network.
pub fn check_file(file: &Path) -> Vec<String> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return vec![format!("{}: {error}", file.display())],
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut problems = Vec::new();
    for link in targets(&text) {
        // The API documentation is made later and checked by rustdoc itself.
        if link.contains("://") || link.starts_with("mailto:") || link.starts_with("api/") {
            continue;
        }
        let (path, heading) = match link.split_once('#') {
            Some((path, heading)) => (path, Some(heading)),
            None => (link.as_str(), None),
        };
        let target = if path.is_empty() {
            file.to_path_buf()
        } else {
            folder.join(path)
        };
        if !target.exists() {
            problems.push(format!("{}: {link}: no such file", file.display()));
            continue;
        }
        if let Some(heading) = heading {
            let known = fs::read_to_string(&target).map(|text| headings(&text));
            if !known.is_ok_and(|known| known.contains(heading)) {
                problems.push(format!("{}: {link}: no such heading", file.display()));
            }
        }
    }
    problems
}

fn collect(folder: &Path, chapters: &mut Vec<PathBuf>, problems: &mut Vec<String>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            problems.push(format!("{}: {error}", folder.display()));
            return;
        }
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, chapters, problems);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            chapters.push(path);
        }
    }
    chapters.sort();
}

/// The lines outside of fenced code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return false;
        }
        !fenced
    })
}

/// The targets of `[text](target)`, outside of code.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        // Every second piece between backticks is code.
        let spoken: String = line.split('`').step_by(2).collect::<Vec<_>>().join("_");
        let mut rest = spoken.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            let target = rest[..end].split_whitespace().next().unwrap_or("");
            found.push(target.to_string());
            rest = &rest[end..];
        }
    }
    found
}

/// The headings' names as mdBook and the common hosts make them.
fn headings(text: &str) -> BTreeSet<String> {
    prose(text)
        .filter_map(|line| line.trim_start().strip_prefix('#'))
        .map(|line| {
            line.trim_start_matches('#')
                .trim()
                .chars()
                .filter_map(|c| match c {
                    ' ' => Some('-'),
                    '-' | '_' => Some(c),
                    c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
                    _ => None,
                })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        check_book(folder.path())
    }

    #[test]
    fn a_sound_book_has_no_problems() {
        let problems = book(&[
            ("SUMMARY.md", "# Summary\n\n- [One](one.md)\n- [Two](two.md)\n"),
            (
                "one.md",
                "# One\n\nSee [two](two.md#the-second-part) and [the web](https://example.org/x).\n",
            ),
            (
                "two.md",
                "# Two\n\n## The *second* part!\n\n```text\n[no](link.md)\n```\nnor `[this](one)` [up](#two)\n",
            ),
        ]);
        assert_eq!(problems, Vec::<String>::new());
    }

    #[test]
    fn a_missing_file_a_missing_heading_and_an_unlisted_chapter_are_each_found() {
        let problems = book(&[
            ("SUMMARY.md", "- [One](one.md)\n"),
            ("one.md", "# One\n\n[a](gone.md) [b](one.md#nowhere)\n"),
            ("two.md", "# Two\n"),
        ]);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("gone.md: no such file"));
        assert!(problems[1].contains("one.md#nowhere: no such heading"));
        assert!(problems[2].contains("two.md: not in SUMMARY.md"));
    }
}
