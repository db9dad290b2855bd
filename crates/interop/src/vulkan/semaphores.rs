//! [`Grade::Device`] by Vulkan semaphores that both drivers import: no memory is polled, and the host has no part in
//! it.
//!
//! A binary semaphore must not be signalled again before its wait is done, and one queue may hand
//! over to one stream many times before the first wait is. So each hand-off takes a semaphore of its
//! own from a [pool](super::pool).

use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use clmgr::SemaphoreKind;
use parking_lot::Mutex;

use super::link::Link;
use super::pool::{IsDone, Pool};
use super::semaphore::Semaphore;
use crate::access::{Ordered, Outcome, User};
use crate::core::Core;
use crate::handoff::{self, Handoff, LetGo, Parties, Side, Ticket, Watchdog};
use crate::values::Mechanisms;
use crate::{Error, Grade, Result};

/// One semaphore, as three APIs know it.
struct Shared {
    // The imports are released before what they import.
    cl: clmgr::Semaphore,
    hip: hip::ExternalSemaphore,
    vulkan: Semaphore,
    /// Who used it last: a driver's semaphore may remember its queue, which must not be gone first.
    users: Mutex<Option<(clmgr::Queue, hip::Stream)>>,
}

impl Shared {
    fn new(core: &Core, link: &Link) -> Result<Arc<Self>> {
        let vulkan = link.semaphore()?;
        let fd = vulkan.export()?;
        let hip = core.hip_device.import_semaphore(fd.as_fd())?;
        drop(fd);
        let fd = vulkan.export()?;
        // SAFETY: an opaque descriptor of a semaphore.
        let cl = unsafe { clmgr::Semaphore::import(&core.context, SemaphoreKind::OPAQUE_FD, fd) }?;
        Ok(Arc::new(Self {
            cl,
            hip,
            vulkan,
            users: Mutex::default(),
        }))
    }

    /// For a watchdog that may outlive the grade.
    fn ticket(self: &Arc<Self>, parties: Parties) -> Arc<Ticket> {
        let weak: Weak<Self> = Arc::downgrade(self);
        Ticket::of_signal(parties, weak)
    }
}

impl LetGo for Shared {
    /// A third party signals in the place of the one that did not.
    fn let_go(&self) -> Result<()> {
        Ok(self.vulkan.force()?)
    }
}

/// What shows that a semaphore's wait is done.
enum Wait {
    Stream(hip::Event),
    Queue(clmgr::Event),
}

impl IsDone for Wait {
    fn is_done(&self) -> bool {
        match self {
            Self::Stream(event) => event.is_complete(),
            Self::Queue(event) => return event.is_complete().unwrap_or(false),
        }
        .unwrap_or(false)
    }
}

pub(super) struct Semaphores {
    // Dropped before the link that made them.
    pool: Mutex<Pool<Arc<Shared>, Wait>>,
    core: Arc<Core>,
    link: Arc<Link>,
    watchdog: Watchdog,
}

fn no_grade(reason: String) -> Error {
    Error::NoGrade {
        grade: Grade::Device,
        reason,
    }
}

impl Semaphores {
    /// # Errors
    /// [`Error::NoGrade`] if one of the drivers does not take Vulkan's semaphores.
    pub(super) fn start(core: &Arc<Core>, link: &Arc<Link>, limit: Duration) -> Result<Self> {
        let first = Shared::new(core, link).map_err(|error| no_grade(error.to_string()))?;
        let watchdog =
            Watchdog::start(limit).map_err(|error| no_grade(format!("its watchdog thread does not start: {error}")))?;
        Ok(Self {
            pool: Mutex::new(Pool::with(first)),
            core: Arc::clone(core),
            link: Arc::clone(link),
            watchdog,
        })
    }

    fn take(&self) -> Result<Arc<Shared>> {
        match self.pool.lock().take() {
            Some(semaphore) => Ok(semaphore),
            None => Shared::new(&self.core, &self.link),
        }
    }

    /// The event ends where the hand-off does; its failure is that of the side before.
    fn watch(&self, ticket: &Arc<Ticket>, event: &clmgr::Event, parties: Parties) -> Result<()> {
        self.watchdog.watch(ticket);
        let resolve = self.watchdog.resolver(ticket);
        let told = event.on_complete(move |end| resolve(end.map_err(|error| parties.failed(error))));
        Ok(told.inspect_err(|_| ticket.withdraw())?)
    }

    fn cl_to_hip(&self, queue: &clmgr::Queue, stream: &hip::Stream, parties: Parties) -> Result<Arc<Outcome>> {
        let _under_way = handoff::begin()?;
        let semaphore = self.take()?;
        *semaphore.users.lock() = Some((queue.clone(), stream.clone()));
        let ticket = semaphore.ticket(parties);
        let handed = (|| {
            let event = semaphore.cl.signal(queue)?;
            // The driver may hold back what was not flushed, and HIP's wait with it.
            queue.flush()?;
            self.watch(&ticket, &event, parties)?;
            let waits = semaphore.hip.wait(stream, 0);
            waits.inspect_err(|_| ticket.withdraw())?;
            Ok(stream.record()?)
        })();
        self.enter(semaphore, ticket.outcome(), handed.map(Wait::Stream))
    }

    fn hip_to_cl(&self, stream: &hip::Stream, queue: &clmgr::Queue, parties: Parties) -> Result<Arc<Outcome>> {
        let _under_way = handoff::begin()?;
        let semaphore = self.take()?;
        *semaphore.users.lock() = Some((queue.clone(), stream.clone()));
        let ticket = semaphore.ticket(parties);
        let handed = (|| {
            semaphore.hip.signal(stream, 0)?;
            let event = semaphore.cl.wait(queue)?;
            queue.flush()?;
            // HIP says nothing of a failure here; the stream's next call does.
            self.watch(&ticket, &event, parties)?;
            Ok(event)
        })();
        self.enter(semaphore, ticket.outcome(), handed.map(Wait::Queue))
    }

    fn enter(&self, semaphore: Arc<Shared>, outcome: &Arc<Outcome>, handed: Result<Wait>) -> Result<Arc<Outcome>> {
        let mut pool = self.pool.lock();
        match handed {
            Ok(wait) => {
                pool.lend(semaphore, wait, Arc::clone(outcome));
                Ok(Arc::clone(outcome))
            }
            Err(error) => {
                pool.spoil(semaphore);
                Err(error)
            }
        }
    }
}

impl Handoff for Semaphores {
    fn grade(&self) -> Grade {
        Grade::Device
    }

    fn mechanisms(&self) -> Mechanisms {
        Mechanisms {
            cl_to_hip: "a Vulkan semaphore",
            hip_to_cl: "a Vulkan semaphore",
        }
    }

    fn limit(&self) -> Option<Duration> {
        Some(self.watchdog.limit())
    }

    fn follows_queues(&self) -> bool {
        true
    }

    fn order(&self, before: &User, after: &User, _: clmgr::Arg<'_>) -> Result<Ordered> {
        let parties = Parties {
            grade: Grade::Device,
            before: Side::of(before),
            after: Side::of(after),
        };
        Ok(Ordered::Queued(match (before, after) {
            (User::Cl(queue), User::Hip(stream)) => Some(self.cl_to_hip(queue, stream, parties)?),
            (User::Hip(stream), User::Cl(queue)) => Some(self.hip_to_cl(stream, queue, parties)?),
            (User::Cl(before), User::Cl(after)) => {
                after.wait_for_queue(before)?;
                None
            }
            (User::Hip(before), User::Hip(after)) => {
                after.wait_for(before)?;
                None
            }
        }))
    }
}

impl Drop for Semaphores {
    fn drop(&mut self) {
        // A driver may signal or wait for these after all: they, and the device below them, stay.
        for semaphore in self.pool.get_mut().take_unsafe() {
            std::mem::forget((semaphore, Arc::clone(&self.link)));
        }
    }
}
