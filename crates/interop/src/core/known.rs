//! Tells a platform that is a model of the memory that OpenCL owns.

use std::collections::BTreeMap;
use std::ffi::c_void;

use parking_lot::Mutex;
use platform::{ForeignHooks, ForeignKind};

use super::Core;
use crate::{Error, Result};

/// The registered ranges: first address, to the bytes and the number of users.
static RANGES: Mutex<BTreeMap<usize, (usize, usize)>> = Mutex::new(BTreeMap::new());

/// A model of a device knows a range for as long as this lives. On real hardware the HSA runtime
/// sees OpenCL's allocations by itself, and there is nothing to register.
pub(crate) struct Known {
    hooks: ForeignHooks,
    base: usize,
}

impl Known {
    /// Makes the range known, unless it lies in one that is: then that one stays known for longer.
    ///
    /// # Safety
    /// The range can be read and written until the result is dropped.
    pub(crate) unsafe fn make(core: &Core, ptr: *mut c_void, bytes: usize, kind: ForeignKind) -> Result<Option<Self>> {
        let Some(hooks) = core.foreign else {
            return Ok(None);
        };
        let start = ptr.expose_provenance();
        let mut ranges = RANGES.lock();
        if let Some((&base, (known, users))) = ranges.range_mut(..=start).next_back()
            && start - base < *known
            && bytes <= *known - (start - base)
        {
            *users += 1;
            return Ok(Some(Self { hooks, base }));
        }
        let ordinal = core.hip_device.ordinal();
        // SAFETY: the caller keeps the range until the result is dropped, which releases it.
        unsafe { (hooks.adopt)(ptr, bytes, kind, ordinal) }.map_err(|reason| Error::Foreign {
            platform: core.platform,
            reason,
        })?;
        ranges.insert(start, (bytes, 1));
        Ok(Some(Self { hooks, base: start }))
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        let mut ranges = RANGES.lock();
        if let Some((_, users)) = ranges.get_mut(&self.base) {
            *users -= 1;
            if *users == 0 {
                ranges.remove(&self.base);
                // The only failure is an address that was never made known, and this one was.
                let _ = (self.hooks.release)(std::ptr::with_exposed_provenance_mut(self.base));
            }
        }
    }
}
