//! FFT throughput beside a plain copy kernel and single-threaded rustfft.
//!
//! `cargo run --release -p hipcl-clmgr-fft --example fft_speed [ARGUMENT …]`, arguments taken in order:
//!
//! | argument | meaning |
//! |---|---|
//! | `LENxBATCH` | measures this size; the jobs' sizes if none is given |
//! | `powers=MIB` | measures 2^12 to 2^22, this much data each |
//! | `way=WAY` | for the sizes behind it: `auto`, `local`, `registers`, `stages:HEIGHTxWIDTH`, … |
//! | `values=N`, `columns=N`, `whole=0` or `1`, `options=TEXT` | [`Tuning`], likewise; the options must not change what the kernels access |
//! | `rule` | back to the chosen way and tuning |
//! | `inverse=1`, `reference=0`, `logs=1`, `pairs=N` | the other direction; without rustfft; the compiler's words; pairs of buffers in rotation |
//!
//! Figures are medians, in GB/s of one read and one write of the data. The limit is the copy kernel on
//! the same buffers: "of limit" is against as many copies as the plan has passes, "of two" against
//! two. Each result is checked against rustfft in double precision.

use std::time::Instant;

use clmgr::{Arg, C32, Context, DeviceKind, Manager, NdRange, Program, ProgramCache, Queue, RegularBuffer};
use clmgr_fft::{Direction, Plan, Tuning, Way};
use rustfft::num_complex::Complex;

const SOURCE: &str = "
kernel void copy(global const float4 *x, global float4 *y) {
    y[get_global_id(0)] = x[get_global_id(0)];
}
float part(uint i) { return ((i * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1.0f; }
kernel void noise(global float2 *x) {
    const uint i = get_global_id(0);
    x[i] = (float2)(part(2 * i), part(2 * i + 1));
}";

const SAMPLES: usize = 9;
/// Numbers that rustfft transforms for its figure: its speed does not depend on the batch.
const REFERENCE: usize = 1 << 22;
/// The largest error of a transform, as a part of its largest value, by stage of a length of two.
const LIMIT: f64 = 1e-6;

type Failure = Box<dyn std::error::Error>;

struct Settings {
    way: Option<Way>,
    tuning: Tuning,
    direction: Direction,
    reference: bool,
    logs: bool,
    pairs: usize,
}

struct Bench {
    context: Context,
    queue: Queue,
    programs: ProgramCache,
    own: Program,
    settings: Settings,
}

fn main() -> Result<(), Failure> {
    let device = Manager::load()?.devices().remove(0);
    println!("{} ({})", device.name(), device.platform_name());
    let context = Context::new(&device)?;
    let mut bench = Bench {
        queue: context.queue()?,
        programs: ProgramCache::in_memory(&context),
        own: Program::build(&context, SOURCE, "")?,
        settings: Settings {
            way: None,
            tuning: Tuning::default(),
            direction: Direction::Forward,
            reference: true,
            logs: false,
            // A pair is more than a CPU's cache holds; a GPU's is larger.
            pairs: if device.kind() == DeviceKind::Cpu { 1 } else { 2 },
        },
        context,
    };
    println!(
        "{:>18} {:>20} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "size",
        "way",
        "passes",
        "compile s",
        "copy",
        "in place",
        "of limit",
        "apart",
        "of limit",
        "of two",
        "rustfft",
        "error"
    );
    let mut measured = false;
    for argument in std::env::args().skip(1) {
        measured |= bench.take(&argument)?;
    }
    if !measured {
        for size in ["4000x6720", "2000x6720", "32x349184", "1024x4096", "4194304x1"] {
            bench.take(size)?;
        }
    }
    Ok(())
}

impl Bench {
    /// Whether the argument measured something.
    fn take(&mut self, argument: &str) -> Result<bool, Failure> {
        let settings = &mut self.settings;
        match argument.split_once('=') {
            Some(("powers", mib)) => {
                let all = mib.parse::<usize>()? << 17;
                for power in 12..=22 {
                    self.measure(1 << power, (all >> power).max(1))?;
                }
                return Ok(true);
            }
            Some(("way", way)) => settings.way = parse_way(way)?,
            Some(("values", n)) => settings.tuning.values = Some(n.parse()?),
            Some(("columns", n)) => settings.tuning.columns = Some(n.parse()?),
            Some(("whole", n)) => settings.tuning.whole = Some(n == "1"),
            Some(("options", text)) => {
                let tuning = std::mem::take(&mut settings.tuning);
                // SAFETY: the usage tells the user that the compiler takes these options unchecked.
                settings.tuning = unsafe { tuning.with_options(text) };
            }
            Some(("inverse", n)) => {
                settings.direction = match n {
                    "1" => Direction::Inverse,
                    _ => Direction::Forward,
                };
            }
            Some(("reference", n)) => settings.reference = n == "1",
            Some(("logs", n)) => settings.logs = n == "1",
            Some(("pairs", n)) => settings.pairs = n.parse::<usize>()?.max(1),
            Some((name, _)) => return Err(format!("there is no setting {name}").into()),
            None if argument == "rule" => {
                settings.way = None;
                settings.tuning = Tuning::default();
            }
            None => {
                let (len, batch) = argument.split_once('x').ok_or("a size is LENxBATCH")?;
                self.measure(len.parse()?, batch.parse()?)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn plan(&self, len: usize, batch: usize) -> clmgr_fft::Result<Plan> {
        let (context, programs) = (&self.context, &self.programs);
        let plan = Plan::builder(len).batch(batch).tuning(self.settings.tuning.clone());
        match self.settings.way {
            Some(way) => plan.way(way).build(context, programs),
            None => plan.build(context, programs),
        }
    }

    fn measure(&self, len: usize, batch: usize) -> Result<(), Failure> {
        let size = format!("{len} x {batch}");
        let begin = Instant::now();
        let direction = self.settings.direction;
        let plan = match self.plan(len, batch) {
            Ok(plan) => plan,
            Err(error) => {
                println!("{size:>18} {error}");
                return Ok(());
            }
        };
        plan.prepare(direction)?;
        let compile = begin.elapsed().as_secs_f64();
        if self.settings.logs {
            for log in plan.build_logs(direction)? {
                println!("{}", log.trim());
            }
        }

        let all = len * batch;
        let buffers = |_| RegularBuffer::<C32>::new(&self.context, all);
        let pairs = self.settings.pairs;
        let x = (0..pairs).map(buffers).collect::<clmgr::Result<Vec<_>>>()?;
        let y = (0..pairs).map(buffers).collect::<clmgr::Result<Vec<_>>>()?;

        let error = self.check(&plan, &x[0], &y[0])?;
        let allowed = LIMIT * (len as f64).log2().max(1.0);
        if error > allowed {
            return Err(format!("{size}: error {error:e}, allowed {allowed:e}").into());
        }

        let bytes = plan.bytes_moved() as f64;
        let copy = self.own.kernel("copy")?;
        let copied = self.speed(bytes, &x, |pair| {
            let range = NdRange::d1(all / 2);
            let args = [x[pair].arg(), y[pair].arg()];
            // SAFETY: both buffers hold the elements of the range, and nothing else uses them.
            unsafe { copy.launch(&self.queue, range, &args) }.map(drop)
        })?;
        let transform = |from: Arg<'_>, to: Arg<'_>| {
            // SAFETY: both buffers hold the plan's data, and nothing else uses them.
            unsafe { plan.enqueue(&self.queue, direction, from, to) }
        };
        let in_place = self.speed(bytes, &x, |pair| transform(x[pair].arg(), x[pair].arg()))?;
        let apart = self.speed(bytes, &x, |pair| transform(x[pair].arg(), y[pair].arg()))?;
        let reference = match self.settings.reference {
            true => format!("{:.1}", rustfft_speed(len)),
            false => "-".to_owned(),
        };
        let passes = plan.passes();
        let of = |speed: f64, passes: usize| 100.0 * speed * passes as f64 / copied;
        println!(
            "{size:>18} {:>20} {passes:>6} {compile:>9.2} {copied:>8.0} {in_place:>8.0} {:>7.0}% {apart:>8.0} {:>7.0}% {:>7.0}% {reference:>8} {error:>8.1e}",
            plan.way().to_string(),
            of(in_place, passes),
            of(apart, passes),
            of(in_place.min(apart), 2),
        );
        Ok(())
    }

    fn fill(&self, x: &RegularBuffer<C32>) -> clmgr::Result<()> {
        let noise = self.own.kernel("noise")?;
        // SAFETY: the buffer has an element for each work-item, and nothing else uses it.
        unsafe { noise.launch(&self.queue, NdRange::d1(x.len()), &[x.arg()]) }.map(drop)
    }

    /// The largest error of the first and the last row, as a part of the row's largest value.
    fn check(&self, plan: &Plan, x: &RegularBuffer<C32>, y: &RegularBuffer<C32>) -> clmgr::Result<f64> {
        self.fill(x)?;
        // SAFETY: both buffers hold the plan's data, and nothing else uses them.
        unsafe { plan.enqueue(&self.queue, self.settings.direction, x.arg(), y.arg()) }?;
        let mut planner = rustfft::FftPlannerScalar::<f64>::new();
        let fft = match self.settings.direction {
            Direction::Forward => planner.plan_fft_forward(plan.len()),
            Direction::Inverse => planner.plan_fft_inverse(plan.len()),
        };
        let mut worst = 0.0f64;
        let mut row = vec![C32::default(); plan.len()];
        for begin in [0, (plan.batch() - 1) * plan.len()] {
            x.read_at(&self.queue, begin, &mut row)?;
            let wide = |z: &C32| Complex::new(f64::from(z.re), f64::from(z.im));
            let mut exact: Vec<_> = row.iter().map(wide).collect();
            fft.process(&mut exact);
            y.read_at(&self.queue, begin, &mut row)?;
            let largest = exact.iter().map(|z| z.norm()).fold(0.0, f64::max);
            let off = exact.iter().zip(&row).map(|(e, z)| (e - wide(z)).norm());
            worst = worst.max(off.fold(0.0, f64::max) / largest);
        }
        Ok(worst)
    }

    /// The median over samples of a few runs for each pair, whose data begins as noise: transforms in
    /// place let it grow.
    fn speed(
        &self,
        bytes: f64,
        x: &[RegularBuffer<C32>],
        mut work: impl FnMut(usize) -> clmgr::Result<()>,
    ) -> clmgr::Result<f64> {
        // So many that the wait at the end does not count, on a GPU of terabytes a second.
        let rounds = if x.len() > 1 { 4 } else { 1 };
        let mut times = Vec::new();
        for _ in 0..=SAMPLES {
            for buffer in x {
                self.fill(buffer)?;
            }
            self.queue.finish()?;
            let begin = Instant::now();
            for _ in 0..rounds {
                for pair in 0..x.len() {
                    work(pair)?;
                }
            }
            self.queue.finish()?;
            times.push(begin.elapsed().as_secs_f64() / (rounds * x.len()) as f64);
        }
        // The first one warms up.
        times.remove(0);
        times.sort_by(f64::total_cmp);
        Ok(bytes / times[times.len() / 2] / 1e9)
    }
}

fn rustfft_speed(len: usize) -> f64 {
    let rows = (REFERENCE / len).max(1);
    let mut data = vec![C32::new(1.0, -1.0); rows * len];
    let fft = rustfft::FftPlanner::new().plan_fft_forward(len);
    let mut scratch = vec![C32::default(); fft.get_inplace_scratch_len()];
    let mut times: Vec<f64> = (0..3)
        .map(|_| {
            let begin = Instant::now();
            fft.process_with_scratch(&mut data, &mut scratch);
            begin.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (2 * size_of_val(&data[..])) as f64 / times[1] / 1e9
}

fn parse_way(text: &str) -> Result<Option<Way>, Failure> {
    let matrix = |text: &str| -> Result<(usize, usize), Failure> {
        let (height, width) = text.split_once('x').ok_or("a matrix is HEIGHTxWIDTH")?;
        Ok((height.parse()?, width.parse()?))
    };
    Ok(Some(match text.split_once(':') {
        Some(("split", shape)) => {
            let (height, width) = matrix(shape)?;
            Way::Split { height, width }
        }
        Some(("stages", shape)) => {
            let (height, width) = matrix(shape)?;
            Way::Stages { height, width }
        }
        _ => match text {
            "auto" => return Ok(None),
            "rows" => Way::Rows,
            "columns" => Way::Columns,
            "local" => Way::Local,
            "registers" => Way::Registers,
            "passes" => Way::Passes,
            _ => return Err(format!("there is no way {text}").into()),
        },
    }))
}
