//! The end of the process, for threads that call OpenCL.
//!
//! When `main` has returned, the drivers' static destructors run while other threads still work. A call that comes into a
//! driver after that crashes, or answers success and does nothing (seen with Intel's CPU runtime, whose `clFinish` then
//! returns at once). So a handler that runs before those destructors says that the end has begun, and each answer is judged by
//! that *behind* the call: if the end had not begun, the answer is true.
//!
//! No call is refused or waited for: a command may wait for a user event that a thread is about to end, and OpenCL's
//! destructors wait for the command.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use parking_lot::Mutex;

static BEGUN: AtomicBool = AtomicBool::new(false);
/// What a handler was registered behind: a platform object by its address, and what it did for the first time.
static BEHIND: Mutex<Vec<(usize, First)>> = Mutex::new(Vec::new());

/// What a driver does for the first time, after which it may have further libraries and static objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    Load,
    Context,
    Build,
    Wait,
}

/// Whether the end of the process has begun. If not, what the driver answered before is true.
pub(crate) fn has_begun() -> bool {
    // The driver's answer was read before the flag.
    fence(Ordering::Acquire);
    BEGUN.load(Ordering::Acquire)
}

/// Registers the handler once more: what is registered last runs first, and the driver of `platform` has just done
/// `first`.
pub(crate) fn register_behind(platform: usize, first: First) {
    extern "C" fn at_exit() {
        BEGUN.store(true, Ordering::SeqCst);
    }
    let mut behind = BEHIND.lock();
    if !behind.contains(&(platform, first)) {
        behind.push((platform, first));
        // Without memory for one more handler the process ends as it would without this.
        let _ = atexit(at_exit);
    }
}

unsafe extern "C" {
    safe fn atexit(handler: extern "C" fn()) -> c_int;
}
