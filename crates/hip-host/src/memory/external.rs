//! Memory of other APIs, imported by a file descriptor.
//!
//! On Linux every handle type is a descriptor, and it stays the caller's (hipamd/src/hip_memory.cpp,
//! `hipImportExternalMemory`; rocclr/device/rocm/rocmemory.cpp, the interop map). Each mapped pointer is a mapping of
//! its own, freed by `hipFree`; `hipDestroyExternalMemory` releases the imported memory itself. Both are needed.
//!
//! A dma-buf keeps its size. Here a file stands for one. Any process that has the file may truncate it, and then every
//! process that touches the missing pages gets `SIGBUS`. So the importer seals the file against truncation. It cannot
//! if the exporter made the file without `MFD_ALLOW_SEALING`; then it depends on the exporter.

use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hip_sys::{
    hipError_t, hipExternalMemory_t, hipExternalMemoryBufferDesc, hipExternalMemoryDedicated,
    hipExternalMemoryHandleDesc, hipExternalMemoryHandleType, hipExternalSemaphore_t, hipExternalSemaphoreHandleDesc,
};
use rustix::fs::fstat;

use super::backing::keep_size;
use super::mapping::Mapping;
use super::registry::{self, Allocation, Kind};
use crate::device::{self, Device};
use crate::error::{Result, entry, store};
use crate::handles::Handles;
use crate::log;

static MEMORIES: Handles<Memory> = Handles::new();

struct Memory {
    file: OwnedFd,
    bytes: u64,
    device: &'static Device,
}

/// A descriptor of our own for the caller's, and the size of what it names.
pub(in crate::memory) fn duplicate(call: &str, fd: i32) -> Result<(OwnedFd, u64)> {
    let refuse = |reason: &dyn std::fmt::Display| {
        log::refused(call, format_args!("descriptor {fd}: {reason}"));
        // ROCm finds out when it maps, and reports a failed allocation.
        hipError_t::hipErrorOutOfMemory
    };
    if fd < 0 {
        return Err(refuse(&"negative"));
    }
    // SAFETY: only duplicated here; the C caller promises an open descriptor, and a closed one is refused by the
    // system.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let file = borrowed.try_clone_to_owned().map_err(|error| refuse(&error))?;
    let size = fstat(&file).map_err(|error| refuse(&error))?.st_size;
    match u64::try_from(size) {
        Ok(bytes) if bytes > 0 => {
            keep_size(&file);
            Ok((file, bytes))
        }
        _ => Err(refuse(&"not memory")),
    }
}

pub(crate) unsafe extern "C" fn import_external_memory(
    out: *mut hipExternalMemory_t,
    desc: *const hipExternalMemoryHandleDesc,
) -> hipError_t {
    const CALL: &str = "hipImportExternalMemory";
    entry(CALL, || {
        if out.is_null() || desc.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises a description it has filled.
        let desc = unsafe { desc.read_unaligned() };
        let types = hipExternalMemoryHandleType::hipExternalMemoryHandleTypeOpaqueFd.0
            ..=hipExternalMemoryHandleType::hipExternalMemoryHandleTypeD3D11ResourceKmt.0;
        if !types.contains(&desc.type_.0) || desc.size == 0 || desc.flags & !hipExternalMemoryDedicated != 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: on Linux every handle type is a descriptor, and any bytes are an integer.
        let fd = unsafe { desc.handle.fd };
        let (file, bytes) = duplicate(CALL, fd)?;
        // ROCm trusts the size and faults later.
        if desc.size > bytes {
            log::refused(CALL, format_args!("{} bytes of {bytes} bytes of memory", desc.size));
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let memory = Memory {
            file,
            bytes: desc.size,
            device: device::current()?,
        };
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, MEMORIES.insert(Arc::new(memory)) as hipExternalMemory_t) }
    })
}

pub(crate) unsafe extern "C" fn external_memory_get_mapped_buffer(
    out: *mut *mut c_void,
    memory: hipExternalMemory_t,
    desc: *const hipExternalMemoryBufferDesc,
) -> hipError_t {
    entry("hipExternalMemoryGetMappedBuffer", || {
        if out.is_null() || memory.is_null() || desc.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises a description it has filled.
        let desc = unsafe { desc.read_unaligned() };
        // A destroyed or invented handle is undefined on ROCm.
        let memory = MEMORIES.get(memory as usize).ok_or(hipError_t::hipErrorInvalidHandle)?;
        let end = desc.offset.checked_add(desc.size);
        if desc.flags != 0 || desc.size == 0 || end.is_none_or(|end| end > memory.bytes) {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let bytes = usize::try_from(desc.size).map_err(|_| hipError_t::hipErrorInvalidValue)?;
        let mapping =
            Mapping::of_file(memory.file.as_fd(), desc.offset, bytes).ok_or(hipError_t::hipErrorOutOfMemory)?;
        let base = mapping.base();
        let allocation = Allocation::owned(mapping, bytes, Kind::Imported, memory.device, 0, 0).keeping(memory);
        registry::add(Arc::new(allocation));
        // SAFETY: not null; room for a pointer by the C caller's promise.
        unsafe { store(out, base as *mut c_void) }
    })
}

pub(crate) unsafe extern "C" fn destroy_external_memory(memory: hipExternalMemory_t) -> hipError_t {
    entry("hipDestroyExternalMemory", || {
        if memory.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        MEMORIES
            .remove(memory as usize)
            .map(|_| ())
            .ok_or(hipError_t::hipErrorInvalidHandle)
    })
}

pub(crate) unsafe extern "C" fn import_external_semaphore(
    out: *mut hipExternalSemaphore_t,
    desc: *const hipExternalSemaphoreHandleDesc,
) -> hipError_t {
    entry("hipImportExternalSemaphore", || {
        if out.is_null() || desc.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises a description it has filled, and any bytes are an integer.
        let fd = unsafe { desc.read_unaligned().handle.fd };
        // ROCm's device on Linux has no semaphores to import (rocclr/device/rocm/rocdevice.hpp, `importExtSemaphore`).
        Err(if fd == 0 {
            hipError_t::hipErrorInvalidValue
        } else {
            hipError_t::hipErrorNotSupported
        })
    })
}
