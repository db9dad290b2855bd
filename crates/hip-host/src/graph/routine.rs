//! A rocBLAS or rocSOLVER call, or an OpenCL kernel, that can run again.

use std::sync::{Arc, Weak};

use hip_sys::hipError_t;

use crate::error::Result;
use crate::log;
use crate::memory::registry::{self, Allocation};
use crate::work::Task;

/// The call with its arguments as they were, checked; memory that has gone since is found before it runs.
#[derive(Clone)]
pub(crate) struct Routine {
    call: &'static str,
    task: Task,
    /// First address, and what was there.
    touches: Arc<[(usize, Weak<Allocation>)]>,
}

impl Routine {
    pub(crate) fn new(call: &'static str, task: Task, touched: Vec<Arc<Allocation>>) -> Self {
        let touched = touched.iter();
        Self {
            call,
            task,
            touches: touched.map(|memory| (memory.base, Arc::downgrade(memory))).collect(),
        }
    }

    /// The work, which holds its memory.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` if some of the memory was freed.
    pub(super) fn task(&self) -> Result<Task> {
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
        let Some(held) = held else {
            log::refused(self.call, format_args!("some of its memory was freed"));
            return Err(hipError_t::hipErrorInvalidValue);
        };
        let task = self.task.clone();
        Ok(Arc::new(move || {
            let _held = &held;
            task()
        }))
    }
}
