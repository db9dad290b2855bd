//! Streams that other code made: what safe code queues on them runs, or is refused.

mod common;

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Gate, device};
use hip::{Device, Error, Flag, Result, Stream};
use hip_sys::{hipError_t, hipStream_t};

/// A stream that the rest of the program made.
fn made_elsewhere(device: &Device) -> hipStream_t {
    device.make_current().unwrap();
    let create = device.runtime().api().hipStreamCreateWithFlags.unwrap();
    let mut raw = ptr::null_mut();
    // SAFETY: a place for one handle, and a flag of HIP.
    let code = unsafe { create(&mut raw, hip_sys::hipStreamNonBlocking) };
    assert_eq!(code, hipError_t::hipSuccess);
    raw
}

/// Its owner begins to capture it.
fn begin_capture(device: &Device, raw: hipStream_t) {
    let begin = device.runtime().api().hipStreamBeginCapture.unwrap();
    let mode = hip_sys::hipStreamCaptureMode::hipStreamCaptureModeRelaxed;
    // SAFETY: a live stream.
    assert_eq!(unsafe { begin(raw, mode) }, hipError_t::hipSuccess);
}

/// The nodes that the owner captured.
fn end_capture(device: &Device, raw: hipStream_t) -> usize {
    let api = device.runtime().api();
    let (mut graph, mut nodes) = (ptr::null_mut(), 0);
    // SAFETY: a stream that captures; places for a handle and a number; the graph is used and destroyed only here.
    unsafe {
        assert_eq!(
            api.hipStreamEndCapture.unwrap()(raw, &mut graph),
            hipError_t::hipSuccess
        );
        let count = api.hipGraphGetNodes.unwrap()(graph, ptr::null_mut(), &mut nodes);
        assert_eq!(count, hipError_t::hipSuccess);
        assert_eq!(api.hipGraphDestroy.unwrap()(graph), hipError_t::hipSuccess);
    }
    nodes
}

#[test]
fn a_capture_of_a_foreign_stream_by_its_owner_takes_in_no_work_of_safe_code() {
    let device = device();
    let raw = made_elsewhere(&device);
    // SAFETY: a live stream of this device, which is never destroyed.
    let foreign = unsafe { Stream::from_raw(&device, raw, ()) }.unwrap();
    let own = device.stream().unwrap();
    let ones = device.alloc_from(&own, &[1_u32; 16]).unwrap();
    let pinned = device.alloc_pinned::<u32>(16).unwrap();
    let flag: Flag<u32> = device.flag().unwrap();
    let mut buffer = device.alloc_zeroed::<u32>(16).unwrap();
    let mut fresh = device.alloc_zeroed::<u32>(16).unwrap();
    let mut used_before = device.alloc_zeroed::<u32>(16).unwrap();
    used_before.on_mut(&foreign).unwrap().fill_zero().unwrap();
    own.synchronize().unwrap();

    begin_capture(&device, raw);
    let refused = |outcome: Result<()>| {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::NotSupported { .. }), "{error}");
    };
    refused(fresh.on_mut(&foreign).and_then(|mut x| x.fill_zero()));
    refused(fresh.copy_to_slice(&foreign, &mut [0; 16]));
    refused(used_before.on_mut(&foreign).and_then(|mut x| x.fill_zero()));
    refused(
        used_before
            .on_mut(&foreign)
            .and_then(|mut x| x.copy_from(ones.on(&foreign)?)),
    );
    refused(
        used_before
            .on_mut(&foreign)
            .and_then(|mut x| x.copy_from(pinned.on(&foreign)?)),
    );
    refused(foreign.write_flag(&flag, 1));
    refused(foreign.record().map(drop));
    refused(foreign.wait(&own.record().unwrap()));
    refused(foreign.host_function(|| ()));
    refused(foreign.synchronize());
    // A stream that waits for one that is captured would join the capture.
    refused(own.wait_for(&foreign));
    refused(used_before.on_mut(&own).map(drop));
    // SAFETY: refused.
    refused(unsafe { foreign.queue_by_handle("nothing", |_| panic!("the handle of a captured stream was given out")) });
    buffer.on_mut(&own).unwrap().copy_from(ones.on(&own).unwrap()).unwrap();
    assert_eq!(end_capture(&device, raw), 0);

    let mut seen = [9; 16];
    buffer.copy_to_slice(&own, &mut seen).unwrap();
    assert_eq!(seen, [1; 16]);
    // Afterwards it is a stream as others.
    used_before
        .on_mut(&foreign)
        .unwrap()
        .copy_from(ones.on(&foreign).unwrap())
        .unwrap();
    used_before.copy_to_slice(&own, &mut seen).unwrap();
    assert_eq!(seen, [1; 16]);
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn a_stream_is_the_same_one_on_every_thread() {
    let device = device();
    // SAFETY: HIP's own handle, which is never destroyed.
    let error = unsafe { Stream::from_raw(&device, hip_sys::hipStreamPerThread, ()) }.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("hipStreamPerThread") && text.contains("hipStreamCreate"),
        "{text}"
    );
    assert!(!text.contains('\n'));
}

#[test]
fn the_default_stream_has_one_handle() {
    let device = device();
    let named = |raw| {
        // SAFETY: HIP's own handles of the default stream.
        let stream = unsafe { Stream::from_raw(&device, raw, ()) }.unwrap();
        stream.raw()
    };
    assert_eq!(named(hip_sys::hipStreamLegacy), named(ptr::null_mut()));
    // SAFETY: as above.
    let default = unsafe { Stream::from_raw(&device, hip_sys::hipStreamLegacy, ()) }.unwrap();
    let gate = Gate::close(&default);
    assert!(!default.is_idle().unwrap());
    gate.open();
    default.synchronize().unwrap();
}

/// Destroys the stream of other code as its last owner does.
struct Owner {
    device: Device,
    raw: usize,
    is_gone: Arc<AtomicBool>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let destroy = self.device.runtime().api().hipStreamDestroy.unwrap();
        // SAFETY: the last use of the stream.
        let code = unsafe { destroy(ptr::without_provenance_mut(self.raw)) };
        assert_eq!(code, hipError_t::hipSuccess);
        self.is_gone.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_foreign_stream_lives_as_long_as_anything_remembers_it() {
    let device = device();
    let raw = made_elsewhere(&device);
    let is_gone = Arc::new(AtomicBool::new(false));
    let owner = Owner {
        device: device.clone(),
        raw: raw.addr(),
        is_gone: is_gone.clone(),
    };
    // SAFETY: a live stream of this device, which its owner destroys.
    let stream = unsafe { Stream::from_raw(&device, raw, owner) }.unwrap();
    let mut buffer = device.alloc::<u32>(64).unwrap();
    buffer.on_mut(&stream).unwrap().fill_zero().unwrap();
    stream.synchronize().unwrap();
    drop(stream);
    assert!(!is_gone.load(Ordering::Relaxed), "the buffer's record names it");
    drop(buffer);
    assert!(is_gone.load(Ordering::Relaxed));
    assert!(device.runtime().take_deferred_errors().is_empty());
}
