use std::time::{Duration, Instant};

use crate::Result;

/// The cost of a first call, and of the same call again.
#[derive(Clone, Debug)]
pub struct FirstCall {
    /// What was called.
    pub what: &'static str,
    /// The first time in this bridge. Where the process did the same before, that call was the
    /// expensive one.
    pub first: Duration,
    /// The second time; `None` for a call made once.
    pub again: Option<Duration>,
}

pub(crate) fn once<T>(calls: &mut Vec<FirstCall>, what: &'static str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let value = call()?;
    calls.push(FirstCall {
        what,
        first: start.elapsed(),
        again: None,
    });
    Ok(value)
}
