//! Opaque handles: tokens that are never reused and never addresses.
//!
//! A destroyed or invented handle is therefore always recognised, and dereferencing one faults at once: the tokens are
//! not canonical addresses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;

static NEXT: AtomicUsize = AtomicUsize::new(1);

/// All living handles of one kind.
pub(crate) struct Handles<T>(LazyLock<RwLock<HashMap<usize, Arc<T>>>>);

/// A token that no other handle has had or will have.
pub(crate) fn fresh() -> usize {
    0x4800_0000_0000_0000 | (NEXT.fetch_add(1, Ordering::Relaxed) << 4)
}

impl<T> Handles<T> {
    pub(crate) const fn new() -> Self {
        Self(LazyLock::new(|| RwLock::new(HashMap::new())))
    }

    pub(crate) fn insert(&self, value: Arc<T>) -> usize {
        let token = fresh();
        self.insert_as(token, value);
        token
    }

    pub(crate) fn insert_as(&self, token: usize, value: Arc<T>) {
        self.0.write().insert(token, value);
    }

    pub(crate) fn get(&self, token: usize) -> Option<Arc<T>> {
        self.0.read().get(&token).cloned()
    }

    pub(crate) fn remove(&self, token: usize) -> Option<Arc<T>> {
        self.0.write().remove(&token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_token_is_never_valid_again() {
        static TABLE: Handles<u32> = Handles::new();
        let first = TABLE.insert(Arc::new(1));
        assert!(TABLE.remove(first).is_some());
        let second = TABLE.insert(Arc::new(2));
        assert_ne!(first, second);
        assert!(TABLE.get(first).is_none() && TABLE.remove(first).is_none());
        assert_eq!(*TABLE.get(second).unwrap(), 2);
    }
}
