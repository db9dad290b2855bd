use std::fmt;
use std::sync::Arc;

use hip::{DeviceBuffer, Stream};
use parking_lot::Mutex;

use crate::{Error, Result};

/// What a solver call found, still on the device: one integer for each matrix.
///
/// Until [`check`](Self::check) says so, the call's result may not be a factor or an inverse at all.
#[must_use = "a solver call reports a singular matrix only through `Info::check`"]
pub struct Info {
    /// Taken back to the pool when dropped; `None` if there was nothing to do.
    values: Option<DeviceBuffer<i32>>,
    count: usize,
    stream: Stream,
    meaning: Meaning,
    pool: InfoPool,
    checked: bool,
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

/// What a positive value says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    NotPositiveDefinite,
    Singular,
}

impl Info {
    /// Waits for the call and copies its integers (4 bytes for each matrix) to the host.
    ///
    /// # Errors
    ///
    /// [`Error::NotPositiveDefinite`] or [`Error::Singular`]; for a batch, [`Error::InBatch`] names the first matrix that failed.
    /// Or earlier work of the stream failed.
    pub fn check(self) -> Result<()> {
        let batched = self.count > 1;
        let count = self.count;
        match self.failures()?.into_iter().next() {
            None => Ok(()),
            Some(Failure { matrix, error }) if batched => Err(Error::InBatch {
                matrix,
                count,
                source: Box::new(error),
            }),
            Some(Failure { error, .. }) => Err(error),
        }
    }

    /// Waits for the call and tells which matrices failed, in ascending order.
    ///
    /// # Errors
    ///
    /// Earlier work of the stream failed, so nothing is known of the matrices.
    pub fn failures(mut self) -> Result<Vec<Failure>> {
        self.checked = true;
        let Some(values) = &self.values else {
            return Ok(Vec::new());
        };
        let mut found = vec![0; self.count];
        values
            .on(&self.stream)?
            .slice(..self.count)?
            .copy_to_slice(&mut found)?;
        let failures = found
            .into_iter()
            .enumerate()
            .filter(|&(_, value)| value != 0);
        Ok(failures
            .map(|(matrix, value)| Failure {
                matrix,
                error: self.meaning.error(value),
            })
            .collect())
    }

    /// The integers' address, for a call on the stream.
    pub(crate) fn address(&mut self) -> Result<*mut i32> {
        match &mut self.values {
            Some(values) => Ok(values.on_mut(&self.stream)?.as_mut_ptr()),
            None => Ok(std::ptr::null_mut()),
        }
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        if self.values.is_some() && !self.checked && !std::thread::panicking() {
            tracing::warn!("solver result dropped without a look at its info");
        }
        if let Some(values) = self.values.take() {
            self.pool.put_back(values);
        }
    }
}

impl fmt::Debug for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Info")
            .field("count", &self.count)
            .field("meaning", &self.meaning)
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

/// Integers that no call uses any more, for the next one: allocating device memory is slow, and freeing it waits for the device.
///
/// Reuse is safe while the last call still runs, because the buffers order their own uses.
#[derive(Clone, Default)]
pub(crate) struct InfoPool {
    free: Arc<Mutex<Vec<DeviceBuffer<i32>>>>,
}

impl InfoPool {
    /// More are freed: a handle that once had many calls in flight should not keep their memory for ever.
    const MOST: usize = 16;

    pub(crate) fn lease(&self, stream: &Stream, meaning: Meaning, count: usize) -> Result<Info> {
        let values = if count == 0 {
            None
        } else {
            let mut free = self.free.lock();
            let fitting = free.iter().position(|values| values.len() >= count);
            let reused = fitting.map(|index| free.swap_remove(index));
            drop(free);
            match reused {
                Some(values) => Some(values),
                None => Some(stream.device().alloc(count)?),
            }
        };
        Ok(Info {
            values,
            count,
            stream: stream.clone(),
            meaning,
            pool: self.clone(),
            checked: false,
        })
    }

    fn put_back(&self, values: DeviceBuffer<i32>) {
        let mut free = self.free.lock();
        if free.len() < Self::MOST {
            free.push(values);
        }
        // Otherwise it is dropped, which waits: not under the lock.
    }
}
