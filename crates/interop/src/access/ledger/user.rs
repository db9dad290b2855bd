use super::Worker;
use crate::Result;

/// A queue or stream that was given access to memory.
pub(crate) enum User {
    Cl(clmgr::Queue),
    /// [For records](hip::Stream::for_record) only, as its clones are.
    Hip(hip::Stream),
}

impl Clone for User {
    fn clone(&self) -> Self {
        match self {
            Self::Cl(queue) => Self::Cl(queue.clone()),
            Self::Hip(stream) => Self::of(stream),
        }
    }
}

impl User {
    pub(crate) fn of(stream: &hip::Stream) -> Self {
        // SAFETY: users are waited for and ordered, and receive no work that uses memory.
        Self::Hip(unsafe { stream.for_record() })
    }

    /// Blocks until everything that was given to the queue or stream so far has run.
    pub(crate) fn wait(&self) -> Result<()> {
        match self {
            // Its deferred errors are for the holder of the queue: they are not about this work.
            Self::Cl(queue) => queue.drain().map_err(Into::into),
            Self::Hip(stream) => stream.synchronize().map_err(Into::into),
        }
    }

    /// For work that has ended: whether it succeeded. A failed OpenCL command fails what waits for its event. OpenCL
    /// does not learn of failed HIP work, so the stream is asked; HIP answers with the failure as often as it is asked.
    pub(crate) fn check_succeeded(&self) -> Result<()> {
        match self {
            Self::Hip(stream) if !stream.is_capturing() => {
                stream.is_idle()?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a stream that is being captured: it does not run now, waiting for one of its events
    /// would draw the waiting stream into the graph, and waiting for the stream invalidates the
    /// capture.
    pub(crate) fn check_runs(&self) -> Result<()> {
        match self {
            Self::Hip(stream) if stream.is_capturing() => Err(crate::Error::Capturing {
                stream: stream.raw().addr(),
            }),
            _ => Ok(()),
        }
    }
}

impl Worker for User {
    type Mark = clmgr::Event;

    /// Handles do not identify streams: every device has a default stream, and its handle is null.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Cl(a), Self::Cl(b)) => a.raw() == b.raw(),
            (Self::Hip(a), Self::Hip(b)) => a.raw() == b.raw() && a.device() == b.device(),
            _ => false,
        }
    }

    fn shares_api(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Cl(_), Self::Cl(_)) | (Self::Hip(_), Self::Hip(_)))
    }

    /// OpenCL orders the commands of one queue by the objects and addresses they use, and may treat
    /// two views as unrelated (clr: rocclr/device/rocm/rocvirtual.cpp, the dependency tracking of
    /// dispatches); a HIP stream keeps its order whatever the memory.
    fn orders_any_memory(&self) -> bool {
        matches!(self, Self::Hip(_))
    }

    /// A guard for HIP gives slices that outlive it within this crate, and what else keeps a queue, the records of its
    /// OpenCL memory for example, cannot be told from a holder: so guards are counted for queues, and holders for
    /// streams.
    fn may_read_more(&self, held: bool) -> bool {
        match self {
            Self::Cl(_) => held,
            // A user of a foreign stream may have come by another value for it.
            Self::Hip(stream) => stream.is_foreign() || stream.is_held(),
        }
    }

    fn counts_guards(&self) -> bool {
        match self {
            Self::Cl(_) => true,
            // A stream counts its own holders.
            Self::Hip(_) => false,
        }
    }

    /// The last owner of a stream waits for all of its work, so the stream is idle here; a released
    /// queue continues on its own.
    fn has_ended(&self, mark: &mut Option<clmgr::Event>) -> Result<bool> {
        match (self, mark) {
            (Self::Hip(stream), _) => Ok(!stream.is_capturing() && stream.is_idle()?),
            (Self::Cl(_), Some(event)) => Ok(event.is_complete()?),
            (Self::Cl(queue), mark) => {
                *mark = Some(queue.record()?);
                queue.flush()?;
                Ok(false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bridge, Options};

    fn bridge() -> Bridge {
        let selection = platform::select_named(Some("host")).expect("the host platform");
        Bridge::open(&selection, &Options::default()).expect("a bridge; run `cargo xtask setup` if OpenCL is missing")
    }

    #[test]
    fn a_queue_or_stream_is_the_same_as_its_clones_only() {
        let bridge = bridge();
        let [queue, other_queue] = [(); 2].map(|()| bridge.queue().expect("a queue"));
        let [stream, other_stream] = [(); 2].map(|()| bridge.stream().expect("a stream"));
        let users = || {
            [
                User::Cl(queue.clone()),
                User::Cl(other_queue.clone()),
                User::of(&stream),
                User::of(&other_stream),
            ]
        };
        for (one, user) in users().iter().enumerate() {
            for (two, other) in users().iter().enumerate() {
                assert_eq!(user.is_same(other), one == two, "{one} and {two}");
                assert_eq!(user.shares_api(other), one / 2 == two / 2);
            }
        }
        assert_eq!(users().map(|user| user.orders_any_memory()), [false, false, true, true]);
        assert_eq!(users().map(|user| user.counts_guards()), [true, true, false, false]);
    }

    #[test]
    fn a_reader_may_read_more_while_it_has_a_guard_or_a_holder() {
        let bridge = bridge();
        let queue = User::Cl(bridge.queue().expect("a queue"));
        assert!(queue.may_read_more(true) && !queue.may_read_more(false));
        let stream = bridge.stream().expect("a stream");
        let user = User::of(&stream);
        assert!(user.may_read_more(false));
        drop(stream);
        assert!(!user.may_read_more(true));
        // SAFETY: the default stream is never destroyed.
        let foreign = unsafe { hip::Stream::from_raw(bridge.hip_device(), std::ptr::null_mut(), ()) };
        let user = User::of(&foreign.expect("the default stream"));
        assert!(user.may_read_more(false), "it has another value for it");
    }

    #[test]
    fn a_stream_that_is_captured_does_not_run() {
        let bridge = bridge();
        let stream = bridge.stream().expect("a stream");
        let other = bridge.stream().expect("a stream");
        let queue = User::Cl(bridge.queue().expect("a queue"));
        let captured = stream.capture(|_| {
            let refused = User::of(&stream).check_runs();
            assert!(matches!(refused, Err(crate::Error::Capturing { .. })));
            User::of(&other).check_runs().expect("it is not captured");
            queue.check_runs().expect("a queue");
            Ok(())
        });
        drop(captured);
        User::of(&stream).check_runs().expect("it is captured no more");
    }

    #[test]
    fn a_user_has_ended_with_the_work_that_it_had() {
        let bridge = bridge();
        let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
        let held = clmgr::UserEvent::new(bridge.cl_context()).expect("a user event");
        queue.wait_for(held.event()).expect("a wait");
        let (user, mut mark) = (User::Cl(queue), None);
        for _ in 0..3 {
            assert!(!user.has_ended(&mut mark).expect("no failure"));
        }
        assert!(mark.is_some());
        held.complete().expect("a user event");
        mark.as_ref()
            .map(clmgr::Event::wait)
            .expect("a mark")
            .expect("no failure");
        assert!(user.has_ended(&mut mark).expect("no failure"));

        let (open, gate) = std::sync::mpsc::channel::<()>();
        let wait = move || {
            let _: Result<(), _> = gate.recv();
        };
        stream.host_function(wait).expect("a host function");
        let user = User::of(&stream);
        assert!(!user.has_ended(&mut None).expect("no failure"));
        drop(open);
        stream.synchronize().expect("no failure");
        assert!(user.has_ended(&mut None).expect("no failure"));
        let captured = stream.capture(|_| {
            assert!(!user.has_ended(&mut None).expect("no failure"));
            Ok(())
        });
        drop(captured);
    }
}
