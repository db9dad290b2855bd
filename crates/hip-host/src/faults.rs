//! Fault injection and delayed completion, to test how callers cope.
//!
//! `HIP_HOST_FAIL=call:n[:code]` makes the `n`-th call of `call` (counted from one) fail with `code` (decimal, none that means
//! success; left out, the API's "unknown error"). A star for `n` fails every call. `async/call:n[:code]` fails the command that
//! `call` put into a stream instead, when the stream gets to it. Several rules are separated by commas.
//! `HIP_HOST_DELAY=microseconds` is slept before each stream command, so completion is visibly late. Both are read once
//! per process; [`set_failures`] and [`set_delay`] change them from a test.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

struct Rule {
    call: String,
    nth: Option<u64>,
    code: Option<u32>,
    seen: u64,
}

/// What an injected failure returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Injected {
    /// The API's "unknown error".
    Unknown,
    /// The code the rule names, as the API's own number.
    Code(u32),
}

static ARMED: AtomicBool = AtomicBool::new(false);
static RULES: Mutex<Vec<Rule>> = Mutex::new(Vec::new());
static DELAY_US: AtomicU64 = AtomicU64::new(0);
static ENVIRONMENT: std::sync::Once = std::sync::Once::new();

/// A fault rule that cannot be read, or whose code is no failure.
#[derive(Debug, thiserror::Error)]
#[error(
    "fault rule `{rule}` is not `call:n[:code]` with a count of at least 1 or `*`, and a code that does not mean success: \
     correct HIP_HOST_FAIL"
)]
pub struct BadRule {
    rule: String,
}

/// Codes, beside 0, with which calls whose names begin so say that they did their work, or that it was done before.
///
/// A call that does nothing and reports success is no failure: safe code relies on what success means.
const SUCCESSES: [(&str, &[u32]); 4] = [
    // rocblas_status_perf_degraded, and what a size query answers: _size_increased, _size_unchanged.
    ("rocblas_", &[7, 9, 10]),
    ("rocsolver_", &[7, 9, 10]),
    // hipErrorPeerAccessAlreadyEnabled
    ("hipDeviceEnablePeerAccess", &[704]),
    // HSA_STATUS_INFO_BREAK
    ("hsa_", &[1]),
];

fn is_success(call: &str, code: u32) -> bool {
    let call = call.strip_prefix("async/").unwrap_or(call);
    let lists = SUCCESSES.iter().filter(|(begin, _)| call.starts_with(begin));
    code == 0 || lists.flat_map(|(_, codes)| *codes).any(|success| *success == code)
}

fn parse(text: &str) -> Result<Vec<Rule>, BadRule> {
    text.split(',')
        .map(str::trim)
        .filter(|rule| !rule.is_empty())
        .map(|rule| {
            let bad = || BadRule { rule: rule.to_owned() };
            let mut parts = rule.split(':');
            let call = parts.next().filter(|call| !call.is_empty()).ok_or_else(bad)?;
            let nth = match parts.next().ok_or_else(bad)? {
                "*" => None,
                count => Some(count.parse().ok().filter(|&n: &u64| n > 0).ok_or_else(bad)?),
            };
            let code = parts
                .next()
                .map(|code| code.parse::<u32>().map_err(|_| bad()))
                .transpose()?;
            if code.is_some_and(|code| is_success(call, code)) {
                return Err(bad());
            }
            if parts.next().is_some() {
                return Err(bad());
            }
            Ok(Rule {
                call: call.to_owned(),
                nth,
                code,
                seen: 0,
            })
        })
        .collect()
}

fn read_environment() {
    ENVIRONMENT.call_once(|| {
        if let Ok(text) = std::env::var("HIP_HOST_FAIL") {
            match parse(&text) {
                Ok(rules) => install(rules),
                Err(error) => crate::log::warn(&error.to_string()),
            }
        }
        if let Ok(text) = std::env::var("HIP_HOST_DELAY") {
            match text.trim().parse() {
                Ok(microseconds) => DELAY_US.store(microseconds, Ordering::Relaxed),
                Err(_) => crate::log::warn(&format!(
                    "HIP_HOST_DELAY=`{text}` is not a number of microseconds: ignored"
                )),
            }
        }
    });
}

fn install(rules: Vec<Rule>) {
    let mut slot = RULES.lock();
    ARMED.store(!rules.is_empty(), Ordering::Release);
    *slot = rules;
}

/// Replaces all fault rules; the text is what `HIP_HOST_FAIL` holds, empty for none.
///
/// # Errors
/// [`BadRule`] if a rule cannot be read; the rules in force stay as they were.
pub fn set_failures(rules: &str) -> Result<(), BadRule> {
    read_environment();
    install(parse(rules)?);
    Ok(())
}

/// Sets the time slept before each stream command.
pub fn set_delay(delay: Duration) {
    read_environment();
    DELAY_US.store(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// The time to sleep before a stream command.
pub(crate) fn delay() -> Option<Duration> {
    read_environment();
    match DELAY_US.load(Ordering::Relaxed) {
        0 => None,
        microseconds => Some(Duration::from_micros(microseconds)),
    }
}

/// Counts this call and returns whether it should fail.
pub(crate) fn injected(call: &str) -> Option<Injected> {
    read_environment();
    if !ARMED.load(Ordering::Acquire) {
        return None;
    }
    count(|rule| rule == call)
}

/// As [`injected`], for the moment a stream gets to the command that `call` enqueued.
pub(crate) fn injected_in_stream(call: &str) -> Option<Injected> {
    read_environment();
    if !ARMED.load(Ordering::Acquire) {
        return None;
    }
    count(|rule| rule.strip_prefix("async/") == Some(call))
}

fn count(matches: impl Fn(&str) -> bool) -> Option<Injected> {
    let mut hit = None;
    for rule in RULES.lock().iter_mut().filter(|rule| matches(&rule.call)) {
        rule.seen += 1;
        if rule.nth.is_none_or(|nth| nth == rule.seen) {
            hit = Some(rule.code.map_or(Injected::Unknown, Injected::Code));
        }
    }
    hit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_or_refused_whole() {
        let rules = parse("hipMalloc:3:2, async/hipMemcpyAsync:*").unwrap();
        assert_eq!(rules.len(), 2);
        assert_eq!((rules[0].nth, rules[0].code), (Some(3), Some(2)));
        assert_eq!((rules[1].nth, rules[1].code), (None, None));
        for bad in [
            "hipMalloc",
            "hipMalloc:0",
            "hipMalloc:x",
            ":1",
            "hipMalloc:1:two",
            "hipMalloc:1:2:3",
            "hipMalloc:1:0",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
