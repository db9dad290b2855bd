//! Two devices: each object stays on its own, whatever device the thread last used.

mod common;

use hip::{Device, Error, Runtime};

fn two() -> Option<(Runtime, Device, Device)> {
    let (first, second) = common::two_devices()?;
    Some((first.runtime().clone(), first, second))
}

/// The device that HIP says the thread uses.
fn current(runtime: &Runtime) -> i32 {
    let mut device = -1;
    // SAFETY: writes one int to the address given.
    let code = unsafe { runtime.api().hipGetDevice.unwrap()(&mut device) };
    assert_eq!(code, hip_sys::hipError_t::hipSuccess);
    device
}

/// The device that HIP says has this memory.
fn owner(runtime: &Runtime, pointer: *const u8) -> i32 {
    let mut attributes = hip_sys::hipPointerAttribute_t::default();
    // SAFETY: writes one structure to the address given.
    let code = unsafe { runtime.api().hipPointerGetAttributes.unwrap()(&mut attributes, pointer.cast()) };
    assert_eq!(code, hip_sys::hipError_t::hipSuccess);
    attributes.device
}

#[test]
fn memory_is_allocated_on_the_device_that_was_asked() {
    let Some((runtime, first, second)) = two() else {
        return;
    };
    for _ in 0..3 {
        for (ordinal, device, other) in [(0, &first, &second), (1, &second, &first)] {
            // Other code of the thread chooses a device behind our back.
            other.make_current().unwrap();
            let stream = device.stream().unwrap();
            other.make_current().unwrap();
            let buffer = device.alloc_zeroed::<u8>(100).unwrap();
            assert_eq!(owner(&runtime, buffer.on(&stream).unwrap().as_ptr()), ordinal);
            other.make_current().unwrap();
            let buffer = device.alloc_from(&stream, &[1_u8; 100]).unwrap();
            assert_eq!(owner(&runtime, buffer.on(&stream).unwrap().as_ptr()), ordinal);
        }
    }
}

#[test]
fn the_device_is_set_only_if_it_is_not_current() {
    let Some((_, _, second)) = two() else { return };
    second.make_current().unwrap();
    let watched = common::watched_device();
    watched.make_current().unwrap();
    common::watch(|name| assert_ne!(name, "hipSetDevice"));
    for _ in 0..3 {
        watched.memory_info().unwrap();
        watched.make_current().unwrap();
    }
    common::unwatch();
}

#[test]
fn each_thread_has_its_own_device() {
    let Some((runtime, first, second)) = two() else {
        return;
    };
    first.make_current().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            second.make_current().unwrap();
            assert_eq!(current(&runtime), 1);
        });
    });
    assert_eq!(current(&runtime), 0);
}

#[test]
fn a_buffer_is_not_used_on_another_device() {
    let Some((_, first, second)) = two() else {
        return;
    };
    let (stream, other) = (first.stream().unwrap(), second.stream().unwrap());
    let mut buffer = first.alloc_zeroed::<u8>(4).unwrap();
    let error = buffer.on(&other).unwrap_err();
    assert_eq!(
        error.to_string(),
        "DeviceBuffer::on: stream belongs to device 1, but device 0 is needed"
    );
    assert!(matches!(buffer.on_mut(&other), Err(Error::WrongDevice { .. })));
    assert!(matches!(
        second.event().unwrap().record_on(&stream),
        Err(Error::WrongDevice { .. })
    ));
    buffer.on(&stream).unwrap();
}

#[test]
fn a_stream_waits_for_an_event_of_another_device() {
    let Some((_, first, second)) = two() else {
        return;
    };
    let (stream, other) = (first.stream().unwrap(), second.stream().unwrap());
    let gate = common::Gate::close(&stream);
    other.wait(&stream.record().unwrap()).unwrap();
    assert!(!other.is_idle().unwrap());
    other.wait_for(&stream).unwrap();
    gate.open();
    other.synchronize().unwrap();
    assert!(stream.is_idle().unwrap());
}

#[test]
fn a_buffer_of_one_device_is_dropped_while_another_is_current() {
    let Some((runtime, first, second)) = two() else {
        return;
    };
    // Far more than a first use takes for itself, or others of this program allocate beside it.
    const BYTES: usize = 256 << 20;
    let before = second.memory_info().unwrap();
    let stream = second.stream().unwrap();
    let buffer = second.alloc_zeroed::<u8>(BYTES).unwrap();
    first.make_current().unwrap();
    drop((buffer, stream));
    assert!(runtime.take_deferred_errors().is_empty());
    assert!(second.memory_info().unwrap().free + BYTES / 2 > before.free);
}

#[test]
fn a_foreign_stream_is_used_on_its_device_alone_and_left_to_its_owner() {
    let Some((runtime, device, other)) = two() else {
        return;
    };
    let api = runtime.api();
    device.make_current().unwrap();
    let mut raw = std::ptr::null_mut();
    // SAFETY: a valid place for one handle.
    let code = unsafe { api.hipStreamCreate.unwrap()(&raw mut raw) };
    assert_eq!(code, hip_sys::hipError_t::hipSuccess);
    // SAFETY: the stream is alive until the end of this test.
    let stream = unsafe { hip::Stream::from_raw(&device, raw, ()) }.unwrap();
    assert_eq!(stream.raw(), raw);
    // SAFETY: as above.
    let wrong = unsafe { hip::Stream::from_raw(&other, raw, ()) };
    assert!(matches!(wrong, Err(Error::WrongDevice { .. })), "{wrong:?}");
    let buffer = device.alloc_from(&stream, &[5_u32; 100]).unwrap();
    let mut back = [0; 100];
    buffer.copy_to_slice(&stream, &mut back).unwrap();
    assert_eq!(back, [5; 100]);
    drop((buffer, stream));
    // SAFETY: the stream is still there, and destroyed here.
    unsafe {
        assert_eq!(api.hipStreamQuery.unwrap()(raw), hip_sys::hipError_t::hipSuccess);
        assert_eq!(api.hipStreamDestroy.unwrap()(raw), hip_sys::hipError_t::hipSuccess);
    }
    // CUDA follows any handle.
    if !common::on_cuda() {
        // SAFETY: HIP recognises a handle that was destroyed, and so does the host platform.
        assert!(unsafe { hip::Stream::from_raw(&device, raw, ()) }.is_err());
    }
    // SAFETY: null is the default stream.
    let default = unsafe { hip::Stream::from_raw(&device, std::ptr::null_mut(), ()) }.unwrap();
    assert!(default.is_idle().unwrap());
}

unsafe extern "C" fn gives_no_name(text: *mut std::ffi::c_char, _: i32, _: i32) -> hip_sys::hipError_t {
    // SAFETY: the caller's place for a text.
    unsafe { text.write(0) };
    hip_sys::hipError_t::hipSuccess
}

#[test]
fn a_device_that_the_driver_leaves_nameless_has_the_name_of_its_architecture() {
    let api = hip_sys::Api {
        hipDeviceGetName: Some(gives_no_name),
        ..common::hip_api()
    };
    let device = common::runtime(api).device(0).unwrap();
    let arch = device.arch().unwrap();
    let name = device.name().unwrap();
    assert!(!name.is_empty() && (name == arch || name.starts_with("AMD ")), "{name}");
}
