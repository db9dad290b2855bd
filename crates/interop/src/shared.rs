use crate::backing::Backing;
use crate::bridge::Core;
use crate::handoff::{Handoff, Host};
use crate::uses::{Access, User, Uses};
use crate::{
    Category, ClGuard, ClGuardMut, Error, Grade, HipGuard, HipGuardMut, Residency, Result, Route,
};
use bytemuck::Pod;
use parking_lot::Mutex;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// One allocation that OpenCL and HIP both see.
///
/// Fresh memory holds unspecified values. Lengths are in elements of `T`.
///
/// # Ordering
/// What is enqueued under a guard runs after every access that conflicts with it: a writer after
/// everyone else, a reader after writers. With [`Grade::Host`] the guard is granted only then; with
/// the others it is granted at once, and the drivers keep the order. Several readers may hold the
/// buffer at once, on both APIs. Work on one in-order queue or stream is ordered by that queue or
/// stream and never waits on the host.
///
/// # When the other side fails
/// The work after it was enqueued already, and runs on what there is. The failure comes from the
/// buffer's next guard, upload or download ([`Error::HandoffFailed`], [`Error::HandoffTimeout`]), or
/// as a deferred error if there is none. The access after that waits on the host for everyone.
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
    backing: ManuallyDrop<Backing<T>>,
    uses: Mutex<Uses>,
    handoff: ManuallyDrop<Arc<dyn Handoff>>,
}

impl<T: Pod> Shared<T> {
    /// Allocates on exactly this route.
    pub(crate) fn on_route(core: &Arc<Core>, route: Route, len: usize) -> Result<Self> {
        if len == 0 {
            return Err(Error::Empty);
        }
        let element = size_of::<T>().max(1);
        if len
            .checked_mul(element)
            .is_none_or(|bytes| isize::try_from(bytes).is_err())
        {
            return Err(Error::TooLarge { len, element });
        }
        let backing = Backing::allocate(core, route, len)?;
        let residency = backing.residency(core);
        Ok(Self {
            core: Arc::clone(core),
            len,
            residency,
            backing: ManuallyDrop::new(backing),
            uses: Mutex::default(),
            handoff: ManuallyDrop::new(Arc::new(Host::new(None))),
        })
    }

    /// Hands over this way from now on, if the host makes no copies at every change of side.
    pub(crate) fn handed_over_by(mut self, handoff: &Arc<dyn Handoff>) -> Self {
        if !self.is_copy() {
            *self.handoff = Arc::clone(handoff);
        }
        self
    }

    /// Whether every hand-off so far that has come to an end went well.
    pub(crate) fn check_handoffs(&self) -> Result<()> {
        self.uses.lock().check()
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

    /// How a change of side is ordered. A route that copies hands over by the host, whatever the
    /// bridge's grade.
    #[must_use]
    pub fn grade(&self) -> Grade {
        self.handoff.grade()
    }

    /// The address each API uses, OpenCL's first, where both are known: equal addresses are how a
    /// route that promises one address shows it.
    #[must_use]
    pub fn addresses(&self) -> Option<(usize, usize)> {
        self.backing.addresses()
    }

    /// Read access for kernels on `queue`.
    ///
    /// # Errors
    /// If the queue is of another context, or if waiting for HIP's writers fails.
    pub fn cl<'a>(&'a self, queue: &'a clmgr::Queue) -> Result<ClGuard<'a, T>> {
        self.grant_cl(queue, Access::Read)?;
        Ok(ClGuard::new(self.backing.cl_arg()))
    }

    /// Read and write access for kernels on `queue`.
    ///
    /// # Errors
    /// If the queue is of another context, or if waiting for other users fails.
    pub fn cl_mut<'a>(&'a mut self, queue: &'a clmgr::Queue) -> Result<ClGuardMut<'a, T>> {
        self.grant_cl(queue, Access::Write)?;
        Ok(ClGuardMut::new(self.backing.cl_arg()))
    }

    /// Read access for HIP work on `stream`.
    ///
    /// # Errors
    /// If the stream is of another device, or if waiting for OpenCL's writers fails.
    pub fn hip<'a>(&'a self, stream: &'a hip::Stream) -> Result<HipGuard<'a, T>> {
        self.grant_hip(stream, Access::Read)?;
        Ok(HipGuard::new(self.backing.hip_slice(self.len, stream)))
    }

    /// Read and write access for HIP work on `stream`.
    ///
    /// # Errors
    /// If the stream is of another device, or if waiting for other users fails.
    pub fn hip_mut<'a>(&'a mut self, stream: &'a hip::Stream) -> Result<HipGuardMut<'a, T>> {
        self.grant_hip(stream, Access::Write)?;
        Ok(HipGuardMut::new(
            self.backing.hip_slice_mut(self.len, stream),
        ))
    }

    /// Fills the buffer from host memory and returns when the bytes are there. Counted as
    /// [`Category::Input`].
    ///
    /// # Errors
    /// If the lengths differ or a driver call fails.
    #[track_caller]
    pub fn upload(&mut self, data: &[T]) -> Result<()> {
        self.check_length("upload", data.len())?;
        let _scope = self.core.meter.scope(Category::Input);
        let uses = self.uses.get_mut();
        let user = User::Cl(self.core.queue.clone());
        uses.admit(&**self.handoff, self.backing.cl_arg(), &user, Access::Write)?;
        self.backing.write(&self.core, data)?;
        // Some drivers run what waits for an event that failed.
        uses.check()
    }

    /// Copies the buffer to host memory and returns when the bytes are there. Counted as
    /// [`Category::Result`].
    ///
    /// # Errors
    /// If the lengths differ or a driver call fails.
    #[track_caller]
    pub fn download(&self, data: &mut [T]) -> Result<()> {
        self.check_length("download", data.len())?;
        let _scope = self.core.meter.scope(Category::Result);
        let mut uses = self.uses.lock();
        let user = User::Cl(self.core.queue.clone());
        uses.admit(&**self.handoff, self.backing.cl_arg(), &user, Access::Read)?;
        self.backing.read(&self.core, data)?;
        // Some drivers run what waits for an event that failed.
        uses.check()
    }

    /// The lock is held while the driver works, so that two readers do not stage twice.
    fn grant_cl(&self, queue: &clmgr::Queue, access: Access) -> Result<()> {
        if queue.context().raw() != self.core.context.raw() {
            return Err(Error::OtherOwner {
                what: "queue",
                owner: "context",
            });
        }
        let mut uses = self.uses.lock();
        let user = User::Cl(queue.clone());
        uses.admit(&**self.handoff, self.backing.cl_arg(), &user, access)?;
        self.backing.bring_to_cl(&self.core, access)
    }

    fn grant_hip(&self, stream: &hip::Stream, access: Access) -> Result<()> {
        if stream.device().ordinal() != self.core.hip_device.ordinal() {
            return Err(Error::OtherOwner {
                what: "stream",
                owner: "device",
            });
        }
        let mut uses = self.uses.lock();
        let user = User::Hip(stream.clone());
        uses.admit(&**self.handoff, self.backing.cl_arg(), &user, access)?;
        self.backing.bring_to_hip(&self.core, access)
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

impl<T: Pod> Drop for Shared<T> {
    fn drop(&mut self) {
        let uses = self.uses.get_mut();
        let drained = uses.drain(&**self.handoff);
        for error in uses.take_errors() {
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
