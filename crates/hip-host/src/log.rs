//! Messages for the person at the terminal, where an error code alone would not tell why the strict model refused.

use std::sync::OnceLock;

fn verbose() -> bool {
    static VERBOSE: OnceLock<bool> = OnceLock::new();
    *VERBOSE.get_or_init(|| std::env::var("HIP_HOST_LOG").is_ok_and(|level| level != "0"))
}

/// Why a call was refused; shown when `HIP_HOST_LOG` is set to anything but 0, as ROCm does with `AMD_LOG_LEVEL`.
pub(crate) fn refused(call: &str, reason: std::fmt::Arguments<'_>) {
    if verbose() {
        eprintln!("hip-host: {call}: {reason}");
    }
}

/// Something the user set cannot be honoured; always shown.
pub(crate) fn warn(message: &str) {
    eprintln!("hip-host: {message}");
}
