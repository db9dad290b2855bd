//! Processes meet at a file: no wait there is without an end, and what fails names the file and the remedy.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use interop::{Error, Link, Listener, PeerError};

use crate::alone;

/// Longer than any wait below, shorter than a test may hang.
const PATIENCE: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

#[track_caller]
fn names(error: &Error, path: &Path, remedy: &str) {
    let text = error.to_string();
    let path = path.display().to_string();
    assert!(text.contains(&path) && text.contains(remedy), "{text}");
    assert!(!text.contains('\n'), "{text}");
}

#[test]
fn a_listener_without_room_is_waited_for_no_longer_than_the_limit() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let listener = Listener::bind(folder.path().join("link")).expect("a listener");
    let path = listener.path().to_owned();
    let (tell, told) = mpsc::channel();
    let connecting = std::thread::spawn(move || {
        let mut queued = Vec::new();
        let error = loop {
            // SAFETY: the other end is this test's.
            match unsafe { Link::connect_within(&path, SHORT) } {
                Ok(link) => queued.push(link),
                Err(error) => break error,
            }
        };
        tell.send((queued, error)).expect("the test waits");
    });
    let (queued, error) = told.recv_timeout(PATIENCE).expect("no wait without an end");
    connecting.join().expect("no panic");
    assert!(
        matches!(error, Error::Peer(PeerError::NotMet { limit, .. }) if limit == SHORT),
        "{error}"
    );
    names(&error, listener.path(), "Link::connect_within");
    // Who was queued is accepted, and then there is room again.
    for _ in &queued {
        // SAFETY: the other end is this test's.
        unsafe { listener.accept(PATIENCE) }.expect("it is queued");
    }
    // SAFETY: the other end is this test's.
    unsafe { Link::connect_within(listener.path(), SHORT) }.expect("room");
}

#[test]
fn threads_that_accept_at_once_get_a_connection_each_or_the_limit() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let listener = Listener::bind(folder.path().join("link")).expect("a listener");
    let path = listener.path().to_owned();
    let listener = std::sync::Arc::new(listener);
    for _ in 0..10 {
        let (tell, told) = mpsc::channel();
        for _ in 0..8 {
            let (tell, listener) = (tell.clone(), listener.clone());
            // SAFETY: the other end is this test's.
            std::thread::spawn(move || tell.send(unsafe { listener.accept(SHORT) }));
        }
        // SAFETY: the other end is this test's.
        let _link = unsafe { Link::connect(&path) }.expect("it listens");
        let mut accepted = 0;
        for _ in 0..8 {
            match told.recv_timeout(PATIENCE).expect("no wait without an end") {
                Ok(_) => accepted += 1,
                Err(error) => {
                    assert!(matches!(error, Error::Peer(PeerError::NotMet { .. })), "{error}");
                    names(&error, &path, "start the other process");
                }
            }
        }
        assert_eq!(accepted, 1);
    }
}

#[test]
fn what_fails_at_a_place_names_it_and_says_what_to_do() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    // SAFETY: no connection is made.
    let connect = |path: &Path| unsafe { Link::connect(path) }.expect_err("no process listens");

    let nowhere = place("nowhere");
    names(&connect(&nowhere), &nowhere, "start the process");
    let bound = std::os::unix::net::UnixListener::bind(place("stream")).expect("a socket");
    names(&connect(&place("stream")), &place("stream"), "another kind");
    drop(bound);
    // The file stays.
    names(
        &connect(&place("stream")),
        &place("stream"),
        "no process listens there any more",
    );

    let taken = Listener::bind(place("stream")).expect_err("the file is there");
    names(&taken, &place("stream"), "choose another path");
    let deep = place("no/such/folder");
    names(
        &Listener::bind(&deep).expect_err("no folder"),
        &deep,
        "correct the path",
    );
    let long = place(&"x".repeat(200));
    names(&Listener::bind(&long).expect_err("too long"), &long, "107 bytes");
    names(&connect(&long), &long, "107 bytes");
}
