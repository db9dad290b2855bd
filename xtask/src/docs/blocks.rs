//! The code of the book: what is compiled and run, and by whom.
//!
//! | a block of | is |
//! |---|---|
//! | `rust` | a documentation test of the package `book`; `no_run` with the reason in brackets only compiles it |
//! | any language, all of it `{{#include FILE:ANCHOR}}` | a part of an example, which a test runs |
//! | `sh`, `console` | read by the tasks' parser where it calls `cargo xtask`, by a test of the command where it calls `hipcl` |

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::workspace::package_of;

/// Languages of blocks that nothing compiles.
const PLAIN: &[&str] = &["text", "toml", "json", "cmake", "dockerfile"];

/// A fenced block.
struct Block<'a> {
    /// Of its first line.
    line: usize,
    info: &'a str,
    lines: Vec<&'a str>,
}

/// Whether a command line of `cargo xtask`, without these two words, can be parsed; else what is wrong.
pub type Parse<'a> = &'a dyn Fn(&[&str]) -> Result<(), String>;

/// Every block of a chapter under `root/docs/src` that nothing holds.
pub fn check_book(root: &Path, metadata: &Value, parse: Parse<'_>) -> Vec<String> {
    let source = root.join("docs/src");
    let tested = fs::read_to_string(root.join("docs/book.rs")).unwrap_or_default();
    let mut chapters: Vec<_> = fs::read_dir(&source)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    chapters.sort();
    let tests = tests(root);
    let mut problems = Vec::new();
    for chapter in chapters {
        let name = chapter.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&chapter).unwrap_or_default();
        let is_tested = tested.contains(&format!("\"src/{name}\""));
        for block in blocks(&text) {
            let found = problem(metadata, &source, &block, is_tested, &tests, parse);
            problems.extend(found.map(|found| format!("docs/src/{name}:{}: {found}", block.line)));
        }
    }
    problems
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (index, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(info), None) => {
                open = Some(Block {
                    line: index + 1,
                    info,
                    lines: Vec::new(),
                });
            }
            (None, Some(block)) => block.lines.push(line.trim()),
            (None, None) => {}
        }
    }
    found.extend(open);
    found
}

fn problem(
    metadata: &Value,
    source: &Path,
    block: &Block<'_>,
    is_tested: bool,
    tests: &str,
    parse: Parse<'_>,
) -> Option<String> {
    let language = block.info.split([',', ' ']).next().unwrap_or_default();
    let included: Vec<&str> = block.lines.iter().filter_map(|line| include(line)).collect();
    let missing = included.iter().find_map(|target| not_run(source, target, tests));
    if missing.is_some() {
        return missing;
    }
    let is_included = !included.is_empty() && block.lines.iter().all(|line| include(line).is_some() || comment(line));
    match language {
        "" => Some("a block without a language: `text` if it is none".into()),
        "rust" if is_included => (!block.info.contains("ignore"))
            .then(|| "a part of an example is no documentation test: write `rust,ignore`".into()),
        "rust" if block.info.contains("ignore") => {
            Some("code that nothing compiles: drop `ignore`, or include a part of an example".into())
        }
        "rust" if block.info.contains("no_run") && !block.info.contains('(') => {
            Some("`no_run` without the reason: write `rust,no_run (why)`".into())
        }
        "rust" if !is_tested => Some("the chapter is missing in docs/book.rs, so its code is not compiled".into()),
        "rust" => None,
        "c" | "cpp" => (!is_included && !block.lines.iter().all(|line| line.starts_with("#include")))
            .then(|| format!("{language} that nothing compiles: include a part of an example")),
        "sh" | "console" => commands(&block.lines)
            .iter()
            .find_map(|command| wrong(metadata, command, parse)),
        _ if PLAIN.contains(&language) => None,
        _ => Some(format!(
            "language `{language}` is unknown to the check of the book's code"
        )),
    }
}

fn comment(line: &str) -> bool {
    line.is_empty() || line.starts_with("//")
}

/// `FILE:ANCHOR` of a line that includes it.
fn include(line: &str) -> Option<&str> {
    line.strip_prefix("{{#include ")?.strip_suffix("}}")
}

/// What is wrong with an included part: it has to exist, in a file that a test names.
fn not_run(source: &Path, target: &str, tests: &str) -> Option<String> {
    let (file, anchor) = match target.split_once(':') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let Ok(text) = fs::read_to_string(source.join(file)) else {
        return Some(format!("{target}: no such file"));
    };
    let marked = |anchor: &&str| {
        text.lines()
            .any(|line| line.trim_end_matches(" */").ends_with(&format!("ANCHOR: {anchor}")))
    };
    if let Some(anchor) = anchor.filter(|anchor| !marked(anchor)) {
        return Some(format!("{file}: no anchor `{anchor}`"));
    }
    let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    (!tests.contains(&*name)).then(|| format!("{file}: no test names it, so nothing runs it"))
}

/// The text of all integration tests.
fn tests(root: &Path) -> String {
    fn collect(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    let mut text = String::new();
    for package in fs::read_dir(root.join("crates")).into_iter().flatten().flatten() {
        collect(&package.path().join("tests"), &mut text);
    }
    text
}

/// The command lines of a block, as words: without comments, prompts, variables and what is piped into.
fn commands<'a>(lines: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut all = Vec::new();
    for line in lines {
        let line = line.strip_prefix("$ ").unwrap_or(line);
        let line = line.split(" #").next().unwrap_or_default();
        if line.starts_with('#') {
            continue;
        }
        for command in line.split("&&") {
            let is_variable = |word: &&str| {
                word.split_once('=')
                    .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
            };
            let words: Vec<&str> = command.split_whitespace().skip_while(is_variable).collect();
            if !words.is_empty() {
                all.push(words);
            }
        }
    }
    all
}

/// What is wrong with a command of this project; those of others are not looked at.
fn wrong(metadata: &Value, words: &[&str], parse: Parse<'_>) -> Option<String> {
    let said = words.join(" ");
    match words {
        ["cargo", "xtask", task @ ..] => parse(task).err().map(|reason| format!("`{said}`: {reason}")),
        ["cargo", options @ ..] => {
            let value = |names: [&str; 2]| {
                let at = options.iter().position(|option| names.contains(option))?;
                options.get(at + 1).copied()
            };
            let package = value(["--package", "-p"])?;
            let packages = metadata["packages"].as_array()?;
            let is_named = |it: &&Value| it["name"].as_str().is_some_and(|name| package_of(name) == package);
            let Some(package) = packages.iter().find(is_named) else {
                return Some(format!("`{said}`: no package {package}"));
            };
            let example = value(["--example", "--example"])?;
            let mut targets = package["targets"].as_array()?.iter();
            let is_there = targets.any(|target| target["kind"][0] == "example" && target["name"] == example);
            (!is_there).then(|| format!("`{said}`: no example {example}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, is_tested: bool) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let (root, source) = (folder.path(), folder.path().join("docs/src"));
        fs::create_dir_all(&source).unwrap();
        fs::create_dir_all(root.join("crates/one/examples")).unwrap();
        fs::create_dir_all(root.join("crates/one/tests")).unwrap();
        fs::write(root.join("crates/one/examples/run.rs"), "// ANCHOR: part\n").unwrap();
        fs::write(root.join("crates/one/examples/idle.rs"), "// ANCHOR: part\n").unwrap();
        fs::write(root.join("crates/one/tests/examples.rs"), "output(\"run\")").unwrap();
        let listed = if is_tested { "\"src/chapter.md\"" } else { "" };
        fs::write(root.join("docs/book.rs"), listed).unwrap();
        fs::write(source.join("chapter.md"), text).unwrap();
        let target = serde_json::json!({"kind": ["example"], "name": "run"});
        let metadata = serde_json::json!({"packages": [{"name": "one", "targets": [target]}]});
        check_book(root, &metadata, &|task| match task {
            ["demo"] => Ok(()),
            _ => Err("no such task".into()),
        })
    }

    #[test]
    fn code_that_something_holds_is_no_problem() {
        let text = "```rust\nlet x = 1;\n```\n```rust,no_run (needs two processes)\nf();\n```\n\
            ```rust,ignore\n{{#include ../../crates/one/examples/run.rs:part}}\n```\n```text\nanything\n```\n\
            ```sh\nA=1 cargo xtask demo    # a comment\ncargo run -p hipcl-one --example run\nrm -rf x\n```\n\
            ```cpp\n#include <a.hpp>\n```\n";
        assert_eq!(found(text, true), Vec::<String>::new());
    }

    #[test]
    fn each_way_of_code_that_nothing_holds_is_found() {
        for (text, expected) in [
            ("```\nx\n```\n", "without a language"),
            ("```rust,ignore\nlet x = 1;\n```\n", "nothing compiles"),
            ("```rust,no_run\nf();\n```\n", "without the reason"),
            ("```cpp\nint x;\n```\n", "nothing compiles"),
            (
                "```rust,ignore\n{{#include ../../crates/one/examples/run.rs:gone}}\n```\n",
                "no anchor",
            ),
            (
                "```rust,ignore\n{{#include ../../crates/one/examples/idle.rs:part}}\n```\n",
                "no test names it",
            ),
            (
                "```rust,ignore\n{{#include ../../crates/one/examples/gone.rs:part}}\n```\n",
                "no such file",
            ),
            (
                "```rust\n{{#include ../../crates/one/examples/run.rs:part}}\n```\n",
                "write `rust,ignore`",
            ),
            ("```sh\ncargo xtask dmeo\n```\n", "no such task"),
            ("```console\n$ cargo run --package two\n```\n", "no package two"),
            ("```sh\ncargo run -p hipcl-one --example gone\n```\n", "no example gone"),
            ("```klingon\nx\n```\n", "unknown"),
        ] {
            let problems = found(text, true);
            assert_eq!(problems.len(), 1, "{text}: {problems:?}");
            assert!(
                problems[0].starts_with("docs/src/chapter.md:1: ") && problems[0].contains(expected),
                "{problems:?}"
            );
        }
        let problems = found("```rust\nlet x = 1;\n```\n", false);
        assert!(problems[0].contains("missing in docs/book.rs"), "{problems:?}");
    }
}
