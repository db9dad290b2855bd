//! Kernels checked by AddressSanitizer, on demand.
//!
//! Guard pages catch what leaves an allocation by a page or ends beyond its last 256 bytes. With
//! `HIP_HOST_SANITIZE=address` kernels are compiled with the compiler's sanitizer, and the bytes around every
//! allocation, and all of it once freed, are marked for it: the first byte too far ends the process with a report that
//! names the kernel's line.
//!
//! The sanitizer's runtime has to be in the process before anything else, which only `LD_PRELOAD` does; without it the
//! dynamic linker would end the process when the first kernel is loaded, so compiling is refused instead.
//!
//! What it does not see: static `__shared__` arrays (they are thread-local variables, which the sanitizers of GCC and
//! Clang leave alone) and arrays inside structures.

use std::ffi::c_void;
use std::sync::OnceLock;

use libloading::os::unix::Library;

/// The variable that requests it.
const VARIABLE: &str = "HIP_HOST_SANITIZE";

type Mark = unsafe extern "C" fn(*const c_void, usize);

/// The runtime that is in this process.
pub(crate) struct Runtime {
    poison: Mark,
    unpoison: Mark,
}

impl Runtime {
    fn in_process() -> Option<Self> {
        let process = Library::this();
        let mark = |name: &[u8]| {
            // SAFETY: the runtime's documented interface (sanitizer/asan_interface.h) gives both names this signature.
            unsafe { process.get::<Mark>(name) }.ok().map(|mark| *mark)
        };
        Some(Self {
            poison: mark(b"__asan_poison_memory_region\0")?,
            unpoison: mark(b"__asan_unpoison_memory_region\0")?,
        })
    }

    /// From now on a kernel that touches `[start, end)` is reported.
    pub(crate) fn forbid(&self, start: usize, end: usize) {
        if start < end {
            // SAFETY: marks are kept beside the memory, which is not touched.
            unsafe { (self.poison)(start as *const c_void, end - start) };
        }
    }

    /// The bytes of `[start, end)` may be touched again.
    pub(crate) fn allow(&self, start: usize, end: usize) {
        if start < end {
            // SAFETY: as in `forbid`.
            unsafe { (self.unpoison)(start as *const c_void, end - start) };
        }
    }
}

enum State {
    Off,
    On(Runtime),
    NoRuntime,
    Unknown(String),
}

fn state() -> &'static State {
    static STATE: OnceLock<State> = OnceLock::new();
    STATE.get_or_init(|| match std::env::var(VARIABLE) {
        Ok(value) if value.is_empty() => State::Off,
        Ok(value) if value == "address" => Runtime::in_process().map_or(State::NoRuntime, State::On),
        Ok(value) => State::Unknown(value),
        Err(_) => State::Off,
    })
}

/// The runtime that must know about memory, if kernels are checked.
pub(crate) fn runtime() -> Option<&'static Runtime> {
    match state() {
        State::On(runtime) => Some(runtime),
        State::Off | State::NoRuntime | State::Unknown(_) => None,
    }
}

/// Whether kernels are to be compiled with checks. `library` returns where the compiler has the sanitizer's runtime.
///
/// # Errors
/// The variable holds something else, or the runtime is not in the process.
pub(crate) fn wanted(library: impl FnOnce() -> String) -> Result<bool, String> {
    match state() {
        State::Off => Ok(false),
        State::On(_) => Ok(true),
        State::NoRuntime => Err(format!(
            "hip-host: {VARIABLE}=address needs the sanitizer's runtime from the start of the process: set LD_PRELOAD={}",
            library()
        )),
        State::Unknown(value) => Err(format!(
            "hip-host: {VARIABLE}=`{value}` is unknown: the only sanitizer is `address`"
        )),
    }
}
