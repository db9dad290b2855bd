use std::ffi::c_void;
use std::sync::Arc;
use std::{fmt, ptr};

use hip_sys::{hipMemPool_t, hipMemPoolAttr, hipMemPoolProps};

use crate::call::call;
use crate::{Device, Result};

/// Device memory set aside for stream-ordered allocation. Cloning is cheap.
///
/// Allocating and dropping do not wait: the memory is available when its home stream reaches the allocation, and is
/// freed when that stream reaches the release, which comes after all use by other streams.
///
/// ```no_run
/// # fn f(device: &hip::Device, stream: &hip::Stream) -> hip::Result<()> {
/// let pool = device.mem_pool()?;
/// pool.set_release_threshold(1 << 30)?;
/// for _ in 0..100 {
///     let mut scratch = pool.alloc::<f32>(stream, 1 << 20)?;
///     scratch.on_mut(stream)?.fill_zero()?;
/// } // dropped without waiting
/// # Ok(())
/// # }
/// ```
///
/// That a release is only queued does not let a slice outlive its memory:
///
/// ```compile_fail,E0505
/// fn late(stream: &hip::Stream) -> hip::Result<()> {
///     let mut scratch = stream.alloc::<f32>(64)?;
///     let mut slice = scratch.on_mut(stream)?;
///     drop(scratch);
///     slice.fill_zero()
/// }
/// ```
#[derive(Clone)]
#[doc(alias = "hipMemPoolCreate")]
pub struct MemPool {
    core: Arc<Core>,
}

struct Core {
    device: Device,
    raw: hipMemPool_t,
    /// The device's own pool is not ours to destroy.
    owned: bool,
}

// SAFETY: a pool is a handle without thread affinity, like the streams it serves; HIP locks it itself
// (hipamd/src/hip_mempool_impl.hpp).
unsafe impl Send for Core {}
// SAFETY: as for `Send`.
unsafe impl Sync for Core {}

/// Bytes of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUsage {
    /// Held by the pool, in use or not.
    pub reserved: u64,
    /// The most it held.
    pub most_reserved: u64,
    /// In use by allocations whose release is not queued.
    pub used: u64,
    /// The most that was in use.
    pub most_used: u64,
}

impl Device {
    /// A new pool of this device's memory.
    ///
    /// # Errors
    ///
    /// The device has no pools, or HIP could not create one.
    #[doc(alias = "hipMemPoolCreate")]
    pub fn mem_pool(&self) -> Result<MemPool> {
        self.make_current()?;
        let mut properties = hipMemPoolProps {
            allocType: hip_sys::hipMemAllocationType::hipMemAllocationTypePinned,
            ..hipMemPoolProps::default()
        };
        properties.location.type_ = hip_sys::hipMemLocationType::hipMemLocationTypeDevice;
        properties.location.id = self.index();
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; the properties outlive the call.
        unsafe {
            call!(
                self.runtime(),
                hipMemPoolCreate(&mut raw, &properties),
                "hipMemPoolCreate(device {})",
                self.ordinal()
            )?;
        }
        Ok(MemPool::new(self, raw, true))
    }

    /// The pool that [`Stream::alloc`](crate::Stream::alloc) uses unless another is chosen.
    ///
    /// # Errors
    ///
    /// The device has no pools.
    #[doc(alias = "hipDeviceGetDefaultMemPool")]
    pub fn default_mem_pool(&self) -> Result<MemPool> {
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given.
        unsafe {
            call!(
                self.runtime(),
                hipDeviceGetDefaultMemPool(&mut raw, self.index()),
                "hipDeviceGetDefaultMemPool(device {})",
                self.ordinal()
            )?;
        }
        Ok(MemPool::new(self, raw, false))
    }
}

impl MemPool {
    fn new(device: &Device, raw: hipMemPool_t, owned: bool) -> Self {
        Self {
            core: Arc::new(Core {
                device: device.clone(),
                raw,
                owned,
            }),
        }
    }

    /// The device whose memory it holds.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.core.device
    }

    pub(super) fn raw(&self) -> hipMemPool_t {
        self.core.raw
    }

    /// How much the pool may keep when the last allocation goes; the next synchronisation releases the rest. Initially
    /// 0.
    ///
    /// # Errors
    ///
    /// HIP refused it.
    #[doc(alias = "hipMemPoolSetAttribute")]
    pub fn set_release_threshold(&self, bytes: u64) -> Result<()> {
        let mut bytes = bytes;
        let attribute = hipMemPoolAttr::hipMemPoolAttrReleaseThreshold;
        // SAFETY: the pool is alive; this attribute is a 64-bit number, which is read from the address given.
        unsafe {
            call!(
                self.device().runtime(),
                hipMemPoolSetAttribute(self.core.raw, attribute, (&raw mut bytes).cast::<c_void>()),
                "hipMemPoolSetAttribute({attribute:?}, {bytes})"
            )
        }
    }

    /// Returns unused memory to the device, down to `keep` bytes.
    ///
    /// # Errors
    ///
    /// HIP refused it.
    #[doc(alias = "hipMemPoolTrimTo")]
    pub fn trim_to(&self, keep: usize) -> Result<()> {
        // SAFETY: the pool is alive; what is in use stays.
        unsafe {
            call!(
                self.device().runtime(),
                hipMemPoolTrimTo(self.core.raw, keep),
                "hipMemPoolTrimTo({keep} bytes)"
            )
        }
    }

    /// How much it holds.
    ///
    /// # Errors
    ///
    /// HIP cannot report it.
    #[doc(alias = "hipMemPoolGetAttribute")]
    pub fn usage(&self) -> Result<PoolUsage> {
        Ok(PoolUsage {
            reserved: self.number(hipMemPoolAttr::hipMemPoolAttrReservedMemCurrent)?,
            most_reserved: self.number(hipMemPoolAttr::hipMemPoolAttrReservedMemHigh)?,
            used: self.number(hipMemPoolAttr::hipMemPoolAttrUsedMemCurrent)?,
            most_used: self.number(hipMemPoolAttr::hipMemPoolAttrUsedMemHigh)?,
        })
    }

    fn number(&self, attribute: hipMemPoolAttr) -> Result<u64> {
        let mut number = 0_u64;
        // SAFETY: the pool is alive; all callers ask for 64-bit numbers, one of which is written to the address given.
        unsafe {
            call!(
                self.device().runtime(),
                hipMemPoolGetAttribute(self.core.raw, attribute, (&raw mut number).cast::<c_void>()),
                "hipMemPoolGetAttribute({attribute:?})"
            )?;
        }
        Ok(number)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        // SAFETY: the handle is alive, and this is its last use. Releases may be queued still: "If [...] the pool has
        // free operations that haven't completed when hipMemPoolDestroy is invoked, the function will return
        // immediately and the resources [...] will be released automatically once there are no more outstanding
        // allocations".
        let destroyed = unsafe {
            call!(
                self.device.runtime(),
                hipMemPoolDestroy(self.raw),
                "hipMemPoolDestroy()"
            )
        };
        if let Err(error) = destroyed {
            self.device.runtime().defer(error);
        }
    }
}

impl fmt::Debug for MemPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemPool")
            .field("device", &self.device().ordinal())
            .field("owned", &self.core.owned)
            .finish_non_exhaustive()
    }
}
