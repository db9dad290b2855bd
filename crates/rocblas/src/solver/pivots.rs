use std::fmt;

use hip::{DeviceSlice, Stream};

use crate::call::Accepted;
use crate::functions::solver::RawPivots;
use crate::handle::{InfoPool, Integers};
use crate::size::{int, stride};
use crate::{Error, Result};

/// The rows that an LU factorisation exchanged, in device memory: `min(m, n)` 32-bit integers for each m x n matrix,
/// one matrix after the other. Step `k` exchanged row `k` with row `pivot[k]`; both count from 1, as in LAPACK.
///
/// Only rocSOLVER writes them: an integer that is no row would let a later call leave its matrix.
pub struct Pivots {
    /// `None` if there are none.
    values: Option<Integers>,
    len: usize,
    count: usize,
    /// Whether the pivots were written, or rocSOLVER only reported its workspace size.
    computed: bool,
}

impl Pivots {
    pub(super) fn lease(pool: &InfoPool, stream: &Stream, len: usize, count: usize) -> Result<Self> {
        // Cannot overflow: neither is above 2^31 - 1 then.
        int("pivots", len)?;
        int("batch count", count)?;
        let all = len * count;
        let values = (all > 0).then(|| pool.lease(stream, all)).transpose()?;
        Ok(Self {
            values,
            len,
            count,
            computed: true,
        })
    }

    /// Records the outcome of the call that writes them.
    pub(super) fn of(mut self, accepted: Accepted) -> Self {
        self.computed = accepted == Accepted::Queued;
        self
    }

    fn check(&self, call: &'static str) -> Result<()> {
        if self.computed {
            return Ok(());
        }
        Err(Error::NotComputed {
            call,
            what: "the order of the rows",
        })
    }

    /// Pivots that exchange nothing, as factors without pivoting have them. Waits for the stream.
    pub(super) fn identity(pool: &InfoPool, stream: &Stream, len: usize, count: usize) -> Result<Self> {
        let mut pivots = Self::lease(pool, stream, len, count)?;
        if let Some(values) = &mut pivots.values {
            // Fits: it is a size of a matrix.
            let each: Vec<i32> = (1..=len as i32).collect();
            values.copy_from_slice(&each.repeat(count))?;
        }
        Ok(pivots)
    }

    /// Pivots of each matrix: the lesser of its rows and columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none, because the matrices are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_none()
    }

    /// Number of matrices.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// All of them to read on the stream of the factorisation, `len() * count()` integers; `None` if there are none.
    ///
    /// # Errors
    ///
    /// HIP could not order the read. [`Error::NotComputed`] for pivots from a call inside
    /// [`Handle::workspace_needed`](crate::Handle::workspace_needed).
    pub fn slice(&self) -> Result<Option<DeviceSlice<'_, i32>>> {
        self.check("Pivots::slice")?;
        self.values.as_ref().map(Integers::slice).transpose()
    }

    /// Waits for the factorisation and copies all of them to the host.
    ///
    /// # Errors
    ///
    /// Earlier work on the stream failed. [`Error::NotComputed`] as for [`Pivots::slice`].
    pub fn to_vec(&self) -> Result<Vec<i32>> {
        self.check("Pivots::to_vec")?;
        match &self.values {
            Some(values) => values.to_vec(),
            None => Ok(Vec::new()),
        }
    }

    pub(super) fn raw_mut(&mut self) -> Result<RawPivots> {
        let address = match &mut self.values {
            Some(values) => values.address_mut()?,
            None => std::ptr::null_mut(),
        };
        self.raw_at(address)
    }

    /// For calls that only read them, although some take a pointer to `mut`.
    pub(super) fn raw(&self) -> Result<RawPivots> {
        let address = match &self.values {
            Some(values) => values.slice()?.as_ptr().cast_mut(),
            None => std::ptr::null_mut(),
        };
        self.raw_at(address)
    }

    fn raw_at(&self, address: *mut i32) -> Result<RawPivots> {
        Ok(RawPivots {
            address,
            stride: stride(self.len)?,
        })
    }
}

impl fmt::Debug for Pivots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pivots")
            .field("len", &self.len)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
