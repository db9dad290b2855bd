//! Memory of one process in another: this program starts itself as the second process.

mod child;
#[path = "../common/mod.rs"]
mod common;
mod deaths;
mod exchange;
mod exit;
mod leaks;
mod meetings;
mod turns;
mod wire;

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interop::{Bridge, Link, Options};

/// Words; no multiple of a work-group.
pub const LEN: usize = 5000;

/// Longer than any step takes on a busy machine, shorter than a test may hang.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Descriptors and processes are counted: one test at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A bridge on the host platform.
pub fn open() -> Bridge {
    Bridge::open(&common::host(), &Options::default()).expect("a bridge")
}

/// A second process, killed at the latest when it is dropped.
#[derive(Debug)]
pub struct Second(Child);

impl Second {
    /// Starts this program as `role`, see [`child`], with the other end of a link.
    pub fn start(role: &str) -> (Self, Link) {
        let (link, theirs) = Link::pair().expect("a link");
        let child = Command::new(std::env::current_exe().expect("a path"))
            .args(["child::the_second_process", "--exact", "--ignored"])
            .arg("--nocapture")
            .env(child::ROLE, role)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .expect("the second process starts");
        (Self(child), link.with_limit(LIMIT))
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }

    /// That it ended as it meant to.
    pub fn ended_well(mut self) {
        let status = self.0.wait().expect("a child");
        assert!(status.success(), "the second process: {status}");
    }

    /// That it killed itself.
    pub fn was_killed(mut self) {
        use std::os::unix::process::ExitStatusExt;
        let status = self.0.wait().expect("a child");
        assert_eq!(status.signal(), Some(9), "{status}");
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
