//! The streams that threads have by themselves.

use std::sync::Arc;

use hip_sys::{hipError_t, hipStream_t};

use super::{FLAG_DEFAULT, Kind, PER_THREAD, Stream};
use crate::device::Device;
use crate::error::Result;

thread_local! {
    static OWN: PerThread = const { PerThread(std::cell::RefCell::new(Vec::new())) };
}

/// The calling thread's streams, one per device it used, closed when the thread ends.
struct PerThread(std::cell::RefCell<Vec<Arc<Stream>>>);

impl PerThread {
    fn get(&self, device: &'static Device) -> Arc<Stream> {
        let mut own = self.0.borrow_mut();
        if let Some(stream) = own.iter().find(|stream| std::ptr::eq(stream.device, device)) {
            return stream.clone();
        }
        let stream = Stream::new(device, Kind::Blocking, FLAG_DEFAULT, 0);
        own.push(stream.clone());
        stream
    }
}

impl Drop for PerThread {
    fn drop(&mut self) {
        for stream in self.0.get_mut() {
            stream.close();
        }
    }
}

/// The calling thread's stream on `device`.
///
/// # Errors
/// `hipErrorContextIsDestroyed` while the thread ends.
pub(super) fn of_this_thread(device: &'static Device) -> Result<Arc<Stream>> {
    OWN.try_with(|own| own.get(device))
        .map_err(|_| hipError_t::hipErrorContextIsDestroyed)
}

/// The handle that the `_spt` calls mean: the thread's own stream in the place of null.
pub(crate) fn own(stream: hipStream_t) -> hipStream_t {
    if stream.is_null() {
        PER_THREAD as hipStream_t
    } else {
        stream
    }
}
