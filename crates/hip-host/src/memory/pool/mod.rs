//! Memory pools: allocation and release in stream order.
//!
//! A pool here only keeps accounts: freed memory goes back when the stream reaches the release, so that nothing stays
//! reserved behind it, and trimming has nothing to do. An allocation that does not fit waits for the releases that are
//! queued.

mod settings;
mod share;

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use hip_sys::{
    hipError_t, hipMemAccessDesc, hipMemAccessFlags, hipMemAllocNodeParams, hipMemAllocationHandleType,
    hipMemAllocationType, hipMemLocation, hipMemLocationType, hipMemPool_t, hipMemPoolProps, hipStream_t,
};
use parking_lot::Mutex;
pub(crate) use settings::*;
pub(crate) use share::*;

use super::allocate_on;
use super::registry::{self, Allocation, Keeps, Kind};
use crate::device::{self, Device};
use crate::error::{Result, entry, store};
use crate::graph::{self, GraphMemory, Operation, capture};
use crate::handles::Handles;
use crate::log;
use crate::stream::{self, Stream};

static POOLS: Handles<Pool> = Handles::new();

/// A pool; its memory keeps it alive.
pub(crate) struct Pool {
    device: &'static Device,
    used: Account,
    reserved: Account,
    /// The handle type by which the pool may go to other processes.
    handle: hipMemAllocationHandleType,
    /// Another process's pool, of which this process may only open memory.
    is_imported: bool,
    settings: Mutex<Settings>,
}

struct Settings {
    /// The three ways of reuse, in the order of their attributes.
    reuse: [c_int; 3],
    release_threshold: u64,
    /// By device, where it was set.
    access: HashMap<usize, hipMemAccessFlags>,
}

/// Bytes now, and the most since the program last set it.
#[derive(Default)]
struct Account {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Account {
    fn add(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Ordering::AcqRel) + bytes;
        self.most.fetch_max(now, Ordering::AcqRel);
    }

    fn subtract(&self, bytes: usize) {
        self.now.fetch_sub(bytes, Ordering::AcqRel);
    }

    fn forget_the_most(&self) {
        self.most.store(self.now.load(Ordering::Acquire), Ordering::Release);
    }
}

/// One allocation's share of its pool.
struct Share {
    pool: Arc<Pool>,
    bytes: usize,
    is_used: AtomicBool,
}

impl Share {
    fn new(pool: &Arc<Pool>, bytes: usize) -> Self {
        pool.used.add(bytes);
        pool.reserved.add(bytes);
        Self {
            pool: pool.clone(),
            bytes,
            is_used: AtomicBool::new(true),
        }
    }

    /// ROCm and CUDA take memory off the account of what is used when its release is queued, not when the stream gets
    /// there.
    fn is_released(&self) {
        if self.is_used.swap(false, Ordering::AcqRel) {
            self.pool.used.subtract(self.bytes);
        }
    }
}

/// Whether the memory comes from a pool that the device has access to.
pub(crate) fn grants(allocation: &Allocation, device: &Device) -> bool {
    let share = allocation.kept::<Share>();
    let access = share.and_then(|share| share.pool.settings.lock().access.get(&device.ordinal).copied());
    access.is_some_and(|flags| flags != hipMemAccessFlags::hipMemAccessFlagsProtNone)
}

impl Drop for Share {
    fn drop(&mut self) {
        self.is_released();
        self.pool.reserved.subtract(self.bytes);
    }
}

impl Pool {
    fn new(device: &'static Device, handle: hipMemAllocationHandleType, is_imported: bool) -> Arc<Self> {
        Arc::new(Self {
            device,
            handle,
            is_imported,
            used: Account::default(),
            reserved: Account::default(),
            settings: Mutex::new(Settings {
                reuse: [1; 3],
                release_threshold: 0,
                access: HashMap::new(),
            }),
        })
    }

    pub(crate) fn allocate(self: &Arc<Self>, call: &'static str, out: *mut *mut c_void, bytes: usize) -> Result {
        if self.is_imported {
            log::refused(call, format_args!("the pool belongs to another process"));
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let once = || {
            let share: Keeps = Arc::new(Share::new(self, bytes));
            allocate_on(self.device, call, out, bytes, (Kind::Device, 0), Some(share))
        };
        match once() {
            // A release that is queued may make room.
            Err(hipError_t::hipErrorOutOfMemory) if bytes <= self.device.total_bytes => {
                stream::drain_device(self.device);
                once()
            }
            result => result,
        }
    }
}

/// Each device's own pool, and the one it allocates from now.
struct OfDevice {
    default: usize,
    current: Mutex<usize>,
}

fn of_device(device: &Device) -> &'static OfDevice {
    static ALL: OnceLock<Vec<OfDevice>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let own = |device| {
            let none = hipMemAllocationHandleType::hipMemHandleTypeNone;
            let default = POOLS.insert(Pool::new(device, none, false));
            OfDevice {
                default,
                current: Mutex::new(default),
            }
        };
        device::all().iter().map(own).collect()
    });
    &all[device.ordinal]
}

/// A destroyed or invented handle is undefined on ROCm.
fn find(pool: hipMemPool_t) -> Result<Arc<Pool>> {
    POOLS.get(pool as usize).ok_or(hipError_t::hipErrorInvalidValue)
}

fn location(location: &hipMemLocation) -> Result<&'static Device> {
    if location.type_ != hipMemLocationType::hipMemLocationTypeDevice {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    device::by_ordinal(location.id).map_err(|_| hipError_t::hipErrorInvalidValue)
}

fn malloc_from(
    call: &'static str,
    out: *mut *mut c_void,
    bytes: usize,
    pool: Option<hipMemPool_t>,
    stream: hipStream_t,
) -> hipError_t {
    entry(call, || {
        let invalid = hipError_t::hipErrorInvalidValue;
        let stream = stream::find(stream).map_err(|_| invalid)?;
        if out.is_null() {
            return Err(invalid);
        }
        let pool = match pool {
            Some(pool) => find(pool)?,
            None => {
                let current = *of_device(stream.device()).current.lock();
                POOLS.get(current).ok_or(invalid)?
            }
        };
        if bytes == 0 {
            // SAFETY: not null; room for a pointer by the C caller's promise.
            return unsafe { store(out, std::ptr::null_mut()) };
        }
        if capture::is_active(&stream) {
            return capture_allocation(call, out, bytes, &pool, &stream);
        }
        pool.allocate(call, out, bytes)
    })
}

/// An allocation as a node of the graph that the stream captures.
fn capture_allocation(
    call: &'static str,
    out: *mut *mut c_void,
    bytes: usize,
    pool: &Arc<Pool>,
    stream: &Stream,
) -> Result {
    let location = |ordinal: usize| hipMemLocation {
        type_: hipMemLocationType::hipMemLocationTypeDevice,
        id: ordinal as c_int,
    };
    let access = pool.settings.lock().access.clone();
    let access = access.into_iter().map(|(ordinal, flags)| hipMemAccessDesc {
        location: location(ordinal),
        flags,
    });
    let params = hipMemAllocNodeParams {
        poolProps: hipMemPoolProps {
            allocType: hipMemAllocationType::hipMemAllocationTypePinned,
            location: location(pool.device.ordinal),
            ..hipMemPoolProps::default()
        },
        bytesize: bytes,
        ..hipMemAllocNodeParams::default()
    };
    let memory = GraphMemory::new(call, pool, params, access.collect())?;
    let base = memory.base();
    capture::record(stream, || Operation::Allocate(memory))?;
    // SAFETY: null was refused by the caller of this function; room for a pointer by the C caller's promise.
    unsafe { store(out, base as *mut c_void) }
}

/// The pool that a device allocates from, by a location of it.
pub(crate) fn pool_of_location(place: &hipMemLocation) -> Result<Arc<Pool>> {
    let current = *of_device(location(place)?).current.lock();
    find(current as hipMemPool_t)
}

pub(crate) unsafe extern "C" fn malloc_async(out: *mut *mut c_void, bytes: usize, stream: hipStream_t) -> hipError_t {
    malloc_from("hipMallocAsync", out, bytes, None, stream)
}

pub(crate) unsafe extern "C" fn malloc_from_pool_async(
    out: *mut *mut c_void,
    bytes: usize,
    pool: hipMemPool_t,
    stream: hipStream_t,
) -> hipError_t {
    malloc_from("hipMallocFromPoolAsync", out, bytes, Some(pool), stream)
}

/// Queued releases: the memory still exists, but the program has freed it.
static QUEUED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

pub(crate) unsafe extern "C" fn free_async(ptr: *mut c_void, stream: hipStream_t) -> hipError_t {
    const CALL: &str = "hipFreeAsync";
    entry(CALL, || {
        let invalid = hipError_t::hipErrorInvalidValue;
        let stream = stream::find(stream).map_err(|_| invalid)?;
        // As `hipFree` does.
        if ptr.is_null() {
            return Ok(());
        }
        // ROCm looks when the stream gets there; a pointer that is wrong now will be wrong then.
        let base = ptr as usize;
        if capture::is_active(&stream) {
            let release = Operation::Release(base);
            release.check(CALL)?;
            return capture::record(&stream, || release).map(|_| ());
        }
        if graph::is_of_graph(base) {
            return graph::free_for_program(base);
        }
        let freeable = registry::find(base).filter(|allocation| {
            let kinds = [Kind::Device, Kind::Imported];
            allocation.base == base && kinds.contains(&allocation.kind) && allocation.is_owned()
        });
        let mut queued = QUEUED.lock();
        let (Some(allocation), false) = (freeable, queued.contains(&base)) else {
            log::refused(CALL, format_args!("{ptr:p} is not device memory, or already freed"));
            return Err(invalid);
        };
        queued.push(base);
        let released = allocation.clone();
        let work = Box::new(move || {
            QUEUED.lock().retain(|&other| other != base);
            // Freed by `hipFree` in the meantime, the address may be another's.
            if registry::find(base).is_some_and(|there| Arc::ptr_eq(&there, &released)) {
                registry::remove(base);
            }
            Ok(())
        });
        let submitted = stream.submit(CALL, Vec::new(), work);
        match (&submitted, allocation.kept::<Share>()) {
            (Err(_), _) => queued.retain(|&other| other != base),
            (Ok(_), Some(share)) => share.is_released(),
            (Ok(_), None) => {}
        }
        submitted.map(|_| ())
    })
}

pub(crate) unsafe extern "C" fn device_get_default_mem_pool(out: *mut hipMemPool_t, ordinal: c_int) -> hipError_t {
    entry("hipDeviceGetDefaultMemPool", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let device = device::by_ordinal(ordinal)?;
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, of_device(device).default as hipMemPool_t) }
    })
}

pub(crate) unsafe extern "C" fn device_get_mem_pool(out: *mut hipMemPool_t, ordinal: c_int) -> hipError_t {
    entry("hipDeviceGetMemPool", || {
        let invalid = hipError_t::hipErrorInvalidValue;
        let device = device::by_ordinal(ordinal).map_err(|_| invalid)?;
        let current = *of_device(device).current.lock();
        // SAFETY: null is refused by `store`; otherwise room for a handle by the C caller's promise.
        unsafe { store(out, current as hipMemPool_t) }
    })
}

pub(crate) unsafe extern "C" fn device_set_mem_pool(ordinal: c_int, pool: hipMemPool_t) -> hipError_t {
    entry("hipDeviceSetMemPool", || {
        let invalid = hipError_t::hipErrorInvalidValue;
        let device = device::by_ordinal(ordinal).map_err(|_| invalid)?;
        if find(pool)?.device.ordinal != device.ordinal {
            return Err(hipError_t::hipErrorInvalidDevice);
        }
        *of_device(device).current.lock() = pool as usize;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn mem_pool_create(out: *mut hipMemPool_t, props: *const hipMemPoolProps) -> hipError_t {
    entry("hipMemPoolCreate", || {
        if out.is_null() || props.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises properties it has filled.
        let props = unsafe { props.read_unaligned() };
        if props.allocType != hipMemAllocationType::hipMemAllocationTypePinned {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let device = location(&props.location)?;
        capture::forbid("hipMemPoolCreate")?;
        let pool = Pool::new(device, props.handleTypes, false);
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, POOLS.insert(pool) as hipMemPool_t) }
    })
}

pub(crate) unsafe extern "C" fn mem_pool_destroy(pool: hipMemPool_t) -> hipError_t {
    entry("hipMemPoolDestroy", || {
        let found = find(pool)?;
        let own = of_device(found.device);
        // A device's own pool is not the program's to destroy.
        if own.default == pool as usize {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        POOLS.remove(pool as usize).ok_or(hipError_t::hipErrorInvalidValue)?;
        let mut current = own.current.lock();
        if *current == pool as usize {
            *current = own.default;
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn mem_pool_trim_to(pool: hipMemPool_t, _keep: usize) -> hipError_t {
    entry("hipMemPoolTrimTo", || find(pool).map(|_| ()))
}
