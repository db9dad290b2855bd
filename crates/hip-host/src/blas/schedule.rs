//! How a computation is spread over the model's compute units.
//!
//! Parallelism is ours, never the matrix library's: independent pieces of the result go to the pool
//! and each piece is computed by one thread. What a piece is does not depend on how many threads
//! there are, so results are the same bits on every machine with the same instruction set.

use crate::launch::pool;

/// Below this many floating point operations a hand-over to the pool costs more than it brings.
const WORTH_SHARING: usize = 1 << 19;

/// Chunks per thread: enough to even out a core that is slowed down, few enough for their cost not
/// to show.
const CHUNKS_PER_THREAD: usize = 8;

/// Calls `work` once for every index below `count`, on as many threads as the total of `flops`
/// deserves.
pub(crate) fn for_each(count: usize, flops: usize, work: impl Fn(usize) + Sync) {
    if count <= 1 || flops < WORTH_SHARING {
        (0..count).for_each(work);
        return;
    }
    let grain = count.div_ceil(CHUNKS_PER_THREAD * pool::width());
    pool::for_each(count as u64, grain as u64, &|range| {
        for index in range {
            work(index as usize);
        }
    });
}
