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

/// What to compare.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder where the emulator was set up
    #[arg(long, value_name = "FOLDER")]
    real: String,
    /// Random sequences to run
    #[arg(long, value_name = "FIRST..END", default_value = "0..5200", value_parser = sequences)]
    sequences: String,
    /// Record AMD's answers for machines without the emulator
    #[arg(long)]
    record: bool,
}

fn sequences(text: &str) -> Result<String> {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    match text.split_once("..") {
        Some((first, end)) if is_number(first) && is_number(end) => Ok(text.to_owned()),
        _ => Err(Error::Usage("not a range of numbers such as 0..100".into())),
    }
}

/// # Errors
/// [`Error::Missing`] if the folder was not set up; [`Error::Failed`] if the run fails.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if !Path::new(&options.real).join(EMULATOR).exists() {
        return Err(Error::Missing(format!(
            "{}/{EMULATOR} does not exist; name the folder where the emulator was set up",
            options.real
        )));
    }
    let mut command = Command::new(cargo());
    command
        .args(["test", "--package", "hipcl-hip-host-capi", "--test", "differences"])
        .args(["--", "--ignored", "--exact", "with_real_rocm", "--nocapture"])
        .env("HIPCL_SEQUENCES", &options.sequences)
        .env("HIPCL_SEQUENCES_REAL", &options.real)
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

    #[test]
    fn sequences_are_a_range() {
        assert_eq!(sequences("5..9").unwrap(), "5..9");
        for wrong in ["5", "5..", "a..b", ""] {
            assert!(sequences(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_folder_without_the_emulator_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::discover().unwrap();
        let options = Options {
            real: folder.path().display().to_string(),
            sequences: "0..1".to_owned(),
            record: false,
        };
        let error = run(&workspace, &options).unwrap_err();
        assert_eq!(error.status(), 2);
        assert!(error.to_string().contains("rocjitsu"));
    }
}
