//! Work of several streams on one piece of memory happens in the order in which the program asked for it.

mod common;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use common::{Gate, device, unwatch, watch, watched_device};
use hip::{Device, DeviceBuffer, Stream};

const LEN: usize = 1000;

fn ones(device: &Device, stream: &Stream) -> DeviceBuffer<u32> {
    device.alloc_from(stream, &[1; LEN]).unwrap()
}

fn contents(buffer: &DeviceBuffer<u32>, stream: &Stream) -> Vec<u32> {
    let mut contents = vec![99; buffer.len()];
    buffer.copy_to_slice(stream, &mut contents).unwrap();
    contents
}

#[test]
fn a_reader_waits_for_the_writer_of_another_stream() {
    let device = device();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut buffer = ones(&device, &first);
    let gate = Gate::close(&first);
    buffer.on_mut(&first).unwrap().fill_zero().unwrap();

    let slice = buffer.on(&second).unwrap();
    assert!(
        !second.is_idle().unwrap(),
        "the second stream has to wait for the first"
    );
    gate.open();
    let mut seen = vec![99; LEN];
    slice.copy_to_slice(&mut seen).unwrap();
    assert_eq!(seen, [0; LEN]);
}

#[test]
fn a_writer_waits_for_all_readers() {
    let device = device();
    let streams: Vec<_> = (0..4).map(|_| device.stream().unwrap()).collect();
    let mut source = ones(&device, &streams[0]);
    // The gates are dropped, hence opened, before the buffers that wait for them.
    let mut copies = Vec::new();
    let mut gates = Vec::new();
    for stream in &streams[..3] {
        let mut copy = device.alloc_zeroed::<u32>(LEN).unwrap();
        gates.push(Gate::close(stream));
        copy.on_mut(stream)
            .unwrap()
            .copy_from(source.on(stream).unwrap())
            .unwrap();
        copies.push(copy);
    }
    let writer = &streams[3];
    let mut slice = source.on_mut(writer).unwrap();
    for gate in &gates {
        assert!(!writer.is_idle().unwrap(), "the writer has to wait for every reader");
        gate.open();
    }
    slice.fill_zero().unwrap();
    for copy in &copies {
        assert_eq!(contents(copy, writer), [1; LEN]);
    }
    assert_eq!(contents(&source, writer), [0; LEN]);
}

#[test]
fn readers_do_not_wait_for_each_other() {
    let device = device();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let buffer = ones(&device, &first);
    let _gate = Gate::close(&first);
    let _reader = buffer.on(&first).unwrap();
    assert_eq!(contents(&buffer, &second), [1; LEN]);
    assert!(!first.is_idle().unwrap());
}

#[test]
fn a_leaked_slice_changes_nothing() {
    let device = device();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut buffer = ones(&device, &first);
    let gate = Gate::close(&first);
    let mut slice = buffer.on_mut(&first).unwrap();
    slice.fill_zero().unwrap();
    #[expect(clippy::forget_non_drop, reason = "what a careless caller could do")]
    std::mem::forget(slice);
    let slice = buffer.on_mut(&second).unwrap();
    assert!(!second.is_idle().unwrap());
    #[expect(clippy::forget_non_drop, reason = "what a careless caller could do")]
    std::mem::forget(slice);
    gate.open();
    assert_eq!(contents(&buffer, &second), [0; LEN]);
}

#[test]
fn a_buffer_outlives_the_stream_that_writes_it() {
    let device = device();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut buffer = ones(&device, &first);
    let gate = Gate::close(&first);
    buffer.on_mut(&first).unwrap().fill_zero().unwrap();
    drop(first);
    let _slice = buffer.on(&second).unwrap();
    assert!(!second.is_idle().unwrap());
    gate.open();
    assert_eq!(contents(&buffer, &second), [0; LEN]);
}

/// Opens the gate when the thread begins to wait for a stream, and notes in which state `call` finds the stream.
fn watch_for(call: &'static str, gate: Gate, stream: &Stream) -> Rc<RefCell<Vec<bool>>> {
    let found_idle = Rc::new(RefCell::new(Vec::new()));
    let (noted, stream) = (found_idle.clone(), stream.clone());
    watch(move |name| {
        if name == "hipStreamSynchronize" {
            gate.open();
        } else if name == call {
            noted.borrow_mut().push(stream.is_idle().unwrap());
            gate.open();
        }
    });
    found_idle
}

#[test]
fn dropping_a_buffer_frees_it_after_the_last_use() {
    let device = watched_device();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    for reads in [false, true] {
        let mut buffer = ones(&device, &stream);
        let mut copy = ones(&device, &other);
        let gate = Gate::close(&stream);
        if reads {
            copy.on_mut(&stream)
                .unwrap()
                .copy_from(buffer.on(&stream).unwrap())
                .unwrap();
        } else {
            buffer.on_mut(&stream).unwrap().fill_zero().unwrap();
        }
        let found_idle = watch_for("hipFree", gate, &stream);
        drop(buffer);
        unwatch();
        assert_eq!(*found_idle.borrow(), [true], "reads: {reads}");
    }
}

#[test]
fn closing_a_buffer_frees_it_once_and_after_the_last_use() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    let mut buffer = ones(&device, &stream);
    let gate = Gate::close(&stream);
    buffer.on_mut(&stream).unwrap().fill_zero().unwrap();
    let found_idle = watch_for("hipFree", gate, &stream);
    buffer.close().unwrap();
    unwatch();
    assert_eq!(*found_idle.borrow(), [true]);
}

#[test]
fn dropping_pinned_memory_frees_it_after_the_last_use() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    let mut memory = device.alloc_pinned::<u32>(LEN).unwrap();
    let gate = Gate::close(&stream);
    memory.on_mut(&stream).unwrap().fill_zero().unwrap();
    let found_idle = watch_for("hipHostFree", gate, &stream);
    drop(memory);
    unwatch();
    assert_eq!(*found_idle.borrow(), [true]);
}

#[test]
fn registered_memory_comes_back_after_the_last_use() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    let mut memory = vec![1_u32; LEN];
    let mut found_idle = Rc::default();
    hip::with_registered(&device, &mut memory, |mut registered| {
        let gate = Gate::close(&stream);
        registered.on_mut(&stream).unwrap().fill_zero().unwrap();
        found_idle = watch_for("hipHostUnregister", gate, &stream);
    })
    .unwrap();
    unwatch();
    assert_eq!(memory, [0; LEN]);
    assert_eq!(*found_idle.borrow(), [true]);
}

#[test]
fn registered_memory_comes_back_when_the_work_panics() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    let mut memory = vec![1_u32; LEN];
    let slot = RefCell::new(Rc::default());
    let work = std::panic::AssertUnwindSafe(|| {
        hip::with_registered(&device, &mut memory, |mut registered| {
            let gate = Gate::close(&stream);
            registered.on_mut(&stream).unwrap().fill_zero().unwrap();
            *slot.borrow_mut() = watch_for("hipHostUnregister", gate, &stream);
            panic!("part of the test");
        })
    });
    assert!(std::panic::catch_unwind(work).is_err());
    unwatch();
    assert_eq!(*slot.borrow().borrow(), [true]);
    assert_eq!(memory, [0; LEN]);
}

#[test]
fn the_host_reads_pinned_memory_after_the_device_wrote_it() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    let mut memory = device.alloc_pinned::<u32>(LEN).unwrap();
    memory.host_mut().unwrap().fill(1);
    let gate = Gate::close(&stream);
    memory.on_mut(&stream).unwrap().fill_zero().unwrap();
    watch_for("hipHostFree", gate, &stream);
    assert_eq!(memory.host().unwrap(), [0; LEN]);
    unwatch();
}

#[test]
fn the_host_writes_pinned_memory_after_the_device_read_it() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    let mut memory = device.alloc_pinned::<u32>(LEN).unwrap();
    memory.host_mut().unwrap().fill(1);
    let mut copy = device.alloc_zeroed::<u32>(LEN).unwrap();
    let gate = Gate::close(&stream);
    copy.on_mut(&stream)
        .unwrap()
        .copy_from(memory.on(&stream).unwrap())
        .unwrap();
    watch_for("hipHostFree", gate, &stream);
    memory.host_mut().unwrap().fill(2);
    unwatch();
    assert_eq!(contents(&copy, &stream), [1; LEN]);
}

#[test]
fn the_host_reads_pinned_memory_beside_a_reading_device() {
    let device = device();
    let stream = device.stream().unwrap();
    let memory = device.alloc_pinned::<u32>(LEN).unwrap();
    let _gate = Gate::close(&stream);
    let _reader = memory.on(&stream).unwrap();
    // Would hang if it waited for the reader.
    assert_eq!(memory.host().unwrap(), [0; LEN]);
}

#[test]
fn zeroed_memory_is_zero_for_every_stream_at_once() {
    let device = device();
    // Fill, free and take again, so that zeroes do not come from a fresh mapping.
    let stream = device.stream().unwrap();
    drop(device.alloc_from(&stream, &[7_u32; LEN]).unwrap());
    let buffer = device.alloc_zeroed::<u32>(LEN).unwrap();
    assert_eq!(contents(&buffer, &device.stream().unwrap()), [0; LEN]);
}

#[test]
fn an_event_is_recorded_only_when_another_stream_comes() {
    let device = watched_device();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let records = Rc::new(RefCell::new(0));
    let counted = records.clone();
    watch(move |name| *counted.borrow_mut() += i32::from(name == "hipEventRecord"));
    let mut buffer = device.alloc::<u32>(LEN).unwrap();
    for _ in 0..3 {
        buffer.on_mut(&first).unwrap().fill_zero().unwrap();
        let _ = buffer.on(&first).unwrap();
    }
    assert_eq!(*records.borrow(), 0);
    let _ = buffer.on(&second).unwrap();
    let _ = buffer.on(&second).unwrap();
    assert_eq!(*records.borrow(), 1, "one wait for one write");
    buffer.on_mut(&second).unwrap().fill_zero().unwrap();
    // The first stream both wrote and read: one wait does for both.
    assert_eq!(*records.borrow(), 2);
    unwatch();
}

#[test]
fn a_wait_keeps_to_what_was_queued_when_it_was_asked_for() {
    let device = device();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    second.wait_for(&first).unwrap();
    let gate = Gate::close(&first);
    // The stream's mark moves behind the gate; the wait above must not move with it.
    let third = device.stream().unwrap();
    third.wait_for(&first).unwrap();
    second.synchronize().unwrap();
    assert!(!third.is_idle().unwrap());
    gate.open();
    third.synchronize().unwrap();
}

#[test]
fn threads_share_a_buffer_for_reading_and_a_stream_for_queueing() {
    let device = device();
    let stream = device.stream().unwrap();
    let buffer = Arc::new(ones(&device, &stream));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (buffer, stream, device) = (buffer.clone(), stream.clone(), device.clone());
            scope.spawn(move || {
                for _ in 0..50 {
                    assert_eq!(contents(&buffer, &stream), [1; LEN]);
                    let own = device.stream().unwrap();
                    assert_eq!(contents(&buffer, &own), [1; LEN]);
                }
            });
        }
    });
    let mut buffer = Arc::into_inner(buffer).unwrap();
    buffer.on_mut(&stream).unwrap().fill_zero().unwrap();
    assert_eq!(contents(&buffer, &device.stream().unwrap()), [0; LEN]);
}

#[test]
fn an_event_tells_when_its_work_is_done() {
    let device = device();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let fresh = device.event().unwrap();
    assert!(
        fresh.is_complete().unwrap(),
        "before its first record an event marks nothing"
    );
    second.wait(&fresh).unwrap();
    assert!(second.is_idle().unwrap());

    let gate = Gate::close(&first);
    let event = first.record().unwrap();
    assert!(!event.is_complete().unwrap());
    second.wait(&event).unwrap();
    assert!(!second.is_idle().unwrap());
    // The wait holds although the event is gone.
    drop(event);
    assert!(!second.is_idle().unwrap());
    gate.open();
    second.synchronize().unwrap();
    assert!(first.record().and_then(|event| event.synchronize()).is_ok());
}

#[test]
fn time_between_events_is_the_time_the_device_took() {
    let device = device();
    let stream = device.stream().unwrap();
    let start = stream.record().unwrap();
    start.synchronize().unwrap();
    let gate = Gate::close(&stream);
    let end = stream.record().unwrap();
    assert!(
        end.elapsed_since(&start)
            .unwrap_err()
            .to_string()
            .contains("hipErrorNotReady")
    );
    let begun = std::time::Instant::now();
    while begun.elapsed().as_millis() < 5 {
        std::hint::spin_loop();
    }
    gate.open();
    end.synchronize().unwrap();
    let elapsed = end.elapsed_since(&start).unwrap();
    assert!(elapsed.as_millis() >= 5, "{elapsed:?}");
    let error = start.elapsed_since(&end).unwrap_err().to_string();
    assert!(error.contains("was recorded later"), "{error}");
}

#[test]
fn a_refused_copy_from_a_peer_leaves_the_source_as_it_was() {
    // Two runtimes.
    let (here, there) = (device(), device());
    let (stream, foreign) = (here.stream().unwrap(), there.stream().unwrap());
    let mut source = here.alloc_zeroed::<u32>(4).unwrap();
    let mut target = here.alloc_zeroed::<u32>(4).unwrap();
    let error = target.copy_from_peer(&foreign, &source).unwrap_err();
    assert!(matches!(error, hip::Error::WrongDevice { .. }), "{error}");
    source.on_mut(&stream).unwrap().fill_zero().unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn a_copy_for_the_host_that_fails_after_it_was_queued_is_waited_for() {
    use std::ffi::c_void;

    use hip_sys::{hipError_t, hipMemcpyKind, hipStream_t};

    unsafe extern "C" fn linear(
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> hipError_t {
        // SAFETY: the caller's arguments.
        let queued = unsafe { common::hip_api().hipMemcpyAsync.unwrap()(to, from, bytes, kind, stream) };
        assert_eq!(queued, hipError_t::hipSuccess);
        hipError_t::hipErrorUnknown
    }
    unsafe extern "C" fn rectangle(
        to: *mut c_void,
        to_pitch: usize,
        from: *const c_void,
        from_pitch: usize,
        width: usize,
        height: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> hipError_t {
        let copy = common::hip_api().hipMemcpy2DAsync.unwrap();
        // SAFETY: the caller's arguments.
        let queued = unsafe { copy(to, to_pitch, from, from_pitch, width, height, kind, stream) };
        assert_eq!(queued, hipError_t::hipSuccess);
        hipError_t::hipErrorUnknown
    }
    let api = hip_sys::Api {
        hipMemcpyWithStream: Some(linear),
        hipMemcpy2DAsync: Some(rectangle),
        ..*watched_device().runtime().api()
    };
    let device = common::runtime(api).device(0).unwrap();
    let stream = device.stream().unwrap();
    let mut x = device.alloc_zeroed::<u32>(LEN).unwrap();
    let mut pinned = device.alloc_pinned::<u32>(LEN).unwrap();
    let rect = hip::Rect {
        width: 2,
        height: 2,
        source_pitch: 4,
        destination_pitch: 4,
    };
    for which in 0..4 {
        let gate = Gate::close(&stream);
        watch(move |name| {
            if name == "hipStreamSynchronize" {
                gate.open();
            }
        });
        let host = pinned.host_mut().unwrap();
        let outcome = match which {
            0 => x.on(&stream).unwrap().copy_to_slice(host),
            1 => x.on_mut(&stream).unwrap().copy_from_slice(host),
            2 => x.on(&stream).unwrap().copy_rect_to_slice(host, rect),
            _ => x.on_mut(&stream).unwrap().copy_rect_from_slice(host, rect),
        };
        assert!(outcome.is_err(), "{which}");
        let is_idle = stream.is_idle().unwrap();
        unwatch();
        assert!(is_idle, "{which}");
    }
}
