//! The end of the process, for threads that call drivers.
//!
//! When `main` has returned, the drivers' static destructors run, and a call that comes into them crashes (seen with
//! AMD's OpenCL: `clSVMFree` of a hand-off that ended as late as the program). So the calls of this crate's own thread
//! and of its callbacks end before. So do the streams of the software device: they are this process's own threads, and
//! go on in memory that OpenCL frees (seen with Intel's CPU runtime). The handler ends hand-offs under way last:
//! nothing else would end them then, and OpenCL's destructors wait for what is queued behind them.

use std::ffi::c_int;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use platform::{ForeignHooks, Platform};

use super::watchdog;
use crate::core::Core;
use crate::{Error, Result};

/// Held while a hand-off begins. After the end of the process has begun, no hand-off may begin: nothing would end it.
pub(crate) fn begin() -> Result<UnderWay> {
    CALLS.begin().ok_or(Error::ProcessEnds)
}

/// A call under way, which the end of the process waits for.
pub(crate) type UnderWay = RwLockReadGuard<'static, ()>;

/// Calls that may be made until the process ends.
pub(super) struct Calls {
    /// Read for as long as one is under way.
    under_way: RwLock<()>,
    ended: AtomicBool,
}

/// The calls of this process's threads.
pub(super) static CALLS: Calls = Calls::new();

/// Refuses what OpenCL answered if the end of the process has begun.
pub(crate) fn check_answers() -> Result<()> {
    CALLS.check()
}

/// The longest that the process waits for what is under way when it ends.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a bridge joins: a platform's libraries, and an OpenCL library by the address of its platform object.
#[derive(Clone, Copy)]
struct Joined {
    platform: Platform,
    opencl: usize,
    hooks: Option<ForeignHooks>,
}

static JOINED: Mutex<Vec<Joined>> = Mutex::new(Vec::new());

/// From now on the end of the process ends [`CALLS`] and the software device's streams, before the destructors of the
/// drivers that this bridge joins: they are loaded by now, and what was registered last runs first.
pub(crate) fn end_with_the_process(core: &Core) {
    let opencl = core.context.device().raw_platform().addr();
    register(Joined {
        platform: core.platform,
        opencl,
        hooks: core.foreign,
    });
}

fn register(new: Joined) {
    extern "C" fn at_exit() {
        CALLS.end();
        // Copied: a command under way may open a bridge.
        let joined = JOINED.lock().clone();
        for hooks in joined.iter().filter_map(|joined| joined.hooks) {
            (hooks.end)(PATIENCE);
        }
        watchdog::end_all(PATIENCE);
    }
    let mut joined = JOINED.lock();
    if !joined.iter().any(|known| known.has_drivers_of(&new)) {
        joined.push(new);
        // Without memory for one more handler the process ends as it would without this.
        let _ = atexit(at_exit);
    }
}

unsafe extern "C" {
    safe fn atexit(handler: extern "C" fn()) -> c_int;
}

impl Joined {
    /// Whether what ends these drivers' work ends the other's.
    fn has_drivers_of(&self, other: &Self) -> bool {
        self.platform == other.platform && self.opencl == other.opencl
    }
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
        match self.begin() {
            Some(_under_way) => work(),
            None => mem::forget(work),
        }
    }

    fn begin(&self) -> Option<RwLockReadGuard<'_, ()>> {
        // A driver may call back from inside of a call.
        let under_way = self.under_way.read_recursive();
        (!self.ended.load(Ordering::Acquire)).then_some(under_way)
    }

    /// Refuses what was learnt from a driver whose destructors may have run meanwhile: it answers success then, and does
    /// nothing (seen with Intel's CPU runtime). What it answered before the end began is true.
    fn check(&self) -> Result<()> {
        match self.ended.load(Ordering::Acquire) {
            true => Err(Error::ProcessEnds),
            false => Ok(()),
        }
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
        assert!(matches!(calls.check(), Err(Error::ProcessEnds)));
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
        calls.check().expect("answers are true");
        assert_eq!(told.recv(), Ok("dropped"));
    }

    #[test]
    fn each_pair_of_drivers_gets_a_handler() {
        let joined = |platform, opencl| Joined {
            platform,
            opencl,
            hooks: None,
        };
        let one = joined(Platform::Host, 1);
        assert!(one.has_drivers_of(&joined(Platform::Host, 1)));
        assert!(!one.has_drivers_of(&joined(Platform::Host, 2)));
        assert!(!one.has_drivers_of(&joined(Platform::Amd, 1)));
        assert!(!one.has_drivers_of(&joined(Platform::Amd, 2)));
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
            register(Joined {
                platform: Platform::Host,
                opencl: 0,
                hooks: None,
            });
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
