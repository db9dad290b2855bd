use crate::residency::Hsa;
use crate::{Error, Meter};
use parking_lot::Mutex;
use platform::{ForeignHooks, Platform};

/// What shared buffers need of their bridge.
pub(crate) struct Core {
    pub(crate) platform: Platform,
    pub(crate) meter: Meter,
    pub(crate) hip: hip::Runtime,
    pub(crate) hip_device: hip::Device,
    pub(crate) context: clmgr::Context,
    pub(crate) programs: clmgr::ProgramCache,
    /// For transfers of the bridge itself: its own queue, or the one it was given.
    pub(crate) queue: clmgr::Queue,
    /// For transfers of the bridge itself: its own stream, or the one it was given.
    pub(crate) stream: hip::Stream,
    pub(crate) hsa: Option<Hsa>,
    pub(crate) foreign: Option<ForeignHooks>,
    pub(crate) deferred: Mutex<Vec<Error>>,
}

impl Core {
    /// Keeps an error of a destructor for whoever asks.
    pub(crate) fn defer(&self, error: Error) {
        self.deferred.lock().push(error);
    }
}
