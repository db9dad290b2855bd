//! `cargo xtask differences`: the host platform beside AMD's own HIP, on random sequences of calls.
//!
//! AMD's library runs on AMD's emulator of a card, in a Debian root below the named folder. The sequences and the
//! comparison are those of the test `differences` of `hip-host-capi`.

use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};
use crate::workspace::{Workspace, cargo};

/// What is in the folder if it was set up.
const EMULATOR: &str = "root/usr/local/rj/bin/rocjitsu";

/// Where the recorded answers lie.
const RECORDED: &str = "crates/hip-host-capi/tests/differences/recorded.txt";

const USAGE: &str =
    "`cargo xtask differences` takes --real FOLDER, --sequences FIRST..END and --record";

struct Options<'a> {
    real: &'a str,
    sequences: &'a str,
    record: bool,
}

fn options(args: &[String]) -> Result<Options<'_>> {
    let usage = || Error::Usage(USAGE.to_owned());
    let mut options = Options {
        real: "",
        sequences: "0..5200",
        record: false,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--real" => options.real = args.next().ok_or_else(usage)?,
            "--sequences" => options.sequences = args.next().ok_or_else(usage)?,
            "--record" => options.record = true,
            _ => return Err(usage()),
        }
    }
    let range = options.sequences.split_once("..");
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    if options.real.is_empty() || !range.is_some_and(|(a, b)| is_number(a) && is_number(b)) {
        return Err(usage());
    }
    Ok(options)
}

/// # Errors
/// [`Error::Usage`] for other options; [`Error::Missing`] if the folder was not set up; [`Error::Failed`] if the run fails.
pub fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let options = options(args)?;
    if !Path::new(options.real).join(EMULATOR).exists() {
        return Err(Error::Missing(format!(
            "{}/{EMULATOR} is not there: name the folder in which the emulator was set up",
            options.real
        )));
    }
    let mut command = Command::new(cargo());
    command
        .args([
            "test",
            "--package",
            "hip-host-capi",
            "--test",
            "differences",
        ])
        .args([
            "--",
            "--ignored",
            "--exact",
            "with_real_rocm",
            "--nocapture",
        ])
        .env("HIPCL_SEQUENCES", options.sequences)
        .env("HIPCL_SEQUENCES_REAL", options.real)
        .current_dir(workspace.root());
    if options.record {
        command.env("HIPCL_SEQUENCES_RECORD", workspace.root().join(RECORDED));
    }
    let status = command
        .status()
        .map_err(|error| Error::io("cannot start cargo", error))?;
    if !status.success() {
        return Err(Error::Failed("the comparison failed, see above".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[&str]) -> Result<String> {
        let args: Vec<String> = list.iter().map(|arg| arg.to_string()).collect();
        options(&args)
            .map(|options| format!("{} {} {}", options.real, options.sequences, options.record))
    }

    #[test]
    fn the_folder_is_needed_and_the_rest_has_defaults() {
        assert_eq!(of(&["--real", "/f"]).unwrap(), "/f 0..5200 false");
        let all = ["--real", "/f", "--record", "--sequences", "5..9"];
        assert_eq!(of(&all).unwrap(), "/f 5..9 true");
        for wrong in [
            &[][..],
            &["--real"],
            &["--real", "/f", "--sequences", "5"],
            &["--other"],
        ] {
            assert_eq!(of(wrong).unwrap_err().status(), 2);
        }
    }

    #[test]
    fn a_folder_without_the_emulator_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::discover().unwrap();
        let args = ["--real".to_owned(), folder.path().display().to_string()];
        let error = run(&workspace, &args).unwrap_err();
        assert_eq!(error.status(), 2);
        assert!(error.to_string().contains("rocjitsu"));
    }
}
