use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use hip::Stream;

use crate::call::Accepted;
use crate::handle::{InfoPool, Integers};
use crate::{Error, Result};

/// The findings of a solver call, still on the device: one integer for each matrix.
///
/// Until [`check`](Self::check) succeeds, the call's result may not be a factor or an inverse at all.
#[must_use = "a solver call reports a singular matrix only through `Info::check`"]
pub struct Info {
    /// `None` if there was nothing to do.
    values: Option<Integers>,
    count: usize,
    /// Whether the caller passed a batch, so that an error has an index.
    batched: bool,
    meaning: Meaning,
    /// Of the call whose result this one worked on.
    earlier: Option<Box<Info>>,
    looked_at: AtomicBool,
    /// Whether the call writes the values, or only queried its workspace size.
    computed: bool,
}

/// A matrix of a batch that a solver call could not handle.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    /// Index of the matrix, from 0.
    pub matrix: usize,
    /// Why.
    pub error: Error,
}

/// The meaning of a positive value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    NotPositiveDefinite,
    Singular,
}

impl Info {
    pub(super) fn lease(
        pool: &InfoPool,
        stream: &Stream,
        meaning: Meaning,
        count: usize,
        batched: bool,
    ) -> Result<Self> {
        let values = (count > 0).then(|| pool.lease(stream, count)).transpose()?;
        Ok(Self {
            values,
            count,
            batched,
            meaning,
            earlier: None,
            looked_at: AtomicBool::new(false),
            computed: true,
        })
    }

    /// Records the outcome of the call.
    pub(super) fn of(mut self, accepted: Accepted) -> Self {
        self.computed = accepted == Accepted::Queued;
        self
    }

    /// Whether the call computes, so that its result exists once the stream has reached it.
    pub(super) fn is_computed(&self) -> bool {
        self.computed
    }

    /// The same, with what an earlier call found on the same matrices. Its failures come first.
    pub(super) fn after(mut self, earlier: Self) -> Self {
        self.earlier = Some(Box::new(earlier));
        self
    }

    /// Discards the call's findings, which another call will report again.
    pub(super) fn superseded(self) {
        self.looked_at.store(true, Ordering::Relaxed);
    }

    /// Waits for the call and copies its integers (4 bytes for each matrix) to the host.
    ///
    /// # Errors
    ///
    /// [`Error::NotPositiveDefinite`] or [`Error::Singular`]; for a batch, [`Error::InBatch`] with the first matrix
    /// that failed. Or earlier work on the stream failed. [`Error::NotComputed`] for a call inside
    /// [`Handle::workspace_needed`](crate::Handle::workspace_needed).
    pub fn check(&self) -> Result<()> {
        match self.failures()?.into_iter().next() {
            None => Ok(()),
            Some(Failure { matrix, error }) if self.batched => Err(Error::InBatch {
                matrix,
                count: self.count,
                cause: Box::new(error),
            }),
            Some(Failure { error, .. }) => Err(error),
        }
    }

    /// Waits for the call and returns which matrices failed, in ascending order. The others are correct.
    ///
    /// # Errors
    ///
    /// Earlier work on the stream failed, so the state of the matrices is unknown. [`Error::NotComputed`] for a call
    /// inside [`Handle::workspace_needed`](crate::Handle::workspace_needed).
    pub fn failures(&self) -> Result<Vec<Failure>> {
        let mut failures = match &self.earlier {
            Some(earlier) => earlier.failures()?,
            None => Vec::new(),
        };
        self.looked_at.store(true, Ordering::Relaxed);
        if !self.computed {
            return Err(Error::NotComputed {
                call: "Info::failures",
                what: "the result of the solver call",
            });
        }
        let Some(values) = &self.values else {
            return Ok(failures);
        };
        let found = values.to_vec()?.into_iter().enumerate();
        failures.extend(found.filter(|&(_, value)| value != 0).map(|(matrix, value)| Failure {
            matrix,
            error: self.meaning.error(value),
        }));
        // Stable: of one matrix, the earlier call's failure stays in front, and is the one that counts.
        failures.sort_by_key(|failure| failure.matrix);
        failures.dedup_by_key(|failure| failure.matrix);
        Ok(failures)
    }

    /// The integers' address, for a call on the stream; null if there are none.
    pub(super) fn address_mut(&mut self) -> Result<*mut i32> {
        match &mut self.values {
            Some(values) => values.address_mut(),
            None => Ok(std::ptr::null_mut()),
        }
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        if self.values.is_some()
            && self.computed
            && !self.looked_at.load(Ordering::Relaxed)
            && !std::thread::panicking()
        {
            crate::report::unseen_info();
        }
    }
}

impl fmt::Debug for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Info")
            .field("count", &self.count)
            .field("meaning", &self.meaning)
            .field("earlier", &self.earlier)
            .finish_non_exhaustive()
    }
}

impl Meaning {
    fn error(self, value: i32) -> Error {
        match (usize::try_from(value), self) {
            (Ok(minor), Self::NotPositiveDefinite) => Error::NotPositiveDefinite { minor },
            (Ok(pivot), Self::Singular) => Error::Singular { pivot },
            (Err(_), _) => Error::Answer {
                call: "rocsolver info",
                answer: value.into(),
            },
        }
    }
}
