//! A memory pool's hit beside what the driver takes for the same memory.
//!
//! `cargo run --release -p hipcl-clmgr --example pool_speed`. The figures are for one acquire or creation
//! and one release: the quickest of many rounds, in nanoseconds.

use std::time::Instant;

use clmgr::{BufferStrategy, Context, Manager, MemoryPool, Queue, RegularBuffer, SvmBuffer, SvmCapabilities};

const ROUNDS: usize = 200;
/// Held at once, as a job holds several buffers.
const HELD: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Manager::load()?.devices().remove(0);
    println!("{} ({})", device.name(), device.platform_name());
    let context = Context::new(&device)?;
    let queue = context.queue()?;
    println!(
        "{:>12} {:>12} {:>16} {:>12} {:>16}",
        "bytes", "pool", "clCreateBuffer", "svm pool", "clSVMAlloc"
    );
    for bytes in [4 << 10, 1 << 20, 64 << 20] {
        let regular = pooled(&context, &queue, BufferStrategy::Regular, bytes)?;
        let created = best(|| RegularBuffer::<u8>::new(&context, bytes))?;
        let svm = match device.svm().contains(SvmCapabilities::COARSE) {
            true => {
                let pooled = pooled(&context, &queue, BufferStrategy::SvmCoarse, bytes)?;
                let created = best(|| SvmBuffer::<u8>::coarse(&context, bytes))?;
                format!("{pooled:>12.0} {created:>16.0}")
            }
            false => String::new(),
        };
        println!("{bytes:>12} {regular:>12.0} {created:>16.0} {svm}");
    }
    Ok(())
}

fn pooled(context: &Context, queue: &Queue, strategy: BufferStrategy, bytes: usize) -> clmgr::Result<f64> {
    let pool = MemoryPool::new(context, strategy)?;
    let time = best(|| pool.acquire::<u8>(queue, bytes))?;
    assert_eq!(pool.stats().misses, HELD as u64, "only hits are timed");
    Ok(time)
}

/// The nanoseconds for one of these and its drop.
fn best<B>(mut make: impl FnMut() -> clmgr::Result<B>) -> clmgr::Result<f64> {
    let mut held = Vec::with_capacity(HELD);
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        for _ in 0..HELD {
            held.push(make()?);
        }
        held.clear();
        least = least.min(begin.elapsed().as_secs_f64());
    }
    Ok(least / HELD as f64 * 1e9)
}
