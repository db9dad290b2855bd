//! The end of the process, for a thread that calls drivers.
//!
//! When `main` has returned, the drivers' static destructors run, and a call that comes into them crashes (seen with
//! AMD's OpenCL: `clSVMFree` of a hand-off that ended as late as the program). So the calls of this crate's own thread
//! end before.

use std::ffi::c_int;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use platform::Platform;

/// Calls that may be made until the process ends.
pub(super) struct Calls {
    /// Read for as long as one is under way.
    under_way: RwLock<()>,
    ended: AtomicBool,
}

/// The calls of this process's threads.
pub(super) static CALLS: Calls = Calls::new();

/// The longest that the process waits for a call that is under way when it ends.
const PATIENCE: Duration = Duration::from_secs(1);

/// From now on the end of the process ends [`CALLS`], before the destructors of this platform's drivers: they are
/// loaded by now, and what was registered last runs first.
pub(super) fn end_with_the_process(platform: Platform) {
    extern "C" fn at_exit() {
        CALLS.end();
    }
    // Miri has no end of a process, and no drivers.
    if cfg!(miri) {
        return;
    }
    static REGISTERED: Mutex<Vec<Platform>> = Mutex::new(Vec::new());
    let mut registered = REGISTERED.lock();
    if !registered.contains(&platform) {
        registered.push(platform);
        // Without memory for one more handler the process ends as it would without this.
        let _ = atexit(at_exit);
    }
}

unsafe extern "C" {
    safe fn atexit(handler: extern "C" fn()) -> c_int;
}

impl Calls {
    const fn new() -> Self {
        Self {
            under_way: RwLock::new(()),
            ended: AtomicBool::new(false),
        }
    }

    /// Does `work`, which calls a driver; once the process ends, it is forgotten with all that it owns.
    pub(super) fn make(&self, work: impl FnOnce()) {
        let under_way = self.under_way.read();
        if self.ended.load(Ordering::Acquire) {
            mem::forget(work);
        } else {
            work();
        }
        drop(under_way);
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        // Taken for the wait alone.
        drop(self.under_way.try_write_for(PATIENCE));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Reports when it is dropped.
    struct Owned(mpsc::Sender<&'static str>);

    impl Drop for Owned {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }

    #[test]
    fn the_end_waits_for_a_call_under_way_and_forgets_those_behind_it() {
        let calls = Calls::new();
        let (tell, told) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let (begin, began) = mpsc::channel();
        thread::scope(|scope| {
            let (calls, done) = (&calls, tell.clone());
            scope.spawn(move || {
                calls.make(|| {
                    begin.send(()).expect("heard");
                    let _ = gate.recv();
                    done.send("called").expect("heard");
                });
            });
            began.recv().expect("the call began");
            let done = tell.clone();
            scope.spawn(move || {
                calls.end();
                done.send("ended").expect("heard");
            });
            while !calls.ended.load(Ordering::Acquire) {
                thread::yield_now();
            }
            drop(open);
        });
        assert_eq!([told.recv(), told.recv()], [Ok("called"), Ok("ended")]);
        let owned = Owned(tell.clone());
        calls.make(move || drop(owned));
        drop(tell);
        assert!(told.try_recv().is_err(), "neither called nor dropped");
    }

    #[test]
    fn calls_are_made_until_the_end() {
        let calls = Calls::new();
        let (tell, told) = mpsc::channel();
        let owned = Owned(tell);
        calls.make(move || drop(owned));
        assert_eq!(told.recv(), Ok("dropped"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn the_end_of_the_process_ends_the_calls() {
        const NAME: &str = "handoff::exit::tests::the_end_of_the_process_ends_the_calls";
        const CHILD: &str = "HIPCL_TEST_CALLS_CHILD";
        const WELL: i32 = 42;
        extern "C" fn look() {
            if !CALLS.ended.load(Ordering::Acquire) {
                std::process::abort();
            }
        }
        if std::env::var_os(CHILD).is_some() {
            // What is registered first runs last, as the drivers' destructors do.
            assert_eq!(atexit(look), 0);
            end_with_the_process(Platform::Host);
            std::process::exit(WELL);
        }
        let program = std::env::current_exe().expect("this program");
        let child = std::process::Command::new(program)
            .args([NAME, "--exact"])
            .env(CHILD, "")
            .output()
            .expect("a process");
        assert_eq!(child.status.code(), Some(WELL), "{child:?}");
    }
}
