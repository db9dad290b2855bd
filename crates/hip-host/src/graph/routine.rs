//! A call of rocBLAS, rocSOLVER or RCCL, or an OpenCL kernel, that can run again.

use std::sync::{Arc, Weak};

use hip_sys::hipError_t;

use crate::error::Result;
use crate::log;
use crate::memory::registry::{self, Allocation};
use crate::work::{Task, Work};

/// Makes the work of one run, when that is queued.
pub(crate) type Begin = Arc<dyn Fn() -> Work + Send + Sync>;

/// The call with its arguments as they were, checked; memory that has gone since is found before it runs.
#[derive(Clone)]
pub(crate) struct Routine {
    call: &'static str,
    begin: Begin,
    /// First address, and what was there.
    touches: Arc<[(usize, Weak<Allocation>)]>,
}

impl Routine {
    pub(crate) fn new(call: &'static str, task: Task, touched: Vec<Arc<Allocation>>) -> Self {
        let begin = move || -> Work {
            let task = task.clone();
            Box::new(move || task())
        };
        Self::beginning(call, Arc::new(begin), touched)
    }

    pub(crate) fn beginning(call: &'static str, begin: Begin, touched: Vec<Arc<Allocation>>) -> Self {
        let touched = touched.iter();
        Self {
            call,
            begin,
            touches: touched.map(|memory| (memory.base, Arc::downgrade(memory))).collect(),
        }
    }

    /// Its memory, held.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` if some of the memory was freed.
    pub(super) fn hold(&self) -> Result<Vec<Arc<Allocation>>> {
        let held: Option<Vec<Arc<Allocation>>> = self
            .touches
            .iter()
            .map(|(base, memory)| {
                let memory = memory.upgrade()?;
                // What was freed may still be held by work that is under way.
                let there = registry::find(*base)?;
                Arc::ptr_eq(&there, &memory).then_some(memory)
            })
            .collect();
        held.ok_or_else(|| {
            log::refused(self.call, format_args!("some of its memory was freed"));
            hipError_t::hipErrorInvalidValue
        })
    }

    /// The work of one run, which holds its memory.
    ///
    /// # Errors
    /// As [`hold`](Self::hold).
    pub(super) fn work(&self) -> Result<Work> {
        let held = self.hold()?;
        let work = (self.begin)();
        Ok(Box::new(move || {
            let _held = &held;
            work()
        }))
    }
}
