//! What all test programs together reported.

/// Counts of tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub programs: u64,
    pub passed: u64,
    pub failed: u64,
    skipped: u64,
}

impl Summary {
    /// Adds one line of output if it is a test program's summary.
    pub fn add(&mut self, line: &str) {
        let Some(counts) = line.trim_start().strip_prefix("test result: ") else {
            return;
        };
        let Some((_verdict, counts)) = counts.split_once(". ") else {
            return;
        };
        self.programs += 1;
        for part in counts.split(';') {
            let mut words = part.split_whitespace();
            let (Some(number), Some(kind)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match kind {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }

    /// A test that returned early because something is missing counts as passed in the test harness, but not here.
    pub fn leave_out(&mut self, skipped: u64) {
        self.passed = self.passed.saturating_sub(skipped);
        self.skipped += skipped;
    }

    pub fn line(&self) -> String {
        format!(
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summed(output: &str) -> Summary {
        let mut summary = Summary::default();
        output.lines().for_each(|line| summary.add(line));
        summary
    }

    #[test]
    fn all_programs_are_summed() {
        let summary = summed(
            "running 4 tests\n\
             test a ... ok\n\
             test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s\n\
             test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s\n",
        );
        assert_eq!(
            summary,
            Summary {
                programs: 2,
                passed: 8,
                failed: 2,
                skipped: 1
            }
        );
        assert_eq!(summary.line(), "8 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn other_lines_that_speak_of_results_count_nothing() {
        assert_eq!(
            summed("the test result: ok. 9 passed; 0 failed\ntest result: interrupted\n"),
            Summary::default()
        );
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let mut summary = summed("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured");
        summary.leave_out(2);
        assert_eq!(summary.line(), "1 passed, 0 failed, 2 skipped");
    }
}
