//! Either process is killed at chosen points; the other one goes on.

use std::time::Duration;

use interop::{Bridge, Carrier, Error, Joint, Link, PeerError};

use crate::child::{step, stepped};
use crate::exchange::memory;
use crate::{LEN, Second, alone, open};

fn gone(error: &Error) -> bool {
    matches!(error, Error::Peer(PeerError::Gone { .. }))
}

fn import(bridge: &Bridge, link: Link) -> interop::Result<Joint<u32>> {
    // SAFETY: the other process runs this program too.
    unsafe { bridge.import(link) }
}

/// The device memory that is in use.
fn used(bridge: &Bridge) -> usize {
    let info = bridge.hip_device().memory_info().expect("a device");
    info.total - info.free
}

#[test]
fn an_importer_that_dies_before_it_imports_gives_the_buffer_back() {
    let _alone = alone();
    let bridge = open();
    let (second, link) = Second::start("die");
    let mut data = memory(&bridge, Carrier::HipFd);
    data.upload(&[8; LEN]).expect("an upload");
    let not = data.export(link).expect_err("no peer takes it");
    assert!(gone(&not.error), "{not}");
    let mut words = [0; LEN];
    let buffer = not.buffer.expect("no peer has it");
    buffer.download(&mut words).expect("the buffer is whole");
    assert_eq!(words, [8; LEN]);
    second.was_killed();
}

#[test]
fn an_importer_that_dies_leaves_the_exporter_its_memory_and_leaks_none() {
    let _alone = alone();
    let bridge = open();
    for carrier in Carrier::ALL {
        let before = used(&bridge);
        for role in ["import-and-die", "take-and-die"] {
            let (second, link) = Second::start(role);
            let mut joint = memory(&bridge, carrier).export_by(carrier, link).expect("an export");
            joint.upload(&[4; LEN]).expect("an upload");
            if role == "take-and-die" {
                joint.pass().expect("passed");
                let error = joint.take().expect_err("it was killed in its turn");
                assert!(gone(&error), "{error}");
            } else {
                second.was_killed();
                // It is this side's turn, so that nothing is needed of the other.
                step(&bridge, &mut joint);
                let error = joint.pass().expect_err("no peer is left");
                assert!(gone(&error), "{error}");
                assert!(joint.has_turn());
            }
            let data = joint.into_shared().expect("the memory is this process's");
            let mut words = [0; LEN];
            data.download(&mut words).expect("a download");
            if role == "import-and-die" {
                assert_eq!(words, [stepped(4); LEN], "{carrier}");
            }
            drop(data);
        }
        assert_eq!(used(&bridge), before, "{carrier}");
    }
    assert!(bridge.take_deferred_errors().is_empty());
}

#[test]
fn an_exporter_that_dies_before_its_offer_is_noticed() {
    let _alone = alone();
    let bridge = open();
    let (second, link) = Second::start("die");
    let error = import(&bridge, link).expect_err("nothing was offered");
    assert!(gone(&error), "{error}");
    second.was_killed();
}

#[test]
fn an_exporter_that_dies_in_its_turn_is_noticed_and_a_descriptor_keeps_the_bytes() {
    let _alone = alone();
    let bridge = open();
    let pattern: Vec<u32> = (0..LEN as u32).collect();
    for carrier in Carrier::ALL {
        let (second, link) = Second::start(&format!("export-and-die {carrier}"));
        let mut joint = import(&bridge, link).expect("an import");
        let error = joint.take().expect_err("it was killed in its turn");
        assert!(gone(&error), "{error}");
        second.was_killed();
        match joint.into_shared() {
            Ok(data) => {
                assert!(carrier.outlives_exporter(), "{carrier}");
                let mut words = vec![0; LEN];
                data.download(&mut words).expect("a download");
                assert_eq!(words, pattern, "{carrier}");
            }
            Err(error) => {
                assert!(!carrier.outlives_exporter(), "{carrier}: {error}");
                assert!(matches!(error, Error::Peer(PeerError::MemoryGone { .. })), "{error}");
            }
        }
    }
}

#[test]
fn an_exporter_that_dies_in_the_importers_turn_takes_only_memory_of_a_handle_along() {
    let _alone = alone();
    let bridge = open();
    for carrier in Carrier::ALL {
        let (second, link) = Second::start(&format!("pass-and-die {carrier}"));
        let mut joint = import(&bridge, link).expect("an import");
        joint.take().expect("a turn");
        joint.pass().expect("passed");
        joint.take().expect("passed before it died");
        second.was_killed();
        let mut words = vec![0; LEN];
        if carrier.outlives_exporter() {
            step(&bridge, &mut joint);
            joint.download(&mut words).expect("a download");
            assert!((0..).map(stepped).zip(&words).all(|(a, b)| a == *b));
        } else {
            let error = joint.download(&mut words).expect_err("not its memory");
            let text = error.to_string();
            assert!(matches!(error, Error::Peer(PeerError::MemoryGone { .. })), "{text}");
        }
        let error = joint.pass();
        assert!(error.is_err());
    }
    assert!(bridge.take_deferred_errors().is_empty());
}

#[test]
fn an_exporter_that_drops_its_side_waits_for_the_importer_of_a_handle_only() {
    let _alone = alone();
    let bridge = open();
    for carrier in Carrier::ALL {
        let (second, link) = Second::start(&format!("export-and-drop {carrier}"));
        let mut joint = import(&bridge, link).expect("an import");
        joint.take().expect("a turn");
        if carrier.outlives_exporter() {
            // It ends while this side still has the memory.
            second.ended_well();
            let data = joint.into_shared().expect("the last owner");
            let mut words = vec![0; LEN];
            data.download(&mut words).expect("a download");
            assert!((0..).zip(&words).all(|(a, b)| a == *b), "{carrier}");
        } else {
            drop(joint);
            second.ended_well();
        }
    }
}

#[test]
fn memory_that_an_importer_of_a_handle_keeps_is_freed_once_that_has_ended() {
    let _alone = alone();
    let bridge = open();
    let (second, link) = Second::start("import-and-keep");
    let before = used(&bridge);
    let mut joint = memory(&bridge, Carrier::IpcHandle)
        .export_by(Carrier::IpcHandle, link)
        .expect("an export");
    joint.set_limit(Duration::from_millis(20));
    drop(joint);
    let errors = bridge.take_deferred_errors();
    assert!(
        matches!(errors[..], [Error::Peer(PeerError::Late { .. })]),
        "{errors:?}"
    );
    assert_eq!(bridge.lent_out(), 1);
    assert!(used(&bridge) > before, "not freed under the other process");
    drop(second);
    assert_eq!(bridge.lent_out(), 0);
    assert_eq!(used(&bridge), before);
}

#[test]
fn memory_that_was_offered_and_may_be_open_is_not_given_back() {
    let _alone = alone();
    let bridge = open();
    let before = used(&bridge);
    for carrier in Carrier::ALL {
        // It takes the offer, and says nothing.
        let (link, theirs) = Link::pair().expect("a link");
        let link = link.with_limit(Duration::from_millis(20));
        let not = memory(&bridge, carrier)
            .export_by(carrier, link)
            .expect_err("no answer");
        assert!(matches!(not.error, Error::Peer(PeerError::Late { .. })), "{not}");
        assert!(not.buffer.is_none(), "{carrier}");
        // A descriptor keeps the memory by itself.
        let lent = usize::from(!carrier.outlives_exporter());
        assert_eq!(bridge.lent_out(), lent, "{carrier}");
        assert_eq!(used(&bridge) > before, lent > 0, "{carrier}");
        drop(theirs);
        // The next export looks after it too.
        let (link, theirs) = Link::pair().expect("a link");
        drop(theirs);
        let not = memory(&bridge, Carrier::HipFd)
            .export(link)
            .expect_err("no peer is left");
        assert!(gone(&not.error) && not.buffer.is_some(), "{not}");
        drop(not);
        assert_eq!(used(&bridge), before, "{carrier}");
        assert_eq!(bridge.lent_out(), 0);
    }
}

#[test]
fn a_side_that_only_waits_is_an_error_after_the_limit_and_not_a_hang() {
    let _alone = alone();
    let bridge = open();
    let (link, theirs) = Link::pair().expect("a link");
    let importer = std::thread::spawn({
        let bridge = bridge.clone();
        move || import(&bridge, theirs.into_link())
    });
    let mut ours = memory(&bridge, Carrier::HipFd).export(link).expect("an export");
    let mut other = importer.join().expect("no panic").expect("an import");
    // Neither passes: both wait.
    assert!(!other.try_take().expect("nothing came"));
    other.set_limit(Duration::from_millis(20));
    let error = other.take().expect_err("nothing comes");
    assert!(matches!(error, Error::Peer(PeerError::Late { .. })), "{error}");
    ours.set_limit(Duration::from_millis(20));
    let late = ours.into_shared();
    assert!(matches!(late, Err(Error::Peer(PeerError::Late { .. }))), "{late:?}");
    let error = other.take().expect_err("it was taken back");
    assert!(matches!(error, Error::Peer(PeerError::TakenBack { .. })), "{error}");
}
