//! The kinds of memory.
//!
//! | type | memory | the host reaches it |
//! |---|---|---|
//! | [`RegularBuffer`] | the device's, behind a `cl_mem` | by `read` and `write`, or mapped |
//! | [`SvmBuffer`], coarse | shared, the device's where it has its own | by `read` and `write`, or mapped |
//! | [`SvmBuffer`], fine | shared, the host's on a discrete GPU | as coarse; a map costs no copy |
//! | [`SvmBuffer`], system | the host's own, where the device reaches all of it | as fine |
//! | [`HostPtrBuffer`] | the host's, used in place | as regular; a map costs no copy |
//!
//! | here | what it holds |
//! |---|---|
//! | `object` | what every type over a `cl_mem` shares: transfers, boxes, maps and parts |
//! | `regular.rs`, `host_ptr.rs` | the two kinds made of such an object |
//! | `svm` | shared virtual memory: its allocation, transfers and maps |
//! | `raw.rs` | transfers by raw handles |
//! | `mapped.rs`, `pending.rs`, `pages.rs`, `bounds.rs` | what both use: open maps, transfers under way, host memory, checks |

mod bounds;
mod host_ptr;
mod mapped;
mod object;
mod pages;
mod pending;
mod raw;
mod regular;
mod svm;

pub use host_ptr::HostPtrBuffer;
pub use object::{BoxLayout, ClMap, ClMapMut, MemMut, MemRef, SubBuffer, SubBufferMut};
pub(crate) use object::{Object, object_field, object_methods};
pub use pending::Pending;
pub use regular::RegularBuffer;
pub use svm::{SvmBuffer, SvmGrain, SvmMap, SvmMapMut, SvmView};
