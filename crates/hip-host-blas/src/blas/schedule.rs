//! How a computation is spread over the model's compute units.
//!
//! Parallelism is ours, never the matrix library's: independent pieces of the result go to the pool
//! and each piece is computed by one thread. What a piece is does not depend on how many threads
//! there are, so results are the same bits on every machine with the same instruction set.

use std::ops::Range;
use std::sync::OnceLock;

use hip_host::library;

/// Below this many floating point operations a hand-off to the pool costs more than it gains.
const WORTH_SHARING: usize = 1 << 19;

/// Calls `work` once for every index below `count`, on as many threads as the total of `flops`
/// deserves.
pub(crate) fn for_each(count: usize, flops: usize, work: impl Fn(usize) + Sync) {
    if count <= 1 || flops < WORTH_SHARING {
        (0..count).for_each(work);
        return;
    }
    library::spread(count, work);
}

/// Elements of a vector that one thread works on at a time. A fixed number, for the reason above.
const PIECE: usize = 1 << 14;

/// Calls `work` for consecutive ranges that cover `0..len`, one call for each.
pub(crate) fn for_pieces(len: usize, work: impl Fn(Range<usize>) + Sync) {
    // Such work waits for memory: an element counts as several operations.
    for_each(len.div_ceil(PIECE), len.saturating_mul(8), |piece| {
        work(piece * PIECE..len.min((piece + 1) * PIECE));
    });
}

/// The sum of what `work` returns for consecutive ranges that cover `0..len`, added in their order.
pub(crate) fn sum_pieces<T: Copy + Send + Sync>(
    len: usize,
    zero: T,
    add: impl Fn(T, T) -> T,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> T {
    let partial: Vec<OnceLock<T>> = (0..len.div_ceil(PIECE)).map(|_| OnceLock::new()).collect();
    for_pieces(len, |range| {
        // Each range is worked on once, so the cell is empty.
        let _ = partial[range.start / PIECE].set(work(range));
    });
    let partial = partial.iter().filter_map(OnceLock::get);
    partial.fold(zero, |sum, piece| add(sum, *piece))
}
