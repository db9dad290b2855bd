//! What a device can share, and by what it is known elsewhere.

use std::ffi::c_void;

use super::SemaphoreKind;
use crate::device::Device;
use crate::external::{HandleKind, list};

const UUID_KHR: u32 = 0x106A;

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

    /// The identifier that other APIs know the device by; none without `cl_khr_device_uuid`, or if
    /// the driver gives sixteen zeros, as PoCL does.
    #[doc(alias = "CL_DEVICE_UUID_KHR")]
    #[must_use]
    pub fn uuid(&self) -> Option<[u8; 16]> {
        if !self.has_extension("cl_khr_device_uuid") {
            return None;
        }
        let bytes: [u8; 16] = self.list::<u8>(UUID_KHR).try_into().ok()?;
        (bytes != [0; 16]).then_some(bytes)
    }

    fn kinds<K>(&self, extension: &str, what: u32, kind: fn(u32) -> K) -> Vec<K> {
        if !self.has_extension(extension) {
            return Vec::new();
        }
        self.list::<u32>(what).into_iter().map(kind).collect()
    }

    /// A property that is a list of plain values; empty if the driver refuses the query.
    fn list<V: bytemuck::Pod>(&self, what: u32) -> Vec<V> {
        let Some(get) = self.api().clGetDeviceInfo else {
            return Vec::new();
        };
        let ask = |size: usize, place: *mut c_void, needed: *mut usize| {
            // SAFETY: the device is alive; `place` has room for `size` bytes or is null; `needed`
            // is a valid place or null.
            unsafe { get(self.raw(), what, size, place, needed) }
        };
        // SAFETY: any bytes are a valid `V`.
        unsafe { list("clGetDeviceInfo", what, ask) }.unwrap_or_default()
    }
}
