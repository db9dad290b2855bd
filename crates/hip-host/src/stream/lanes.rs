//! Helper streams: where the branches of a graph run beside the stream of its launch.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{FLAG_NON_BLOCKING, Kind, Stream};
use crate::device::{self, Device};
use crate::error::Result;

/// Those that no launch uses, by device.
static IDLE: Mutex<Vec<(usize, Arc<Stream>)>> = Mutex::new(Vec::new());

/// Helper streams on loan; they go back when this goes.
pub(crate) struct Lanes(Vec<Arc<Stream>>);

impl Lanes {
    pub(crate) fn borrow(device: &'static Device, count: usize) -> Self {
        let mut idle = IDLE.lock();
        let mut take = || {
            let found = idle.iter().position(|(of, _)| *of == device.ordinal);
            match found {
                Some(at) => idle.swap_remove(at).1,
                None => Stream::new(device, Kind::NonBlocking, FLAG_NON_BLOCKING, 0),
            }
        };
        Self((0..count).map(|_| take()).collect())
    }

    pub(crate) fn get(&self, lane: usize) -> &Arc<Stream> {
        &self.0[lane]
    }

    /// Ends the loan when all work in the lanes is done; the first error of any.
    pub(crate) fn give_back(self) -> Result {
        let errors = self.0.iter().map(|lane| lane.take_failure());
        errors.fold(Ok(()), Result::and)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        let lanes = std::mem::take(&mut self.0);
        let mut idle = IDLE.lock();
        idle.extend(lanes.into_iter().map(|lane| (lane.device.ordinal, lane)));
        // A device keeps a few; the threads of the others end with their work.
        for device in device::all() {
            let mut kept = 0;
            idle.retain(|(of, lane)| {
                kept += usize::from(*of == device.ordinal);
                let keep = *of != device.ordinal || kept <= KEPT;
                if !keep {
                    lane.close();
                }
                keep
            });
        }
    }
}

/// Helpers that wait for the next launch.
const KEPT: usize = 16;
