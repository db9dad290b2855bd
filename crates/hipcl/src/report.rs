//! The report of a run: the JSON file and the printed table.

use std::fmt::{self, Display, Formatter};

use interop::Bridge;
use interop::measure::{Bandwidth, HandoffCost};
use serde::Serialize;

use crate::Result;
use crate::jobs::radar::net::Network;
use crate::outcome::Outcome;
pub use crate::outcome::{Emitter, Kernels, Satellite, Target};
use crate::timing::{Limit, Rates, Stage};

/// Everything a run reports; the names of the fields are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The job: "gps", "capon", "radar" or "note".
    pub job: String,
    /// The platform behind HIP: "amd", "nvidia" or "host".
    pub platform: String,
    /// Name of the HIP device.
    pub hip_device: String,
    /// Name of the OpenCL device.
    pub opencl_device: String,
    /// Route of the shared data sets.
    pub route: String,
    /// Where they live.
    pub residency: String,
    /// How work is handed from one API to the other.
    pub grade: String,
    /// The processes that ran the job together, if it was divided; the figures are those of the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Start>,
    /// Where OpenCL's kernels were launched.
    pub kernels: Kernels,
    /// Why there, if the user did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels_why: Option<String>,
    /// The stages of one iteration.
    pub stages: Vec<Stage>,
    /// Median cost of one hand-off in microseconds.
    pub handoff_us: f64,
    /// 99th percentile of it.
    pub handoff_p99_us: f64,
    /// Data-set bytes that were copied inside the timed loop, counted at the function tables of both APIs.
    pub host_copies_bytes: u64,
    /// What the route itself has to copy: 0 on a direct route.
    pub expected_copies_bytes: u64,
    /// Input bytes copied inside the timed loop.
    pub input_bytes: u64,
    /// Result bytes copied inside the timed loop.
    pub result_bytes: u64,
    /// Control bytes (scalars, status words) copied inside the timed loop.
    pub control_bytes: u64,
    /// Timed iterations.
    pub iterations: usize,
    /// Median wall time of an iteration in microseconds.
    pub iteration_us: f64,
    /// Memory traffic of the stages in one iteration, in bytes.
    pub iteration_bytes: u64,
    /// Measured memory bandwidth, in 10^9 bytes per second: the better of the two APIs on this memory.
    pub limit_gb_s: f64,
    /// Measured rate of a large complex product, in 10^9 operations per second, if a stage counts operations.
    pub limit_gflop_s: Option<f64>,
    /// Largest relative error against the double-precision reference.
    pub max_rel_error: f64,
    /// The limit for it.
    pub tolerance: f64,
    /// Whether a generated scene was found as generated; null when the input came from a file.
    pub truth_ok: Option<bool>,
    /// Whether numbers, copies and findings are all as they must be.
    pub verified: bool,
    /// The satellites found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub satellites: Option<Vec<Satellite>>,
    /// The emitters found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emitters: Option<Vec<Emitter>>,
    /// The echoes found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<Target>>,
    /// What came from the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Lines for the user.
    pub notes: Vec<String>,
}

/// Processes that were started together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Start {
    /// How many; each has a GPU.
    pub count: usize,
    /// What started them.
    pub launcher: String,
}

impl Report {
    /// Assembles the report of a run.
    ///
    /// # Errors
    /// The devices' names cannot be queried.
    pub fn new(
        job: &str,
        platform: &str,
        bridge: &Bridge,
        outcome: &Outcome,
        handoff: &HandoffCost,
        bandwidth: &Bandwidth,
        gflop_s: Option<f64>,
    ) -> Result<Self> {
        let (kernels, kernels_why) = outcome.kernels.clone();
        Ok(Self {
            job: job.to_owned(),
            platform: platform.to_owned(),
            hip_device: bridge.hip_device().name()?,
            opencl_device: bridge.cl_device().name().trim().to_owned(),
            route: outcome.route.to_string(),
            residency: outcome.residency.to_string(),
            grade: bridge.grade().to_string(),
            ranks: None,
            kernels,
            kernels_why,
            stages: outcome.timer.stages(Rates {
                gb_s: bandwidth.limit_gb_s,
                gflop_s,
            }),
            handoff_us: handoff.median_us,
            handoff_p99_us: handoff.p99_us,
            host_copies_bytes: outcome.copies.data_set,
            expected_copies_bytes: outcome.expected_copies_bytes,
            input_bytes: outcome.copies.input,
            result_bytes: outcome.copies.result,
            control_bytes: outcome.copies.control,
            iterations: outcome.timer.iterations(),
            iteration_us: outcome.timer.iteration_median_us(),
            iteration_bytes: outcome.timer.iteration_bytes(),
            limit_gb_s: bandwidth.limit_gb_s,
            limit_gflop_s: gflop_s,
            max_rel_error: outcome.max_rel_error,
            tolerance: outcome.tolerance,
            truth_ok: outcome.truth_ok,
            verified: outcome.verified(),
            satellites: outcome.satellites.clone(),
            emitters: outcome.emitters.clone(),
            targets: outcome.targets.clone(),
            network: outcome.network.clone(),
            notes: outcome.notes.clone(),
        })
    }

    /// Takes the verdicts of the processes that ran the job together: these ranks found their own results wrong.
    pub fn judge_too(&mut self, wrong: &[usize]) {
        for rank in wrong {
            self.notes.push(format!("rank {rank} did not verify its own results"));
            self.verified = false;
        }
    }

    /// The JSON file's text.
    pub fn to_json(&self) -> String {
        // a struct of strings, numbers and lists has no way to fail: there is no map with keys that are not strings
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Whether the counted copies match those expected of the route.
    pub fn copies_ok(&self) -> bool {
        self.host_copies_bytes == self.expected_copies_bytes
    }
}

/// Width of the column of names in the text of a report.
pub(crate) const NAMES: usize = 16;

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: &dyn Display| writeln!(f, "{name:<NAMES$}{value}");
        line("job", &self.job)?;
        line("platform", &self.platform)?;
        line("hip device", &self.hip_device)?;
        line("opencl device", &self.opencl_device)?;
        line(
            "route",
            &format_args!(
                "{} (residency {}, hand-off grade {})",
                self.route, self.residency, self.grade
            ),
        )?;
        if let Some(Start { count, launcher }) = &self.ranks {
            let one = "the figures are those of the first";
            line(
                "ranks",
                &format_args!("{count}, each with a GPU, started by {launcher}; {one}"),
            )?;
        }
        let on = match self.kernels {
            Kernels::Stream => "stream (OpenCL and HIP kernels on one HIP stream, no hand-off)",
            Kernels::Queue => "queue (OpenCL kernels on a queue, HIP kernels on a stream, with hand-offs)",
        };
        match &self.kernels_why {
            Some(why) => line("kernels", &format_args!("{on}: {why}"))?,
            None => line("kernels", &on)?,
        }
        writeln!(f)?;

        let width = self
            .stages
            .iter()
            .map(|stage| stage.name.len())
            .max()
            .unwrap_or(0)
            .max(9)
            + 2;
        writeln!(
            f,
            "{:<width$}{:<8}{:>12}{:>10}{:>12}",
            "stage", "api", "median µs", "GB/s", "% of limit"
        )?;
        for Stage {
            name,
            api,
            median_us,
            gb_s,
            limit,
            percent_of_limit,
        } in &self.stages
        {
            let of = match limit {
                Limit::Memory => "",
                Limit::Arithmetic => " of cgemm",
            };
            writeln!(
                f,
                "{name:<width$}{api:<8}{median_us:>12.1}{gb_s:>10.2}{percent_of_limit:>11.1}%{of}"
            )?;
        }
        let whole_gb_s = if self.iteration_us > 0.0 {
            self.iteration_bytes as f64 / self.iteration_us / 1e3
        } else {
            0.0
        };
        let percent = if self.limit_gb_s > 0.0 {
            100.0 * whole_gb_s / self.limit_gb_s
        } else {
            0.0
        };
        writeln!(
            f,
            "{:<width$}{:<8}{:>12.1}{:>10.2}{:>11.1}%",
            "iteration", "", self.iteration_us, whole_gb_s, percent
        )?;
        writeln!(f)?;

        self.findings(f)?;

        let mut line = |name: &str, value: &dyn Display| writeln!(f, "{name:<NAMES$}{value}");
        line("iterations", &self.iterations)?;
        line("memory limit", &format_args!("{:.1} GB/s, measured", self.limit_gb_s))?;
        if let Some(gflop_s) = self.limit_gflop_s {
            line(
                "arithmetic",
                &format_args!("{gflop_s:.1} GFLOP/s of a large cgemm, measured"),
            )?;
        }
        line(
            "hand-off",
            &format_args!(
                "{:.1} µs median, {:.1} µs at 99 %",
                self.handoff_us, self.handoff_p99_us
            ),
        )?;
        line(
            "copies",
            &format_args!(
                "{} data-set bytes in the timed loop ({} expected on this route); input {}, result {}, control {}",
                self.host_copies_bytes,
                self.expected_copies_bytes,
                self.input_bytes,
                self.result_bytes,
                self.control_bytes
            ),
        )?;
        line(
            "largest error",
            &format_args!("{:.2e} relative (limit {:.1e})", self.max_rel_error, self.tolerance),
        )?;
        if let Some(ok) = self.truth_ok {
            line(
                "scene",
                &if ok {
                    "found as generated"
                } else {
                    "NOT found as generated"
                },
            )?;
        }
        if let Some(network) = &self.network {
            let counts = &network.counts;
            line(
                "network",
                &format_args!(
                    "{} packets at {}, {:.1} MB/s sustained over {:.2} s",
                    counts.packets(),
                    network.address,
                    network.mb_per_s,
                    network.seconds
                ),
            )?;
            line(
                "packets",
                &format_args!(
                    "{} used; {} lost, {} late, {} dropped for lack of a buffer; {} repeated, {} out of order, {} malformed, {} from elsewhere",
                    counts.accepted,
                    counts.lost,
                    counts.late,
                    counts.overruns,
                    counts.duplicates,
                    counts.reordered,
                    counts.malformed.total(),
                    counts.foreign
                ),
            )?;
            line(
                "batches",
                &format_args!(
                    "{} complete, {} incomplete with {} missing samples, {} skipped",
                    counts.complete_batches, counts.incomplete_batches, counts.missing_samples, counts.skipped_batches
                ),
            )?;
        }
        for note in &self.notes {
            line("note", note)?;
        }
        if self
            .stages
            .iter()
            .any(|stage| stage.limit == Limit::Memory && stage.percent_of_limit > 105.0)
        {
            line(
                "note",
                &"above 100 %, the data of a stage fits in a cache, which is faster than the measured memory",
            )?;
        }
        line("verified", &self.verified)?;
        if !self.verified {
            line("", &format_args!("not verified: {}", self.blame()))?;
        }
        Ok(())
    }
}

impl Report {
    fn findings(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(satellites) = &self.satellites {
            writeln!(
                f,
                "{:<6}{:>12}{:>22}{:>18}",
                "PRN", "Doppler Hz", "code phase samples", "peak over median"
            )?;
            for Satellite {
                prn,
                doppler_hz,
                code_phase_samples,
                peak_over_median,
            } in satellites
            {
                writeln!(
                    f,
                    "{prn:<6}{doppler_hz:>12.1}{code_phase_samples:>22.2}{peak_over_median:>18.2}"
                )?;
            }
            if satellites.is_empty() {
                writeln!(f, "no satellite above the threshold")?;
            }
            writeln!(f)?;
        }
        if let Some(emitters) = &self.emitters {
            writeln!(f, "{:<10}{:>12}{:>12}", "emitter", "angle deg", "power dB")?;
            for (i, Emitter { angle_deg, power_db }) in emitters.iter().enumerate() {
                writeln!(f, "{:<10}{angle_deg:>12.3}{power_db:>12.2}", i + 1)?;
            }
            if emitters.is_empty() {
                writeln!(f, "no emitter above the threshold")?;
            }
            writeln!(f)?;
        }
        if let Some(targets) = &self.targets {
            writeln!(
                f,
                "{:<8}{:>15}{:>12}{:>12}{:>14}",
                "target", "delay samples", "range m", "angle deg", "amplitude dB"
            )?;
            for (i, target) in targets.iter().enumerate() {
                writeln!(
                    f,
                    "{:<8}{:>15.3}{:>12.1}{:>12.2}{:>14.2}",
                    i + 1,
                    target.delay_samples,
                    target.range_m,
                    target.angle_deg,
                    target.amplitude_db
                )?;
            }
            if targets.is_empty() {
                writeln!(f, "no target above the threshold")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    /// Why the run is not verified.
    fn blame(&self) -> String {
        let mut reasons = Vec::new();
        if self.max_rel_error.is_nan() || self.max_rel_error > self.tolerance {
            reasons.push("the numbers differ from the reference");
        }
        if !self.copies_ok() {
            reasons.push("the copied bytes differ from what the route promises");
        }
        if self.truth_ok == Some(false) {
            reasons.push("the generated scene was not found");
        }
        if reasons.is_empty() {
            reasons.push("another rank's results are not right, see its note");
        }
        reasons.join(", and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::{ApiName, Limit};

    fn sample() -> Report {
        Report {
            job: "capon".into(),
            platform: "host".into(),
            hip_device: "h".into(),
            opencl_device: "c".into(),
            route: "svm-coarse".into(),
            residency: "host-pinned".into(),
            grade: "host".into(),
            ranks: None,
            kernels: Kernels::Queue,
            kernels_why: None,
            stages: vec![Stage {
                name: "fft".into(),
                api: ApiName::OpenCl,
                median_us: 10.0,
                gb_s: 2.0,
                limit: Limit::Memory,
                percent_of_limit: 5.0,
            }],
            handoff_us: 1.0,
            handoff_p99_us: 2.0,
            host_copies_bytes: 0,
            expected_copies_bytes: 0,
            input_bytes: 0,
            result_bytes: 0,
            control_bytes: 0,
            iterations: 1,
            iteration_us: 10.0,
            iteration_bytes: 20_000,
            limit_gb_s: 40.0,
            limit_gflop_s: None,
            max_rel_error: 1e-6,
            tolerance: 1e-4,
            truth_ok: Some(true),
            verified: true,
            satellites: Some(vec![Satellite {
                prn: 1,
                doppler_hz: 1.0,
                code_phase_samples: 2.0,
                peak_over_median: 3.0,
            }]),
            emitters: Some(vec![Emitter {
                angle_deg: 1.0,
                power_db: 2.0,
            }]),
            targets: Some(vec![Target {
                delay_samples: 1.0,
                range_m: 2.0,
                angle_deg: 3.0,
                amplitude_db: 4.0,
            }]),
            network: None,
            notes: vec![],
        }
    }

    fn keys(value: &serde_json::Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn json_has_the_published_keys() {
        let value: serde_json::Value = serde_json::from_str(&sample().to_json()).unwrap();
        for key in [
            "platform",
            "hip_device",
            "opencl_device",
            "route",
            "residency",
            "grade",
            "stages",
            "handoff_us",
            "host_copies_bytes",
            "max_rel_error",
            "verified",
            "satellites",
            "emitters",
        ] {
            assert!(keys(&value).contains(&key), "{key}");
        }
        let sorted = |value: &serde_json::Value| {
            let mut keys = keys(value).into_iter().map(str::to_owned).collect::<Vec<_>>();
            keys.sort();
            keys
        };
        assert_eq!(
            sorted(&value["stages"][0]),
            ["api", "gb_s", "limit", "median_us", "name", "percent_of_limit"]
        );
        assert_eq!(
            sorted(&value["satellites"][0]),
            ["code_phase_samples", "doppler_hz", "peak_over_median", "prn"]
        );
        assert_eq!(sorted(&value["emitters"][0]), ["angle_deg", "power_db"]);
        assert_eq!(
            sorted(&value["targets"][0]),
            ["amplitude_db", "angle_deg", "delay_samples", "range_m"]
        );
        assert_eq!(value["stages"][0]["api"], "opencl");
    }

    #[test]
    fn a_job_without_findings_writes_no_empty_lists() {
        let report = Report {
            satellites: None,
            emitters: None,
            targets: None,
            ..sample()
        };
        let value: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        for list in ["satellites", "emitters", "targets"] {
            assert!(!keys(&value).contains(&list), "{list}");
        }
    }

    #[test]
    fn the_table_says_why_a_run_did_not_verify() {
        let report = Report {
            verified: false,
            host_copies_bytes: 8,
            max_rel_error: f64::NAN,
            truth_ok: Some(false),
            ..sample()
        };
        let text = report.to_string();
        for reason in ["numbers differ", "copied bytes differ", "scene was not found"] {
            assert!(text.contains(reason), "{reason} in {text}");
        }
    }
}
