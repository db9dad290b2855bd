//! The end of the process, for the threads of streams.
//!
//! Commands use OpenCL's memory and call OpenCL. When a program exits, the static destructors of its OpenCL library free
//! that memory while these threads go on (seen with Intel's CPU runtime: SIGSEGV in a kernel). The code that joins the
//! two therefore ends the commands first. From then on each command fails with `hipErrorDeinitialized`, as a call into a
//! runtime does that unloads, so that destructors of the program which wait for commands return.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hip_sys::hipError_t;
use parking_lot::{Condvar, Mutex};

use crate::error::Result;

/// The commands of this process.
pub(crate) static COMMANDS: Commands = Commands::new();

/// Commands that run until the process ends.
pub(crate) struct Commands {
    ended: AtomicBool,
    under_way: Mutex<usize>,
    none_under_way: Condvar,
}

impl Commands {
    const fn new() -> Self {
        Self {
            ended: AtomicBool::new(false),
            under_way: Mutex::new(0),
            none_under_way: Condvar::new(),
        }
    }

    /// Whether commands fail instead of running.
    pub(crate) fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Runs `work`, which [`end`](Self::end) waits for. After the end `work` is forgotten with all that it owns: its
    /// destructors may call OpenCL.
    pub(crate) fn run<W: FnOnce() -> Result>(&self, work: W) -> Result {
        let Some(_running) = self.enter() else {
            std::mem::forget(work);
            return Err(hipError_t::hipErrorDeinitialized);
        };
        work()
    }

    /// As [`run`](Self::run), for work that may wait for something outside its stream and is not waited for.
    pub(crate) fn run_unawaited<W: FnOnce() -> Result>(&self, work: W) -> Result {
        if self.have_ended() {
            std::mem::forget(work);
            return Err(hipError_t::hipErrorDeinitialized);
        }
        work()
    }

    fn enter(&self) -> Option<Running<'_>> {
        // The flag is read under the lock: `end` sees this command, or this command sees the end.
        let mut under_way = self.under_way.lock();
        (!self.have_ended()).then(|| {
            *under_way += 1;
            Running(self)
        })
    }

    /// Leaves a command that runs in parts, between two of them, once the process ends.
    pub(crate) fn leave_if_ended(&self) {
        if self.have_ended() {
            // Not a panic, which would print a message: the stream knows why.
            std::panic::resume_unwind(Box::new(()));
        }
    }

    /// Ends the commands and waits for those under way, no longer than `patience`.
    pub(crate) fn end(&self, patience: Duration) {
        let mut under_way = self.under_way.lock();
        self.ended.store(true, Ordering::Release);
        self.none_under_way
            .wait_while_for(&mut under_way, |under_way| *under_way > 0, patience);
    }
}

/// One command under way.
struct Running<'a>(&'a Commands);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut under_way = self.0.under_way.lock();
        *under_way -= 1;
        if *under_way == 0 {
            self.0.none_under_way.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_end_waits_for_a_command_under_way_and_forgets_those_behind_it() {
        struct Owned(mpsc::Sender<&'static str>);
        impl Drop for Owned {
            fn drop(&mut self) {
                let _ = self.0.send("dropped");
            }
        }
        let commands = Commands::new();
        let (tell, told) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let (commands, done) = (&commands, tell.clone());
            let (begin, began) = mpsc::channel();
            scope.spawn(move || {
                let ran = commands.run(|| {
                    begin.send(()).expect("heard");
                    let _ = gate.recv();
                    done.send("ran").expect("heard");
                    Ok(())
                });
                assert_eq!(ran, Ok(()));
            });
            began.recv().expect("the command began");
            let done = tell.clone();
            scope.spawn(move || {
                commands.end(LONG);
                done.send("ended").expect("heard");
            });
            while !commands.have_ended() {
                thread::yield_now();
            }
            drop(open);
        });
        assert_eq!([told.recv(), told.recv()], [Ok("ran"), Ok("ended")]);
        let late = |owned: Owned| {
            move || {
                let _owned = owned;
                Ok(())
            }
        };
        let refused = Err(hipError_t::hipErrorDeinitialized);
        assert_eq!(commands.run(late(Owned(tell.clone()))), refused);
        assert_eq!(commands.run_unawaited(late(Owned(tell.clone()))), refused);
        drop(tell);
        assert!(told.try_recv().is_err(), "neither run nor dropped");
    }

    #[test]
    fn the_end_does_not_wait_for_work_that_waits() {
        let commands = Commands::new();
        let ran = commands.run_unawaited(|| {
            commands.end(LONG);
            Ok(())
        });
        assert_eq!(ran, Ok(()));
    }

    #[test]
    fn a_command_that_never_ends_holds_the_end_for_its_patience_only() {
        let commands = Commands::new();
        let ran = commands.run(|| {
            commands.end(Duration::from_millis(1));
            Ok(())
        });
        assert_eq!(ran, Ok(()));
    }
}
