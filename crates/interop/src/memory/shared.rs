use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use parking_lot::Mutex;

use super::allocation::SharedAllocation;
use super::range::check_part;
use super::{ClGuard, ClGuardMut, HipGuard, HipGuardMut, MemoryFacts};
use crate::access::Sides;
use crate::backing::{self, Backing, ClPart};
use crate::core::Core;
use crate::handoff::{Handoff, check_answers};
use crate::values::{Access, Failover, Side};
use crate::{Category, Error, Grade, Residency, Result, Route};

/// The alignment of `clSVMAlloc`, the least among the routes.
const ALIGNMENT: usize = 128;

/// One allocation that OpenCL and HIP both see.
///
/// Fresh memory holds unspecified values. Lengths are in elements of `T`.
///
/// # Ordering
/// Work enqueued under a guard runs after every conflicting access: a writer after all others, a reader after writers.
/// With [`Grade::Host`] the guard is granted only then; with the others it is granted at once, and the drivers keep the
/// order. Several readers may hold the buffer at once, on both APIs. Work on one in-order queue or stream is ordered by
/// that queue or stream and never waits on the host. Where several buffers show the same bytes, because memory was
/// adopted twice, a guard of one waits for the users of all.
///
/// # When the other side fails
/// The work after it was enqueued already, and runs on what there is. The buffer's next guard, upload or download
/// returns the failure ([`Error::HandoffFailed`], [`Error::HandoffTimeout`]); if there is none, it is a deferred error.
/// The access after that waits on the host for all users. Each buffer that shows the same bytes returns the failure
/// once ([`Error::AnotherView`]).
///
/// The failure is the bytes', not the queue's or the stream's that ran too early: what it computed from them *into
/// another buffer* is wrong too, and that buffer does not know. Before you take the result of a product, a transform or
/// a copy as good, access its inputs: `download` of the output alone cannot tell.
///
/// # When the route fails
/// The buffer goes on in memory of the next permitted route, with the data, and the bridge records it
/// ([`Bridge::failovers`](crate::Bridge::failovers)). With a call that borrows the buffer exclusively
/// (`cl_mut`, `hip_mut`, `upload`) it waits for the old memory and frees it. Under a reader (`cl`, `hip`,
/// `download`, [`Part`](crate::Part)) it stays until the buffer is borrowed exclusively or dropped: other
/// readers may be alive, at this moment and on other threads, with addresses of it in kernels that they
/// have yet to launch. Nothing writes while there are readers, so that they see the same data in the old memory as
/// later readers in the new; [`route`](Self::route), [`addresses`](Self::addresses) and the like report the new.
///
/// Where no other route is permitted, or another buffer shows some of the bytes, the error is [`Error::UnderReader`], and so it is for a guard of a
/// [`PartMut`](crate::PartMut), next to which others may write. No data is lost: once the borrows are over,
/// [`move_to`](Self::move_to) takes the data along, and reads it by a kernel of the other API where the route's own
/// transfers fail.
///
/// # Dropping
/// Waits for all work that was granted access, then frees. If waiting fails (a lost device, or work
/// that does not end within [`Options::handoff_limit`](crate::Options::handoff_limit)), the
/// memory is leaked rather than freed under running work, and the error is kept for
/// [`Bridge::take_deferred_errors`](crate::Bridge::take_deferred_errors).
pub struct Shared<T: Pod> {
    /// The memory, and what took over from it under readers.
    allocation: SharedAllocation,
    len: usize,
    /// Whether the memory may be written: a foreign buffer can be read-only.
    writable: bool,
    /// Which side has parts of memory that is handed over as a whole.
    sides: Mutex<Sides>,
    element: PhantomData<T>,
}

impl<T: Pod> Shared<T> {
    /// Allocates on exactly this route.
    pub(crate) fn on_route(core: &Arc<Core>, handoff: &Arc<dyn Handoff>, route: Route, len: usize) -> Result<Self> {
        let bytes = bytes_of::<T>(len)?;
        let backing = backing::allocate(core, route, bytes)?;
        Self::over(core, handoff, backing, true)
    }

    /// Allocates on the first of these routes that has memory.
    pub(crate) fn on_first_of(
        core: &Arc<Core>,
        handoff: &Arc<dyn Handoff>,
        routes: &[Route],
        len: usize,
    ) -> Result<Self> {
        bytes_of::<T>(len)?;
        let mut tried: Vec<(Route, String)> = Vec::new();
        for (index, &route) in routes.iter().enumerate() {
            match Self::on_route(core, handoff, route, len) {
                Ok(mut shared) => {
                    shared.allocation.give_way_to(&routes[index + 1..]);
                    if let Some((from, reason)) = tried.last() {
                        core.note_failover(Failover {
                            from: *from,
                            to: route,
                            during: "allocation",
                            reason: reason.clone(),
                        });
                    }
                    return Ok(shared);
                }
                Err(error) if routes.len() == 1 => return Err(error),
                Err(error) => tried.push((route, error.to_string())),
            }
        }
        Err(Error::Failed { tried })
    }

    /// Memory that exists already.
    pub(crate) fn over(
        core: &Arc<Core>,
        handoff: &Arc<dyn Handoff>,
        backing: Box<dyn Backing>,
        writable: bool,
    ) -> Result<Self> {
        let element = size_of::<T>();
        let bytes = backing.bytes();
        if element == 0 || bytes < element {
            return Err(Error::Empty);
        }
        Ok(Self {
            allocation: SharedAllocation::new(core, handoff, backing, align_of::<T>())?,
            len: bytes / element,
            writable,
            sides: Mutex::default(),
            element: PhantomData,
        })
    }

    /// No part is borrowed for writing any more: each side may have any.
    pub(crate) fn begin_parts(&mut self) {
        self.allocation.collapse();
        *self.sides.get_mut() = Sides::default();
    }

    /// That `side` may have these elements as well as what it has.
    pub(crate) fn check_side(&self, side: Side, access: Access, range: &Range<usize>) -> Result<()> {
        if !self.backing().is_handed_whole() {
            return Ok(());
        }
        let taken = self.sides.lock().take(side, access, range);
        taken.map_err(|held| Error::PartOnOtherSide {
            route: self.route(),
            held,
            by: match side {
                Side::Cl => "HIP",
                Side::Hip => "OpenCL",
            },
            wanted: range.clone(),
        })
    }

    /// The memory in use.
    pub(crate) fn allocation(&self) -> &SharedAllocation {
        self.allocation.last()
    }

    /// What its bridge has in common for all buffers.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.allocation.core
    }

    /// How the memory is reached.
    pub(crate) fn backing(&self) -> &dyn Backing {
        self.allocation().backing()
    }

    /// From now on it may only be read.
    pub(crate) fn forbid_writing(&mut self) {
        self.writable = false;
    }

    /// Stays in this memory, whatever fails: others know it by now.
    pub(crate) fn pinned_down(&mut self) {
        self.allocation.collapse().give_way_to(&[]);
    }

    /// Puts the bridge's own stream, which it returns, after every user that was granted access, also through other
    /// views of the bytes, and the memory on HIP's side.
    pub(crate) fn bring_together(&mut self) -> Result<hip::Stream> {
        let stream = self.core().stream.clone();
        drop(self.hip_mut(&stream)?);
        Ok(stream)
    }

    /// Ends the buffer as dropping does, and reports what dropping defers: waits for every user that was granted access,
    /// then frees the memory or gives it back.
    ///
    /// # Errors
    /// A user's work failed or did not end within the time limit, or a hand-off failed, so that the bytes are not what they
    /// should be. If a device may still use the memory, it is kept for ever: neither free nor reuse adopted memory after an
    /// error.
    pub fn close(mut self) -> Result<()> {
        self.settle()
    }

    /// Waits for every user that was granted access to the memory. A hand-off that is given up meanwhile lets its user go
    /// too early, and that user's end says nothing about the bytes.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.allocation.collapse().settle()?;
        self.check_handoffs()
    }

    /// Whether the host makes changes of side, whatever the requested grade.
    pub(crate) fn needs_host(&self) -> bool {
        self.allocation().needs_host()
    }

    /// Whether every hand-off that has ended so far succeeded.
    pub(crate) fn check_handoffs(&self) -> Result<()> {
        self.allocation().check_handoffs()
    }

    /// Number of elements, at least one.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a shared buffer is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The route the memory was allocated on.
    #[must_use]
    pub fn route(&self) -> Route {
        self.allocation().route()
    }

    /// Where the bytes live.
    #[must_use]
    pub fn residency(&self) -> Residency {
        self.allocation().residency
    }

    /// Whether a change of side copies the data.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.route().is_copy()
    }

    /// How a change of side is ordered. On a route that involves the host in it, this is the host, whatever the
    /// bridge's grade.
    #[must_use]
    pub fn grade(&self) -> Grade {
        self.allocation().handoff().grade()
    }

    /// The address each API uses, OpenCL's first, where both are known; they are equal on a route that guarantees one
    /// address.
    #[must_use]
    pub fn addresses(&self) -> Option<(usize, usize)> {
        self.allocation().addresses()
    }

    /// What is known about the memory in use.
    #[must_use]
    pub fn facts(&self) -> MemoryFacts {
        MemoryFacts::of(self.allocation())
    }

    /// Read access for kernels on `queue`.
    ///
    /// # Errors
    /// If the queue is of another context, or if waiting for HIP's writers fails;
    /// [`Error::UnderReader`] if the route does and no other is permitted.
    pub fn cl<'a>(&'a self, queue: &'a clmgr::Queue) -> Result<ClGuard<'a, T>> {
        let (allocation, hold) = self.as_reader("hand-off to OpenCL", |allocation| {
            allocation.grant_cl(queue, Access::Read, &allocation.bytes())
        })?;
        Ok(ClGuard::new(allocation, 0..self.len, ClPart::Whole, hold))
    }

    /// Read and write access for kernels on `queue`.
    ///
    /// # Errors
    /// If the queue is of another context, if the memory may not be written, or if waiting for
    /// other users fails.
    pub fn cl_mut<'a>(&'a mut self, queue: &'a clmgr::Queue) -> Result<ClGuardMut<'a, T>> {
        self.check_writable()?;
        let allocation = self.allocation.collapse();
        let hold = match allocation.grant_cl(queue, Access::Write, &allocation.bytes())? {
            Ok(hold) => hold,
            Err(error) => {
                *allocation = allocation.failed_over("hand-off to OpenCL", error, None)?;
                allocation.grant_cl(queue, Access::Write, &allocation.bytes())??
            }
        };
        Ok(ClGuardMut::new(allocation, 0..self.len, ClPart::Whole, hold))
    }

    /// Read access for HIP work on `stream`.
    ///
    /// # Errors
    /// If the stream is of another device, or if waiting for OpenCL's writers fails;
    /// [`Error::UnderReader`] if the route does and no other is permitted.
    pub fn hip<'a>(&'a self, stream: &'a hip::Stream) -> Result<HipGuard<'a, T>> {
        let (allocation, ()) = self.as_reader("hand-off to HIP", |allocation| {
            allocation.grant_hip(stream, Access::Read, &allocation.bytes())
        })?;
        Ok(HipGuard::new(allocation.slice(stream, 0..self.len)))
    }

    /// Read and write access for HIP work on `stream`.
    ///
    /// # Errors
    /// If the stream is of another device, if the memory may not be written, or if waiting for
    /// other users fails.
    pub fn hip_mut<'a>(&'a mut self, stream: &'a hip::Stream) -> Result<HipGuardMut<'a, T>> {
        self.check_writable()?;
        let allocation = self.allocation.collapse();
        if let Err(error) = allocation.grant_hip(stream, Access::Write, &allocation.bytes())? {
            *allocation = allocation.failed_over("hand-off to HIP", error, None)?;
            allocation.grant_hip(stream, Access::Write, &allocation.bytes())??;
        }
        let allocation = &*allocation;
        Ok(HipGuardMut::new(allocation, allocation.slice_mut(stream, 0..self.len)))
    }

    /// Fills the buffer from host memory and returns when the bytes have arrived. Counted as
    /// [`Category::Input`].
    ///
    /// # Errors
    /// If the lengths differ, the memory may not be written, or a driver call fails and no other
    /// route is permitted.
    #[track_caller]
    pub fn upload(&mut self, data: &[T]) -> Result<()> {
        self.write_as(Category::Input, "upload", data)
    }

    /// Fills the elements from `offset` on, as many as `data` has, as [`upload`](Self::upload) fills all. It waits for
    /// every user of the buffer, whatever its part.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Empty`] for no elements, and as [`upload`](Self::upload).
    #[track_caller]
    pub fn upload_at(&mut self, offset: usize, data: &[T]) -> Result<()> {
        check_part(offset, data.len(), self.len)?;
        self.check_writable()?;
        let allocation = self.allocation.collapse();
        let _scope = allocation.core.meter.scope(Category::Input);
        let (begin, data) = (offset * size_of::<T>(), bytemuck::cast_slice(data));
        if let Err(error) = allocation.write(begin, data)? {
            // The other elements go along.
            *allocation = allocation.failed_over("upload", error, None)?;
            allocation.write(begin, data)??;
        }
        Ok(())
    }

    /// Writes all elements; what it does is counted so.
    #[track_caller]
    pub(crate) fn write_as(&mut self, category: Category, during: &'static str, data: &[T]) -> Result<()> {
        self.check_length(during, data.len())?;
        self.check_writable()?;
        let allocation = self.allocation.collapse();
        let _scope = allocation.core.meter.scope(category);
        let data = bytemuck::cast_slice(data);
        if let Err(error) = allocation.write(0, data)? {
            *allocation = allocation.failed_over(during, error, Some(data))?;
        }
        Ok(())
    }

    /// Copies the buffer to host memory and returns when the bytes have arrived. Counted as
    /// [`Category::Result`].
    ///
    /// # Errors
    /// If the lengths differ or waiting for writers fails; [`Error::UnderReader`] if the route does and no
    /// other is permitted.
    #[track_caller]
    pub fn download(&self, data: &mut [T]) -> Result<()> {
        self.check_length("download", data.len())?;
        self.download_at(0, data)
    }

    /// Copies the elements from `offset` on, as many as `data` has room for, as [`download`](Self::download) copies
    /// all. It waits for every writer of the buffer, whatever its part.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Empty`] for no elements, and as [`download`](Self::download).
    #[track_caller]
    pub fn download_at(&self, offset: usize, data: &mut [T]) -> Result<()> {
        check_part(offset, data.len(), self.len)?;
        let _scope = self.core().meter.scope(Category::Result);
        let (begin, data) = (offset * size_of::<T>(), bytemuck::cast_slice_mut(data));
        self.as_reader("download", |allocation| allocation.read(begin, data))?;
        check_answers()
    }

    /// Moves the data to memory of another route, through the host: a copy of the data set, counted
    /// as such.
    ///
    /// # Errors
    /// If the new memory cannot be allocated or a copy fails; the buffer is then unchanged.
    pub fn move_to(&mut self, route: Route) -> Result<()> {
        if route != self.route() {
            let allocation = self.allocation.collapse();
            *allocation = allocation.moved_to(route)?;
        }
        Ok(())
    }

    /// Access by a reader, without writers: where the route fails, the next one takes over.
    /// The outer error of `grant` is that of the waiting, the inner one of the route.
    pub(crate) fn as_reader<R>(
        &self,
        during: &'static str,
        mut grant: impl FnMut(&SharedAllocation) -> Result<Result<R>>,
    ) -> Result<(&SharedAllocation, R)> {
        let mut allocation = self.allocation();
        loop {
            match grant(allocation)? {
                Ok(granted) => return Ok((allocation, granted)),
                Err(error) => allocation = allocation.succeeded(during, error)?,
            }
        }
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.writable {
            return Ok(());
        }
        Err(Error::ReadOnly)
    }

    fn check_length(&self, what: &'static str, given: usize) -> Result<()> {
        if given == self.len {
            return Ok(());
        }
        Err(Error::LengthMismatch {
            what,
            given,
            expected: self.len,
        })
    }
}

/// The size of `len` elements, all of which can be shared.
pub(crate) fn bytes_of<T>(len: usize) -> Result<usize> {
    let element = size_of::<T>();
    if len == 0 || element == 0 {
        return Err(Error::Empty);
    }
    if align_of::<T>() > ALIGNMENT {
        return Err(Error::Alignment {
            alignment: align_of::<T>(),
            limit: ALIGNMENT,
        });
    }
    len.checked_mul(element)
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or(Error::TooLarge { len, element })
}

impl<T: Pod> std::fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("len", &self.len)
            .field("route", &self.route())
            .field("residency", &self.residency())
            .finish_non_exhaustive()
    }
}
