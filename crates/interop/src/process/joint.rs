use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::Pod;

use super::lent::keep;
use super::message::{Body, Message};
use super::{Carrier, Link, PeerError};
use crate::handoff::check_answers;
use crate::{ClGuard, ClGuardMut, Error, Grade, HipGuard, HipGuardMut, Residency, Result, Route, Shared};

/// A buffer shared with another process; one side at a time has the turn.
///
/// Access is that of [`Shared`], while it is this side's turn. [`pass`](Self::pass) waits until this side's work has
/// ended, under leaked guards too, and passes the turn to the other process; [`take`](Self::take) waits for it.
///
/// # When the other process ends
/// The system hangs up the link, even if the process was killed. A turn passed before can still be taken; then `take`
/// and `pass` return [`PeerError::Gone`], and never wait longer than the link's limit. Access in this side's turn still
/// works, unless the memory belonged to the process that ended and came by [`Carrier::IpcHandle`]
/// ([`PeerError::MemoryGone`]). [`into_shared`](Self::into_shared) turns the rest into an ordinary buffer. If the other
/// side had the turn, the bytes are as it left them.
///
/// # Dropping
/// The importer waits for its own work, releases the memory and hangs up. The exporter hangs up and frees the memory;
/// with [`Carrier::IpcHandle`] it first waits until the importer has released it. If that does not happen within the
/// link's limit, the memory is kept until it does ([`Bridge::lent_out`](crate::Bridge::lent_out)) rather than freed
/// under the other process, and [`Bridge::take_deferred_errors`](crate::Bridge::take_deferred_errors) returns the
/// error.
pub struct Joint<T: Pod> {
    /// `None` only when it has been taken out.
    shared: Option<Shared<T>>,
    link: Link,
    carrier: Carrier,
    role: Role,
    has_turn: bool,
    /// How often either side has passed the turn.
    passed: u64,
    /// When the other side must have ended, if a wait for that has begun.
    ends_by: Option<Instant>,
}

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Exporter,
    Importer,
}

impl<T: Pod> Joint<T> {
    pub(super) fn new(shared: Shared<T>, link: Link, carrier: Carrier, role: Role) -> Self {
        Self {
            shared: Some(shared),
            link,
            carrier,
            role,
            has_turn: role == Role::Exporter,
            passed: 0,
            ends_by: None,
        }
    }

    /// Waits until this side's work on the memory has ended, and passes the turn to the other process. The host hands
    /// over ([`Grade::Host`]): when this returns, all is written.
    ///
    /// # Errors
    /// [`PeerError::NotOurTurn`]; the failure of this side's work, in which case the turn stays here;
    /// [`PeerError::Gone`].
    pub fn pass(&mut self) -> Result<()> {
        let stream = self.granted_mut()?.bring_together()?;
        stream.synchronize()?;
        // The stream may have been let go on because the other side failed, or took too long.
        self.shared_mut().settle()?;
        check_answers()?;
        let turn = Message::here(Body::Turn { passed: self.passed });
        self.link.send(&turn, None, "passing the turn to it")?;
        self.gave_away();
        Ok(())
    }

    /// As [`pass`](Self::pass), but returns at once: the turn goes when this side's work has ended. With a bridge of
    /// [`Grade::Callback`] or [`Grade::Device`] it does not wait for OpenCL work either.
    ///
    /// If HIP's work fails, or OpenCL's fails or does not end within the hand-off's limit, the other side's
    /// [`take`](Self::take) returns it ([`PeerError::Failed`]), in the last case when OpenCL's work has ended after all.
    /// This side's next access reports OpenCL's failure too.
    ///
    /// # Errors
    /// As [`pass`](Self::pass), as far as it is known by then.
    pub fn pass_queued(&mut self) -> Result<()> {
        self.check_turn()?;
        let users = self.shared().allocation().users();
        let stream = self.shared_mut().bring_together()?;
        let (socket, passed) = (Arc::clone(self.link.socket()), self.passed);
        // Whatever lets a stream go notes first why. Not asked of the view, whose lock may be held by one who waits for
        // this stream.
        let handed = self.shared().allocation().on_their_way();
        stream.on_complete(move |result| {
            let failure = match result {
                Ok(()) => handed.iter().find_map(|outcome| outcome.failure()),
                Err(error) => Some(error.to_string()),
            };
            // If the other side has hung up, this side's next `take` says so.
            let send = move |body| _ = socket.send(&Message::here(body), None, "passing the turn to it");
            let Some(reason) = failure else {
                return send(Body::Turn { passed });
            };
            // OpenCL may still be at work, and HIP's own thread must not wait for it. If no thread can start, the other
            // side's `take` ends at its limit.
            let settle = move || {
                for user in users {
                    // A queue that cannot be waited for has lost its device, so it writes no more.
                    _ = user.wait();
                }
                send(Body::FailedTurn { passed, reason });
            };
            _ = std::thread::Builder::new().name("failed turn".to_owned()).spawn(settle);
        })?;
        self.gave_away();
        Ok(())
    }

    /// Waits until the other process passes the turn; returns at once if it is this side's already.
    ///
    /// # Errors
    /// [`PeerError::Late`] after the link's limit, [`PeerError::Gone`], [`PeerError::TakenBack`]; [`PeerError::Failed`]
    /// with the turn, if the other side's work failed.
    pub fn take(&mut self) -> Result<()> {
        if self.has_turn {
            return Ok(());
        }
        let (message, _) = self.link.receive("waiting for it to pass the turn")?;
        self.took(message)
    }

    /// As [`take`](Self::take), without waiting: whether it is this side's turn now.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn try_take(&mut self) -> Result<bool> {
        if !self.has_turn
            && let Some((message, _)) = self.link.poll("waiting for it to pass the turn")?
        {
            self.took(message)?;
        }
        Ok(self.has_turn)
    }

    /// How long this side waits for the other one from now on; at first that is the limit of the link.
    pub fn set_limit(&mut self, limit: Duration) {
        self.link.set_limit(limit);
    }

    /// Whether this side may use the memory.
    #[must_use]
    pub fn has_turn(&self) -> bool {
        self.has_turn
    }

    /// Read access for kernels on `queue`, as [`Shared::cl`].
    ///
    /// # Errors
    /// [`PeerError::NotOurTurn`], [`PeerError::MemoryGone`], and as [`Shared::cl`].
    pub fn cl<'a>(&'a self, queue: &'a clmgr::Queue) -> Result<ClGuard<'a, T>> {
        self.granted()?.cl(queue)
    }

    /// Read and write access for kernels on `queue`, as [`Shared::cl_mut`].
    ///
    /// # Errors
    /// [`PeerError::NotOurTurn`], [`PeerError::MemoryGone`], and as [`Shared::cl_mut`].
    pub fn cl_mut<'a>(&'a mut self, queue: &'a clmgr::Queue) -> Result<ClGuardMut<'a, T>> {
        self.granted_mut()?.cl_mut(queue)
    }

    /// Read access for HIP work on `stream`, as [`Shared::hip`].
    ///
    /// # Errors
    /// [`PeerError::NotOurTurn`], [`PeerError::MemoryGone`], and as [`Shared::hip`].
    pub fn hip<'a>(&'a self, stream: &'a hip::Stream) -> Result<HipGuard<'a, T>> {
        self.granted()?.hip(stream)
    }

    /// Read and write access for HIP work on `stream`, as [`Shared::hip_mut`].
    ///
    /// # Errors
    /// [`PeerError::NotOurTurn`], [`PeerError::MemoryGone`], and as [`Shared::hip_mut`].
    pub fn hip_mut<'a>(&'a mut self, stream: &'a hip::Stream) -> Result<HipGuardMut<'a, T>> {
        self.granted_mut()?.hip_mut(stream)
    }

    /// The buffer for reading in this side's turn, for code that takes a [`Shared`], such as
    /// [`Peer::copy`](crate::Peer::copy).
    ///
    /// # Errors
    /// [`PeerError::NotOurTurn`], [`PeerError::MemoryGone`].
    pub fn view(&self) -> Result<&Shared<T>> {
        self.granted()
    }

    /// Fills the buffer from host memory, as [`Shared::upload`].
    ///
    /// # Errors
    /// [`PeerError::NotOurTurn`], [`PeerError::MemoryGone`], and as [`Shared::upload`].
    #[track_caller]
    pub fn upload(&mut self, data: &[T]) -> Result<()> {
        self.granted_mut()?.upload(data)
    }

    /// Copies the buffer to host memory, as [`Shared::download`].
    ///
    /// # Errors
    /// [`PeerError::NotOurTurn`], [`PeerError::MemoryGone`], and as [`Shared::download`].
    #[track_caller]
    pub fn download(&self, data: &mut [T]) -> Result<()> {
        self.granted()?.download(data)
    }

    /// The buffer for this process alone, once the other one has ended, or has dropped its side.
    ///
    /// The exporter asks the importer for it (whose [`take`](Self::take) returns [`PeerError::TakenBack`]); the
    /// importer waits for the exporter's end. It does not matter which side has the turn.
    ///
    /// # Errors
    /// [`PeerError::Late`] if the other process stays for longer than the link's limit; this side is dropped then.
    /// For the importer, [`PeerError::MemoryGone`] if the memory came by [`Carrier::IpcHandle`], and
    /// [`PeerError::TakenBack`].
    pub fn into_shared(mut self) -> Result<Shared<T>> {
        if self.role == Role::Exporter {
            // If it has ended, there is no process to ask.
            let asked = Message::here(Body::TakenBack);
            let _ = self.link.send(&asked, None, "taking the memory back");
        }
        self.wait_for_end()?;
        if self.role == Role::Importer && !self.carrier.outlives_exporter() {
            return Err(self.memory_gone());
        }
        Ok(self.shared.take().expect("it is taken out once, here"))
    }

    /// Number of elements, at least one.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a shared buffer is never empty")]
    pub fn len(&self) -> usize {
        self.shared().len()
    }

    /// How the two APIs of this process reach the memory.
    #[must_use]
    pub fn route(&self) -> Route {
        self.shared().route()
    }

    /// The address each API of this process uses, as [`Shared::addresses`]. The other process has others.
    #[must_use]
    pub fn addresses(&self) -> Option<(usize, usize)> {
        self.shared().addresses()
    }

    /// Where the bytes live.
    #[must_use]
    pub fn residency(&self) -> Residency {
        self.shared().residency()
    }

    /// How a change of side within this process is ordered.
    #[must_use]
    pub fn grade(&self) -> Grade {
        self.shared().grade()
    }

    /// How the memory came to the other process.
    #[must_use]
    pub fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// The number of the other process.
    #[must_use]
    pub fn peer(&self) -> Option<u32> {
        self.link.peer()
    }

    fn shared(&self) -> &Shared<T> {
        self.shared.as_ref().expect("only the end takes it out")
    }

    fn shared_mut(&mut self) -> &mut Shared<T> {
        self.shared.as_mut().expect("only the end takes it out")
    }

    fn granted(&self) -> Result<&Shared<T>> {
        self.check_turn()?;
        Ok(self.shared())
    }

    pub(crate) fn granted_mut(&mut self) -> Result<&mut Shared<T>> {
        self.check_turn()?;
        Ok(self.shared_mut())
    }

    fn check_turn(&self) -> Result<()> {
        if !self.has_turn {
            return Err(PeerError::NotOurTurn {
                process: self.link.process(),
            }
            .into());
        }
        let borrowed = self.role == Role::Importer && !self.carrier.outlives_exporter();
        if borrowed && self.link.is_hung_up() {
            return Err(self.memory_gone());
        }
        Ok(())
    }

    fn gave_away(&mut self) {
        self.passed += 1;
        self.has_turn = false;
    }

    fn took(&mut self, message: Message) -> Result<()> {
        let process = self.link.process();
        let wrong = |reason: String| Err(PeerError::Message { process, reason }.into());
        let (passed, failure) = match message.body {
            Body::Turn { passed } => (passed, None),
            Body::FailedTurn { passed, reason } => (passed, Some(reason)),
            Body::TakenBack => return Err(PeerError::TakenBack { process }.into()),
            _ => return wrong("expected a turn".into()),
        };
        if passed != self.passed {
            return wrong(format!("got turn {passed}, expected turn {}", self.passed));
        }
        self.passed += 1;
        self.has_turn = true;
        match failure {
            None => Ok(()),
            Some(reason) => Err(PeerError::Failed { process, reason }.into()),
        }
    }

    /// Waits until the other side has hung up, in total no longer than the link's limit over all calls.
    fn wait_for_end(&mut self) -> Result<()> {
        let deadline = *self.ends_by.get_or_insert_with(|| self.link.deadline());
        loop {
            let during = "waiting for it to close the link";
            let (message, _) = match self.link.receive_until(deadline, during) {
                Ok(received) => received,
                Err(Error::Peer(PeerError::Gone { .. })) => return Ok(()),
                Err(error) => return Err(error),
            };
            if message.body == Body::TakenBack {
                let process = self.link.process();
                return Err(PeerError::TakenBack { process }.into());
            }
            // A side that keeps talking has not ended.
            if Instant::now() >= deadline {
                return Err(self.link.late(during).into());
            }
        }
    }

    fn memory_gone(&self) -> Error {
        PeerError::MemoryGone {
            process: self.link.process(),
        }
        .into()
    }
}

impl<T: Pod> Drop for Joint<T> {
    fn drop(&mut self) {
        let Some(mut shared) = self.shared.take() else {
            return;
        };
        // A turn that is queued goes first.
        let settled = shared.settle();
        match (self.role, &settled) {
            (Role::Importer, Ok(())) => drop(shared),
            (role, Err(_)) if role == Role::Importer || self.carrier.outlives_exporter() => {
                // Work continues in memory that the other process shares, and it must not take this for the end.
                std::mem::forget(Arc::clone(self.link.socket()));
                drop(shared);
            }
            _ => {
                self.link.finish();
                if !self.carrier.outlives_exporter()
                    && let Err(error) = self.wait_for_end()
                {
                    shared.core().defer(error);
                    keep(shared, Arc::clone(self.link.socket()));
                }
            }
        }
    }
}

impl<T: Pod> std::fmt::Debug for Joint<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Joint")
            .field("shared", &self.shared)
            .field("carrier", &self.carrier)
            .field("role", &self.role)
            .field("has_turn", &self.has_turn)
            .field("peer", &self.peer())
            .finish_non_exhaustive()
    }
}
