//! The manual's pages, which the command writes for its packages.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn written(folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hipcl"));
    command.arg("man").arg(folder).output().expect("the command starts")
}

#[test]
fn there_is_a_page_for_each_shown_command_and_none_for_a_hidden_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = written(folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page =
        |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let main = page("hipcl.1");
    assert!(main.starts_with(".ie") || main.contains(".TH hipcl 1"), "{main}");
    for name in ["doctor", "bench", "pipeline"] {
        assert!(main.contains(name), "hipcl.1 does not name {name}");
        page(&format!("hipcl-{name}.1"));
    }
    assert!(page("hipcl-pipeline-gps.1").contains("iterations"));
    for entry in fs::read_dir(folder.path()).expect("the folder") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let is_hidden = ["probe", "peer", "man"].iter().any(|hidden| name.contains(hidden));
        assert!(!is_hidden, "{name}");
    }
}

#[test]
fn a_folder_that_does_not_exist_is_an_error_of_one_line() {
    let output = written(Path::new("/nowhere/at/all"));
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("a text");
    assert!(
        text.contains("name a folder that exists") && text.trim().lines().count() == 1,
        "{text}"
    );
}
