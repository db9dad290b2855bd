//! Runs the programs, each with a time limit, and reads their output.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use super::build::Suite;
use super::emulated::Emulator;
use super::{Platform, plan};
use crate::error::{Error, Result};

/// The default time limit of a program.
pub const LIMIT: Duration = Duration::from_secs(120);

/// The outcome of one program or job.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub name: String,
    pub passed: u64,
    pub failed: u64,
    pub milliseconds: u64,
    /// Names of failed tests, or one line about the whole program.
    pub failures: Vec<String>,
    /// Why it did not run at all.
    pub left_out: Option<String>,
    /// The end of what it printed, if it failed.
    pub tail: String,
}

/// One test that could not do its work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    pub test: String,
    pub reason: String,
    /// Whether the device is known to lack that.
    pub known: bool,
    /// Whether the test itself returned early, so the harness counts it as passed.
    pub began: bool,
}

/// Everything that happened.
#[derive(Debug, Default)]
pub struct Results {
    pub outcomes: Vec<Outcome>,
    pub skips: Vec<Skip>,
}

/// Runs all; `folder` takes the logs.
pub fn run(
    suite: &Suite,
    platform: Platform,
    folder: &Path,
    limit: Duration,
    emulator: Option<&Emulator>,
) -> Result<Results> {
    let skip_log = folder.join("skips.txt");
    fs::write(&skip_log, "").map_err(|error| Error::io(skip_log.display(), error))?;
    let skip_log = std::path::absolute(&skip_log).map_err(|error| Error::io("skips.txt", error))?;
    let place = Place {
        emulator,
        platform,
        skip_log: &skip_log,
        folder,
        limit,
    };
    if let Some(emulator) = emulator {
        emulator.take_examples(&suite.examples)?;
    }
    let mut results = Results::default();
    for program in &suite.programs {
        let name = format!("{} {}", program.package, program.name);
        let why = plan::left_out(platform, &program.package, &program.name).or_else(|| {
            emulator.and_then(|emulator| plan::left_out_emulated(&program.package, &program.name, emulator.able()))
        });
        if let Some(why) = why {
            results.outcomes.push(Outcome {
                name,
                left_out: Some(why.to_owned()),
                ..Outcome::default()
            });
            continue;
        }
        let mut command = Command::new(&program.path);
        // On a card one after the other: a call that waits for the whole device, as some CUDA calls do, would wait for
        // other tests' work.
        let threads = match platform {
            Platform::Host => "4",
            Platform::Amd | Platform::Nvidia => "1",
        };
        command.args(["--test-threads", threads]);
        if plan::runs_ignored(platform, &program.package, &program.name) && emulator.is_none() {
            command.arg("--include-ignored");
        }
        let beyond = emulator.map_or(&[][..], |_| plan::BEYOND_EMULATOR);
        for limit in beyond
            .iter()
            .filter(|limit| limit.is_in(&program.package, &program.name))
        {
            command.args(["--skip", limit.test]);
            results.skips.push(Skip {
                test: limit.test.to_owned(),
                reason: limit.why.to_owned(),
                known: true,
                began: false,
            });
        }
        let outcome = one(name, command, &place, tests_of)?;
        results.outcomes.push(outcome);
    }
    let jobs = match emulator {
        _ if suite.no_jobs => &[],
        None => plan::JOBS,
        Some(_) => plan::EMULATED_JOBS,
    };
    for job in jobs {
        let mut command = Command::new(&suite.command);
        let work = folder.join("job");
        fs::create_dir_all(&work).map_err(|error| Error::io(work.display(), error))?;
        command.args(job.split(' ')).current_dir(&work);
        let name = format!("hipcl {job}");
        let outcome = one(name, command, &place, |_, _| ())?;
        results.outcomes.push(outcome);
    }
    let mut text = fs::read_to_string(&skip_log).map_err(|error| Error::io(skip_log.display(), error))?;
    text += &emulator.map_or_else(String::new, Emulator::take_skips);
    results.skips.extend(skips(&text, platform));
    Ok(results)
}

/// The environment of all programs.
struct Place<'a> {
    emulator: Option<&'a Emulator>,
    platform: Platform,
    skip_log: &'a Path,
    folder: &'a Path,
    limit: Duration,
}

fn one(name: String, mut command: Command, place: &Place<'_>, read: impl Fn(&str, &mut Outcome)) -> Result<Outcome> {
    println!("==> {name}");
    let log = place.folder.join("one.log");
    let file = File::create(&log).map_err(|error| Error::io(log.display(), error))?;
    let copy = file.try_clone().map_err(|error| Error::io(log.display(), error))?;
    command
        .env("HIPCL_PLATFORM", place.platform.name())
        .env("HIPCL_SKIP_LOG", place.skip_log);
    if let Some(emulator) = place.emulator {
        command = emulator.command(&command)?;
    }
    let started = Instant::now();
    let mut child = command
        .stdout(file)
        .stderr(copy)
        .spawn()
        .map_err(|error| Error::io(&name, error))?;
    let status = wait(&mut child, place.limit).map_err(|error| Error::io(&name, error))?;
    let mut bytes = Vec::new();
    File::open(&log)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| Error::io(log.display(), error))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut outcome = Outcome {
        name,
        milliseconds: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        ..Outcome::default()
    };
    read(&text, &mut outcome);
    match status {
        None => outcome
            .failures
            .push(format!("stopped after {} s", place.limit.as_secs())),
        Some(status) if !status.success() && outcome.failed == 0 => {
            outcome.failures.push(format!("ended with {status}"));
        }
        Some(_) => {}
    }
    outcome.failed = outcome.failed.max(outcome.failures.len() as u64);
    if outcome.passed == 0 && outcome.failed == 0 && status.is_some_and(|status| status.success()) {
        outcome.passed = 1;
    }
    if outcome.failed > 0 {
        let lines: Vec<&str> = text.lines().filter(|line| !line.ends_with("... ok")).collect();
        outcome.tail = lines[lines.len().saturating_sub(60)..].join("\n");
    }
    fs::remove_file(&log).map_err(|error| Error::io(log.display(), error))?;
    println!(
        "    {} passed, {} failed, {:.1} s{}",
        outcome.passed,
        outcome.failed,
        outcome.milliseconds as f64 / 1e3,
        match outcome.failures.is_empty() {
            true => String::new(),
            false => format!(": {}", outcome.failures.join(", ")),
        }
    );
    Ok(outcome)
}

/// `None`: it took too long and was ended.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads the test harness's lines.
fn tests_of(text: &str, outcome: &mut Outcome) {
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("test ") else {
            continue;
        };
        if rest.ends_with("... ok") {
            outcome.passed += 1;
        } else if let Some(name) = rest.strip_suffix(" ... FAILED") {
            outcome.failed += 1;
            outcome.failures.push(name.to_owned());
        }
    }
}

/// The skip log's lines, each once.
fn skips(text: &str, platform: Platform) -> Vec<Skip> {
    let mut skips: Vec<Skip> = text
        .lines()
        .filter_map(|line| line.trim().split_once(": "))
        .map(|(test, reason)| Skip {
            test: test.to_owned(),
            reason: reason.to_owned(),
            known: plan::is_known_lack(platform, reason),
            began: true,
        })
        .collect();
    skips.sort();
    skips.dedup();
    skips
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_by_name() {
        let mut outcome = Outcome::default();
        tests_of(
            "running 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... ignored\ntest result: FAILED. 1 passed\n",
            &mut outcome,
        );
        assert_eq!((outcome.passed, outcome.failed), (1, 1));
        assert_eq!(outcome.failures, ["b"]);
    }

    #[test]
    fn a_skip_is_known_or_not_by_its_reason() {
        let text = "a: needs two devices\nb: no OpenCL\na: needs two devices\n";
        let found = skips(text, Platform::Nvidia);
        assert_eq!(found.len(), 2);
        assert_eq!(found.iter().map(|skip| skip.known).collect::<Vec<_>>(), [true, false]);
    }
}
