//! Hardware queues, which streams share.
//!
//! ROCm maps the streams of one priority, the null stream among them, to at most `GPU_MAX_HW_QUEUES` queues (4 if
//! unset) and gives a new stream the queue with the fewest (rocclr/device/rocm/rocdevice.cpp, `acquireQueue`). A queue
//! runs its commands in the order of their submission: one that waits stops the other streams of its queue. The model
//! has a queue for each stream unless `GPU_MAX_HW_QUEUES` is set, and four at `HIP_HOST_STRICT=2`.

use std::ffi::c_int;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::{Mark, Stream};
use crate::{log, strict};

/// A device and a priority.
type Of = (usize, c_int);

/// A queue goes with its last stream.
static QUEUES: Mutex<Vec<(Of, Weak<Queue>)>> = Mutex::new(Vec::new());

/// One hardware queue.
#[derive(Default)]
pub(super) struct Queue {
    last: Mutex<Option<Last>>,
}

/// The command that was submitted last. It does not keep its stream, which keeps the queue.
struct Last {
    stream: Weak<Stream>,
    sequence: u64,
}

/// How many queues a priority has; `None` if each stream has its own.
fn limit() -> Option<usize> {
    static LIMIT: OnceLock<Option<usize>> = OnceLock::new();
    *LIMIT.get_or_init(|| match std::env::var("GPU_MAX_HW_QUEUES") {
        Ok(text) => match text.parse() {
            Ok(limit @ 1..) => Some(limit),
            _ => {
                log::warn(&format!(
                    "GPU_MAX_HW_QUEUES=`{text}` is not a count: each stream gets a queue of its own"
                ));
                None
            }
        },
        Err(_) => strict::is_on().then_some(4),
    })
}

impl Queue {
    /// The queue of a new stream.
    pub(super) fn acquire(device: usize, priority: c_int) -> Option<Arc<Self>> {
        limit().map(|limit| Self::among(limit, (device, priority)))
    }

    fn among(limit: usize, of: Of) -> Arc<Self> {
        let mut queues = QUEUES.lock();
        queues.retain(|(_, queue)| queue.strong_count() > 0);
        let own = || queues.iter().filter(|(key, _)| *key == of);
        if own().count() >= limit
            && let Some(fewest) = own()
                .min_by_key(|(_, queue)| queue.strong_count())
                .and_then(|(_, queue)| queue.upgrade())
        {
            return fewest;
        }
        let queue = Arc::new(Self::default());
        queues.push((of, Arc::downgrade(&queue)));
        queue
    }

    /// Held while a command is submitted.
    pub(super) fn turn(&self) -> Turn<'_> {
        Turn(self.last.lock())
    }
}

pub(super) struct Turn<'a>(MutexGuard<'a, Option<Last>>);

impl Turn<'_> {
    /// What a command of `stream` runs behind: the last one, unless its own order has it behind that.
    pub(super) fn behind(&self, stream: &Arc<Stream>) -> Option<Mark> {
        let last = self.0.as_ref()?;
        let owner = last.stream.upgrade()?;
        (!Arc::ptr_eq(&owner, stream)).then(|| Mark {
            stream: owner,
            sequence: last.sequence,
        })
    }

    /// The command is submitted.
    pub(super) fn end(mut self, mark: &Mark) {
        *self.0 = Some(Last {
            stream: Arc::downgrade(&mark.stream),
            sequence: mark.sequence,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifth_stream_of_a_priority_gets_the_queue_with_the_fewest() {
        let of = |priority| Queue::among(4, (usize::MAX, priority));
        let mut four = [(); 4].map(|()| of(0));
        for (number, queue) in four.iter().enumerate() {
            assert!(four[..number].iter().all(|other| !Arc::ptr_eq(queue, other)));
        }
        let second = four[1].clone();
        let _others = [&four[0], &four[2]].map(Arc::clone);
        assert!(Arc::ptr_eq(&of(0), &four[3]));
        let urgent = of(-1);
        assert!(four.iter().all(|queue| !Arc::ptr_eq(queue, &urgent)));
        // The queue of a destroyed stream is free again.
        drop(second);
        four[1] = of(0);
        assert_eq!(Arc::strong_count(&four[1]), 1);
    }
}
