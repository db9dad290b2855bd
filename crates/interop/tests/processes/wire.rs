//! What comes over the link is not believed: bytes are written here as the protocol's table has them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use interop::{Carrier, Error, Link, PeerError};
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::exchange::memory;
use crate::leaks::descriptors;
use crate::{LEN, LIMIT, alone, open};

pub const OFFER: u16 = 1;
pub const ACCEPTED: u16 = 2;
pub const REFUSED: u16 = 3;
pub const TURN: u16 = 4;
pub const FAILED_TURN: u16 = 5;
pub const TAKEN_BACK: u16 = 6;

/// A message of this kind that holds nothing else.
pub fn message(kind: u16) -> [u8; 256] {
    let mut bytes = [0; 256];
    bytes[..8].copy_from_slice(b"hipclipc");
    bytes[8] = 1;
    bytes[10..12].copy_from_slice(&kind.to_le_bytes());
    bytes[12..16].copy_from_slice(&77_u32.to_le_bytes());
    bytes
}

pub fn send(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).expect("sent");
}

/// The next message; descriptors are closed.
pub fn receive(socket: &OwnedFd) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(socket, &mut parts, &mut control, flags).expect("received");
    bytes.truncate(received.bytes);
    bytes
}

/// A link, and the socket at its other end.
pub fn pair() -> (Link, OwnedFd) {
    let (link, theirs) = Link::pair().expect("a link");
    // SAFETY: the test that uses the socket is the other side.
    (link.with_limit(LIMIT), unsafe { theirs.into_fd() })
}

/// An offer as this program makes it, to be spoiled.
fn genuine() -> Vec<u8> {
    let bridge = open();
    let (link, theirs) = pair();
    let exporter = std::thread::spawn(move || {
        memory(&bridge, Carrier::HipFd)
            .export(link)
            .map(drop)
            .map_err(|not| not.error)
    });
    let offer = receive(&theirs);
    send(&theirs, &message(ACCEPTED), &[]);
    exporter.join().expect("no panic").expect("an export");
    offer
}

#[test]
fn what_cannot_be_true_is_refused_in_one_line_and_leaves_no_descriptor() {
    let _alone = alone();
    let bridge = open();
    let offer = genuine();
    assert_eq!(offer[10..12], OFFER.to_le_bytes());
    let file = rustix::fs::memfd_create("memory", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
    rustix::fs::ftruncate(&file, 4096).expect("a size");
    let empty = rustix::fs::memfd_create("empty", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
    let spoiled = |at: usize, bytes: &[u8]| {
        let mut offer = offer.clone();
        offer[at..at + bytes.len()].copy_from_slice(bytes);
        offer
    };
    let cases: [(Vec<u8>, usize, &str); 14] = [
        (b"GET / HTTP/1.1".to_vec(), 0, "14 bytes, but a message has 256"),
        (offer[..100].to_vec(), 1, "100 bytes, but a message has 256"),
        ([&offer[..], b"more"].concat(), 1, "257 bytes"),
        (spoiled(0, b"X"), 1, "does not begin like a message"),
        (spoiled(8, &[9]), 1, "protocol version 9, expected 1"),
        (spoiled(10, &[99]), 1, "kind 99"),
        (message(TURN).to_vec(), 0, "expected an offer of memory"),
        (spoiled(32, &[200]), 1, "unknown carrier 200"),
        (offer.clone(), 0, "got 0 file descriptors, expected 1"),
        (offer.clone(), 2, "got 2 file descriptors, expected 1"),
        (spoiled(16, &[3]), 1, "a whole number of elements"),
        (spoiled(22, &[0xFF; 2]), 1, "a whole number of elements"),
        // As many bytes as it says are not in the file.
        (offer.clone(), 1, "exceed memory of 4096 bytes"),
        (spoiled(40, b"x"), 1, "import it with a bridge on that device"),
    ];
    let before = descriptors();
    for (bytes, fds, reason) in cases {
        let (link, theirs) = pair();
        let list = vec![file.as_fd(); fds];
        send(&theirs, &bytes, &list);
        // SAFETY: refused.
        let error = unsafe { bridge.import::<u32>(link) }.expect_err(reason);
        let text = error.to_string();
        assert!(text.contains(reason) && !text.contains('\n'), "{text}");
        drop(theirs);
        assert_eq!(descriptors(), before, "{reason}");
    }
    let (link, theirs) = pair();
    send(&theirs, &offer, &[empty.as_fd()]);
    // SAFETY: refused.
    let error = unsafe { bridge.import::<u32>(link) }.expect_err("an empty file");
    assert!(error.to_string().contains("exceed memory of 0 bytes"), "{error}");
    drop(theirs);
    // The other side's type and the other's memory.
    let (link, theirs) = pair();
    send(&theirs, &offer, &[file.as_fd()]);
    // SAFETY: refused.
    let error = unsafe { bridge.import::<u64>(link) }.expect_err("another type");
    assert!(
        matches!(error, Error::Peer(PeerError::ElementSize { theirs: 4, ours: 8 })),
        "{error}"
    );
    let refusal = receive(&theirs);
    assert_eq!(refusal[10..12], REFUSED.to_le_bytes());
    assert!(String::from_utf8_lossy(&refusal[136..]).starts_with("the memory holds elements of 4"));
    drop(theirs);
    assert_eq!(descriptors(), before);
}

#[test]
fn an_exporter_believes_no_answer_but_acceptance() {
    let _alone = alone();
    let bridge = open();
    let mut refusal = message(REFUSED);
    refusal[136..143].copy_from_slice(b"no\nroom");
    for (answer, reason) in [
        (refusal.to_vec(), "process 77 did not import the memory: no room"),
        (message(TURN).to_vec(), "expected an answer to the offer"),
        (b"?".to_vec(), "1 bytes, but a message has 256"),
    ] {
        let (link, theirs) = pair();
        let importer = std::thread::spawn(move || {
            receive(&theirs);
            send(&theirs, &answer, &[]);
        });
        let not = memory(&bridge, Carrier::HipFd).export(link).expect_err(reason);
        importer.join().expect("no panic");
        let text = not.to_string();
        assert!(text.contains(reason), "{text}");
        let buffer = not.buffer.expect("it has hung up");
        assert_eq!(buffer.len(), LEN);
    }
}

#[test]
fn a_turn_that_is_not_due_is_refused() {
    let _alone = alone();
    let bridge = open();
    let (link, theirs) = pair();
    send(&theirs, &message(ACCEPTED), &[]);
    let mut joint = memory(&bridge, Carrier::HipFd).export(link).expect("an export");
    joint.pass().expect("passed");
    let mut turn = message(TURN);
    turn[16] = 5;
    send(&theirs, &turn, &[]);
    let error = joint.take().expect_err("not due");
    assert!(error.to_string().contains("got turn 5, expected turn 1"), "{error}");
    turn[16] = 1;
    send(&theirs, &turn, &[]);
    joint.take().expect("the turn");
}

/// A buffer that was exported to the reader and writer at the other end.
fn exported(bridge: &interop::Bridge) -> (interop::Joint<u32>, OwnedFd) {
    let (link, theirs) = pair();
    send(&theirs, &message(ACCEPTED), &[]);
    let joint = memory(bridge, Carrier::HipFd).export(link);
    receive(&theirs);
    (joint.expect("an export"), theirs)
}

#[test]
fn a_side_that_keeps_talking_does_not_extend_the_limit() {
    let _alone = alone();
    let bridge = open();
    let (mut joint, theirs) = exported(&bridge);
    joint.set_limit(std::time::Duration::ZERO);
    for kind in [TURN, TURN, TAKEN_BACK] {
        send(&theirs, &message(kind), &[]);
    }
    let error = joint.into_shared().expect_err("the other side is there");
    // The last message is not read any more.
    assert!(matches!(error, Error::Peer(PeerError::Late { .. })), "{error}");
}

#[test]
fn an_exporter_with_running_work_does_not_report_its_end() {
    let _alone = alone();
    let options = interop::Options {
        handoff_limit: Some(std::time::Duration::from_millis(200)),
        ..interop::Options::default()
    };
    let bridge = interop::Bridge::open(&crate::common::host(), &options).expect("a bridge");
    let stream = bridge.stream().expect("a stream");
    let (mut joint, theirs) = exported(&bridge);
    let (release, held) = std::sync::mpsc::channel::<()>();
    drop(joint.hip_mut(&stream).expect("access"));
    stream
        .host_function(move || {
            let _ = held.recv();
        })
        .expect("a host function");
    drop(joint);
    let mut bytes = [0; 8];
    let nothing = rustix::net::recv(&theirs, &mut bytes[..], RecvFlags::DONTWAIT);
    assert_eq!(nothing.expect_err("nothing came"), rustix::io::Errno::AGAIN);
    drop(release);
    stream.synchronize().expect("a stream");
    assert!(!bridge.take_deferred_errors().is_empty());
}

#[test]
fn only_a_socket_that_keeps_messages_apart_is_a_link() {
    let file = std::fs::File::open("/dev/null").expect("a file");
    let (stream, _other) = std::os::unix::net::UnixStream::pair().expect("a socket");
    for (fd, reason) in [
        (OwnedFd::from(file), "it is not a socket"),
        (OwnedFd::from(stream), "it is a socket of another kind"),
    ] {
        // SAFETY: no other code has it.
        let error = unsafe { Link::from_fd(fd) }.expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
    }
    let (_, theirs) = pair();
    // SAFETY: no other code has it.
    unsafe { Link::from_fd(theirs) }.expect("a link");
}
