//! What a driver is told of the events that queues wait for: a thin driver notes it.

use std::cell::RefCell;
use std::sync::OnceLock;

use clmgr::opencl_sys::{CL_COMPLETE, cl_command_queue, cl_event, cl_int};
use clmgr::{Api, Context, Manager, UserEvent};

static REAL: OnceLock<Api> = OnceLock::new();

// Each test's own.
thread_local! {
    static FLUSHED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static STATUSES: RefCell<Vec<cl_int>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn flush(queue: cl_command_queue) -> cl_int {
    FLUSHED.with_borrow_mut(|flushed| flushed.push(queue.addr()));
    // SAFETY: the caller's queue.
    unsafe { REAL.get().unwrap().clFlush.unwrap()(queue) }
}

unsafe extern "C" fn set_status(event: cl_event, status: cl_int) -> cl_int {
    STATUSES.with_borrow_mut(|statuses| statuses.push(status));
    // SAFETY: the caller's event and status.
    unsafe { REAL.get().unwrap().clSetUserEventStatus.unwrap()(event, status) }
}

/// The first device by a driver that takes notes.
fn context() -> Context {
    let note = |api: &mut Api| {
        let _ = REAL.set(*api);
        api.clFlush = Some(flush);
        api.clSetUserEventStatus = Some(set_status);
    };
    // SAFETY: the functions pass everything on.
    let manager = unsafe { Manager::load_with(note) }.unwrap_or_else(|error| panic!("{error}"));
    Context::new(&manager.devices()[0]).unwrap()
}

#[test]
fn waiting_for_an_event_flushes_the_other_queue_that_it_is_of() {
    let context = context();
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

#[test]
fn no_driver_is_told_that_a_user_event_failed() {
    let (here, elsewhere) = (context(), context());
    let queue = here.queue().unwrap();
    UserEvent::new(&here).unwrap().complete().unwrap();
    UserEvent::new(&here).unwrap().fail().unwrap();
    drop(UserEvent::new(&here).unwrap());
    assert_eq!(STATUSES.take(), [CL_COMPLETE; 3]);
    // Between contexts one more user event fails with it, perhaps on another thread.
    let gate = UserEvent::new(&elsewhere).unwrap();
    queue.wait_for_any(gate.event()).unwrap();
    gate.fail().unwrap();
    queue.finish().unwrap();
    let statuses = STATUSES.take();
    assert!(statuses.iter().all(|status| *status == CL_COMPLETE), "{statuses:?}");
}
