//! The command lines that the book shows.

use std::path::Path;
use std::process::Command;

/// Every line of a code block in `text` that calls the command, without its name.
fn calls(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            is_code = ["sh", "console"].contains(&language);
            continue;
        }
        let line = line
            .strip_prefix("$ ")
            .unwrap_or(line)
            .split(" #")
            .next()
            .unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = match words.iter().position(|word| !word.contains('=')) {
            Some(at) if words[at] == "hipcl" || words[at].ends_with("/hipcl") => at + 1,
            Some(at) if words[at] == "cargo" && words.contains(&"hipcl") => {
                match words.iter().position(|word| *word == "--") {
                    Some(at) => at + 1,
                    None => continue,
                }
            }
            _ => continue,
        };
        if is_code {
            found.push(words[at..].iter().map(ToString::to_string).collect());
        }
    }
    found
}

/// With `--help` behind it, the command reads the whole line and does nothing.
#[test]
fn every_command_of_the_book_can_be_read() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let mut chapters: Vec<_> = std::fs::read_dir(&book)
        .expect("the book is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    chapters.sort();
    let mut tried = 0;
    for chapter in chapters {
        for call in calls(&std::fs::read_to_string(&chapter).expect("text")) {
            let output = Command::new(env!("CARGO_BIN_EXE_hipcl"))
                .args(&call)
                .arg("--help")
                .output()
                .expect("the command starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{}: hipcl {}: {said}",
                chapter.display(),
                call.join(" ")
            );
            tried += 1;
        }
    }
    assert!(tried > 10, "only {tried} calls were found");
}

#[test]
fn calls_are_found_in_code_and_nowhere_else() {
    let text = "hipcl prose\n```sh\nhipcl doctor    # why\nA=1 target/debug/hipcl bench all\n\
        $ cargo run --package hipcl -- doctor --json\ncargo build --package hipcl\nhipcl-other\n```\n";
    assert_eq!(
        calls(text),
        [vec!["doctor"], vec!["bench", "all"], vec!["doctor", "--json"]]
    );
}
