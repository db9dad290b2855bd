//! Memory in a second process, by one carrier.

use std::process::{Child, Command, Stdio};

use interop::{Carrier, CarrierTrial, Link, LinkEnd, PeerError};
use platform::Selection;
use serde::{Deserialize, Serialize};

use super::Subject;
use super::answer::{Answer, tell};
use crate::doctor::PLATFORM_OPTION;
use crate::error::one_line;

/// What a child found about a carrier.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::doctor) struct Tried {
    /// Where the memory lives, if the second process and this one read each other's patterns in it.
    pub(in crate::doctor) residency: Option<String>,
    /// Why it did not get there.
    pub(in crate::doctor) reason: Option<String>,
    /// No memory leaves by this carrier between the two devices.
    pub(in crate::doctor) impossible: bool,
}

impl Tried {
    /// A carrier that was not reached, and why.
    pub(super) fn not_begun(reason: &str) -> Self {
        Self {
            residency: None,
            reason: Some(one_line(reason)),
            impossible: false,
        }
    }
}

/// The first process, which starts the second one.
pub(super) fn look(selection: &Selection, platform: Option<&str>, carrier: Carrier) -> Tried {
    let mut second = None;
    let start = |end: LinkEnd| {
        second = Some(start(platform, end));
    };
    let trial = CarrierTrial::run(selection, &interop::Options::default(), carrier, start, tell);
    // The trial has hung up, so that the second process ends.
    let told = match second {
        Some(Ok(child)) => told(child),
        Some(Err(error)) => Some(format!("it could not be started ({error})")),
        None => None,
    };
    let trial = match trial {
        Ok(trial) => trial,
        Err(error) => return Tried::not_begun(&error.to_string()),
    };
    match (trial.outcome, told) {
        (Ok(residency), None) => Tried {
            residency: Some(residency.to_string()),
            reason: None,
            impossible: false,
        },
        // The one that saw it knows more than the one that was hung up on.
        (_, Some(reason)) => Tried::not_begun(&format!("in the second process: {reason}")),
        (Err(reason), None) => Tried {
            impossible: trial.impossible,
            ..Tried::not_begun(&reason)
        },
    }
}

/// The second process: what went wrong there.
pub(super) fn second(selection: &Selection) -> Tried {
    // SAFETY: nothing else here uses standard input; the process at the other end is this program in `look`.
    let outcome = unsafe {
        Link::from_stdin().and_then(|link| CarrierTrial::second(selection, &interop::Options::default(), link, tell))
    };
    match outcome {
        // Hung up on: the other side knows why.
        Ok(()) | Err(interop::Error::Peer(PeerError::Gone { .. })) => Tried {
            residency: None,
            reason: None,
            impossible: false,
        },
        Err(error) => Tried::not_begun(&error.to_string()),
    }
}

fn start(platform: Option<&str>, end: LinkEnd) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("doctor-probe").arg(Subject::Second.to_string());
    if let Some(platform) = platform {
        command.arg(PLATFORM_OPTION).arg(platform);
    }
    command.stdin(Stdio::from(end)).stdout(Stdio::piped()).spawn()
}

/// Why the second process failed, if it did.
fn told(child: Child) -> Option<String> {
    let ended = match child.wait_with_output() {
        Ok(ended) => ended,
        Err(error) => return Some(error.to_string()),
    };
    match serde_json::from_slice(&ended.stdout) {
        Ok(Answer::<Tried>::Found { found, .. }) if ended.status.success() => found.reason,
        Ok(Answer::Refused { refused }) => Some(refused),
        _ => Some(format!("it ended with {}", ended.status)),
    }
}
