//! The child's side.

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;

use interop::Extent;
use platform::Selection;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde::{Deserialize, Serialize};

use super::{Subject, allocation, carrier, collectives, grade, hip, host_ptr, one_stream, opencl, route};
use crate::doctor::{PLATFORM_OPTION, mapped};
use crate::{Error, Result};

/// Begins the lines on standard error that announce the child's next step.
pub(super) const STEP: &str = "hipcl-step: ";

/// What a child writes: one line of JSON and nothing else.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Answer<T> {
    /// It looked.
    Found {
        found: T,
        /// The runtimes' library files in the process after it had looked.
        mapped: Vec<String>,
    },
    /// The request makes no sense.
    Refused { refused: String },
}

/// Examines `subject` to this extent, on the platform of this name instead of the one that the environment chooses, and
/// answers on standard output. Meant for `hipcl doctor`; the line's form is not guaranteed.
///
/// # Errors
/// If the answer cannot be written.
pub fn main(subject: Subject, platform: Option<&str>, extent: Extent) -> Result<ExitCode> {
    let mut out = quiet_stdout()?;
    // a probe must not outlive the examination; where the kernel cannot do that it just may
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // a crash is expected here, and a core file with a GPU's mappings in it is large
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    let line = match subject {
        Subject::OpenCl => answer(opencl::look()),
        Subject::Hip => match select_all(platform) {
            Ok(selection) => answer(hip::look(&selection)),
            Err(error) if is_senseless(&error) => refuse(error),
            Err(error) => answer(hip::cannot(&error)),
        },
        Subject::Collectives(of) => answer(collectives::look(of)),
        Subject::HostPtr => match select(platform) {
            Ok(selection) => answer(host_ptr::look(&selection)),
            Err(error) => answer(host_ptr::HostPtrTried::not_begun(&error.to_string())),
        },
        Subject::Route(route) => match select(platform) {
            Ok(selection) => answer(route::look(&selection, route, extent)),
            Err(error) => answer(route::Tried::not_begun(&error.to_string())),
        },
        Subject::Grade(grade, route) => match select(platform) {
            Ok(selection) => answer(grade::look(&selection, (grade, route), extent)),
            Err(error) => answer(grade::Tried::not_begun(&error.to_string())),
        },
        Subject::OneStream => match select(platform) {
            Ok(selection) => answer(one_stream::look(&selection, extent)),
            Err(error) => answer(one_stream::Tried::not_begun(&error.to_string())),
        },
        Subject::Carrier(carrier) => match select(platform) {
            Ok(selection) => answer(carrier::look(&selection, platform, carrier)),
            Err(error) => answer(carrier::Tried::not_begun(&error.to_string())),
        },
        Subject::Second => match select(platform) {
            Ok(selection) => answer(carrier::second(&selection)),
            Err(error) => answer(carrier::Tried::not_begun(&error.to_string())),
        },
        Subject::Allocation(allocation) => match select(platform) {
            Ok(selection) => answer(allocation::look(&selection, allocation, extent)),
            Err(error) => answer(allocation::Tried::not_begun(&error.to_string())),
        },
    };
    out.write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// The platform with all of its libraries, to say which it has.
fn select_all(platform: Option<&str>) -> std::result::Result<Selection, platform::Error> {
    match platform {
        Some(name) => platform::select_asked(name, PLATFORM_OPTION),
        None => platform::select(),
    }
}

/// What shares memory and hands over: no probe but that of the libraries themselves calls linear algebra.
fn select(platform: Option<&str>) -> std::result::Result<Selection, platform::Error> {
    platform::select_runtime(platform.map(|name| (name, PLATFORM_OPTION)))
}

/// A request that no machine could meet, other than one that this machine does not.
fn is_senseless(error: &platform::Error) -> bool {
    matches!(
        error,
        platform::Error::Unknown { .. } | platform::Error::NotBuilt { .. }
    )
}

fn answer<T: Serialize>(found: T) -> String {
    line(&Answer::Found {
        found,
        mapped: mapped::of_this_process(),
    })
}

fn refuse(error: platform::Error) -> String {
    line(&Answer::<()>::Refused {
        refused: Error::from(error).one_line(),
    })
}

fn line<T: Serialize>(answer: &Answer<T>) -> String {
    // strings, numbers and lists: there is no way to fail
    let mut line = serde_json::to_string(answer).unwrap_or_default();
    line.push('\n');
    line
}

pub(super) fn tell(step: impl std::fmt::Display) {
    // the parent may have gone; the answer will notice
    let _ = writeln!(std::io::stderr(), "{STEP}{step}");
}

/// Standard output, for the answer alone: libraries' output goes to standard error from now on.
fn quiet_stdout() -> Result<File> {
    let own = rustix::io::dup(rustix::stdio::stdout()).map_err(|error| failed(error.into()))?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr()).map_err(|error| failed(error.into()))?;
    Ok(File::from(own))
}

fn failed(cause: std::io::Error) -> Error {
    Error::Io {
        action: "write",
        path: "standard output".into(),
        cause,
        remedy: "`hipcl doctor` runs this command and reads its output; use `hipcl doctor`",
    }
}
