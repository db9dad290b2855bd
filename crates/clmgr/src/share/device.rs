//! What a device can share, and how other APIs identify it.

use super::SemaphoreKind;
use crate::device::Device;
use crate::external::HandleKind;

impl Device {
    /// The kinds of handle that memory can be imported by; none without `cl_khr_external_memory`.
    #[doc(alias = "CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR")]
    #[must_use]
    pub fn memory_import_kinds(&self) -> Vec<HandleKind> {
        let what = opencl_sys::CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR;
        self.kinds("cl_khr_external_memory", what, HandleKind)
    }

    /// The kinds of handle that a semaphore can be imported by; none without
    /// `cl_khr_external_semaphore`.
    #[doc(alias = "CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR")]
    #[must_use]
    pub fn semaphore_import_kinds(&self) -> Vec<SemaphoreKind> {
        let what = opencl_sys::CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR;
        self.kinds("cl_khr_external_semaphore", what, SemaphoreKind)
    }

    /// The kinds of handle that a semaphore can be exported by; none without
    /// `cl_khr_external_semaphore`.
    #[doc(alias = "CL_DEVICE_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR")]
    #[must_use]
    pub fn semaphore_export_kinds(&self) -> Vec<SemaphoreKind> {
        let what = opencl_sys::CL_DEVICE_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR;
        self.kinds("cl_khr_external_semaphore", what, SemaphoreKind)
    }

    /// The device's identifier in other APIs; none without `cl_khr_device_uuid`, or if
    /// the driver returns sixteen zeros, as PoCL does.
    #[doc(alias = "CL_DEVICE_UUID_KHR")]
    #[must_use]
    pub fn uuid(&self) -> Option<[u8; 16]> {
        self.identifier(opencl_sys::CL_DEVICE_UUID_KHR)
    }

    /// The identifier of the driver: what two APIs must agree in to share memory; none as for
    /// [`uuid`](Self::uuid).
    #[doc(alias = "CL_DRIVER_UUID_KHR")]
    #[must_use]
    pub fn driver_uuid(&self) -> Option<[u8; 16]> {
        self.identifier(opencl_sys::CL_DRIVER_UUID_KHR)
    }

    /// The device's identifier on Windows; none elsewhere.
    #[doc(alias = "CL_DEVICE_LUID_KHR")]
    #[must_use]
    pub fn luid(&self) -> Option<[u8; 8]> {
        let valid = self.has_extension("cl_khr_device_uuid")
            && self
                .ask()
                .value::<u32>(opencl_sys::CL_DEVICE_LUID_VALID_KHR)
                .is_ok_and(|valid| valid == opencl_sys::CL_TRUE);
        if !valid {
            return None;
        }
        self.ask().value(opencl_sys::CL_DEVICE_LUID_KHR).ok()
    }

    fn identifier(&self, what: u32) -> Option<[u8; 16]> {
        if !self.has_extension("cl_khr_device_uuid") {
            return None;
        }
        let bytes: [u8; 16] = self.ask().value(what).ok()?;
        (bytes != [0; 16]).then_some(bytes)
    }

    fn kinds<K>(&self, extension: &str, what: u32, kind: fn(u32) -> K) -> Vec<K> {
        if !self.has_extension(extension) {
            return Vec::new();
        }
        self.ask()
            .list::<u32>(what)
            .unwrap_or_default()
            .into_iter()
            .map(kind)
            .collect()
    }
}
