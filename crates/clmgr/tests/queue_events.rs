//! The events that a queue holds for barriers that wait for user events: a thin driver counts them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Mutex, OnceLock};

use clmgr::opencl_sys::{cl_command_queue, cl_event, cl_int, cl_uint};
use clmgr::{Api, Context, Manager, UserEvent};

static REAL: OnceLock<Api> = OnceLock::new();
static EVENTS: Mutex<Option<HashSet<usize>>> = Mutex::new(None);
/// Events are counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

thread_local! {
    static FLUSHED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn barrier(
    queue: cl_command_queue,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let real = REAL.get().unwrap().clEnqueueBarrierWithWaitList.unwrap();
    // SAFETY: the caller's arguments.
    let code = unsafe { real(queue, waits, list, event) };
    if code == 0 && !event.is_null() {
        // SAFETY: the driver wrote it.
        let event = unsafe { *event };
        EVENTS.lock().unwrap().get_or_insert_default().insert(event.addr());
    }
    code
}

unsafe extern "C" fn release(event: cl_event) -> cl_int {
    if let Some(events) = EVENTS.lock().unwrap().as_mut() {
        events.remove(&event.addr());
    }
    // SAFETY: the caller's reference.
    unsafe { REAL.get().unwrap().clReleaseEvent.unwrap()(event) }
}

unsafe extern "C" fn flush(queue: cl_command_queue) -> cl_int {
    FLUSHED.with_borrow_mut(|flushed| flushed.push(queue.addr()));
    // SAFETY: the caller's queue.
    unsafe { REAL.get().unwrap().clFlush.unwrap()(queue) }
}

/// A driver that counts.
fn manager() -> Manager {
    let count = |api: &mut Api| {
        let _ = REAL.set(*api);
        api.clEnqueueBarrierWithWaitList = Some(barrier);
        api.clReleaseEvent = Some(release);
        api.clFlush = Some(flush);
    };
    // SAFETY: the functions pass everything on.
    unsafe { Manager::load_with(count) }.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn waiting_for_an_event_flushes_the_other_queue_that_it_is_of() {
    let _alone = ALONE.lock().unwrap();
    let context = Context::new(&manager().devices()[0]).unwrap();
    let (one, other) = (context.queue().unwrap(), context.queue().unwrap());
    let event = one.record().unwrap();
    FLUSHED.take();
    one.wait_for(&event).unwrap();
    assert_eq!(FLUSHED.take(), []);
    other.wait_for(&event).unwrap();
    assert_eq!(FLUSHED.take(), [one.raw().addr()]);
    one.finish().unwrap();
    other.finish().unwrap();
}

fn held() -> usize {
    EVENTS.lock().unwrap().as_ref().map_or(0, HashSet::len)
}

#[test]
fn a_queue_that_is_never_finished_keeps_no_more_events_than_wait() {
    let _alone = ALONE.lock().unwrap();
    let context = Context::new(&manager().devices()[0]).unwrap();
    let queue = context.queue().unwrap();
    let mut most = 0;
    for _ in 0..2000 {
        let gate = UserEvent::new(&context).unwrap();
        queue.wait_for(gate.event()).unwrap();
        let behind = queue.record().unwrap();
        queue.flush().unwrap();
        gate.complete().unwrap();
        behind.wait().unwrap();
        most = most.max(held());
    }
    assert!(most > 1, "the driver gives no event for a barrier");
    assert!(most < 200, "{most} events");
    // Those that still wait are kept, however many.
    let other = context.queue().unwrap();
    let gates: Vec<UserEvent> = (0..500)
        .map(|_| {
            let gate = UserEvent::new(&context).unwrap();
            other.wait_for(gate.event()).unwrap();
            gate
        })
        .collect();
    assert!(held() >= 500, "{}", held());
    for gate in gates {
        gate.complete().unwrap();
    }
    other.finish().unwrap();
    drop((other, queue));
    assert_eq!(held(), 0);
}
