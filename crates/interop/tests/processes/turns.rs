//! Turns that fail, sides that talk instead of ending, and work that does not end.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use interop::{Bridge, Carrier, Error, Grade, Joint, Link, Options, PeerError};
use rustix::net::SendFlags;

use crate::child::kernels;
use crate::exchange::memory;
use crate::wire::{ACCEPTED, FAILED_TURN, TURN, message, pair, receive, send};
use crate::{LEN, LIMIT, alone, common, open};

/// A joint whose other side is this test, byte by byte.
fn exported(bridge: &Bridge, carrier: Carrier, limit: Duration) -> (Joint<u32>, OwnedFd) {
    let (link, theirs) = pair();
    send(&theirs, &message(ACCEPTED), &[]);
    let joint = memory(bridge, carrier)
        .export_by(carrier, link.with_limit(limit))
        .expect("an export");
    receive(&theirs);
    (joint, theirs)
}

/// Both sides in this process, each on a bridge.
fn both(exporter: &Bridge, importer: &Bridge) -> (Joint<u32>, Joint<u32>) {
    let (link, theirs) = Link::pair().expect("a link");
    let importer = std::thread::spawn({
        let importer = importer.clone();
        move || {
            let link = theirs.into_link().with_limit(LIMIT);
            // SAFETY: the other end is this test.
            unsafe { importer.import::<u32>(link) }
        }
    });
    let ours = memory(exporter, Carrier::HipFd)
        .export(link.with_limit(LIMIT))
        .expect("an export");
    let theirs = importer.join().expect("no panic").expect("an import");
    (ours, theirs)
}

/// Every kernel fails when its stream gets to it, until dropped.
struct Failing;

impl Failing {
    fn launches() -> Self {
        hip_host::faults::set_failures("async/hipModuleLaunchKernel:*").expect("a rule");
        Self
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        hip_host::faults::set_failures("").expect("no rule");
    }
}

#[test]
fn work_that_fails_behind_a_queued_turn_is_told_with_the_turn() {
    let _alone = alone();
    let bridge = open();
    let (_, add) = kernels(&bridge);
    let (mut joint, theirs) = exported(&bridge, Carrier::HipFd, LIMIT);
    joint.upload(&[0; LEN]).expect("an upload");
    let stream = bridge.main_stream();
    let failing = Failing::launches();
    {
        let mut guard = joint.hip_mut(stream).expect("access");
        let config = hip::LaunchConfig::linear(LEN, 256).expect("a grid");
        // SAFETY: the kernel touches as many words as it is told.
        unsafe { add.launch(stream, config, &[&guard.slice_mut(), &(LEN as u32)]) }.expect("a launch");
    }
    joint.pass_queued().expect("nothing is known yet");
    let turn = receive(&theirs);
    drop(failing);
    assert_eq!(turn[10..12], FAILED_TURN.to_le_bytes());
    let reason = String::from_utf8_lossy(&turn[136..]).into_owned();
    assert!(reason.contains("hip"), "{reason}");
    // The stream tells its own user, too.
    stream.synchronize().expect_err("the kernel failed");
}

#[test]
fn a_turn_whose_work_failed_is_taken_with_the_reason() {
    let _alone = alone();
    let bridge = open();
    let (mut joint, theirs) = exported(&bridge, Carrier::HipFd, LIMIT);
    joint.pass().expect("passed");
    let mut turn = message(FAILED_TURN);
    turn[16] = 1;
    turn[136..144].copy_from_slice(b"no power");
    send(&theirs, &turn, &[]);
    let error = joint.take().expect_err("their work failed");
    assert!(
        matches!(&error, Error::Peer(PeerError::Failed { reason, .. }) if reason == "no power"),
        "{error}"
    );
    assert!(joint.has_turn());
    joint.upload(&[1; LEN]).expect("this side's turn");
}

#[test]
fn an_importer_hands_over_as_its_bridge_does() {
    let _alone = alone();
    if !crate::common::grade_or_skip(Grade::Callback) {
        return;
    }
    let bridge = open();
    let callback = bridge.with_grade(Grade::Callback).expect("proven");
    let (ours, theirs) = both(&bridge, &callback);
    assert_eq!((ours.grade(), theirs.grade()), (Grade::Host, Grade::Callback));
}

#[test]
fn the_limit_is_for_all_of_a_wait_however_much_the_other_side_talks() {
    let _alone = alone();
    let bridge = open();
    let limit = Duration::from_secs(2);
    // Dropped after that, it would wait for the importer of a handle.
    let (joint, theirs) = exported(&bridge, Carrier::IpcHandle, limit);
    let theirs = Arc::new(theirs);
    let ended = Arc::new(AtomicBool::new(false));
    let talking = std::thread::spawn({
        let (theirs, ended) = (theirs.clone(), ended.clone());
        move || {
            while !ended.load(Ordering::Relaxed) {
                // The socket may be full.
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                let _ = rustix::net::send(&*theirs, &message(TURN), flags);
            }
        }
    });
    let (tell, told) = mpsc::channel();
    let begin = Instant::now();
    std::thread::spawn(move || tell.send(joint.into_shared().map(drop)));
    let outcome = told.recv_timeout(10 * limit);
    let elapsed = begin.elapsed();
    ended.store(true, Ordering::Relaxed);
    talking.join().expect("no panic");
    let error = outcome.expect("an end").expect_err("it stays");
    assert!(matches!(error, Error::Peer(PeerError::Late { .. })), "{error}");
    assert!(elapsed >= limit && elapsed < 2 * limit, "{elapsed:?}");
    assert_eq!(bridge.lent_out(), 1);
    drop(theirs);
    assert_eq!(bridge.lent_out(), 0);
    assert_eq!(bridge.take_deferred_errors().len(), 1);
}

#[test]
fn an_importer_whose_work_does_not_end_does_not_hang_up() {
    let _alone = alone();
    let bridge = open();
    let options = Options {
        handoff_limit: Some(Duration::from_millis(50)),
        ..Options::default()
    };
    let impatient = Bridge::open(&common::host(), &options).expect("a bridge");
    let (mut ours, mut theirs) = both(&bridge, &impatient);
    ours.pass().expect("passed");
    theirs.take().expect("a turn");
    let stream = impatient.stream().expect("a stream");
    let (open, opened) = mpsc::channel::<()>();
    stream
        .host_function(move || {
            let _: Result<(), _> = opened.recv();
        })
        .expect("a gate");
    drop(theirs.hip_mut(&stream).expect("access"));
    drop(theirs);
    ours.set_limit(Duration::from_millis(20));
    let error = ours.take().expect_err("no turn comes");
    assert!(matches!(error, Error::Peer(PeerError::Late { .. })), "{error}");
    assert!(!impatient.take_deferred_errors().is_empty());
    drop(open);
    stream.synchronize().expect("the gate is open");
}
