//! Transfers of parts that are enqueued on an OpenCL queue, and not waited for.

use std::ops::Range;

use bytemuck::Pod;
use clmgr::{Arg, Event, NdRange, Queue};

use super::Shared;
use super::range::{bytes, check_part, check_range};
use crate::values::Side;
use crate::{Category, Error, Result};

/// The longest pattern of a fill, in bytes: the kernel's `uint4`.
const PATTERN: usize = 16;

/// Each is ordered as a kernel under a guard of the whole buffer ([`cl`](Self::cl), [`cl_mut`](Self::cl_mut)): it runs
/// after every earlier use that conflicts, and every later one runs after it. The event tells when it has ended, and
/// whether it failed.
impl<T: Pod> Shared<T> {
    /// Enqueues a copy of `len` elements from host memory to the elements from `offset` on. Counted as
    /// [`Category::Input`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Empty`] for no elements, [`Error::Unsupported`] where OpenCL's own copies do not
    /// know the memory, which is HIP's, and as [`cl_mut`](Self::cl_mut).
    ///
    /// # Safety
    /// `len` elements are at `data`, and nothing writes them, until the event has ended; after an error, until the queue
    /// has finished.
    #[doc(alias("clEnqueueWriteBuffer", "clEnqueueSVMMemcpy"))]
    #[track_caller]
    pub unsafe fn upload_async(&mut self, queue: &Queue, offset: usize, data: *const T, len: usize) -> Result<Event> {
        check_part(offset, len, self.len())?;
        self.check_known_to_opencl("an enqueued upload", "upload_at")?;
        let _scope = self.core().meter.scope(Category::Input);
        let range = bytes::<T>(&(offset..offset + len));
        let guard = self.cl_mut(queue)?;
        Ok(match guard.arg() {
            // SAFETY: the guard's own object, which has these bytes; the grant keeps other work away from them, and the
            // caller answers for the host memory.
            Arg::Mem(object) => unsafe { queue.write_raw(object, range.start, data.cast(), range.len()) },
            arg => {
                let place = address(&arg, range.start).cast_mut();
                // SAFETY: as above, for the guard's own memory, which is OpenCL's by the check above.
                unsafe { queue.copy_raw(place.cast(), data.cast(), range.len()) }
            }
        }?)
    }

    /// Enqueues a copy of `len` elements from `offset` on to host memory. Counted as [`Category::Result`].
    ///
    /// # Errors
    /// As [`upload_async`](Self::upload_async), and as [`cl`](Self::cl). A writer's failure is returned by the buffer's
    /// next guard, or its next [`download`](Self::download).
    ///
    /// # Safety
    /// `data` has room for `len` elements, and nothing else uses it, until the event has ended; after an error, until the
    /// queue has finished.
    #[doc(alias("clEnqueueReadBuffer", "clEnqueueSVMMemcpy"))]
    #[track_caller]
    pub unsafe fn download_async(&self, queue: &Queue, offset: usize, data: *mut T, len: usize) -> Result<Event> {
        check_part(offset, len, self.len())?;
        self.check_known_to_opencl("an enqueued download", "download_at")?;
        let _scope = self.core().meter.scope(Category::Result);
        let range = bytes::<T>(&(offset..offset + len));
        let guard = self.cl(queue)?;
        Ok(match guard.arg() {
            // SAFETY: as in `upload_async`; the grant keeps writers away.
            Arg::Mem(object) => unsafe { queue.read_raw(object, range.start, data.cast(), range.len()) },
            // SAFETY: as above.
            arg => unsafe { queue.copy_raw(data.cast(), address(&arg, range.start).cast(), range.len()) },
        }?)
    }

    /// Enqueues a kernel that writes `pattern` to the elements of `range`, again and again. It moves no data, and is not
    /// counted.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Empty`] for no elements, [`Error::Pattern`] for a pattern of another size than 1, 2,
    /// 4, 8 or 16 bytes, or one that the range does not hold a whole number of times, and as [`cl_mut`](Self::cl_mut).
    #[doc(alias("clEnqueueFillBuffer", "clEnqueueSVMMemFill"))]
    pub fn fill(&mut self, queue: &Queue, range: Range<usize>, pattern: &[T]) -> Result<Event> {
        check_range(&range, self.len())?;
        let (range, pattern) = (bytes::<T>(&range), bytemuck::cast_slice::<T, u8>(pattern));
        if !pattern.len().is_power_of_two() || pattern.len() > PATTERN || !range.len().is_multiple_of(pattern.len()) {
            return Err(Error::Pattern {
                pattern: pattern.len(),
                bytes: range.len(),
            });
        }
        let mut whole = [0; PATTERN];
        for part in whole.chunks_mut(pattern.len()) {
            part.copy_from_slice(pattern);
        }
        let core = self.core().clone();
        let guard = self.cl_mut(queue)?;
        let places = [range.start, range.len(), base::<T>(guard.facts().addresses)];
        let unit = Unit::that_divides(&places);
        let fill = core.programs.get(SOURCE, unit.options)?.kernel("fill")?;
        let begin = (range.start / unit.bytes) as u64;
        let args = [guard.arg(), Arg::scalar(&begin), Arg::Bytes(&whole)];
        // SAFETY: `fill` writes one unit for each work-item from the unit `begin` on, which are those of the range; the
        // grant keeps other work away from them.
        Ok(unsafe { fill.launch(queue, NdRange::d1(range.len() / unit.bytes), &args) }?)
    }

    /// Enqueues a kernel that copies the elements `range` of `source` to the elements of this buffer from `offset` on.
    /// Counted as a copy, of the data set unless [`count_as`](crate::Meter::count_as) says otherwise.
    ///
    /// The two show different bytes.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Empty`] for no elements, [`Error::SameBytes`] if the buffers have bytes in common,
    /// and as [`cl_mut`](Self::cl_mut) and [`cl`](Self::cl).
    #[doc(alias("clEnqueueCopyBuffer", "clEnqueueSVMMemcpy"))]
    #[track_caller]
    pub fn copy_from(&mut self, queue: &Queue, offset: usize, source: &Self, range: Range<usize>) -> Result<Event> {
        check_range(&range, source.len())?;
        check_part(offset, range.len(), self.len())?;
        if self.allocation().shows_bytes_of(source.allocation()) {
            return Err(Error::SameBytes { what: "a copy" });
        }
        let (from, to) = (bytes::<T>(&range), offset * size_of::<T>());
        let core = self.core().clone();
        let source_guard = source.cl(queue)?;
        let guard = self.cl_mut(queue)?;
        let bases = [source.addresses(), guard.facts().addresses].map(base::<T>);
        let unit = Unit::that_divides(&[from.start, from.len(), to, bases[0], bases[1]]);
        let copy = core.programs.get(SOURCE, unit.options)?.kernel("copy")?;
        let (from_begin, to_begin) = ((from.start / unit.bytes) as u64, (to / unit.bytes) as u64);
        let args = [
            source_guard.arg(),
            guard.arg(),
            Arg::scalar(&from_begin),
            Arg::scalar(&to_begin),
        ];
        // SAFETY: `copy` reads and writes one unit for each work-item, from these on, which are those of the two ranges;
        // the grants keep writers away from the one and other work from the other.
        let event = unsafe { copy.launch(queue, NdRange::d1(from.len() / unit.bytes), &args) }?;
        core.meter.note("Shared::copy_from", from.len());
        Ok(event)
    }

    /// That copies of OpenCL may touch the memory, and not only its kernels.
    fn check_known_to_opencl(&self, what: &str, instead: &str) -> Result<()> {
        match self.backing().transfers_by() {
            Side::Cl => Ok(()),
            Side::Hip => Err(Error::Unsupported {
                route: self.route(),
                reason: format!(
                    "OpenCL's copies do not know this memory, which is HIP's, so that it does not support {what}; use `{instead}`"
                ),
            }),
        }
    }
}

/// The kernels of every unit.
const SOURCE: &str = include_str!("../../kernels/transfer.cl");

/// What a work-item moves.
#[derive(Debug, PartialEq, Eq)]
struct Unit {
    bytes: usize,
    /// For the compiler.
    options: &'static str,
}

impl Unit {
    /// Largest first.
    const ALL: [Self; 5] = [
        Self::of(16, "-DUNIT=uint4"),
        Self::of(8, "-DUNIT=ulong"),
        Self::of(4, "-DUNIT=uint"),
        Self::of(2, "-DUNIT=ushort"),
        Self::of(1, "-DUNIT=uchar"),
    ];

    const fn of(bytes: usize, options: &'static str) -> Self {
        Self { bytes, options }
    }

    /// The largest of which all of these are multiples.
    fn that_divides(places: &[usize]) -> &'static Self {
        let divides = |unit: &&Self| places.iter().all(|place| place.is_multiple_of(unit.bytes));
        Self::ALL.iter().find(divides).unwrap_or(&Self::ALL[4])
    }
}

/// OpenCL's address of the first byte. Where none is known, OpenCL has a buffer object, which may be the program's own at
/// any address that suits the elements: their alignment stands for it.
fn base<T>(addresses: Option<(usize, usize)>) -> usize {
    addresses.map_or(align_of::<T>(), |(cl, _)| cl)
}

/// The address of a byte behind a pointer argument.
fn address(arg: &Arg<'_>, begin: usize) -> *const u8 {
    match arg {
        Arg::Svm(pointer) => pointer.cast::<u8>().wrapping_add(begin),
        Arg::Mem(_) | Arg::Bytes(_) | Arg::Local(_) => unreachable!("a guard's argument is an object or a pointer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_divides_every_place_and_none_larger_does() {
        let unit = |places: &[usize]| Unit::that_divides(places).bytes;
        assert_eq!(unit(&[0, 4096, 48]), 16);
        assert_eq!(unit(&[0, 4096, 24]), 8);
        assert_eq!(unit(&[4, 4096]), 4);
        assert_eq!(unit(&[16, 2]), 2);
        assert_eq!(unit(&[16, 17]), 1);
    }
}
