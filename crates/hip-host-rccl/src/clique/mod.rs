//! The ranks of a communicator: who is there, and whose calls belong together.
//!
//! A call gets its place when it is issued: the n-th collective of its rank, or the n-th message to or from a peer. It
//! arrives there when its stream gets to it. The last to arrive does the work for all, and the others wait.

mod matching;
mod split;

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};
pub(crate) use split::Part;
use split::Split;

use crate::limit::time_limit;
use crate::meeting::{Meeting, Parting, Wait, Wish};
use crate::operation::{Kind, Operation};
use crate::place::{Message, Place};
use crate::status::{Failure, Outcome};
use crate::transfer;
use crate::wire::{self, Reply};

/// Who belongs together.
pub(crate) struct Clique {
    ranks: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The device of each rank that is there.
    joined: Vec<Option<i32>>,
    members: Vec<Member>,
    collectives: HashMap<u64, Vec<Option<Arrival>>>,
    sends: HashMap<Message, Arrival>,
    recvs: HashMap<Message, Arrival>,
    splits: HashMap<u64, Split>,
    /// Connections of ranks in other processes, which want to know of a failure at once.
    watchers: Vec<UnixStream>,
    /// Calls of ranks in other processes, until they have their results.
    served: Vec<Arc<Ticket>>,
    /// Ranks of this process.
    here: usize,
    /// The first; it stays.
    failure: Option<Arc<Failure>>,
    /// Whether the failure is an abort, which ends the work of streams without failing them.
    aborted: bool,
}

/// What is known of one rank.
#[derive(Default, Clone)]
struct Member {
    collectives: u64,
    sends: HashMap<usize, u64>,
    recvs: HashMap<usize, u64>,
    /// Calls that were issued and have not ended.
    under_way: usize,
    gone: bool,
}

/// One rank's call, waiting for the others.
#[derive(Clone)]
struct Arrival {
    operation: Operation,
    ticket: Arc<Ticket>,
}

/// How far an operation is. Changed under the clique's lock.
#[derive(Default)]
pub(crate) struct Ticket(AtomicU8);

const WAITING: u8 = 0;
/// Its memory is in use, so its rank may not leave.
const RUNNING: u8 = 1;
const DONE: u8 = 2;
/// Another process has the result, or will never ask for it.
const TOLD: u8 = 3;

impl Ticket {
    fn set(&self, stage: u8) {
        self.0.store(stage, Ordering::Relaxed);
    }

    fn stage(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether the result is there.
    pub(crate) fn is_done(&self) -> bool {
        self.stage() == DONE
    }
}

impl Clique {
    pub(crate) fn new(ranks: usize) -> Arc<Self> {
        Arc::new(Self {
            ranks,
            state: Mutex::new(State {
                joined: vec![None; ranks],
                members: vec![Member::default(); ranks],
                collectives: HashMap::new(),
                sends: HashMap::new(),
                recvs: HashMap::new(),
                splits: HashMap::new(),
                watchers: Vec::new(),
                served: Vec::new(),
                here: 0,
                failure: None,
                aborted: false,
            }),
            changed: Condvar::new(),
        })
    }
    /// Whether every rank is there.
    pub(crate) fn is_complete(&self) -> bool {
        self.state.lock().joined.iter().all(Option::is_some)
    }

    /// Adds a rank that expects `ranks` of them. A fault fails the communicator for all ranks.
    pub(crate) fn join(&self, rank: usize, ranks: usize, device: i32) -> Outcome {
        let mut state = self.state.lock();
        state.check()?;
        let fault = if ranks != self.ranks {
            Some(format!("rank {rank} expects {ranks} ranks, another one {}", self.ranks))
        } else if state.joined[rank].is_some() {
            Some(format!("rank {rank} joins twice"))
        } else {
            let same = state.joined.iter().position(|other| *other == Some(device));
            same.map(|other| format!("ranks {other} and {rank} are both on device {device}: give each its own"))
        };
        if let Some(fault) = fault {
            self.fail(&mut state, Failure::usage(format!("ncclCommInitRank: {fault}")));
            return state.check();
        }
        state.joined[rank] = Some(device);
        self.changed.notify_all();
        Ok(())
    }
    /// The stream of `rank` gets to its call. Does the operation if it was the last that was missing.
    fn enter(&self, rank: usize, place: Place, operation: Operation) -> Arc<Ticket> {
        self.enter_with(Arc::default(), (rank, place), operation)
    }

    fn enter_with(&self, ticket: Arc<Ticket>, (rank, place): (usize, Place), operation: Operation) -> Arc<Ticket> {
        let arrival = Arrival {
            operation,
            ticket: ticket.clone(),
        };
        let mut state = self.state.lock();
        // No rank waits any more, and their memory must stay untouched.
        if state.failure.is_some() {
            return ticket;
        }
        let complete = match place {
            Place::Collective(number) => self.arrive_at_collective(&mut state, rank, number, arrival),
            Place::Message(message) => self.arrive_at_message(&mut state, message, arrival),
        };
        let Some(arrivals) = complete else {
            return ticket;
        };
        arrivals.iter().for_each(|arrival| arrival.ticket.set(RUNNING));
        drop(state);
        let calls: Vec<Operation> = arrivals.iter().map(|arrival| arrival.operation).collect();
        match (place, &calls[..]) {
            // SAFETY: each call's memory was checked for its stream, which is at this call and waits for the ticket; no
            // work of that stream comes before it is done. That other work does not use the memory is each caller's
            // duty.
            (Place::Message(_), [send, recv]) => unsafe { transfer::pair(send, recv) },
            // SAFETY: as above.
            _ => unsafe { transfer::collective(&calls) },
        }
        let state = self.state.lock();
        arrivals.iter().for_each(|arrival| arrival.ticket.set(DONE));
        drop(state);
        self.changed.notify_all();
        ticket
    }

    /// As [`enter`](Self::enter), for a call of another process. [`told`](Self::told) has to follow.
    pub(crate) fn serve(&self, rank: usize, place: Place, operation: Operation) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket::default());
        self.state.lock().served.push(ticket.clone());
        self.enter_with(ticket, (rank, place), operation)
    }

    pub(crate) fn told(&self, ticket: &Arc<Ticket>) {
        let mut state = self.state.lock();
        ticket.set(TOLD);
        state.served.retain(|served| !Arc::ptr_eq(served, ticket));
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for the calls of `rank`, and takes it out.
    pub(crate) fn take_out(&self, rank: usize) {
        let mut state = self.state.lock();
        // Each ends at its time limit at the latest.
        while state.members[rank].under_way > 0 {
            self.changed.wait(&mut state);
        }
        state.members[rank].gone = true;
        let collective = state.collectives.iter().find_map(|(number, calls)| {
            let call = calls.iter().flatten().next()?;
            Some(format!("collective {number}, {}", call.operation.describe()))
        });
        let messages = || {
            let sends = state.sends.iter().filter(|(message, _)| message.to == rank);
            let recvs = state.recvs.iter().filter(|(message, _)| message.from == rank);
            let mut both = sends.chain(recvs);
            both.next().map(|(_, call)| call.operation.describe())
        };
        let splits = || {
            let mut splits = state.splits.iter().filter(|(_, split)| split.waits_for(rank));
            splits.next().map(|(number, _)| split::describe(*number))
        };
        if let Some(what) = collective.or_else(messages).or_else(splits) {
            self.fail(&mut state, never_comes(&what, rank));
        }
    }

    /// Waits until the operation is done; at the time limit the communicator fails. An abort is no error.
    pub(crate) fn wait(&self, place: Place, operation: &Operation, ticket: &Ticket) -> Result<(), Arc<Failure>> {
        let deadline = Instant::now().checked_add(time_limit());
        let mut state = self.state.lock();
        loop {
            match (ticket.stage(), &state.failure) {
                (DONE, _) => return Ok(()),
                (WAITING, Some(_)) if state.aborted => return Ok(()),
                (WAITING, Some(failure)) => return Err(failure.clone()),
                _ => {}
            }
            if self.wait_until(&mut state, deadline) && ticket.stage() == WAITING {
                let what = operation.describe();
                let text = match place {
                    Place::Collective(number) => {
                        let calls = state.collectives.get(&number);
                        let there = (0..self.ranks).map(|rank| calls.is_some_and(|calls| calls[rank].is_some()));
                        format!(
                            "collective {number}, {what}: ranks {:?} of {} did not come within the time limit",
                            absent(there),
                            self.ranks
                        )
                    }
                    Place::Message(message) => {
                        format!(
                            "{what}, number {}: the peer did not come within the time limit",
                            message.number
                        )
                    }
                };
                self.fail(&mut state, Failure::remote(text));
            }
        }
    }

    /// Counts a rank of this process.
    pub(crate) fn stay_here(&self) {
        self.state.lock().here += 1;
    }

    /// From now on tells this connection, of a rank in another process, when the communicator fails.
    pub(crate) fn watch(&self, watcher: UnixStream) {
        let mut state = self.state.lock();
        state.watchers.push(watcher);
        state.tell();
    }

    /// The process of a rank has ended, or has destroyed its communicator.
    pub(crate) fn lose(&self, rank: usize) {
        let mut state = self.state.lock();
        if state.members[rank].gone {
            return;
        }
        state.members[rank].gone = true;
        self.fail(
            &mut state,
            Failure::remote(format!("the process of rank {rank} has ended")),
        );
    }

    fn fail(&self, state: &mut State, failure: Failure) {
        state.failure.get_or_insert_with(|| Arc::new(failure));
        state.tell();
        // Their ranks leave, so their memory is not to be touched.
        state.collectives.clear();
        state.sends.clear();
        state.recvs.clear();
        self.changed.notify_all();
    }

    /// Whether the deadline passed.
    fn wait_until(&self, state: &mut MutexGuard<'_, State>, deadline: Option<Instant>) -> bool {
        match deadline {
            Some(deadline) => self.changed.wait_until(state, deadline).timed_out(),
            None => {
                self.changed.wait(state);
                false
            }
        }
    }
}

impl Meeting for Clique {
    fn ranks(&self) -> usize {
        self.ranks
    }

    fn failure(&self) -> Option<Arc<Failure>> {
        self.state.lock().failure.clone()
    }

    fn wait_complete(&self) -> Outcome {
        let deadline = Instant::now().checked_add(time_limit());
        let mut state = self.state.lock();
        loop {
            // A rank that fails later has been there.
            let absent = absent(state.joined.iter().map(Option::is_some));
            if absent.is_empty() {
                return Ok(());
            }
            state.check()?;
            if self.wait_until(&mut state, deadline) {
                let text = format!(
                    "ncclCommInitRank: ranks {absent:?} of {} did not come within the time limit",
                    self.ranks
                );
                self.fail(&mut state, Failure::remote(text));
            }
        }
    }

    fn issue(&self, rank: usize, operation: &Operation) -> Outcome<Place> {
        let mut state = self.state.lock();
        let member = &mut state.members[rank];
        member.under_way += 1;
        let peer = operation.root;
        let mut next = |numbers: fn(&mut Member) -> &mut HashMap<usize, u64>| {
            let number = numbers(member).entry(peer).or_default();
            *number += 1;
            *number
        };
        Ok(match operation.kind {
            Kind::Send => Place::Message(Message {
                from: rank,
                to: peer,
                number: next(|member| &mut member.sends),
            }),
            Kind::Recv => Place::Message(Message {
                from: peer,
                to: rank,
                number: next(|member| &mut member.recvs),
            }),
            _ => {
                member.collectives += 1;
                Place::Collective(member.collectives)
            }
        })
    }

    fn leave(&self, rank: usize) {
        let mut state = self.state.lock();
        let under_way = &mut state.members[rank].under_way;
        *under_way = under_way.saturating_sub(1);
        drop(state);
        self.changed.notify_all();
    }

    fn arrive(&self, rank: usize, place: Place, operation: Operation) -> Wait<'_> {
        let ticket = self.enter(rank, place, operation);
        Box::new(move || self.wait(place, &operation, &ticket))
    }

    fn split(self: Arc<Self>, rank: usize, number: u64, wish: Wish) -> Parting {
        let asked = self.ask_part(rank, number, wish, true);
        Box::new(move || {
            asked?;
            let part = self.take_part(rank, number)?;
            Ok(part.map(|(clique, rank)| (clique as Arc<dyn Meeting>, rank)))
        })
    }

    fn destroy(&self, rank: usize) {
        self.take_out(rank);
        // Other processes get their results before this one may end.
        let deadline = Instant::now().checked_add(time_limit());
        let mut state = self.state.lock();
        while state
            .served
            .iter()
            .any(|ticket| matches!(ticket.stage(), RUNNING | DONE))
        {
            if self.wait_until(&mut state, deadline) {
                break;
            }
        }
        state.here = state.here.saturating_sub(1);
        if state.here > 0 {
            return;
        }
        for watcher in &mut state.watchers {
            _ = wire::send(watcher, &Reply::Left, &[]);
        }
    }

    fn abort(&self, rank: usize) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            state.aborted = true;
        }
        let text = format!("rank {rank} aborted the communicator");
        self.fail(&mut state, Failure::remote(text));
        state.members[rank].gone = true;
    }

    fn fail_with(&self, failure: Failure) {
        self.fail(&mut self.state.lock(), failure);
    }
}

impl State {
    fn tell(&mut self) {
        if let Some(failure) = &self.failure {
            for mut watcher in self.watchers.drain(..) {
                // An error means that its process has ended.
                _ = wire::send(&mut watcher, &Reply::failed(failure), &[]);
            }
        }
    }

    fn check(&self) -> Outcome {
        match &self.failure {
            Some(failure) => Err((**failure).clone()),
            None => Ok(()),
        }
    }
}

fn absent(there: impl Iterator<Item = bool>) -> Vec<usize> {
    there
        .enumerate()
        .filter(|(_, there)| !there)
        .map(|(rank, _)| rank)
        .collect()
}

fn never_comes(what: &str, rank: usize) -> Failure {
    Failure::remote(format!("{what}: rank {rank} has destroyed its communicator"))
}
