//! Counts what both APIs copy, at their function tables.
//!
//! "Zero copy" is only a claim until someone counts. A bridge puts a counting function in front
//! of every copy call of the HIP table and of the OpenCL table that it hands out, so that a copy
//! is seen whoever makes it: this crate, a layer below, or the user through the same tables.
//! What a closed library does inside itself (rocBLAS calling HIP) does not pass these tables and
//! is not seen.
//!
//! A call counts when it succeeds, with its bytes, under the [`Category`] of the innermost
//! [`Scope`] of the calling thread; without one it counts as a copy of the data set.

mod cl;
mod hip;
mod ledger;
mod slots;

pub use ledger::{CallCount, Category, Counts, Scope};

use crate::{Error, Result};
use ledger::Ledger;
use std::sync::Arc;

/// The copy counter of one bridge. Clones count together.
#[derive(Clone)]
pub struct Meter {
    ledger: Arc<Ledger>,
    hip: Arc<slots::Lease>,
    cl: Arc<parking_lot::Mutex<Vec<slots::Lease>>>,
}

impl Meter {
    /// A fresh meter and `api` with its copy calls counted.
    pub(crate) fn wrap_hip(api: &hip_sys::Api) -> Result<(Self, hip_sys::Api)> {
        let ledger = Arc::new(Ledger::default());
        let mut counted = *api;
        let lease =
            hip::wrap(&mut counted, &ledger).ok_or(Error::TooManyBridges { limit: hip::SLOTS })?;
        Ok((
            Self {
                ledger,
                hip: Arc::new(lease),
                cl: Arc::default(),
            },
            counted,
        ))
    }

    /// Counts the copy calls of one OpenCL library's table. With every slot in use the table is
    /// left alone and `false` comes back.
    pub(crate) fn wrap_cl(&self, api: &mut clmgr::Api) -> bool {
        let lease = cl::wrap(api, &self.ledger);
        let counted = lease.is_some();
        self.cl.lock().extend(lease);
        counted
    }

    /// Counts this thread's copies under `category` until the scope is dropped; scopes nest. The
    /// place of this call is what [`CallCount::caller`] names.
    #[track_caller]
    #[must_use = "the category holds only as long as the scope lives"]
    pub fn scope(&self, category: Category) -> Scope {
        Scope::enter(category)
    }

    /// Forgets what was counted: the proofs made while a bridge is opened are not its user's copies.
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
        f.debug_struct("Meter")
            .field("hip_slot", &self.hip.index())
            .field("counts", &self.snapshot())
            .finish()
    }
}
