use super::{Cause, Span, StageError, StageTime};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A block between two stages.
pub(super) struct InFlight<S, E> {
    pub(super) slot: S,
    pub(super) block: u64,
    pub(super) failure: Option<StageError<E>>,
}

/// One stage's clock and its way to fail.
pub(super) struct Worker<'a> {
    begin: Instant,
    stop: &'a AtomicBool,
    failure_stops: bool,
    name: String,
    blocks: u64,
    busy: Duration,
    spans: VecDeque<Span>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        name: &str,
        begin: Instant,
        stop: &'a AtomicBool,
        failure_stops: bool,
    ) -> Self {
        Self {
            begin,
            stop,
            failure_stops,
            name: name.to_owned(),
            blocks: 0,
            busy: Duration::ZERO,
            spans: VecDeque::new(),
        }
    }

    pub(super) fn work<R, E>(
        &mut self,
        block: u64,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, StageError<E>> {
        let begin = self.begin.elapsed();
        // The slot holds buffers, whose contents a failed block leaves unspecified anyway.
        let outcome = catch_unwind(AssertUnwindSafe(work));
        let end = self.begin.elapsed();
        self.blocks += 1;
        self.busy += end - begin;
        if self.spans.len() == StageTime::KEPT {
            self.spans.pop_front();
        }
        self.spans.push_back(Span { block, begin, end });
        let cause = match outcome {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(error)) => Cause::Failed(error),
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned());
                Cause::Panicked(text.unwrap_or_else(|| "no message".into()))
            }
        };
        if self.failure_stops {
            self.stop.store(true, Ordering::Release);
        }
        Err(StageError {
            block,
            stage: self.name.clone(),
            cause,
        })
    }

    pub(super) fn finish(self) -> StageTime {
        StageTime {
            name: self.name,
            blocks: self.blocks,
            busy: self.busy,
            spans: self.spans.into(),
        }
    }
}
