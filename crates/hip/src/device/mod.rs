//! One GPU: what it is, and what it can do.

mod uuid;

use std::ffi::{CStr, c_char};
use std::fmt;
use std::sync::{Arc, OnceLock};

use hip_sys::hipDeviceAttribute_t;
use hip_sys::versions::DeviceProperties;
pub use uuid::Uuid;

use crate::call::call;
use crate::launch::Limits;
use crate::{Error, Result, Runtime};

/// One HIP device. Cloning is cheap.
#[derive(Clone)]
pub struct Device {
    runtime: Runtime,
    ordinal: i32,
    limits: Arc<OnceLock<Limits>>,
}

/// Where a device sits on the PCI bus; displayed as `0000:03:00.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PciAddress {
    /// Domain (segment).
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Device (slot).
    pub device: u32,
    /// Function.
    pub function: u32,
}

/// Device memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes that can still be allocated.
    pub free: usize,
    /// Bytes in all.
    pub total: usize,
}

impl Runtime {
    /// The device with this ordinal, `0..device_count()`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchDevice`].
    pub fn device(&self, ordinal: usize) -> Result<Device> {
        let count = self.device_count()?;
        match i32::try_from(ordinal) {
            Ok(index) if ordinal < count => Ok(Device::new(self.clone(), index)),
            _ => Err(Error::NoSuchDevice { ordinal, count }),
        }
    }
}

impl Device {
    fn new(runtime: Runtime, ordinal: i32) -> Self {
        Self {
            runtime,
            ordinal,
            limits: Arc::default(),
        }
    }

    /// The ordinal among the visible devices.
    #[must_use]
    pub fn ordinal(&self) -> usize {
        // `Runtime::device` only makes devices from a `usize`.
        self.ordinal.unsigned_abs() as usize
    }

    /// The ordinal as HIP takes it.
    pub(crate) fn index(&self) -> i32 {
        self.ordinal
    }

    /// The runtime this device belongs to.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The marketing name, e.g. "AMD Instinct MI100". Where the driver returns an empty name, as ROCm does for cards
    /// that its tables lack, the product name of the architecture, or else the architecture.
    ///
    /// # Errors
    ///
    /// The library cannot report it.
    #[doc(alias = "hipDeviceGetName")]
    pub fn name(&self) -> Result<String> {
        let mut text = [0_u8; 256];
        // SAFETY: writes at most the given number of bytes, terminator included.
        unsafe {
            call!(
                self.runtime,
                hipDeviceGetName(text.as_mut_ptr().cast::<c_char>(), text.len() as i32, self.ordinal),
                "hipDeviceGetName(device {})",
                self.ordinal
            )?;
        }
        match until_nul(&text, "hipDeviceGetName")? {
            name if name.trim().is_empty() => Ok(named_by(&self.arch()?)),
            name => Ok(name),
        }
    }

    /// The instruction set with its features, as the compiler expects it, e.g. `gfx908:sramecc+:xnack-`.
    ///
    /// # Errors
    ///
    /// The library cannot report it.
    #[doc(alias = "hipGetDeviceProperties")]
    pub fn arch(&self) -> Result<String> {
        /// Calls the function and reads the name out of the structure it fills.
        macro_rules! arch_of {
            ($function:ident, $structure:ty) => {{
                let mut properties = std::mem::MaybeUninit::<$structure>::zeroed();
                // SAFETY: writes one structure of the layout that the slot's type names.
                unsafe {
                    call!(
                        self.runtime,
                        $function(properties.as_mut_ptr(), self.ordinal),
                        concat!(stringify!($function), "(device {})"),
                        self.ordinal
                    )?;
                }
                // SAFETY: a C structure of numbers and arrays of numbers, for which zeroes are a value; the call filled
                // it.
                let properties = unsafe { properties.assume_init() };
                until_nul(
                    bytemuck::cast_slice(&properties.gcnArchName),
                    stringify!($function),
                )
            }};
        }
        match DeviceProperties::of(self.runtime.api()) {
            Some(DeviceProperties::R0000) => {
                arch_of!(hipGetDeviceProperties, hip_sys::hipDeviceProp_tR0000)
            }
            // A library with neither is told by the missing function's name.
            Some(DeviceProperties::R0600) | None => {
                arch_of!(hipGetDevicePropertiesR0600, hip_sys::hipDeviceProp_tR0600)
            }
        }
    }

    /// The PCI address.
    ///
    /// # Errors
    ///
    /// The library cannot tell, or returns no address.
    #[doc(alias = "hipDeviceGetPCIBusId")]
    pub fn pci_address(&self) -> Result<PciAddress> {
        let mut text = [0_u8; 64];
        // SAFETY: writes at most the given number of bytes, terminator included.
        unsafe {
            call!(
                self.runtime,
                hipDeviceGetPCIBusId(text.as_mut_ptr().cast::<c_char>(), text.len() as i32, self.ordinal),
                "hipDeviceGetPCIBusId(device {})",
                self.ordinal
            )?;
        }
        let text = until_nul(&text, "hipDeviceGetPCIBusId")?;
        PciAddress::parse(&text).ok_or(Error::Answer {
            call: "hipDeviceGetPCIBusId",
            answer: text,
            expected: "a PCI address like 0000:03:00.0",
        })
    }

    /// Free and total memory.
    ///
    /// # Errors
    ///
    /// The library cannot report it.
    #[doc(alias = "hipMemGetInfo")]
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes to the addresses given.
        unsafe {
            call!(
                self.runtime,
                hipMemGetInfo(&mut free, &mut total),
                "hipMemGetInfo(device {})",
                self.ordinal
            )
        }?;
        Ok(MemoryInfo { free, total })
    }

    /// Units that each run their own blocks: AMD's compute units, NVIDIA's multiprocessors, the host platform's
    /// threads.
    ///
    /// # Errors
    ///
    /// The library cannot report it.
    #[doc(alias = "hipDeviceAttributeMultiprocessorCount")]
    pub fn compute_units(&self) -> Result<u32> {
        let units = self.attribute(hipDeviceAttribute_t::hipDeviceAttributeMultiprocessorCount)?;
        Ok(units.unsigned_abs())
    }

    /// One attribute.
    ///
    /// # Errors
    ///
    /// The library does not know the attribute.
    #[doc(alias = "hipDeviceGetAttribute")]
    pub fn attribute(&self, attribute: hipDeviceAttribute_t) -> Result<i32> {
        let mut value = 0;
        // SAFETY: writes one int to the address given; the attribute is a number that the callee checks.
        unsafe {
            call!(
                self.runtime,
                hipDeviceGetAttribute(&mut value, attribute, self.ordinal),
                "hipDeviceGetAttribute({attribute:?}, device {})",
                self.ordinal
            )?;
        }
        Ok(value)
    }

    /// Waits for all work of all streams of this device.
    ///
    /// # Errors
    ///
    /// Earlier work failed.
    #[doc(alias = "hipDeviceSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        self.make_current()?;
        // SAFETY: takes no arguments.
        unsafe {
            call!(
                self.runtime,
                hipDeviceSynchronize(),
                "hipDeviceSynchronize(device {})",
                self.ordinal
            )
        }
    }

    /// Makes this the calling thread's current device.
    ///
    /// Every function of this crate that needs it does so itself; this is for calls made through [`Runtime::api`] and
    /// for libraries that only look at the current device, as rocBLAS does.
    ///
    /// # Errors
    ///
    /// HIP refused the device.
    #[doc(alias = "hipSetDevice")]
    #[inline]
    pub fn make_current(&self) -> Result<()> {
        let mut current = -1;
        // HIP's own answer is asked for, not remembered here: other code in the thread may have chosen another device.
        if let Some(get) = self.runtime.api().hipGetDevice
            // SAFETY: writes one int to the address given.
            && unsafe { get(&mut current) } == hip_sys::hipError_t::hipSuccess
            && current == self.ordinal
        {
            return Ok(());
        }
        // SAFETY: takes a number that the callee checks.
        unsafe {
            call!(
                self.runtime,
                hipSetDevice(self.ordinal),
                "hipSetDevice({})",
                self.ordinal
            )
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        let limit = |attribute| match self.attribute(attribute) {
            Ok(value) => u32::try_from(value).unwrap_or(0),
            Err(_) => {
                self.runtime.forget_last_error();
                0
            }
        };
        self.limits.get_or_init(|| Limits::of(limit))
    }

    #[inline]
    pub(crate) fn check_same(&self, other: &Self, call: &'static str, argument: &'static str) -> Result<()> {
        if self == other {
            return Ok(());
        }
        let (expected, found) = if self.runtime.same(&other.runtime) {
            (format!("device {}", self.ordinal), format!("device {}", other.ordinal))
        } else {
            (
                format!("device {} of this runtime", self.ordinal),
                format!("device {} of another runtime", other.ordinal),
            )
        };
        Err(Error::WrongDevice {
            call,
            argument,
            found,
            expected,
        })
    }
}

/// Two devices are equal if they have the same ordinal in the same runtime.
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.ordinal == other.ordinal && self.runtime.same(&other.runtime)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("ordinal", &self.ordinal)
            .finish_non_exhaustive()
    }
}

impl PciAddress {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split([':', '.']).map(|part| u32::from_str_radix(part, 16).ok());
        let address = Self {
            domain: parts.next()??,
            bus: parts.next()??,
            device: parts.next()??,
            function: parts.next()??,
        };
        parts.next().is_none().then_some(address)
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04x}:{:02x}:{:02x}.{:x}",
            self.domain, self.bus, self.device, self.function
        )
    }
}

fn until_nul(bytes: &[u8], call: &'static str) -> Result<String> {
    match CStr::from_bytes_until_nul(bytes) {
        Ok(text) => Ok(text.to_string_lossy().into_owned()),
        Err(_) => Err(Error::Answer {
            call,
            answer: String::from_utf8_lossy(bytes).into_owned(),
            expected: "a text that ends",
        }),
    }
}

/// A name for a device of this architecture.
fn named_by(arch: &str) -> String {
    let target = arch.split(':').next().unwrap_or(arch);
    match PRODUCTS.iter().find(|(known, _)| *known == target) {
        Some((_, product)) => (*product).to_owned(),
        None => target.to_owned(),
    }
}

/// Product names of AMD compute cards (LLVM, "User Guide for AMDGPU Backend", table of processors).
const PRODUCTS: [(&str, &str); 6] = [
    ("gfx900", "AMD Radeon Instinct MI25"),
    ("gfx906", "AMD Radeon Instinct MI50 or MI60"),
    ("gfx908", "AMD Instinct MI100"),
    ("gfx90a", "AMD Instinct MI200 series"),
    ("gfx942", "AMD Instinct MI300 series"),
    ("gfx950", "AMD Instinct MI350 series"),
];

#[cfg(test)]
mod tests {
    use super::{PciAddress, named_by};

    #[test]
    fn a_device_without_a_name_has_that_of_its_architecture() {
        assert_eq!(named_by("gfx908:sramecc+:xnack-"), "AMD Instinct MI100");
        assert_eq!(named_by("gfx1201"), "gfx1201");
    }

    #[test]
    fn pci_address_reads_what_it_prints() {
        let address = PciAddress {
            domain: 0x1_0000,
            bus: 0xc3,
            device: 0x1f,
            function: 7,
        };
        assert_eq!(PciAddress::parse(&address.to_string()), Some(address));
        let usual = PciAddress {
            domain: 0,
            bus: 3,
            device: 0,
            function: 0,
        };
        assert_eq!(usual.to_string(), "0000:03:00.0");
        assert_eq!(PciAddress::parse("0000:03:00.0"), Some(usual));
    }

    #[test]
    fn malformed_pci_addresses_are_refused() {
        for text in [
            "",
            "0000",
            "0000:03:00",
            "0000:03:00.0.1",
            "0000:xx:00.0",
            "0000:-3:00.0",
        ] {
            assert_eq!(PciAddress::parse(text), None, "{text}");
        }
    }
}
