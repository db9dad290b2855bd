use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytemuck::Pod;
use parking_lot::Mutex;

use super::callback::{Callback, Gate};
use super::device::{Device, Word};
use super::nearby::Nearby;
#[cfg(feature = "vulkan")]
use super::ticket::LetGo;
use super::ticket::{Hold, Lane, Ticket};
use super::watchdog::Watchdog;
use super::{Handoff, Host, Ordered, Outcome, Parties, Side, wait_within};
use crate::access::User;
use crate::values::Mechanisms;
use crate::{Bridge, Error, Grade, Options, Result, Route, Shared};

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
    Bridge::open(&selection, &Options::default()).expect("a bridge; run `cargo xtask setup` if OpenCL is missing")
}

/// Memory of this route that changes sides by `handoff`, and not by the bridge's.
fn alloc<T: Pod>(bridge: &Bridge, handoff: &Arc<dyn Handoff>, route: Route, len: usize) -> Shared<T> {
    Shared::on_route(bridge.core(), handoff, route, len).expect("memory")
}

#[test]
fn a_stream_that_cannot_wait_for_words_is_held_by_a_function() {
    let bridge = bridge();
    let limit = Duration::from_secs(20);
    let callback = Callback::start(bridge.core(), Gate::Function, limit).expect("a grade");
    let handoff: Arc<dyn Handoff> = Arc::new(callback);
    assert!(handoff.mechanisms().cl_to_hip.contains("hipLaunchHostFunc"));
    assert_eq!(handoff.limit(), Some(limit));
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
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let held = clmgr::UserEvent::new(bridge.cl_context()).expect("a user event");
    queue.wait_for(held.event()).expect("a wait");
    let mut shared = alloc::<u32>(&bridge, &handoff, bridge.route(), 16);
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
fn a_queue_that_is_not_let_go_never_counts_as_handed_over() {
    /// The hand-off whose event is ended, and whether its outcome was known each time.
    static WATCHED: Mutex<(Option<Arc<Outcome>>, Vec<bool>)> = Mutex::new((None, Vec::new()));
    unsafe extern "C" fn refuse(_: clmgr::opencl_sys::cl_event, _: i32) -> i32 {
        let (outcome, known) = &mut *WATCHED.lock();
        known.extend(outcome.as_ref().map(|it| it.is_known()));
        clmgr::opencl_sys::CL_OUT_OF_RESOURCES
    }
    // SAFETY: the function only refuses.
    let manager = unsafe { clmgr::Manager::load_with(|api| api.clSetUserEventStatus = Some(refuse)) };
    let device = manager.expect("OpenCL").devices().remove(0);
    let context = clmgr::Context::new(&device).expect("a context");
    for result in [Ok(()), Err(PARTIES.failed(Error::Empty))] {
        let event = clmgr::UserEvent::new(&context).expect("a user event");
        let of_event = event.event().clone();
        let ticket = Ticket::new(PARTIES, Hold::Event(Mutex::new(Some(event)), of_event));
        *WATCHED.lock() = (Some(Arc::clone(ticket.outcome())), Vec::new());
        let well = result.is_ok();
        assert!(!ticket.resolve(result), "nothing is left to rescue");
        assert_eq!(WATCHED.lock().1, [!well], "success is known later, failure before");
        let error = ticket.outcome().take_error().expect("it failed");
        assert!(error.to_string().contains("clSetUserEventStatus"), "{error}");
    }
}

#[test]
fn a_lane_reaches_a_number_after_all_earlier_ones() {
    let bridge = bridge();
    let lane = Arc::new(Lane::new(bridge.hip_device()).expect("a word"));
    let tickets: Vec<_> = (1..=4)
        .map(|number| Ticket::new(PARTIES, Hold::Lane(Arc::clone(&lane), number)))
        .collect();
    for (place, reached) in [(1, 0), (3, 0), (0, 2), (2, 4)] {
        tickets[place].resolve(Ok(()));
        assert_eq!(lane.flag().load(), reached);
    }
}

#[test]
fn a_refused_hand_off_does_not_release_an_earlier_one() {
    let (bridge, elsewhere) = (bridge(), bridge());
    let limit = Duration::from_secs(60);
    let callback = Callback::start(bridge.core(), Gate::Word, limit).expect("a grade");
    let queue = bridge.queue().expect("a queue");
    let streams = [(); 2].map(|()| bridge.stream().expect("a stream"));
    let held = clmgr::UserEvent::new(bridge.cl_context()).expect("a user event");
    queue.wait_for(held.event()).expect("a wait");
    let (before, word) = (User::Cl(queue.clone()), [0_u8; 4]);
    let order = |stream: &hip::Stream| {
        let after = User::of(stream);
        let ordered = callback.order(&before, &after, clmgr::Arg::Bytes(&word));
        ordered.map(drop)
    };
    order(&streams[0]).expect("queued");
    order(&elsewhere.stream().expect("a stream")).expect_err("another runtime's");
    let captured = streams[1].capture(|stream| {
        order(stream).expect_err("it is being captured");
        Ok(())
    });
    drop(captured);
    assert_eq!(callback.reached(&queue), 0, "the queue is held");
    order(&streams[0]).expect("queued");
    held.complete().expect("a user event");
    streams[0].synchronize().expect("it is let go");
    assert_eq!(callback.reached(&queue), 4);
}

#[test]
fn a_word_that_was_given_up_holds_no_later_stream() {
    let bridge = bridge();
    let limit = Duration::from_millis(100);
    let device = Device::start(bridge.core(), bridge.probe().cl().program(), limit).expect("a grade");
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let word = device.word(&queue);
    assert!(Arc::ptr_eq(&device.word(&queue), &word));
    let memory = clmgr::RegularBuffer::<u32>::new(bridge.cl_context(), 4).expect("memory");
    let held = clmgr::UserEvent::new(bridge.cl_context()).expect("a user event");
    queue.wait_for(held.event()).expect("a wait");
    let users = (User::Cl(queue.clone()), User::of(&stream));
    let ordered = device.order(&users.0, &users.1, memory.arg()).map(drop);
    ordered.expect("queued");
    // Let go by the watchdog alone.
    stream.synchronize().expect("it was let go");
    assert!(!Arc::ptr_eq(&device.word(&queue), &word));
    held.complete().expect("a user event");
    queue.finish().expect("the kernel runs after all");
    // It took the word back, to less than some stream may wait for.
    // SAFETY: the word lives until the wait below is over, or for ever.
    unsafe { word.hold(&stream, u64::MAX) }.expect("a wait");
    let user = User::of(&stream);
    wait_within(&user, Some(Duration::from_secs(60)), &PARTIES)
        .inspect_err(|_| std::mem::forget((word, device)))
        .expect("it was given up again");
}

#[test]
fn a_transfer_fails_whose_word_was_given_up_for_another_hand_off() {
    let bridge = bridge();
    let limit = Duration::from_secs(60);
    let device = Device::start(bridge.core(), bridge.probe().cl().program(), limit).expect("a grade");
    let device = Arc::new(device);
    let handoff: Arc<dyn Handoff> = Arc::clone(&device) as _;
    let queue = bridge.queue().expect("a queue");
    let mut shared = alloc::<u32>(&bridge, &handoff, Route::HipPointer, 16);
    shared.upload(&[1; 16]).expect("an upload");
    let held = clmgr::UserEvent::new(bridge.cl_context()).expect("a user event");
    queue.wait_for(held.event()).expect("a wait");
    drop(shared.cl_mut(&queue).expect("access for OpenCL"));
    let mut words = [0; 16];
    let read = std::thread::scope(|scope| {
        let read = scope.spawn(|| shared.download(&mut words));
        while device.hand_offs(&queue) == 0 {
            std::thread::yield_now();
        }
        device.word(&queue).give_up().expect("the word is written");
        read.join().expect("no panic")
    });
    let error = read.expect_err("it did not wait for the queue");
    assert!(matches!(error, Error::HandoffFailed { .. }), "{error}");
    held.complete().expect("a user event");
    shared.download(&mut words).expect("access after the failure");
    assert_eq!(words, [1; 16]);
}

#[test]
fn words_of_released_queues_do_not_accumulate() {
    let bridge = bridge();
    let limit = Duration::from_secs(60);
    let callback = Callback::start(bridge.core(), Gate::Word, limit).expect("a grade");
    let stream = bridge.stream().expect("a stream");
    let after = User::of(&stream);
    let hand_over = |queue: clmgr::Queue| {
        let ordered = callback.order(&User::Cl(queue), &after, clmgr::Arg::Bytes(&[0; 4]));
        ordered.expect("queued");
        stream.synchronize().expect("it is let go");
    };
    // All at once, so that their handles differ.
    let queues = [(); 64].map(|()| bridge.queue().expect("a queue"));
    queues.iter().cloned().for_each(hand_over);
    assert_eq!(callback.lanes(), queues.len());
    drop(queues);
    hand_over(bridge.queue().expect("a queue"));
    let lanes = callback.lanes();
    assert!(lanes <= 8, "{lanes} of 65 are kept");
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
    while !watchdog.sleeps() {
        std::thread::yield_now();
    }
    let ended = Ticket::new(PARTIES, Hold::Function);
    watchdog.watch(&ended);
    ended.withdraw();
    assert_eq!(Arc::strong_count(&ticket), 3, "it forgot the late one");
    let shared = watchdog.shared();
    drop((ended, ticket, watchdog));
    assert!(weak.upgrade().is_some(), "the driver still holds it");
    // The driver's call comes after all: it changes nothing and releases nothing itself.
    resolve(Ok(()));
    while weak.upgrade().is_some() || shared.upgrade().is_some() {
        std::thread::yield_now();
    }
}

#[test]
fn an_outcome_tells_its_error_once_and_its_words_always() {
    let outcome = Outcome::default();
    assert!(!outcome.is_known() && outcome.failure().is_none());
    outcome.told(Err(Error::Empty));
    outcome.told(Ok(()));
    assert!(outcome.is_known());
    assert_eq!(outcome.failure(), Some(Error::Empty.to_string()));
    assert!(matches!(outcome.take_error(), Some(Error::Empty)));
    assert!(outcome.take_error().is_none() && outcome.failure().is_some());
    let outcome = Outcome::default();
    outcome.told(Ok(()));
    assert!(outcome.is_known() && outcome.failure().is_none());
}

#[test]
fn hand_offs_under_way_fail_before_their_word_is_given_up() {
    let bridge = bridge();
    let watchdog = Watchdog::start(Duration::from_secs(60)).expect("a thread");
    let (rescue, stream) = (bridge.stream().expect("a stream"), bridge.stream().expect("a stream"));
    let word = Arc::new(Word::new(bridge.core(), &rescue).expect("a word"));
    let enrolled = || {
        let ticket = Ticket::new(PARTIES, Hold::Word(Arc::clone(&word)));
        (word.enrol(&ticket), ticket)
    };
    let tickets = [(); 3].map(|()| {
        let (is_enrolled, ticket) = enrolled();
        assert!(is_enrolled);
        watchdog.watch(&ticket);
        ticket
    });
    let resolvers = tickets.each_ref().map(|ticket| watchdog.resolver(ticket));
    // SAFETY: the word lives until the stream was waited for.
    unsafe { word.hold(&stream, 3) }.expect("a wait");
    let [before, failed, behind] = resolvers;
    before(Ok(()));
    failed(Err(PARTIES.failed(Error::Empty)));
    stream.synchronize().expect("it is let go");
    let errors = tickets.each_ref().map(|ticket| {
        assert!(ticket.outcome().is_known());
        ticket.outcome().take_error().map(|error| error.to_string())
    });
    let failed = |error| Some(PARTIES.failed(error).to_string());
    assert_eq!(errors, [None, failed(Error::Empty), failed(Error::Ungated)]);
    behind(Ok(()));
    assert!(tickets[2].outcome().take_error().is_none(), "told once");
    let (is_enrolled, _) = enrolled();
    assert!(!is_enrolled, "no stream may wait for the word any more");
}

fn enrolled(word: &Arc<Word>) -> Arc<Ticket> {
    let ticket = Ticket::new(PARTIES, Hold::Word(Arc::clone(word)));
    assert!(word.enrol(&ticket));
    ticket
}

#[test]
fn a_word_that_a_kernel_takes_back_is_given_up_again() {
    let bridge = bridge();
    let rescue = bridge.stream().expect("a stream");
    let word = Arc::new(Word::new(bridge.core(), &rescue).expect("a word"));
    let [good, late, behind] = [(); 3].map(|()| enrolled(&word));
    assert!(!good.resolve(Ok(())));
    assert!(late.resolve(Err(PARTIES.late(Duration::from_secs(1)))));
    late.rescue();
    for (ticket, end) in [(&late, Ok(())), (&behind, Err(Error::Empty))] {
        assert!(ticket.resolve(end), "it took the word back, or never will");
        assert!(!ticket.is_retired());
        ticket.rescue();
        assert!(ticket.is_retired());
    }
    let error = late.outcome().take_error().expect("it was late");
    assert!(matches!(error, Error::HandoffTimeout { .. }), "{error}");
}

#[test]
fn a_hand_off_that_many_others_follow_fails_with_its_word() {
    let bridge = bridge();
    let rescue = bridge.stream().expect("a stream");
    let word = Arc::new(Word::new(bridge.core(), &rescue).expect("a word"));
    let stuck = enrolled(&word);
    // More than are kept without a look.
    for _ in 0..100 {
        assert!(!enrolled(&word).resolve(Ok(())));
    }
    word.give_up().expect("given up");
    let error = stuck.outcome().take_error().expect("it failed with the word");
    assert_eq!(error.to_string(), PARTIES.failed(Error::Ungated).to_string());
}

#[cfg(feature = "vulkan")]
#[test]
fn a_failed_hand_off_signals_once_in_the_place_of_the_side_that_failed() {
    struct Signals(AtomicUsize);
    impl LetGo for Signals {
        fn let_go(&self) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }
    let signals = Arc::new(Signals(AtomicUsize::new(0)));
    let given = || signals.0.load(Ordering::Relaxed);
    let weak = Arc::downgrade(&signals);
    let ticket = || Ticket::new(PARTIES, Hold::Signal(weak.clone()));

    let good = ticket();
    assert!(!good.resolve(Ok(())));
    good.rescue();
    assert_eq!(given(), 0);

    let failed = ticket();
    assert!(failed.resolve(Err(Error::Ungated)));
    failed.rescue();
    failed.rescue();
    assert_eq!(given(), 1);
}

#[cfg(feature = "vulkan")]
#[test]
fn a_side_that_cannot_be_let_go_is_told_even_after_another_failure() {
    struct Stuck;
    impl LetGo for Stuck {
        fn let_go(&self) -> Result<()> {
            Err(Error::Empty)
        }
    }
    let stuck = Arc::new(Stuck);
    let weak = Arc::downgrade(&stuck);
    for is_told in [false, true] {
        let ticket = Ticket::new(PARTIES, Hold::Signal(weak.clone()));
        let told = || ticket.outcome().take_error().map(|error| error.to_string());
        assert!(ticket.resolve(Err(Error::Ungated)));
        if is_told {
            assert_eq!(told(), Some(Error::Ungated.to_string()));
        }
        ticket.rescue();
        assert_eq!(told(), Some(PARTIES.failed(Error::Empty).to_string()));
        assert_eq!(told(), None, "told once");
    }
}

#[test]
fn tickets_that_have_ended_do_not_pile_up() {
    // Miri is slow.
    const MANY: usize = if cfg!(miri) { 300 } else { 1000 };
    let watchdog = Watchdog::start(Duration::from_secs(3600)).expect("a thread");
    let stuck = Ticket::new(PARTIES, Hold::Function);
    watchdog.watch(&stuck);
    let mut alive = Vec::new();
    for _ in 0..MANY {
        let ticket = Ticket::new(PARTIES, Hold::Function);
        watchdog.watch(&ticket);
        ticket.withdraw();
        alive.push(Arc::downgrade(&ticket));
    }
    let left = alive.iter().filter(|ticket| ticket.strong_count() > 0).count();
    assert!(left <= 128, "{left} of {MANY} are kept behind one that is stuck");
    stuck.withdraw();
}

#[test]
fn each_of_many_tickets_is_ended_in_time() {
    let watchdog = Watchdog::start(Duration::from_millis(100)).expect("a thread");
    let tickets = [(); 200].map(|()| Ticket::new(PARTIES, Hold::Function));
    tickets.iter().for_each(|ticket| watchdog.watch(ticket));
    for ticket in &tickets {
        ticket.outcome().wait();
        let error = ticket.outcome().take_error().expect("it was late");
        assert!(matches!(error, Error::HandoffTimeout { .. }), "{error}");
    }
}

#[test]
fn a_watchdog_that_had_nothing_to_do_still_watches() {
    let watchdog = Watchdog::start(Duration::from_millis(20)).expect("a thread");
    while !watchdog.sleeps() {
        assert!(watchdog.runs(), "its thread has ended");
        std::thread::yield_now();
    }
    let ticket = Ticket::new(PARTIES, Hold::Function);
    watchdog.watch(&ticket);
    ticket.outcome().wait();
    ticket.outcome().take_error().expect("it was late");
}

/// Counts the requests to order, and orders nothing.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Handoff for Counting {
    fn grade(&self) -> Grade {
        Grade::Device
    }

    fn mechanisms(&self) -> Mechanisms {
        Mechanisms {
            cl_to_hip: "counted",
            hip_to_cl: "counted",
        }
    }

    fn limit(&self) -> Option<Duration> {
        Some(Duration::from_millis(100))
    }

    fn follows_queues(&self) -> bool {
        true
    }

    fn order(&self, _: &User, _: &User, _: clmgr::Arg<'_>) -> Result<Ordered> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Ordered::Queued(None))
    }
}

#[test]
fn opencl_waits_on_the_host_for_a_stream_that_nothing_was_imported_for() {
    let bridge = bridge();
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let here = bridge.hip_device().ordinal();
    // To a hand-off of another device's, this bridge's stream is the foreign one.
    for (device, asked) in [(here, 2), (here + 1, 0)] {
        let nearby = Nearby {
            inner: Counting::default(),
            device,
        };
        assert_eq!((nearby.grade(), nearby.follows_queues()), (Grade::Device, true));
        let by_host = Nearby {
            inner: Host::new(None),
            device,
        };
        assert!(!by_host.follows_queues());
        let (open, opened) = mpsc::channel::<()>();
        stream
            .host_function(move || {
                let _: std::result::Result<(), _> = opened.recv();
            })
            .expect("a gate");
        let (cl, hip) = (User::Cl(queue.clone()), User::of(&stream));
        let word = [0_u8; 4];
        let order = |before, after| nearby.order(before, after, clmgr::Arg::Bytes(&word));
        let held = order(&hip, &cl);
        match (asked, held) {
            (2, Ok(Ordered::Queued(_))) => {}
            // The stream is held: it was waited for, as long as the grade may.
            (0, Err(Error::HandoffTimeout { .. })) => {}
            (_, other) => panic!("{device}: {}", other.is_ok()),
        }
        drop(open);
        stream.synchronize().expect("the gate is open");
        let free = order(&hip, &cl).expect("it is idle");
        assert_eq!(matches!(free, Ordered::Waited), asked == 0);
        assert_eq!(nearby.inner.0.load(Ordering::Relaxed), asked);
        // Streams know each other's events.
        order(&hip, &hip).expect("one API");
        assert_eq!(nearby.inner.0.load(Ordering::Relaxed), asked + 1);
    }
}

/// Waits for the end of the work before, successful or not, as a semaphore does that a driver signals after failed
/// work.
struct Deaf;

impl Handoff for Deaf {
    fn grade(&self) -> Grade {
        Grade::Device
    }

    fn mechanisms(&self) -> Mechanisms {
        Mechanisms {
            cl_to_hip: "deaf",
            hip_to_cl: "deaf",
        }
    }

    fn limit(&self) -> Option<Duration> {
        None
    }

    fn order(&self, before: &User, _: &User, _: clmgr::Arg<'_>) -> Result<Ordered> {
        let _: Result<()> = before.wait();
        Ok(Ordered::Queued(None))
    }
}

#[test]
fn a_download_asks_the_streams_that_wrote_where_the_handoff_tells_of_no_failure() {
    let bridge = bridge();
    let deaf: Arc<dyn Handoff> = Arc::new(Deaf);
    let row = hip::Rect {
        width: 64,
        height: 1,
        source_pitch: 64,
        destination_pitch: 64,
    };
    for fails in [false, true] {
        let stream = bridge.stream().expect("a stream");
        // OpenCL transfers memory of this route, so that no HIP call meets the failure on the way.
        let mut shared = alloc::<u32>(&bridge, &deaf, Route::GpuVa, 64);
        shared.upload(&[1; 64]).expect("an upload");
        let guard = shared.hip_mut(&stream).expect("access for HIP");
        if fails {
            // No other test of this program copies rectangles.
            hip_host::faults::set_failures("async/hipMemcpy2DAsync:1").expect("a rule");
        }
        let device = stream.device();
        let [source, mut copy] = [(); 2].map(|()| {
            let memory = device.alloc_from(&stream, &[7; 64]);
            memory.expect("memory")
        });
        let source = source.on(&stream).expect("its stream");
        let mut copy = copy.on_mut(&stream).expect("its stream");
        copy.copy_rect_from(source, row).expect("a copy in stream order");
        drop(guard);
        let mut words = [0; 64];
        let downloaded = shared.download(&mut words);
        hip_host::faults::set_failures("").expect("no rule");
        match (fails, downloaded) {
            (false, Ok(())) => assert_eq!(words, [1; 64]),
            (true, Err(Error::Hip(_))) => {}
            (_, other) => panic!("{fails}: {other:?}, {words:?}"),
        }
    }
}
