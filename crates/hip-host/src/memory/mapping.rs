//! Address ranges of our own, fenced by guard pages.
//!
//! Freed ranges are kept without access for a while, so a pointer used after its release faults, or is recognised,
//! rather than meeting another allocation.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd};

use parking_lot::Mutex;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap};

use super::backing::Backing;
use super::registry;
use crate::sanitizer;

pub(super) const PAGE: usize = 4096;
pub(super) const HUGE_PAGE: usize = 2 << 20;
/// From here on, memory is laid out for huge pages.
const LARGE: usize = 2 * HUGE_PAGE;
/// HIP guarantees only 256 bytes for `hipMalloc`.
const ALIGNMENT: usize = 256;
/// Freed ranges kept out of use.
const QUARANTINE: usize = 256;
/// What fresh memory holds, up to this size: bytes that are not plausible data, so reads of unwritten memory show.
const POISON: u8 = 0xa5;
const POISONED_BYTES: usize = 64 << 10;

/// A readable and writable range between two inaccessible pages.
pub(crate) struct Mapping {
    span: Span,
    base: usize,
    /// The file of our own that the memory lies in, if others may come to share it.
    file: Option<Backing>,
}

/// The whole reserved range, guards included.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
}

impl Mapping {
    /// Memory whose last byte (rounded to the alignment) is followed by a guard page: overruns fault at once. It lies
    /// in a file from the start, so that it can be shared whatever works on it at that moment: OpenCL kernels on it
    /// are unknown here, and moving it would take it from under them.
    pub(crate) fn ending_at_guard(bytes: usize) -> Option<Self> {
        let data = bytes.checked_next_multiple_of(PAGE)?;
        let before = data - bytes.checked_next_multiple_of(ALIGNMENT)?;
        let file = Backing::behind_others(data).ok()?;
        let mut mapping = Self::reserve(data)?;
        mapping.map(file.as_fd(), file.offset(), data)?;
        mapping.base += before;
        mapping.file = Some(file.at(before));
        Some(mapping.poisoned(bytes))
    }

    /// Memory that begins at a page, for host memory, which other libraries prefer page-aligned.
    pub(crate) fn starting_at_page(bytes: usize) -> Option<Self> {
        let data = bytes.checked_next_multiple_of(PAGE)?;
        let mapping = Self::reserve(data)?;
        let at = mapping.base as *mut c_void;
        // SAFETY: `[base, base + data)` lies inside the reservation just made, which no other code knows yet.
        unsafe { mprotect(at, data, MprotectFlags::READ | MprotectFlags::WRITE) }.ok()?;
        mapping.advise(data);
        Some(mapping.poisoned(bytes))
    }

    /// `bytes` bytes of someone's file from `offset` on, which need not be a multiple of the page size.
    pub(crate) fn of_file(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> Option<Self> {
        let before = (offset % PAGE as u64) as usize;
        let data = bytes.checked_add(before)?.checked_next_multiple_of(PAGE)?;
        let mut mapping = Self::reserve(data)?;
        mapping.map(file, offset - before as u64, data)?;
        mapping.base += before;
        Some(mapping)
    }

    /// Addresses for `data` bytes, whole pages, between two guards. Nothing is accessible yet.
    fn reserve(data: usize) -> Option<Self> {
        // Large ranges begin at a huge page, which first use then fills at a fraction of the faults.
        let lead = if data >= LARGE { HUGE_PAGE } else { PAGE };
        let total = data.checked_add(lead + PAGE)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new private mapping at an address the kernel chooses touches no existing memory.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), total, ProtFlags::empty(), flags) }.ok()? as usize;
        let base = if lead == HUGE_PAGE {
            (start + 1).next_multiple_of(HUGE_PAGE)
        } else {
            start + PAGE
        };
        let span = Span { start, bytes: total };
        Some(Self { span, base, file: None })
    }

    /// Puts `data` bytes of a file at the base of a fresh reservation.
    fn map(&self, file: BorrowedFd<'_>, offset: u64, data: usize) -> Option<()> {
        let at = self.base as *mut c_void;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: `[base, base + data)` lies inside the reservation, which no other code knows yet.
        unsafe { mmap(at, data, protection, flags, file, offset) }.ok()?;
        // A child of this process would share the memory rather than get a copy.
        // SAFETY: the mapping just made. Advice only, so a refusal does not matter.
        let _ = unsafe { madvise(at, data, Advice::LinuxDontFork) };
        self.advise(data);
        Some(())
    }

    /// Asks for huge pages where the range is laid out for them.
    fn advise(&self, data: usize) {
        if data >= LARGE {
            // SAFETY: a mapping of ours. Advice only, so a refusal does not matter.
            let _ = unsafe { madvise(self.base as *mut c_void, data, Advice::LinuxHugepage) };
        }
    }

    /// The file of our own that the memory lies in, and its place there.
    pub(crate) fn backing(&self) -> Option<&Backing> {
        self.file.as_ref()
    }

    fn poisoned(self, bytes: usize) -> Self {
        self.poison(bytes);
        self.fenced(bytes)
    }

    /// Makes the first `bytes` bytes, which must not be in use, implausible data, if they are few.
    pub(super) fn poison(&self, bytes: usize) {
        if bytes <= POISONED_BYTES {
            // SAFETY: the range is mapped for writing, and `base + bytes` does not pass the guard.
            unsafe { std::ptr::write_bytes(self.base as *mut u8, POISON, bytes) };
        }
    }

    /// Tells the sanitizer, where kernels are checked, which bytes are not the user's.
    fn fenced(self, bytes: usize) -> Self {
        if let Some(sanitizer) = sanitizer::runtime() {
            let Span { start, bytes: span } = self.span;
            sanitizer.forbid(start, self.base);
            sanitizer.forbid(self.base + bytes, start + span);
        }
        self
    }

    pub(crate) fn base(&self) -> usize {
        self.base
    }

    pub(crate) fn span(&self) -> Span {
        self.span
    }
}

impl Span {
    fn unmap(self) {
        if let Some(sanitizer) = sanitizer::runtime() {
            // The addresses may become anybody's.
            sanitizer.allow(self.start, self.start + self.bytes);
        }
        // SAFETY: the span is a mapping of ours that nothing uses any more.
        let _ = unsafe { munmap(self.start as *mut c_void, self.bytes) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        static FREED: Mutex<VecDeque<Span>> = Mutex::new(VecDeque::new());
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: the span is ours and its last user is gone; mapping over it gives the memory back to the system and
        // keeps the addresses.
        let kept = unsafe {
            mmap_anonymous(
                self.span.start as *mut c_void,
                self.span.bytes,
                ProtFlags::empty(),
                flags,
            )
        };
        if kept.is_err() {
            // Out of mappings: give the addresses up at once.
            registry::forget(self.span.start);
            self.span.unmap();
            return;
        }
        if let Some(sanitizer) = sanitizer::runtime() {
            sanitizer.forbid(self.span.start, self.span.start + self.span.bytes);
        }
        let mut freed = FREED.lock();
        freed.push_back(self.span);
        let oldest = if freed.len() > QUARANTINE {
            freed.pop_front()
        } else {
            None
        };
        drop(freed);
        if let Some(oldest) = oldest {
            registry::forget(oldest.start);
            oldest.unmap();
        }
    }
}
