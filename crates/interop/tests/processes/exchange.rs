//! Data crosses in both directions, and both APIs of both processes see it.

use std::time::Duration;

use interop::{Bridge, Carrier, Error, Grade, Joint, Link, Options, PeerError, Route, Shared};

use crate::child::{step, stepped};
use crate::{LEN, Second, alone, open};

/// Memory that this carrier takes on the host platform.
pub fn memory(bridge: &Bridge, carrier: Carrier) -> Shared<u32> {
    match carrier {
        Carrier::HipFd => bridge.alloc_exportable(LEN),
        _ => bridge.alloc_on(Route::HipPointer, LEN),
    }
    .expect("memory")
}

fn contents(joint: &Joint<u32>) -> Vec<u32> {
    let mut words = vec![0; joint.len()];
    joint.download(&mut words).expect("a download");
    words
}

#[test]
fn every_carrier_brings_the_bytes_across_and_back_without_a_copy() {
    let _alone = alone();
    let bridge = open();
    for carrier in Carrier::ALL {
        let (second, link) = Second::start("work");
        let mut data = memory(&bridge, carrier);
        let mut model: Vec<u32> = (0..LEN as u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
        data.upload(&model).expect("an upload");
        let before = bridge.meter().snapshot();
        let mut joint = data.export_by(carrier, link).expect("an export");
        assert_eq!(joint.carrier(), carrier);
        assert_eq!(joint.peer(), Some(second.id()));
        for _ in 0..3 {
            step(&bridge, &mut joint);
            joint.pass().expect("passed");
            joint.take().expect("a turn");
            for word in &mut model {
                *word = stepped(stepped(*word));
            }
        }
        let copies = bridge.meter().snapshot().since(&before);
        assert_eq!(copies.data_set, 0, "{carrier}");
        assert!(contents(&joint) == model, "{carrier}");
        drop(joint);
        second.ended_well();
    }
    assert!(bridge.take_deferred_errors().is_empty());
    assert!(bridge.hip_runtime().take_deferred_errors().is_empty());
}

#[test]
fn a_turn_that_is_queued_comes_after_the_work() {
    let _alone = alone();
    let bridge = open();
    let (second, link) = Second::start("queue");
    let mut joint = memory(&bridge, Carrier::HipFd).export(link).expect("an export");
    joint.upload(&[5; LEN]).expect("an upload");
    joint.pass_queued().expect("passed");
    joint.take().expect("a turn");
    assert_eq!(contents(&joint), [stepped(5); LEN]);
    drop(joint);
    second.ended_well();
}

#[test]
fn a_queued_turn_after_a_hand_off_that_was_given_up_says_so_when_the_work_has_ended() {
    let _alone = alone();
    if !crate::common::grade_or_skip(Grade::Callback) {
        return;
    }
    let options = Options {
        grade: Some(Grade::Callback),
        handoff_limit: Some(Duration::from_millis(300)),
        ..Options::default()
    };
    type Use = fn(&mut Joint<u32>, &clmgr::Queue);
    let writes: Use = |joint, queue| drop(joint.cl_mut(queue).expect("access"));
    let leaks: Use = |joint, queue| std::mem::forget(joint.cl_mut(queue).expect("access"));
    let reads: Use = |joint, queue| drop(joint.cl(queue).expect("access"));
    for uses in [writes, leaks, reads] {
        let bridge = Bridge::open(&crate::common::host(), &options).expect("a bridge");
        let (mut second, link) = Second::start("take-a-late-turn");
        let mut joint = memory(&bridge, Carrier::HipFd).export(link).expect("an export");
        let queue = bridge.queue().expect("a queue");
        let held = clmgr::UserEvent::new(bridge.cl_context()).expect("an event");
        queue.wait_for(held.event()).expect("a wait");
        uses(&mut joint, &queue);
        joint.pass_queued().expect("passed");
        bridge.main_stream().synchronize().expect("it is let go");
        // The other process would end with a turn that came too early.
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_millis(300) {
            assert!(second.is_running());
            std::thread::yield_now();
        }
        held.complete().expect("an event");
        second.ended_well();
        drop(joint);
        drop(bridge.take_deferred_errors());
    }
}

#[test]
fn a_process_without_the_turn_gets_no_access() {
    let _alone = alone();
    let bridge = open();
    let (second, link) = Second::start("work");
    let mut joint = memory(&bridge, Carrier::HipFd).export(link).expect("an export");
    assert!(joint.has_turn() && joint.try_take().expect("ours already"));
    joint.pass().expect("passed");
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let refused: [Option<Error>; 6] = [
        joint.cl(&queue).err(),
        joint.cl_mut(&queue).err(),
        joint.hip(&stream).err(),
        joint.hip_mut(&stream).err(),
        joint.upload(&[0; LEN]).err(),
        joint.pass().err(),
    ];
    for error in refused {
        let text = error.as_ref().map(ToString::to_string);
        assert!(
            matches!(error, Some(Error::Peer(PeerError::NotOurTurn { .. }))),
            "{text:?}"
        );
    }
    joint.take().expect("a turn");
    drop(joint);
    second.ended_well();
}

#[test]
fn the_process_itself_takes_descriptors_and_refuses_handles_as_rocm_does() {
    let _alone = alone();
    let bridge = open();
    let import = |theirs: interop::LinkEnd| {
        let bridge = bridge.clone();
        std::thread::spawn(move || {
            // SAFETY: the other side is this very test.
            unsafe { bridge.import::<u32>(theirs.into_link()) }
        })
    };
    for carrier in [Carrier::HipFd, Carrier::DmaBuf] {
        let (link, theirs) = Link::pair().expect("a link");
        let importer = import(theirs);
        let mut ours = memory(&bridge, carrier).export_by(carrier, link).expect("an export");
        let mut other = importer.join().expect("no panic").expect("an import");
        ours.upload(&[3; LEN]).expect("an upload");
        ours.pass().expect("passed");
        other.take().expect("a turn");
        assert_eq!(contents(&other), [3; LEN], "{carrier}");
        step(&bridge, &mut other);
        other.pass().expect("passed");
        ours.take().expect("a turn");
        assert_eq!(contents(&ours), [stepped(3); LEN], "{carrier}");
    }
    let (link, theirs) = Link::pair().expect("a link");
    let importer = import(theirs);
    let refused = memory(&bridge, Carrier::IpcHandle)
        .export_by(Carrier::IpcHandle, link)
        .expect_err("its own handle");
    let text = refused.to_string();
    assert!(
        matches!(refused.error, Error::Peer(PeerError::Refused { .. })),
        "{text}"
    );
    assert!(text.contains("hipErrorInvalidContext"), "{text}");
    let error = importer.join().expect("no panic").expect_err("refused");
    assert!(error.to_string().contains("hipErrorInvalidContext"), "{error}");
    // The buffer is as it was.
    let mut buffer = refused.buffer.expect("it was refused");
    buffer.upload(&[1; LEN]).expect("an upload");
}

#[test]
fn memory_that_nothing_carries_comes_back_with_a_reason_for_each_carrier() {
    let _alone = alone();
    let bridge = open();
    for route in [Route::SvmCoarse, Route::HostPinned, Route::Staging] {
        let (link, _theirs) = Link::pair().expect("a link");
        let data = bridge.alloc_on::<u32>(route, LEN).expect("memory");
        let not = data.export(link).expect_err("no way out");
        let Error::Peer(PeerError::NotPossible { tried }) = &not.error else {
            panic!("{route}: {not}");
        };
        let carriers: Vec<_> = tried.iter().map(|(carrier, _)| *carrier).collect();
        assert_eq!(carriers, Carrier::ALL, "{route}");
        assert!(not.error.is_impossible());
        let buffer = not.buffer.expect("no peer was told of it");
        assert_eq!(buffer.route(), route);
    }
}
