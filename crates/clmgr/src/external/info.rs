//! What OpenCL reports about a foreign buffer.

use std::ffi::c_void;

use opencl_sys::{cl_bool, cl_context, cl_mem, cl_mem_flags, cl_mem_object_type, cl_uint};

use super::contexts::{ExternalContexts, not_null};
use crate::access::BufferAccess;
use crate::api::{Api, slot};
use crate::device::{Device, HandleKind};
use crate::error::{Error, Result};
use crate::query::{list, value};

const CALL: &str = "clGetMemObjectInfo";

/// Everything that OpenCL reports about a buffer. The handles in it are not retained.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExternalBufferInfo {
    /// The size in bytes.
    pub bytes: usize,
    /// The flags of its creation.
    pub flags: cl_mem_flags,
    /// What the flags let kernels and the host do.
    pub access: BufferAccess,
    /// The context.
    pub context: cl_context,
    /// The known devices of the context, in its order.
    pub devices: Vec<Device>,
    /// The host memory passed at its creation; null without `CL_MEM_USE_HOST_PTR`.
    pub host_ptr: *mut c_void,
    /// Where a sub-buffer starts in its parent, in bytes; zero for a whole buffer.
    pub offset: usize,
    /// The parent of a sub-buffer, else null.
    pub parent: cl_mem,
    /// Whether its host memory is shared virtual memory; none before OpenCL 2.0.
    pub uses_svm: Option<bool>,
    /// How it was imported, if it was and the driver is of OpenCL 3.0.
    pub external: Option<HandleKind>,
    /// The number of its maps; out of date as soon as others use the buffer.
    pub map_count: u32,
    /// The number of references to it; out of date as soon as others use the buffer.
    pub references: u32,
    /// What the origin of a sub-buffer must be a multiple of for all known devices, in bytes.
    pub sub_buffer_alignment: usize,
    /// What the address of its first byte is certainly a multiple of on the known devices, in
    /// bytes: the devices' base alignment, less for a sub-buffer with an odd offset.
    pub base_alignment: usize,
}

impl ExternalBufferInfo {
    /// Queries a foreign buffer.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`] for a null handle, an image or pipe, or a context without a known device;
    /// an error from `clGetMemObjectInfo`, e.g. `CL_INVALID_MEM_OBJECT`.
    ///
    /// # Safety
    ///
    /// `raw` is null or a live memory object of the library of `contexts`. Some drivers check a
    /// handle and return an error for any other; the specification does not require that.
    #[doc(alias = "clGetMemObjectInfo")]
    pub unsafe fn query(contexts: &ExternalContexts, raw: cl_mem) -> Result<Self> {
        let api = contexts.api();
        // SAFETY: the caller's promise, and each property has the type the specification gives.
        unsafe {
            let kind = property::<cl_mem_object_type>(api, raw, opencl_sys::CL_MEM_TYPE)?;
            if kind != opencl_sys::CL_MEM_OBJECT_BUFFER {
                return Err(Error::Foreign {
                    what: "the memory object",
                    reason: "it is an image or a pipe, not a buffer",
                });
            }
            let context = parent_context(api, raw)?;
            let devices = contexts.devices_of(context)?;
            if devices.is_empty() {
                return Err(Error::Foreign {
                    what: "the buffer",
                    reason: "this manager knows no device of its context",
                });
            }
            let flags = property::<cl_mem_flags>(api, raw, opencl_sys::CL_MEM_FLAGS)?;
            let offset = property::<usize>(api, raw, opencl_sys::CL_MEM_OFFSET)?;
            let aligned = devices.iter().map(Device::sub_buffer_alignment);
            Ok(Self {
                bytes: property(api, raw, opencl_sys::CL_MEM_SIZE)?,
                flags,
                access: BufferAccess::from_flags(flags),
                context,
                host_ptr: property(api, raw, opencl_sys::CL_MEM_HOST_PTR)?,
                offset,
                parent: property(api, raw, opencl_sys::CL_MEM_ASSOCIATED_MEMOBJECT)?,
                uses_svm: property::<cl_bool>(api, raw, opencl_sys::CL_MEM_USES_SVM_POINTER)
                    .ok()
                    .map(|uses| uses != 0),
                external: imported_by(api, raw),
                map_count: property::<cl_uint>(api, raw, opencl_sys::CL_MEM_MAP_COUNT)?,
                references: property::<cl_uint>(api, raw, opencl_sys::CL_MEM_REFERENCE_COUNT)?,
                base_alignment: aligned
                    .clone()
                    .map(|alignment| common_alignment(alignment, offset))
                    .min()
                    .unwrap_or(1),
                sub_buffer_alignment: aligned.max().unwrap_or(1),
                devices,
            })
        }
    }

    /// The number of elements of `T` in the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::Remainder`] if the size is not a multiple of that of `T`, [`Error::Zero`] if `T` has no size.
    #[allow(clippy::len_without_is_empty)]
    pub fn len<T>(&self) -> Result<usize> {
        let element = size_of::<T>();
        if element == 0 {
            return Err(Error::Zero {
                what: "the size of an element",
            });
        }
        if !self.bytes.is_multiple_of(element) {
            return Err(Error::Remainder {
                bytes: self.bytes,
                element,
            });
        }
        Ok(self.bytes / element)
    }

    /// Whether it is a part of another buffer.
    #[must_use]
    pub fn is_sub_buffer(&self) -> bool {
        !self.parent.is_null()
    }
}

// SAFETY: the handles and the host's address are only values here, as in `Handle`.
unsafe impl Send for ExternalBufferInfo {}
// SAFETY: as for `Send`.
unsafe impl Sync for ExternalBufferInfo {}

/// The largest power of two that divides both, where zero is divided by all.
fn common_alignment(base: usize, offset: usize) -> usize {
    let bits = base.trailing_zeros().min(offset.trailing_zeros());
    1usize.checked_shl(bits).unwrap_or(1)
}

/// # Safety
///
/// `raw` is null or a live memory object of this table's library; `V` is the property's type.
unsafe fn property<V>(api: &Api, raw: cl_mem, what: u32) -> Result<V> {
    not_null(raw.is_null(), "the buffer")?;
    let get = slot!(api, clGetMemObjectInfo)?;
    // SAFETY: the caller's promise.
    unsafe {
        value(CALL, what, |size, place| {
            get(raw, what, size, place, std::ptr::null_mut())
        })
    }
}

/// The context of a buffer.
///
/// # Safety
///
/// As [`property`].
pub(super) unsafe fn parent_context(api: &Api, raw: cl_mem) -> Result<cl_context> {
    // SAFETY: the caller's promise.
    unsafe { property(api, raw, opencl_sys::CL_MEM_CONTEXT) }
}

/// The external handle's kind in `CL_MEM_PROPERTIES`, which drivers before OpenCL 3.0 refuse.
///
/// # Safety
///
/// As [`property`].
unsafe fn imported_by(api: &Api, raw: cl_mem) -> Option<HandleKind> {
    let get = api.clGetMemObjectInfo?;
    let what = opencl_sys::CL_MEM_PROPERTIES;
    // SAFETY: the caller's promise; the property is a list of 64-bit values.
    let properties =
        unsafe { list::<u64>(CALL, what, |size, place, needed| get(raw, what, size, place, needed)) }.ok()?;
    properties.chunks_exact(2).find_map(|pair| {
        let kind = HandleKind(u32::try_from(pair[0]).ok()?);
        // The handle types for memory lie in this range; other properties do not.
        (0x2060..=0x2070).contains(&kind.0).then_some(kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_lowers_the_alignment_that_is_certain() {
        assert_eq!(common_alignment(128, 0), 128);
        assert_eq!(common_alignment(128, 256), 128);
        assert_eq!(common_alignment(128, 40), 8);
        assert_eq!(common_alignment(128, 3), 1);
    }
}
