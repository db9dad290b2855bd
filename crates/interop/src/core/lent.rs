//! Memory that this process has dropped while another one may still have it open by a handle.

use parking_lot::Mutex;

/// Memory that is lent to another process. Its drop frees the memory.
pub(crate) trait Lent: Send {
    /// Whether the other process has hung up, and has the memory open no more.
    fn is_back(&self) -> bool;
}

/// Each until the other process hangs up. They keep their bridge alive: if the other process never does, all of it
/// stays until this one ends.
#[derive(Default)]
pub(crate) struct LentMemory(Mutex<Vec<Box<dyn Lent>>>);

impl LentMemory {
    pub(crate) fn keep(&self, lent: Box<dyn Lent>) {
        self.0.lock().push(lent);
    }

    /// Frees what no process has open any more, and counts the rest.
    pub(crate) fn sweep(&self) -> usize {
        let mut kept = self.0.lock();
        let gone: Vec<_> = kept.extract_if(.., |lent| lent.is_back()).collect();
        let left = kept.len();
        // A destructor waits for drivers: not under the lock.
        drop(kept);
        drop(gone);
        left
    }
}
