//! Hand-offs of every grade: in order, without the caller where they promise it, and never for ever.

mod common;

use std::sync::mpsc;
use std::time::Duration;

use interop::{Bridge, Error, Grade, Options, Shared};

const CL: &str = "
__kernel void add(__global uint *x, uint k)
{
    x[get_global_id(0)] += k;
}";

const HIP: &str = r#"
extern "C" __global__ void times(unsigned int *x, unsigned int k)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] *= k;
}"#;

const LEN: usize = 1 << 12;
/// Far more than a hand-off takes, and short enough to wait for in a test.
const LIMIT: Duration = Duration::from_millis(300);
/// For tests in which some hand-offs must not be given up.
const LONG_LIMIT: Duration = Duration::from_secs(3);

struct Rig {
    bridge: Bridge,
    add: clmgr::Kernel,
    times: hip::Function,
    queue: clmgr::Queue,
    stream: hip::Stream,
}

impl Rig {
    fn open(grade: Grade, handoff_limit: Option<Duration>) -> Self {
        let selection = common::selection();
        let options = Options {
            grade: Some(grade),
            handoff_limit: handoff_limit.map(common::patiently),
            ..Options::default()
        };
        let bridge =
            Bridge::open(&selection, &options).expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
        let program = bridge.programs().get(CL, "").expect("OpenCL kernels");
        let module = hip::rtc::Program::new(HIP)
            .name("grades.hip")
            .compile(bridge.hip_device())
            .expect("HIP kernels");
        Self {
            add: program.kernel("add").expect("add"),
            times: module.function("times").expect("times"),
            queue: bridge.queue().expect("a queue"),
            stream: bridge.stream().expect("a stream"),
            bridge,
        }
    }

    fn ones(&self) -> Shared<u32> {
        let mut shared = self.bridge.alloc(LEN).expect("an allocation");
        shared.upload(&[1; LEN]).expect("an upload");
        shared
    }

    fn add(&self, shared: &mut Shared<u32>, k: u32) -> interop::Result<()> {
        let guard = shared.cl_mut(&self.queue)?;
        let args = [guard.arg(), clmgr::Arg::scalar(&k)];
        // SAFETY: `add` takes a buffer of LEN words and a uint.
        unsafe { self.add.launch(&self.queue, clmgr::NdRange::d1(LEN), &args) }?;
        Ok(())
    }

    fn times(&self, shared: &mut Shared<u32>, k: u32) -> interop::Result<()> {
        let mut guard = shared.hip_mut(&self.stream)?;
        let config = hip::LaunchConfig::linear(LEN, 256)?;
        // SAFETY: `times` takes a pointer to LEN words and a uint.
        unsafe { self.times.launch(&self.stream, config, &[&guard.slice_mut(), &k]) }?;
        Ok(())
    }

    /// Whatever is given to the queue from now on waits for the test.
    ///
    /// Not for memory that both sides take turns with: NVIDIA's OpenCL makes the caller wait who enqueues such a turn
    /// behind a user event.
    fn hold_queue(&self) -> clmgr::UserEvent {
        let event = clmgr::UserEvent::new(self.bridge.cl_context()).expect("a user event");
        self.queue.wait_for(event.event()).expect("a wait");
        event
    }

    /// Whatever is given to the stream from now on waits until the sender is used or dropped.
    fn hold_stream(&self) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel();
        self.stream
            .host_function(move || {
                let _ = held.recv();
            })
            .expect("a host function");
        release
    }
}

/// The grades that hand over without the caller, as far as they are proven here.
fn ahead() -> impl Iterator<Item = Grade> {
    let grades = common::grades().iter().copied();
    grades.filter(|grade| *grade != Grade::Host)
}

/// Notes a skip if not.
fn queues_can_be_held() -> bool {
    let held = common::selection().platform() != platform::Platform::Nvidia;
    if !held {
        common::skipped("the caller waits too behind a user event");
    }
    held
}

fn assert_all(shared: &Shared<u32>, expected: u32) {
    let mut words = vec![0; LEN];
    shared.download(&mut words).expect("a download");
    assert!(
        words.iter().all(|word| *word == expected),
        "{} is not {expected}",
        words[0]
    );
}

fn assert_names_both(error: &Error, before: &str, after: &str) {
    assert!(matches!(error, Error::HandoffTimeout { .. }), "{error}");
    let text = error.to_string();
    let order = (text.find(before), text.find(after));
    assert!(matches!(order, (Some(before), Some(after)) if before < after), "{text}");
}

#[test]
fn every_grade_is_proven_on_the_host_platform_and_the_default_needs_no_asking() {
    if !common::on_host_or_skip("lists the grades of the software device") {
        return;
    }
    let selection = common::selection();
    let bridge = Bridge::open(&selection, &Options::default()).expect("a bridge");
    assert_eq!(bridge.grade(), Grade::Host);
    assert_eq!(bridge.grades().len(), Grade::ALL.len());
    for report in bridge.grades() {
        assert!(report.works(), "{}: {:?}", report.grade, report.outcome);
        let other = bridge.with_grade(report.grade).expect("it was proven");
        assert_eq!(other.grade(), report.grade);
        assert_eq!(other.alloc::<u8>(1).expect("memory").grade(), report.grade);
    }
}

#[test]
fn a_route_that_copies_is_handed_over_by_the_host_whatever_the_grade() {
    if !common::grade_or_skip(Grade::Callback) {
        return;
    }
    let selection = common::selection();
    let staging = |grade| Options {
        route: Some(interop::Route::Staging),
        grade,
        ..Options::default()
    };
    let error = Bridge::open(&selection, &staging(Some(Grade::Callback)))
        .expect_err("no callback copies")
        .to_string();
    assert!(error.contains("callback") && error.contains("staging"), "{error}");
    let Some(grade) = ahead().next() else {
        return common::skipped("the host hands over here in any case");
    };
    let rig = Rig::open(grade, None);
    let staged = rig
        .bridge
        .alloc_on::<u32>(interop::Route::Staging, LEN)
        .expect("memory");
    assert_eq!(staged.grade(), Grade::Host);
}

#[test]
fn the_caller_goes_on_while_the_drivers_hand_over() {
    for grade in ahead() {
        let rig = Rig::open(grade, None);
        let mut shared = rig.ones();
        let held = rig.hold_queue();
        // Six changes of side, none of which can have happened yet.
        for _ in 0..3 {
            rig.add(&mut shared, 1).expect("access for OpenCL");
            rig.times(&mut shared, 3).expect("access for HIP");
        }
        assert!(!rig.stream.is_idle().expect("a stream"), "{grade}");
        held.complete().expect("a user event");
        assert_all(&shared, ((1 + 1) * 3 + 1) * 9 + 3);
    }
}

#[test]
fn a_queue_that_never_ends_is_an_error_that_names_both_sides() {
    if !queues_can_be_held() {
        return;
    }
    for grade in common::grades().iter().copied() {
        let rig = Rig::open(grade, Some(LIMIT));
        let mut shared = rig.ones();
        let held = rig.hold_queue();
        rig.add(&mut shared, 1).expect("access for OpenCL");
        let granted = rig.times(&mut shared, 3);
        let error = match grade {
            Grade::Host => granted.expect_err("the queue is held"),
            _ => {
                granted.expect("the caller does not wait");
                // The stream is not stuck: the watchdog lets it go.
                rig.stream.synchronize().expect("a stream");
                rig.times(&mut shared, 3).expect_err("the queue is held")
            }
        };
        assert_names_both(&error, "OpenCL queue", "HIP stream");
        assert!(error.to_string().contains(&grade.to_string()), "{error}");
        // It is held still, and now everyone is waited for.
        let error = rig.times(&mut shared, 3).expect_err("the queue is held");
        assert!(matches!(error, Error::HandoffTimeout { .. }), "{error}");
        held.complete().expect("a user event");
        shared.upload(&[5; LEN]).expect("access after the wait");
        rig.times(&mut shared, 2).expect("access for HIP");
        assert_all(&shared, 10);
    }
}

#[test]
fn a_stream_that_never_ends_is_an_error_that_names_both_sides() {
    for grade in common::grades().iter().copied() {
        let rig = Rig::open(grade, Some(LIMIT));
        let mut shared = rig.ones();
        let held = rig.hold_stream();
        rig.times(&mut shared, 3).expect("access for HIP");
        let granted = rig.add(&mut shared, 1);
        let error = match grade {
            Grade::Host => granted.expect_err("the stream is held"),
            _ => {
                granted.expect("the caller does not wait");
                // The queue is not stuck: its commands run, and the next access reports the failure.
                rig.queue.finish().expect("a queue");
                rig.add(&mut shared, 1).expect_err("the stream is held")
            }
        };
        assert_names_both(&error, "HIP stream", "OpenCL queue");
        drop(held);
        shared.upload(&[5; LEN]).expect("access after the wait");
        rig.add(&mut shared, 2).expect("access for OpenCL");
        assert_all(&shared, 7);
    }
}

#[test]
fn a_stream_that_never_ends_is_told_on_a_route_that_copies_too() {
    for grade in common::grades().iter().copied() {
        let rig = Rig::open(grade, Some(LIMIT));
        let staging = interop::Route::Staging;
        let mut shared = rig.bridge.alloc_on::<u32>(staging, LEN).expect("memory");
        shared.upload(&[1; LEN]).expect("an upload");
        let held = rig.hold_stream();
        rig.times(&mut shared, 3).expect("access for HIP");
        let error = rig.add(&mut shared, 1).expect_err("the stream is held");
        assert_names_both(&error, "HIP stream", "OpenCL queue");
        drop(held);
        shared.upload(&[5; LEN]).expect("access after the wait");
        rig.add(&mut shared, 2).expect("access for OpenCL");
        assert_all(&shared, 7);
    }
}

#[test]
fn other_buffers_of_the_same_queue_keep_their_order_after_a_hand_off_was_given_up() {
    for grade in ahead() {
        let rig = Rig::open(grade, Some(LONG_LIMIT));
        let (mut first, mut second) = (rig.ones(), rig.ones());
        let held = rig.hold_queue();
        rig.add(&mut first, 1).expect("access for OpenCL");
        rig.times(&mut first, 3).expect("access for HIP");
        rig.stream.synchronize().expect("the watchdog lets it go");
        // Nothing has looked at `first`; the queue is held still.
        rig.add(&mut second, 1).expect("access for OpenCL");
        rig.times(&mut second, 3).expect("access for HIP");
        assert!(!rig.stream.is_idle().expect("a stream"), "{grade}");
        held.complete().expect("a user event");
        assert_all(&second, 6);
        assert!(rig.add(&mut first, 1).is_err(), "{grade}");
    }
}

#[test]
fn memory_dropped_behind_a_held_queue_is_freed_only_after_the_work() {
    for grade in ahead() {
        let rig = Rig::open(grade, None);
        let mut shared = rig.ones();
        let held = rig.hold_queue();
        rig.add(&mut shared, 1).expect("access for OpenCL");
        rig.times(&mut shared, 3).expect("access for HIP");
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let guard = shared.cl_mut(&rig.queue).expect("access for OpenCL");
            let _ = std::mem::ManuallyDrop::new(guard);
            std::panic::resume_unwind(Box::new("on purpose"));
        }));
        assert!(unwound.is_err());
        std::thread::scope(|scope| {
            let dropper = scope.spawn(move || drop(shared));
            held.complete().expect("a user event");
            dropper.join().expect("a drop");
        });
        let errors = rig.bridge.take_deferred_errors();
        assert!(errors.is_empty(), "{grade}: {errors:?}");
    }
}

#[test]
fn memory_whose_users_do_not_end_is_leaked_and_the_error_kept() {
    if !queues_can_be_held() {
        return;
    }
    for grade in common::grades().iter().copied() {
        let rig = Rig::open(grade, Some(LIMIT));
        let mut shared = rig.ones();
        let held = rig.hold_queue();
        rig.add(&mut shared, 1).expect("access for OpenCL");
        drop(shared);
        let errors = rig.bridge.take_deferred_errors();
        assert_eq!(errors.len(), 1, "{grade}: {errors:?}");
        assert_names_both(&errors[0], "OpenCL queue", "the calling thread");
        // The kernel runs after the drop, on memory that is there still.
        held.complete().expect("a user event");
        rig.queue.finish().expect("a queue");
    }
}

#[test]
fn a_stream_that_a_refused_access_left_waiting_outlasts_the_memory() {
    for grade in ahead() {
        let rig = Rig::open(grade, Some(LIMIT));
        let (mut shared, reader) = (rig.ones(), rig.bridge.stream().expect("a stream"));
        rig.add(&mut shared, 1).expect("access for OpenCL");
        drop(shared.hip(&reader).expect("access for HIP"));
        let gate = rig.hold_stream();
        let mut access = Ok(());
        let captured = reader.capture(|_| {
            access = shared.hip_mut(&rig.stream).map(drop);
            Ok(())
        });
        drop(captured);
        // It is after the queue by now.
        let refused = access.expect_err("nothing is put after a stream that is captured");
        assert!(matches!(refused, Error::Capturing { .. }), "{refused}");
        drop(shared);
        let errors = rig.bridge.take_deferred_errors();
        assert_eq!(errors.len(), 1, "{grade}: {errors:?}");
        assert_names_both(&errors[0], "HIP stream", "the calling thread");
        drop(gate);
        rig.stream.synchronize().expect("a stream");
    }
}

#[test]
fn threads_that_share_a_queue_do_not_mix_up_their_hand_offs() {
    for grade in ahead() {
        let rig = &Rig::open(grade, None);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let stream = rig.bridge.stream().expect("a stream");
                    let mut shared = rig.ones();
                    let mut expected = 1_u32;
                    for k in 0..common::rounds(60) {
                        rig.add(&mut shared, k).expect("access for OpenCL");
                        let mut guard = shared.hip_mut(&stream).expect("access for HIP");
                        let config = hip::LaunchConfig::linear(LEN, 256).expect("a grid");
                        // SAFETY: `times` takes a pointer to LEN words and a uint.
                        unsafe { rig.times.launch(&stream, config, &[&guard.slice_mut(), &3_u32]) }.expect("a launch");
                        expected = expected.wrapping_add(k).wrapping_mul(3);
                    }
                    assert_all(&shared, expected);
                });
            }
        });
    }
}

#[test]
fn a_warm_up_names_every_first_call_with_its_cost() {
    let grade = common::grades().last().copied();
    let rig = Rig::open(grade.expect("the host can"), None);
    let calls = rig.bridge.warm_up().expect("a warm-up");
    for what in [
        "OpenCL program",
        "HIP program",
        "OpenCL kernel",
        "HIP kernel",
        "rocBLAS handle",
    ] {
        let call = calls.iter().find(|call| call.what.starts_with(what));
        assert!(!call.expect(what).first.is_zero(), "{what}");
    }
    assert!(rig.bridge.take_deferred_errors().is_empty());
}

#[test]
fn a_queued_ahead_hand_off_is_measured_where_there_is_one() {
    let rig = Rig::open(Grade::Host, None);
    let busy = |grade| {
        let bridge = rig.bridge.with_grade(grade).expect("a proven grade");
        interop::measure::handoff_busy(&bridge).expect("a measurement")
    };
    assert!(busy(Grade::Host).is_none());
    for grade in ahead() {
        let cost = busy(grade).expect("it can queue ahead");
        assert!(
            cost.kernel_us > 0.0 && cost.p99_us >= cost.median_us,
            "{grade}: {cost:?}"
        );
    }
}
