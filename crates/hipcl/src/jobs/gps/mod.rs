//! GPS L1 C/A acquisition: which satellites are in the air, at which Doppler shift and code phase.
//!
//! | stage | API | from | to |
//! |---|---|---|---|
//! | wipe-off | OpenCL | samples | `[coarse Doppler][block][sample]` at baseband; the phase runs on across blocks |
//! | fft | OpenCL | | `[coarse Doppler][block][frequency]` |
//! | product | OpenCL | times the conjugate spectra of the codes | `[prn][coarse Doppler][block][frequency]`, shared |
//! | inverse fft | OpenCL | in place | correlations `[prn][coarse Doppler][block][delay]`, shared |
//! | fine doppler | HIP, `rocblas_cgemm_strided_batched` | the same bytes as delay x block matrices, times steering | `[prn][coarse Doppler][sub-interval][fine Doppler][delay]` |
//! | power | HIP | squares, summed over sub-intervals | `[prn][Doppler row][delay]` |
//! | peak, median | HIP | | largest cell with its neighbours, exact median, of each satellite |
//! | peaks of all ranks | RCCL | with `--ranks`: each process searches a share of the satellites | those of all |
//!
//! A block is one code period of 1 ms. The blocks of a *sub-interval* are summed coherently, for every fine Doppler
//! bin; the powers of the sub-intervals are summed. A navigation bit lasts 20 blocks, so of up to 20 blocks at most one
//! sub-interval has a bit edge inside, and with two or more sub-intervals an edge hides no satellite, wherever it lies.
//!
//! # What is reported
//! A satellite is reported if its peak over the median of its map exceeds the [`threshold`] that follows from the
//! false-alarm probability of the whole search (default 1 in 1000), and what stronger satellites leak into its cell
//! ([`detect`]). With the default search,
//! - noise alone gives a false satellite in fewer than 1 of 1000 searches;
//! - a single satellite of 44.5 dB-Hz is missed in fewer than 1 of 100, wherever it lies between the cells and wherever
//!   a bit edge falls ([`detect::Detector::weakest_cn0_db_hz`] gives the limit for any search and any company; typical
//!   satellites are found 3 dB below it);
//! - beside one of 55 dB-Hz, satellites down to 47 dB-Hz are found with the same certainty, beside one of 60 dB-Hz down
//!   to 50 dB-Hz, and the strong one raises no false alarm; stronger ones than that are not tested.
//!
//! `doppler_hz` is the tip of a parabola through three Doppler rows. `code_phase_samples` counts from the first sample
//! of the signal to the first beginning of a code period, in `0 .. block`; it is the tip of a triangle through three
//! delays.

pub mod ca_code;
pub mod detect;
pub mod geometry;
mod options;
pub mod period;
mod picture;
pub mod reference;
pub mod scene;
pub mod search;
pub mod threshold;
pub mod truth;

use detect::Detector;
use interop::Bridge;
pub use options::Options;
use search::Search;
use truth::Verdict;

use crate::jobs::Common;
use crate::outcome::Outcome;
use crate::{Error, Result};

/// Timed iterations if the user names no number.
const DEFAULT_ITERATIONS: usize = 10;

/// Largest difference to the double-precision map, over its largest value, and of the peaks and medians to those of the
/// map. Measured: up to 4e-7, and 0.
pub const TOLERANCE: f64 = 1e-4;

/// Searches a file or a generated signal.
///
/// # Errors
/// [`Error::Input`] for invalid options or samples, else the APIs' errors.
pub fn run(bridge: &Bridge, common: &Common<'_>, options: &Options) -> Result<Outcome> {
    let signal = options.signal(common.seed)?;
    let geometry = &signal.geometry;
    let launch = &options.launch;
    let platform = bridge.report().platform;
    let make = |kernels| Search::as_for(platform, bridge, geometry, kernels, common.ranks);
    let (mut search, kernels) = launch.choose(common.route.is_some(), make)?;
    let mut timer = common.timer(DEFAULT_ITERATIONS);
    let copies = if launch.graph {
        let recorded = search.record(&signal.samples)?;
        timer.run(bridge, |timer| search.replay(timer, &recorded))
    } else {
        search.load(&signal.samples)?;
        timer.run(bridge, |timer| search.run(timer, launch.waits))
    }?;

    let peaks = search.peaks()?;
    let map = search.power_map()?;
    let max_rel_error = reference::max_rel_error(&signal.parameters, &signal.samples, &map)
        .max(reference::max_peak_error(geometry, &map, &peaks));

    let detector = Detector::new(geometry, options.pfa);
    let satellites = detector.satellites(&peaks);
    if let Some(period) = signal.period {
        let strongest = satellites.first().map_or(0.0, |s| s.peak_over_median);
        period.check(geometry, strongest / detector.threshold())?;
    }
    let mut notes = vec![format!(
        "threshold: peak over median {:.1}, false-alarm probability {} for all satellites together",
        detector.threshold(),
        options.pfa
    )];
    let verdict = signal
        .scene
        .as_ref()
        .map(|scene| Verdict::new(scene, geometry, &detector, &satellites));
    if let (Some(scene), Some(verdict)) = (&signal.scene, &verdict) {
        notes.extend(describe(scene, verdict));
    }

    let best = match satellites.first() {
        Some(satellite) => usize::from(satellite.prn) - 1,
        None => (0..peaks.len())
            .max_by(|&a, &b| (peaks[a].power / peaks[a].median).total_cmp(&(peaks[b].power / peaks[b].median)))
            .ok_or_else(|| Error::input("no satellite was searched for"))?,
    };
    let cells = geometry.cells();
    let picture = picture::picture(
        geometry,
        best + 1,
        &map[best * cells..(best + 1) * cells],
        peaks[best].median,
        satellites.first(),
    );
    Ok(Outcome {
        route: search.route(),
        residency: search.residency(),
        kernels,
        expected_copies_bytes: search.expected_copies_bytes() * timer.iterations() as u64,
        timer,
        copies,
        max_rel_error,
        tolerance: TOLERANCE,
        satellites: Some(satellites),
        emitters: None,
        targets: None,
        network: None,
        truth_ok: verdict.map(|verdict| verdict.is_right()),
        picture,
        notes,
    })
}

/// What was generated, and how the search did.
fn describe(scene: &scene::Scene, verdict: &Verdict) -> Vec<String> {
    let sent: Vec<String> = scene
        .transmitters
        .iter()
        .map(|sent| format!("{} ({} dB-Hz)", sent.prn, sent.cn0_db_hz))
        .collect();
    let mut notes = vec![format!("generated: PRN {}", sent.join(", "))];
    for (what, prns) in [
        ("missed", &verdict.missed),
        ("reported, but not generated", &verdict.false_alarms),
        ("not found, and too weak to be expected", &verdict.too_weak),
    ] {
        if !prns.is_empty() {
            let prns: Vec<String> = prns.iter().map(u8::to_string).collect();
            notes.push(format!("{what}: PRN {}", prns.join(", ")));
        }
    }
    notes
}
