//! Which devices reach the memory. A mapping is one device's until another is let in: unlike memory of `hipMalloc`, it is
//! not covered by `hipDeviceEnablePeerAccess`.

use std::fmt;
use std::sync::Arc;

use hip_sys::{hipMemAccessDesc, hipMemAccessFlags, hipMemLocationType};

use super::Core;
use crate::call::call;
use crate::{Device, Result};

/// Lets other devices reach [`VirtualMemory`](super::VirtualMemory) after it has become a buffer. It keeps the memory.
#[derive(Clone)]
pub struct VirtualAccess {
    core: Arc<Core>,
}

impl VirtualAccess {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Lets kernels and copies of `device` use the memory as well. Doing it twice is fine; it ends with the memory.
    ///
    /// Without it a kernel of that device faults, and a copy goes through the host.
    ///
    /// # Errors
    ///
    /// `device` is of another runtime, or is no peer of the memory's ([`Device::can_access`]).
    #[doc(alias = "hipMemSetAccess")]
    pub fn enable(&self, device: &Device) -> Result<()> {
        self.core.open_to(device)
    }
}

impl Core {
    /// Lets kernels of the device use the mapping; the others keep what they have.
    pub(super) fn open_to(&self, device: &Device) -> Result<()> {
        if !self.device.runtime().same(device.runtime()) {
            self.device.check_same(device, "VirtualAccess::enable", "device")?;
        }
        let mut devices = self.devices.lock();
        if devices.contains(&device.ordinal()) {
            return Ok(());
        }
        let mut access = hipMemAccessDesc {
            flags: hipMemAccessFlags::hipMemAccessFlagsProtReadWrite,
            ..hipMemAccessDesc::default()
        };
        access.location.type_ = hipMemLocationType::hipMemLocationTypeDevice;
        access.location.id = device.index();
        let (address, bytes) = (self.address, self.mapped_bytes);
        // SAFETY: the range is mapped as a whole, and one description is given.
        unsafe {
            call!(
                self.device.runtime(),
                hipMemSetAccess(address, bytes, &access, 1),
                "hipMemSetAccess({address:?}, {bytes} bytes, device {})",
                device.ordinal()
            )?;
        }
        devices.push(device.ordinal());
        Ok(())
    }
}

impl fmt::Debug for VirtualAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualAccess")
            .field("device", &self.core.device.ordinal())
            .field("bytes", &self.core.bytes)
            .finish_non_exhaustive()
    }
}
