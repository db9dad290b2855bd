//! Pools and their memory, handed to other processes.
//!
//! A pool travels as a descriptor that names its device; each allocation follows by itself, as a few bytes that say
//! which file of which process it lies in.

use std::ffi::{c_int, c_uint, c_void};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{BorrowedFd, IntoRawFd};

use hip_sys::{hipError_t, hipMemAllocationHandleType as Handle, hipMemPool_t, hipMemPoolPtrExportData};

use super::{POOLS, Pool, find};
use crate::device;
use crate::error::{Result, entry, store};
use crate::memory::ipc::Shared;
use crate::memory::registry::Kind;

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

const MAGIC: [u8; 8] = *b"hcl-pol1";

/// A descriptor that [`read`] knows again.
fn write(pool: &Pool) -> std::io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::memfd_create("hip-host pool", flags)?);
    file.write_all(&MAGIC)?;
    file.write_all(&(pool.device.ordinal as u64).to_le_bytes())?;
    Ok(file)
}

/// The ordinal of the device whose pool a descriptor names; the descriptor stays the caller's.
fn read(fd: c_int) -> Option<u64> {
    if fd < 0 {
        return None;
    }
    // SAFETY: only duplicated here; a closed one is refused by the system.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let mut file = File::from(borrowed.try_clone_to_owned().ok()?);
    // A pipe would make the reader wait.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = [0; 16];
    file.rewind().ok()?;
    file.read_exact(&mut bytes).ok()?;
    let (magic, ordinal) = bytes.split_at(MAGIC.len());
    (magic == MAGIC).then_some(u64::from_le_bytes(*ordinal.first_chunk()?))
}

pub(crate) unsafe extern "C" fn mem_pool_export_to_shareable_handle(
    out: *mut c_void,
    pool: hipMemPool_t,
    kind: Handle,
    flags: c_uint,
) -> hipError_t {
    entry("hipMemPoolExportToShareableHandle", || {
        let pool = find(pool)?;
        // Only as what it was made to be, which a device's own pool is not.
        let is_descriptor = kind == Handle::hipMemHandleTypePosixFileDescriptor;
        if out.is_null() || flags != 0 || !is_descriptor || pool.handle != kind {
            return Err(INVALID);
        }
        let file = write(&pool).map_err(|_| hipError_t::hipErrorOutOfMemory)?;
        // SAFETY: not null; room for a descriptor, which is the caller's from here on.
        unsafe { store(out.cast::<c_int>(), file.into_raw_fd()) }
    })
}

pub(crate) unsafe extern "C" fn mem_pool_import_from_shareable_handle(
    out: *mut hipMemPool_t,
    handle: *mut c_void,
    kind: Handle,
    flags: c_uint,
) -> hipError_t {
    entry("hipMemPoolImportFromShareableHandle", || {
        if out.is_null() || flags != 0 || kind != Handle::hipMemHandleTypePosixFileDescriptor {
            return Err(INVALID);
        }
        // The descriptor itself stands where a pointer would.
        let fd = c_int::try_from(handle as usize).map_err(|_| INVALID)?;
        let ordinal = read(fd).ok_or(INVALID)?;
        let ordinal = c_int::try_from(ordinal).map_err(|_| INVALID)?;
        let device = device::by_ordinal(ordinal).map_err(|_| INVALID)?;
        let pool = Pool::new(device, kind, true);
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, POOLS.insert(pool) as hipMemPool_t) }
    })
}

const _: () = assert!(size_of::<Shared>() <= size_of::<hipMemPoolPtrExportData>());

pub(crate) unsafe extern "C" fn mem_pool_export_pointer(
    out: *mut hipMemPoolPtrExportData,
    ptr: *mut c_void,
) -> hipError_t {
    entry("hipMemPoolExportPointer", || {
        if out.is_null() || ptr.is_null() {
            return Err(INVALID);
        }
        let shared = Shared::of(ptr as usize)?;
        let mut data = hipMemPoolPtrExportData::default();
        // SAFETY: the data have room for the value, asserted above; the caller's are not null and have room.
        unsafe {
            (&raw mut data).cast::<Shared>().write_unaligned(shared);
            store(out, data)
        }
    })
}

/// Reads what [`mem_pool_export_pointer`] wrote.
///
/// # Safety
/// `data` is null or readable.
unsafe fn shared(data: *const hipMemPoolPtrExportData) -> Result<Shared> {
    if data.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, so readable by this function's contract; any bytes are numbers.
    let shared = unsafe { data.cast::<Shared>().read_unaligned() };
    shared.is_plausible().then_some(shared).ok_or(INVALID)
}

pub(crate) unsafe extern "C" fn mem_pool_import_pointer(
    out: *mut *mut c_void,
    pool: hipMemPool_t,
    data: *mut hipMemPoolPtrExportData,
) -> hipError_t {
    const CALL: &str = "hipMemPoolImportPointer";
    entry(CALL, || {
        if out.is_null() || !find(pool)?.is_imported {
            return Err(INVALID);
        }
        // SAFETY: the C caller promises data that it was given.
        let address = unsafe { shared(data) }?.open(CALL, Kind::Imported)?;
        // SAFETY: not null; room for a pointer by the C caller's promise.
        unsafe { store(out, address as *mut c_void) }
    })
}
