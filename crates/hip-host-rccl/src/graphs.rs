//! The graphs that have calls of a communicator.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::limit::time_limit;
use crate::status::{Failure, Outcome};

/// How many recorded calls there are.
#[derive(Default)]
pub(crate) struct Graphs {
    calls: Mutex<usize>,
    gone: Condvar,
}

impl Graphs {
    pub(crate) fn add(&self) {
        *self.calls.lock() += 1;
    }

    pub(crate) fn remove(&self) {
        *self.calls.lock() -= 1;
        self.gone.notify_all();
    }

    /// Waits until there are none, as the real library does before it frees a communicator; it waits for ever.
    pub(crate) fn wait_gone(&self, name: &str) -> Outcome {
        let deadline = Instant::now().checked_add(time_limit());
        let mut calls = self.calls.lock();
        while *calls > 0 {
            let timed_out = match deadline {
                Some(deadline) => self.gone.wait_until(&mut calls, deadline).timed_out(),
                None => {
                    self.gone.wait(&mut calls);
                    false
                }
            };
            if timed_out && *calls > 0 {
                return Err(Failure::usage(format!(
                    "{name}: graphs still have {calls} calls of the communicator; destroy them first"
                )));
            }
        }
        Ok(())
    }
}
