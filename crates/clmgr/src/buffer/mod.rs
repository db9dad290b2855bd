//! The kinds of memory, and one type over all of them.
//!
//! | type | memory | the host reaches it |
//! |---|---|---|
//! | [`RegularBuffer`] | the device's, behind a `cl_mem` | by `read` and `write`, or mapped |
//! | [`SvmBuffer`], coarse | shared, the device's where it has its own | by `read` and `write`, or mapped |
//! | [`SvmBuffer`], fine | shared, the host's on a discrete GPU | as coarse; a map costs no copy |
//! | [`SvmBuffer`], system | the host's own, where the device reaches all of it | as fine |
//! | [`HostPtrBuffer`] | the host's, used in place | as regular; a map costs no copy |

pub(crate) use memory::Memory;
pub(crate) use methods::{object_field, object_methods};
pub(crate) use object::Object;

mod cl_map;
mod factory;
mod host_ptr;
mod map;
mod memory;
mod methods;
mod object;
mod pages;
mod pending;
mod policy;
mod rect;
mod regular;
mod sub;
mod svm;
mod svm_copy;
mod svm_map;
mod svm_memory;
mod transfer;

pub use cl_map::{ClMap, ClMapMut};
pub use factory::{Buffer, BufferFactory, BufferRequest, MapGuard, MapGuardMut};
pub use host_ptr::HostPtrBuffer;
pub use pending::Pending;
pub use policy::{BufferChoice, BufferPolicy, BufferRule, BufferStrategy};
pub use rect::BoxLayout;
pub use regular::RegularBuffer;
pub use sub::{SubBuffer, SubBufferMut};
pub use svm::{SvmBuffer, SvmView};
pub use svm_map::{SvmMap, SvmMapMut};
pub use svm_memory::SvmGrain;
pub use transfer::{MemMut, MemRef};

use crate::error::{Error, Result};

/// The byte range of `count` elements from `offset` on in a buffer of `len`, or an error.
fn byte_range<T>(len: usize, offset: usize, count: usize) -> Result<std::ops::Range<usize>> {
    match offset.checked_add(count) {
        // A buffer's bytes fit into the address space, so that those of a part do too.
        Some(end) if end <= len => Ok(offset * size_of::<T>()..end * size_of::<T>()),
        _ => Err(Error::OutOfRange { offset, count, len }),
    }
}

/// Checks that `got` elements were passed where `expected` are needed.
fn same_length(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got {
        Ok(())
    } else {
        Err(Error::LengthMismatch {
            what,
            expected,
            got,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_outside_a_buffer_are_refused() {
        assert_eq!(byte_range::<f32>(10, 2, 3).unwrap(), 8..20);
        assert_eq!(byte_range::<f32>(10, 10, 0).unwrap(), 40..40);
        assert!(byte_range::<f32>(10, 10, 1).is_err());
        assert!(byte_range::<f32>(10, usize::MAX, 2).is_err());
    }
}
