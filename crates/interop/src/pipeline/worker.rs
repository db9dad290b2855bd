use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Cause, Span, StageError, StageTime};

/// A block between two stages.
pub(super) struct InFlight<S, E> {
    pub(super) slot: S,
    pub(super) block: u64,
    pub(super) failure: Option<StageError<E>>,
}

/// One stage's clock and how it reports failures.
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
    pub(super) fn new(name: &str, begin: Instant, stop: &'a AtomicBool, failure_stops: bool) -> Self {
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

    pub(super) fn work<R, E>(&mut self, block: u64, work: impl FnOnce() -> Result<R, E>) -> Result<R, StageError<E>> {
        let begin = self.begin.elapsed();
        let outcome = self.attempt(block, work);
        let end = self.begin.elapsed();
        self.busy += end - begin;
        self.keep(Span { block, begin, end });
        outcome
    }

    /// Queues every block's work, then waits for each one's. A block's span reaches from its own
    /// queueing to the end of its wait, and the spans of a batch overlap; the time counts once.
    pub(super) fn batch<S, E>(
        &mut self,
        batch: &mut [InFlight<S, E>],
        mut queue: impl FnMut(&mut S, u64) -> Result<(), E>,
        mut wait: impl FnMut(&mut S, u64) -> Result<(), E>,
    ) {
        let begin = self.begin.elapsed();
        let mut begins = Vec::with_capacity(batch.len());
        for InFlight { slot, block, failure } in &mut *batch {
            begins.push(failure.is_none().then(|| self.begin.elapsed()));
            if failure.is_none() {
                *failure = self.attempt(*block, || queue(slot, *block)).err();
            }
        }
        for (InFlight { slot, block, failure }, begin) in batch.iter_mut().zip(begins) {
            let Some(begin) = begin else { continue };
            // Also where the queueing failed: part of its work may be on its way.
            let waited = self.attempt(*block, || wait(slot, *block)).err();
            match (&failure, waited) {
                (Some(_), Some(second)) => discard(second),
                (None, second) => *failure = second,
                (Some(_), None) => {}
            }
            let end = self.begin.elapsed();
            let block = *block;
            self.keep(Span { block, begin, end });
        }
        self.busy += self.begin.elapsed() - begin;
    }

    fn keep(&mut self, span: Span) {
        self.blocks += 1;
        if self.spans.len() == StageTime::KEPT {
            self.spans.pop_front();
        }
        self.spans.push_back(span);
    }

    fn attempt<R, E>(&self, block: u64, work: impl FnOnce() -> Result<R, E>) -> Result<R, StageError<E>> {
        // The slot holds buffers, whose contents a failed block leaves unspecified anyway.
        let cause = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(error)) => Cause::Failed(error),
            Err(panic) => Cause::Panicked(words_of(panic)),
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

/// The message of a panic. Its payload can be anything, and dropping it can panic again.
fn words_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    discard(panic);
    text.unwrap_or_else(|| "no message".into())
}

/// Drops a stage's result. That can panic, and so can dropping the payload of that panic.
fn discard<T>(value: T) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(second);
    }
}
