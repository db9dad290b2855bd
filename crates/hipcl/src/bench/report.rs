//! The figures of one run: the table, the JSON file, the comparison with an earlier one.

use std::fmt::Write as _;
use std::path::Path;

use clap::ValueEnum as _;
use interop::{Bridge, FirstCall};
use serde::{Deserialize, Serialize};

use super::What;
use super::line::Line;
use crate::{Error, Result};

/// The cost of a first call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FirstCallCost {
    /// What was called.
    pub what: String,
    /// Microseconds the first time.
    pub first_us: f64,
    /// The same again, where it was done again.
    pub again_us: Option<f64>,
}

/// One run of `hipcl bench`; the names of the fields are the keys of the JSON file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What was measured, as on the command line.
    pub bench: String,
    /// The platform behind HIP.
    pub platform: String,
    /// Name of the HIP device.
    pub hip_device: String,
    /// Name of the OpenCL device.
    pub opencl_device: String,
    /// The bridge's route; a line that uses another names it.
    pub route: String,
    /// The bridge's hand-off; a line that uses another names it.
    pub grade: String,
    /// The figures.
    pub lines: Vec<Line>,
    /// First calls, which are in none of the figures.
    pub first_calls: Vec<FirstCallCost>,
    /// Lines for the user.
    pub notes: Vec<String>,
}

impl Report {
    pub(super) fn new(
        what: What,
        bridge: &Bridge,
        lines: Vec<Line>,
        first_calls: &[FirstCall],
        notes: Vec<String>,
    ) -> Result<Self> {
        let first_calls = first_calls
            .iter()
            .map(|call| FirstCallCost {
                what: call.what.to_owned(),
                first_us: call.first.as_secs_f64() * 1e6,
                again_us: call.again.map(|again| again.as_secs_f64() * 1e6),
            })
            .collect();
        let name = what.to_possible_value();
        Ok(Self {
            bench: name.map_or_else(String::new, |value| value.get_name().to_owned()),
            platform: bridge.report().platform.to_string(),
            hip_device: bridge.hip_device().name()?,
            opencl_device: bridge.cl_device().name().trim().to_owned(),
            route: bridge.route().to_string(),
            grade: bridge.grade().to_string(),
            lines,
            first_calls,
            notes,
        })
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// A file that cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Self> {
        let text = crate::input::text(path)?;
        serde_json::from_str(&text).map_err(|error| {
            Error::input(format!(
                "`{}` is not a file of `hipcl bench --json`: {error}; name such a file, or measure again with this version",
                path.display()
            ))
        })
    }

    /// The JSON file's text.
    pub fn to_json(&self) -> String {
        // a struct of strings, numbers and lists has no way to fail
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The printed table, with the gain over an earlier run if there is one.
    pub fn table(&self, earlier: Option<&Self>) -> String {
        let mut text = String::new();
        // writing to a string does not fail
        let _ = self.write(&mut text, earlier);
        text
    }

    fn write(&self, out: &mut String, earlier: Option<&Self>) -> std::fmt::Result {
        let mut head = |name: &str, value: &str| writeln!(out, "{name:<16}{value}");
        head("bench", &self.bench)?;
        head("platform", &self.platform)?;
        head("hip device", &self.hip_device)?;
        head("opencl device", &self.opencl_device)?;
        head("route", &format!("{} (hand-off grade {})", self.route, self.grade))?;
        if let Some(other) = earlier.filter(|other| !self.same_place(other)) {
            head(
                "compared with",
                &format!(
                    "a different setup: {}, {}, {}, route {}",
                    other.platform, other.hip_device, other.opencl_device, other.route
                ),
            )?;
        }
        let width = self.lines.iter().map(|line| line.name.chars().count()).max();
        let width = width.unwrap_or(0) + 2;
        write!(
            out,
            "\n{:<width$}{:>12}{:>12}{:>12}  {:<8}{:>12}{:>9}  ",
            "", "median", "1st %", "99th %", "unit", "limit", "of it"
        )?;
        if earlier.is_some() {
            write!(out, "{:>12}{:>8}  ", "before", "gain")?;
        }
        writeln!(out, "limit is")?;
        let number = |value: Option<f64>| match value {
            // three digits say what a small figure is
            Some(value) if value.is_finite() && value.abs() < 1.0 => format!("{value:.4}"),
            Some(value) if value.is_finite() => format!("{value:.2}"),
            _ => "-".to_owned(),
        };
        for line in &self.lines {
            let percent = line.percent.map_or("-".to_owned(), |percent| format!("{percent:.0}%"));
            write!(
                out,
                "{:<width$}{:>12}{:>12}{:>12}  {:<8}{:>12}{percent:>9}  ",
                line.name,
                number(Some(line.value)),
                number(line.low),
                number(line.high),
                line.unit,
                number(line.limit),
            )?;
            if let Some(earlier) = earlier {
                let before = earlier.lines.iter().find(|other| other.name == line.name);
                let gain = before.and_then(|before| line.gain_over(before));
                let gain = gain.map_or("-".to_owned(), |gain| format!("{gain:.2}x"));
                write!(out, "{:>12}{gain:>8}  ", number(before.map(|before| before.value)))?;
            }
            writeln!(out, "{}", line.limit_is)?;
        }
        if let Some(earlier) = earlier {
            let gone = |line: &&Line| !self.lines.iter().any(|other| other.name == line.name);
            for line in earlier.lines.iter().filter(gone) {
                writeln!(out, "no longer measured: {}", line.name)?;
            }
        }
        writeln!(
            out,
            "\nfirst calls, not included above{:>13}{:>14}",
            "first µs", "again µs"
        )?;
        for call in &self.first_calls {
            writeln!(
                out,
                "  {:<34}{:>8.1}{:>14}",
                call.what,
                call.first_us,
                number(call.again_us)
            )?;
        }
        for note in &self.notes {
            writeln!(out, "note: {note}")?;
        }
        Ok(())
    }

    fn same_place(&self, other: &Self) -> bool {
        (&self.platform, &self.hip_device, &self.opencl_device, &self.route)
            == (&other.platform, &other.hip_device, &other.opencl_device, &other.route)
    }
}
