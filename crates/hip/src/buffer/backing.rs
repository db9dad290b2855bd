use std::ffi::c_void;
use std::sync::Arc;

use super::MemPool;
use crate::call::call;
use crate::{Device, Error, Result, Stream};

/// Where a buffer's memory came from, which decides how it is freed.
pub(crate) enum Backing {
    /// `hipMalloc`.
    Device,
    /// A pool: freed in the order of its home stream, without a wait.
    Ordered {
        home: Stream,
        /// Kept until the memory is freed. `None` is the device's own pool.
        pool: Option<MemPool>,
    },
    /// A mapping, released by the destructor of its last owner.
    Mapped(Option<Arc<dyn Mapping>>),
}

/// Owns a mapping, and ends it when dropped.
pub(crate) trait Mapping: Send + Sync {
    /// Lets another device use it.
    fn let_in(&self, _peer: &Device) -> Result<()> {
        Err(out_of_reach())
    }
}

/// That peers cannot reach memory of this kind.
pub(crate) fn out_of_reach() -> Error {
    Error::NotSupported {
        what: "a peer's access to this buffer",
        reason: "peer access covers only memory of `Device::alloc` and `Device::virtual_memory`; copy with \
                 `copy_from_peer`",
    }
}

impl Backing {
    /// Frees the memory at `pointer`. A mapping is released when the backing itself is dropped.
    ///
    /// # Safety
    ///
    /// `pointer` came from this backing on `device` and is freed once. Nothing uses it any more, or, if it is ordered,
    /// the home stream comes after all that does.
    pub(crate) unsafe fn free(&self, device: &Device, pointer: *mut c_void) -> Result<()> {
        match self {
            Self::Mapped(_) => Ok(()),
            Self::Device => {
                device.make_current()?;
                // SAFETY: the caller's promise is the callee's demand.
                unsafe { call!(device.runtime(), hipFree(pointer), "hipFree({pointer:?})") }
            }
            Self::Ordered { home, .. } => {
                device.make_current()?;
                // SAFETY: as above; the stream is alive.
                unsafe {
                    call!(
                        device.runtime(),
                        hipFreeAsync(pointer, home.raw()),
                        "hipFreeAsync({pointer:?})"
                    )
                }
            }
        }
    }

    /// For memory that may still be in use and cannot be waited for: keeps it for ever.
    pub(crate) fn leak(&mut self) {
        match self {
            Self::Device => {}
            Self::Ordered { pool, .. } => std::mem::forget(pool.take()),
            Self::Mapped(owner) => std::mem::forget(owner.take()),
        }
    }
}
