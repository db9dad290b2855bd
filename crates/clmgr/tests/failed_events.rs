//! A user event that fails takes nothing from the queues that wait for it: they stay in order, and their commands run.

mod common;

use clmgr::{
    Arg, Context, Event, Kernel, NdRange, Program, Queue, RegularBuffer, SvmBuffer, SvmCapabilities, UserEvent,
};

/// Ends its work, which takes a device a while, with a store.
const SOURCE: &str = "
kernel void slow(volatile global uint *x, uint rounds) {
    for (uint i = 0; i < rounds; i++) x[1] = i;
    x[0] = 2;
}";

struct Fixture {
    context: Context,
    queue: Queue,
    slow: Kernel,
}

fn fixture() -> Fixture {
    let context = common::context();
    Fixture {
        queue: context.queue().unwrap(),
        slow: Program::build(&context, SOURCE, "").unwrap().kernel("slow").unwrap(),
        context,
    }
}

impl Fixture {
    /// Launches the slow kernel on two words.
    fn launch(&self, words: Arg<'_>) -> Event {
        let rounds = common::rounds(1 << 27);
        let args = [words, Arg::scalar(&rounds)];
        // SAFETY: the kernel writes the two words, which nothing else uses at the same time.
        unsafe { self.slow.launch(&self.queue, NdRange::d1(1), &args) }.unwrap()
    }

    /// Makes the queue wait for an event that then fails, in one of the ways in which it may.
    fn fail(&self, way: Way) {
        let context = match way {
            Way::Elsewhere => &Context::new(self.context.device()).unwrap(),
            _ => &self.context,
        };
        let gate = UserEvent::new(context).unwrap();
        self.queue.wait_for_any(gate.event()).unwrap();
        match way {
            Way::Dropped => drop(gate),
            Way::Failed | Way::Elsewhere => gate.fail().unwrap(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Failed,
    Dropped,
    /// Failed in another context.
    Elsewhere,
}

const WAYS: [Way; 3] = [Way::Failed, Way::Dropped, Way::Elsewhere];

#[test]
fn a_read_behind_a_failed_user_event_sees_what_was_written_before_it() {
    let fixture = fixture();
    for way in WAYS {
        let mut buffer = RegularBuffer::<u32>::new(&fixture.context, 2).unwrap();
        buffer.write(&fixture.queue, &[1, 1]).unwrap();
        fixture.launch(buffer.arg());
        fixture.fail(way);
        let mut first = [0];
        buffer.read_at(&fixture.queue, 0, &mut first).unwrap();
        assert_eq!(first, [2], "{way:?}");
        fixture.queue.finish().unwrap();
    }
}

#[test]
fn memory_is_not_freed_under_what_was_enqueued_before_a_failed_user_event() {
    let fixture = fixture();
    if !common::has(&fixture.context, SvmCapabilities::COARSE) {
        return;
    }
    for way in WAYS {
        let mut buffer = SvmBuffer::<u32>::coarse(&fixture.context, 2).unwrap();
        buffer.write(&fixture.queue, &[1, 1]).unwrap();
        let kernel = fixture.launch(buffer.arg());
        fixture.fail(way);
        // That it has ended is taken for the end of all commands before it, and of their use of memory.
        fixture.queue.record().unwrap().wait().unwrap();
        assert!(kernel.is_complete().unwrap(), "{way:?}: the marker overtook the kernel");
        drop(buffer);
    }
}

#[test]
fn commands_behind_a_failed_user_event_run() {
    let fixture = fixture();
    for way in WAYS {
        let mut buffer = RegularBuffer::<u32>::new(&fixture.context, 2).unwrap();
        fixture.fail(way);
        buffer.write(&fixture.queue, &[5, 6]).unwrap();
        fixture.queue.record().unwrap().wait().unwrap();
        let mut words = [0; 2];
        buffer.read(&fixture.queue, &mut words).unwrap();
        assert_eq!(words, [5, 6], "{way:?}");
        fixture.queue.finish().unwrap();
    }
}

#[test]
fn a_queue_that_comes_to_wait_for_a_failed_user_event_goes_on() {
    let fixture = fixture();
    let gate = UserEvent::new(&fixture.context).unwrap();
    let event = gate.event().clone();
    gate.fail().unwrap();
    fixture.queue.wait_for(&event).unwrap();
    fixture.queue.finish().unwrap();
}
