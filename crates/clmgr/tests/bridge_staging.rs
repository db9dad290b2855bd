//! A copy that waits finds the pieces of a staged bridge still in use by one that does not: a thin driver holds the
//! latter up.

use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};

use clmgr::opencl_sys::{self as sys, cl_event, cl_int, cl_uint};
use clmgr::{Api, BufferBridge, Context, Manager, RegularBuffer};

static REAL: OnceLock<Api> = OnceLock::new();
/// The queue whose events' callbacks are held back.
static FROM: Mutex<usize> = Mutex::new(0);
static HELD: Mutex<Vec<Callback>> = Mutex::new(Vec::new());

type Notify = unsafe extern "C" fn(cl_event, cl_int, *mut c_void);

struct Callback {
    event: usize,
    notify: Option<Notify>,
    data: usize,
}

/// Whether the event is of a command of the queue in `FROM`.
fn is_held_back(event: cl_event) -> bool {
    let mut queue: usize = 0;
    let info = REAL.get().unwrap().clGetEventInfo.unwrap();
    // SAFETY: the caller's event is alive, and the place has the answer's size.
    let code = unsafe {
        info(
            event,
            sys::CL_EVENT_COMMAND_QUEUE,
            size_of_val(&queue),
            (&raw mut queue).cast(),
            std::ptr::null_mut(),
        )
    };
    assert_eq!(code, 0);
    queue != 0 && queue == *FROM.lock().unwrap()
}

unsafe extern "C" fn set_callback(event: cl_event, kind: cl_int, notify: Option<Notify>, data: *mut c_void) -> cl_int {
    if is_held_back(event) {
        HELD.lock().unwrap().push(Callback {
            event: event.expose_provenance(),
            notify,
            data: data.expose_provenance(),
        });
        return 0;
    }
    // SAFETY: the caller's arguments.
    unsafe { REAL.get().unwrap().clSetEventCallback.unwrap()(event, kind, notify, data) }
}

fn let_go() {
    *FROM.lock().unwrap() = 0;
    for held in HELD.lock().unwrap().drain(..) {
        let set = REAL.get().unwrap().clSetEventCallback.unwrap();
        // SAFETY: the copy under way keeps the event; the rest is what its caller gave.
        let code = unsafe {
            set(
                std::ptr::with_exposed_provenance_mut(held.event),
                sys::CL_COMPLETE,
                held.notify,
                std::ptr::with_exposed_provenance_mut(held.data),
            )
        };
        assert_eq!(code, 0);
    }
}

unsafe extern "C" fn wait(count: cl_uint, events: *const cl_event) -> cl_int {
    let real = REAL.get().unwrap().clWaitForEvents.unwrap();
    // SAFETY: the caller's list has one event at least.
    let reads = is_held_back(unsafe { *events });
    // A wait for the target's queue waits for what is held back. By the end of a wait for a read of the next copy, the
    // piece has been read over.
    if !reads {
        let_go();
    }
    // SAFETY: the caller's arguments.
    let code = unsafe { real(count, events) };
    let_go();
    code
}

#[test]
fn a_piece_is_not_read_over_before_an_earlier_copy_has_written_it() {
    const LEN: usize = 128;
    let hold = |api: &mut clmgr::Api| {
        let _ = REAL.set(*api);
        api.clSetEventCallback = Some(set_callback);
        api.clWaitForEvents = Some(wait);
    };
    // SAFETY: the functions pass everything on, if later.
    let manager = unsafe { Manager::load_with(hold) }.unwrap_or_else(|error| panic!("{error}"));
    let device = manager.devices().remove(0);
    let (here, there) = (Context::new(&device).unwrap(), Context::new(&device).unwrap());
    let (from, to) = (here.queue().unwrap(), there.queue().unwrap());
    let bridge = BufferBridge::staged(&from, &to, LEN * size_of::<u32>()).unwrap();
    let source = |value| {
        let mut source = RegularBuffer::<u32>::new(&here, LEN).unwrap();
        source.write(&from, &[value; LEN]).unwrap();
        source
    };
    let (first, second) = (source(1), source(2));
    let mut targets = [(); 2].map(|()| RegularBuffer::<u32>::new(&there, LEN).unwrap());
    from.finish().unwrap();
    *FROM.lock().unwrap() = from.raw().addr();
    let copy = bridge.copy_async(&first, 0, &mut targets[0], 0, LEN).unwrap();
    assert_eq!(HELD.lock().unwrap().len(), 1, "the write waits for the read");
    bridge.copy(&second, 0, &mut targets[1], 0, LEN).unwrap();
    copy.wait().unwrap();
    for (target, value) in targets.iter().zip([1, 2]) {
        let mut got = [0; LEN];
        target.read(&to, &mut got).unwrap();
        assert_eq!(got, [value; LEN]);
    }
}
