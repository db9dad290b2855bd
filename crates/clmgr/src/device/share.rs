//! What a device can share, and how other APIs identify it.

use std::fmt;

use super::Device;

/// The kind of handle that memory was imported by, e.g. a file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandleKind(pub u32);

impl HandleKind {
    /// `CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR`.
    pub const OPAQUE_FD: Self = Self(opencl_sys::CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR);
    /// `CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR`.
    pub const DMA_BUF: Self = Self(opencl_sys::CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR);
}

impl fmt::Display for HandleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OPAQUE_FD => f.write_str("opaque-fd"),
            Self::DMA_BUF => f.write_str("dma-buf"),
            Self(other) => write!(f, "0x{other:04X}"),
        }
    }
}

/// The kind of descriptor that carries a semaphore across APIs or processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SemaphoreKind(pub u32);

impl SemaphoreKind {
    /// `CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR`.
    pub const OPAQUE_FD: Self = Self(opencl_sys::CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR);
    /// `CL_SEMAPHORE_HANDLE_SYNC_FD_KHR`.
    pub const SYNC_FD: Self = Self(opencl_sys::CL_SEMAPHORE_HANDLE_SYNC_FD_KHR);

    /// The extension that a device needs for it; none for a kind that this crate does not know.
    pub(crate) fn extension(self) -> Option<&'static str> {
        match self {
            Self::OPAQUE_FD => Some("cl_khr_external_semaphore_opaque_fd"),
            Self::SYNC_FD => Some("cl_khr_external_semaphore_sync_fd"),
            _ => None,
        }
    }
}

impl fmt::Display for SemaphoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OPAQUE_FD => f.write_str("opaque-fd"),
            Self::SYNC_FD => f.write_str("sync-fd"),
            Self(other) => write!(f, "0x{other:04X}"),
        }
    }
}

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

    /// The driver's identifier. Two APIs can share memory only if theirs are equal. `None` as for [`uuid`](Self::uuid).
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
