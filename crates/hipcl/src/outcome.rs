//! What a job returns: numbers to judge, and what to draw.

use interop::{Counts, Residency, Route};
use serde::Serialize;

use crate::jobs::radar::net::Network;
use crate::timing::StageTimer;

/// A GPS satellite that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Satellite {
    /// Pseudo-random noise code, 1..=32.
    pub prn: u8,
    /// Doppler shift of the carrier in Hz.
    pub doppler_hz: f64,
    /// Delay of the code in samples.
    pub code_phase_samples: f64,
    /// Peak power over the median of the satellite's delay-Doppler map, as a ratio.
    pub peak_over_median: f64,
}

/// An emitter that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Emitter {
    /// Direction from broadside in degrees.
    pub angle_deg: f64,
    /// Power of the emitter at one element, in dB relative to 1.
    pub power_db: f64,
}

/// An echo that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Target {
    /// Delay of the echo from the start of a block, in samples.
    pub delay_samples: f64,
    /// The distance that the delay stands for, in metres.
    pub range_m: f64,
    /// Direction from broadside in degrees.
    pub angle_deg: f64,
    /// Amplitude of the echo at one element, in dB relative to 1.
    pub amplitude_db: f64,
}

/// Where a job launches OpenCL kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Kernels {
    /// On the HIP stream of the HIP kernels, without a hand-off.
    Stream,
    /// On an OpenCL queue, with a hand-off at each change of side.
    Queue,
}

/// The result of a job.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Route of the shared data sets.
    pub route: Route,
    /// Where they live.
    pub residency: Residency,
    /// Where OpenCL kernels were launched, and why there if the user did not say.
    pub kernels: (Kernels, Option<String>),
    /// The clock, after the loop.
    pub timer: StageTimer,
    /// What was copied inside the timed loop.
    pub copies: Counts,
    /// Data-set bytes that the route itself has to copy inside the timed loop: 0 on a direct route, the hand-offs'
    /// traffic on `Staging`.
    pub expected_copies_bytes: u64,
    /// Largest error against the double-precision reference, relative to the largest reference value unless the job's
    /// documentation says otherwise.
    pub max_rel_error: f64,
    /// The limit for `max_rel_error`.
    pub tolerance: f64,
    /// The satellites found (`gps` only).
    pub satellites: Option<Vec<Satellite>>,
    /// The emitters found (`capon` only).
    pub emitters: Option<Vec<Emitter>>,
    /// The echoes found (`radar` only).
    pub targets: Option<Vec<Target>>,
    /// What came from the network (`radar --udp` only).
    pub network: Option<Network>,
    /// Whether a generated scene was found as it was generated; `None` when the input came from a file.
    pub truth_ok: Option<bool>,
    /// What to draw.
    pub picture: Picture,
    /// Lines for the user, printed below the table.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Whether the numbers, the copies and (for a generated scene) the findings are all correct.
    pub fn verified(&self) -> bool {
        // written so that a NaN error does not verify
        self.max_rel_error <= self.tolerance
            && self.copies.data_set == self.expected_copies_bytes
            && self.truth_ok.unwrap_or(true)
    }
}

/// A picture as data; [`crate::plot`] draws it.
#[derive(Clone, Debug)]
pub enum Picture {
    /// Values over a plane, shown as colours.
    Map {
        /// Headline.
        title: String,
        /// Name and unit of the horizontal axis.
        x_label: String,
        /// Name and unit of the vertical axis.
        y_label: String,
        /// Range of the horizontal axis, outer edges of the first and last column.
        x: (f64, f64),
        /// Range of the vertical axis, outer edges of the first and last row.
        y: (f64, f64),
        /// Columns of `values`.
        width: usize,
        /// Rows of `values`.
        height: usize,
        /// `width * height` values in dB, row after row; the first row lies at `y.0`.
        values: Vec<f32>,
        /// Places to mark, with a text each.
        marks: Vec<(f64, f64, String)>,
    },
    /// Curves.
    Lines {
        /// Headline.
        title: String,
        /// Name and unit of the horizontal axis.
        x_label: String,
        /// Name and unit of the vertical axis.
        y_label: String,
        /// Curves, each with its name.
        series: Vec<(String, Vec<(f64, f64)>)>,
        /// Places to mark, with a text each.
        marks: Vec<(f64, f64, String)>,
    },
    /// The stages of the report as bars along the time.
    Timeline,
}
