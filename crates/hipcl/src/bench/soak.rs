//! Memory over a long run: what the process and the device hold early, and at the end.
//!
//! An iteration takes a shared buffer to OpenCL and to HIP, with a kernel on each side; every so often a buffer is
//! freed and another allocated. Whatever grows with the iterations is a leak, of memory or of the descriptors and
//! threads also counted here.

use interop::{Bridge, Pipeline, Shared};

use super::line::{Better, Line};
use super::{Figures, Setup};
use crate::{Error, Result};

/// Small, so what is not freed shows before the device is full.
const ELEMENTS: usize = 16 << 10;
const SLOTS: usize = 32;
/// Iterations between two looks at the memory; also the early look, by when everything was used once.
const LOOKS: usize = 20;

/// A figure's name, its unit and where it is.
type Kind = (&'static str, &'static str, fn(&Resources) -> f64);

/// What is held at one moment.
#[derive(Clone, Copy, Debug)]
struct Resources {
    resident_kib: f64,
    device_kib: f64,
    descriptors: f64,
    threads: f64,
}

/// Iterations unless a number is asked for.
const ITERATIONS: u32 = 1_000_000;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let iterations = setup.options.iterations.unwrap_or(ITERATIONS) as usize;
    let bridge = &setup.bridge;
    let part = (iterations / LOOKS).max(SLOTS);
    let mut places = (0..SLOTS)
        .map(|_| Ok(bridge.alloc::<f32>(ELEMENTS)?))
        .collect::<Result<Vec<_>>>()?;
    let kernels = Kernels::new(bridge)?;
    let mut looks = Vec::with_capacity(LOOKS + 1);
    for _ in 0..=LOOKS {
        places = kernels.run(bridge, places, part)?;
        looks.push(Resources::now(bridge)?);
    }
    // The first part is warm-up: pools fill, caches load.
    let (first, rest) = (looks[0], &looks[1..]);
    let mut found = Figures::default();
    let kinds: [Kind; 4] = [
        ("resident memory of the process", "KiB", |held| held.resident_kib),
        ("device memory in use", "KiB", |held| held.device_kib),
        ("open descriptors", "", |held| held.descriptors),
        ("threads", "", |held| held.threads),
    ];
    for (name, unit, of) in kinds {
        let samples = rest.iter().map(of).collect();
        found
            .lines
            .push(Line::of(name, unit, Better::Lower, samples).against(of(&first), "after the first twentieth"));
        let last = looks.last().map_or(0.0, of);
        found.notes.push(format!(
            "{name}: {:+} {unit} from the first twentieth to the end, {:+.4} per iteration",
            last - of(&first),
            (last - of(&first)) / (part * LOOKS) as f64
        ));
    }
    found.notes.push(format!("{} iterations after warm-up", part * LOOKS));
    Ok(found)
}

/// One half of an iteration for each API. Compiled once: a compiler keeps memory of its own.
struct Kernels {
    queue: clmgr::Queue,
    stream: hip::Stream,
    opencl: clmgr::Kernel,
    hip: hip::Function,
}

impl Kernels {
    fn new(bridge: &Bridge) -> Result<Self> {
        Ok(Self {
            queue: bridge.queue()?,
            stream: bridge.stream()?,
            opencl: bridge
                .programs()
                .get(include_str!("../../kernels/bench.cl"), "")?
                .kernel("bench_stage")?,
            hip: hip::rtc::Program::new(include_str!("../../kernels/bench.hip"))
                .name("bench.hip")
                .compile(bridge.hip_device())?
                .function("bench_stage")?,
        })
    }

    fn run(&self, bridge: &Bridge, places: Vec<Shared<f32>>, iterations: usize) -> Result<Vec<Shared<f32>>> {
        let Self {
            queue,
            stream,
            opencl,
            hip,
        } = self;
        let vectors = ELEMENTS / 4;
        let mut pipeline = Pipeline::new(places)
            .batched_stage(
                "opencl",
                SLOTS / 2,
                |place: &mut Shared<f32>, _| {
                    let guard = place.cl_mut(queue)?;
                    // SAFETY: the kernel takes one buffer of as many float4 as there are work-items.
                    unsafe { opencl.launch(queue, clmgr::NdRange::d1(vectors), &[guard.arg()]) }?;
                    Ok::<_, Error>(())
                },
                |_, _| Ok(queue.finish()?),
            )
            .batched_stage(
                "hip",
                SLOTS / 2,
                |place, _| {
                    let mut guard = place.hip_mut(stream)?;
                    let config = hip::LaunchConfig::linear(vectors, 256)?;
                    let count = vectors as u64;
                    // SAFETY: the kernel takes a pointer and a 64-bit count and stays below the count.
                    unsafe { hip.launch(stream, config, &[&guard.slice_mut(), &count]) }?;
                    Ok(())
                },
                |_, _| Ok(stream.synchronize()?),
            );
        let mut failure = None;
        pipeline.run(
            &mut (0..iterations),
            |place, number| {
                if number % 1000 == 0 {
                    *place = bridge.alloc(ELEMENTS)?;
                }
                Ok(())
            },
            |_| Ok(()),
            |_, outcome| failure = failure.take().or(outcome.err()),
        )?;
        match failure {
            Some(failure) => Err(Error::input(format!("the work of the measurement failed: {failure}"))),
            None => Ok(pipeline.into_slots()),
        }
    }
}

impl Resources {
    fn now(bridge: &Bridge) -> Result<Self> {
        let memory = bridge.hip_device().memory_info()?;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
        };
        let descriptors = std::fs::read_dir("/proc/self/fd").map_or(f64::NAN, |all| all.count() as f64);
        Ok(Self {
            resident_kib: number("VmRSS:"),
            device_kib: (memory.total - memory.free) as f64 / 1024.0,
            descriptors,
            threads: number("Threads:"),
        })
    }
}
