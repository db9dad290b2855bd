//! A thread that ends hand-offs which do not end by themselves, and releases those that have.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::exit::CALLS;
use super::ticket::Ticket;
use crate::Error;

/// The watchdogs of this process.
static ALL: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Ends every hand-off under way, because the process ends: no callback comes any more, and OpenCL's destructors
/// wait for the commands behind a user event (seen with Intel's CPU runtime). Waits no longer than `patience`.
///
/// Call it when no hand-off can begin any more and the drivers still answer.
pub(super) fn end_all(patience: Duration) {
    let until = Instant::now() + patience;
    // Copied: a thread that ends a hand-off may drop a watchdog.
    let Some(all) = ALL.try_lock_until(until).map(|all| all.clone()) else {
        return;
    };
    all.iter()
        .filter_map(Weak::upgrade)
        .for_each(|shared| shared.end(until));
}

pub(crate) struct Watchdog {
    shared: Arc<Shared>,
    limit: Duration,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// Notified when the thread ends.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// By deadline: the limit is the same for all.
    watched: VecDeque<(Instant, Arc<Ticket>)>,
    /// Past their deadline, and a driver may still call back for them.
    late: Vec<Arc<Ticket>>,
    /// To be released by a thread that may call HIP.
    rescues: bool,
    sleeps: bool,
    closed: bool,
    process_ends: bool,
    /// Whether its thread ends what is watched.
    runs: bool,
}

/// Tickets are looked through, not only at the front, when there are this many.
const MANY: usize = 64;
/// How often a closed watchdog checks whether the drivers' threads have let go: soon at first, for
/// they are about to, and then seldom, for a driver may never call back.
const SOON: Duration = Duration::from_millis(1);
const SELDOM: Duration = Duration::from_secs(1);

impl Watchdog {
    pub(crate) fn start(limit: Duration) -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        shared.state.lock().runs = true;
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("interop watchdog".to_owned())
            .spawn(move || theirs.run(limit))?;
        let mut all = ALL.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&shared));
        drop(all);
        Ok(Self { shared, limit })
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// From now on `ticket` is ended when the limit has passed, and kept until it has ended.
    pub(crate) fn watch(&self, ticket: &Arc<Ticket>) {
        let deadline = crate::values::deadline::after(self.limit);
        let mut state = self.shared.state.lock();
        let retired = state.retire();
        state.watched.push_back((deadline, Arc::clone(ticket)));
        let sleeps = mem::take(&mut state.sleeps);
        drop(state);
        if sleeps {
            self.shared.wake.notify_one();
        }
        // Outside of the lock: this may call either API.
        drop(retired);
    }

    /// For callbacks, which outlive the watchdog's owner: ends a ticket as its work ended.
    pub(crate) fn resolver(&self, ticket: &Arc<Ticket>) -> impl FnOnce(crate::Result<()>) + Send + 'static {
        let (ticket, shared) = (Arc::clone(ticket), Arc::clone(&self.shared));
        move |result| {
            let mut rescue = false;
            let resolves = &mut rescue;
            CALLS.make(move || *resolves = ticket.resolve(result));
            if rescue {
                let mut state = shared.state.lock();
                state.rescues = true;
                drop(state);
                shared.wake.notify_one();
            }
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.wake.notify_one();
    }
}

impl State {
    fn has_pending(&self) -> bool {
        let watched = self.watched.iter().map(|(_, ticket)| ticket);
        watched.chain(&self.late).any(|ticket| ticket.is_pending())
    }

    /// Takes out what is retired: from the front, and everywhere if there is much.
    fn retire(&mut self) -> Vec<Arc<Ticket>> {
        let mut retired = Vec::new();
        while let Some((_, ticket)) = self.watched.front()
            && ticket.is_retired()
        {
            retired.extend(self.watched.pop_front().map(|(_, ticket)| ticket));
        }
        if self.watched.len() >= MANY && self.watched.len().is_power_of_two() {
            self.watched.retain(|(_, ticket)| !take_retired(ticket, &mut retired));
        }
        self.late.retain(|ticket| !take_retired(ticket, &mut retired));
        retired
    }
}

fn take_retired(ticket: &Arc<Ticket>, retired: &mut Vec<Arc<Ticket>>) -> bool {
    let is_retired = ticket.is_retired();
    if is_retired {
        retired.push(Arc::clone(ticket));
    }
    is_retired
}

impl Shared {
    /// Makes the thread end what is watched. Not done here: the thread that ends a process has no thread-local storage,
    /// which a driver and the callbacks inside of its calls may need.
    fn end(&self, until: Instant) {
        let Some(mut state) = self.state.try_lock_until(until) else {
            return;
        };
        // A forked process, which has no such thread, has nothing to end unless it was forked meanwhile.
        if state.has_pending() {
            state.process_ends = true;
            self.wake.notify_one();
            self.ended.wait_while_until(&mut state, |state| state.runs, until);
        }
    }

    /// Ends what is watched for good.
    fn leave(&self, state: &mut parking_lot::MutexGuard<'_, State>) {
        let watched = mem::take(&mut state.watched).into_iter().map(|(_, ticket)| ticket);
        let all: Vec<_> = watched.chain(mem::take(&mut state.late)).collect();
        parking_lot::MutexGuard::unlocked(state, || {
            for ticket in &all {
                if ticket.resolve(Err(ticket.parties().failed(Error::ProcessEnds))) {
                    ticket.rescue();
                }
            }
        });
        // What they own must not be released under the drivers' destructors.
        mem::forget(all);
        state.runs = false;
        self.ended.notify_all();
    }

    fn run(&self, limit: Duration) {
        let mut state = self.state.lock();
        let mut pause = SOON;
        loop {
            if state.process_ends {
                return self.leave(&mut state);
            }
            let retired = state.retire();
            if !retired.is_empty() {
                parking_lot::MutexGuard::unlocked(&mut state, || CALLS.make(move || drop(retired)));
                continue;
            }
            if mem::take(&mut state.rescues) {
                let watched = state.watched.iter().map(|(_, ticket)| ticket);
                let all: Vec<_> = watched.chain(&state.late).cloned().collect();
                parking_lot::MutexGuard::unlocked(&mut state, || {
                    CALLS.make(move || all.iter().for_each(|ticket| ticket.rescue()));
                });
                continue;
            }
            let next = state.watched.front().map(|(deadline, _)| *deadline);
            match next {
                Some(deadline) if deadline <= Instant::now() => {
                    if let Some((_, ticket)) = state.watched.pop_front() {
                        // First: the end of the process looks for it meanwhile.
                        state.late.push(Arc::clone(&ticket));
                        parking_lot::MutexGuard::unlocked(&mut state, || {
                            CALLS.make(move || {
                                if ticket.resolve(Err(ticket.parties().late(limit))) {
                                    ticket.rescue();
                                }
                            });
                        });
                    }
                }
                None if state.closed => {
                    if state.late.is_empty() {
                        state.runs = false;
                        return;
                    }
                    // A driver that never calls back keeps its tickets, and this thread.
                    self.wake.wait_for(&mut state, pause);
                    pause = SELDOM.min(2 * pause);
                }
                Some(deadline) if state.closed => {
                    let until = deadline.min(Instant::now() + pause);
                    self.wake.wait_until(&mut state, until);
                    pause = SELDOM.min(2 * pause);
                }
                Some(deadline) => {
                    self.wake.wait_until(&mut state, deadline);
                }
                None => {
                    state.sleeps = true;
                    self.wake.wait(&mut state);
                }
            }
        }
    }
}

#[cfg(test)]
impl Watchdog {
    /// Whether its thread sleeps until there is something to watch.
    pub(super) fn sleeps(&self) -> bool {
        self.shared.state.lock().sleeps
    }

    /// Whether its thread, or a driver's call, holds on to it.
    pub(super) fn runs(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// Gone once its thread has ended.
    pub(super) fn shared(&self) -> std::sync::Weak<dyn Send + Sync> {
        let shared: Arc<dyn Send + Sync> = Arc::clone(&self.shared) as _;
        Arc::downgrade(&shared)
    }
}
