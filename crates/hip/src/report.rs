//! What only a log can report: the events of the `tracing` feature, and nothing without it.

use crate::Error;

/// An error that a destructor found.
pub(crate) fn while_dropping(error: &Error) {
    #[cfg(feature = "tracing")]
    tracing::error!(%error, "HIP error while dropping");
    #[cfg(not(feature = "tracing"))]
    let _ = error;
}

/// Something that a device may still use is kept for ever.
pub(crate) fn leaked(what: &'static str, bytes: usize) {
    #[cfg(feature = "tracing")]
    tracing::error!(what, bytes, "leaked: a stream that used it did not settle");
    #[cfg(not(feature = "tracing"))]
    let _ = (what, bytes);
}

/// The compiler succeeded with messages.
pub(crate) fn compiler_words(program: &str, log: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(program, log, "HIPRTC printed a message");
    #[cfg(not(feature = "tracing"))]
    let _ = (program, log);
}
