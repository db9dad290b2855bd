//! Devices: how many, what they say of themselves, and which one a thread works with.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use hip_sys::{
    hipDevice_t, hipDeviceAttribute_t as Attribute, hipDeviceProp_tR0600, hipError_t, hipUUID,
};
use parking_lot::Mutex;

use crate::error::{Result, entry, store};
use crate::log;
use crate::stream::{self, Stream};

/// Threads of a block: gfx9's limit.
pub(crate) const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Lanes of a wavefront on gfx9.
pub(crate) const WARP: u32 = 64;
/// Local memory of a block in bytes: gfx9's 64 KiB.
pub(crate) const MAX_SHARED_BYTES: u32 = 64 * 1024;
pub(crate) const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65536, 65536];

/// A PCI domain no firmware hands out, so that the model is never taken for a real card.
pub(crate) const PCI_DOMAIN: u16 = 0x7fff;

/// One software device.
pub(crate) struct Device {
    pub(crate) ordinal: usize,
    pub(crate) total_bytes: usize,
    pub(crate) used_bytes: AtomicUsize,
    pub(crate) streams: Streams,
}

/// The streams of a device, its default stream apart because it is made when first used.
#[derive(Default)]
pub(crate) struct Streams {
    null: OnceLock<Arc<Stream>>,
    all: Mutex<Vec<Weak<Stream>>>,
}

impl Streams {
    pub(crate) fn add(&self, stream: &Arc<Stream>) {
        let mut all = self.all.lock();
        all.retain(|stream| stream.strong_count() > 0);
        all.push(Arc::downgrade(stream));
    }

    pub(crate) fn null(&self, create: impl FnOnce() -> Arc<Stream>) -> Arc<Stream> {
        self.null.get_or_init(create).clone()
    }

    pub(crate) fn existing_null(&self) -> Option<Arc<Stream>> {
        self.null.get().cloned()
    }

    /// Every stream that exists or still works, the default stream included.
    pub(crate) fn living(&self) -> Vec<Arc<Stream>> {
        self.all.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl Device {
    fn new(ordinal: usize, total_bytes: usize) -> Self {
        Self {
            ordinal,
            total_bytes,
            used_bytes: AtomicUsize::new(0),
            streams: Streams::default(),
        }
    }

    pub(crate) fn name(&self) -> String {
        format!(
            "hipcl host device ({}, {} threads)",
            cpu_model(),
            crate::launch::pool::width()
        )
    }

    /// The sixteen characters that name the device; as on ROCm they are the hexadecimal digits themselves, and HSA's
    /// name for the same device is "GPU-" followed by them (hipamd/src/hip_device.cpp, `hipDeviceGetUuid`).
    pub(crate) fn uuid(&self) -> [u8; 16] {
        let mut text = [b'0'; 16];
        text.copy_from_slice(format!("686f7374{:08x}", self.ordinal).as_bytes());
        text
    }

    fn pci_address(&self) -> String {
        format!("{PCI_DOMAIN:04x}:{:02x}:00.0", self.ordinal)
    }

    pub(crate) fn free_bytes(&self) -> usize {
        self.total_bytes
            .saturating_sub(self.used_bytes.load(Ordering::Relaxed))
    }

    fn attribute(&self, attribute: Attribute) -> Option<c_int> {
        let capped = |bytes: usize| c_int::try_from(bytes).unwrap_or(c_int::MAX);
        Some(match attribute {
            Attribute::hipDeviceAttributeMaxThreadsPerBlock
            | Attribute::hipDeviceAttributeMaxBlockDimX
            | Attribute::hipDeviceAttributeMaxBlockDimY
            | Attribute::hipDeviceAttributeMaxBlockDimZ
            | Attribute::hipDeviceAttributeMaxThreadsDim => MAX_THREADS_PER_BLOCK as c_int,
            Attribute::hipDeviceAttributeMaxGridDimX => MAX_GRID[0] as c_int,
            Attribute::hipDeviceAttributeMaxGridDimY => MAX_GRID[1] as c_int,
            Attribute::hipDeviceAttributeMaxGridDimZ => MAX_GRID[2] as c_int,
            Attribute::hipDeviceAttributeMaxSharedMemoryPerBlock
            | Attribute::hipDeviceAttributeSharedMemPerBlockOptin
            | Attribute::hipDeviceAttributeSharedMemPerMultiprocessor
            | Attribute::hipDeviceAttributeMaxSharedMemoryPerMultiprocessor => {
                MAX_SHARED_BYTES as c_int
            }
            Attribute::hipDeviceAttributeWarpSize => WARP as c_int,
            Attribute::hipDeviceAttributeMultiprocessorCount
            | Attribute::hipDeviceAttributePhysicalMultiProcessorCount => {
                capped(crate::launch::pool::width())
            }
            Attribute::hipDeviceAttributeMaxThreadsPerMultiProcessor => 2048,
            Attribute::hipDeviceAttributeMaxBlocksPerMultiProcessor => 2,
            Attribute::hipDeviceAttributeMaxRegistersPerBlock
            | Attribute::hipDeviceAttributeMaxRegistersPerMultiprocessor => 65536,
            Attribute::hipDeviceAttributeTotalConstantMemory => 64 * 1024,
            Attribute::hipDeviceAttributeTotalGlobalMem => capped(self.total_bytes),
            Attribute::hipDeviceAttributeMaxPitch => c_int::MAX,
            Attribute::hipDeviceAttributeComputeCapabilityMajor => CAPABILITY.0,
            Attribute::hipDeviceAttributeComputeCapabilityMinor => CAPABILITY.1,
            Attribute::hipDeviceAttributePciDomainID => c_int::from(PCI_DOMAIN),
            Attribute::hipDeviceAttributePciBusId => self.ordinal as c_int,
            Attribute::hipDeviceAttributeCanMapHostMemory
            | Attribute::hipDeviceAttributeHostRegisterSupported
            | Attribute::hipDeviceAttributeUnifiedAddressing
            | Attribute::hipDeviceAttributeManagedMemory
            | Attribute::hipDeviceAttributeConcurrentKernels
            | Attribute::hipDeviceAttributeStreamPrioritiesSupported => 1,
            // What a discrete card without XNACK and large BAR answers, or what the model does not offer.
            Attribute::hipDeviceAttributePciDeviceId
            | Attribute::hipDeviceAttributeIntegrated
            | Attribute::hipDeviceAttributeIsLargeBar
            | Attribute::hipDeviceAttributePageableMemoryAccess
            | Attribute::hipDeviceAttributePageableMemoryAccessUsesHostPageTables
            | Attribute::hipDeviceAttributeConcurrentManagedAccess
            | Attribute::hipDeviceAttributeDirectManagedMemAccessFromHost
            | Attribute::hipDeviceAttributeCanUseHostPointerForRegisteredMem
            | Attribute::hipDeviceAttributeHostNativeAtomicSupported
            | Attribute::hipDeviceAttributeCooperativeLaunch
            | Attribute::hipDeviceAttributeCooperativeMultiDeviceLaunch
            | Attribute::hipDeviceAttributeMemoryPoolsSupported
            | Attribute::hipDeviceAttributeMemoryPoolSupportedHandleTypes
            | Attribute::hipDeviceAttributeVirtualMemoryManagementSupported
            | Attribute::hipDeviceAttributeCanUseStreamWaitValue
            | Attribute::hipDeviceAttributeImageSupport
            | Attribute::hipDeviceAttributeAsyncEngineCount
            | Attribute::hipDeviceAttributeDeviceOverlap
            | Attribute::hipDeviceAttributeEccEnabled
            | Attribute::hipDeviceAttributeComputeMode
            | Attribute::hipDeviceAttributeKernelExecTimeout
            | Attribute::hipDeviceAttributeClockRate
            | Attribute::hipDeviceAttributeMemoryClockRate
            | Attribute::hipDeviceAttributeMemoryBusWidth
            | Attribute::hipDeviceAttributeL2CacheSize
            | Attribute::hipDeviceAttributeIsMultiGpuBoard
            | Attribute::hipDeviceAttributeTccDriver
            | Attribute::hipDeviceAttributeAsicRevision => 0,
            Attribute::hipDeviceAttributeFineGrainSupport => 1,
            _ => return None,
        })
    }

    fn properties(&self) -> hipDeviceProp_tR0600 {
        let mut p = hipDeviceProp_tR0600::default();
        put_text(&mut p.name, &self.name());
        // The model is none of AMD's chips, and code that reads a chip's name from here must be able to tell.
        put_text(&mut p.gcnArchName, ARCHITECTURE);
        p.uuid.bytes = self.uuid().map(|byte| byte as c_char);
        p.totalGlobalMem = self.total_bytes;
        p.sharedMemPerBlock = MAX_SHARED_BYTES as usize;
        p.sharedMemPerMultiprocessor = MAX_SHARED_BYTES as usize;
        p.sharedMemPerBlockOptin = MAX_SHARED_BYTES as usize;
        p.maxSharedMemoryPerMultiProcessor = MAX_SHARED_BYTES as usize;
        p.regsPerBlock = 65536;
        p.regsPerMultiprocessor = 65536;
        p.warpSize = WARP as c_int;
        p.memPitch = c_int::MAX as usize;
        p.maxThreadsPerBlock = MAX_THREADS_PER_BLOCK as c_int;
        p.maxThreadsDim = [MAX_THREADS_PER_BLOCK as c_int; 3];
        p.maxGridSize = MAX_GRID.map(|limit| limit as c_int);
        p.totalConstMem = 64 * 1024;
        (p.major, p.minor) = CAPABILITY;
        p.multiProcessorCount = c_int::try_from(crate::launch::pool::width()).unwrap_or(c_int::MAX);
        p.maxThreadsPerMultiProcessor = 2048;
        p.maxBlocksPerMultiProcessor = 2;
        p.canMapHostMemory = 1;
        p.hostRegisterSupported = 1;
        p.unifiedAddressing = 1;
        p.managedMemory = 1;
        p.concurrentKernels = 1;
        p.streamPrioritiesSupported = 1;
        p.pciDomainID = c_int::from(PCI_DOMAIN);
        p.pciBusID = self.ordinal as c_int;
        p
    }
}

/// gfx9's compute capability as HIP reports it.
const CAPABILITY: (c_int, c_int) = (9, 0);

/// What stands where a gfx name would.
pub(crate) const ARCHITECTURE: &str = "host";

fn cpu_model() -> &'static str {
    static MODEL: OnceLock<String> = OnceLock::new();
    MODEL.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = info.lines().find(|line| line.starts_with("model name"));
        let model = line
            .and_then(|line| line.split_once(':'))
            .map(|(_, model)| model.trim());
        model
            .filter(|model| !model.is_empty())
            .unwrap_or(std::env::consts::ARCH)
            .to_owned()
    })
}

fn physical_bytes() -> usize {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| {
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<usize>()
            .ok()
    });
    kib.map_or(4 << 30, |kib| kib * 1024)
}

/// All devices: `HIP_HOST_DEVICES` of them, one if unset. They share the machine's memory in equal parts.
pub(crate) fn all() -> &'static [Device] {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let count = match std::env::var("HIP_HOST_DEVICES") {
            Err(_) => 1,
            Ok(text) => match text.trim().parse::<usize>() {
                Ok(count) if count <= 64 => count,
                _ => {
                    log::warn(&format!(
                        "HIP_HOST_DEVICES=`{text}` is not a number from 0 to 64: using one device"
                    ));
                    1
                }
            },
        };
        let each = physical_bytes() / count.max(1);
        (0..count)
            .map(|ordinal| Device::new(ordinal, each))
            .collect()
    })
}

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The calling thread's device.
pub(crate) fn current() -> Result<&'static Device> {
    all().get(CURRENT.get()).ok_or(hipError_t::hipErrorNoDevice)
}

pub(crate) fn by_ordinal(ordinal: c_int) -> Result<&'static Device> {
    if all().is_empty() {
        return Err(hipError_t::hipErrorNoDevice);
    }
    usize::try_from(ordinal)
        .ok()
        .and_then(|ordinal| all().get(ordinal))
        .ok_or(hipError_t::hipErrorInvalidDevice)
}

fn put_text(field: &mut [c_char], text: &str) {
    let room = field.len() - 1;
    for (slot, byte) in field.iter_mut().zip(text.bytes().take(room)) {
        *slot = byte as c_char;
    }
}

/// Writes `text` and its terminator, cut to `len` bytes.
///
/// # Safety
/// `out` is valid for writing `len` bytes, `len > 0`.
unsafe fn write_text(out: *mut c_char, len: usize, text: &str) {
    let n = text.len().min(len - 1);
    // SAFETY: `n + 1 <= len` bytes are written, which the caller vouches for; the source is a live string.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, n);
        out.add(n).write(0);
    }
}

pub(crate) unsafe extern "C" fn init(flags: c_uint) -> hipError_t {
    entry("hipInit", || {
        if flags != 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        current().map(|_| ())
    })
}

fn version(call: &'static str, out: *mut c_int) -> hipError_t {
    // SAFETY: null is refused by `store`; otherwise the C caller promises room for an int.
    entry(call, || unsafe {
        store(out, hip_sys::HIP_VERSION as c_int)
    })
}

pub(crate) unsafe extern "C" fn runtime_get_version(out: *mut c_int) -> hipError_t {
    version("hipRuntimeGetVersion", out)
}

pub(crate) unsafe extern "C" fn driver_get_version(out: *mut c_int) -> hipError_t {
    version("hipDriverGetVersion", out)
}

pub(crate) unsafe extern "C" fn get_device_count(out: *mut c_int) -> hipError_t {
    entry("hipGetDeviceCount", || {
        // SAFETY: as in `version`.
        unsafe { store(out, all().len() as c_int) }?;
        if all().is_empty() {
            Err(hipError_t::hipErrorNoDevice)
        } else {
            Ok(())
        }
    })
}

pub(crate) unsafe extern "C" fn set_device(ordinal: c_int) -> hipError_t {
    entry("hipSetDevice", || {
        CURRENT.set(by_ordinal(ordinal)?.ordinal);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn get_device(out: *mut c_int) -> hipError_t {
    // SAFETY: as in `version`.
    entry("hipGetDevice", || unsafe {
        store(out, current()?.ordinal as c_int)
    })
}

pub(crate) unsafe extern "C" fn device_get(out: *mut hipDevice_t, ordinal: c_int) -> hipError_t {
    // SAFETY: as in `version`.
    entry("hipDeviceGet", || unsafe {
        store(out, by_ordinal(ordinal)?.ordinal as hipDevice_t)
    })
}

pub(crate) unsafe extern "C" fn device_get_name(
    out: *mut c_char,
    len: c_int,
    device: hipDevice_t,
) -> hipError_t {
    entry("hipDeviceGetName", || {
        let device = by_ordinal(device)?;
        if out.is_null() || len <= 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null, and the C caller promises `len` bytes.
        unsafe { write_text(out, len as usize, &device.name()) };
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn device_get_pci_bus_id(
    out: *mut c_char,
    len: c_int,
    device: c_int,
) -> hipError_t {
    entry("hipDeviceGetPCIBusId", || {
        let device = by_ordinal(device)?;
        let address = device.pci_address();
        // A cut address would name another device, so too little room is an error.
        if out.is_null() || len <= 0 || (len as usize) <= address.len() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null, and the C caller promises `len` bytes.
        unsafe { write_text(out, len as usize, &address) };
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn device_get_by_pci_bus_id(
    out: *mut c_int,
    address: *const c_char,
) -> hipError_t {
    entry("hipDeviceGetByPCIBusId", || {
        if out.is_null() || address.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises a terminated string.
        let address = unsafe { CStr::from_ptr(address) }
            .to_string_lossy()
            .to_ascii_lowercase();
        let found = all().iter().find(|device| device.pci_address() == address);
        // SAFETY: not null; room for an int by the C caller's promise.
        unsafe {
            store(
                out,
                found.ok_or(hipError_t::hipErrorInvalidValue)?.ordinal as c_int,
            )
        }
    })
}

pub(crate) unsafe extern "C" fn device_get_uuid(
    out: *mut hipUUID,
    device: hipDevice_t,
) -> hipError_t {
    entry("hipDeviceGetUuid", || {
        let uuid = hipUUID {
            bytes: by_ordinal(device)?.uuid().map(|byte| byte as c_char),
        };
        // SAFETY: null is refused by `store`; otherwise the C caller promises room for a UUID.
        unsafe { store(out, uuid) }
    })
}

pub(crate) unsafe extern "C" fn device_total_mem(
    out: *mut usize,
    device: hipDevice_t,
) -> hipError_t {
    // SAFETY: null is refused by `store`; otherwise the C caller promises room for a size.
    entry("hipDeviceTotalMem", || unsafe {
        store(out, by_ordinal(device)?.total_bytes)
    })
}

pub(crate) unsafe extern "C" fn device_compute_capability(
    major: *mut c_int,
    minor: *mut c_int,
    device: hipDevice_t,
) -> hipError_t {
    entry("hipDeviceComputeCapability", || {
        by_ordinal(device)?;
        if major.is_null() || minor.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: neither is null; the C caller promises room for an int at each.
        unsafe {
            store(major, CAPABILITY.0)?;
            store(minor, CAPABILITY.1)
        }
    })
}

pub(crate) unsafe extern "C" fn device_get_attribute(
    out: *mut c_int,
    attribute: Attribute,
    device: c_int,
) -> hipError_t {
    entry("hipDeviceGetAttribute", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let value = by_ordinal(device)?
            .attribute(attribute)
            .ok_or(hipError_t::hipErrorInvalidValue)?;
        // SAFETY: not null; the C caller promises room for an int.
        unsafe { store(out, value) }
    })
}

pub(crate) unsafe extern "C" fn get_device_properties(
    out: *mut hipDeviceProp_tR0600,
    device: c_int,
) -> hipError_t {
    entry("hipGetDevicePropertiesR0600", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises room for the structure.
        unsafe { store(out, by_ordinal(device)?.properties()) }
    })
}

pub(crate) unsafe extern "C" fn device_synchronize() -> hipError_t {
    entry("hipDeviceSynchronize", || {
        stream::synchronize_device(current()?)
    })
}

pub(crate) unsafe extern "C" fn mem_get_info(free: *mut usize, total: *mut usize) -> hipError_t {
    entry("hipMemGetInfo", || {
        let device = current()?;
        if free.is_null() && total.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: each pointer is null and skipped, or room for a size by the C caller's promise.
        unsafe {
            if !free.is_null() {
                store(free, device.free_bytes())?;
            }
            if !total.is_null() {
                store(total, device.total_bytes)?;
            }
        }
        Ok(())
    })
}
