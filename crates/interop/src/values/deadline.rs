//! The end of a wait, also of one that nothing would otherwise end.

use std::time::{Duration, Instant};

/// Longer than any program runs, and no clock overflows by it.
const NEVER: Duration = Duration::from_secs(1 << 32);

/// The moment `limit` from now; a limit that no clock can hold is a century away.
pub(crate) fn after(limit: Duration) -> Instant {
    Instant::now() + limit.min(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_too_long() {
        let now = Instant::now();
        assert!(after(Duration::MAX) >= now + NEVER);
        assert!(after(Duration::ZERO) < now + NEVER);
    }
}
