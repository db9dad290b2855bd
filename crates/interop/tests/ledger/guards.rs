use std::sync::mpsc::Sender;
use std::time::Duration;

use interop::{Bridge, Error, Grade, HipGuard, Options, Route, Shared};

use crate::{LEN, Rig, Sum, common, hold};

/// Far longer than a hand-off takes, and short enough for a test.
const LIMIT: Duration = Duration::from_millis(700);

/// The routes on which both sides hold the bytes themselves.
fn direct(rig: &Rig) -> Vec<Route> {
    let wanted = [Route::SvmCoarse, Route::GpuVa, Route::HipPointer];
    let working = rig.bridge.report().working();
    working.filter(|route| wanted.contains(route)).collect()
}

fn ones(rig: &Rig, route: Route) -> Shared<u32> {
    let mut shared = rig.bridge.alloc_on::<u32>(route, LEN).expect("memory");
    shared.upload(&[1; LEN]).expect("an upload");
    shared
}

fn assert_names_both(error: &Error, before: &str, after: &str) {
    assert!(matches!(error, Error::HandoffTimeout { .. }), "{error}");
    let text = error.to_string();
    let order = (text.find(before), text.find(after));
    assert!(matches!(order, (Some(before), Some(after)) if before < after), "{text}");
}

/// Asserts that an OpenCL writer now comes after the stream, which is blocked.
fn assert_a_writer_waits(rig: &Rig, shared: &mut Shared<u32>, route: Route) {
    let queue = &rig.queues[1];
    let grade = shared.grade();
    let granted = shared.cl_mut(queue).map(drop);
    let error = match grade {
        Grade::Host => granted.expect_err("the stream is held"),
        _ => {
            granted.expect("the caller does not wait");
            // The queue is not stuck; the driver chooses whether it then runs or fails.
            let _ = queue.finish();
            shared.cl_mut(queue).map(drop).expect_err("the stream is held")
        }
    };
    let stream = format!("HIP stream {:#x}", rig.streams[0].raw().addr());
    assert_names_both(&error, &stream, "OpenCL queue");
    assert!(error.to_string().contains(&grade.to_string()), "{route}: {error}");
}

/// A kernel that runs under the guard once the gate opens; the gate must be dropped first.
fn held_sum(rig: &Rig, stream: &hip::Stream, reader: &HipGuard<'_, u32>) -> (Sum, Sender<()>) {
    let held = hold(stream);
    (rig.hip_sum(stream, reader.slice()), held)
}

/// A stream wrote, and holds a reader guard; then another reader waits for the write.
fn a_stream_that_wrote_and_reads(grade: Grade) {
    let rig = Rig::open(grade, LIMIT);
    let stream = &rig.streams[0];
    for route in direct(&rig) {
        let mut shared = ones(&rig, route);
        let mut guard = shared.hip_mut(stream).expect("access for HIP");
        rig.hip_step(stream, guard.slice_mut(), 1);
        drop(guard);
        let reader = shared.hip(stream).expect("access for HIP");
        let other = shared.cl(&rig.queues[0]).expect("access for OpenCL");
        drop(other);
        rig.queues[0].finish().expect("a queue");
        let (sum, held) = held_sum(&rig, stream, &reader);
        // Leaked.
        let _ = std::mem::ManuallyDrop::new(reader);
        assert_a_writer_waits(&rig, &mut shared, route);
        drop(held);
        let mut words = [1; LEN];
        crate::model_hip(&mut words, 1);
        let expected = words.iter().fold(0_u32, |sum, word| sum.wrapping_add(*word));
        assert_eq!(sum.read(), expected, "{route}");
        // So does freeing the memory.
        shared.upload(&[1; LEN]).expect("access after the wait");
        drop(shared.hip_mut(stream).expect("access for HIP"));
        let reader = shared.hip(stream).expect("access for HIP");
        drop(shared.cl(&rig.queues[0]).expect("access for OpenCL"));
        let held = hold(stream);
        drop(reader);
        drop(shared);
        let errors = rig.bridge.take_deferred_errors();
        assert_eq!(errors.len(), 1, "{route}: {errors:?}");
        assert_names_both(&errors[0], "HIP stream", "the calling thread");
        drop(held);
        stream.synchronize().expect("a stream");
    }
}

#[test]
fn a_reader_that_wrote_before_is_waited_for_by_the_host() {
    a_stream_that_wrote_and_reads(Grade::Host);
}

#[test]
fn a_reader_that_wrote_before_is_waited_for_by_callbacks() {
    if common::grades().contains(&Grade::Callback) {
        a_stream_that_wrote_and_reads(Grade::Callback);
    } else {
        common::skipped("the grade is not proven here");
    }
}

#[test]
fn a_reader_that_wrote_before_is_waited_for_by_the_device() {
    if common::grades().contains(&Grade::Device) {
        a_stream_that_wrote_and_reads(Grade::Device);
    } else {
        common::skipped("the grade is not proven here");
    }
}

#[test]
fn a_reader_of_a_part_that_wrote_before_is_waited_for() {
    let rig = Rig::open(Grade::Host, LIMIT);
    let stream = &rig.streams[0];
    let mut shared = ones(&rig, Route::SvmCoarse);
    let held = {
        let (mut left, _right) = shared.split_at_mut(LEN / 2).expect("two parts");
        drop(left.hip_mut(stream).expect("access for HIP"));
        let reader = left.hip(stream).expect("access for HIP");
        drop(left.cl(&rig.queues[0]).expect("access for OpenCL"));
        let held = hold(stream);
        drop(reader);
        let error = left.cl_mut(&rig.queues[1]).map(drop);
        assert_names_both(&error.expect_err("the stream is held"), "HIP stream", "OpenCL queue");
        held
    };
    drop(held);
    shared.upload(&[1; LEN]).expect("access after the wait");
}

#[test]
fn a_reader_is_waited_for_after_a_hand_off_before_it_failed() {
    if !common::on_host_or_skip("a queue is held behind a user event") {
        return;
    }
    let ahead = common::grades().iter().filter(|&&grade| grade != Grade::Host);
    for &grade in ahead {
        let rig = Rig::open(grade, LIMIT);
        let stream = &rig.streams[0];
        let mut shared = ones(&rig, Route::SvmCoarse);
        let late = clmgr::UserEvent::new(rig.bridge.cl_context()).expect("a user event");
        rig.queues[0].wait_for(late.event()).expect("a wait");
        drop(shared.cl_mut(&rig.queues[0]).expect("access for OpenCL"));
        let reader = shared.hip(stream).expect("the caller does not wait");
        stream.synchronize().expect("the watchdog lets it go");
        let error = shared.hip(&rig.streams[1]).map(drop);
        assert_names_both(&error.expect_err("the queue is held"), "OpenCL queue", "HIP stream");
        late.complete().expect("a user event");
        drop(shared.hip(&rig.streams[1]).expect("everyone was waited for"));
        let (sum, held) = held_sum(&rig, stream, &reader);
        drop(reader);
        assert_a_writer_waits(&rig, &mut shared, Route::SvmCoarse);
        drop(held);
        assert_eq!(sum.read(), LEN as u32, "{grade}");
    }
}

#[test]
fn streams_of_another_runtime_are_refused_and_release_no_user() {
    let elsewhere = Bridge::open(&common::selection(), &Options::default()).expect("a bridge");
    let foreign = elsewhere.stream().expect("a stream");
    for grade in common::grades().iter().copied() {
        let rig = Rig::open(grade, Duration::from_secs(60));
        let mut shared = ones(&rig, Route::SvmCoarse);
        let refused = |result: interop::Result<()>| {
            let error = result.expect_err("another runtime's");
            assert!(matches!(error, Error::OtherOwner { what: "stream", .. }), "{error}");
        };
        refused(shared.hip_mut(&foreign).map(drop));
        refused(shared.hip(&foreign).map(drop));
        let part = shared.part(0..LEN).expect("a part");
        refused(part.hip(&foreign).map(drop));
        refused(shared.part_mut(0..LEN).expect("a part").hip_mut(&foreign).map(drop));
    }
}

#[test]
fn a_stream_that_is_being_captured_is_never_ordered() {
    for grade in common::grades().iter().copied() {
        let rig = Rig::open(grade, Duration::from_secs(60));
        let mut shared = ones(&rig, Route::SvmCoarse);
        let (queue, stream, captured) = (&rig.queues[0], &rig.streams[0], &rig.streams[1]);
        let refused = |result: interop::Result<()>| {
            let error = result.expect_err("it is being captured");
            assert!(matches!(error, Error::Capturing { .. }), "{grade}: {error}");
        };
        for is_cl in [true, false] {
            match is_cl {
                true => drop(shared.cl_mut(queue).expect("access for OpenCL")),
                false => drop(shared.hip_mut(stream).expect("access for HIP")),
            }
            let graph = captured.capture(|captured| {
                refused(shared.hip(captured).map(drop));
                refused(shared.hip_mut(captured).map(drop));
                Ok(())
            });
            graph.expect("nothing spoils it");
            drop(shared.hip_mut(captured).expect("it runs again"));
            let graph = captured.capture(|_| {
                refused(shared.cl(queue).map(drop));
                refused(shared.hip_mut(stream).map(drop));
                Ok(())
            });
            graph.expect("nothing spoils it");
        }
        shared.upload(&[5; LEN]).expect("access after the captures");
    }
}

#[test]
fn what_a_stream_wrote_before_its_capture_is_read_meanwhile() {
    for grade in common::grades().iter().copied() {
        let rig = Rig::open(grade, Duration::from_secs(60));
        let mut shared = ones(&rig, Route::SvmCoarse);
        let captured = &rig.streams[1];
        drop(shared.hip_mut(captured).expect("access"));
        // From now on the reader follows the writer without a wait.
        let mut data = [0; LEN];
        shared.download(&mut data).expect("a download");
        let graph = captured.capture(|_| {
            shared.download(&mut data).expect("nothing new to wait for");
            Ok(())
        });
        graph.expect("nothing spoils it");
        assert_eq!(data, [1; LEN], "{grade}");
    }
}

#[test]
fn dropped_streams_that_used_a_buffer_do_not_accumulate() {
    if !common::on_host_or_skip("the software device's streams are threads") {
        return;
    }
    const STREAMS: usize = 200;
    for grade in common::grades().iter().copied() {
        let rig = Rig::open(grade, Duration::from_secs(60));
        let mut shared = ones(&rig, Route::SvmCoarse);
        let threads = || {
            let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
            tasks
                .filter_map(|task| {
                    let name = task.ok()?.path().join("comm");
                    std::fs::read_to_string(name).ok()
                })
                .count()
        };
        let before = threads();
        for k in 0..STREAMS as u32 {
            let stream = rig.bridge.stream().expect("a stream");
            rig.hip_step(&stream, shared.hip_mut(&stream).expect("access").slice_mut(), k);
            let queue = &rig.queues[0];
            rig.cl_step(queue, shared.cl_mut(queue).expect("access").arg(), LEN, k);
            // Streams with running work are kept.
            queue.finish().expect("a queue");
        }
        let more = threads().saturating_sub(before);
        assert!(more < STREAMS / 2, "{grade}: {more} more threads");
    }
}

#[test]
fn dropped_queues_that_read_a_buffer_do_not_accumulate() {
    const QUEUES: usize = 200;
    for grade in common::grades().iter().copied() {
        let rig = Rig::open(grade, Duration::from_secs(60));
        for route in direct(&rig) {
            let mut shared = ones(&rig, route);
            let writer = &rig.queues[0];
            let written = shared.cl_mut(writer).expect("access for OpenCL");
            rig.cl_step(writer, written.arg(), LEN, 1);
            let mut used = Vec::new();
            let leaking = rig.bridge.queue().expect("a queue");
            std::mem::forget(shared.cl(&leaking).expect("access for OpenCL"));
            for _ in 0..QUEUES {
                let queue = rig.bridge.queue().expect("a queue");
                let reader = shared.cl(&queue).expect("access for OpenCL");
                let sum = rig.cl_sum(&queue, reader.arg(), LEN);
                drop(reader);
                // What has not run keeps its queue.
                let _ = sum.read();
                used.push(queue.downgrade());
            }
            let kept = used.iter().filter(|queue| queue.upgrade().is_some()).count();
            assert!(kept < QUEUES / 2, "{grade}, {route}: {kept} are kept");
        }
    }
}
