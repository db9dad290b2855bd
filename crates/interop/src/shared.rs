use crate::alias::View;
use crate::backing::{self, Backing, ClPart, Side};
use crate::core::Core;
use crate::handoff::{Handoff, Host};
use crate::report::Failover;
use crate::sides::Sides;
use crate::uses::{Access, Claim, User};
use crate::{
    Category, ClGuard, ClGuardMut, Error, Grade, HipGuard, HipGuardMut, Residency, Result, Route,
};
use bytemuck::Pod;
use parking_lot::Mutex;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;

/// The alignment of `clSVMAlloc`, which is the least of what the routes give.
const ALIGNMENT: usize = 128;

/// One allocation that OpenCL and HIP both see.
///
/// Fresh memory holds unspecified values. Lengths are in elements of `T`.
///
/// # Ordering
/// What is enqueued under a guard runs after every access that conflicts with it: a writer after
/// everyone else, a reader after writers. With [`Grade::Host`] the guard is granted only then; with
/// the others it is granted at once, and the drivers keep the order. Several readers may hold the
/// buffer at once, on both APIs. Work on one in-order queue or stream is ordered by that queue or
/// stream and never waits on the host. Where several buffers show the same bytes, because memory was
/// adopted twice, a guard of one waits for the users of all.
///
/// # When the other side fails
/// The work after it was enqueued already, and runs on what there is. The failure comes from the
/// buffer's next guard, upload or download ([`Error::HandoffFailed`], [`Error::HandoffTimeout`]), or
/// as a deferred error if there is none. The access after that waits on the host for everyone.
///
/// # When the route fails
/// A call that borrows the buffer exclusively (`cl_mut`, `hip_mut`, `upload`) goes on in memory of the
/// next permitted route, with the data, and the bridge notes it
/// ([`Bridge::failovers`](crate::Bridge::failovers)). A reader (`cl`, `hip`, `download`, and every
/// guard of a part) cannot do that: other readers may be alive, at this moment and on other threads,
/// with addresses of the memory in kernels that they have yet to launch, and the memory must not go
/// from under them. It returns [`Error::UnderReader`] instead, and nothing is lost: with the borrows
/// over, [`move_to`](Self::move_to) takes the data along, and reads it by a kernel of the other API
/// where the route's own transfers are what fails.
///
/// # Dropping
/// Waits for all work that was given access, then frees. If waiting fails (a lost device, or work
/// that does not end within [`Options::handoff_limit`](crate::Options::handoff_limit)), the
/// memory is leaked rather than freed under running work, and the error is kept for
/// [`Bridge::take_deferred_errors`](crate::Bridge::take_deferred_errors).
pub struct Shared<T: Pod> {
    core: Arc<Core>,
    len: usize,
    residency: Residency,
    /// Whether the memory may be written: a foreign buffer can be for reading only.
    writable: bool,
    backing: ManuallyDrop<Box<dyn Backing>>,
    view: Arc<View>,
    handoff: ManuallyDrop<Arc<dyn Handoff>>,
    /// The hand-off for memory of another route, should one take over.
    wanted: Option<Arc<dyn Handoff>>,
    /// The routes that may be taken if this one fails, best first.
    next: Arc<[Route]>,
    /// Which side has parts of memory that is handed over as a whole.
    sides: Mutex<Sides>,
    element: PhantomData<T>,
}

impl<T: Pod> Shared<T> {
    /// Allocates on exactly this route.
    pub(crate) fn on_route(core: &Arc<Core>, route: Route, len: usize) -> Result<Self> {
        let bytes = bytes_of::<T>(len)?;
        let backing = backing::allocate(core, route, bytes)?;
        Self::over(core, backing, true)
    }

    /// Allocates on the first of these routes that has memory to give.
    pub(crate) fn on_first_of(
        core: &Arc<Core>,
        routes: &[Route],
        handoff: &Arc<dyn Handoff>,
        len: usize,
    ) -> Result<Self> {
        bytes_of::<T>(len)?;
        let mut tried: Vec<(Route, String)> = Vec::new();
        for (index, &route) in routes.iter().enumerate() {
            match Self::on_route(core, route, len) {
                Ok(shared) => {
                    let mut shared = shared.handed_over_by(handoff);
                    shared.next = routes[index + 1..].into();
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
        backing: Box<dyn Backing>,
        writable: bool,
    ) -> Result<Self> {
        let element = size_of::<T>();
        let bytes = backing.bytes();
        if element == 0 || bytes < element {
            return Err(Error::Empty);
        }
        if !backing.hip_ptr().addr().is_multiple_of(align_of::<T>()) {
            return Err(Error::Alignment {
                alignment: align_of::<T>(),
                limit: 1 << backing.hip_ptr().addr().trailing_zeros(),
            });
        }
        let residency = backing.residency(core);
        Ok(Self {
            core: Arc::clone(core),
            len: bytes / element,
            residency,
            writable,
            view: View::enter(backing.spans()),
            backing: ManuallyDrop::new(backing),
            handoff: ManuallyDrop::new(Arc::new(Host::new(None))),
            wanted: None,
            next: Arc::default(),
            sides: Mutex::default(),
            element: PhantomData,
        })
    }

    /// Hands over this way from now on, if the host has no part in every change of side.
    pub(crate) fn handed_over_by(mut self, handoff: &Arc<dyn Handoff>) -> Self {
        if !self.backing.needs_host() || handoff.follows_queues() && self.backing.leaves_by_queue()
        {
            *self.handoff = Arc::clone(handoff);
        }
        self.wanted = Some(Arc::clone(handoff));
        self
    }

    /// No part is borrowed for writing any more: each side may have any.
    pub(crate) fn begin_parts(&mut self) {
        *self.sides.get_mut() = Sides::default();
    }

    /// That `side` may have these elements as well as what it has.
    pub(crate) fn check_side(
        &self,
        side: Side,
        access: Access,
        range: &Range<usize>,
    ) -> Result<()> {
        if !self.backing.is_handed_whole() {
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

    /// What its bridge has in common for all buffers.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// How the memory is reached.
    pub(crate) fn backing(&self) -> &dyn Backing {
        &**self.backing
    }

    /// From now on it may only be read.
    pub(crate) fn forbid_writing(&mut self) {
        self.writable = false;
    }

    /// Stays in this memory, whatever fails: others know it by now.
    pub(crate) fn pinned_down(&mut self) {
        self.next = Arc::default();
    }

    /// The longest that one side waits for the other.
    pub(crate) fn handoff_limit(&self) -> Option<std::time::Duration> {
        self.handoff.limit()
    }

    /// Lets in a stream of another GPU, which the buffer's own hand-off knows nothing of.
    pub(crate) fn admit_across(
        &self,
        handoff: &dyn Handoff,
        user: &User,
        access: Access,
    ) -> Result<()> {
        let range = self.bytes();
        self.view.admit(
            handoff,
            self.subject(),
            user,
            self.claim(access, &range),
            || self.backing.bring_to_hip(&self.core, access, &range),
        )
    }

    /// Waits for everyone that was given access.
    pub(crate) fn settle(&self) -> Result<()> {
        self.view.drain(&**self.handoff)
    }

    /// Whether changes of side are the host's, whatever grade was asked for.
    pub(crate) fn needs_host(&self) -> bool {
        let by_queue = self.handoff.follows_queues() && self.backing.leaves_by_queue();
        self.backing.needs_host() && !by_queue
    }

    /// Whether every hand-off so far that has come to an end went well.
    pub(crate) fn check_handoffs(&self) -> Result<()> {
        self.view.check()
    }

    /// Number of elements, at least one.
    #[must_use]
    #[allow(
        clippy::len_without_is_empty,
        reason = "a shared buffer is never empty"
    )]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The route the memory was allocated on.
    #[must_use]
    pub fn route(&self) -> Route {
        self.backing.route()
    }

    /// Where the bytes live.
    #[must_use]
    pub fn residency(&self) -> Residency {
        self.residency
    }

    /// Whether a change of side copies the data.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.route().is_copy()
    }

    /// How a change of side is ordered. A route on which the host has a part in it hands over by the
    /// host, whatever the bridge's grade.
    #[must_use]
    pub fn grade(&self) -> Grade {
        self.handoff.grade()
    }

    /// The address each API uses, OpenCL's first, where both are known: equal addresses are how a
    /// route that promises one address shows it.
    #[must_use]
    pub fn addresses(&self) -> Option<(usize, usize)> {
        let cl = self.backing.cl_address()?;
        Some((cl, self.backing.hip_ptr().addr()))
    }

    /// Read access for kernels on `queue`.
    ///
    /// # Errors
    /// If the queue is of another context, or if waiting for HIP's writers fails;
    /// [`Error::UnderReader`] if the route does.
    pub fn cl<'a>(&'a self, queue: &'a clmgr::Queue) -> Result<ClGuard<'a, T>> {
        let granted = self.grant_cl(queue, Access::Read, &self.bytes())?;
        granted.map_err(|error| self.under_reader("hand-over to OpenCL", error))?;
        Ok(ClGuard::new(self, 0..self.len, ClPart::Whole))
    }

    /// Read and write access for kernels on `queue`.
    ///
    /// # Errors
    /// If the queue is of another context, if the memory may not be written, or if waiting for
    /// other users fails.
    pub fn cl_mut<'a>(&'a mut self, queue: &'a clmgr::Queue) -> Result<ClGuardMut<'a, T>> {
        if let Err(error) = self.grant_cl(queue, Access::Write, &self.bytes())? {
            self.fail_over("hand-over to OpenCL", error, None)?;
            self.grant_cl(queue, Access::Write, &self.bytes())??;
        }
        Ok(ClGuardMut::new(self, 0..self.len, ClPart::Whole))
    }

    /// Read access for HIP work on `stream`.
    ///
    /// # Errors
    /// If the stream is of another device, or if waiting for OpenCL's writers fails;
    /// [`Error::UnderReader`] if the route does.
    pub fn hip<'a>(&'a self, stream: &'a hip::Stream) -> Result<HipGuard<'a, T>> {
        let granted = self.grant_hip(stream, Access::Read, &self.bytes())?;
        granted.map_err(|error| self.under_reader("hand-over to HIP", error))?;
        Ok(HipGuard::new(self.slice(stream, 0..self.len)))
    }

    /// Read and write access for HIP work on `stream`.
    ///
    /// # Errors
    /// If the stream is of another device, if the memory may not be written, or if waiting for
    /// other users fails.
    pub fn hip_mut<'a>(&'a mut self, stream: &'a hip::Stream) -> Result<HipGuardMut<'a, T>> {
        if let Err(error) = self.grant_hip(stream, Access::Write, &self.bytes())? {
            self.fail_over("hand-over to HIP", error, None)?;
            self.grant_hip(stream, Access::Write, &self.bytes())??;
        }
        Ok(HipGuardMut::new(self.slice_mut(stream, 0..self.len)))
    }

    /// Fills the buffer from host memory and returns when the bytes are there. Counted as
    /// [`Category::Input`].
    ///
    /// # Errors
    /// If the lengths differ, the memory may not be written, or a driver call fails and no other
    /// route is permitted.
    #[track_caller]
    pub fn upload(&mut self, data: &[T]) -> Result<()> {
        self.check_length("upload", data.len())?;
        self.check_writable()?;
        let _scope = self.core.meter.scope(Category::Input);
        let data = bytemuck::cast_slice(data);
        let (user, subject) = (self.transfer_user(), self.subject());
        let is_handed_whole = self.backing.is_handed_whole();
        let (core, backing) = (&self.core, &mut self.backing);
        let written = self.view.admit(
            &**self.handoff,
            subject,
            &user,
            Claim {
                access: Access::Write,
                range: &(0..data.len()),
                is_handed_whole,
            },
            || Ok(backing.write(core, data)),
        )?;
        match written {
            // Some drivers run what waits for an event that failed.
            Ok(()) => self.view.check(),
            Err(error) => self.fail_over("upload", error, Some(data)),
        }
    }

    /// Copies the buffer to host memory and returns when the bytes are there. Counted as
    /// [`Category::Result`].
    ///
    /// # Errors
    /// If the lengths differ or waiting for writers fails; [`Error::UnderReader`] if the route does.
    #[track_caller]
    pub fn download(&self, data: &mut [T]) -> Result<()> {
        self.check_length("download", data.len())?;
        let _scope = self.core.meter.scope(Category::Result);
        self.read(bytemuck::cast_slice_mut(data))?
            .map_err(|error| self.under_reader("download", error))
    }

    /// Moves the data to memory of another route, through the host: a copy of the data set, counted
    /// as such.
    ///
    /// # Errors
    /// If the new memory cannot be had or a copy fails; the buffer is then as before.
    pub fn move_to(&mut self, route: Route) -> Result<()> {
        if route != self.route() {
            let data = self.rescue()?;
            self.replace(route, &data)?;
        }
        Ok(())
    }

    /// The outer error is that of the waiting, the inner one of the route.
    fn read(&self, data: &mut [u8]) -> Result<Result<()>> {
        let read = self.admit(&self.transfer_user(), Access::Read, &self.bytes(), || {
            Ok(self.backing.read(&self.core, data))
        })?;
        if read.is_ok() {
            // Some drivers run what waits for an event that failed.
            self.view.check()?;
        }
        Ok(read)
    }

    /// As [`read`](Self::read), by a kernel of the API that does not transfer.
    fn read_otherwise(&self, data: &mut [u8]) -> Result<()> {
        let side = backing::other(self.backing.transfers_by());
        let user = transfer_user(&self.core, side);
        self.admit(&user, Access::Read, &self.bytes(), || {
            backing::read_by_kernel(&self.core, &**self.backing, side, data)
        })?;
        self.view.check()
    }

    pub(crate) fn under_reader(&self, during: &'static str, error: Error) -> Error {
        Error::UnderReader {
            during,
            route: self.route(),
            next: self.next.first().copied(),
            source: Box::new(error),
        }
    }

    fn admit<R>(
        &self,
        user: &User,
        access: Access,
        range: &Range<usize>,
        then: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let handoff = &**self.handoff;
        self.view.admit(
            handoff,
            self.subject(),
            user,
            self.claim(access, range),
            then,
        )
    }

    fn claim<'r>(&self, access: Access, range: &'r Range<usize>) -> Claim<'r> {
        Claim {
            access,
            range,
            is_handed_whole: self.backing.is_handed_whole(),
        }
    }

    /// All bytes.
    fn bytes(&self) -> Range<usize> {
        0..self.backing.bytes()
    }

    /// What a hand-off is about, as a kernel's argument.
    fn subject(&self) -> clmgr::Arg<'static> {
        match self.backing.cl_arg() {
            clmgr::Arg::Mem(object) => clmgr::Arg::Mem(object),
            clmgr::Arg::Svm(pointer) => clmgr::Arg::Svm(pointer),
            clmgr::Arg::Bytes(_) | clmgr::Arg::Local(_) => {
                unreachable!("memory is given as an object or a pointer")
            }
        }
    }

    /// The data, in host memory.
    fn rescue(&self) -> Result<Vec<u8>> {
        let _scope = self.core.meter.scope(Category::DataSet);
        let mut data = vec![0; self.backing.bytes()];
        if let Err(error) = self.read(&mut data)? {
            self.read_otherwise(&mut data)
                .map_err(|second| Error::Failed {
                    tried: vec![
                        (self.route(), error.to_string()),
                        (self.route(), format!("by the other API: {second}")),
                    ],
                })?;
        }
        Ok(data)
    }

    /// Takes new memory that holds `data`, and lets the old go.
    fn replace(&mut self, route: Route, data: &[u8]) -> Result<()> {
        let _scope = self.core.meter.scope(Category::DataSet);
        let memory = backing::allocate(&self.core, route, data.len())?;
        // Nobody else knows the memory yet.
        let mut new = Self::over(&self.core, memory, true)?;
        new.backing.write(&self.core, data)?;
        new.next = self.next.clone();
        let new = match &self.wanted {
            Some(handoff) => new.handed_over_by(handoff),
            None => new,
        };
        // The old memory is waited for and freed.
        *self = new;
        Ok(())
    }

    /// Goes on in memory of the next permitted route, with the data as it was, or as it was to be.
    fn fail_over(&mut self, during: &'static str, error: Error, data: Option<&[u8]>) -> Result<()> {
        if self.next.is_empty() {
            return Err(error);
        }
        let from = self.route();
        let mut reason = error.to_string();
        let rescued;
        let data = match data {
            Some(data) => data,
            None => {
                rescued = self.rescue().map_err(|lost| Error::Failed {
                    tried: vec![(
                        from,
                        format!("{reason}; then the data could not be read: {lost}"),
                    )],
                })?;
                &rescued
            }
        };
        let mut tried = vec![(from, reason.clone())];
        let routes = self.next.clone();
        for (index, &to) in routes.iter().enumerate() {
            match self.replace(to, data) {
                Ok(()) => {
                    self.next = routes[index + 1..].into();
                    self.core.note_failover(Failover {
                        from,
                        to,
                        during,
                        reason,
                    });
                    return Ok(());
                }
                Err(error) => {
                    reason = error.to_string();
                    tried.push((to, reason.clone()));
                }
            }
        }
        Err(Error::Failed { tried })
    }

    /// The lock of the view is held while the driver works, so that two readers do not stage twice.
    /// The outer error is that of the waiting, the inner one of the route.
    pub(crate) fn grant_cl(
        &self,
        queue: &clmgr::Queue,
        access: Access,
        range: &Range<usize>,
    ) -> Result<Result<()>> {
        if queue.context() != &self.core.context {
            return Err(Error::OtherOwner {
                what: "queue",
                owner: "context",
            });
        }
        self.check_access(access)?;
        self.admit(&User::Cl(queue.clone()), access, range, || {
            Ok(self.backing.bring_to_cl(&self.core, queue, access, range))
        })
    }

    pub(crate) fn grant_hip(
        &self,
        stream: &hip::Stream,
        access: Access,
        range: &Range<usize>,
    ) -> Result<Result<()>> {
        if stream.device().ordinal() != self.core.hip_device.ordinal() {
            return Err(Error::OtherOwner {
                what: "stream",
                owner: "device",
            });
        }
        self.check_access(access)?;
        if self.handoff.follows_queues() {
            self.backing.leave_cl(access)?;
        }
        self.admit(&User::Hip(stream.clone()), access, range, || {
            Ok(self.backing.bring_to_hip(&self.core, access, range))
        })
    }

    /// The elements of `range`, which lies in the buffer.
    pub(crate) fn slice<'a>(
        &self,
        stream: &'a hip::Stream,
        range: Range<usize>,
    ) -> hip::DeviceSlice<'a, T> {
        let ptr = self.backing.hip_ptr().cast::<T>().wrapping_add(range.start);
        // SAFETY: as many aligned elements that the device can read are at the address; whoever takes
        // the slice was admitted as a reader on this stream, and the memory is freed only after the
        // stream has been waited for. HIP owns what the backing says it owns.
        unsafe {
            if self.backing.is_hips() {
                hip::DeviceSlice::from_hip_raw_parts(ptr, range.len(), stream)
            } else {
                hip::DeviceSlice::from_raw_parts(ptr, range.len(), stream)
            }
        }
    }

    /// As [`slice`](Self::slice), for a writer.
    pub(crate) fn slice_mut<'a>(
        &self,
        stream: &'a hip::Stream,
        range: Range<usize>,
    ) -> hip::DeviceSliceMut<'a, T> {
        let ptr = self.backing.hip_ptr().cast::<T>().wrapping_add(range.start);
        // SAFETY: as `slice`; the taker was admitted as the only writer of these elements.
        unsafe {
            if self.backing.is_hips() {
                hip::DeviceSliceMut::from_hip_raw_parts(ptr, range.len(), stream)
            } else {
                hip::DeviceSliceMut::from_raw_parts(ptr, range.len(), stream)
            }
        }
    }

    fn transfer_user(&self) -> User {
        transfer_user(&self.core, self.backing.transfers_by())
    }

    fn check_access(&self, access: Access) -> Result<()> {
        match access {
            Access::Read => Ok(()),
            Access::Write => self.check_writable(),
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

/// Who moves bytes from and to the host.
fn transfer_user(core: &Core, side: Side) -> User {
    match side {
        Side::Cl => User::Cl(core.queue.clone()),
        Side::Hip => User::Hip(core.stream.clone()),
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

impl<T: Pod> Drop for Shared<T> {
    fn drop(&mut self) {
        let drained = self.view.drain(&**self.handoff);
        self.view.leave();
        for error in self.view.take_errors() {
            self.core.defer(error);
        }
        match drained {
            // SAFETY: dropped once, here; nothing touches the two afterwards.
            Ok(()) => unsafe {
                ManuallyDrop::drop(&mut self.backing);
                ManuallyDrop::drop(&mut self.handoff);
            },
            // What streams may still wait for lives in the hand-off.
            Err(error) => self.core.defer(error),
        }
    }
}

impl<T: Pod> std::fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("len", &self.len)
            .field("route", &self.route())
            .field("residency", &self.residency)
            .finish_non_exhaustive()
    }
}
