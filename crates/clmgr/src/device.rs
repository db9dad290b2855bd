//! What a device is and can do.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::Arc;

use opencl_sys::{cl_device_id, cl_device_info, cl_platform_info, cl_ulong};

use crate::api::{Api, slot};
use crate::error::{Result, check};
use crate::handle::Handle;
use crate::manager::Library;

/// `CL_DEVICE_PCI_BUS_INFO_KHR`: domain, bus, device, function.
const PCI_BUS_INFO_KHR: cl_device_info = 0x410F;
/// `CL_DEVICE_TOPOLOGY_AMD`: type, 17 unused bytes, bus, device, function. It has no domain.
const TOPOLOGY_AMD: cl_device_info = 0x4037;

bitflags::bitflags! {
    /// The kinds of shared virtual memory that a device offers, as `CL_DEVICE_SVM_CAPABILITIES`
    /// gives them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SvmCapabilities: u64 {
        /// `clSVMAlloc` memory that the host reaches by mapping it.
        const COARSE = opencl_sys::CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
        /// `clSVMAlloc` memory that host and device reach at any time.
        const FINE_BUFFER = opencl_sys::CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
        /// Any host memory.
        const FINE_SYSTEM = opencl_sys::CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
        /// Atomics between host and device.
        const ATOMICS = opencl_sys::CL_DEVICE_SVM_ATOMICS;
    }
}

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A processor of the host.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// A dedicated accelerator.
    Accelerator,
    /// Anything else.
    Other,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "CPU",
            Self::Gpu => "GPU",
            Self::Accelerator => "accelerator",
            Self::Other => "other",
        })
    }
}

/// Where a device sits on the PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// The domain; AMD's query has none.
    pub domain: Option<u32>,
    /// The bus.
    pub bus: u32,
    /// The device on the bus.
    pub device: u32,
    /// The function of the device.
    pub function: u32,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.domain {
            Some(domain) => write!(f, "{domain:04x}:")?,
            None => f.write_str("????:")?,
        }
        write!(
            f,
            "{:02x}:{:02x}.{:x}",
            self.bus, self.device, self.function
        )
    }
}

/// An OpenCL device.
///
/// Its properties are read once, when the [`Manager`](crate::Manager) finds it.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    library: Arc<Library>,
    api: Api,
    platform: Handle,
    id: Handle,
    name: String,
    vendor: String,
    version: String,
    driver_version: String,
    extensions: String,
    platform_name: String,
    platform_version: String,
    kind: DeviceKind,
    svm: SvmCapabilities,
    pci: Option<PciAddress>,
    max_alloc_bytes: u64,
    global_bytes: u64,
    local_bytes: u64,
    compute_units: u32,
    max_work_group: usize,
    base_align_bytes: usize,
}

impl Device {
    /// Reads what is known about the device `id` of `platform`.
    pub(crate) fn query(
        library: Arc<Library>,
        api: Api,
        platform: Handle,
        id: Handle,
    ) -> Result<Self> {
        let ask = Query { api: &api, id };
        let inner = Inner {
            name: ask.text(opencl_sys::CL_DEVICE_NAME)?,
            vendor: ask.text(opencl_sys::CL_DEVICE_VENDOR)?,
            version: ask.text(opencl_sys::CL_DEVICE_VERSION)?,
            driver_version: ask.text(opencl_sys::CL_DRIVER_VERSION)?,
            extensions: ask.text(opencl_sys::CL_DEVICE_EXTENSIONS)?,
            platform_name: platform_text(&api, platform, opencl_sys::CL_PLATFORM_NAME)?,
            platform_version: platform_version(&api, platform)?,
            kind: kind_of(ask.value::<u64>(opencl_sys::CL_DEVICE_TYPE)?),
            // A device before OpenCL 2.0 refuses the query: it has no shared virtual memory.
            svm: ask
                .value::<u64>(opencl_sys::CL_DEVICE_SVM_CAPABILITIES)
                .map_or(
                    SvmCapabilities::empty(),
                    SvmCapabilities::from_bits_truncate,
                ),
            pci: ask.pci(),
            max_alloc_bytes: ask.value::<cl_ulong>(opencl_sys::CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
            global_bytes: ask.value::<cl_ulong>(opencl_sys::CL_DEVICE_GLOBAL_MEM_SIZE)?,
            local_bytes: ask.value::<cl_ulong>(opencl_sys::CL_DEVICE_LOCAL_MEM_SIZE)?,
            compute_units: ask.value::<u32>(opencl_sys::CL_DEVICE_MAX_COMPUTE_UNITS)?,
            max_work_group: ask.value::<usize>(opencl_sys::CL_DEVICE_MAX_WORK_GROUP_SIZE)?,
            // The query's unit is bits.
            base_align_bytes: (ask.value::<u32>(opencl_sys::CL_DEVICE_MEM_BASE_ADDR_ALIGN)?
                as usize
                / 8)
            .max(1),
            library,
            platform,
            id,
            api,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The device's vendor.
    #[must_use]
    pub fn vendor(&self) -> &str {
        &self.0.vendor
    }

    /// The name of the device's platform.
    #[must_use]
    pub fn platform_name(&self) -> &str {
        &self.0.platform_name
    }

    /// The version string of the device's platform, e.g. `OpenCL 2.1 AMD-APP (3614.0)`.
    #[must_use]
    pub fn platform_version(&self) -> &str {
        &self.0.platform_version
    }

    /// The device's version string, e.g. `OpenCL 2.0 `.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// The driver's version string.
    #[must_use]
    pub fn driver_version(&self) -> &str {
        &self.0.driver_version
    }

    /// CPU, GPU or other.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.0.kind
    }

    /// The kinds of shared virtual memory; none on a device before OpenCL 2.0.
    #[must_use]
    pub fn svm(&self) -> SvmCapabilities {
        self.0.svm
    }

    /// Whether the device has the extension of exactly this name.
    #[must_use]
    pub fn has_extension(&self, name: &str) -> bool {
        has_token(&self.0.extensions, name)
    }

    /// The names of the device's extensions.
    pub fn extensions(&self) -> impl Iterator<Item = &str> {
        self.0.extensions.split_ascii_whitespace()
    }

    /// The device's place on the PCI bus, where it tells: `cl_khr_pci_bus_info`, else AMD's query.
    #[must_use]
    pub fn pci_address(&self) -> Option<PciAddress> {
        self.0.pci
    }

    /// The largest single allocation, in bytes.
    #[must_use]
    pub fn max_alloc_bytes(&self) -> u64 {
        self.0.max_alloc_bytes
    }

    /// The device's global memory, in bytes.
    #[must_use]
    pub fn global_bytes(&self) -> u64 {
        self.0.global_bytes
    }

    /// The local memory of a work-group, in bytes.
    #[must_use]
    pub fn local_bytes(&self) -> u64 {
        self.0.local_bytes
    }

    /// The number of compute units.
    #[must_use]
    pub fn compute_units(&self) -> u32 {
        self.0.compute_units
    }

    /// The largest work-group.
    #[must_use]
    pub fn max_work_group(&self) -> usize {
        self.0.max_work_group
    }

    /// What the origin of a sub-buffer must be a multiple of, in bytes.
    #[doc(alias = "CL_DEVICE_MEM_BASE_ADDR_ALIGN")]
    #[must_use]
    pub fn sub_buffer_alignment(&self) -> usize {
        self.0.base_align_bytes
    }

    /// The library that the device came from.
    #[must_use]
    pub fn library_path(&self) -> &std::path::Path {
        &self.0.library.path
    }

    /// Whether both came from one library, so that handles of one mean something to the other.
    pub(crate) fn shares_library(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.library, &other.0.library)
    }

    /// The device's handle, valid for ever.
    #[must_use]
    pub fn raw(&self) -> cl_device_id {
        self.0.id.0
    }

    /// The handle of the device's platform, valid for ever.
    #[must_use]
    pub fn raw_platform(&self) -> opencl_sys::cl_platform_id {
        self.0.platform.0
    }

    /// The address of an extension's function, which lasts for ever; none if the platform has no
    /// such function. A loader does not export these, so that they are asked of the platform.
    #[doc(alias = "clGetExtensionFunctionAddressForPlatform")]
    #[must_use]
    pub fn extension_function(&self, name: &CStr) -> Option<*mut c_void> {
        let get = self.0.api.clGetExtensionFunctionAddressForPlatform?;
        // SAFETY: the platform is one that the library gave; the name is a C string.
        let address = unsafe { get(self.0.platform.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// The functions of the device's library.
    #[must_use]
    pub fn api(&self) -> &Api {
        &self.0.api
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("name", &self.0.name)
            .field("platform", &self.0.platform_name)
            .field("version", &self.0.version)
            .field("kind", &self.0.kind)
            .field("svm", &self.0.svm)
            .field("pci", &self.0.pci)
            .finish_non_exhaustive()
    }
}

/// Whether `list`, separated by blanks, holds `name` as a whole word.
fn has_token(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|token| token == name)
}

fn kind_of(bits: u64) -> DeviceKind {
    match bits {
        bits if bits & opencl_sys::CL_DEVICE_TYPE_GPU != 0 => DeviceKind::Gpu,
        bits if bits & opencl_sys::CL_DEVICE_TYPE_CPU != 0 => DeviceKind::Cpu,
        bits if bits & opencl_sys::CL_DEVICE_TYPE_ACCELERATOR != 0 => DeviceKind::Accelerator,
        _ => DeviceKind::Other,
    }
}

/// The two numbers of a version string such as `OpenCL 2.1 AMD-APP`.
pub(crate) fn version_numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text
        .strip_prefix("OpenCL ")?
        .split_ascii_whitespace()
        .next()?
        .split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The version string of a platform.
pub(crate) fn platform_version(api: &Api, platform: Handle) -> Result<String> {
    platform_text(api, platform, opencl_sys::CL_PLATFORM_VERSION)
}

fn platform_text(api: &Api, platform: Handle, what: cl_platform_info) -> Result<String> {
    let get = slot!(api, clGetPlatformInfo)?;
    text("clGetPlatformInfo", what, |size, value, needed| {
        // SAFETY: `value` is null with `size` zero, or has room for `size` bytes; `needed` is a
        // valid place; the platform is one the library gave.
        unsafe { get(platform.0, what, size, value, needed) }
    })
}

/// Asks for the size of a string property and then for the string.
pub(crate) fn text(
    call: &str,
    what: u32,
    get: impl Fn(usize, *mut c_void, *mut usize) -> i32,
) -> Result<String> {
    let mut size = 0;
    let describe = || format!("{call}(0x{what:04X})");
    check(get(0, std::ptr::null_mut(), &raw mut size), describe)?;
    let mut bytes = vec![0u8; size];
    if size > 0 {
        check(
            get(size, bytes.as_mut_ptr().cast(), std::ptr::null_mut()),
            describe,
        )?;
    }
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).trim().to_owned())
}

struct Query<'a> {
    api: &'a Api,
    id: Handle,
}

impl Query<'_> {
    fn raw(
        &self,
        what: cl_device_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> Result<i32> {
        let get = slot!(self.api, clGetDeviceInfo)?;
        // SAFETY: the callers below give a place of `size` bytes or null with zero, and a valid
        // `needed` or null; the device is one that the library gave.
        Ok(unsafe { get(self.id.0, what, size, value, needed) })
    }

    fn text(&self, what: cl_device_info) -> Result<String> {
        slot!(self.api, clGetDeviceInfo)?;
        text("clGetDeviceInfo", what, |size, value, needed| {
            self.raw(what, size, value, needed)
                .unwrap_or(opencl_sys::CL_INVALID_VALUE)
        })
    }

    fn value<T: bytemuck::Pod>(&self, what: cl_device_info) -> Result<T> {
        let mut value = T::zeroed();
        let code = self.raw(
            what,
            size_of::<T>(),
            (&raw mut value).cast(),
            std::ptr::null_mut(),
        )?;
        check(code, || format!("clGetDeviceInfo(0x{what:04X})"))?;
        Ok(value)
    }

    fn pci(&self) -> Option<PciAddress> {
        if let Ok([domain, bus, device, function]) = self.value::<[u32; 4]>(PCI_BUS_INFO_KHR) {
            return Some(PciAddress {
                domain: Some(domain),
                bus,
                device,
                function,
            });
        }
        let topology = self.value::<[u8; 24]>(TOPOLOGY_AMD).ok()?;
        amd_address(&topology)
    }
}

/// Reads `cl_device_topology_amd`: a `cl_uint` type, 17 unused bytes, then bus, device, function.
fn amd_address(topology: &[u8; 24]) -> Option<PciAddress> {
    const PCIE: u32 = 1;
    let [a, b, c, d, .., bus, device, function] = *topology;
    (u32::from_ne_bytes([a, b, c, d]) == PCIE).then(|| PciAddress {
        domain: None,
        bus: bus.into(),
        device: device.into(),
        function: function.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_matches_only_as_a_whole_word() {
        let list = "cl_khr_fp64 cl_khr_external_memory_dma_buf cl_khr_icd";
        assert!(has_token(list, "cl_khr_fp64") && has_token(list, "cl_khr_icd"));
        assert!(!has_token(list, "cl_khr_external_memory"));
        assert!(!has_token(
            list,
            "cl_khr_fp64 cl_khr_external_memory_dma_buf"
        ));
        assert!(!has_token(list, ""));
    }

    #[test]
    fn version_strings_of_all_vendors_are_understood() {
        assert_eq!(version_numbers("OpenCL 2.1 AMD-APP (3614.0)"), Some((2, 1)));
        assert_eq!(version_numbers("OpenCL 3.0 CUDA 13.0"), Some((3, 0)));
        assert_eq!(version_numbers("OpenCL 1.2"), Some((1, 2)));
        assert_eq!(version_numbers("OpenGL 4.6"), None);
    }

    #[test]
    fn amds_topology_gives_an_address_without_a_domain() {
        let mut topology = [0u8; 24];
        topology[..4].copy_from_slice(&1u32.to_ne_bytes());
        topology[21..].copy_from_slice(&[0xC3, 2, 1]);
        let address = amd_address(&topology).unwrap();
        assert_eq!(
            (
                address.domain,
                address.bus,
                address.device,
                address.function
            ),
            (None, 0xC3, 2, 1)
        );
        topology[0] = 9;
        assert_eq!(amd_address(&topology), None);
    }
}
