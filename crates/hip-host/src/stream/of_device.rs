//! The streams of each device.

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::Stream;
use crate::device::{self, Device};

/// The streams of a device, its default stream apart because it is made when first used.
#[derive(Default)]
pub(crate) struct Streams {
    null: OnceLock<Arc<Stream>>,
    all: Mutex<Vec<Weak<Stream>>>,
}

impl Streams {
    pub(crate) fn add(&self, stream: &Arc<Stream>) {
        let mut all = self.all.lock();
        all.retain(|stream| stream.strong_count() > 0);
        all.push(Arc::downgrade(stream));
    }

    pub(crate) fn null(&self, create: impl FnOnce() -> Arc<Stream>) -> Arc<Stream> {
        self.null.get_or_init(create).clone()
    }

    pub(crate) fn existing_null(&self) -> Option<Arc<Stream>> {
        self.null.get().cloned()
    }

    /// Every stream that exists or still works, the default stream included.
    pub(crate) fn living(&self) -> Vec<Arc<Stream>> {
        self.all.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// The streams of `device`.
pub(crate) fn of(device: &Device) -> &'static Streams {
    static ALL: OnceLock<Vec<Streams>> = OnceLock::new();
    let all = ALL.get_or_init(|| device::all().iter().map(|_| Streams::default()).collect());
    &all[device.ordinal]
}
