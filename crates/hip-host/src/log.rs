//! Messages for the person at the terminal, where an error code alone would not show why the strict model refused.

use std::fmt::Debug;
use std::sync::OnceLock;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Quiet,
    Refusals,
    Calls,
}

/// `HIP_HOST_LOG`, which stands for what ROCm has `AMD_LOG_LEVEL` for.
fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| match std::env::var("HIP_HOST_LOG").as_deref() {
        Err(_) | Ok("" | "0") => Level::Quiet,
        Ok("2") => Level::Calls,
        Ok(_) => Level::Refusals,
    })
}

/// A call with its result, and the thread that made it.
pub(crate) fn called(call: &str, code: &dyn Debug) {
    if level() == Level::Calls {
        eprintln!("hip-host: {:?}: {call} -> {code:?}", std::thread::current().id());
    }
}

/// Why a call was refused.
pub fn refused(call: &str, reason: std::fmt::Arguments<'_>) {
    if level() >= Level::Refusals {
        eprintln!("hip-host: {call}: {reason}");
    }
}

/// Something the user set cannot be honoured; always shown.
pub(crate) fn warn(message: &str) {
    eprintln!("hip-host: {message}");
}
