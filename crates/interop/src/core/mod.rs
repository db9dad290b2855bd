//! What shared buffers, hand-offs and measurements need of their bridge: both APIs' objects, the counters, and the
//! failures that a caller takes later.

mod deferred;
mod hsa;
mod known;
mod lent;

use std::sync::OnceLock;

pub(crate) use deferred::Deferred;
pub(crate) use hsa::Hsa;
pub(crate) use known::Known;
pub(crate) use lent::{Lent, LentMemory};
use parking_lot::Mutex;
use platform::{ForeignHooks, Platform};

use crate::{Error, Failover, Meter, Result};

/// What shared buffers need of their bridge.
pub(crate) struct Core {
    pub(crate) platform: Platform,
    pub(crate) meter: Meter,
    pub(crate) hip: hip::Runtime,
    pub(crate) hip_device: hip::Device,
    pub(crate) context: clmgr::Context,
    /// Where objects that other code created are imported.
    pub(crate) external: clmgr::ExternalContexts,
    pub(crate) programs: clmgr::ProgramCache,
    /// For the bridge's own transfers: its own queue, or the foreign one.
    pub(crate) queue: clmgr::Queue,
    /// For the bridge's own transfers: its own stream, or the foreign one.
    pub(crate) stream: hip::Stream,
    pub(crate) hsa: Option<Hsa>,
    pub(crate) foreign: Option<ForeignHooks>,
    /// Whether memory is exported even by releases that are known to crash afterwards.
    pub(crate) force_dma_buf: bool,
    /// Whether a process has exported memory here and lived, once that was looked up.
    pub(crate) survives_exports: OnceLock<bool>,
    pub(crate) deferred: Mutex<Deferred>,
    pub(crate) failovers: Mutex<Vec<Failover>>,
    /// What other processes may still have open.
    pub(crate) kept: LentMemory,
}

/// A program that never takes what is kept for it must not grow without end.
const MOST: usize = 64;

impl Core {
    /// Keeps an error of a destructor until a caller takes it.
    pub(crate) fn defer(&self, error: Error) {
        self.deferred.lock().push(error);
    }

    /// Refuses a launch of the bridge's own while another owner captures its stream: the graph would keep the launch,
    /// and the launch memory that is gone by then.
    pub(crate) fn check_stream_runs(&self) -> Result<()> {
        match self.stream.is_capturing() {
            true => Err(Error::Capturing {
                stream: self.stream.raw().addr(),
            }),
            false => Ok(()),
        }
    }

    pub(crate) fn note_failover(&self, failover: Failover) {
        let mut failovers = self.failovers.lock();
        if failovers.len() < MOST {
            failovers.push(failover);
        }
    }
}
