//! `info`: one integer for each matrix of a batch, in device memory.

use crate::blas::arguments::{Carried, Int, check_range};
use crate::blas::schedule;
use crate::blas::status::Outcome;

/// Checked to be device memory; written in stream order.
#[derive(Clone, Copy)]
pub(super) struct Info<I> {
    ptr: Carried<*mut I>,
    count: usize,
}

impl<I: Int> Info<I> {
    /// `ptr` is not null.
    pub(super) fn new(call: &str, ptr: *mut I, count: usize) -> Outcome<Self> {
        let bytes = count.saturating_mul(size_of::<I>());
        check_range(call, "info", ptr.cast_const().cast(), bytes)?;
        Ok(Self {
            ptr: Carried(ptr),
            count,
        })
    }

    /// Stores 0 where `step` succeeds and the one-based index it fails with otherwise.
    pub(super) fn fill(self, step: impl Fn(usize) -> Result<(), usize> + Sync) {
        // The matrices of a batch are independent; how much work one is, is not known here, and a
        // batch of them is always worth a hand-off.
        schedule::for_each(self.count, usize::MAX, |i| {
            let value = step(i).err().unwrap_or(0);
            // SAFETY: checked at the call; freeing device memory waits for the stream. Each `i` is
            // stored by one thread.
            unsafe { self.ptr.get().add(i).write_unaligned(I::from_index(value)) };
        });
    }
}
