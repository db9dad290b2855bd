//! A raw OpenCL handle that may cross threads.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// An OpenCL object, or a pointer into shared virtual memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle(pub *mut c_void);

// SAFETY: OpenCL specification, appendix "Shared OpenCL Objects", on multiple host threads: "All
// OpenCL API calls are thread-safe except those that modify the state of cl_kernel objects". This
// crate calls those for one kernel object under that object's lock. A pointer into shared virtual
// memory is only an address here; code that dereferences it justifies that access.
unsafe impl Send for Handle {}
// SAFETY: as for `Send`: a shared handle gives nothing but calls that are thread-safe.
unsafe impl Sync for Handle {}

/// The values that stand for OpenCL objects, each found by its handle, so one object has one value even if it is met
/// twice.
pub(crate) struct Live<T>(Mutex<Option<HashMap<Handle, Weak<T>>>>);

impl<T> Live<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The value for `handle`, if one lives.
    pub fn find(&self, handle: Handle) -> Option<Arc<T>> {
        self.0.lock().as_ref()?.get(&handle)?.upgrade()
    }

    /// Enters `value`; returns the live one instead, if there is one.
    pub fn enter(&self, handle: Handle, value: Arc<T>) -> Arc<T> {
        let mut table = self.0.lock();
        let table = table.get_or_insert_default();
        if let Some(known) = table.get(&handle).and_then(Weak::upgrade) {
            return known;
        }
        table.insert(handle, Arc::downgrade(&value));
        value
    }

    /// Removes `value`, which is being dropped, unless another took its place. It must come before
    /// the release of the handle, which OpenCL may then give to a new object.
    pub fn leave(&self, handle: Handle, value: *const T) {
        if let Some(table) = self.0.lock().as_mut()
            && table
                .get(&handle)
                .is_some_and(|entry| std::ptr::eq(entry.as_ptr(), value))
        {
            table.remove(&handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_handle_has_one_value_and_a_late_leave_spares_its_successor() {
        let live = Live::new();
        let handle = Handle(std::ptr::without_provenance_mut(0x40));
        let first = live.enter(handle, Arc::new(1));
        assert!(Arc::ptr_eq(&live.enter(handle, Arc::new(2)), &first));
        assert_eq!(live.find(handle).as_deref(), Some(&1));
        let old = Arc::as_ptr(&first);
        let kept = Arc::downgrade(&first);
        drop(first);
        assert!(live.find(handle).is_none());
        let next = live.enter(handle, Arc::new(3));
        live.leave(handle, old);
        assert_eq!(live.find(handle).as_deref(), Some(&3));
        live.leave(handle, Arc::as_ptr(&next));
        assert!(live.find(handle).is_none() && kept.upgrade().is_none());
    }
}
