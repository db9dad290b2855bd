//! Whole pages of host memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;

use crate::error::{Error, Result};
use crate::handle::Handle;

/// Page alignment also lets other APIs register the memory.
const PAGE: usize = 4096;

/// Whole zeroed pages from the allocator, freed on drop.
pub(super) struct Pages {
    start: Handle,
    layout: Layout,
}

impl Pages {
    /// Pages for `bytes` bytes, which are not zero.
    pub fn new(bytes: usize) -> Result<Self> {
        let failed = || Error::TooLarge {
            what: "the size of a host buffer",
            got: format!("{bytes} bytes"),
            limit: isize::MAX as u64,
        };
        let size = bytes.checked_next_multiple_of(PAGE).ok_or_else(failed)?;
        let layout = Layout::from_size_align(size, PAGE).map_err(|_| failed())?;
        // SAFETY: the size is not zero, since no buffer has zero bytes.
        let start: *mut c_void = unsafe { alloc_zeroed(layout) }.cast();
        if start.is_null() {
            return Err(Error::Call {
                call: format!("allocation of {size} bytes of host memory"),
                code: opencl_sys::CL_OUT_OF_HOST_MEMORY,
            });
        }
        Ok(Self {
            start: Handle(start),
            layout,
        })
    }

    pub fn as_ptr(&self) -> *mut c_void {
        self.start.0
    }

    /// The size of all pages.
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `new` allocated this start with this layout.
        unsafe { dealloc(self.start.0.cast(), self.layout) };
    }
}
