//! Which calls belong together, and whether they agree.

use super::{Arrival, Clique, State, never_comes};
use crate::operation::Kind;
use crate::place::Message;
use crate::status::Failure;

impl Clique {
    /// All calls of the collective, if this one was the last.
    pub(super) fn arrive_at_collective(
        &self,
        state: &mut State,
        rank: usize,
        number: u64,
        arrival: Arrival,
    ) -> Option<Vec<Arrival>> {
        let ranks = self.ranks;
        let calls = state.collectives.entry(number).or_insert_with(|| vec![None; ranks]);
        let other = calls
            .iter()
            .enumerate()
            .find_map(|(rank, call)| Some((rank, call.as_ref()?)));
        if let Some((other, call)) = other
            && !call.operation.agrees(&arrival.operation)
        {
            let text = format!(
                "collective {number}: rank {rank} calls {}, rank {other} calls {}; all ranks have to make equal calls in \
                 the same order, in graphs or outside",
                arrival.operation.describe(),
                call.operation.describe()
            );
            self.fail(state, Failure::usage(text));
            return None;
        }
        let what = arrival.operation.describe();
        calls[rank] = Some(arrival);
        if calls.iter().all(Option::is_some) {
            let calls = state.collectives.remove(&number);
            return calls.map(|calls| calls.into_iter().flatten().collect());
        }
        let never = (0..ranks).find(|&rank| calls[rank].is_none() && state.members[rank].gone);
        if let Some(never) = never {
            self.fail(state, never_comes(&format!("collective {number}, {what}"), never));
        }
        None
    }

    /// A send and its receive, if both are there.
    pub(super) fn arrive_at_message(
        &self,
        state: &mut State,
        message: Message,
        arrival: Arrival,
    ) -> Option<Vec<Arrival>> {
        let sends = arrival.operation.kind == Kind::Send;
        let (own, others) = match sends {
            true => (&mut state.sends, &mut state.recvs),
            false => (&mut state.recvs, &mut state.sends),
        };
        let Some(other) = others.remove(&message) else {
            let what = arrival.operation.describe();
            own.insert(message, arrival);
            let peer = if sends { message.to } else { message.from };
            if state.members[peer].gone {
                self.fail(state, never_comes(&what, peer));
            }
            return None;
        };
        let (send, recv) = if sends { (arrival, other) } else { (other, arrival) };
        let (one, two) = (&send.operation, &recv.operation);
        if (one.count, one.datatype, one.captured) != (two.count, two.datatype, two.captured) {
            let text = format!(
                "message {} from rank {} to rank {}: {} meets {}; both have to name the same count and type, \
                 in graphs or outside",
                message.number,
                message.from,
                message.to,
                one.describe(),
                two.describe()
            );
            self.fail(state, Failure::usage(text));
            return None;
        }
        Some(vec![send, recv])
    }
}
