//! What only a log can report: the events of the `tracing` feature, and nothing without it.

use crate::Error;

/// A call that the library accepted, with its key arguments: one event of level *trace*. The text is only formatted for
/// a subscriber.
#[cfg_attr(
    not(feature = "tracing"),
    expect(unused_variables, reason = "no subscriber without the feature")
)]
#[inline]
pub(crate) fn accepted(call: impl FnOnce() -> String) {
    #[cfg(feature = "tracing")]
    if tracing::enabled!(tracing::Level::TRACE) {
        tracing::trace!(call = call());
    }
}

/// The library had less memory than it wanted, but returned a correct result.
pub(crate) fn degraded(call: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(call, "rocBLAS had little device memory and ran slower");
    #[cfg(not(feature = "tracing"))]
    let _ = call;
}

/// A handle that the device may still use is kept for ever.
pub(crate) fn leaked_handle() {
    #[cfg(feature = "tracing")]
    tracing::error!("rocBLAS handle leaked: its stream did not settle");
}

/// An error that a destructor found, and that HIP's list of deferred errors does not take.
pub(crate) fn while_dropping(error: &Error) {
    #[cfg(feature = "tracing")]
    tracing::error!(%error, "rocBLAS error while dropping");
    #[cfg(not(feature = "tracing"))]
    let _ = error;
}

/// Whether a solver call succeeded will never be known.
pub(crate) fn unseen_info() {
    #[cfg(feature = "tracing")]
    tracing::warn!("solver result dropped without a look at its info");
}
