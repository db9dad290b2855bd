//! One function of a library with thousands: looked up when first called.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::library::Opened;

/// A function's name, and its address once it is known.
pub(crate) struct Symbol {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Symbol {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The address in this library, which must always be the same one.
    #[inline]
    pub(crate) fn in_library(&self, library: &Opened) -> Option<*mut c_void> {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return Some(known);
        }
        let found = library.symbol(self.name)?;
        // A second thread stores the same.
        self.address.store(found, Ordering::Relaxed);
        Some(found)
    }
}
