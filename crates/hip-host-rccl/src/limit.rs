//! How long a rank waits for the others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longer than any loaded machine needs, shorter than the patience of who waits for a test.
static LIMIT_MS: AtomicU64 = AtomicU64::new(120_000);

/// Sets how long a rank waits for the others before the communicator fails, 2 minutes if never set. The real library
/// waits for ever.
pub fn set_time_limit(limit: Duration) {
    let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    LIMIT_MS.store(limit, Ordering::Relaxed);
}

pub(crate) fn time_limit() -> Duration {
    Duration::from_millis(LIMIT_MS.load(Ordering::Relaxed))
}
