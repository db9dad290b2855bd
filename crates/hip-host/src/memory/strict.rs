//! Device memory that the host cannot touch: `HIP_HOST_STRICT=2`.
//!
//! On a card without a large PCI window the processor has no way to `hipMalloc` memory, and a program that follows such a pointer
//! crashes. Here its pages are closed to the whole process, and opened while a command of any stream runs: its kernels are host
//! threads. So an access is caught for certain when the device is idle, after a synchronisation for example, and by
//! chance while it works.
//!
//! Memory that OpenCL or another owner allocated stays open; the kernels of a CPU OpenCL are host threads that no stream knows of.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::mm::{MprotectFlags, mprotect};

use crate::log;

/// Whole pages by their first address, and how many commands run.
struct Doors {
    pages: BTreeMap<usize, usize>,
    running: usize,
}

static DOORS: Mutex<Doors> = Mutex::new(Doors {
    pages: BTreeMap::new(),
    running: 0,
});

/// Whether `HIP_HOST_STRICT` asks for it.
fn is_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| match std::env::var("HIP_HOST_STRICT").as_deref() {
        Ok("2") => true,
        Err(_) | Ok("" | "1") => false,
        Ok(other) => {
            log::warn(&format!(
                "HIP_HOST_STRICT=`{other}` is neither 1 nor 2: the host may touch device memory, as with 1"
            ));
            false
        }
    })
}

fn set(start: usize, bytes: usize, access: MprotectFlags) {
    // SAFETY: the pages are a device allocation's own, kept mapped until `forget` has returned; only the device's threads and
    // callers who break HIP's rules touch them.
    if unsafe { mprotect(start as *mut c_void, bytes, access) }.is_err() {
        log::warn(&format!(
            "the system refused to change the access to {bytes} bytes at {start:#x}"
        ));
    }
}

/// Closes `bytes` bytes of whole pages at `start` unless a command runs.
pub(super) fn close(start: usize, bytes: usize) {
    if !is_on() {
        return;
    }
    let mut doors = DOORS.lock();
    doors.pages.insert(start, bytes);
    if doors.running == 0 {
        set(start, bytes, MprotectFlags::empty());
    }
}

/// Leaves the pages at `start` alone from now on.
pub(super) fn forget(start: usize) {
    if is_on() {
        DOORS.lock().pages.remove(&start);
    }
}

/// While this lives, device memory is open.
pub(crate) struct Open(());

/// Opens device memory for a command; `None` where it is never closed.
pub(crate) fn open() -> Option<Open> {
    if !is_on() {
        return None;
    }
    let mut doors = DOORS.lock();
    doors.running += 1;
    if doors.running == 1 {
        for (&start, &bytes) in &doors.pages {
            set(start, bytes, MprotectFlags::READ | MprotectFlags::WRITE);
        }
    }
    Some(Open(()))
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut doors = DOORS.lock();
        doors.running -= 1;
        if doors.running == 0 {
            for (&start, &bytes) in &doors.pages {
                set(start, bytes, MprotectFlags::empty());
            }
        }
    }
}
