//! The threads that stand for compute units.
//!
//! Work is an index range cut into chunks. The submitting thread takes chunks too, so work always gets done, even where
//! no other thread is free or could be started.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::{Condvar, Mutex};

/// The maximum number of threads at work, the submitting thread included.
pub(crate) fn width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

type Body = dyn Fn(Range<u64>) + Sync;

struct Job {
    /// Valid as long as a chunk is open: the submitting thread does not leave before all are done.
    body: *const Body,
    total: u64,
    grain: u64,
    /// The next chunk to begin. It counts chunks and not indices, which would wrap where `total` is close to 2^64.
    next: AtomicU64,
    failed: AtomicBool,
    /// Indices not yet done.
    open: Mutex<u64>,
    all_done: Condvar,
}

// SAFETY: `body` points to a `Sync` closure that outlives every use (see `for_each`); the rest is `Send + Sync` by
// itself.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    /// Does chunks until none is left to begin.
    fn work(&self) {
        loop {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk >= self.chunks() {
                return;
            }
            let start = chunk * self.grain;
            let end = start.saturating_add(self.grain).min(self.total);
            // SAFETY: this chunk is counted in `open`, so `for_each` has not returned and the closure is alive.
            let body = unsafe { &*self.body };
            if catch_unwind(AssertUnwindSafe(|| body(start..end))).is_err() {
                self.failed.store(true, Ordering::Relaxed);
            }
            let mut open = self.open.lock();
            *open -= end - start;
            if *open == 0 {
                self.all_done.notify_all();
            }
        }
    }

    fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.chunks()
    }

    fn chunks(&self) -> u64 {
        self.total.div_ceil(self.grain)
    }
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<VecDeque<Arc<Job>>>,
    arrived: Condvar,
}

fn queue() -> &'static Queue {
    static QUEUE: LazyLock<Queue> = LazyLock::new(|| {
        for _ in 1..width() {
            // A thread that cannot be started costs speed only.
            let _ = std::thread::Builder::new().name("hip-host unit".to_owned()).spawn(unit);
        }
        Queue::default()
    });
    &QUEUE
}

fn unit() {
    let queue = queue();
    loop {
        let job = {
            let mut jobs = queue.jobs.lock();
            loop {
                jobs.retain(|job| job.has_more());
                if let Some(job) = jobs.front() {
                    break job.clone();
                }
                queue.arrived.wait(&mut jobs);
            }
        };
        job.work();
    }
}

/// Runs `body` over `0..total` in chunks of `grain`, on several threads, and returns when all of it is done.
///
/// # Panics
/// If `body` does, after the other chunks are done.
pub(crate) fn for_each(total: u64, grain: u64, body: &(dyn Fn(Range<u64>) + Sync)) {
    let grain = grain.max(1);
    if total <= grain || width() == 1 {
        if total > 0 {
            body(0..total);
        }
        return;
    }
    // SAFETY: only the lifetime is changed. The pointer is followed for chunks that are open, and this function returns
    // after the last of them.
    let body = unsafe { std::mem::transmute::<*const (dyn Fn(Range<u64>) + Sync + '_), *const Body>(body) };
    let job = Arc::new(Job {
        body,
        total,
        grain,
        next: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        open: Mutex::new(total),
        all_done: Condvar::new(),
    });
    let queue = queue();
    queue.jobs.lock().push_back(job.clone());
    queue.arrived.notify_all();
    job.work();
    let mut open = job.open.lock();
    while *open > 0 {
        job.all_done.wait(&mut open);
    }
    drop(open);
    if job.failed.load(Ordering::Relaxed) {
        resume_unwind(Box::new("a chunk of parallel work failed"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_done_exactly_once() {
        for (total, grain) in [(0, 4), (1, 1), (7, 3), (1000, 1), (1000, 999), (1000, 5000)] {
            let seen: Vec<AtomicU64> = (0..total).map(|_| AtomicU64::new(0)).collect();
            for_each(total, grain, &|range| {
                for i in range {
                    seen[i as usize].fetch_add(1, Ordering::Relaxed);
                }
            });
            assert!(
                seen.iter().all(|count| count.load(Ordering::Relaxed) == 1),
                "{total} by {grain}"
            );
        }
    }

    #[test]
    fn chunks_tile_the_largest_range() {
        for grain in [u64::MAX / 5, (1 << 63) - 1, 1 << 63] {
            let chunks = Mutex::new(Vec::new());
            for_each(u64::MAX, grain, &|range| chunks.lock().push(range));
            let mut chunks = chunks.into_inner();
            chunks.sort_unstable_by_key(|range| range.start);
            let end = chunks
                .iter()
                .try_fold(0, |end, range| (range.start == end).then_some(range.end));
            assert_eq!(end, Some(u64::MAX), "grain {grain}: {chunks:?}");
        }
    }

    #[test]
    fn several_threads_may_bring_work_at_once() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let sum = AtomicU64::new(0);
                        for_each(64, 3, &|range| {
                            for i in range {
                                sum.fetch_add(i, Ordering::Relaxed);
                            }
                        });
                        assert_eq!(sum.into_inner(), 64 * 63 / 2);
                    }
                });
            }
        });
    }

    #[test]
    fn a_failing_chunk_is_reported_to_the_submitter() {
        let outcome = catch_unwind(|| for_each(100, 1, &|range| assert!(!range.contains(&50))));
        assert!(outcome.is_err());
    }
}
