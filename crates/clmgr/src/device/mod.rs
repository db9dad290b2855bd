//! What a device is and can do.
//!
//! | file | what it holds |
//! |---|---|
//! | this one | [`Device`]: a handle with its often-used properties |
//! | `info.rs`, `show.rs` | [`DeviceInfo`]: everything else that it reports, and its text |
//! | `kind.rs`, `svm.rs`, `float.rs`, `pci.rs` | the types of the answers |
//! | `share.rs` | what it can share by file descriptor, and its identifiers in other APIs |
//! | `query.rs` | the calls |

mod float;
mod info;
mod kind;
mod pci;
mod query;
mod share;
mod show;
mod svm;

use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::Arc;

pub use float::FloatSupport;
pub use info::{DeviceInfo, SubGroups};
pub use kind::DeviceKind;
use opencl_sys::{cl_device_id, cl_ulong};
use parking_lot::Mutex;
pub use pci::PciAddress;
pub(crate) use query::Query;
pub use share::{HandleKind, SemaphoreKind};
pub use svm::SvmCapabilities;

use crate::api::Api;
use crate::error::Result;
use crate::handle::Handle;
use crate::loader::Library;
use crate::platform;

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
    foreign_buffers: Mutex<Option<Verdict>>,
}

/// Whether something works on the device, or why not.
pub(crate) type Verdict = std::result::Result<(), String>;

impl Device {
    /// Reads what is known about the device `id` of `platform`.
    pub(crate) fn query(library: Arc<Library>, api: Api, platform: Handle, id: Handle) -> Result<Self> {
        let ask = Query { api: &api, id };
        let inner = Inner {
            name: ask.text(opencl_sys::CL_DEVICE_NAME)?,
            vendor: ask.text(opencl_sys::CL_DEVICE_VENDOR)?,
            version: ask.text(opencl_sys::CL_DEVICE_VERSION)?,
            driver_version: ask.text(opencl_sys::CL_DRIVER_VERSION)?,
            extensions: ask.text(opencl_sys::CL_DEVICE_EXTENSIONS)?,
            platform_name: platform::text(&api, platform, opencl_sys::CL_PLATFORM_NAME)?,
            platform_version: platform::version(&api, platform)?,
            kind: DeviceKind::of(ask.value::<u64>(opencl_sys::CL_DEVICE_TYPE)?),
            // A device before OpenCL 2.0 refuses the query: it has no shared virtual memory.
            svm: ask
                .value::<u64>(opencl_sys::CL_DEVICE_SVM_CAPABILITIES)
                .map_or(SvmCapabilities::empty(), SvmCapabilities::from_bits_truncate),
            pci: PciAddress::ask(&ask),
            max_alloc_bytes: ask.value::<cl_ulong>(opencl_sys::CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
            global_bytes: ask.value::<cl_ulong>(opencl_sys::CL_DEVICE_GLOBAL_MEM_SIZE)?,
            local_bytes: ask.value::<cl_ulong>(opencl_sys::CL_DEVICE_LOCAL_MEM_SIZE)?,
            compute_units: ask.value::<u32>(opencl_sys::CL_DEVICE_MAX_COMPUTE_UNITS)?,
            max_work_group: ask.value::<usize>(opencl_sys::CL_DEVICE_MAX_WORK_GROUP_SIZE)?,
            // The query's unit is bits.
            base_align_bytes: (ask.value::<u32>(opencl_sys::CL_DEVICE_MEM_BASE_ADDR_ALIGN)? as usize / 8).max(1),
            foreign_buffers: Mutex::new(None),
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

    /// The device's place on the PCI bus, where it reports one: by `cl_khr_pci_bus_info`, else by
    /// AMD's query.
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

    /// Everything that the device reports about itself, queried anew.
    ///
    /// # Errors
    ///
    /// An error from `clGetDeviceInfo` for a query that every device must answer.
    #[doc(alias = "clGetDeviceInfo")]
    pub fn info(&self) -> Result<DeviceInfo> {
        DeviceInfo::ask(self)
    }

    /// The queries that this module has no getter for.
    pub(crate) fn ask(&self) -> Query<'_> {
        Query {
            api: &self.0.api,
            id: self.0.id,
        }
    }

    /// Whether kernels take buffers of another context, once [`crate::BufferBridge`] has tried.
    pub(crate) fn foreign_buffers(&self) -> &Mutex<Option<Verdict>> {
        &self.0.foreign_buffers
    }

    /// The library that the device came from.
    #[must_use]
    pub fn library_path(&self) -> &std::path::Path {
        &self.0.library.path
    }

    /// Whether both came from one library, so handles of one are valid for the other.
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
    /// such function. A loader does not export these, so the platform is queried.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_matches_only_as_a_whole_word() {
        let list = "cl_khr_fp64 cl_khr_external_memory_dma_buf cl_khr_icd";
        assert!(has_token(list, "cl_khr_fp64") && has_token(list, "cl_khr_icd"));
        assert!(!has_token(list, "cl_khr_external_memory"));
        assert!(!has_token(list, "cl_khr_fp64 cl_khr_external_memory_dma_buf"));
        assert!(!has_token(list, ""));
    }
}
