//! Memory that lies in a file without a name, so other processes and other APIs can map it too.
//!
//! Such a file stands for a dma-buf. As ROCr cuts small allocations from larger blocks and exports the block
//! (runtime/hsa-runtime/core/inc/amd_memory_region.h), the memory never begins at the file's first byte: code that
//! ignores the offset reads the wrong bytes here too.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Once;

use hip_sys::hipError_t;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::mapping::HUGE_PAGE;
use crate::error::Result;
use crate::log;

/// Where memory begins in its file. What is before is a hole, and huge pages of the file are huge pages of the memory.
const LEAD: usize = HUGE_PAGE;

/// The names of the files that other processes may share, as shown by the system.
pub(crate) const MEMORY: &str = "hip-host memory";
pub(crate) const EVENT: &str = "hip-host event";

/// The size is fixed: truncating the file would kill every process that maps it with `SIGBUS`.
const SIZE_STAYS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// The descriptors below are the program's: `select` cannot wait for others.
const FIRST_DESCRIPTOR: RawFd = 1024;

/// Every allocation of device memory holds a descriptor, so that the usual soft limit of 1024 would be met soon. It is
/// meant to be raised by who needs more.
fn raise_limit_of_descriptors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            log::refused("raising the limit of open files", format_args!("{error}"));
        }
    });
}

/// An unlinked, zeroed file whose size is sealed: no process can change it.
pub(crate) fn sealed_file(name: &str, bytes: u64) -> rustix::io::Result<OwnedFd> {
    raise_limit_of_descriptors();
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes)?;
    seal_size(&file, bytes)?;
    if file.as_raw_fd() >= FIRST_DESCRIPTOR {
        return Ok(file);
    }
    // Where the limit leaves no high one, the program shares its own.
    Ok(fcntl_dupfd_cloexec(&file, FIRST_DESCRIPTOR).unwrap_or(file))
}

/// Seals the size, which code that found the file among the process's descriptors could change until then.
fn seal_size(file: impl AsFd, bytes: u64) -> rustix::io::Result<()> {
    fcntl_add_seals(&file, SIZE_STAYS | SealFlags::SEAL)?;
    match u64::try_from(fstat(&file)?.st_size) {
        Ok(size) if size == bytes => Ok(()),
        _ => Err(Errno::PERM),
    }
}

/// Whether the file size is sealed. Only unlinked memory files can be sealed.
pub(crate) fn is_sealed(file: impl AsFd) -> bool {
    fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SIZE_STAYS))
}

/// Keeps others from cutting a file that they made, where seals are possible. It may still grow.
pub(super) fn keep_size(file: impl AsFd) {
    let sealed = fcntl_add_seals(&file, SealFlags::SHRINK);
    if let Err(error) = sealed
        && !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
    {
        let reason = "the process that made the file can still truncate it, which ends this process with SIGBUS";
        log::refused("sealing imported memory", format_args!("{error}; {reason}"));
    }
}

/// A file and the place of some memory in it.
pub(crate) struct Backing {
    file: OwnedFd,
    offset: u64,
}

fn out_of_memory(error: Errno) -> hipError_t {
    if error == Errno::MFILE {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let remedy =
            "each allocation of device memory holds one; raise `ulimit -n`, or make fewer and larger allocations";
        log::warn(&format!(
            "all {limit} file descriptors of the process are in use: {remedy}"
        ));
    }
    log::refused("memory in a file", format_args!("{error}"));
    hipError_t::hipErrorOutOfMemory
}

impl Backing {
    /// A new file of `bytes` bytes, all zero, that is nothing but the memory.
    ///
    /// # Errors
    /// `hipErrorOutOfMemory` if the system provides none.
    pub(crate) fn new(bytes: usize) -> Result<Self> {
        let file = sealed_file(MEMORY, bytes as u64).map_err(out_of_memory)?;
        Ok(Self { file, offset: 0 })
    }

    /// A new file in which `bytes` bytes of memory, all zero, come after others.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn behind_others(bytes: usize) -> Result<Self> {
        Ok(Self::new(LEAD.saturating_add(bytes))?.at(LEAD))
    }

    /// A file that someone else made.
    pub(crate) fn of(file: OwnedFd) -> Self {
        Self { file, offset: 0 }
    }

    /// The place `bytes` bytes further on.
    pub(crate) fn at(self, bytes: usize) -> Self {
        Self {
            offset: self.offset + bytes as u64,
            ..self
        }
    }

    /// Of the memory's first byte in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_size_was_changed_before_the_seal_is_not_taken() {
        for (size, taken) in [(8192, true), (1, false), (8193, false), (0, false)] {
            let file = memfd_create(MEMORY, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
            ftruncate(&file, size).unwrap();
            assert_eq!(seal_size(&file, 8192).is_ok(), taken, "{size}");
            assert!(ftruncate(&file, 4096).is_err());
        }
    }
}
