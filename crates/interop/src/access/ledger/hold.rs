use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Kept by a reader's guard for as long as it lives. A writer needs none: no other user gets its bytes meanwhile.
#[must_use = "without it the guard counts as dropped"]
#[derive(Debug)]
pub(crate) struct Hold(Option<Arc<AtomicUsize>>);

impl Hold {
    pub(super) fn none() -> Self {
        Self(None)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(count) = &self.0 {
            // What was enqueued under the guard comes before.
            count.fetch_sub(1, Ordering::Release);
        }
    }
}

/// The holds of one record, counted. Records that were one, or that become one, share counters: this may count the
/// guards of other bytes too, which keeps a record longer.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds(Vec<Arc<AtomicUsize>>);

impl Holds {
    /// A further hold. All of one record share a counter, so that leaked guards do not accumulate.
    pub(super) fn add(&mut self) -> Hold {
        if self.0.is_empty() {
            self.0.push(Arc::default());
        }
        self.0[0].fetch_add(1, Ordering::Relaxed);
        Hold(Some(Arc::clone(&self.0[0])))
    }

    /// Counts the holds of another record as well.
    pub(super) fn join(&mut self, other: Self) {
        for count in other.0 {
            if is_alive(&count) && !self.0.iter().any(|known| Arc::ptr_eq(known, &count)) {
                self.0.push(count);
            }
        }
    }

    /// Whether one is alive.
    pub(super) fn any(&self) -> bool {
        self.0.iter().any(is_alive)
    }
}

fn is_alive(count: &Arc<AtomicUsize>) -> bool {
    count.load(Ordering::Acquire) > 0
}
