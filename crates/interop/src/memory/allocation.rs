//! One memory of a shared buffer, and everyone who was given access to it.

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::access::{AccessLedger, Claim, Hold, Outcome, Space, User, VIEWS, View};
use crate::backing::{self, Backing};
use crate::core::Core;
use crate::handoff::{By, Handoff, Host};
use crate::values::{Access, Failover, Side};
use crate::{Category, Error, Residency, Result, Route};

/// Memory that both APIs use. Its drop waits for them, then frees it, or leaks it where waiting fails.
pub(crate) struct SharedAllocation {
    pub(crate) core: Arc<Core>,
    pub(crate) residency: Residency,
    backing: ManuallyDrop<Box<dyn Backing>>,
    view: Arc<View<User>>,
    handoff: ManuallyDrop<Arc<dyn Handoff>>,
    /// The bridge's, for memory of another route, should one take over.
    wanted: Arc<dyn Handoff>,
    /// Of the elements.
    alignment: usize,
    /// The routes that may be taken if this one fails, best first.
    next: Arc<[Route]>,
    /// Memory of another route with the same bytes, which took over while readers were alive. They
    /// keep this one: nothing writes while there are readers, so that both stay the same.
    successor: OnceLock<Box<SharedAllocation>>,
    /// Held while a successor is made, so that there is one.
    succession: Mutex<()>,
}

impl SharedAllocation {
    /// Memory that changes sides by this hand-off; by the host, within the same limit, if the host has a part in every
    /// change.
    ///
    /// # Errors
    /// If the memory is less aligned than the elements have to be, or if another buffer has some of its bytes and one
    /// of the two keeps a copy of them, whose changes the other would not see.
    pub(crate) fn new(
        core: &Arc<Core>,
        handoff: &Arc<dyn Handoff>,
        backing: Box<dyn Backing>,
        alignment: usize,
    ) -> Result<Self> {
        let (route, spans) = (backing.route(), backing.spans());
        // Each API may have an address of its own.
        let shown = spans.iter().filter(|span| span.space == Space::Address);
        for address in shown.map(|span| span.range.start).chain([backing.hip_ptr().addr()]) {
            if !address.is_multiple_of(alignment) {
                return Err(Error::Alignment {
                    alignment,
                    limit: 1 << address.trailing_zeros(),
                });
            }
        }
        let view = VIEWS.enter(spans, route.is_copy());
        let view = view.ok_or_else(|| Error::Unsupported {
            route,
            reason: "another shared buffer has some of the bytes, and one of the two keeps a copy that the other does not see; drop the other first".into(),
        })?;
        let by_itself = !backing.needs_host() || handoff.follows_queues() && backing.leaves_by_queue();
        let used = match by_itself {
            true => Arc::clone(handoff),
            false => Arc::new(Host::new(handoff.limit())),
        };
        Ok(Self {
            core: Arc::clone(core),
            residency: backing.residency(core),
            view,
            backing: ManuallyDrop::new(backing),
            handoff: ManuallyDrop::new(used),
            wanted: Arc::clone(handoff),
            alignment,
            next: Arc::default(),
            successor: OnceLock::new(),
            succession: Mutex::default(),
        })
    }

    /// New memory of this route that holds `data`, to be used as the old one was.
    fn holding(&self, route: Route, data: &[u8], next: Arc<[Route]>) -> Result<Self> {
        let _scope = self.core.meter.scope(Category::DataSet);
        let mut memory = backing::allocate(&self.core, route, data.len())?;
        // The memory has no other user yet.
        memory.write(&self.core, 0, data)?;
        let mut new = Self::new(&self.core, &self.wanted, memory, self.alignment)?;
        new.next = next;
        Ok(new)
    }

    /// The routes that may be taken if this one fails, best first.
    pub(crate) fn give_way_to(&mut self, next: &[Route]) {
        self.next = next.into();
    }

    pub(crate) fn backing(&self) -> &dyn Backing {
        &**self.backing
    }

    pub(crate) fn route(&self) -> Route {
        self.backing.route()
    }

    pub(crate) fn handoff(&self) -> &dyn Handoff {
        &**self.handoff
    }

    /// The address that each API uses, OpenCL's first, where both are known.
    pub(crate) fn addresses(&self) -> Option<(usize, usize)> {
        Some((self.backing.cl_address()?, self.backing.hip_ptr().addr()))
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> Range<usize> {
        0..self.backing.bytes()
    }

    /// The memory that took over last.
    pub(crate) fn last(&self) -> &Self {
        let mut allocation = self;
        while let Some(successor) = allocation.successor.get() {
            allocation = successor;
        }
        allocation
    }

    /// Lets go of memory that another one has taken over from; no reader is alive any more.
    pub(crate) fn collapse(&mut self) -> &mut Self {
        while let Some(successor) = self.successor.take() {
            *self = *successor;
        }
        self
    }

    /// Waits for every user that was granted access; no guard is alive.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.view.drain(&self.order())
    }

    /// Whether every hand-off so far that has come to an end went well.
    pub(crate) fn check_handoffs(&self) -> Result<()> {
        self.view.check()
    }

    /// Whether the two have bytes in common, at whatever addresses.
    pub(crate) fn shows_bytes_of(&self, other: &Self) -> bool {
        self.view.overlaps(&other.view)
    }

    /// Hand-offs that may still fail.
    pub(crate) fn users(&self) -> Vec<User> {
        self.view.users()
    }

    pub(crate) fn on_their_way(&self) -> Vec<Arc<Outcome>> {
        self.view.on_their_way()
    }

    /// Whether changes of side are the host's, whatever grade was asked for.
    pub(crate) fn needs_host(&self) -> bool {
        let by_queue = self.handoff.follows_queues() && self.backing.leaves_by_queue();
        self.backing.needs_host() && !by_queue
    }

    fn claim<'r>(&self, access: Access, range: &'r Range<usize>) -> Claim<'r> {
        Claim {
            access,
            range,
            is_handed_whole: self.backing.is_handed_whole(),
        }
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

    /// Orders the users of the memory.
    fn order(&self) -> By<'_> {
        By::new(&**self.handoff, self.subject())
    }

    fn admit<R>(
        &self,
        user: &User,
        access: Access,
        range: &Range<usize>,
        then: impl FnOnce(&mut AccessLedger<User>) -> Result<R>,
    ) -> Result<(R, Hold)> {
        let claim = self.claim(access, range);
        VIEWS.admit(&self.view, &self.order(), user, claim, then)
    }

    /// Lets in a stream of another GPU, which the memory's own hand-off knows nothing of.
    pub(crate) fn admit_across(
        &self,
        handoff: &dyn Handoff,
        user: &User,
        access: Access,
        range: &Range<usize>,
    ) -> Result<()> {
        let claim = self.claim(access, range);
        let order = By::new(handoff, self.subject());
        let bring = |_: &mut AccessLedger<User>| self.backing.bring_to_hip(&self.core, access, range);
        let ((), _) = VIEWS.admit(&self.view, &order, user, claim, bring)?;
        Ok(())
    }

    /// The lock of the view is held while the driver works, so that two readers do not stage twice.
    /// The outer error is that of the waiting, the inner one of the route. The guard keeps the result.
    pub(crate) fn grant_cl(&self, queue: &clmgr::Queue, access: Access, range: &Range<usize>) -> Result<Result<Hold>> {
        if queue.context() != &self.core.context {
            return Err(Error::OtherOwner {
                what: "queue",
                owner: "context",
            });
        }
        let (brought, hold) = self.admit(&User::Cl(queue.clone()), access, range, |_| {
            Ok(self.backing.bring_to_cl(&self.core, queue, access, range))
        })?;
        Ok(brought.map(|()| hold))
    }

    /// As [`grant_cl`](Self::grant_cl), but the stream itself tells whether it is held.
    pub(crate) fn grant_hip(&self, stream: &hip::Stream, access: Access, range: &Range<usize>) -> Result<Result<()>> {
        // From the same runtime too: streams of another runtime, even of the same library, do not see what these
        // streams wait for.
        if stream.device() != &self.core.hip_device {
            return Err(Error::OtherOwner {
                what: "stream",
                owner: "device",
            });
        }
        if self.handoff.follows_queues() {
            self.backing.leave_cl(access)?;
        }
        let (brought, _) = self.admit(&User::of(stream), access, range, |_| {
            Ok(self.backing.bring_to_hip(&self.core, access, range))
        })?;
        Ok(brought)
    }

    /// Writes bytes from `begin` on, as a user of all. The outer error is that of the waiting, the inner one of the route.
    pub(crate) fn write(&mut self, begin: usize, data: &[u8]) -> Result<Result<()>> {
        let user = self.user_of(self.backing.transfers_by());
        let range = self.bytes();
        let claim = self.claim(Access::Write, &range);
        let order = By::new(&**self.handoff, self.subject());
        let (core, backing) = (&self.core, &mut self.backing);
        let (written, _) = VIEWS.admit(&self.view, &order, &user, claim, |uses| {
            let written = backing.write(core, begin, data);
            if written.is_ok() {
                // Some drivers run what waits for an event that failed.
                uses.check()?;
            }
            Ok(written)
        })?;
        Ok(written)
    }

    /// Reads bytes from `begin` on, as [`write`](Self::write).
    pub(crate) fn read(&self, begin: usize, data: &mut [u8]) -> Result<Result<()>> {
        self.read_by(self.backing.transfers_by(), || {
            self.backing.read(&self.core, begin, data)
        })
    }

    /// Reads all bytes, by a kernel of the API that does not transfer.
    fn read_otherwise(&self, data: &mut [u8]) -> Result<()> {
        let side = backing::other(self.backing.transfers_by());
        self.read_by(side, || {
            backing::read_by_kernel(&self.core, &**self.backing, side, data)
        })?
    }

    /// What was read counts only if it was written: no hand-off before the read failed, which is checked before another
    /// user can take the failure, and no writer did.
    fn read_by(&self, side: Side, read: impl FnOnce() -> Result<()>) -> Result<Result<()>> {
        let user = self.user_of(side);
        let ((read, writers), _) = self.admit(&user, Access::Read, &self.bytes(), |uses| {
            let read = read();
            if read.is_ok() {
                uses.check()?;
            }
            Ok((read, uses.writers()))
        })?;
        if read.is_ok() {
            writers.iter().try_for_each(User::check_succeeded)?;
        }
        Ok(read)
    }

    /// Who moves bytes from and to the host.
    fn user_of(&self, side: Side) -> User {
        match side {
            Side::Cl => User::Cl(self.core.queue.clone()),
            Side::Hip => User::of(&self.core.stream),
        }
    }

    /// The data, in host memory.
    fn rescue(&self) -> Result<Vec<u8>> {
        let _scope = self.core.meter.scope(Category::DataSet);
        let mut data = vec![0; self.backing.bytes()];
        if let Err(error) = self.read(0, &mut data)? {
            self.read_otherwise(&mut data).map_err(|second| Error::Failed {
                tried: vec![
                    (self.route(), error.to_string()),
                    (self.route(), format!("by the other API: {second}")),
                ],
            })?;
        }
        Ok(data)
    }

    /// The same data in memory of this route.
    pub(crate) fn moved_to(&self, route: Route) -> Result<Self> {
        self.holding(route, &self.rescue()?, Arc::clone(&self.next))
    }

    /// Memory of the next permitted route, with the data as it was, or as it was to be.
    ///
    /// Memory that another buffer shows too stays where it is: the two would part ways.
    pub(crate) fn failed_over(&self, during: &'static str, error: Error, data: Option<&[u8]>) -> Result<Self> {
        // No route outlives the process.
        if matches!(error, Error::ProcessEnds) || self.next.is_empty() || !VIEWS.seal(&self.view) {
            return Err(error);
        }
        self.next_that_works(during, error, data)
            .inspect_err(|_| VIEWS.unseal(&self.view))
    }

    fn next_that_works(&self, during: &'static str, error: Error, data: Option<&[u8]>) -> Result<Self> {
        let from = self.route();
        let mut reason = error.to_string();
        let rescued;
        let data = match data {
            Some(data) => data,
            None => {
                rescued = self.rescue().map_err(|lost| Error::Failed {
                    tried: vec![(from, format!("{reason}; then the data could not be read: {lost}"))],
                })?;
                &rescued
            }
        };
        let mut tried = vec![(from, reason.clone())];
        for (index, &to) in self.next.iter().enumerate() {
            match self.holding(to, data, self.next[index + 1..].into()) {
                Ok(new) => {
                    self.core.note_failover(Failover {
                        from,
                        to,
                        during,
                        reason,
                    });
                    return Ok(new);
                }
                Err(error) => {
                    reason = error.to_string();
                    tried.push((to, reason.clone()));
                }
            }
        }
        Err(Error::Failed { tried })
    }

    /// As [`failed_over`](Self::failed_over) while readers are alive, and no writer. They keep
    /// this memory, and later users get the other.
    pub(crate) fn succeeded(&self, during: &'static str, error: Error) -> Result<&Self> {
        if matches!(error, Error::ProcessEnds) {
            return Err(error);
        }
        let _one_at_a_time = self.succession.lock();
        if let Some(successor) = self.successor.get() {
            return Ok(successor);
        }
        if self.next.is_empty() || !VIEWS.seal(&self.view) {
            return Err(self.under_reader(during, error));
        }
        let new = Box::new(self.failed_over(during, error, None)?);
        Ok(self.successor.get_or_init(|| new))
    }

    /// That the route failed and the memory stays where it is.
    pub(crate) fn under_reader(&self, during: &'static str, error: Error) -> Error {
        Error::UnderReader {
            during,
            route: self.route(),
            next: self.next.first().copied(),
            cause: Box::new(error),
        }
    }

    /// The elements of `range`, which lies in the buffer.
    pub(crate) fn slice<'a, T>(&self, stream: &'a hip::Stream, range: Range<usize>) -> hip::DeviceSlice<'a, T> {
        let ptr = self.backing.hip_ptr().cast::<T>().wrapping_add(range.start);
        // SAFETY: as many aligned elements that the device can read are at the address; the caller that takes
        // the slice was admitted as a reader on this stream, and the memory is freed only after the
        // stream has been waited for. HIP owns what the backing says it owns.
        unsafe {
            if self.backing.is_known_to_hip() {
                hip::DeviceSlice::from_hip_raw_parts(ptr, range.len(), stream)
            } else {
                hip::DeviceSlice::from_raw_parts(ptr, range.len(), stream)
            }
        }
    }

    /// As [`slice`](Self::slice), for a writer.
    pub(crate) fn slice_mut<'a, T>(&self, stream: &'a hip::Stream, range: Range<usize>) -> hip::DeviceSliceMut<'a, T> {
        let ptr = self.backing.hip_ptr().cast::<T>().wrapping_add(range.start);
        // SAFETY: as `slice`; the taker was admitted as the only writer of these elements.
        unsafe {
            if self.backing.is_known_to_hip() {
                hip::DeviceSliceMut::from_hip_raw_parts(ptr, range.len(), stream)
            } else {
                hip::DeviceSliceMut::from_raw_parts(ptr, range.len(), stream)
            }
        }
    }
}

impl Drop for SharedAllocation {
    fn drop(&mut self) {
        let drained = self.view.drain(&self.order());
        // Before the view leaves, for other views have to learn of them.
        let errors = VIEWS.take_errors(&self.view);
        match drained {
            Ok(()) => VIEWS.leave(&self.view),
            // Its users may be at work yet, which other views of the bytes have to wait for. The address
            // reaches no other owner.
            Err(_) => std::mem::forget(Arc::clone(&self.view)),
        }
        for error in errors {
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
