//! Counts the copies of both APIs at their function tables.
//!
//! "Zero copy" is only a claim until someone counts. A bridge puts a counting function in front of every copy call of
//! the HIP table and of the OpenCL table that it hands out, so every copy is seen, whatever its caller: this crate, a
//! layer below, or the user through the same tables. What a closed library does inside itself (rocBLAS calling HIP)
//! does not pass these tables and is not seen.
//!
//! A call counts when it succeeds, with its bytes, under the [`Category`] of the innermost [`Meter::count_as`] that the
//! calling thread is in; outside any it counts as a copy of the data set. A captured copy counts each time its graph
//! runs, in the category in which it was captured.

mod cl;
mod graphs;
mod hip;
mod ledger;
mod slots;

use std::sync::Arc;

use ledger::Ledger;
pub(crate) use ledger::Scope;
pub use ledger::{CallCount, Category, Counts};
pub(crate) use slots::Lease;

use crate::{Error, Result};

/// The copy counter of one bridge. Clones count together.
#[derive(Clone)]
pub struct Meter {
    ledger: Arc<Ledger>,
}

impl Meter {
    /// A fresh meter, and `api` with its copy calls counted. The lease belongs to the owner of the table: as long as
    /// anything can call through it, no other bridge's copies are counted by the same functions.
    pub(crate) fn wrap_hip(api: &hip_sys::Api) -> Result<(Self, hip_sys::Api, Lease)> {
        let ledger = Arc::new(Ledger::default());
        let mut counted = *api;
        let lease = hip::wrap(&mut counted, &ledger).ok_or(Error::TooManyBridges { limit: hip::SLOTS })?;
        Ok((Self { ledger }, counted, lease))
    }

    /// Counts the copy calls of one OpenCL library's table, for as long as the lease lives. With every slot in use it
    /// leaves the table alone.
    pub(crate) fn wrap_cl(&self, api: &mut clmgr::Api) -> Option<Lease> {
        cl::wrap(api, &self.ledger)
    }

    /// Runs `work` and counts this thread's copies in it under `category`, unless a nested call names another.
    /// [`CallCount::caller`] names the place of this call.
    #[track_caller]
    pub fn count_as<R>(&self, category: Category, work: impl FnOnce() -> R) -> R {
        let _scope = self.scope(category);
        work()
    }

    /// Like [`count_as`](Self::count_as), until the scope is dropped. Private to this crate: see
    /// [`Scope`].
    #[track_caller]
    #[must_use = "the category holds only as long as the scope lives"]
    pub(crate) fn scope(&self, category: Category) -> Scope {
        Scope::enter(category)
    }

    /// Counts a copy that a kernel of this crate makes, as a call of the tables would be.
    pub(crate) fn note(&self, function: &'static str, bytes: usize) {
        self.ledger.add(&ledger::Copied::now(function, bytes));
    }

    /// Resets the counts: the proofs made while a bridge is opened are not its user's copies.
    pub(crate) fn clear(&self) {
        self.ledger.clear();
    }

    /// Everything counted since the bridge was opened.
    #[must_use]
    pub fn snapshot(&self) -> Counts {
        self.ledger.counts()
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("counts", &self.snapshot()).finish()
    }
}
