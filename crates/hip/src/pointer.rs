use std::ffi::c_void;
use std::ptr;

use hip_sys::{hipError_t, hipMemoryType, hipPointerAttribute_t};

use crate::call::code;
use crate::{Device, Result, Runtime};

/// What HIP knows about an address.
///
/// For memory that another runtime of the process allocated through the same driver, HIP reports [`MemoryKind::Device`]
/// whatever it is, and may name the wrong device (hipamd/src/hip_memory.cpp, `hipPointerGetAttributes`): use HSA's
/// `hsa_amd_pointer_info` then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointerInfo {
    /// What kind of memory.
    pub kind: MemoryKind,
    /// The device's ordinal.
    pub device: i32,
    /// The address for the device, or null.
    pub device_pointer: *mut c_void,
    /// The address for the host, or null.
    pub host_pointer: *mut c_void,
    /// Flags of the allocation.
    pub flags: u32,
}

/// Kinds of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryKind {
    /// On the device.
    Device,
    /// On the host, page-locked.
    Host,
    /// Managed.
    Managed,
    /// An array of textures.
    Array,
    /// Known to all under one address.
    Unified,
    /// A number that this crate does not know.
    Other(u32),
}

impl Runtime {
    /// What HIP knows about an address; `None` if nothing. The address is not dereferenced.
    ///
    /// # Errors
    ///
    /// HIP fails for another reason than not knowing the address.
    #[doc(alias = "hipPointerGetAttributes")]
    #[expect(clippy::not_unsafe_ptr_arg_deref, reason = "HIP looks the number up in its tables")]
    pub fn pointer_info(&self, address: *const c_void) -> Result<Option<PointerInfo>> {
        let mut told = hipPointerAttribute_t::default();
        // SAFETY: writes one structure to the address given; the other address is only looked up.
        match unsafe { code!(self, hipPointerGetAttributes(&mut told, address)) }? {
            hipError_t::hipSuccess => {}
            hipError_t::hipErrorInvalidValue => {
                self.forget_last_error();
                return Ok(None);
            }
            code => {
                let call = format!("hipPointerGetAttributes({address:?})");
                return Err(self.failure(code, call));
            }
        }
        let renumbered = self.versions()?.runtime >= 6 * 10_000_000;
        let Some(kind) = kind(told.type_, renumbered) else {
            return Ok(None);
        };
        Ok(Some(PointerInfo {
            kind: if told.isManaged != 0 { MemoryKind::Managed } else { kind },
            device: told.device,
            device_pointer: told.devicePointer,
            host_pointer: told.hostPointer,
            flags: told.allocationFlags,
        }))
    }
}

/// HIP 6.0 gave the kinds new numbers (hip_runtime_api.h, `hipMemoryType`).
fn kind(number: hipMemoryType, renumbered: bool) -> Option<MemoryKind> {
    Some(match (renumbered, number.0) {
        (true, 0) => return None,
        (true, 1) | (false, 0) => MemoryKind::Host,
        (true, 2) | (false, 1) => MemoryKind::Device,
        (true, 3) | (false, 4) => MemoryKind::Managed,
        (true, 10) | (false, 2) => MemoryKind::Array,
        (true, 11) | (false, 3) => MemoryKind::Unified,
        (_, other) => MemoryKind::Other(other),
    })
}

impl Device {
    /// Base and size in bytes of the allocation that contains an address; `None` if HIP knows none. The address is not
    /// dereferenced.
    ///
    /// For memory of another runtime HIP returns nonsense (base 0x100, size `usize::MAX`): that is `None`, too.
    ///
    /// # Errors
    ///
    /// HIP fails for another reason than not knowing the address.
    #[doc(alias = "hipMemGetAddressRange")]
    pub fn allocation_of(&self, address: *const c_void) -> Result<Option<(*mut c_void, usize)>> {
        self.make_current()?;
        let (mut base, mut bytes) = (ptr::null_mut(), 0);
        // SAFETY: writes a pointer and a size to the addresses given; the other address is only looked up.
        let code = unsafe {
            code!(
                self.runtime(),
                hipMemGetAddressRange(&mut base, &mut bytes, address.cast_mut())
            )
        }?;
        match code {
            hipError_t::hipSuccess if bytes == usize::MAX => Ok(None),
            hipError_t::hipSuccess => Ok(Some((base, bytes))),
            hipError_t::hipErrorInvalidValue
            | hipError_t::hipErrorNotFound
            | hipError_t::hipErrorInvalidDevicePointer => {
                self.runtime().forget_last_error();
                Ok(None)
            }
            code => {
                let call = format!("hipMemGetAddressRange({address:?})");
                Err(self.runtime().failure(code, call))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MemoryKind, hipMemoryType, kind};

    #[test]
    fn kinds_are_read_by_the_numbers_of_their_release() {
        for (number, old, new) in [
            (0, Some(MemoryKind::Host), None),
            (1, Some(MemoryKind::Device), Some(MemoryKind::Host)),
            (2, Some(MemoryKind::Array), Some(MemoryKind::Device)),
            (3, Some(MemoryKind::Unified), Some(MemoryKind::Managed)),
            (4, Some(MemoryKind::Managed), Some(MemoryKind::Other(4))),
        ] {
            assert_eq!(kind(hipMemoryType(number), false), old);
            assert_eq!(kind(hipMemoryType(number), true), new);
        }
    }
}
