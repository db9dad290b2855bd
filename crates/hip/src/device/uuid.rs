use std::fmt;

use hip_sys::hipUUID;

use super::Device;
use crate::Result;
use crate::call::call;

/// Identifies one device in every process of the machine: ordinals differ where the environment hides or
/// reorders devices.
///
/// On ROCm these are sixteen characters of HSA's name for the device (hipamd/src/hip_device.cpp,
/// `hipDeviceGetUuid`), on CUDA sixteen bytes; either way they are compared as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "hipUUID")]
pub struct Uuid {
    /// The bytes.
    pub bytes: [u8; 16],
}

impl fmt::Display for Uuid {
    /// The characters where all sixteen are letters or digits, else the bytes in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bytes.iter().all(u8::is_ascii_alphanumeric) {
            return self
                .bytes
                .iter()
                .try_for_each(|&byte| write!(f, "{}", char::from(byte)));
        }
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Device {
    /// The device's UUID.
    ///
    /// # Errors
    ///
    /// The library cannot report it.
    #[doc(alias = "hipDeviceGetUuid")]
    pub fn uuid(&self) -> Result<Uuid> {
        let mut uuid = hipUUID::default();
        // SAFETY: writes one structure to the address given.
        unsafe {
            call!(
                self.runtime(),
                hipDeviceGetUuid(&mut uuid, self.index()),
                "hipDeviceGetUuid(device {})",
                self.ordinal()
            )?;
        }
        Ok(Uuid {
            bytes: bytemuck::cast(uuid.bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Uuid;

    #[test]
    fn characters_are_shown_as_they_are_and_bytes_in_hexadecimal() {
        let rocm = Uuid {
            bytes: *b"686f737400000001",
        };
        assert_eq!(rocm.to_string(), "686f737400000001");
        let cuda = Uuid { bytes: [0xA5; 16] };
        assert_eq!(cuda.to_string(), "a5".repeat(16));
    }
}
