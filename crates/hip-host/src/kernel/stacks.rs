//! Stacks for the coroutines of a block.
//!
//! Each stack with its guard page is two of the mappings a process may have (65,530 unless an administrator says
//! otherwise), so on a machine with many processors there must be fewer of them than blocks want at once: a taker that
//! finds too few waits until a block elsewhere is done.

use corosensei::stack::DefaultStack;
use hip_sys::hipError_t;
use parking_lot::{Condvar, Mutex};

use crate::device::MAX_THREADS_PER_BLOCK;
use crate::error::Result;

/// Room for one GPU thread's locals and calls, `printf` included; touched pages only are real.
const STACK_BYTES: usize = 256 << 10;
/// Stacks of the whole process.
pub(super) const LIMIT: usize = 12 * MAX_THREADS_PER_BLOCK as usize;

struct Store {
    free: Vec<DefaultStack>,
    made: usize,
}

static STORE: Mutex<Store> = Mutex::new(Store {
    free: Vec::new(),
    made: 0,
});
static RETURNED: Condvar = Condvar::new();

/// Stacks on loan; dropping this returns them.
pub(super) struct Stacks(Vec<DefaultStack>);

impl Stacks {
    /// Takes `count` stacks, all at once, so no two takers can hold what the other waits for.
    ///
    /// # Errors
    /// `hipErrorLaunchOutOfResources` if the system has no memory for them.
    pub(super) fn take(count: usize) -> Result<Self> {
        debug_assert!(count <= LIMIT);
        let mut store = STORE.lock();
        while store.free.len() + (LIMIT - store.made) < count {
            RETURNED.wait(&mut store);
        }
        let kept = store.free.len().saturating_sub(count);
        let mut taken = Self(store.free.split_off(kept));
        let missing = count - taken.0.len();
        store.made += missing;
        drop(store);
        for made in 0..missing {
            match DefaultStack::new(STACK_BYTES) {
                Ok(stack) => taken.0.push(stack),
                Err(_) => {
                    STORE.lock().made -= missing - made;
                    return Err(hipError_t::hipErrorLaunchOutOfResources);
                }
            }
        }
        Ok(taken)
    }

    pub(super) fn pop(&mut self) -> Option<DefaultStack> {
        self.0.pop()
    }

    pub(super) fn put_back(&mut self, stack: DefaultStack) {
        self.0.push(stack);
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        STORE.lock().free.append(&mut self.0);
        RETURNED.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takers_beyond_the_limit_wait_and_all_are_served() {
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let stacks = Stacks::take(MAX_THREADS_PER_BLOCK as usize).unwrap();
                        assert_eq!(stacks.0.len(), MAX_THREADS_PER_BLOCK as usize);
                    }
                });
            }
        });
        assert!(STORE.lock().made <= LIMIT);
    }
}
