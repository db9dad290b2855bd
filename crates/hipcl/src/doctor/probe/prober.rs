//! The parent's side: a question on the command line, the answer on one line of JSON.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use interop::Extent;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Subject;
use super::answer::{Answer, STEP};
use super::child::{self, End, Ended};
use crate::doctor::PLATFORM_OPTION;
use crate::{Error, Result};

/// Lines of standard error that a finding keeps.
const KEPT_LINES: usize = 8;
/// Characters of each.
const KEPT_CHARACTERS: usize = 400;

/// Queries child processes.
pub(in crate::doctor) struct Prober {
    program: PathBuf,
    platform: Option<String>,
    limit: Duration,
    extent: Extent,
}

/// A child's answer.
#[derive(Debug)]
pub(in crate::doctor) struct Reply<T> {
    pub(in crate::doctor) found: T,
    /// The runtimes' library files that it had loaded.
    pub(in crate::doctor) mapped: Vec<String>,
    /// How it ended, if abnormally: a driver may crash when its process exits.
    pub(in crate::doctor) died: Option<Death>,
}

/// A child that ended abnormally.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    /// How it ended: "died by SIGSEGV", "hung, and was killed after 60 s", …
    pub how: String,
    /// Its next step, if it had announced one.
    pub step: Option<String>,
    /// The last lines that it, or a library inside it, wrote to standard error.
    pub stderr: Vec<String>,
}

impl Death {
    /// One line: "died by SIGSEGV in the probe of hip-pointer, allocating".
    pub fn describe(&self, subject: Subject) -> String {
        let step = self.step.as_ref().map(|step| format!(", {step}"));
        format!("{} in the probe of {subject}{}", self.how, step.unwrap_or_default())
    }
}

impl Prober {
    /// `platform` overrides the environment's choice.
    pub(in crate::doctor) fn new(platform: Option<String>, limit: Duration) -> Self {
        Self {
            // also right after the file has been replaced by a new build
            program: "/proc/self/exe".into(),
            platform,
            limit,
            extent: Extent::Figures,
        }
    }

    /// From now on children prove and do not measure.
    pub(in crate::doctor) fn only_prove(&mut self) {
        self.extent = Extent::Proof;
    }

    /// What the child found, or how it died.
    ///
    /// # Errors
    /// A request that makes no sense, such as an unknown platform.
    pub(in crate::doctor) fn run<T: DeserializeOwned>(
        &self,
        subject: Subject,
    ) -> Result<std::result::Result<Reply<T>, Death>> {
        let mut command = Command::new(&self.program);
        command.arg("doctor-probe").arg(subject.to_string());
        if let Some(platform) = &self.platform {
            command.arg(PLATFORM_OPTION).arg(platform);
        }
        if self.extent == Extent::Proof {
            command.arg("--proof");
        }
        match child::run(command, self.limit) {
            Ok(ended) => read(ended),
            Err(error) => Ok(Err(Death {
                how: format!("could not be started ({error})"),
                step: None,
                stderr: Vec::new(),
            })),
        }
    }
}

fn read<T: DeserializeOwned>(ended: Ended) -> Result<std::result::Result<Reply<T>, Death>> {
    let failed = match &ended.end {
        End::Status(0) => None,
        end => Some(death(end.to_string(), &ended.stderr)),
    };
    Ok(match serde_json::from_str(ended.stdout.trim_end()) {
        Ok(Answer::Refused { refused }) => return Err(Error::input(refused)),
        Ok(Answer::Found { found, mapped }) => Ok(Reply {
            found,
            mapped,
            died: failed,
        }),
        Err(error) => Err(failed.unwrap_or_else(|| {
            let how = match ended.stdout.lines().next() {
                None => "ended without an answer".to_owned(),
                Some(line) => {
                    let line = shorten(line, 60);
                    format!("printed `{line}`, which is not an answer ({error})")
                }
            };
            death(how, &ended.stderr)
        })),
    })
}

fn death(how: String, stderr: &str) -> Death {
    let (steps, noise): (Vec<&str>, Vec<&str>) = stderr
        .lines()
        .filter(|line| !line.trim().is_empty())
        .partition(|line| line.starts_with(STEP));
    Death {
        how,
        step: steps.last().map(|step| step[STEP.len()..].to_owned()),
        stderr: noise[noise.len().saturating_sub(KEPT_LINES)..]
            .iter()
            .map(|line| shorten(line, KEPT_CHARACTERS))
            .collect(),
    }
}

fn shorten(line: &str, most: usize) -> String {
    let mut kept: String = line
        .chars()
        .take(most)
        // a terminal's control codes have no place in a report
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().count() > most {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: i32, stdout: &str, stderr: &str) -> Result<Death> {
        let ended = Ended {
            end: End::Status(status),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        };
        Ok(read::<u32>(ended)?.expect_err("no answer"))
    }

    #[test]
    fn anything_but_one_json_line_is_a_death_that_shows_what_came() {
        let garbage = answered(0, "\u{1b}[31mhello\n", "").unwrap();
        assert!(
            garbage.how.starts_with("printed ` [31mhello`, which is not an answer"),
            "{}",
            garbage.how
        );
        let two = answered(0, "{\"found\":1,\"mapped\":[]}\n{\"found\":1,\"mapped\":[]}\n", "");
        assert!(two.unwrap().how.contains("not an answer"));
        let other = answered(0, "{\"found\":\"text\",\"mapped\":[]}\n", "").unwrap();
        assert!(other.how.contains("not an answer"), "{}", other.how);
        assert_eq!(answered(0, "", "").unwrap().how, "ended without an answer");
    }

    #[test]
    fn the_last_step_and_the_last_lines_of_standard_error_are_kept() {
        let noise: String = (0..20).map(|i| format!("line {i}\n\n")).collect();
        let death = answered(
            1,
            "",
            &format!("{STEP}pairing the devices\n{noise}{STEP}allocating\nlast\n"),
        )
        .unwrap();
        assert_eq!(death.step.as_deref(), Some("allocating"));
        assert_eq!(death.stderr.len(), KEPT_LINES);
        assert_eq!(death.stderr.last().unwrap(), "last");
        assert_eq!(
            death.describe(Subject::Route(interop::Route::HipPointer)),
            "ended with status 1 in the probe of hip-pointer, allocating"
        );
    }

    #[test]
    fn a_refusal_is_an_error_and_an_answer_is_read() {
        let refused = answered(0, "{\"refused\":\"no such platform\"}\n", "").unwrap_err();
        assert_eq!(refused.one_line(), "no such platform");
        let ended = Ended {
            end: End::Status(0),
            stdout: "{\"found\":7,\"mapped\":[\"/a\"]}\n".into(),
            stderr: String::new(),
        };
        let reply = read::<u32>(ended).unwrap().unwrap();
        assert_eq!((reply.found, reply.mapped), (7, vec!["/a".to_owned()]));
        assert_eq!(reply.died, None);
    }

    #[test]
    fn an_answer_stands_when_the_process_dies_after_it() {
        let ended = Ended {
            end: End::Signal(11),
            stdout: "{\"found\":7,\"mapped\":[]}\n".into(),
            stderr: "double free\n".into(),
        };
        let reply = read::<u32>(ended).unwrap().unwrap();
        let death = reply.died.unwrap();
        assert_eq!((reply.found, &*death.how), (7, "died by SIGSEGV"));
        assert_eq!(death.stderr, ["double free"]);
    }
}
