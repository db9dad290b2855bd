//! One run of a job: open the bridge, run, judge, report, draw.

use std::path::PathBuf;

use interop::Bridge;

use crate::chart::PlotFile;
use crate::jobs::{Common, capon, gps, note, radar};
use crate::output::OutputFile;
use crate::report::Report;
use crate::{Error, Result, plot};

/// Which job to run, with its options.
#[derive(Clone, Debug)]
pub enum Job {
    /// GPS L1 C/A acquisition.
    Gps(gps::Options),
    /// Array direction finding.
    Capon(capon::Options),
    /// Echoes of a chirp on an array.
    Radar(Box<radar::Options>),
    /// The four pointwise kernels of the old design note.
    Note(note::Options),
}

impl Job {
    /// The name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gps(_) => "gps",
            Self::Capon(_) => "capon",
            Self::Radar(_) => "radar",
            Self::Note(_) => "note",
        }
    }
}

/// A requested run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The job.
    pub job: Job,
    /// The options that all jobs share.
    pub common: Common,
    /// Where to write the report as JSON.
    pub json: Option<PathBuf>,
    /// Where to write the picture; the extension chooses SVG or PNG.
    pub plot: Option<PathBuf>,
}

/// Carries the run out and writes its files.
///
/// # Errors
/// Anything that prevented the run from finishing; no file is written then.
pub fn run(request: &Request) -> Result<Report> {
    // a run of minutes must not end in "cannot write"
    let json = request.json.as_deref().map(OutputFile::reserve).transpose()?;
    let plot = request.plot.as_deref().map(PlotFile::reserve).transpose()?;
    OutputFile::apart(json.as_ref(), plot.as_ref().map(PlotFile::file))?;

    match &request.job {
        Job::Gps(options) => options.check()?,
        Job::Capon(options) => options.check()?,
        Job::Radar(options) => options.check()?,
        Job::Note(_) => {}
    }
    let selection = platform::select()?;
    let options = interop::Options {
        route: request.common.route,
        ..Default::default()
    };
    let bridge = Bridge::open(&selection, &options)?;
    let outcome = match &request.job {
        Job::Gps(options) => gps::run(&bridge, &request.common, options)?,
        Job::Capon(options) => capon::run(&bridge, &request.common, options)?,
        Job::Radar(options) => radar::run(&bridge, &request.common, options)?,
        Job::Note(options) => note::run(&bridge, &request.common, options)?,
    };
    // after the job: a user with bad input need not wait for it
    let bandwidth = interop::measure::bandwidth(&bridge)?;
    let gflop_s = match outcome.timer.counts_operations() {
        true => Some(interop::measure::arithmetic(&bridge)?),
        false => None,
    };
    let handoff = interop::measure::handoff(&bridge)?;
    let platform = selection.platform().to_string();
    let report = Report::new(
        request.job.name(),
        &platform,
        &bridge,
        &outcome,
        &handoff,
        &bandwidth,
        gflop_s,
    )?;

    // both are made before either is written
    let picture = plot
        .map(|file| {
            let bytes = plot::render(&outcome.picture, &report, file.format())?;
            Ok::<_, Error>((file, bytes))
        })
        .transpose()?;
    if let Some(file) = json {
        file.commit(report.to_json().as_bytes())?;
    }
    if let Some((file, bytes)) = picture {
        file.write(&bytes)?;
    }
    Ok(report)
}
