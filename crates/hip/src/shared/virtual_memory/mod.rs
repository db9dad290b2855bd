mod access;

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::{fmt, ptr};

pub use access::VirtualAccess;
use bytemuck::Pod;
use hip_sys::{
    hipMemAllocationGranularity_flags, hipMemAllocationHandleType, hipMemAllocationProp,
    hipMemGenericAllocationHandle_t,
};
use parking_lot::Mutex;

use crate::buffer::{Mapping, view};
use crate::call::call;
use crate::layout::not_null;
use crate::{Device, DeviceBuffer, Error, Result};

const FILE_DESCRIPTOR: hipMemAllocationHandleType = hipMemAllocationHandleType::hipMemHandleTypePosixFileDescriptor;

/// Device memory that other processes and APIs can map by a file descriptor.
///
/// It is mapped for its own device. [`DeviceBuffer::on_peer`] and [`access`](Self::access) let others reach it.
///
/// [`into_buffer`](Self::into_buffer) makes it a [`DeviceBuffer`]; export the descriptor before, or take an
/// [`exporter`](Self::exporter) along:
///
/// ```compile_fail,E0382
/// fn late(memory: hip::VirtualMemory) -> hip::Result<std::os::fd::OwnedFd> {
///     let buffer = memory.into_buffer::<f32>()?;
///     // SAFETY: the buffer is dropped.
///     unsafe { memory.export() }
/// }
/// ```
#[doc(alias("hipMemCreate", "hipMemMap"))]
pub struct VirtualMemory {
    core: Arc<Core>,
}

/// Exports [`VirtualMemory`] after it has become a buffer. It keeps the memory.
#[derive(Clone)]
pub struct Exporter {
    core: Arc<Core>,
}

/// The steps done so far, undone in reverse when dropped.
struct Core {
    device: Device,
    /// The requested size in bytes.
    bytes: usize,
    /// Whole granules, in bytes.
    mapped_bytes: usize,
    handle: hipMemGenericAllocationHandle_t,
    address: *mut c_void,
    mapped: bool,
    /// Ordinals of those that may use the mapping.
    devices: Mutex<Vec<usize>>,
}

// SAFETY: a handle and an address, neither of which belongs to a thread.
unsafe impl Send for Core {}
// SAFETY: as for `Send`.
unsafe impl Sync for Core {}

impl Device {
    /// New memory of at least `bytes` bytes, rounded up to the device's granularity, with unspecified contents.
    ///
    /// # Errors
    ///
    /// Out of memory, 0 bytes, or the device has no virtual memory management.
    pub fn virtual_memory(&self, bytes: usize) -> Result<VirtualMemory> {
        let (properties, granularity) = self.granularity()?;
        let rounded = bytes.checked_next_multiple_of(granularity).ok_or(Error::TooLarge {
            elements: bytes,
            element_bytes: 1,
        })?;
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle to the address given; the properties outlive the call.
        unsafe {
            call!(
                self.runtime(),
                hipMemCreate(&mut handle, rounded, &properties, 0),
                "hipMemCreate({rounded} bytes)"
            )?;
        }
        VirtualMemory::map(self, handle, bytes, rounded)
    }

    /// Memory that another process exported with [`VirtualMemory::export`]. The caller keeps the descriptor.
    ///
    /// # Safety
    ///
    /// The memory was made with `bytes` bytes by the same HIP release. While a buffer of it and work queued through
    /// that use the memory, nothing writes what they read, and nothing uses what they write.
    ///
    /// # Errors
    ///
    /// Not such a descriptor, or the device has no virtual memory management.
    #[doc(alias = "hipMemImportFromShareableHandle")]
    pub unsafe fn import_virtual_memory(&self, fd: BorrowedFd<'_>, bytes: usize) -> Result<VirtualMemory> {
        let (_, granularity) = self.granularity()?;
        let rounded = bytes.checked_next_multiple_of(granularity).ok_or(Error::TooLarge {
            elements: bytes,
            element_bytes: 1,
        })?;
        self.make_current()?;
        let mut number = fd.as_raw_fd();
        // HIP before 7.1 reads the descriptor from the address given; since then it takes the number itself, as CUDA
        // does (rocm-systems pull request 759).
        const BY_VALUE: i32 = 7 * 10_000_000 + 100_000;
        let os_handle = if self.runtime().versions()?.runtime >= BY_VALUE {
            ptr::without_provenance_mut(usize::try_from(number).unwrap_or(usize::MAX))
        } else {
            (&raw mut number).cast::<c_void>()
        };
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle to the address given; the descriptor is open and given in the form of this release.
        unsafe {
            call!(
                self.runtime(),
                hipMemImportFromShareableHandle(&mut handle, os_handle, FILE_DESCRIPTOR),
                "hipMemImportFromShareableHandle(fd {number})"
            )?;
        }
        VirtualMemory::map(self, handle, bytes, rounded)
    }

    fn granularity(&self) -> Result<(hipMemAllocationProp, usize)> {
        let mut properties = hipMemAllocationProp {
            type_: hip_sys::hipMemAllocationType::hipMemAllocationTypePinned,
            __bindgen_anon_1: hip_sys::hipMemAllocationProp__bindgen_ty_1 {
                requestedHandleType: FILE_DESCRIPTOR,
            },
            ..hipMemAllocationProp::default()
        };
        properties.location.type_ = hip_sys::hipMemLocationType::hipMemLocationTypeDevice;
        properties.location.id = self.index();
        let option = hipMemAllocationGranularity_flags::hipMemAllocationGranularityRecommended;
        let mut granularity = 0;
        // SAFETY: writes one size to the address given; the properties outlive the call.
        unsafe {
            call!(
                self.runtime(),
                hipMemGetAllocationGranularity(&mut granularity, &properties, option),
                "hipMemGetAllocationGranularity(device {})",
                self.ordinal()
            )?;
        }
        if granularity == 0 {
            return Err(Error::Answer {
                call: "hipMemGetAllocationGranularity",
                answer: "0".to_owned(),
                expected: "a size",
            });
        }
        Ok((properties, granularity))
    }
}

impl VirtualMemory {
    /// Takes the handle over.
    fn map(
        device: &Device,
        handle: hipMemGenericAllocationHandle_t,
        bytes: usize,
        mapped_bytes: usize,
    ) -> Result<Self> {
        let mut core = Core {
            device: device.clone(),
            bytes,
            mapped_bytes,
            handle,
            address: ptr::null_mut(),
            mapped: false,
            devices: Mutex::default(),
        };
        let runtime = device.runtime();
        let mut address = ptr::null_mut();
        // SAFETY: writes one pointer to the address given.
        unsafe {
            call!(
                runtime,
                hipMemAddressReserve(&mut address, mapped_bytes, 0, ptr::null_mut(), 0),
                "hipMemAddressReserve({mapped_bytes} bytes)"
            )?;
        }
        core.address = not_null::<c_void>(address, "hipMemAddressReserve")?.as_ptr();
        // SAFETY: the range was just reserved, and the memory has this size.
        unsafe {
            call!(
                runtime,
                hipMemMap(address, mapped_bytes, 0, handle, 0),
                "hipMemMap({address:?}, {mapped_bytes} bytes)"
            )?;
        }
        core.mapped = true;
        core.open_to(device)?;
        Ok(Self { core: Arc::new(core) })
    }

    /// The device that has the memory.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.core.device
    }

    /// The requested size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.core.bytes
    }

    /// A new descriptor for this memory, to be sent to another process or imported by another API. It keeps the memory.
    ///
    /// # Errors
    ///
    /// HIP could not export it.
    ///
    /// # Safety
    ///
    /// While a slice of the memory, or work that received one, uses it, nothing writes it through the descriptor; while
    /// it is written so, nothing uses it otherwise. (Where the descriptor is a file, as on the host platform, safe code
    /// can read and write it.)
    #[doc(alias = "hipMemExportToShareableHandle")]
    pub unsafe fn export(&self) -> Result<OwnedFd> {
        self.core.export()
    }

    /// A value that exports the memory later, when it is a buffer.
    #[must_use]
    pub fn exporter(&self) -> Exporter {
        Exporter {
            core: self.core.clone(),
        }
    }

    /// A value that lets other devices reach the memory later, when it is a buffer.
    #[must_use]
    pub fn access(&self) -> VirtualAccess {
        VirtualAccess::new(self.core.clone())
    }

    /// All of the memory as elements; bytes that make no whole element are left over.
    ///
    /// # Errors
    ///
    /// A type of greater alignment than the device's granularity.
    pub fn into_buffer<T: Pod>(self) -> Result<DeviceBuffer<T>> {
        let Self { core } = self;
        let (device, bytes) = (core.device.clone(), core.bytes);
        let base = not_null(core.address, "hipMemAddressReserve")?;
        let len = bytes.checked_div(size_of::<T>()).unwrap_or(0);
        // SAFETY: mapped for as many bytes until the owner goes. New memory is used through this one buffer; for
        // imported memory the importer vouched.
        unsafe { view(&device, base, bytes, 0, len, core) }
    }
}

impl Exporter {
    /// As [`VirtualMemory::export`].
    ///
    /// # Errors
    ///
    /// HIP could not export it.
    ///
    /// # Safety
    ///
    /// As [`VirtualMemory::export`].
    pub unsafe fn export(&self) -> Result<OwnedFd> {
        self.core.export()
    }
}

impl Core {
    fn export(&self) -> Result<OwnedFd> {
        let mut fd = -1_i32;
        // SAFETY: writes one descriptor to the address given; the handle is alive and was made for this.
        unsafe {
            call!(
                self.device.runtime(),
                hipMemExportToShareableHandle((&raw mut fd).cast::<c_void>(), self.handle, FILE_DESCRIPTOR, 0),
                "hipMemExportToShareableHandle()"
            )?;
        }
        if fd < 0 {
            return Err(Error::Answer {
                call: "hipMemExportToShareableHandle",
                answer: fd.to_string(),
                expected: "a file descriptor",
            });
        }
        // SAFETY: a new descriptor that is ours.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl Mapping for Core {
    fn let_in(&self, peer: &Device) -> Result<()> {
        self.open_to(peer)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let (runtime, address, bytes) = (self.device.runtime(), self.address, self.mapped_bytes);
        let mut unmapped = Ok(());
        if self.mapped {
            // SAFETY: mapped as a whole and unmapped once; buffers are owners, and they wait for the device.
            unmapped = unsafe {
                call!(
                    runtime,
                    hipMemUnmap(address, bytes),
                    "hipMemUnmap({address:?}, {bytes} bytes)"
                )
            };
        }
        let mut freed = Ok(());
        // Addresses that still show memory are not given to anybody else.
        if unmapped.is_ok() && !address.is_null() {
            // SAFETY: reserved as a whole and freed once, with nothing mapped there.
            freed = unsafe {
                call!(
                    runtime,
                    hipMemAddressFree(address, bytes),
                    "hipMemAddressFree({address:?}, {bytes} bytes)"
                )
            };
        }
        // SAFETY: the handle is alive, and this is its last use.
        let released = unsafe { call!(runtime, hipMemRelease(self.handle), "hipMemRelease()") };
        let outcomes = [unmapped, freed, released];
        for error in outcomes.into_iter().filter_map(Result::err) {
            runtime.defer(error);
        }
    }
}

impl fmt::Debug for VirtualMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualMemory")
            .field("device", &self.core.device.ordinal())
            .field("bytes", &self.core.bytes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter")
            .field("bytes", &self.core.bytes)
            .finish_non_exhaustive()
    }
}
