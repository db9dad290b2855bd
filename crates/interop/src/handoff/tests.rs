use super::callback::{Callback, Gate};
use super::ticket::{Hold, Lane, Ticket};
use super::watchdog::Watchdog;
use super::{Handoff, Parties, Side};
use crate::{Bridge, Error, Grade, Options};
use std::sync::Arc;
use std::time::Duration;

const PARTIES: Parties = Parties {
    grade: Grade::Callback,
    before: Side::Cl { queue: 0x10 },
    after: Side::Hip {
        stream: 0x20,
        device: 0,
    },
};

fn bridge() -> Bridge {
    let selection = platform::select_named(Some("host")).expect("the host platform");
    Bridge::open(&selection, &Options::default())
        .expect("a bridge; run `cargo xtask setup` if OpenCL is missing")
}

#[test]
fn a_stream_that_cannot_wait_for_words_is_held_by_a_function() {
    let bridge = bridge();
    let limit = Duration::from_secs(20);
    let callback = Callback::start(bridge.core(), Gate::Function, limit).expect("a grade");
    let handoff: Arc<dyn Handoff> = Arc::new(callback);
    assert!(handoff.mechanisms().cl_to_hip.contains("hipLaunchHostFunc"));
    for _ in 0..20 {
        bridge
            .probe()
            .prove_handoff(bridge.core(), bridge.route(), &handoff)
            .expect("a pattern each way");
    }
}

#[test]
fn a_function_that_waits_for_a_queue_that_never_ends_is_let_go() {
    let bridge = bridge();
    let limit = Duration::from_millis(200);
    let callback = Callback::start(bridge.core(), Gate::Function, limit).expect("a grade");
    let handoff: Arc<dyn Handoff> = Arc::new(callback);
    let (queue, stream) = (
        bridge.queue().expect("a queue"),
        bridge.stream().expect("a stream"),
    );
    let held = clmgr::UserEvent::new(bridge.cl_context()).expect("a user event");
    queue.wait_for(held.event()).expect("a wait");
    let mut shared = bridge
        .alloc::<u32>(16)
        .expect("memory")
        .handed_over_by(&handoff);
    drop(shared.cl_mut(&queue).expect("access for OpenCL"));
    drop(shared.hip_mut(&stream).expect("access for HIP"));
    stream.synchronize().expect("the watchdog lets it go");
    let error = shared.hip_mut(&stream).expect_err("the queue is held");
    assert!(matches!(error, Error::HandoffTimeout { .. }), "{error}");
    held.complete().expect("a user event");
}

#[test]
fn a_failed_queue_lets_its_stream_go_and_is_told_once() {
    let bridge = bridge();
    let watchdog = Watchdog::start(Duration::from_secs(20)).expect("a thread");
    let lane = Arc::new(Lane::new(bridge.hip_device()).expect("a word"));
    let stream = bridge.stream().expect("a stream");
    let ticket = Ticket::new(PARTIES, Hold::Lane(Arc::clone(&lane), 1));
    watchdog.watch(&ticket);
    stream
        .wait_flag(lane.flag(), hip::Condition::AtLeast(1))
        .expect("a wait");
    let resolve = watchdog.resolver(&ticket);
    resolve(Err(PARTIES.failed(Error::Empty)));
    stream.synchronize().expect("it was let go");
    let error = ticket.outcome().take_error().expect("it failed");
    assert!(error.to_string().starts_with("OpenCL queue 0x10 failed"));
    assert!(ticket.outcome().is_known() && ticket.outcome().take_error().is_none());
}

#[test]
fn late_callbacks_of_a_lane_never_take_a_greater_number_back() {
    let bridge = bridge();
    let lane = Arc::new(Lane::new(bridge.hip_device()).expect("a word"));
    let tickets: Vec<_> = (1..=3)
        .map(|number| Ticket::new(PARTIES, Hold::Lane(Arc::clone(&lane), number)))
        .collect();
    for (place, reached) in [(1, 2), (0, 2), (2, 3)] {
        tickets[place].resolve(Ok(()));
        assert_eq!(lane.flag().load(), reached);
    }
}

#[test]
fn the_watchdog_ends_and_keeps_what_a_driver_still_holds() {
    let watchdog = Watchdog::start(Duration::from_millis(20)).expect("a thread");
    let ticket = Ticket::new(PARTIES, Hold::Function);
    watchdog.watch(&ticket);
    let resolve = watchdog.resolver(&ticket);
    // No callback comes, so the wait ends by the watchdog alone.
    ticket.outcome().wait();
    let error = ticket.outcome().take_error().expect("it was late");
    assert!(matches!(error, Error::HandoffTimeout { .. }), "{error}");
    let weak = Arc::downgrade(&ticket);
    drop((ticket, watchdog));
    assert!(weak.upgrade().is_some(), "the driver still holds it");
    // The driver's call comes after all: it changes nothing and releases nothing itself.
    resolve(Ok(()));
    while weak.upgrade().is_some() {
        std::thread::yield_now();
    }
}

#[test]
fn tickets_that_have_ended_do_not_pile_up() {
    let watchdog = Watchdog::start(Duration::from_secs(3600)).expect("a thread");
    let stuck = Ticket::new(PARTIES, Hold::Function);
    watchdog.watch(&stuck);
    let mut alive = Vec::new();
    for _ in 0..1000 {
        let ticket = Ticket::new(PARTIES, Hold::Function);
        watchdog.watch(&ticket);
        ticket.withdraw();
        alive.push(Arc::downgrade(&ticket));
    }
    let left = alive
        .iter()
        .filter(|ticket| ticket.strong_count() > 0)
        .count();
    assert!(
        left <= 128,
        "{left} of 1000 are kept behind one that is stuck"
    );
    stuck.withdraw();
}
