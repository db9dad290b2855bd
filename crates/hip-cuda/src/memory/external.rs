//! Memory and semaphores of other APIs, imported by file descriptors.
//!
//! CUDA takes over a descriptor that it imports; HIP on Linux leaves it with the caller (hipamd/src/hip_memory.cpp,
//! `hipImportExternalMemory`). So CUDA gets a duplicate. It keeps that if the import succeeds, and closes it if the
//! descriptor is no memory (seen with driver 580); other refusals leave it open.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

use hip_sys::{
    hipError_t, hipExternalMemory_t, hipExternalMemoryBufferDesc, hipExternalMemoryHandleDesc,
    hipExternalMemoryHandleType, hipExternalSemaphore_t, hipExternalSemaphoreHandleDesc,
    hipExternalSemaphoreHandleType, hipExternalSemaphoreSignalParams, hipExternalSemaphoreWaitParams, hipStream_t,
};

use super::pointer;
use crate::device::here;
use crate::error::{INVALID, Result, UNSUPPORTED, calls, not_null, store};

/// A descriptor of our own, and which file it is of. Its number is high where the process's limit allows that: the
/// system gives a closed number to the next file only if every lower one is taken, so that a high one, once CUDA has
/// closed it, is not soon another's.
pub(super) struct Duplicate(OwnedFd, (u64, u64));

impl Duplicate {
    pub(super) fn number(&self) -> c_int {
        self.0.as_raw_fd()
    }

    /// CUDA has taken it.
    fn taken(self) {
        let _ = self.0.into_raw_fd();
    }

    /// CUDA has refused it, and closed it or not.
    ///
    /// In a process with threads the number may be another file's by now; only a descriptor of the same file is closed.
    /// (Descriptors that the system keeps in memory may share one file; the high number makes up for that.)
    pub(super) fn refused(self) {
        let Self(own, file) = self;
        let number = own.into_raw_fd();
        // SAFETY: only looked at, and a closed one is refused.
        let still = identity(unsafe { BorrowedFd::borrow_raw(number) });
        if still == Some(file) {
            // SAFETY: open, and the duplicate that was made here.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}

/// Device and number of the file behind a descriptor.
fn identity(fd: BorrowedFd<'_>) -> Option<(u64, u64)> {
    rustix::fs::fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

pub(super) fn duplicate(fd: c_int) -> Result<Duplicate> {
    if fd < 0 {
        return Err(INVALID);
    }
    // SAFETY: only duplicated here; the C caller promises an open descriptor, and the system refuses a closed one.
    let given = unsafe { BorrowedFd::borrow_raw(fd) };
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let high = i32::try_from(limit.unwrap_or(1 << 16).min(1 << 16) / 4 * 3).unwrap_or(0);
    let own = rustix::io::fcntl_dupfd_cloexec(given, high)
        .or_else(|_| rustix::io::fcntl_dupfd_cloexec(given, 0))
        .map_err(|_| INVALID)?;
    let file = identity(own.as_fd()).ok_or(INVALID)?;
    Ok(Duplicate(own, file))
}

calls! {
    pub(crate) fn fill;

    fn hipImportExternalMemory(out: *mut hipExternalMemory_t, desc: *const hipExternalMemoryHandleDesc) {
        not_null!(out, desc);
        let mut desc = desc.read_unaligned();
        if desc.type_ != hipExternalMemoryHandleType::hipExternalMemoryHandleTypeOpaqueFd || desc.size == 0 {
            return Err(INVALID);
        }
        let own = duplicate(desc.handle.fd)?;
        desc.handle.fd = own.number();
        // CUDA has no code for a descriptor that is no memory; HIP calls that out of memory
        // (hipamd/src/hip_memory.cpp).
        match here()?.cuImportExternalMemory(out, &desc) {
            Ok(()) => {
                own.taken();
                Ok(())
            }
            Err(code) => {
                own.refused();
                Err(match code {
                    hipError_t::hipErrorUnknown => hipError_t::hipErrorOutOfMemory,
                    code => code,
                })
            }
        }
    }
    fn hipExternalMemoryGetMappedBuffer(
        out: *mut *mut c_void, memory: hipExternalMemory_t, desc: *const hipExternalMemoryBufferDesc,
    ) {
        not_null!(out, memory, desc);
        let mut found = 0;
        here()?.cuExternalMemoryGetMappedBuffer(&mut found, memory, desc)?;
        store(out, pointer(found))
    }
    fn hipDestroyExternalMemory(memory: hipExternalMemory_t) {
        not_null!(memory);
        here()?.cuDestroyExternalMemory(memory)
    }
    fn hipImportExternalSemaphore(out: *mut hipExternalSemaphore_t, desc: *const hipExternalSemaphoreHandleDesc) {
        not_null!(out, desc);
        let mut desc = desc.read_unaligned();
        match desc.type_ {
            hipExternalSemaphoreHandleType::hipExternalSemaphoreHandleTypeOpaqueFd
            | hipExternalSemaphoreHandleType::hipExternalSemaphoreHandleTypeTimelineSemaphoreFd => {}
            _ => return Err(UNSUPPORTED),
        }
        let own = duplicate(desc.handle.fd)?;
        desc.handle.fd = own.number();
        match here()?.cuImportExternalSemaphore(out, &desc) {
            Ok(()) => {
                own.taken();
                Ok(())
            }
            Err(code) => {
                own.refused();
                Err(match code {
                    hipError_t::hipErrorUnknown => INVALID,
                    code => code,
                })
            }
        }
    }
    fn hipSignalExternalSemaphoresAsync(
        list: *const hipExternalSemaphore_t, params: *const hipExternalSemaphoreSignalParams, count: c_uint, stream: hipStream_t,
    ) {
        not_null!(list, params);
        here()?.cuSignalExternalSemaphoresAsync(list, params, count, stream)
    }
    fn hipWaitExternalSemaphoresAsync(
        list: *const hipExternalSemaphore_t, params: *const hipExternalSemaphoreWaitParams, count: c_uint, stream: hipStream_t,
    ) {
        not_null!(list, params);
        here()?.cuWaitExternalSemaphoresAsync(list, params, count, stream)
    }
    fn hipDestroyExternalSemaphore(semaphore: hipExternalSemaphore_t) {
        not_null!(semaphore);
        here()?.cuDestroyExternalSemaphore(semaphore)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_leaves_the_callers_descriptor_open() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let own = duplicate(file.as_raw_fd()).unwrap();
        assert_ne!(own.number(), file.as_raw_fd());
        drop(own);
        assert!(file.metadata().is_ok());
    }

    #[test]
    fn what_was_refused_is_closed_once_by_either_side() {
        // A file that no other test has open.
        let file = rustix::fs::memfd_create("refused", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let own = duplicate(file.as_raw_fd()).unwrap();
        let number = own.number();
        own.refused();
        // Another test's file may have taken the number.
        // SAFETY: only looked at.
        let now = identity(unsafe { BorrowedFd::borrow_raw(number) });
        assert_ne!(now, identity(file.as_fd()), "left open");
        // As CUDA may leave it: closed already.
        let own = duplicate(file.as_raw_fd()).unwrap();
        // SAFETY: the duplicate's number, which `refused` then finds closed.
        drop(unsafe { OwnedFd::from_raw_fd(own.number()) });
        own.refused();
    }

    #[test]
    fn no_descriptor_is_an_invalid_value() {
        assert_eq!(duplicate(-1).err(), Some(INVALID));
        assert_eq!(duplicate(1 << 30).err(), Some(INVALID));
    }
}
