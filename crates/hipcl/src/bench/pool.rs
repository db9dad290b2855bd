//! Memory from a pool, against memory from the driver.

use clmgr::{BufferStrategy, MemoryPool, SvmBuffer};

use super::line::{Better, Line};
use super::{Figures, Setup, seconds};
use crate::Result;

const SIZES: [(&str, usize); 3] = [("4 KiB", 4 << 10), ("1 MiB", 1 << 20), ("64 MiB", 64 << 20)];
const SAMPLES: usize = 200;
/// Requests in one sample: one takes less than the clock's resolution.
const REQUESTS: usize = 16;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let bridge = &setup.bridge;
    let (context, queue) = (bridge.cl_context(), bridge.queue()?);
    let mut found = Figures::default();
    for (size, bytes) in SIZES {
        let pool = MemoryPool::new(context, BufferStrategy::SvmCoarse)?;
        let pooled = seconds(SAMPLES, || {
            for _ in 0..REQUESTS {
                drop(pool.acquire::<u8>(&queue, bytes)?);
            }
            Ok(())
        })?;
        let driver = seconds(SAMPLES / 10, || {
            drop(SvmBuffer::<u8>::coarse(context, bytes)?);
            Ok(())
        })?;
        let ns =
            |times: &[f64], each: usize| -> Vec<f64> { times.iter().map(|time| time * 1e9 / each as f64).collect() };
        let limit = Line::of("", "ns", Better::Lower, ns(&driver, 1)).value;
        found.lines.push(
            Line::of(
                format!("{size}, taken and given back"),
                "ns",
                Better::Lower,
                ns(&pooled, REQUESTS),
            )
            .against(limit, "clSVMAlloc and clSVMFree, which touch nothing"),
        );
    }
    Ok(found)
}
