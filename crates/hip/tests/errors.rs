//! No error gets lost: each is returned, or kept if it came up in a destructor, and none leaks or frees too much.

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{device, runtime};
use hip::{Error, Runtime};

/// Rules of failure hold for the whole process: one test at a time.
fn failures(rules: &str) -> Failures {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    hip_host::faults::set_failures(rules).unwrap();
    Failures { _guard: guard }
}

struct Failures {
    _guard: MutexGuard<'static, ()>,
}

impl Failures {
    fn now(&self, rules: &str) {
        hip_host::faults::set_failures(rules).unwrap();
    }
}

impl Drop for Failures {
    fn drop(&mut self) {
        let _ = hip_host::faults::set_failures("");
    }
}

#[test]
fn out_of_memory_names_call_size_code_and_what_is_left() {
    let failures = failures("");
    let device = device();
    failures.now("hipMalloc:1:2");
    let text = device.alloc::<u64>(512).unwrap_err().to_string();
    assert!(
        text.starts_with("`hipMalloc(4096 bytes)` failed: hipErrorOutOfMemory (2); "),
        "{text}"
    );
    assert!(text.ends_with("iB") && text.contains(" free of "), "{text}");
    assert!(!text.contains('\n'));
    device.alloc::<u64>(512).unwrap();
}

#[test]
fn a_failed_fill_or_copy_leaves_nothing_allocated() {
    let failures = failures("");
    let device = device();
    let stream = device.stream().unwrap();
    let before = device.memory_info().unwrap();
    for rules in ["hipMemsetAsync:1", "async/hipMemsetAsync:1", "hipStreamSynchronize:1"] {
        failures.now(rules);
        assert!(device.alloc_zeroed::<u8>(1 << 20).is_err(), "{rules}");
    }
    for rules in ["hipMemcpyWithStream:1", "hipStreamSynchronize:1"] {
        failures.now(rules);
        assert!(device.alloc_from(&stream, &[1_u8; 1 << 20]).is_err(), "{rules}");
    }
    failures.now("hipHostGetDevicePointer:1");
    assert!(device.alloc_pinned::<u8>(1 << 20).is_err());
    failures.now("");
    stream.synchronize().unwrap();
    assert_eq!(device.memory_info().unwrap(), before);
    // Of a stream that has failed, HIP does not tell whether it still works: what it used stays.
    failures.now("async/hipMemcpyWithStream:1");
    assert!(device.alloc_from(&stream, &[1_u8; 1 << 20]).is_err());
    failures.now("");
    assert!(stream.synchronize().is_err());
    assert!(device.memory_info().unwrap().free <= before.free - (1 << 20));
}

#[test]
fn an_error_in_a_destructor_is_kept_once() {
    let failures = failures("");
    let device = device();
    let buffer = device.alloc::<u8>(100).unwrap();
    failures.now("hipFree:1");
    drop(buffer);
    let errors = device.runtime().take_deferred_errors();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().starts_with("`hipFree("), "{}", errors[0]);
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn an_event_tells_that_its_stream_failed_before_it() {
    let failures = failures("");
    let device = device();
    for event in [device.event().unwrap(), device.shared_event().unwrap()] {
        let (stream, waits) = (device.stream().unwrap(), device.stream().unwrap());
        let mut buffer = device.alloc_zeroed::<u8>(64).unwrap();
        failures.now("async/hipMemsetAsync:1");
        buffer.on_mut(&stream).unwrap().fill_zero().unwrap();
        event.record_on(&stream).unwrap();
        let gate = common::Gate::close(&waits);
        waits.wait(&event).unwrap();
        assert!(event.synchronize().is_err());
        assert!(event.is_complete().is_err());
        // Whatever is recorded later, and however often.
        failures.now("");
        let good = device.stream().unwrap();
        for _ in 0..40 {
            event.record_on(&good).unwrap();
        }
        event.synchronize().unwrap();
        gate.open();
        assert!(waits.synchronize().is_err());
        assert!(stream.synchronize().is_err());
    }
    // Of the streams and buffers that went.
    let _ = device.runtime().take_deferred_errors();
}

#[test]
fn an_error_of_queued_work_comes_up_when_its_buffer_is_dropped() {
    let failures = failures("");
    let device = device();
    let stream = device.stream().unwrap();
    let before = device.memory_info().unwrap();
    let mut other = device.alloc_zeroed::<u8>(1 << 20).unwrap();
    let mut buffer = device.alloc_zeroed::<u8>(1 << 20).unwrap();
    failures.now("async/hipMemsetAsync:1");
    buffer.on_mut(&stream).unwrap().fill_zero().unwrap();
    other.on_mut(&stream).unwrap().fill_zero().unwrap();
    drop(buffer);
    let errors = device.runtime().take_deferred_errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].to_string().starts_with("`hipStreamSynchronize("),
        "{}",
        errors[0]
    );
    // The drop does not take it away: the stream reports it to each caller that waits or copies, in any thread.
    let mut copy = vec![0; 1 << 20];
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(stream.synchronize().is_err()));
        }
    });
    assert!(other.copy_to_slice(&stream, &mut copy).is_err());
    let elsewhere = device.stream().unwrap();
    assert!(other.copy_to_slice(&elsewhere, &mut copy).is_err());
    drop(other);
    assert!(
        device.memory_info().unwrap().free <= before.free - (2 << 20),
        "the stream does not tell whether it still works"
    );
    let errors = device.runtime().take_deferred_errors();
    assert_eq!(errors.len(), 1, "one for each stream: {errors:?}");
}

#[test]
fn a_callback_is_told_how_the_work_went_and_the_stream_tells_it_again() {
    let failures = failures("");
    let device = device();
    let stream = device.stream().unwrap();
    let (sender, told) = std::sync::mpsc::sync_channel(2);
    let sender_of_success = sender.clone();
    stream
        .on_complete(move |outcome| sender_of_success.send(outcome).unwrap())
        .unwrap();
    assert!(told.recv().unwrap().is_ok());
    let mut buffer = device.alloc_zeroed::<u8>(64).unwrap();
    failures.now("async/hipMemsetAsync:1");
    buffer.on_mut(&stream).unwrap().fill_zero().unwrap();
    stream
        .on_complete(move |outcome| sender.send(outcome).unwrap())
        .unwrap();
    let error = told.recv().unwrap().expect_err("the fill failed");
    assert!(error.to_string().starts_with("`work of stream"), "{error}");
    assert!(stream.synchronize().is_err());
}

#[test]
fn an_error_of_queued_work_comes_up_when_its_stream_is_dropped() {
    let failures = failures("");
    let device = device();
    let stream = device.stream().unwrap();
    let mut buffer = device.alloc_zeroed::<u8>(64).unwrap();
    failures.now("async/hipMemsetAsync:1");
    buffer.on_mut(&stream).unwrap().fill_zero().unwrap();
    // The buffer's wait would find it first.
    std::mem::forget(buffer);
    failures.now("");
    let raw = stream.clone();
    drop((stream, raw));
    // The leaked buffer keeps the stream, so nothing has been lost yet and nothing was waited for.
    assert!(device.runtime().take_deferred_errors().is_empty());

    let stream = device.stream().unwrap();
    failures.now("async/hipLaunchHostFunc:1");
    drop(common::Gate::close(&stream));
    drop(stream);
    let errors = device.runtime().take_deferred_errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
}

#[test]
fn memory_of_a_stream_that_does_not_settle_is_leaked_not_freed() {
    let failures = failures("");
    let device = device();
    let stream = device.stream().unwrap();
    let before = device.memory_info().unwrap();
    let mut buffer = device.alloc_zeroed::<u8>(1 << 20).unwrap();
    buffer.on_mut(&stream).unwrap().fill_zero().unwrap();
    failures.now("hipStreamSynchronize:*,hipStreamQuery:*");
    drop(buffer);
    failures.now("");
    assert_eq!(device.runtime().take_deferred_errors().len(), 1);
    assert!(device.memory_info().unwrap().free <= before.free - (1 << 20));
}

#[test]
fn a_buffer_that_cannot_be_closed_comes_back() {
    let failures = failures("");
    let device = device();
    let stream = device.stream().unwrap();
    let before = device.memory_info().unwrap();
    let buffer = device.alloc_from(&stream, &[5_u8; 1 << 20]).unwrap();
    failures.now("hipFree:1");
    let (error, buffer) = buffer.close().unwrap_err();
    assert!(error.to_string().contains("hipFree"), "{error}");
    let mut seen = vec![0; 1 << 20];
    buffer.copy_to_slice(&stream, &mut seen).unwrap();
    assert!(seen.iter().all(|&x| x == 5));
    buffer.close().unwrap();
    let pinned = device.alloc_pinned::<u8>(100).unwrap();
    failures.now("hipHostFree:1");
    let (_, pinned) = pinned.close().unwrap_err();
    pinned.close().unwrap();
    assert_eq!(device.memory_info().unwrap(), before);
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn every_call_with_a_failing_function_returns_its_error() {
    let failures = failures("");
    let device = device();
    let runtime = device.runtime().clone();
    let stream = device.stream().unwrap();
    let event = device.event().unwrap();
    let mut memory = vec![0_u8; 4096];
    let check = |function: &str, outcome: Result<(), Error>| {
        let error = outcome.expect_err(function);
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("`{function}")) && text.contains("hipErrorUnknown (999)"),
            "{text}"
        );
        assert_eq!(error.code(), Some(hip_sys::hipError_t::hipErrorUnknown));
    };
    macro_rules! fails {
        ($function:literal, $call:expr) => {
            failures.now(concat!($function, ":1:999"));
            check($function, $call.map(drop));
        };
    }
    fails!("hipRuntimeGetVersion", runtime.versions());
    fails!("hipDriverGetVersion", runtime.versions());
    fails!("hipGetDeviceCount", runtime.device(0));
    fails!("hipDeviceGetName", device.name());
    fails!("hipGetDevicePropertiesR0600", device.arch());
    fails!("hipDeviceGetPCIBusId", device.pci_address());
    fails!("hipMemGetInfo", device.memory_info());
    fails!(
        "hipDeviceGetAttribute",
        device.attribute(hip_sys::hipDeviceAttribute_t::hipDeviceAttributeWarpSize)
    );
    fails!("hipDeviceSynchronize", device.synchronize());
    fails!("hipStreamCreateWithFlags", device.stream());
    fails!("hipEventCreateWithFlags", device.event());
    fails!("hipEventRecord", event.record_on(&stream));
    fails!("hipEventSynchronize", event.synchronize());
    fails!("hipEventQuery", event.is_complete());
    fails!("hipEventElapsedTime", event.elapsed_since(&event));
    fails!("hipStreamWaitEvent", stream.wait(&event));
    fails!("hipStreamSynchronize", stream.synchronize());
    fails!("hipStreamQuery", stream.is_idle());
    fails!("hipMalloc", device.alloc::<u8>(1));
    fails!("hipHostMalloc", device.alloc_pinned::<u8>(1));
    fails!("hipHostRegister", hip::with_registered(&device, &mut memory, |_| ()));
    fails!(
        "hipHostGetDevicePointer",
        hip::with_registered(&device, &mut memory, |_| ())
    );
    failures.now("");
    assert!(runtime.take_deferred_errors().is_empty());
}

#[test]
fn a_missing_function_is_named_and_hurts_only_its_call() {
    let api = hip_sys::Api {
        hipMemGetInfo: None,
        hipStreamQuery: None,
        hipInit: None,
        ..common::hip_api()
    };
    let _one = failures("");
    let device = runtime(api).device(0).unwrap();
    let error = device.memory_info().unwrap_err();
    assert!(
        matches!(
            error,
            Error::MissingSymbol {
                symbol: "hipMemGetInfo"
            }
        ),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .starts_with("`hipMemGetInfo` is missing from the loaded HIP library"),
        "{error}"
    );
    let stream = device.stream().unwrap();
    assert!(matches!(
        stream.is_idle(),
        Err(Error::MissingSymbol {
            symbol: "hipStreamQuery"
        })
    ));
    stream.synchronize().unwrap();

    // SAFETY: a table without functions makes no promise to break.
    let nothing = unsafe { Runtime::from_tables(hip_sys::Api::EMPTY.into(), None) }.unwrap();
    assert!(matches!(
        nothing.device_count(),
        Err(Error::MissingSymbol {
            symbol: "hipGetDeviceCount"
        })
    ));
}

#[test]
fn no_device_is_a_count_of_zero() {
    let failures = failures("");
    let runtime = runtime(common::hip_api());
    failures.now("hipGetDeviceCount:*:100");
    assert_eq!(runtime.device_count().unwrap(), 0);
    assert!(matches!(
        runtime.device(0),
        Err(Error::NoSuchDevice { ordinal: 0, count: 0 })
    ));
}

#[test]
fn the_error_of_a_stream_that_only_records_keep_is_deferred() {
    let failures = failures("");
    let device = device();
    let nothing = hip::rtc::Program::new("extern \"C\" __global__ void nothing() {}");
    let nothing = nothing.compile(&device).unwrap().function("nothing").unwrap();
    let source = device.alloc_zeroed::<u32>(4).unwrap();
    let launch = |stream: &hip::Stream| {
        let config = hip::LaunchConfig::linear(1, 1).unwrap();
        // SAFETY: the kernel takes nothing and does nothing.
        unsafe { nothing.launch(stream, config, &[]) }.unwrap();
    };
    let read = |stream: &hip::Stream| {
        let mut target = device.alloc::<u32>(4).unwrap();
        let slice = source.on(stream).unwrap();
        target.on_mut(stream).unwrap().copy_from(slice).unwrap();
        // Its drop would wait for the stream.
        std::mem::forget(target);
    };
    let work: [&dyn Fn(&hip::Stream); 2] = [&launch, &read];
    let rules = ["async/hipModuleLaunchKernel:1", "async/hipMemcpyAsync:1"];
    for (rule, work) in rules.into_iter().zip(work) {
        drop(device.runtime().take_deferred_errors());
        failures.now(rule);
        let gone = device.stream().unwrap();
        work(&gone);
        let (tell, told) = std::sync::mpsc::channel();
        gone.on_complete(move |outcome| tell.send(outcome.is_err()).unwrap())
            .unwrap();
        drop(gone);
        assert!(told.recv().unwrap(), "{rule}");
        failures.now("");
        // Records are looked through now and then, and the stream may still be ending when they are.
        let mut deferred = Vec::new();
        for _ in 0..1000 {
            let other = device.stream().unwrap();
            work(&other);
            other.synchronize().unwrap();
            deferred.extend(device.runtime().take_deferred_errors());
            if !deferred.is_empty() {
                break;
            }
        }
        assert_eq!(deferred.len(), 1, "{rule}: {deferred:?}");
    }
}

/// Page-locked memory, which the device reads and writes itself.
#[test]
fn host_memory_is_the_caller_s_again_when_a_copy_returns_with_an_error() {
    let failures = failures("");
    let device = common::watched_device();
    let stream = device.stream().unwrap();
    let mut memory = device.alloc_from(&stream, &[5_u32; 1024]).unwrap();
    let mut host = device.alloc_pinned::<u32>(1024).unwrap();
    let rect = hip::Rect {
        width: 16,
        height: 32,
        source_pitch: 32,
        destination_pitch: 32,
    };
    for which in 0..4 {
        let gate = std::sync::Arc::new(common::Gate::close(&stream));
        // A copy that waits inside of HIP needs the stream to go on.
        common::watch({
            let gate = gate.clone();
            move |name| {
                if name == "hipMemcpyWithStream" {
                    gate.open();
                }
            }
        });
        failures.now("hipStreamSynchronize:*, hipStreamQuery:*");
        let mine = host.host_mut().unwrap();
        mine.fill(7);
        let outcome = match which {
            0 => memory.on(&stream).unwrap().copy_to_slice(mine),
            1 => memory.on(&stream).unwrap().copy_rect_to_slice(mine, rect),
            2 => memory.on_mut(&stream).unwrap().copy_from_slice(mine),
            _ => memory.on_mut(&stream).unwrap().copy_rect_from_slice(mine, rect),
        };
        assert!(outcome.is_err(), "{which}");
        mine.fill(9);
        failures.now("");
        common::unwatch();
        gate.open();
        stream.synchronize().unwrap();
        let kept = mine.iter().all(|&number| number == 9);
        assert!(kept, "written after the copy returned: {which}");
        let mut seen = vec![0; 1024];
        memory.copy_to_slice(&stream, &mut seen).unwrap();
        assert!(!seen.contains(&9), "read after the copy returned: {which}");
    }
}

#[test]
fn registered_memory_that_the_device_may_still_write_is_kept_from_its_owner() {
    let failures = failures("");
    let device = device();
    let stream = device.stream().unwrap();
    let mut memory = vec![7_u32; 1024];
    let address = memory.as_ptr();
    let gate = common::Gate::close(&stream);
    let outcome = hip::with_registered(&device, &mut memory, |mut registered| {
        registered.on_mut(&stream).unwrap().fill_zero().unwrap();
        // From now on HIP answers nothing, as ROCm does once any device of the process has failed.
        failures.now("hipStreamSynchronize:*, hipStreamQuery:*, hipHostUnregister:*");
    });
    failures.now("");
    assert!(outcome.is_err());
    assert!(
        memory.is_empty() && memory.as_ptr() != address,
        "the fill is still to come"
    );
    assert!(!device.runtime().take_deferred_errors().is_empty());
    gate.open();
    stream.synchronize().unwrap();
}

/// Whatever gets its address later would be taken for it.
#[test]
fn memory_that_is_refused_and_yet_stays_registered_is_kept_from_its_owner() {
    let failures = failures("hipHostGetDevicePointer:1, hipHostUnregister:1");
    let device = device();
    let mut memory = vec![7_u32; 1024];
    let outcome = hip::with_registered(&device, &mut memory, |_| ());
    failures.now("");
    let error = outcome.unwrap_err().to_string();
    assert!(error.starts_with("`hipHostGetDevicePointer("), "{error}");
    assert!(memory.is_empty(), "HIP still has its pages");
    assert_eq!(device.runtime().take_deferred_errors().len(), 1);
}

#[test]
fn registered_memory_that_hip_does_not_let_go_of_is_not_given_back_as_a_success() {
    let failures = failures("");
    let device = device();
    let stream = device.stream().unwrap();
    let mut memory = vec![7_u32; 1024];
    let outcome = hip::with_registered(&device, &mut memory, |mut registered| {
        registered.on_mut(&stream).unwrap().fill_zero().unwrap();
        failures.now("hipHostUnregister:1");
    });
    let error = outcome.unwrap_err().to_string();
    assert!(error.starts_with("`hipHostUnregister("), "{error}");
    assert!(memory.is_empty());
    assert!(
        device.runtime().take_deferred_errors().is_empty(),
        "returned, not deferred"
    );
}

#[test]
fn a_foreign_stream_of_which_hip_does_not_tell_whether_it_is_captured_gets_no_work() {
    let failures = failures("");
    let device = device();
    let own = device.stream().unwrap();
    // SAFETY: a live stream, which the owner keeps.
    let foreign = unsafe { hip::Stream::from_raw(&device, own.raw(), own.clone()) }.unwrap();
    let mut buffer = device.alloc_zeroed::<u32>(16).unwrap();
    failures.now("hipStreamIsCapturing:*");
    let refused = buffer.on_mut(&foreign).and_then(|mut slice| slice.fill_zero());
    failures.now("");
    let error = refused.unwrap_err().to_string();
    assert!(error.starts_with("`hipStreamIsCapturing("), "{error}");
    buffer.on_mut(&foreign).unwrap().fill_zero().unwrap();
}
