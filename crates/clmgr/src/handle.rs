//! A raw OpenCL handle that may cross threads.

use std::ffi::c_void;

/// An OpenCL object, or a pointer into shared virtual memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle(pub *mut c_void);

// SAFETY: OpenCL specification, appendix "Shared OpenCL Objects", on multiple host threads: "All
// OpenCL API calls are thread-safe except those that modify the state of cl_kernel objects". This
// crate calls those for one kernel object under that object's lock. A pointer into shared virtual
// memory is only an address here; whoever dereferences it argues for that access.
unsafe impl Send for Handle {}
// SAFETY: as for `Send`: a shared handle gives nothing but calls that are thread-safe.
unsafe impl Sync for Handle {}
