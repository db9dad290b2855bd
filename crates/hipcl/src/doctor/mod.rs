//! What was found on this machine, which devices belong together, and which routes work.
//!
//! | module | what it owns |
//! |---|---|
//! | `probe` | child processes, in which everything is done that may crash or hang |
//! | [`system`] | the system around the libraries, which is only read |
//! | `examine` | the questions asked of them, in order |
//! | `libraries`, `collectives` | the reports on the libraries and their devices |
//! | `grades`, `carriers`, `allocations` | the reports on hand-offs, on other processes, and on where memory lies |
//! | [`findings`](Findings) | the answers as data, which are also the JSON file |
//! | `compare` | what has changed since an earlier report |
//! | `text`, `tables`, `picture` | the answers to read and to look at |

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use interop::Route;
use platform::Platform;

use crate::Result;
use crate::chart::PlotFile;
use crate::columns;
use crate::output::{OutputFile, print};
use crate::progress::Progress;

mod allocations;
mod carriers;
mod collectives;
mod compare;
mod examine;
mod findings;
mod grades;
mod libraries;
mod mapped;
mod one_stream;
mod pairing;
mod picture;
pub mod probe;
pub mod system;
mod tables;
mod text;

pub use compare::{Change, Comparison, Kind};
pub use findings::{
    AllocationState, CarrierState, Check, Compiler, Findings, GradeState, HandoffFigures, HipDevice, HostPtr, Library,
    OneStream, OpenClDevice, Pair, Pairing, RouteFigures, RouteState, SCHEMA, State, StreamFigures, Tried,
};
pub use probe::{Crossing, Death};

/// The option that names a platform, here and in a probe.
const PLATFORM_OPTION: &str = "--platform";

/// What it may name.
pub(crate) fn platforms() -> PossibleValuesParser {
    PossibleValuesParser::new(Platform::ALL.iter().map(|platform| platform.facts().name))
}

/// Options of `hipcl doctor`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// Print the findings as JSON; with a file name, write them there and print the text as well.
    #[arg(long, value_name = "F.json", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
    /// Draw the bandwidth of each route and allocation: an SVG or a PNG, by the extension.
    #[arg(long, value_name = "F.svg|F.png")]
    pub plot: Option<PathBuf>,
    /// List what changed since this earlier file of `--json`; the exit status is 1 also if anything became worse.
    #[arg(long, value_name = "OLD.json")]
    pub compare: Option<PathBuf>,
    /// Platform to examine (default: chosen by HIPCL_PLATFORM, else the first with a device).
    #[arg(long, value_name = "NAME", value_parser = platforms())]
    pub platform: Option<String>,
    /// Route to try; may be repeated (default: every route).
    #[arg(long = "route", value_name = "ROUTE", value_parser = crate::route::names())]
    pub routes: Vec<Route>,
    /// Time limit of each probe, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub limit: Option<u32>,
}

impl Options {
    /// The routes to try, best first.
    fn routes(&self) -> impl Iterator<Item = Route> + '_ {
        let asked = |route: &Route| self.routes.is_empty() || self.routes.contains(route);
        Route::ALL.into_iter().filter(asked)
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.limit.unwrap_or(60).into())
    }
}

/// Examines the machine and prints what was found. Status 0 if a direct route works, or, where routes are named, one of
/// these; else 1. Also 1 if something became worse since the report that it is compared with.
///
/// The program that calls this is started again for each probe, as `PROGRAM doctor-probe SUBJECT`: it has to be
/// `hipcl`.
///
/// # Errors
/// An unknown platform name, or a file that cannot be read or written.
pub fn main(options: &Options) -> Result<ExitCode> {
    let earlier = options.compare.as_deref().map(Findings::read).transpose()?;
    let file = match &options.json {
        Some(Some(path)) => Some(OutputFile::reserve(path)?),
        _ => None,
    };
    let plot = options.plot.as_deref().map(PlotFile::reserve).transpose()?;
    OutputFile::apart(file.as_ref(), plot.as_ref().map(PlotFile::file))?;
    let progress = Progress::of("doctor: libraries, devices and routes");
    let mut findings = examine::examine(options)?;
    drop(progress);
    findings.comparison = earlier.map(|earlier| findings.since(&earlier));
    if options.json == Some(None) {
        print(&findings.to_json())?;
    } else {
        print(&findings.text(columns::of_stdout()))?;
    }
    if let Some(file) = file {
        file.commit(findings.to_json().as_bytes())?;
    }
    if let Some(plot) = plot {
        plot.commit(&findings.picture())?;
    }
    let worse = findings.comparison.as_ref().is_some_and(|it| it.worse);
    Ok(ExitCode::from(u8::from(!findings.is_met() || worse)))
}
