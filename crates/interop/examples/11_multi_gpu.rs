//! Blocks of data divided between all GPUs, each with OpenCL and HIP on its own memory; then gathered on the first.
//!
//! `cargo run -p hipcl-interop --example 11_multi_gpu`; on the host platform `HIP_HOST_DEVICES=2` gives two devices.

use std::error::Error;

use interop::{Bridge, Bridges, Options, Route, Shared};

/// Words of a block; a multiple of a group.
const LEN: usize = 1 << 18;
const BLOCKS: usize = 12;
const ADDED: u32 = 17;

type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;

/// What one GPU works with.
struct Worker {
    bridge: Bridge,
    add: clmgr::Kernel,
    times: hip::Function,
    queue: clmgr::Queue,
    stream: hip::Stream,
    blocks: Vec<(usize, Shared<u32>)>,
}

impl Worker {
    fn new(bridge: Bridge) -> Result<Self> {
        let program = bridge.programs().get(include_str!("../kernels/counter.cl"), "")?;
        let module = hip::rtc::Program::new(include_str!("../kernels/counter.hip"))
            .name("counter.hip")
            .compile(bridge.hip_device())?;
        Ok(Self {
            add: program.kernel("add")?,
            times: module.function("times")?,
            queue: bridge.queue()?,
            stream: bridge.stream()?,
            bridge,
            blocks: Vec::new(),
        })
    }

    /// One block through both APIs.
    fn work(&mut self, number: usize) -> Result {
        let mut block = self.bridge.alloc::<u32>(LEN)?;
        block.upload(&input(number))?;
        {
            let guard = block.cl_mut(&self.queue)?;
            let args = [guard.arg(), clmgr::Arg::scalar(&ADDED)];
            // SAFETY: `add` takes a buffer and a uint and touches one word per work-item.
            unsafe { self.add.launch(&self.queue, clmgr::NdRange::d1(LEN), &args) }?;
        }
        {
            let mut guard = block.hip_mut(&self.stream)?;
            let config = hip::LaunchConfig::linear(LEN, 256)?;
            // SAFETY: `times` takes a pointer and a uint; LEN is a multiple of the block, so that the
            // grid has exactly as many threads as there are words.
            unsafe { self.times.launch(&self.stream, config, &[&guard.slice_mut(), &3_u32]) }?;
        }
        self.blocks.push((number, block));
        Ok(())
    }
}

fn input(number: usize) -> Vec<u32> {
    (0..LEN as u32).map(|i| i.wrapping_mul(number as u32 + 1)).collect()
}

fn is_right(number: usize, words: &[u32]) -> bool {
    let expected = |word: u32| word.wrapping_add(ADDED).wrapping_mul(3);
    input(number)
        .into_iter()
        .zip(words)
        .all(|(word, &result)| expected(word) == result)
}

fn check(number: usize, block: &Shared<u32>) -> Result {
    let mut words = vec![0; LEN];
    block.download(&mut words)?;
    if is_right(number, &words) {
        return Ok(());
    }
    Err(format!("block {number} is wrong").into())
}

fn main() -> Result {
    let Bridges { bridges, refused } = Bridge::open_all(&platform::select()?, &Options::default())?;
    for (ordinal, error) in refused {
        println!("HIP device {ordinal} takes no part: {error}");
    }
    let mut workers = bridges.into_iter().map(Worker::new).collect::<Result<Vec<_>>>()?;
    let count = workers.len();
    if count == 1 {
        println!("one GPU: it does all blocks, and there is nothing to gather");
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .iter_mut()
            .enumerate()
            .map(|(first, worker)| {
                scope.spawn(move || {
                    (first..BLOCKS)
                        .step_by(count)
                        .try_for_each(|number| worker.work(number))
                        .map_err(|error| error.to_string())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a worker panicked".to_owned())?)
    })?;
    for worker in &workers {
        for (number, block) in &worker.blocks {
            check(*number, block)?;
        }
        println!(
            "GPU {}: {} blocks right, on route {}",
            worker.bridge.hip_device().ordinal(),
            worker.blocks.len(),
            worker.bridge.route()
        );
    }
    let Some((home, others)) = workers.split_first() else {
        return Err("a bridge at least".into());
    };
    for worker in others {
        let peer = match worker.bridge.peer(&home.bridge) {
            Ok(peer) => peer,
            Err(error) => {
                println!("not gathered: {error}");
                continue;
            }
        };
        println!("{}", peer.report());
        let mut gathered = 0;
        for (number, block) in &worker.blocks {
            let mut here = home.bridge.alloc_on::<u32>(landing(&home.bridge), LEN)?;
            peer.copy(block, &mut here, &home.stream)?;
            check(*number, &here)?;
            gathered += 1;
        }
        println!("{gathered} blocks gathered, every word right");
    }
    Ok(())
}

/// Memory that HIP's own copies take, where there is such.
fn landing(bridge: &Bridge) -> Route {
    match bridge.permitted() {
        routes if routes.contains(&Route::HipPointer) => Route::HipPointer,
        routes => routes[0],
    }
}
