use std::any::Any;
use std::sync::Arc;

/// So many are kept before the stream is asked whether it is idle.
const LEAST: usize = 64;

/// What a stream's queued work uses, each once.
pub(super) struct Kept {
    used: Vec<Arc<dyn Any + Send + Sync>>,
    /// When to ask whether the stream is idle.
    due: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            used: Vec::new(),
            due: LEAST,
        }
    }
}

impl Kept {
    pub(super) fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    pub(super) fn keep<T: Any + Send + Sync>(&mut self, used: &Arc<T>) {
        let address = Arc::as_ptr(used).cast::<()>();
        if !self.used.iter().any(|other| Arc::as_ptr(other).cast::<()>() == address) {
            self.used.push(used.clone());
        }
    }

    /// Whether it is time to ask whether the stream is idle.
    pub(super) fn is_due(&self) -> bool {
        self.used.len() >= self.due
    }

    /// What was kept, if the work that uses it is done. If not, asks again when as much more is kept.
    pub(super) fn look(&mut self, is_idle: bool) -> Self {
        let done = if is_idle {
            std::mem::take(&mut self.used)
        } else {
            Vec::new()
        };
        self.due = LEAST.max(2 * self.used.len());
        Self { used: done, due: LEAST }
    }

    /// Takes back what may still be used.
    pub(super) fn append(&mut self, mut other: Self) {
        self.used.append(&mut other.used);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.used.len()
    }
}
