//! `cargo xtask demo`: from a fresh clone to a verified result.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use xshell::cmd;

use crate::error::{Error, Result};
use crate::workspace::{Workspace, cargo, seconds, step};
use crate::{setup, test};

/// One run of `hipcl pipeline`: the job and the options that keep it short.
struct Job {
    name: &'static str,
    options: &'static [&'static str],
    about: &'static str,
}

const JOBS: [Job; 4] = [
    Job {
        name: "note",
        options: &["--iterations", "5"],
        about: "four pointwise kernels over one shared buffer",
    },
    Job {
        name: "capon",
        options: &["--iterations", "3"],
        about: "direction finding with a 341-element array",
    },
    Job {
        name: "gps",
        options: &["--generate"],
        about: "GPS acquisition over all 32 satellites",
    },
    Job {
        name: "radar",
        options: &[],
        about: "range and direction of the echoes of a chirp",
    },
];

struct Done {
    name: &'static str,
    took: Duration,
    report: Value,
    picture: PathBuf,
}

/// Sets up, builds, runs the jobs and sums them up.
pub fn run(workspace: &Workspace) -> Result<()> {
    setup::run(workspace)?;
    step("build hipcl", || {
        let sh = workspace.shell()?;
        let cargo = cargo();
        // With the tests' features, so they build nothing again. Cargo counts those of `[dev-dependencies]` only if a
        // target that may use them is selected: any example will do.
        let (crates, example) = (test::CRATES, "devices");
        cmd!(sh, "{cargo} build {crates...} --bin hipcl --example {example}")
            .run()
            .map_err(|_| Error::Failed("hipcl does not build, see above".into()))
    })?;
    let program = workspace.target().join("debug").join("hipcl");
    let folder = workspace.target().join("demo");
    fs::create_dir_all(&folder).map_err(|error| Error::io(folder.display(), error))?;

    let started = Instant::now();
    let mut done = Vec::new();
    for job in &JOBS {
        println!("==> hipcl pipeline {}: {}", job.name, job.about);
        done.push(run_job(job, &program, &folder)?);
        println!();
    }
    print!("{}", table(&done));
    println!("\npictures:");
    for job in &done {
        println!("  {}", job.picture.display());
    }
    println!(
        "\n{} jobs in {}; every result was compared with a double-precision reference.",
        done.len(),
        seconds(started.elapsed())
    );
    Ok(())
}

fn run_job(job: &Job, program: &Path, folder: &Path) -> Result<Done> {
    let json = folder.join(format!("{}.json", job.name));
    let picture = folder.join(format!("{}.png", job.name));
    let started = Instant::now();
    let status = Command::new(program)
        .args(["pipeline", job.name])
        .args(job.options)
        .arg("--json")
        .arg(&json)
        .arg("--plot")
        .arg(&picture)
        .status()
        .map_err(|error| Error::io(program.display(), error))?;
    if !status.success() {
        return Err(Error::Failed(format!(
            "`hipcl pipeline {}` ended with {status}, see above; run `{} doctor` to examine the machine",
            job.name,
            program.display()
        )));
    }
    let text = fs::read_to_string(&json).map_err(|error| Error::io(json.display(), error))?;
    let report = serde_json::from_str(&text).map_err(|error| Error::Failed(format!("{}: {error}", json.display())))?;
    Ok(Done {
        name: job.name,
        took: started.elapsed(),
        report,
        picture,
    })
}

/// One row per job, columns as wide as their widest cell.
fn table(done: &[Done]) -> String {
    let mut rows = vec![
        [
            "job",
            "platform",
            "route",
            "OpenCL ms",
            "HIP ms",
            "copied bytes",
            "largest error",
            "found",
            "verified",
            "took",
        ]
        .map(String::from),
    ];
    for job in done {
        let report = &job.report;
        rows.push([
            job.name.to_string(),
            text(&report["platform"]),
            text(&report["route"]),
            milliseconds(report, "opencl"),
            milliseconds(report, "hip"),
            text(&report["host_copies_bytes"]),
            report["max_rel_error"]
                .as_f64()
                .map_or("?".into(), |error| format!("{error:.1e}")),
            found(report),
            match report["verified"].as_bool() {
                Some(true) => "yes".into(),
                _ => "NO".into(),
            },
            seconds(job.took),
        ]);
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// The time of one iteration that one of the two interfaces takes, as the sum of its stages' medians.
fn milliseconds(report: &Value, api: &str) -> String {
    let stages = report["stages"].as_array();
    let sum: f64 = stages
        .into_iter()
        .flatten()
        .filter(|stage| stage["api"] == api)
        .filter_map(|stage| stage["median_us"].as_f64())
        .sum();
    format!("{:.2}", sum / 1000.0)
}

fn found(report: &Value) -> String {
    let count = |key: &str| report[key].as_array().map(Vec::len);
    let lists = ["satellites", "emitters", "targets"];
    let mut found = lists
        .into_iter()
        .filter_map(|list| Some(format!("{} {list}", count(list)?)));
    found.next().unwrap_or_else(|| "-".into())
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "?".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_what_the_reports_say() {
        let report = serde_json::json!({
            "platform": "host",
            "route": "svm-coarse",
            "stages": [
                {"name": "fft", "api": "opencl", "median_us": 1500.0},
                {"name": "peak", "api": "opencl", "median_us": 500.0},
                {"name": "gemm", "api": "hip", "median_us": 250.0},
            ],
            "host_copies_bytes": 0,
            "max_rel_error": 3.21e-6,
            "verified": true,
            "satellites": [{"prn": 3}, {"prn": 9}],
        });
        let table = table(&[Done {
            name: "gps",
            took: Duration::from_millis(2500),
            report,
            picture: "gps.png".into(),
        }]);
        let cells: Vec<&str> = table.lines().nth(1).unwrap().split("  ").collect();
        let cells: Vec<&str> = cells
            .iter()
            .map(|cell| cell.trim())
            .filter(|cell| !cell.is_empty())
            .collect();
        assert_eq!(
            cells,
            [
                "gps",
                "host",
                "svm-coarse",
                "2.00",
                "0.25",
                "0",
                "3.2e-6",
                "2 satellites",
                "yes",
                "2.5 s"
            ]
        );
    }

    #[test]
    fn a_report_that_does_not_say_verified_is_not_shown_as_verified() {
        let table = table(&[Done {
            name: "note",
            took: Duration::ZERO,
            report: serde_json::json!({"verified": "yes"}),
            picture: "note.png".into(),
        }]);
        assert!(table.lines().nth(1).unwrap().contains("NO"), "{table}");
    }
}
