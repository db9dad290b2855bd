//! Device memory that the host cannot touch, at level 2 of `HIP_HOST_STRICT`.
//!
//! On a card without a large PCI window a host access to device memory faults; here it is the host's own memory and
//! would go unnoticed. At level 2 the memory of `hipMalloc` and its kin is open only while a stream works on memory, so
//! that any access by the program at another time faults. What is caught is therefore not an access at the very moment
//! of a kernel or copy. Memory of other kinds is left alone, and OpenCL kernels cannot use HIP memory at this level.

use std::ffi::c_void;

use parking_lot::Mutex;
use rustix::mm::{MprotectFlags, mprotect};

use super::registry;
use crate::log;
use crate::strict::is_on;

/// Commands at work.
static AT_WORK: Mutex<usize> = Mutex::new(0);

/// Pages, whole.
#[derive(Clone, Copy)]
pub(crate) struct Pages {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
}

fn protect(pages: Pages, flags: MprotectFlags) {
    // SAFETY: whole pages of memory that the registry gave out for this and holds meanwhile; a program that touches
    // them at the wrong time faults, as it asked for.
    let done = unsafe { mprotect(pages.start as *mut c_void, pages.bytes, flags) };
    if done.is_err() {
        log::warn("HIP_HOST_STRICT=2: the system did not change a page's protection");
    }
}

fn protect_all(flags: MprotectFlags) {
    registry::for_each_device_pages(|pages| protect(pages, flags));
}

/// Device memory is open as long as this lives.
pub(crate) struct Open(());

/// Opens device memory, at level 2.
pub(crate) fn open() -> Option<Open> {
    if !is_on() {
        return None;
    }
    let mut at_work = AT_WORK.lock();
    if *at_work == 0 {
        protect_all(MprotectFlags::READ | MprotectFlags::WRITE);
    }
    *at_work += 1;
    Some(Open(()))
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut at_work = AT_WORK.lock();
        *at_work -= 1;
        if *at_work == 0 {
            protect_all(MprotectFlags::empty());
        }
    }
}

/// Puts memory that was just made, or mapped anew, under the rule; `publish` makes it known.
pub(crate) fn admit<R>(publish: impl FnOnce() -> R) -> R {
    if !is_on() {
        return publish();
    }
    let at_work = AT_WORK.lock();
    let result = publish();
    if *at_work == 0 {
        protect_all(MprotectFlags::empty());
    }
    result
}
