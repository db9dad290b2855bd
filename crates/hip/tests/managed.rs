//! Managed memory: one address, and the same order as every other buffer.

mod common;

use common::{Gate, device};
use hip::rtc::Program;
use hip::{Advice, LaunchConfig, Location};

#[test]
fn the_host_sees_what_the_device_wrote_and_the_other_way_round() {
    let device = device();
    let stream = device.stream().unwrap();
    let source = "extern \"C\" __global__ void twice(int *x) { x[threadIdx.x] *= 2; }";
    let module = Program::new(source).compile(&device).unwrap();
    let twice = module.function("twice").unwrap();
    let mut memory = device.alloc_managed::<i32>(64).unwrap();
    assert_eq!(memory.host().unwrap(), [0; 64]);
    for (x, i) in memory.host_mut().unwrap().iter_mut().zip(0..) {
        *x = i;
    }
    assert_eq!(memory.host().unwrap().as_ptr(), memory.as_ptr());
    let gate = Gate::close(&stream);
    // SAFETY: 64 threads on 64 elements.
    unsafe {
        twice
            .launch(
                &stream,
                LaunchConfig::linear(64, 64).unwrap(),
                &[&memory.on_mut(&stream).unwrap()],
            )
            .unwrap();
    }
    std::thread::scope(|scope| {
        let seen = scope.spawn(|| memory.host().unwrap().to_vec());
        gate.open();
        assert!(seen.join().unwrap().iter().copied().eq((0..64).map(|i| 2 * i)));
    });
}

#[test]
fn advice_and_prefetching_change_nothing_that_is_seen() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut memory = device.alloc_managed::<u64>(1 << 16).unwrap();
    memory.host_mut().unwrap().fill(7);
    for place in [Location::Host, Location::Device(&device)] {
        for advice in [
            Advice::ReadMostly,
            Advice::Preferred(place),
            Advice::AccessedBy(place),
            Advice::CoarseGrain,
            Advice::FineGrain,
            Advice::NotAccessedBy(place),
            Advice::NoPreference,
            Advice::NotReadMostly,
        ] {
            memory.advise(advice).unwrap();
        }
        memory.prefetch(&stream, place).unwrap();
        assert!(memory.host().unwrap().iter().all(|&x| x == 7));
    }
}

#[test]
fn what_the_device_still_uses_is_not_freed() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut memory = device.alloc_managed::<u8>(1 << 20).unwrap();
    let gate = Gate::close(&stream);
    memory.on_mut(&stream).unwrap().fill_zero().unwrap();
    std::thread::scope(|scope| {
        let dropping = scope.spawn(move || drop(memory));
        gate.open();
        dropping.join().unwrap();
    });
    assert!(stream.is_idle().unwrap());
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn nothing_and_too_much_are_fine_and_refused() {
    let device = device();
    let stream = device.stream().unwrap();
    let empty = device.alloc_managed::<f32>(0).unwrap();
    assert!(empty.is_empty() && empty.host().unwrap().is_empty());
    empty.prefetch(&stream, Location::Host).unwrap();
    empty.advise(Advice::ReadMostly).unwrap();
    empty.close().unwrap();
    assert!(device.alloc_managed::<u64>(usize::MAX).is_err());
    let elsewhere = common::device();
    let memory = device.alloc_managed::<f32>(4).unwrap();
    assert!(memory.prefetch(&stream, Location::Device(&elsewhere)).is_err());
    memory.close().unwrap();
}

#[test]
fn a_prefetch_cannot_be_recorded_and_the_capture_survives() {
    let device = device();
    let stream = device.stream().unwrap();
    let memory = device.alloc_managed::<u8>(1 << 12).unwrap();
    let mut x = device.alloc_zeroed::<u8>(8).unwrap();
    let graph = stream.capture(|stream| {
        let error = memory.prefetch(stream, hip::Location::Host).unwrap_err();
        assert!(matches!(error, hip::Error::NotSupported { .. }), "{error}");
        x.on_mut(stream)?.fill_zero()
    });
    assert_eq!(graph.unwrap().node_count().unwrap(), 1);
}
