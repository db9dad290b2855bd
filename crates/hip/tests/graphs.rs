//! Graphs: captured once, done as often as launched, in order with everything else.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::device;
use hip::rtc::Program;
use hip::{Device, Error, Function, LaunchConfig};

fn increment(device: &Device) -> Function {
    let source = "extern \"C\" __global__ void increment(int *x) { x[threadIdx.x] += 1; }";
    let module = Program::new(source).compile(device).unwrap();
    module.function("increment").unwrap()
}

#[test]
fn a_captured_kernel_runs_once_for_each_launch_and_not_before() {
    let device = device();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let increment = increment(&device);
    let mut x = device.alloc_zeroed::<i32>(32).unwrap();
    let config = LaunchConfig::linear(32, 32).unwrap();
    let graph = stream
        .capture(|stream| {
            for _ in 0..2 {
                // SAFETY: 32 threads on 32 elements.
                unsafe { increment.launch(stream, config, &[&x.on_mut(stream)?])? };
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(graph.node_count().unwrap(), 2);
    let graph = graph.instantiate().unwrap();
    let mut seen = [1; 32];
    x.copy_to_slice(&other, &mut seen).unwrap();
    assert_eq!(seen, [0; 32]);
    for (launches, stream) in [(1, &stream), (2, &other), (3, &stream)] {
        let slice = x.on_mut(stream).unwrap();
        // SAFETY: the graph uses this memory and nothing else, and `increment` lives.
        unsafe { graph.launch(stream, &[&slice]) }.unwrap();
        assert_eq!(slice.len(), 32);
        x.copy_to_slice(&other, &mut seen).unwrap();
        assert_eq!(seen, [2 * launches; 32]);
    }
    let slice = x.on_mut(&stream).unwrap();
    // SAFETY: refused.
    let error = unsafe { graph.launch(&other, &[&slice]) }.unwrap_err();
    assert!(matches!(error, Error::WrongStream { .. }), "{error}");
    drop(graph);
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn an_error_or_panic_while_capturing_ends_the_capture_and_leaves_a_usable_stream() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut x = device.alloc_zeroed::<u8>(8).unwrap();
    let error = stream
        .capture(|stream| {
            x.on_mut(stream)?.fill_zero()?;
            device.alloc::<u64>(usize::MAX).map(drop)
        })
        .unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let panic = catch_unwind(AssertUnwindSafe(|| {
        stream.capture(|_| panic!("in between"))
    }));
    assert!(panic.is_err());
    x.copy_from_slice(&stream, &[7; 8]).unwrap();
    let mut seen = [0; 8];
    x.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [7; 8]);
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn what_can_be_done_only_once_is_refused_while_capturing() {
    let device = device();
    let stream = device.stream().unwrap();
    let pool = device.mem_pool().unwrap();
    let refused = |error: Error| assert!(matches!(error, Error::NotSupported { .. }), "{error}");
    let graph = stream.capture(|stream| {
        refused(stream.host_function(|| ()).unwrap_err());
        refused(stream.alloc::<u8>(4).unwrap_err());
        refused(pool.alloc::<u8>(stream, 4).unwrap_err());
        Ok(())
    });
    assert_eq!(graph.unwrap().node_count().unwrap(), 0);
    let memory = stream.alloc::<u8>(4).unwrap();
    let mut memory = Some(memory);
    stream
        .capture(|_| {
            let (error, back) = memory.take().unwrap().close().unwrap_err();
            refused(error);
            memory = Some(back);
            Ok(())
        })
        .unwrap();
    drop(memory);
    stream.synchronize().unwrap();
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn waiting_while_capturing_spoils_it_and_is_an_error() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut x = device.alloc_zeroed::<u8>(8).unwrap();
    let mut host = [1_u8; 8];
    let outcome = stream.capture(|stream| x.on_mut(stream)?.as_slice().copy_to_slice(&mut host));
    assert!(outcome.is_err());
    x.copy_to_slice(&stream, &mut host).unwrap();
    assert_eq!(host, [0; 8]);
}
