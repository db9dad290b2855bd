//! User events, callbacks and futures.

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::task::{Context as Task, Poll, Wake, Waker};

use clmgr::{Error, Event, UserEvent};

/// Runs a future on this thread, asleep between wakes.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    #[derive(Default)]
    struct Bell {
        rung: Mutex<bool>,
        sound: Condvar,
    }
    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            *self.rung.lock().unwrap() = true;
            self.sound.notify_one();
        }
    }
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Task::from_waker(&waker)) {
            return value;
        }
        let mut rung = bell.rung.lock().unwrap();
        while !*rung {
            rung = bell.sound.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// A user event and an event that waits for it.
fn gated() -> (UserEvent, Event) {
    let context = common::context();
    let queue = context.queue().unwrap();
    let gate = UserEvent::new(&context).unwrap();
    queue.wait_for(gate.event()).unwrap();
    let behind = queue.record().unwrap();
    queue.flush().unwrap();
    (gate, behind)
}

#[test]
fn commands_wait_for_a_user_event() {
    let (gate, behind) = gated();
    assert!(!behind.is_complete().unwrap());
    assert!(!gate.event().is_complete().unwrap());
    gate.complete().unwrap();
    behind.wait().unwrap();
    assert!(behind.is_complete().unwrap());
}

#[test]
fn a_callback_runs_once_after_the_end_and_not_before() {
    let (gate, behind) = gated();
    let (send, receive) = mpsc::channel();
    behind
        .on_complete(move |result| send.send(result.is_ok()).unwrap())
        .unwrap();
    assert!(receive.try_recv().is_err(), "called before the end");
    gate.complete().unwrap();
    assert!(receive.recv().unwrap());
    assert!(receive.recv().is_err(), "called twice");
    let (send, receive) = mpsc::channel();
    behind.wait().unwrap();
    behind.on_complete(move |_| send.send(()).unwrap()).unwrap();
    receive.recv().expect("an event that has ended calls back too");
}

#[test]
fn an_event_can_be_awaited() {
    let (gate, behind) = gated();
    let opener = std::thread::spawn(move || gate.complete().unwrap());
    block_on(async { behind.clone().await }).unwrap();
    assert!(behind.is_complete().unwrap());
    opener.join().unwrap();
    block_on(async { behind.await }).unwrap();
}

#[test]
fn a_failed_user_event_is_an_error_for_all_who_look_at_it() {
    let context = common::context();
    for is_dropped in [true, false] {
        let gate = UserEvent::new(&context).unwrap();
        let event = gate.event().clone();
        let (send, told) = mpsc::channel();
        let tell = |event: &Event| {
            let send = send.clone();
            event.on_complete(move |end| send.send(end).unwrap()).unwrap();
        };
        tell(&event);
        assert!(!event.is_complete().unwrap());
        match is_dropped {
            true => drop(gate),
            false => gate.fail().unwrap(),
        }
        tell(&event);
        let ends = [
            event.wait(),
            event.is_complete().map(drop),
            told.recv().unwrap(),
            told.recv().unwrap(),
            block_on(async { event.await }),
        ];
        for end in ends {
            let error = end.unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::Command {
                        call: "clCreateUserEvent",
                        ..
                    }
                ),
                "{error}"
            );
        }
    }
}

#[test]
fn a_completed_user_event_is_no_error() {
    let gate = UserEvent::new(&common::context()).unwrap();
    let event = gate.event().clone();
    let (send, told) = mpsc::channel();
    event.on_complete(move |end| send.send(end).unwrap()).unwrap();
    gate.complete().unwrap();
    event.wait().unwrap();
    assert!(event.is_complete().unwrap());
    told.recv().unwrap().unwrap();
    block_on(async { event.await }).unwrap();
}
