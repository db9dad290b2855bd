//! Memory of another process: how long it takes to import it and to pass it back and forth, and its speed there.
//!
//! The second process is this program again ([`Peer`]). It connects once for each buffer.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use interop::{Bridge, Carrier, Joint, Link, Listener, PeerError, Route, Shared, measure};

use super::line::{Better, Line};
use super::{Figures, Setup};
use crate::{Error, Result};

/// Size of a buffer that is exported repeatedly.
const BYTES: usize = 16 << 20;
const EXPORTS: usize = 30;
const TURNS: usize = 500;
const WARM_UP: usize = 5;
/// Runs of the bandwidth measurement.
const RUNS: usize = 5;
/// The other process starts and opens its bridge in this time.
const LIMIT: Duration = Duration::from_secs(60);

/// What the second process does until the first one has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// Passes every turn back at once.
    Turns,
    /// Copies between two imported buffers, and prints a line for each run: the figures of OpenCL and of HIP.
    Bandwidth,
}

/// Options of the second process.
#[derive(clap::Args, Clone, Debug)]
pub struct Peer {
    /// What to do.
    #[arg(value_enum)]
    role: Role,
    /// Where the first process listens.
    path: PathBuf,
}

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let bridge = &setup.bridge;
    let socket_us = socket_us()?;
    let own = measure::bandwidth(bridge)?;
    let mut found = Figures::default();
    for carrier in Carrier::ALL {
        match of_carrier(bridge, carrier, socket_us, own, &mut found.lines) {
            Ok(()) => {}
            Err(Error::Interop(error)) if error.is_impossible() => {
                found.notes.push(format!("{carrier}: not possible: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn of_carrier(
    bridge: &Bridge,
    carrier: Carrier,
    socket_us: f64,
    own: measure::Bandwidth,
    lines: &mut Vec<Line>,
) -> Result<()> {
    // Before a process is started in vain.
    let (link, theirs) = Link::pair()?;
    drop(theirs);
    match memory::<u32>(bridge, carrier, 1)?.export_by(carrier, link) {
        Err(not) if not.error.is_impossible() => return Err(not.error.into()),
        _ => {}
    }

    let (second, listener) = Second::start(Role::Turns, carrier)?;
    // SAFETY: the other process is this program.
    let accept = || -> Result<Link> { Ok(unsafe { listener.accept(LIMIT) }?) };
    let mut joint: Joint<u32> = memory(bridge, carrier, BYTES / 4)?
        .export_by(carrier, accept()?)
        .map_err(interop::Error::from)?;
    let mut turns = Vec::with_capacity(TURNS);
    for sample in 0..WARM_UP + TURNS {
        let start = Instant::now();
        joint.pass()?;
        joint.take()?;
        if sample >= WARM_UP {
            turns.push(start.elapsed().as_secs_f64() * 1e6 / 2.0);
        }
    }
    drop(joint);
    let mut exports = Vec::with_capacity(EXPORTS);
    for sample in 0..WARM_UP + EXPORTS {
        let (link, buffer) = (accept()?, memory::<u32>(bridge, carrier, BYTES / 4)?);
        let start = Instant::now();
        let joint = buffer.export_by(carrier, link).map_err(interop::Error::from)?;
        if sample >= WARM_UP {
            exports.push(start.elapsed().as_secs_f64() * 1e6);
        }
        drop(joint);
    }
    drop(listener);
    second.end()?;

    let turn = Line::of(format!("{carrier}, a turn"), "us", Better::Lower, turns);
    let round_trip = 2.0 * turn.value;
    let name = format!("{carrier}, export and import of 16 MiB");
    lines.push(Line::of(name, "us", Better::Lower, exports).against(round_trip, "a turn there and back"));
    lines.push(turn.against(socket_us, "a byte through a socket between two threads"));
    bandwidth(bridge, carrier, own, lines)
}

fn bandwidth(bridge: &Bridge, carrier: Carrier, own: measure::Bandwidth, lines: &mut Vec<Line>) -> Result<()> {
    let bytes: usize = match bridge.report().platform.facts().is_model {
        true => 256 << 20,
        false => 1 << 30,
    };
    let (mut second, listener) = Second::start(Role::Bandwidth, carrier)?;
    let send = || -> Result<Joint<measure::Float4>> {
        let memory = memory(bridge, carrier, bytes / size_of::<measure::Float4>())?;
        // SAFETY: the other process is this program.
        let link = unsafe { listener.accept(LIMIT) }?;
        let mut joint = memory.export_by(carrier, link).map_err(interop::Error::from)?;
        joint.pass()?;
        Ok(joint)
    };
    let buffers = [send()?, send()?];
    let mut rates = [Vec::new(), Vec::new()];
    for line in second.output()? {
        let line = line.map_err(failed("read"))?;
        for (rates, word) in rates.iter_mut().zip(line.split_whitespace()) {
            rates.extend(word.parse::<f64>());
        }
    }
    drop(buffers);
    drop(listener);
    second.end()?;
    let [opencl, hip] = rates;
    for (api, rates, limit) in [("OpenCL", opencl, own.opencl_gb_s), ("HIP", hip, own.hip_gb_s)] {
        let name = format!("{carrier}, {api} on it");
        lines.push(
            Line::of(name, "GB/s", Better::Higher, rates).against(limit, "the bridge's own memory in this process"),
        );
    }
    Ok(())
}

/// Memory that this carrier may accept.
fn memory<T: bytemuck::Pod>(bridge: &Bridge, carrier: Carrier, len: usize) -> Result<Shared<T>> {
    let exported_by_opencl = bridge.report().working().any(|r| r == Route::DmaBuf);
    Ok(match carrier {
        Carrier::HipFd => bridge.alloc_exportable(len),
        Carrier::DmaBuf if exported_by_opencl => bridge.alloc_on(Route::SvmCoarse, len),
        _ => bridge.alloc_on(Route::HipPointer, len),
    }?)
}

/// One way: half of a round trip.
fn socket_us() -> Result<f64> {
    let (mut here, mut there) = std::os::unix::net::UnixStream::pair().map_err(failed("create"))?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let mut byte = [0];
        while there.read(&mut byte)? > 0 {
            there.write_all(&byte)?;
        }
        Ok(())
    });
    let mut byte = [0];
    let mut samples = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let start = Instant::now();
        here.write_all(&byte).map_err(failed("write"))?;
        here.read_exact(&mut byte).map_err(failed("read"))?;
        samples.push(start.elapsed().as_secs_f64() * 1e6 / 2.0);
    }
    drop(here);
    // It ends with the socket; its error would have been this side's too.
    let _ = echo.join();
    Ok(Line::of("", "us", Better::Lower, samples).value)
}

/// The second process, ended at the latest when it is dropped.
struct Second(Child);

impl Second {
    fn start(role: Role, carrier: Carrier) -> Result<(Self, Listener)> {
        use clap::ValueEnum as _;
        let name = format!("hipcl-{}-{carrier}-{role:?}", std::process::id());
        let listener = Listener::bind(std::env::temp_dir().join(name))?;
        let role = role.to_possible_value();
        let child = Command::new(std::env::current_exe().map_err(failed("find"))?)
            .arg("bench-peer")
            .args(role.as_ref().map(clap::builder::PossibleValue::get_name))
            .arg(listener.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed("start"))?;
        Ok((Self(child), listener))
    }

    /// What it prints, to its end.
    fn output(&mut self) -> Result<std::io::Lines<BufReader<std::process::ChildStdout>>> {
        match self.0.stdout.take() {
            Some(stdout) => Ok(BufReader::new(stdout).lines()),
            None => Err(Error::input("the second process's output was read before")),
        }
    }

    fn end(mut self) -> Result<()> {
        let status = self.0.wait().map_err(failed("wait for"))?;
        if status.success() {
            return Ok(());
        }
        Err(Error::input(format!(
            "the second process of `bench ipc` failed ({status}); see its output above"
        )))
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        // It may have ended, and then there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Peer {
    /// The second process's work, to the first one's end.
    ///
    /// # Errors
    /// If the bridge cannot be opened, or something between the processes fails.
    pub fn run(&self) -> Result<ExitCode> {
        let bridge = Bridge::open(&platform::select()?, &interop::Options::default())?;
        match self.role {
            Role::Turns => turns(&bridge, &self.path)?,
            Role::Bandwidth => {
                // SAFETY: the other process is this program.
                let link = || unsafe { Link::connect(&self.path) };
                let joint = || Ok::<_, Error>(import(&bridge, link()?)?);
                let (mut from, mut to) = (joint()?, joint()?);
                from.take()?;
                to.take()?;
                for _ in 0..RUNS {
                    let run = measure::joint_bandwidth(&bridge, &mut from, &mut to)?;
                    crate::output::print(&format!("{} {}\n", run.opencl_gb_s, run.hip_gb_s))?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn import<T: bytemuck::Pod>(bridge: &Bridge, link: Link) -> interop::Result<Joint<T>> {
    // SAFETY: the first process is this program, and uses the memory through a `Joint`.
    unsafe { bridge.import(link) }
}

/// Until the listener has gone.
fn turns(bridge: &Bridge, path: &Path) -> Result<()> {
    let gone = |error: &interop::Error| matches!(error, interop::Error::Peer(PeerError::Gone { .. }));
    // SAFETY: the other process is this program.
    while let Ok(link) = unsafe { Link::connect(path) } {
        let mut joint: Joint<u32> = match import(bridge, link) {
            Ok(joint) => joint,
            Err(error) if gone(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        loop {
            match joint.take() {
                Ok(()) => joint.pass()?,
                Err(error) if gone(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

fn failed(action: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |cause| Error::Io {
        action,
        path: "the second process of `bench ipc`".into(),
        cause,
        remedy: "check the limits on processes and file descriptors",
    }
}
