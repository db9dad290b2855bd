//! One run of a job: open the bridge, run, judge, report, draw.

use std::path::PathBuf;

use interop::Bridge;
use interop::world::World;
use platform::Selection;

use crate::chart::PlotFile;
use crate::jobs::ranks::{Ranks, Team};
use crate::jobs::{Common, Outcome, capon, gps, note, radar};
use crate::output::OutputFile;
use crate::report::Report;
use crate::{Error, Result, chosen, plot};

/// Which job to run, with its options.
#[derive(Clone, Debug)]
pub enum Job {
    /// GPS L1 C/A acquisition.
    Gps(gps::Options),
    /// Array direction finding.
    Capon(capon::Options),
    /// Echoes of a chirp on an array.
    Radar(Box<radar::Options>),
    /// Four pointwise kernels, two of each API.
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
    pub common: Common<'static>,
    /// Where to write the report as JSON.
    pub json: Option<PathBuf>,
    /// Where to write the picture; the extension chooses SVG or PNG.
    pub plot: Option<PathBuf>,
    /// Whether this is one of several processes that divide the job.
    pub ranks: bool,
}

/// The files that a run writes at its end.
struct Files {
    json: Option<OutputFile>,
    plot: Option<PlotFile>,
}

/// Carries the run out and writes its files. One of several processes returns nothing, but for the first of them.
///
/// # Errors
/// Anything that prevented the run from finishing; no file is written then.
pub fn run(request: &Request) -> Result<Option<Report>> {
    request.check()?;
    let team = request.ranks.then(Team::join).transpose()?;
    let is_first = team.as_ref().is_none_or(Team::is_first);
    // a run of minutes must not end in "cannot write"
    let files = is_first.then(|| Files::reserve(request)).transpose()?;

    let selection = platform::select()?;
    let mut options = interop::Options {
        route: request.common.route,
        ..Default::default()
    };
    if let Some(team) = &team {
        options = team.options(&selection, options)?;
    }
    let bridge = Bridge::open(&selection, &options)?;
    chosen::tell(&selection, &bridge);
    let ranks = team.map(|team| team.connect(&bridge)).transpose()?;
    let common = Common {
        ranks: ranks.as_ref(),
        ..request.common.clone()
    };
    let outcome = request.job.run(&bridge, &common)?;
    let others = verdicts(ranks.as_ref(), &outcome)?;

    let report = files.map(|files| {
        let mut report = report(&request.job, &selection, &bridge, &outcome)?;
        report.ranks = ranks.as_ref().map(Ranks::start);
        report.judge_too(&others);
        report.notes.extend(request.undivided());
        files.write(&outcome, &report)?;
        Ok::<_, Error>(report)
    });
    let report = report.transpose()?;
    ranks.map_or(Ok(()), Ranks::leave)?;
    Ok(report)
}

impl Request {
    fn check(&self) -> Result<()> {
        match &self.job {
            Job::Gps(options) => options.check()?,
            Job::Capon(options) => options.check()?,
            Job::Radar(options) => options.check()?,
            Job::Note(_) => {}
        }
        match self.ranks && !self.can_divide() {
            true => Err(Error::input(
                "--ranks divides gps, capon, and radar without --udp; remove it",
            )),
            false => Ok(()),
        }
    }

    fn can_divide(&self) -> bool {
        match &self.job {
            Job::Gps(_) | Job::Capon(_) => true,
            Job::Radar(options) => options.udp.is_none(),
            Job::Note(_) => false,
        }
    }

    /// What to tell a user whose launcher started several processes, each of which runs the whole job.
    fn undivided(&self) -> Option<String> {
        let world = World::from_env().ok()?;
        let is_meant = !self.ranks && self.can_divide() && world.size() > 1;
        is_meant.then(|| {
            format!(
                "one of {} processes of {}, each of which ran the whole job; --ranks divides it among them",
                world.size(),
                world.launcher()
            )
        })
    }
}

impl Job {
    fn run(&self, bridge: &Bridge, common: &Common<'_>) -> Result<Outcome> {
        match self {
            Self::Gps(options) => gps::run(bridge, common, options),
            Self::Capon(options) => capon::run(bridge, common, options),
            Self::Radar(options) => radar::run(bridge, common, options),
            Self::Note(options) => note::run(bridge, common, options),
        }
    }
}

/// The ranks whose own results are not right.
fn verdicts(ranks: Option<&Ranks>, outcome: &Outcome) -> Result<Vec<usize>> {
    let Some(ranks) = ranks else {
        return Ok(Vec::new());
    };
    let verified = ranks.answers(u32::from(outcome.verified()))?;
    let wrong = verified.iter().enumerate().filter(|(_, verified)| **verified == 0);
    Ok(wrong.map(|(rank, _)| rank).collect())
}

fn report(job: &Job, selection: &Selection, bridge: &Bridge, outcome: &Outcome) -> Result<Report> {
    // after the job: a user with bad input need not wait for it
    let bandwidth = interop::measure::bandwidth(bridge)?;
    let gflop_s = match outcome.timer.counts_operations() {
        true => Some(interop::measure::arithmetic(bridge)?),
        false => None,
    };
    let handoff = interop::measure::handoff(bridge)?;
    let platform = selection.platform().to_string();
    Report::new(job.name(), &platform, bridge, outcome, &handoff, &bandwidth, gflop_s)
}

impl Files {
    fn reserve(request: &Request) -> Result<Self> {
        let json = request.json.as_deref().map(OutputFile::reserve).transpose()?;
        let plot = request.plot.as_deref().map(PlotFile::reserve).transpose()?;
        OutputFile::apart(json.as_ref(), plot.as_ref().map(PlotFile::file))?;
        Ok(Self { json, plot })
    }

    fn write(self, outcome: &Outcome, report: &Report) -> Result<()> {
        // both are made before either is written
        let picture = self
            .plot
            .map(|file| {
                let bytes = plot::render(&outcome.picture, report, file.format())?;
                Ok::<_, Error>((file, bytes))
            })
            .transpose()?;
        if let Some(file) = self.json {
            file.commit(report.to_json().as_bytes())?;
        }
        if let Some((file, bytes)) = picture {
            file.write(&bytes)?;
        }
        Ok(())
    }
}
