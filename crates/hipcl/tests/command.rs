//! What the command says without a device: help, lists and scripts.

mod common;

use std::path::Path;

use common::{Run, ready};

/// Succeeds, and writes nothing on standard error, where no terminal is.
fn said(args: &[&str]) -> String {
    let run = Run::new(args);
    assert_eq!(run.status(), Some(0), "{}", run.stderr());
    assert_eq!(run.stderr(), "");
    run.stdout()
}

#[test]
fn the_bare_command_prints_its_help() {
    let help = said(&[]);
    for part in [
        "Usage: hipcl",
        "doctor",
        "pipeline",
        "bench",
        "completions",
        "--quiet",
        "--verbose",
    ] {
        assert!(help.contains(part), "{help}");
    }
    assert!(!help.contains('\x1b'));
}

#[test]
fn a_bench_without_a_name_is_told_where_the_names_are() {
    Run::new(&["bench"]).assert_refused(&["no measurement", "`bench list`"]);
}

#[test]
fn verbose_says_on_standard_error_what_was_chosen_and_why() {
    if !ready("verbose_says_on_standard_error_what_was_chosen_and_why") {
        return;
    }
    let told = |levels: &[&str]| {
        let job = ["pipeline", "note", "--samples", "1000", "--iterations", "2"];
        let run = Run::new(&[levels, &job].concat());
        assert_eq!(run.status(), Some(0), "{}", run.stderr());
        assert!(run.stdout().starts_with("job "), "{}", run.stdout());
        run.stderr()
    };
    assert_eq!(told(&[]), "");
    let (once, twice) = (told(&["-v"]), told(&["-vv"]));
    for part in [
        " platform ",
        " (OpenCL) is ",
        " route svm-coarse works, memory ",
        " route external-fd ",
    ] {
        assert!(once.contains(part) && twice.contains(part), "{part}: {once}");
    }
    assert!(
        twice.contains(" OpenCL from ") && !once.contains(" OpenCL from "),
        "{twice}"
    );
}

/// Lines are broken anywhere.
fn unbroken(text: String) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_option_for_a_route_or_a_platform_lists_its_values() {
    for args in [
        &["doctor", "--help"][..],
        &["bench", "--help"],
        &["pipeline", "gps", "--help"],
        &["pipeline", "capon", "--help"],
        &["pipeline", "radar", "--help"],
        &["pipeline", "note", "--help"],
    ] {
        let help = unbroken(said(args));
        assert!(
            help.contains("[possible values: svm-coarse, gpu-va,"),
            "{args:?}: {help}"
        );
    }
    assert!(unbroken(said(&["doctor", "--help"])).contains("[possible values: amd, nvidia, host]"));
}

#[test]
fn help_and_lists_keep_within_the_columns_of_the_terminal() {
    let narrow = |args: &[&str], columns: &str| {
        let run = Run::with(args, |run| run.env("COLUMNS", columns));
        assert_eq!(run.status(), Some(0), "{}", run.stderr());
        run.stdout()
    };
    for args in [
        &["--help"][..],
        &[],
        &["doctor", "--help"],
        &["bench", "--help"],
        &["bench", "list"],
        &["pipeline", "--help"],
        &["pipeline", "gps", "--help"],
        &["pipeline", "capon", "--help"],
        &["pipeline", "radar", "--help"],
        &["pipeline", "note", "--help"],
        &["radar-send", "--help"],
        &["completions", "--help"],
    ] {
        let text = narrow(args, "80");
        let widest = text.lines().max_by_key(|line| line.chars().count()).expect("a line");
        assert!(widest.chars().count() <= 80, "{args:?}: {widest}");
    }
    let (list, wide) = (narrow(&["bench", "list"], "60"), narrow(&["bench", "list"], "200"));
    assert!(list.lines().all(|line| line.chars().count() <= 60), "{list}");
    assert_eq!(unbroken(list), unbroken(wide));
}

#[test]
fn each_measurement_is_in_the_list_with_what_it_is() {
    let list = said(&["bench", "list"]);
    for line in list.lines().filter(|line| !line.starts_with(' ')) {
        let (name, about) = line.split_once(' ').expect("a name and what it is");
        assert!(about.trim().len() > 10, "{name}: {about:?}");
        assert!(said(&["bench", "--help"]).contains(name), "{name}");
    }
    assert!(list.contains("routes ") && list.contains("soak "), "{list}");
    assert!(
        !list
            .lines()
            .any(|line| line.starts_with("all ") || line.starts_with("list "))
    );
}

#[test]
fn each_shell_gets_a_script_that_knows_the_commands_and_not_the_hidden_ones() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = said(&["completions", shell]);
        // The generators for elvish and PowerShell complete no values.
        let values = script.contains("svm-coarse") || ["elvish", "powershell"].contains(&shell);
        assert!(
            script.contains("doctor") && script.contains("route") && values,
            "{shell}"
        );
        assert!(!script.contains("doctor-probe"), "{shell}");
    }
}

/// A user who installed the command has no clone of the project.
#[test]
fn no_message_asks_for_a_chore_of_the_project() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for of in [
        "hipcl",
        "interop",
        "clmgr",
        "clmgr-fft",
        "hip",
        "rocblas",
        "platform",
        "rocm-loader",
        "kernel-cache",
    ] {
        let mut folders = vec![root.join(of).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("the sources") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                for line in text.lines().map(str::trim_start) {
                    let is_message = !line.starts_with("//") && !line.contains("expect(");
                    assert!(
                        !(is_message && line.contains("cargo xtask")),
                        "{}: {line}",
                        path.display()
                    );
                }
            }
        }
    }
}
