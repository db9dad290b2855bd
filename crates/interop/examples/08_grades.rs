//! The ways to hand a buffer over, and what each does when one side never ends.
//!
//! `cargo run -p hipcl-interop --example 08_grades`

use std::error::Error;
use std::time::{Duration, Instant};

use interop::{Bridge, Grade, Options, Shared};

const LEN: usize = 1 << 16;
const ROUNDS: u32 = 50;

struct Job {
    add: clmgr::Kernel,
    times: hip::Function,
    queue: clmgr::Queue,
    stream: hip::Stream,
}

impl Job {
    fn new(bridge: &Bridge) -> Result<Self, Box<dyn Error>> {
        let program = bridge.programs().get(include_str!("../kernels/counter.cl"), "")?;
        let module = hip::rtc::Program::new(include_str!("../kernels/counter.hip"))
            .name("counter.hip")
            .compile(bridge.hip_device())?;
        Ok(Self {
            add: program.kernel("add")?,
            times: module.function("times")?,
            queue: bridge.queue()?,
            stream: bridge.stream()?,
        })
    }

    fn add(&self, shared: &mut Shared<u32>, k: u32) -> interop::Result<()> {
        let guard = shared.cl_mut(&self.queue)?;
        let args = [guard.arg(), clmgr::Arg::scalar(&k)];
        // SAFETY: `add` takes a buffer and a uint and touches one word per work-item.
        unsafe { self.add.launch(&self.queue, clmgr::NdRange::d1(LEN), &args) }?;
        Ok(())
    }

    fn times(&self, shared: &mut Shared<u32>, k: u32) -> interop::Result<()> {
        let mut guard = shared.hip_mut(&self.stream)?;
        let config = hip::LaunchConfig::linear(LEN, 256)?;
        // SAFETY: `times` takes a pointer and a uint; LEN is a multiple of the block, so that the
        // grid has exactly as many threads as there are words.
        unsafe { self.times.launch(&self.stream, config, &[&guard.slice_mut(), &k]) }?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let selection = platform::select()?;
    let bridge = Bridge::open(&selection, &Options::default())?;
    println!("{} on {}", bridge.route(), bridge.report().hip_device);
    let job = Job::new(&bridge)?;
    for report in bridge.grades() {
        match &report.outcome {
            Ok(how) => println!("{}: {how}", report.grade),
            Err(reason) => {
                println!("{}: not possible here: {reason}", report.grade);
                continue;
            }
        }
        hand_over_and_back(&bridge.with_grade(report.grade)?, &job)?;
    }
    let short = Options {
        handoff_limit: Some(Duration::from_secs(1)),
        ..Options::default()
    };
    let bridge = Bridge::open(&selection, &short)?;
    let job = Job::new(&bridge)?;
    for report in bridge.grades().iter().filter(|report| report.works()) {
        never_end(&bridge.with_grade(report.grade)?, &job)?;
    }
    Ok(())
}

/// The calling thread queues all rounds. With the host's grade that takes as long as the work.
fn hand_over_and_back(bridge: &Bridge, job: &Job) -> Result<(), Box<dyn Error>> {
    let mut shared = bridge.alloc::<u32>(LEN)?;
    shared.upload(&vec![1; LEN])?;
    let mut expected = 1_u32;
    let begin = Instant::now();
    for round in 0..ROUNDS {
        job.add(&mut shared, round)?;
        job.times(&mut shared, 3)?;
        expected = expected.wrapping_add(round).wrapping_mul(3);
    }
    let queued = begin.elapsed();
    let mut words = vec![0; LEN];
    shared.download(&mut words)?;
    let done = begin.elapsed();
    if let Some(wrong) = words.iter().find(|word| **word != expected) {
        return Err(format!("{} left {wrong}, not {expected}", bridge.grade()).into());
    }
    println!(
        "  {} changes of side are right; queued after {:.2} ms, done after {:.2} ms",
        2 * ROUNDS,
        queued.as_secs_f64() * 1e3,
        done.as_secs_f64() * 1e3,
    );
    Ok(())
}

/// The OpenCL queue waits for an event that never completes. That costs an error, and nothing is
/// stuck.
fn never_end(bridge: &Bridge, job: &Job) -> Result<(), Box<dyn Error>> {
    let mut shared = bridge.alloc::<u32>(LEN)?;
    shared.upload(&vec![1; LEN])?;
    let never = clmgr::UserEvent::new(bridge.cl_context())?;
    job.queue.wait_for(never.event())?;
    job.add(&mut shared, 1)?;
    let error = match job.times(&mut shared, 3) {
        Err(error) if bridge.grade() == Grade::Host => error,
        Err(error) => return Err(error.into()),
        Ok(()) => {
            job.stream.synchronize()?;
            match job.times(&mut shared, 3) {
                Err(error) => error,
                Ok(()) => return Err("a queue that never ends went unnoticed".into()),
            }
        }
    };
    println!("{}, a side that never ends: {error}", bridge.grade());
    // Now it ends after all, and the buffer can be used again.
    never.complete()?;
    shared.upload(&vec![7; LEN])?;
    job.times(&mut shared, 2)?;
    let mut words = vec![0; LEN];
    shared.download(&mut words)?;
    match words.iter().all(|word| *word == 14) {
        true => Ok(()),
        false => Err("the buffer was not usable after the error".into()),
    }
}
