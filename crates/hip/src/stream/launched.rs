//! The streams that something was launched on.

use super::Stream;

/// What must not be destroyed before these streams are idle keeps them here.
#[derive(Debug, Default)]
pub(crate) struct Launched(Vec<Stream>);

impl Launched {
    /// Whether the stream is on the list.
    pub(crate) fn contains(&self, stream: &Stream) -> bool {
        self.0.contains(stream)
    }

    /// Adds a stream that is not on the list, before something is launched on it. Streams that have nothing left leave
    /// the list: those that are idle and have no holder. A holder may be about to launch something.
    pub(crate) fn push(&mut self, stream: &Stream) {
        self.0.retain(|other| !other.is_over());
        self.0.push(stream.kept());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.0.iter()
    }

    /// Waits for all of them. Returns whether it is certain that none of their work runs any more.
    #[must_use = "what a stream may still run must not be destroyed"]
    pub(crate) fn settle(&mut self) -> bool {
        let mut settled = true;
        for stream in std::mem::take(&mut self.0) {
            settled &= stream.settle();
        }
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Runtime};

    fn device() -> Device {
        let host = platform::select_named(Some("host")).unwrap();
        let hip = std::sync::Arc::new(*host.tables().hip);
        // SAFETY: one platform's functions.
        let runtime = unsafe { Runtime::from_tables(hip, None) };
        runtime.unwrap().device(0).unwrap()
    }

    #[test]
    fn a_stream_leaves_once_it_is_idle_and_has_no_other_owner() {
        let device = device();
        let (given_up, held) = (device.stream().unwrap(), device.stream().unwrap());
        let mut launched = Launched::default();
        launched.push(&given_up);
        launched.push(&held);
        assert!(launched.contains(&given_up) && launched.contains(&held));
        drop(given_up);
        launched.push(&device.stream().unwrap());
        assert!(launched.contains(&held), "its owner may be about to launch something");
        assert_eq!(launched.0.len(), 2);
        assert!(launched.settle());
        assert!(launched.0.is_empty());
    }

    #[test]
    fn a_stream_that_is_still_at_work_stays_without_an_owner() {
        let device = device();
        let busy = device.stream().unwrap();
        // Otherwise a stream that left too early would be waited for here.
        let _kept = busy.kept();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        busy.host_function(move || {
            let _ = gate.recv();
        })
        .unwrap();
        let mut launched = Launched::default();
        launched.push(&busy);
        drop(busy);
        launched.push(&device.stream().unwrap());
        assert_eq!(launched.0.len(), 2);
        drop(open);
        assert!(launched.settle());
    }

    #[test]
    fn one_stream_that_cannot_be_waited_for_leaves_doubt_about_all() {
        unsafe extern "C" fn lost(_: hip_sys::hipStream_t) -> hip_sys::hipError_t {
            hip_sys::hipError_t::hipErrorUnknown
        }
        let device = device();
        let host = platform::select_named(Some("host")).unwrap();
        let mut hip = *host.tables().hip;
        hip.hipStreamSynchronize = Some(lost);
        hip.hipStreamQuery = Some(lost);
        // SAFETY: the platform's functions, and two that fail and do nothing.
        let doubtful = unsafe { Runtime::from_tables(std::sync::Arc::new(hip), None) };
        let doubtful = doubtful.unwrap().device(0).unwrap();
        let streams = [&doubtful, &device].map(|device| device.stream().unwrap());
        let mut launched = Launched(streams.to_vec());
        assert!(!launched.settle());
    }
}
