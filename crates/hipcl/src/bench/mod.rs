//! `hipcl bench`: figures of this machine, each held against what limits it.
//!
//! [`What`] lists the measurements, one in each module of the same name. The other modules:
//!
//! | module | what |
//! |---|---|
//! | `shapes` | products of the shapes that jobs have, for `blas` |
//! | `stages` | an OpenCL and a HIP stage for blocks, as `stream` and `gpus` have them |
//! | `peer` | others' libraries, called raw, to measure against |
//! | `line`, `report`, `picture` | one figure; the table, the JSON, the comparison; the bars |

pub mod line;
mod peer;
mod picture;
pub mod report;
mod shapes;
mod stages;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum as _;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use interop::{Bridge, Route};
use line::Line;
use platform::Selection;
use report::Report;

use crate::chart::PlotFile;
use crate::jobs::ranks::{Ranks, Team};
use crate::output::{OutputFile, print};
use crate::progress::Progress;
use crate::{C32, Error, Result, chosen, columns};

/// Declares each measurement: what it says of itself, its name on the command line in capitals, and its module, whose
/// `measure` takes the figures.
macro_rules! measurements {
    ($($(#[$about:meta])+ $name:ident = $visible:vis mod $module:ident;)+) => {
        $($visible mod $module;)+

        /// What to measure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
        pub enum What {
            $($(#[$about])+ $name,)+
        }

        impl What {
            fn measure(self, setup: &Setup) -> Result<Figures> {
                match self {
                    $(Self::$name => $module::measure(setup),)+
                }
            }
        }
    };
}

measurements! {
    /// Hand-offs of a buffer from one API to the other.
    Handoff = mod handoff;
    /// Memory bandwidth of each route.
    Routes = mod routes;
    /// Hand-offs by copying.
    Staging = mod staging;
    /// Blocks that pass through overlapping stages.
    Pipeline = mod pipeline;
    /// The jobs gps and capon, with OpenCL kernels on a queue, on one stream and as graphs.
    Jobs = mod jobs;
    /// Four small kernels, strictly alternating and with several data sets in flight.
    Note = mod note;
    /// The four small kernels on fine-grained and coarse-grained SVM, on the latter in a context of two devices too,
    /// and on HIP memory.
    Svm = mod svm;
    /// Blocks that arrive as if from a network, through pinned memory.
    Stream = mod stream;
    /// Memory of another process: import, turns and bandwidth.
    Ipc = pub mod ipc;
    /// Blocks divided between all GPUs compared with one GPU, and copies from GPU to GPU.
    Peers = mod gpus;
    /// All-reduce between the GPUs of this process, or between the processes that mpirun, srun or torchrun started,
    /// beside the library's raw calls.
    Collective = mod collective;
    /// Growth of memory, file descriptors and threads over a long run.
    Soak = mod soak;
    /// Launches of empty kernels.
    Launch = mod launch;
    /// Matrix products on shared memory.
    Blas = mod blas;
    /// Hermitian inverses on shared memory, single and batched.
    Solver = mod solver;
    /// Fourier transforms on shared memory.
    Fft = mod fft;
    /// Allocations from the memory pool.
    Pool = mod pool;
    /// Programs from the cache.
    Cache = mod cache;
}

impl What {
    /// As on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What the command was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// This measurement.
    One(What),
    /// Every one that ends within minutes.
    All,
    /// None: their list.
    List,
}

const LIST: &str = "list";
const ALL: &str = "all";

/// Takes the name of a measurement, `list` or `all`.
fn chosen() -> impl TypedValueParser<Value = Chosen> {
    let measurements = What::value_variants().iter().filter_map(What::to_possible_value);
    let others = [
        PossibleValue::new(LIST).help("Say what each measurement is"),
        PossibleValue::new(ALL).help("Measure one after the other, except `soak`"),
    ];
    PossibleValuesParser::new(measurements.chain(others)).map(|name| match name.as_str() {
        LIST => Chosen::List,
        ALL => Chosen::All,
        name => What::from_str(name, false).map_or(Chosen::List, Chosen::One),
    })
}

/// Options of `hipcl bench`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// What to measure; `list` says what each is, `all` measures one after the other except `soak`.
    #[arg(value_parser = chosen())]
    pub what: Chosen,
    /// Route to share memory (default: the best direct route); `routes` measures all of them.
    #[arg(long, value_name = "ROUTE", value_parser = crate::route::names())]
    pub route: Option<Route>,
    /// Iterations of `soak` (default: 1000000); other measurements refuse this option.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1000..))]
    pub iterations: Option<u32>,
    /// Write the figures to this file.
    #[arg(long, value_name = "F.json")]
    pub json: Option<PathBuf>,
    /// Draw each figure against its limit, as SVG or PNG by the extension.
    #[arg(long, value_name = "F.svg|F.png")]
    pub plot: Option<PathBuf>,
    /// Compare each figure with this file of an earlier run.
    #[arg(long, value_name = "OLD.json")]
    pub compare: Option<PathBuf>,
}

/// What a measurement needs.
struct Setup {
    options: Options,
    selection: Selection,
    bridge: Bridge,
    /// The processes that measure together, for `collective`.
    ranks: Option<Ranks>,
}

impl Setup {
    fn on_route(&self, route: Route) -> Result<Bridge> {
        let options = interop::Options {
            route: Some(route),
            ..interop::Options::default()
        };
        Ok(Bridge::open(&self.selection, &options)?)
    }
}

/// What a measurement found.
#[derive(Default)]
struct Figures {
    lines: Vec<Line>,
    notes: Vec<String>,
}

impl From<Vec<Line>> for Figures {
    fn from(lines: Vec<Line>) -> Self {
        Self {
            lines,
            notes: Vec::new(),
        }
    }
}

/// Measures and prints. The figures are not judged: the status is 0 if they could be taken.
///
/// # Errors
/// Anything that prevents the measurement, or a file that cannot be read or written.
pub fn main(options: &Options) -> Result<ExitCode> {
    let what = match options.what {
        Chosen::One(what) => what,
        Chosen::List => return print(&list(columns::of_stdout())).map(|()| ExitCode::SUCCESS),
        Chosen::All => return all(options),
    };
    if options.iterations.is_some() && what != What::Soak {
        return Err(Error::input(format!(
            "`bench {}` chooses its own number of samples; remove --iterations, or use `bench soak`",
            what.name()
        )));
    }
    let earlier = options.compare.as_deref().map(Report::read).transpose()?;
    let json = options.json.as_deref().map(OutputFile::reserve).transpose()?;
    let plot = options.plot.as_deref().map(PlotFile::reserve).transpose()?;
    OutputFile::apart(json.as_ref(), plot.as_ref().map(PlotFile::file))?;
    // The first of several processes speaks for all.
    let Some(report) = measure(what, options)? else {
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(earlier) = &earlier
        && earlier.bench != report.bench
    {
        return Err(Error::input(format!(
            "the file of --compare is from `bench {}`, not from `bench {}`; name a file of the same measurement",
            earlier.bench, report.bench
        )));
    }
    print(&report.table(earlier.as_ref()))?;
    if let Some(file) = json {
        file.commit(report.to_json().as_bytes())?;
    }
    if let Some(plot) = plot {
        plot.commit(&report.picture())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What each measurement is.
fn list(width: usize) -> String {
    let lines = What::value_variants().iter().filter_map(|what| {
        let value = what.to_possible_value()?;
        let about = value.get_help().map(ToString::to_string).unwrap_or_default();
        let line = format!("{:<10} {about}", value.get_name());
        Some(columns::hanging(&line, width, 11) + "\n")
    });
    lines.collect()
}

/// Every measurement but `soak`. One that cannot be taken here is named and makes the status 1; the others go on.
fn all(options: &Options) -> Result<ExitCode> {
    let files = [&options.json, &options.plot, &options.compare];
    if files.iter().any(|file| file.is_some()) || options.iterations.is_some() {
        return Err(Error::input(
            "`bench all` takes neither --json, --plot, --compare nor --iterations; name one measurement".to_owned(),
        ));
    }
    let mut failed = false;
    for what in What::value_variants().iter().filter(|what| **what != What::Soak) {
        match measure(*what, options) {
            Ok(Some(report)) => print(&format!("{}\n", report.table(None)))?,
            Ok(None) => {}
            Err(error) => {
                failed = true;
                print(&format!("bench {}: {}\n\n", what.name(), error.one_line()))?;
            }
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// Nothing for one of several processes that is not the first.
fn measure(what: What, options: &Options) -> Result<Option<Report>> {
    let _progress = Progress::of(&format!("bench {}", what.name()));
    let team = (what == What::Collective).then(Team::join).transpose()?;
    let selection = platform::select()?;
    let mut interop_options = interop::Options {
        route: options.route,
        ..interop::Options::default()
    };
    if let Some(team) = &team {
        interop_options = team.options(&selection, interop_options)?;
    }
    let bridge = Bridge::open(&selection, &interop_options)?;
    chosen::tell(&selection, &bridge);
    let first_calls = bridge.warm_up()?;
    let mut setup = Setup {
        options: options.clone(),
        selection,
        ranks: team.map(|team| team.connect(&bridge)).transpose()?,
        bridge,
    };
    let mut found = what.measure(&setup)?;
    let is_first = setup.ranks.as_ref().is_none_or(|ranks| ranks.rank() == 0);
    setup.ranks.take().map_or(Ok(()), Ranks::leave)?;
    if cfg!(debug_assertions) {
        let note =
            "host times of a development build are too long; measure with `cargo build --release --package hipcl`";
        found.notes.push(note.to_owned());
    }
    is_first
        .then(|| Report::new(what, &setup.bridge, found.lines, &first_calls, found.notes))
        .transpose()
}

/// Why there are no figures of one stream.
fn not_on_stream(why: &interop::Error) -> String {
    format!("one stream: skipped: {}", crate::error::one_line(&why.to_string()))
}

/// Seconds of each of `count` runs of `work`, after some to warm up.
fn seconds(count: usize, mut work: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    for _ in 0..(count / 10).max(1) {
        work()?;
    }
    (0..count)
        .map(|_| {
            let start = Instant::now();
            work()?;
            Ok(start.elapsed().as_secs_f64())
        })
        .collect()
}

/// The same for several pieces of work, in turns, so a slow spell of the machine hits all of them.
fn in_turns(count: usize, turns: &mut [&mut dyn FnMut() -> Result<()>]) -> Result<Vec<Vec<f64>>> {
    let warm_up = (count / 10).max(1);
    let mut times = vec![Vec::with_capacity(count); turns.len()];
    for sample in 0..warm_up + count {
        for (work, times) in turns.iter_mut().zip(&mut times) {
            let start = Instant::now();
            work()?;
            if sample >= warm_up {
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    Ok(times)
}

/// Checks that another library's result equals ours: the rate of a different computation would be worthless.
fn same_result(what: &str, peer: &str, ours: &[C32], theirs: &[C32]) -> Result<()> {
    let largest = ours.iter().map(|x| x.norm()).fold(0.0, f32::max);
    let differ = |(a, b): (&C32, &C32)| (a - b).norm();
    let worst = ours.iter().zip(theirs).map(differ);
    // NaN is no agreement, and neither is nothing at all
    let agree = |worst: f32| worst <= 1e-4 * largest && largest > 0.0;
    match worst.fold(
        0.0,
        |a: f32, b| {
            if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) }
        },
    ) {
        worst if agree(worst) => Ok(()),
        worst => Err(Error::input(format!(
            "{what}: the result of {peer} differs by {worst:.1e}, with {largest:.1e} as the largest number; run `hipcl doctor`"
        ))),
    }
}

/// `bytes` by each time, in 10^9 a second.
fn per_second(bytes: f64, seconds: &[f64]) -> Vec<f64> {
    seconds.iter().map(|time| bytes / time / 1e9).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_not_ours_is_refused() {
        let ours = [C32::new(1.0, -2.0), C32::new(0.0, 100.0)];
        assert!(same_result("x", "y", &ours, &ours).is_ok());
        let mut theirs = ours;
        theirs[0].re += 0.001;
        assert!(same_result("x", "y", &ours, &theirs).is_ok());
        theirs[0].re += 0.1;
        let error = same_result("x", "y", &ours, &theirs).expect_err("off").to_string();
        assert!(error.contains("x: the result of y differs"), "{error}");
        theirs[0].re = f32::NAN;
        assert!(same_result("x", "y", &ours, &theirs).is_err());
        assert!(same_result("x", "y", &[C32::default()], &[C32::default()]).is_err());
    }
}
