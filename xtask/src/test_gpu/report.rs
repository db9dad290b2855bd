//! The report of a run: JSON to keep and compare, text to read.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::Platform;
use super::run::{Outcome, Results};
use crate::error::{Error, Result};

/// The outcome of a run.
pub struct Report {
    platform: Platform,
    results: Results,
    seconds_since_1970: u64,
}

impl Report {
    pub fn new(platform: Platform, results: Results) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            platform,
            results,
            seconds_since_1970: now.map_or(0, |now| now.as_secs()),
        }
    }

    fn failed(&self) -> u64 {
        self.results.outcomes.iter().map(|outcome| outcome.failed).sum()
    }

    /// A test that returned early counts as passed in the test harness, but not here.
    fn passed(&self) -> u64 {
        let said: u64 = self.results.outcomes.iter().map(|outcome| outcome.passed).sum();
        let began = self.results.skips.iter().filter(|skip| skip.began);
        // A test may say of several of its cases that they do not work there.
        let tests: BTreeSet<&str> = began.map(|skip| skip.test.as_str()).collect();
        said.saturating_sub(tests.len() as u64)
    }

    /// How many tests were skipped, in whole or in part.
    fn skipped(&self) -> usize {
        let tests: BTreeSet<&str> = self.results.skips.iter().map(|skip| skip.test.as_str()).collect();
        tests.len()
    }

    fn unknown_skips(&self) -> usize {
        self.results.skips.iter().filter(|skip| !skip.known).count()
    }

    /// Nothing failed, something ran, and only what the device is known to lack was skipped.
    pub fn is_green(&self) -> bool {
        self.failed() == 0 && self.passed() > 0 && self.unknown_skips() == 0
    }

    fn json(&self) -> Value {
        let outcome = |outcome: &Outcome| {
            json!({
                "name": outcome.name,
                "passed": outcome.passed,
                "failed": outcome.failed,
                "milliseconds": outcome.milliseconds,
                "failures": outcome.failures,
                "left_out": outcome.left_out,
                "tail": outcome.tail,
            })
        };
        let skips = self.results.skips.iter();
        json!({
            "platform": self.platform.name(),
            "seconds_since_1970": self.seconds_since_1970,
            "green": self.is_green(),
            "passed": self.passed(),
            "failed": self.failed(),
            "programs": self.results.outcomes.iter().map(outcome).collect::<Vec<_>>(),
            "skips": skips
                .map(|skip| json!({"test": skip.test, "reason": skip.reason, "known": skip.known}))
                .collect::<Vec<_>>(),
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("platform {}\n", self.platform.name());
        for outcome in &self.results.outcomes {
            let state = match (&outcome.left_out, outcome.failed) {
                (Some(why), _) => format!("left out: {why}"),
                (None, 0) => format!("{} passed in {} ms", outcome.passed, outcome.milliseconds),
                (None, failed) => format!(
                    "{} passed, {failed} FAILED: {}",
                    outcome.passed,
                    outcome.failures.join(", ")
                ),
            };
            // Writing to a string does not fail.
            let _ = writeln!(text, "{:<36} {state}", outcome.name);
        }
        for skip in &self.results.skips {
            let verdict = if skip.known { "known" } else { "NOT KNOWN, a failure" };
            let _ = writeln!(text, "skipped ({verdict}) {}: {}", skip.test, skip.reason);
        }
        let _ = writeln!(
            text,
            "{} passed, {} failed, {} skipped ({} of them not known): {}",
            self.passed(),
            self.failed(),
            self.skipped(),
            self.unknown_skips(),
            if self.is_green() { "green" } else { "NOT green" }
        );
        text
    }

    /// Writes `report.json` and `report.txt`.
    pub fn write(&self, folder: &Path) -> Result<()> {
        for (name, text) in [
            ("report.json", format!("{:#}\n", self.json())),
            ("report.txt", self.text()),
        ] {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| Error::io(path.display(), error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::Skip;
    use super::*;

    fn report(failed: u64, known: bool) -> Report {
        report_of(failed, known, true)
    }

    fn report_of(failed: u64, known: bool, began: bool) -> Report {
        let outcome = Outcome {
            name: "hip memory".into(),
            passed: 3,
            failed,
            ..Outcome::default()
        };
        let skip = Skip {
            test: "a".into(),
            reason: "b".into(),
            known,
            began,
        };
        let results = Results {
            outcomes: vec![outcome],
            skips: vec![skip],
        };
        Report::new(Platform::Nvidia, results)
    }

    #[test]
    fn only_a_run_without_failures_and_unknown_skips_is_green() {
        assert!(report(0, true).is_green());
        assert!(!report(1, true).is_green());
        assert!(!report(0, false).is_green());
        assert!(!Report::new(Platform::Amd, Results::default()).is_green());
    }

    #[test]
    fn a_test_that_did_not_begin_is_not_among_those_that_passed() {
        let report = report_of(0, true, false);
        assert_eq!(report.json()["passed"], 3);
        assert!(report.text().contains("3 passed, 0 failed, 1 skipped"));
    }

    #[test]
    fn a_test_that_skips_two_of_its_cases_is_one_test() {
        let mut report = report(0, true);
        let mut other = report.results.skips[0].clone();
        other.reason = "c".into();
        report.results.skips.push(other);
        assert_eq!(report.json()["passed"], 2);
        assert!(report.text().contains("2 passed, 0 failed, 1 skipped"));
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let report = report(0, true);
        assert_eq!(report.json()["passed"], 2);
        assert!(
            report
                .text()
                .ends_with("2 passed, 0 failed, 1 skipped (0 of them not known): green\n")
        );
    }
}
