//! Graphs: captured once, done as often as launched, in order with everything else.

mod common;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use common::{Gate, device, unwatch, watch, watched_device};
use hip::rtc::Program;
use hip::{Condition, Device, Error, Function, LaunchConfig, Rect, Result};
use hip_sys::hipError_t;

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
    let panic = catch_unwind(AssertUnwindSafe(|| stream.capture(|_| panic!("in between"))));
    assert!(panic.is_err() && !stream.is_capturing());
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
fn work_that_cannot_be_recorded_is_refused_and_the_capture_survives() {
    let device = device();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let mut x = device.alloc_zeroed::<u8>(8).unwrap();
    let pinned = device.alloc_pinned::<u8>(8).unwrap();
    let event = other.record().unwrap();
    let flag = device.flag::<u32>().unwrap();
    let rect = Rect {
        width: 2,
        height: 2,
        source_pitch: 2,
        destination_pitch: 2,
    };
    let mut host = [1_u8; 8];
    let refused = |outcome: Result<()>| {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::NotSupported { .. }), "{error}");
    };
    let graph = stream.capture(|stream| {
        refused(x.on(stream)?.copy_to_slice(&mut host));
        refused(x.on_mut(stream)?.copy_from_slice(&[2; 8]));
        refused(x.copy_from_slice(stream, &[2; 8]));
        refused(x.on(stream)?.copy_rect_to_slice(&mut host, rect));
        refused(x.on_mut(stream)?.copy_rect_from_slice(&[2; 8], rect));
        x.on_mut(stream)?.copy_from(pinned.on(stream)?)?;
        refused(stream.synchronize());
        refused(stream.record().map(drop));
        refused(event.record_on(stream));
        refused(stream.wait(&event));
        refused(stream.completion().map(drop));
        refused(stream.on_complete(drop));
        refused(stream.wait_flag(&flag, Condition::Equal(1)));
        refused(stream.write_flag(&flag, 1));
        refused(other.wait_for(stream));
        refused(x.on(&other).map(drop));
        refused(stream.capture(|_| Ok(())).map(drop));
        refused(stream.clone().synchronize());
        assert!(stream.is_capturing() && !other.is_capturing());
        Ok(())
    });
    assert!(!stream.is_capturing());
    assert_eq!(graph.unwrap().node_count().unwrap(), 1);
    assert_eq!(host, [1; 8]);
    stream.synchronize().unwrap();
    x.copy_to_slice(&stream, &mut host).unwrap();
    assert_eq!(host, [0; 8]);
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn work_from_other_threads_runs_and_is_not_captured() {
    let device = device();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let mut x = device.alloc_from(&stream, &[1_u8; 8]).unwrap();
    let mut y = device.alloc_zeroed::<u8>(8).unwrap();
    let mut z = device.alloc_zeroed::<u8>(8).unwrap();
    // A slice taken earlier is no use to the capture either.
    let mut slice = y.on_mut(&stream).unwrap();
    let sevens = device.alloc_from(&stream, &[7_u8; 8]).unwrap();
    let graph = stream
        .capture(|stream| {
            x.on_mut(stream)?.fill_zero()?;
            std::thread::scope(|scope| {
                let work = scope.spawn(|| {
                    assert!(!stream.is_capturing());
                    slice.copy_from(sevens.on(stream)?)?;
                    // A third stream ordered after it does not join the capture.
                    z.on_mut(&other)?.copy_from(sevens.on(&other)?)?;
                    other.wait_for(stream)?;
                    stream.record()?.synchronize()?;
                    stream.host_function(|| ())?;
                    stream.synchronize()
                });
                work.join().unwrap()
            })?;
            x.on_mut(stream)?.fill_zero()
        })
        .unwrap();
    assert_eq!(graph.node_count().unwrap(), 2);
    let mut seen = [0; 8];
    for (memory, expected) in [(&y, 7), (&z, 7), (&x, 1)] {
        memory.copy_to_slice(&other, &mut seen).unwrap();
        assert_eq!(seen, [expected; 8]);
    }
}

#[test]
fn the_stream_itself_stays_in_order_while_it_is_captured() {
    let device = device();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let mut x = device.alloc_from(&other, &[1_u8; 8]).unwrap();
    let gate = Gate::close(&other);
    x.on_mut(&other).unwrap().fill_zero().unwrap();
    let kept = RefCell::new(None);
    let graph = stream.capture(|_| {
        // The graph does not contain the memory's last writer, and `work` may return a slice through another reference
        // to the stream.
        *kept.borrow_mut() = Some(x.on_mut(&stream)?);
        Ok(())
    });
    assert_eq!(graph.unwrap().node_count().unwrap(), 0);
    assert!(!stream.is_idle().unwrap(), "it waits for the writer");
    let sixes = device.alloc_from(&device.stream().unwrap(), &[6_u8; 8]);
    let sixes = sixes.unwrap();
    let mut slice = kept.take().unwrap();
    slice.copy_from(sixes.on(&stream).unwrap()).unwrap();
    gate.open();
    let mut seen = [0; 8];
    x.copy_to_slice(&other, &mut seen).unwrap();
    assert_eq!(seen, [6; 8]);
}

#[test]
fn memory_dropped_while_capturing_is_waited_for_and_freed() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    let mut x = device.alloc_zeroed::<u8>(8).unwrap();
    let ordered = stream.alloc::<u8>(8).unwrap();
    let gate = Gate::close(&stream);
    x.on_mut(&stream).unwrap().fill_zero().unwrap();
    let calls = Rc::new(RefCell::new(Vec::new()));
    let (heard, idle) = (calls.clone(), stream.clone());
    watch(move |name| match name {
        "hipStreamSynchronize" => gate.open(),
        "hipFree" | "hipFreeAsync" => heard.borrow_mut().push((name, idle.is_idle().unwrap())),
        _ => {}
    });
    let graph = stream.capture(|_| {
        drop(x);
        drop(ordered);
        Ok(())
    });
    unwatch();
    assert_eq!(graph.unwrap().node_count().unwrap(), 0);
    assert_eq!(*calls.borrow(), [("hipFree", true), ("hipFreeAsync", true)]);
    stream.synchronize().unwrap();
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn a_spoiled_capture_is_an_error_and_leaves_a_usable_stream() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut x = device.alloc_zeroed::<u8>(8).unwrap();
    let told = RefCell::new(Vec::new());
    let outcome = stream.capture_told(
        |raw| {
            told.borrow_mut().push(raw);
            Ok::<_, Error>(())
        },
        |stream| {
            let recorder = told.borrow()[0];
            let wait = device.runtime().api().hipStreamSynchronize.unwrap();
            // SAFETY: the stream that records is alive.
            assert_ne!(unsafe { wait(recorder) }, hipError_t::hipSuccess);
            let _ = x.on_mut(stream)?.fill_zero();
            Ok(())
        },
    );
    assert!(outcome.is_err());
    let told = told.into_inner();
    assert!(told.len() == 2 && told[0] != told[1] && told[1] == stream.raw());
    let mut host = [1_u8; 8];
    x.copy_from_slice(&stream, &[3; 8]).unwrap();
    x.copy_to_slice(&stream, &mut host).unwrap();
    assert_eq!(host, [3; 8]);
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn a_library_that_does_not_take_its_own_stream_back_is_an_error() {
    let stream = device().stream().unwrap();
    let told = Cell::new(0);
    let outcome = stream.capture_told(
        |raw| {
            told.set(told.get() + 1);
            match raw == stream.raw() {
                true => Err(Error::NotSupported {
                    what: "it",
                    reason: "no",
                }),
                false => Ok(()),
            }
        },
        |_| Ok(()),
    );
    assert!(outcome.is_err());
    assert_eq!(told.get(), 2);
}

#[test]
fn a_library_always_gets_its_own_stream_back() {
    let device = device();
    let stream = device.stream().unwrap();
    let told = Cell::new(std::ptr::null_mut());
    let tell = |raw| {
        told.set(raw);
        Ok(())
    };
    let recording = |stream: &hip::Stream| assert_ne!(told.get(), stream.raw());
    stream
        .capture_told(tell, |stream| {
            recording(stream);
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(told.get(), stream.raw());
    let panic = catch_unwind(AssertUnwindSafe(|| {
        stream.capture_told(tell, |stream| -> Result<()> {
            recording(stream);
            panic!("in between")
        })
    }));
    assert!(panic.is_err());
    assert_eq!(told.get(), stream.raw());
    let refused = stream.capture_told(
        |_| {
            Err(Error::NotSupported {
                what: "it",
                reason: "no",
            })
        },
        |_| panic!("nothing is captured for a library that does not follow"),
    );
    assert!(refused.is_err() && !stream.is_capturing());
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn captures_of_two_streams_can_nest() {
    let device = device();
    let (outer, inner) = (device.stream().unwrap(), device.stream().unwrap());
    let mut x = device.alloc_zeroed::<u8>(8).unwrap();
    let mut y = device.alloc_zeroed::<u8>(8).unwrap();
    let mut second = None;
    let first = outer.capture(|outer| {
        x.on_mut(outer)?.fill_zero()?;
        second = Some(inner.capture(|inner| {
            y.on_mut(inner)?.fill_zero()?;
            y.on_mut(inner)?.fill_zero()?;
            x.on_mut(outer)?.fill_zero()
        })?);
        y.on_mut(&inner)?.fill_zero()?;
        x.on_mut(outer)?.fill_zero()
    });
    assert_eq!(first.unwrap().node_count().unwrap(), 3);
    assert_eq!(second.unwrap().node_count().unwrap(), 2);
    inner.synchronize().unwrap();
}

#[test]
fn a_graph_is_destroyed_only_after_its_runs() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    let mut x = device.alloc_zeroed::<u8>(8).unwrap();
    let graph = stream.capture(|stream| x.on_mut(stream)?.fill_zero());
    let graph = graph.unwrap().instantiate().unwrap();
    let gate = Gate::close(&stream);
    let slice = x.on_mut(&stream).unwrap();
    // SAFETY: the graph uses this one buffer.
    unsafe { graph.launch(&stream, &[&slice]) }.unwrap();
    let done = Rc::new(Cell::new(None));
    let (seen, watched) = (done.clone(), stream.clone());
    watch(move |name| match name {
        "hipStreamSynchronize" => gate.open(),
        "hipGraphExecDestroy" => seen.set(Some(watched.is_idle().unwrap())),
        _ => {}
    });
    drop(graph);
    unwatch();
    assert_eq!(done.get(), Some(true), "whether the run was over");
}

#[test]
fn a_graph_keeps_the_code_that_it_runs_loaded_and_is_not_run_in_a_capture() {
    let device = device();
    let (stream, around) = (device.stream().unwrap(), device.stream().unwrap());
    let mut x = device.alloc_zeroed::<i32>(32).unwrap();
    let graph = {
        // The last owner of the module goes before the graph is made ready.
        let increment = increment(&device);
        let config = LaunchConfig::linear(32, 32).unwrap();
        let captured = stream.capture(|stream| {
            let slice = x.on_mut(stream)?;
            // SAFETY: 32 threads on 32 elements.
            unsafe { increment.launch(stream, config, &[&slice]) }
        });
        captured.unwrap()
    };
    let ready = graph.instantiate().unwrap();
    drop(graph);
    let mut seen = [0; 32];
    for runs in 1..3 {
        let slice = x.on_mut(&stream).unwrap();
        // SAFETY: the graph uses this memory and nothing else.
        unsafe { ready.launch(&stream, &[&slice]) }.unwrap();
        x.copy_to_slice(&stream, &mut seen).unwrap();
        assert_eq!(seen, [runs; 32]);
    }

    // ROCm would run it at once, and record nothing.
    let refused = around.capture(|around| {
        let slice = x.on_mut(around)?;
        // SAFETY: as above.
        unsafe { ready.launch(around, &[&slice]) }
    });
    assert!(matches!(refused, Err(Error::NotSupported { .. })));
    x.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [2; 32]);
    assert_eq!(device.runtime().take_deferred_errors().len(), 0);
}
