//! Failed work is told across the border. Alone in its program: the failures are the process's.

use std::time::Duration;

use interop::{Bridge, Error, Grade, Options, Route, Shared};
use parking_lot::Mutex;

const HIP: &str = r#"
extern "C" __global__ void fill(unsigned int *x)
{
    x[threadIdx.x] = 7;
}"#;

/// Failures are the process's.
static ALONE: Mutex<()> = Mutex::new(());

/// Every kernel launch fails when the stream gets to it, until dropped.
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

fn open() -> Bridge {
    let selection = platform::select_named(Some("host")).expect("the host platform");
    Bridge::open(&selection, &Options::default()).expect("a bridge; run `cargo xtask setup` if OpenCL is missing")
}

/// Launches a kernel that writes all of the buffer.
fn fill(shared: &mut Shared<u32>, stream: &hip::Stream) {
    let module = hip::rtc::Program::new(HIP).name("fill.hip");
    let module = module.compile(stream.device()).expect("a kernel");
    let fill = module.function("fill").expect("fill");
    let mut guard = shared.hip_mut(stream).expect("access for HIP");
    let config = hip::LaunchConfig::linear(64, 64).expect("a grid");
    // SAFETY: `fill` takes a pointer to 64 words.
    unsafe { fill.launch(stream, config, &[&guard.slice_mut()]) }.expect("a launch");
}

fn proven_grades() -> Vec<Grade> {
    let bridge = open();
    let proven = bridge.grades().iter().filter(|report| report.works());
    proven.map(|report| report.grade).collect()
}

#[test]
fn a_download_of_what_failed_work_should_have_written_fails_on_every_route() {
    let _alone = ALONE.lock();
    for grade in proven_grades() {
        for route in Route::ALL {
            // Failed work may end a bridge's own stream.
            let bridge = open().with_grade(grade).expect("a proven grade");
            if !bridge.permitted().contains(&route) {
                continue;
            }
            let stream = bridge.stream().expect("a stream");
            let mut shared = bridge.alloc_on::<u32>(route, 64).expect("memory");
            shared.upload(&[1; 64]).expect("an upload");
            let failing = Failing::launches();
            fill(&mut shared, &stream);
            let mut words = [0; 64];
            let outcome = shared.download(&mut words);
            drop(failing);
            outcome.expect_err(&format!("{grade}, {route}: {words:?}"));
        }
    }
}

#[test]
fn a_failure_of_hip_work_reaches_the_next_user_of_the_buffer() {
    let _alone = ALONE.lock();
    for grade in proven_grades() {
        let bridge = open().with_grade(grade).expect("a proven grade");
        let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
        let mut shared = bridge.alloc::<u32>(64).expect("memory");
        shared.upload(&[1; 64]).expect("an upload");
        let failing = Failing::launches();
        fill(&mut shared, &stream);
        let granted = shared.cl(&queue).map(drop);
        let error = match grade {
            Grade::Host => granted.expect_err("the kernel failed"),
            _ => {
                granted.expect("the caller does not wait");
                // Not stuck: its commands run, and the next access reports the failure.
                queue.finish().expect("a queue");
                shared.cl(&queue).map(drop).expect_err("the kernel failed")
            }
        };
        drop(failing);
        if grade != Grade::Host {
            assert!(matches!(error, Error::HandoffFailed { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("HIP stream") && text.contains("OpenCL queue"), "{text}");
            // The stream tells its own user, too.
            stream.synchronize().expect_err("the kernel failed");
        }
        shared
            .download(&mut [0; 64])
            .expect_err("what the kernel should have written is not there");
        drop(shared);
        let kept = bridge.take_deferred_errors();
        assert!(!kept.is_empty(), "the stream does not tell whether it still works");
    }
}

/// The download waits for its own hand-off under the buffer's lock; another thread waits for that lock, and takes the
/// first failure that it finds.
#[test]
fn a_download_that_ran_too_early_fails_even_if_another_thread_takes_the_error() {
    let _alone = ALONE.lock();
    for grade in proven_grades().into_iter().filter(|grade| *grade != Grade::Host) {
        let selection = platform::select_named(Some("host")).expect("the host platform");
        let options = Options {
            grade: Some(grade),
            route: Some(Route::HipPointer),
            handoff_limit: Some(Duration::from_millis(500)),
            ..Options::default()
        };
        let bridge = Bridge::open(&selection, &options).expect("a bridge");
        let source = "kernel void fill(global uint *x) { x[get_global_id(0)] = 2; }";
        let program = bridge.programs().get(source, "").expect("a program");
        let fill = program.kernel("fill").expect("a kernel");
        let (queue, second) = (bridge.queue().expect("a queue"), bridge.queue().expect("a queue"));
        let mut shared = bridge.alloc::<u32>(64).expect("memory");
        shared.upload(&[1; 64]).expect("an upload");
        let held = clmgr::UserEvent::new(bridge.cl_context()).expect("an event");
        queue.wait_for(held.event()).expect("a wait");
        {
            let guard = shared.cl_mut(&queue).expect("access");
            // SAFETY: `fill` takes a buffer and writes one word per work-item.
            unsafe { fill.launch(&queue, clmgr::NdRange::d1(64), &[guard.arg()]) }.expect("a launch");
        }
        let (shared, mut words) = (&shared, [0; 64]);
        let (read, other) = std::thread::scope(|scope| {
            let words = &mut words;
            let read = scope.spawn(move || shared.download(words));
            // Then the download has its hand-off queued, and holds the lock.
            while bridge.main_stream().is_idle().expect("a stream") {
                std::thread::yield_now();
            }
            let other = scope.spawn(|| shared.cl(&second).map(drop));
            (read.join().expect("no panic"), other.join().expect("no panic"))
        });
        held.complete().expect("an event");
        assert!(
            matches!(read, Err(Error::HandoffTimeout { .. })),
            "{grade}: {read:?} with {}; the other thread: {other:?}",
            words[0]
        );
        queue.finish().expect("the queue is free");
    }
}

/// The wait lets the stream go when the hand-off is given up, and so succeeds itself.
#[test]
fn memory_is_neither_exported_nor_closed_well_if_a_hand_off_was_given_up_meanwhile() {
    type End = fn(Shared<u32>) -> interop::Result<()>;
    let ends: [(&str, End); 2] = [
        // SAFETY: the descriptor is closed at once.
        ("export_fd", |mut shared| unsafe { shared.export_fd() }.map(drop)),
        ("close", Shared::close),
    ];
    let _alone = ALONE.lock();
    for grade in proven_grades().into_iter().filter(|grade| *grade != Grade::Host) {
        for (name, end) in ends {
            let selection = platform::select_named(Some("host")).expect("the host platform");
            let options = Options {
                grade: Some(grade),
                handoff_limit: Some(Duration::from_millis(500)),
                ..Options::default()
            };
            let bridge = Bridge::open(&selection, &options).expect("a bridge");
            let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
            let mut shared = bridge.alloc_exportable::<u32>(64).expect("memory");
            let held = clmgr::UserEvent::new(bridge.cl_context()).expect("an event");
            queue.wait_for(held.event()).expect("a wait");
            drop(shared.cl_mut(&queue).expect("access"));
            drop(shared.hip_mut(&stream).expect("queued behind it"));
            let outcome = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stream.is_idle().expect("a stream") {
                        std::thread::yield_now();
                    }
                    held.complete().expect("an event");
                });
                end(shared)
            });
            assert!(
                matches!(outcome, Err(Error::HandoffTimeout { .. })),
                "{grade}, {name}: {outcome:?}"
            );
        }
    }
}
