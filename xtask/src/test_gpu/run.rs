//! Runs the programs, each with a time limit, and reads their output.

use std::fs::{self, File};
use std::path::Path;
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::build::{Program, Suite};
use super::emulated::Emulator;
use super::{Platform, c_programs, plan};
use crate::error::{Error, Result};

/// How long a program may say nothing, unless the caller sets another limit. The test harness names each test, so that
/// this is the longest time of one test.
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
    // Of this run, beside which others may be on their way.
    let skip_log = folder.join(format!("skips-{}.txt", process::id()));
    fs::write(&skip_log, "").map_err(|error| Error::io(skip_log.display(), error))?;
    let skip_log = std::path::absolute(&skip_log).map_err(|error| Error::io(skip_log.display(), error))?;
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
        let is_named = suite.named.contains(&program.package);
        let why = plan::left_out(platform, &program.package, &program.name).or_else(|| {
            let able = emulator?.able();
            plan::left_out_emulated(&program.package, &program.name, able, is_named)
        });
        if let Some(why) = why {
            results.outcomes.push(Outcome {
                name,
                left_out: Some(why.to_owned()),
                ..Outcome::default()
            });
            continue;
        }
        let beyond: Vec<_> = plan::BEYOND_EMULATOR
            .iter()
            .filter(|limit| emulator.is_some_and(|it| limit.is_in(&program.package, &program.name, it.gpu())))
            .collect();
        results.skips.extend(beyond.iter().map(|limit| Skip {
            test: limit.test.to_owned(),
            reason: limit.why.to_owned(),
            known: true,
            began: false,
        }));
        let without = beyond.iter().map(|limit| limit.test.to_owned()).collect();
        let outcome = match program.package == c_programs::PACKAGE {
            true => one(name, Command::new(&program.path), &place)?,
            false => tests(name, program, &place, without)?,
        };
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
        let outcome = one(name, command, &place)?;
        results.outcomes.push(outcome);
    }
    // After `hipcl doctor`, which proves what some of them may do.
    if platform == Platform::Amd && suite.programs.iter().any(|program| program.package == EXAMPLES_OF) {
        for example in plan::EXAMPLES {
            results.outcomes.push(run_example(example, suite, &place)?);
        }
    }
    let mut text = fs::read_to_string(&skip_log).map_err(|error| Error::io(skip_log.display(), error))?;
    fs::remove_file(&skip_log).map_err(|error| Error::io(skip_log.display(), error))?;
    text += &emulator.map_or_else(String::new, Emulator::take_skips);
    results.skips.extend(skips(&text, platform));
    Ok(results)
}

/// The package whose examples are run by themselves.
const EXAMPLES_OF: &str = "interop";

fn run_example(example: &plan::Example, suite: &Suite, place: &Place<'_>) -> Result<Outcome> {
    let name = format!("{EXAMPLES_OF} {} {}", example.name, example.args.join(" "));
    let name = name.trim_end().to_owned();
    let why = place.emulator.and_then(|emulator| match emulator.able().has_peer {
        false if example.needs_peer => Some("needs two devices: run it with `--gpu gfx908x2`"),
        _ => example.beyond_emulator,
    });
    if let Some(why) = why {
        return Ok(Outcome {
            name,
            left_out: Some(why.to_owned()),
            ..Outcome::default()
        });
    }
    let found = suite.examples.iter().find(|(built, _)| built == example.name);
    let (_, path) = found.ok_or_else(|| Error::Failed(format!("cargo built no example {}", example.name)))?;
    let mut command = Command::new(path);
    command.args(example.args);
    let shared = place.emulator.filter(|_| example.shares_the_gpu).map(Emulator::shared);
    let place = Place {
        emulator: shared.as_ref().or(place.emulator),
        ..*place
    };
    one(name, command, &place)
}

/// The environment of all programs.
#[derive(Clone, Copy)]
struct Place<'a> {
    emulator: Option<&'a Emulator>,
    platform: Platform,
    skip_log: &'a Path,
    folder: &'a Path,
    limit: Duration,
}

/// Runs a program whose exit status is its verdict.
fn one(name: String, command: Command, place: &Place<'_>) -> Result<Outcome> {
    println!("==> {name}");
    let started = Instant::now();
    let ended = start(&name, command, place)?;
    let mut outcome = Outcome {
        name,
        ..Outcome::default()
    };
    match ended.failure(place) {
        None => outcome.passed = 1,
        Some(failure) => {
            outcome.failures.push(failure);
            outcome.tail = ended.tail();
        }
    }
    Ok(finished(outcome, started))
}

/// Runs the tests of a program. One that hangs, or ends the program, is a failure of that test: the program is started
/// again for the tests that have not had their turn.
fn tests(name: String, program: &Program, place: &Place<'_>, mut without: Vec<String>) -> Result<Outcome> {
    println!("==> {name}");
    let started = Instant::now();
    let mut outcome = Outcome {
        name,
        ..Outcome::default()
    };
    loop {
        let mut command = Command::new(&program.path);
        // On a card one after the other: a call that waits for the whole device, as some CUDA calls do, would wait for
        // other tests' work.
        let threads = match place.platform {
            Platform::Host => "4",
            Platform::Amd | Platform::Nvidia => "1",
        };
        command.args(["--test-threads", threads]);
        if plan::runs_ignored(place.platform, &program.package, &program.name) && place.emulator.is_none() {
            command.arg("--include-ignored");
        }
        if !without.is_empty() {
            command.arg("--exact");
            command.args(without.iter().flat_map(|test| ["--skip", test]));
        }
        let ended = start(&outcome.name, command, place)?;
        let said = Said::by(&ended.output);
        outcome.passed += said.passed.len() as u64;
        outcome.failures.extend(said.failed.iter().cloned());
        let failure = ended
            .failure(place)
            .filter(|_| said.failed.is_empty() || said.running.is_some());
        let goes_on = match (&failure, said.running) {
            (Some(failure), Some(test)) => {
                outcome.failures.push(format!("{test} ({failure})"));
                without.extend(said.passed.into_iter().chain(said.failed).chain([test]));
                true
            }
            (Some(failure), None) => {
                outcome.failures.push(failure.clone());
                false
            }
            (None, _) => false,
        };
        if failure.is_some() || !outcome.failures.is_empty() {
            outcome.tail.push_str(&ended.tail());
        }
        if !goes_on {
            return Ok(finished(outcome, started));
        }
    }
}

/// Completes the counts and tells them.
fn finished(mut outcome: Outcome, started: Instant) -> Outcome {
    outcome.milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    outcome.failed = outcome.failures.len() as u64;
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
    outcome
}

/// What came of one start of a program.
struct Ended {
    /// `None`: it said nothing for too long and was ended.
    status: Option<ExitStatus>,
    output: String,
    /// Apart from the output, for the libraries' messages would part a test's name from its verdict.
    errors: String,
}

impl Ended {
    fn failure(&self, place: &Place<'_>) -> Option<String> {
        match self.status {
            None => Some(format!("stopped: it said nothing for {} s", place.limit.as_secs())),
            Some(status) if !status.success() => Some(format!("ended with {status}")),
            Some(_) => None,
        }
    }

    /// The end of both streams.
    fn tail(&self) -> String {
        [&self.output, &self.errors]
            .map(|text| {
                let lines: Vec<&str> = text.lines().filter(|line| !line.ends_with("... ok")).collect();
                lines[lines.len().saturating_sub(40)..].join("\n")
            })
            .join("\n")
    }
}

fn start(name: &str, mut command: Command, place: &Place<'_>) -> Result<Ended> {
    let logs = ["output", "errors"].map(|log| place.folder.join(format!("{log}-{}.log", process::id())));
    let create = |log: &Path| File::create(log).map_err(|error| Error::io(log.display(), error));
    let (output, errors) = (create(&logs[0])?, create(&logs[1])?);
    command
        .env("HIPCL_PLATFORM", place.platform.name())
        .env("HIPCL_SKIP_LOG", place.skip_log);
    if let Some(emulator) = place.emulator {
        command = emulator.command(&command)?;
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(|error| Error::io(name, error))?;
    let status = wait(&mut child, place.limit, &logs[0]).map_err(|error| Error::io(name, error))?;
    let read = |log: &Path| -> Result<String> {
        let bytes = fs::read(log).map_err(|error| Error::io(log.display(), error))?;
        fs::remove_file(log).map_err(|error| Error::io(log.display(), error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Ended {
        status,
        output: read(&logs[0])?,
        errors: read(&logs[1])?,
    })
}

/// `None`: its log did not grow for this long, and it was ended.
fn wait(child: &mut Child, limit: Duration, log: &Path) -> std::io::Result<Option<ExitStatus>> {
    let (mut last, mut length) = (Instant::now(), 0);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let now = fs::metadata(log)?.len();
        if now != length {
            (last, length) = (Instant::now(), now);
        } else if last.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What the test harness said of its tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    passed: Vec<String>,
    failed: Vec<String>,
    /// The test that has begun and not ended. Known where tests run one after the other.
    running: Option<String>,
}

impl Said {
    fn by(text: &str) -> Self {
        let mut said = Self::default();
        for line in text.lines() {
            // What a test prints past the harness parts its name from its verdict.
            let verdict = match line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
                Some((name, verdict)) => {
                    let name = name.strip_suffix(" - should panic").unwrap_or(name);
                    said.running = Some(name.to_owned());
                    verdict
                }
                None => line,
            };
            let list = match verdict {
                _ if verdict.ends_with("ok") && !verdict.starts_with("test result") => Some(&mut said.passed),
                _ if verdict.ends_with("FAILED") => Some(&mut said.failed),
                _ if verdict.starts_with("ignored") => None,
                _ => continue,
            };
            let test = said.running.take();
            if let Some(list) = list {
                list.extend(test);
            }
        }
        said
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
        let text = "running 4 tests\ntest a ... ok\ntest b - should panic ... FAILED\ntest c ... ignored\n\
                    test d ... said past the harness\nok\n\ntest result: FAILED. 2 passed\n";
        let said = Said::by(text);
        assert_eq!(said.passed, ["a", "d"]);
        assert_eq!(said.failed, ["b"]);
        assert_eq!(said.running, None);
        assert_eq!(Said::by("test a ... ok\ntest b ... ").running.as_deref(), Some("b"));
    }

    /// A program in the place of a test program: a shell script that plays the harness.
    fn run_script(script: &str, limit: Duration) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let source = folder.path().join("source");
        fs::write(&source, format!("#!/bin/sh\n{script}")).unwrap();
        // By another process: one that this process forks for another test would keep the script open for writing.
        let copied = Command::new("install")
            .args(["-m", "755"])
            .arg(&source)
            .arg(&path)
            .status();
        assert!(copied.unwrap().success());
        let place = Place {
            emulator: None,
            platform: Platform::Amd,
            skip_log: &folder.path().join("skips.txt"),
            folder: folder.path(),
            limit,
        };
        let program = Program {
            package: "hip".into(),
            name: "memory".into(),
            path,
        };
        tests("hip memory".into(), &program, &place, Vec::new()).unwrap()
    }

    #[test]
    fn a_test_that_ends_its_program_costs_no_other_test() {
        let outcome = run_script(
            "case \"$*\" in
                *'--exact --skip a --skip b'*) echo 'test c ... ok';;
                *) echo 'test a ... ok'; printf 'test b ... '; kill -ABRT $$;;
            esac",
            Duration::from_secs(60),
        );
        assert_eq!((outcome.passed, outcome.failed), (2, 1));
        assert!(
            outcome.failures[0].starts_with("b (ended with signal: 6"),
            "{:?}",
            outcome.failures
        );
    }

    #[test]
    fn a_test_that_hangs_is_ended_at_the_limit_and_the_next_begins() {
        let outcome = run_script(
            "case \"$*\" in
                *'--skip a'*) echo 'test b ... ok';;
                *) printf 'test a ... '; exec sleep 600;;
            esac",
            Duration::from_millis(300),
        );
        assert_eq!((outcome.passed, outcome.failed), (1, 1));
        assert_eq!(outcome.failures, ["a (stopped: it said nothing for 0 s)"]);
    }

    #[test]
    fn a_program_that_ends_before_its_first_test_is_a_failure() {
        let outcome = run_script("exit 3", Duration::from_secs(60));
        assert_eq!((outcome.passed, outcome.failed), (0, 1));
        assert_eq!(outcome.failures, ["ended with exit status: 3"]);
    }

    #[test]
    fn a_skip_is_known_or_not_by_its_reason() {
        let text = "a: needs two devices\nb: no OpenCL\na: needs two devices\n";
        let found = skips(text, Platform::Nvidia);
        assert_eq!(found.len(), 2);
        assert_eq!(found.iter().map(|skip| skip.known).collect::<Vec<_>>(), [true, false]);
    }
}
