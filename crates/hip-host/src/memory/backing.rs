//! Memory that lies in a file without a name, so other processes and other APIs can map it too.
//!
//! Such a file stands for a dma-buf. As ROCr cuts small allocations from larger blocks and exports the block
//! (runtime/hsa-runtime/core/inc/amd_memory_region.h), the memory never begins at the file's first byte: code that
//! ignores the offset reads the wrong bytes here too.

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use hip_sys::hipError_t;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mprotect};

use crate::error::Result;
use crate::log;

/// Where memory begins in its file.
const LEAD: u64 = 64 << 10;
/// Memory is scanned in pieces, and what was never written stays a hole.
const PIECE: usize = 1 << 20;

/// The names of the files that other processes may share, as shown by the system.
pub(crate) const MEMORY: &str = "hip-host memory";
pub(crate) const EVENT: &str = "hip-host event";

/// The size is fixed: truncating the file would kill every process that maps it with `SIGBUS`.
const SIZE_STAYS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// An unlinked, zeroed file whose size is sealed: no process can change it.
pub(crate) fn sealed_file(name: &str, bytes: u64) -> rustix::io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes)?;
    fcntl_add_seals(&file, SIZE_STAYS | SealFlags::SEAL)?;
    Ok(file)
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

fn out_of_memory<E: std::fmt::Display>(error: E) -> hipError_t {
    log::refused("sharing memory", format_args!("{error}"));
    hipError_t::hipErrorOutOfMemory
}

impl Backing {
    /// A new file of `bytes` bytes, all zero, that is nothing but the memory.
    pub(crate) fn new(bytes: usize) -> Result<Self> {
        let file = sealed_file(MEMORY, bytes as u64).map_err(out_of_memory)?;
        Ok(Self { file, offset: 0 })
    }

    /// A file that someone else made.
    pub(crate) fn of(file: OwnedFd) -> Self {
        Self { file, offset: 0 }
    }

    /// Moves pages into a new file, mapped at the same address.
    ///
    /// # Safety
    /// `[start, start + bytes)` are whole pages, mapped for reading and writing, and may be mapped anew.
    pub(super) unsafe fn take_over(start: usize, bytes: usize) -> Result<Self> {
        let lead = LEAD as usize;
        let backing = Self::new(lead.saturating_add(bytes))?.at(lead);
        let at = start as *mut c_void;
        // SAFETY: whole pages, by this function's contract.
        unsafe { mprotect(at, bytes, MprotectFlags::READ) }.map_err(out_of_memory)?;
        // SAFETY: readable, and nothing writes: the pages are protected.
        let content = unsafe { std::slice::from_raw_parts(start as *const u8, bytes) };
        let moved = backing.fill(content).and_then(|()| {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            // SAFETY: the caller lets the pages be mapped anew, and the file now has their content.
            unsafe { mmap(at, bytes, protection, flags, &backing.file, LEAD) }.map_err(std::io::Error::from)
        });
        if let Err(error) = moved {
            // SAFETY: as above; the old pages are still there.
            let _ = unsafe { mprotect(at, bytes, MprotectFlags::READ | MprotectFlags::WRITE) };
            return Err(out_of_memory(error));
        }
        Ok(backing)
    }

    fn fill(&self, content: &[u8]) -> std::io::Result<()> {
        let file = File::from(self.file.try_clone()?);
        for (index, piece) in content.chunks(PIECE).enumerate() {
            if piece.iter().any(|&byte| byte != 0) {
                file.write_all_at(piece, self.offset + (index * PIECE) as u64)?;
            }
        }
        Ok(())
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
