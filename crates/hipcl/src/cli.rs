//! The command line. Exit status: 0 verified or healthy, 1 not verified or not healthy, 2 could not run.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use interop::Route;

use crate::error::one_line;
use crate::jobs::radar::net::sender;
use crate::jobs::{Common, capon, gps, note, radar};
use crate::output::print;
use crate::pipeline::{self, Job, Request};
use crate::progress::{self, Progress};
use crate::timing::ApiName;
use crate::{Error, Result, bench, columns, doctor, report};

/// Lets OpenCL and HIP share GPU memory without copies, and verifies the results.
#[derive(Debug, Parser)]
#[command(
    name = "hipcl",
    version,
    after_help = "Exit status: 0 verified or healthy; 1 not verified or not healthy; 2 could not run.\n\
                  HIPCL_PLATFORM=amd|nvidia|host selects the platform, HIPCL_OPENCL names an OpenCL library."
)]
struct Cli {
    #[command(flatten)]
    progress: progress::Options,
    /// None: the help is printed.
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a job in which OpenCL and HIP share their data, and verify its results.
    #[command(subcommand)]
    Pipeline(Pipeline),
    /// Send generated batches to `pipeline radar --udp`; on request, lose, repeat and reorder packets.
    RadarSend(sender::Options),
    /// Examine this machine: its libraries and devices, which devices pair, and which routes work.
    Doctor(doctor::Options),
    /// One probe of `doctor`, in a separate process.
    #[command(hide = true)]
    DoctorProbe {
        /// What to examine.
        subject: doctor::probe::Subject,
        /// The platform to examine.
        #[arg(long)]
        platform: Option<String>,
        /// Measure nothing.
        #[arg(long)]
        proof: bool,
    },
    /// Measure this machine: each figure with its spread and its limit.
    Bench(bench::Options),
    /// Print a completion script for a shell.
    ///
    /// In ~/.bashrc, for example: `source <(hipcl completions bash)`.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// The second process of `bench ipc`.
    #[command(hide = true)]
    BenchPeer(bench::ipc::Peer),
    /// Write the manual's pages, for packages of this program.
    #[command(hide = true)]
    Man {
        /// The folder that gets them; it exists.
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum Pipeline {
    /// Acquire GPS L1 C/A satellites in a recording or a generated signal.
    Gps {
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        options: gps::Options,
    },
    /// Find directions of arrival with an antenna array (Capon), in a recording or a generated scene.
    Capon {
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        options: capon::Options,
    },
    /// Find echoes of a chirp with an array of receivers, in a generated scene or from the network.
    Radar {
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        options: radar::Options,
    },
    /// Run four pointwise kernels over 4,194,304 complex samples, for comparison with a published figure.
    Note {
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        options: note::Options,
    },
}

/// Options of every job.
#[derive(Args, Debug)]
struct Run {
    /// Route to share memory (default: the best direct route).
    #[arg(long, conflicts_with = "staging", value_parser = crate::route::names())]
    route: Option<Route>,
    /// Copy instead of sharing, for comparison (same as --route staging).
    #[arg(long)]
    staging: bool,
    /// Number of timed iterations (default: depends on the job).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    iterations: Option<u32>,
    /// Write the report to this file.
    #[arg(long, value_name = "F.json")]
    json: Option<PathBuf>,
    /// Write a plot to this file, as SVG or PNG by its extension.
    #[arg(long, value_name = "F.svg|F.png")]
    plot: Option<PathBuf>,
    /// Run as one of the processes that mpirun, srun or torchrun started, each with a part of the data on its own GPU.
    #[arg(long)]
    ranks: bool,
    /// Seed of the generated data.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Copy 4 KiB through this API in every iteration, to test the copy counters: the run must not verify.
    #[arg(long, value_enum, value_name = "API")]
    plant_copy: Option<Api>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Api {
    Opencl,
    Hip,
}

impl Run {
    fn request(self, job: Job) -> Request {
        let route = if self.staging { Some(Route::Staging) } else { self.route };
        let common = Common {
            route,
            iterations: self.iterations.map(|n| n as usize),
            seed: self.seed,
            plant_copy: self.plant_copy.map(|api| match api {
                Api::Opencl => ApiName::OpenCl,
                Api::Hip => ApiName::Hip,
            }),
            ..Common::default()
        };
        Request {
            job,
            common,
            json: self.json,
            plot: self.plot,
            ranks: self.ranks,
        }
    }
}

/// Runs the command with `args` (the program's name first) and says how it went.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            return print(&error.render().to_string())
                .map_or_else(|error| refuse(&error.one_line()), |()| ExitCode::SUCCESS);
        }
        Err(error) => return refuse(&usage_line(&error)),
    };
    cli.progress.apply();
    let done = match cli.command {
        Some(command) => execute(command),
        None => print(&Cli::command().render_help().to_string()).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        Err(error) => refuse(&error.one_line()),
    }
}

fn execute(command: Command) -> Result<ExitCode> {
    let request = match command {
        Command::Doctor(options) => return doctor::main(&options),
        Command::DoctorProbe {
            subject,
            platform,
            proof,
        } => {
            let extent = match proof {
                true => interop::Extent::Proof,
                false => interop::Extent::Figures,
            };
            return doctor::probe::main(subject, platform.as_deref(), extent);
        }
        Command::RadarSend(options) => {
            let progress = Progress::of("radar-send");
            let sent = sender::run(&options)?;
            drop(progress);
            print(&sent)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Bench(options) => return bench::main(&options),
        Command::Completions { shell } => return completions(shell),
        Command::BenchPeer(peer) => return peer.run(),
        Command::Man { folder } => return man(&folder),
        Command::Pipeline(Pipeline::Gps { run, options }) => run.request(Job::Gps(options)),
        Command::Pipeline(Pipeline::Capon { run, options }) => run.request(Job::Capon(options)),
        Command::Pipeline(Pipeline::Radar { run, options }) => run.request(Job::Radar(Box::new(options))),
        Command::Pipeline(Pipeline::Note { run, options }) => run.request(Job::Note(options)),
    };
    let progress = Progress::of(&format!("pipeline {}", request.job.name()));
    let report = pipeline::run(&request)?;
    drop(progress);
    // The first of several processes speaks for all.
    let Some(report) = report else {
        return Ok(ExitCode::SUCCESS);
    };
    print(&columns::report(&report.to_string(), report::NAMES))?;
    Ok(ExitCode::from(u8::from(!report.verified)))
}

/// A page for the command and one for each of its shown subcommands, from what `--help` says.
fn man(folder: &Path) -> Result<ExitCode> {
    clap_mangen::generate_to(Cli::command(), folder).map_err(|cause| Error::Io {
        action: "write the manual's pages to",
        path: folder.to_owned(),
        cause,
        remedy: "name a folder that exists and can be written",
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The shell's script, from the same declaration as `--help`.
fn completions(shell: clap_complete::Shell) -> Result<ExitCode> {
    // The generators do not all leave out what is hidden.
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
    let mut command = clap::Command::new("hipcl").args(all.get_arguments()).subcommands(shown);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "hipcl", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

fn refuse(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {message}");
    ExitCode::from(2)
}

/// clap's message without its usage block: the cause and its hints, on one line.
fn usage_line(error: &clap::Error) -> String {
    // clap's answer to this is the whole help
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no job; use `pipeline gps`, `pipeline capon`, `pipeline radar` or `pipeline note`, or try --help"
            .into();
    }
    let missing = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    if error.kind() == ErrorKind::MissingRequiredArgument && missing.as_deref() == Some("<WHAT>") {
        return "no measurement; `bench list` says what there is, or try --help".into();
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = text
        .find("\n\nUsage:")
        .or_else(|| text.find("\n\nFor more information"))
        .unwrap_or(text.len());
    let said = one_line(&text[..end]).replace(": | ", ": ").replace(" | ", "; ");
    match commands(&text[end..]) {
        Some(names) if error.kind() == ErrorKind::InvalidSubcommand => {
            format!("{said}; use one of {names}, or try --help")
        }
        _ => format!("{said}; try --help"),
    }
}

/// The names that may follow the words of clap's usage line.
fn commands(text: &str) -> Option<String> {
    let usage = text.split("Usage: ").nth(1)?;
    let all = Cli::command();
    let mut command = &all;
    for word in usage.split_whitespace().skip(1) {
        match command.find_subcommand(word) {
            Some(inner) => command = inner,
            None => break,
        }
    }
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let names: Vec<&str> = shown.map(clap::Command::get_name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
