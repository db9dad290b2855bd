//! What the examples with two processes share: one step of work in each API, and the second process.

#![allow(dead_code, reason = "each example uses a part")]

use std::error::Error;
use std::process::{Child, Command, Stdio};

use interop::{Bridge, Joint, Link, PeerError};

/// Words; a multiple of a block.
pub const LEN: usize = 1 << 16;
pub const ROUNDS: u32 = 10;

type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;

/// Kernels of both APIs on one bridge.
pub struct Job {
    add: clmgr::Kernel,
    times: hip::Function,
    queue: clmgr::Queue,
    stream: hip::Stream,
}

impl Job {
    pub fn new(bridge: &Bridge) -> Result<Self> {
        let program = bridge.programs().get(include_str!("../../kernels/counter.cl"), "")?;
        let module = hip::rtc::Program::new(include_str!("../../kernels/counter.hip"))
            .name("counter.hip")
            .compile(bridge.hip_device())?;
        Ok(Self {
            add: program.kernel("add")?,
            times: module.function("times")?,
            queue: bridge.queue()?,
            stream: bridge.stream()?,
        })
    }

    /// OpenCL adds `k` to every word, then HIP multiplies each by 3.
    pub fn step(&self, memory: &mut Joint<u32>, k: u32) -> Result {
        let guard = memory.cl_mut(&self.queue)?;
        let args = [guard.arg(), clmgr::Arg::scalar(&k)];
        // SAFETY: `add` takes a buffer and a uint and touches one word per work-item.
        unsafe { self.add.launch(&self.queue, clmgr::NdRange::d1(LEN), &args) }?;
        drop(guard);
        let mut guard = memory.hip_mut(&self.stream)?;
        let config = hip::LaunchConfig::linear(LEN, 256)?;
        // SAFETY: `times` takes a pointer and a uint; LEN is a multiple of the block, so that the
        // grid has exactly as many threads as there are words.
        unsafe { self.times.launch(&self.stream, config, &[&guard.slice_mut(), &3_u32]) }?;
        Ok(())
    }
}

/// What [`Job::step`] makes of a word.
pub fn stepped(word: u32, k: u32) -> u32 {
    word.wrapping_add(k).wrapping_mul(3)
}

/// What the second process adds: not what the first one does.
pub const SECOND_ADDS: u32 = 1000;

/// Whether this is the second process.
pub fn is_second() -> bool {
    std::env::args().nth(1).is_some_and(|role| role == "second")
}

/// Starts this program again, with the other end of a link as its standard input.
pub fn start_second() -> Result<(Child, Link)> {
    let (link, theirs) = Link::pair()?;
    let child = Command::new(std::env::current_exe()?)
        .arg("second")
        .stdin(Stdio::from(theirs))
        .spawn()?;
    Ok((child, link))
}

/// The second process: its turns, until the first one ends.
pub fn second(bridge: &Bridge) -> Result {
    let job = Job::new(bridge)?;
    // SAFETY: nothing else here uses standard input, and the first process is this program.
    let mut memory = unsafe { bridge.import::<u32>(Link::from_stdin()?) }?;
    println!(
        "  process {}: {} of process {}, by {}, on route {}",
        std::process::id(),
        memory.residency(),
        memory.peer().unwrap_or_default(),
        memory.carrier(),
        memory.route(),
    );
    loop {
        match memory.take() {
            Ok(()) => {}
            Err(interop::Error::Peer(PeerError::Gone { .. })) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        job.step(&mut memory, SECOND_ADDS)?;
        memory.pass()?;
    }
}

/// The first process: turns against the second one, and every word against the same in plain Rust.
pub fn first(bridge: &Bridge, memory: &mut Joint<u32>) -> Result {
    let job = Job::new(bridge)?;
    let mut expected: Vec<u32> = (0..LEN as u32).collect();
    memory.upload(&expected)?;
    let before = bridge.meter().snapshot();
    for round in 0..ROUNDS {
        job.step(memory, round)?;
        memory.pass()?;
        memory.take()?;
        for word in &mut expected {
            *word = stepped(stepped(*word, round), SECOND_ADDS);
        }
    }
    let copied = bridge.meter().snapshot().since(&before).data_set;
    let mut words = vec![0; LEN];
    memory.download(&mut words)?;
    if words != expected || copied != 0 {
        return Err(format!("wrong words, or {copied} bytes copied").into());
    }
    Ok(())
}
