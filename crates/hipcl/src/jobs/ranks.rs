//! A job that runs as several processes, each with a part of its data on a GPU of its own.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use hip::{DeviceMemoryMut, Stream};
use interop::rccl::{Communicator, Element, Group, ReduceOp};
use interop::world::{Watch, World};
use interop::{Bridge, Options};
use platform::Selection;

use crate::error::one_line;
use crate::report::Start;
use crate::{Error, Result};

/// How long the processes wait for each other at the beginning and at the end.
const LIMIT: Duration = Duration::from_secs(120);

/// This process among those that run a job together, before it has a device.
pub struct Team {
    world: World,
    watch: Watch,
}

/// This process among those that run a job together, with its device. Every one of them makes the same calls in the same
/// order.
pub struct Ranks {
    world: World,
    watch: Watch,
    communicator: Communicator,
    stream: Stream,
}

impl Team {
    /// Meets the other processes. From now on, one of them that ends too early ends this one too, with a line that names
    /// it and the status 2: a wait for a collective would never end then.
    ///
    /// # Errors
    /// A launcher's variables that cannot be, or a process that does not come.
    pub fn join() -> Result<Self> {
        let world = World::from_env()?;
        let watch = world.watch(LIMIT, |rank| {
            let error = interop::world::WorldError::Lost { rank };
            eprintln!("error: {}", one_line(&error.to_string()));
            // SAFETY: ends the process, which any thread may do. The files of a run appear at its end, so none is left
            // half written, and the orderly exit would wait for the collective.
            unsafe { nix::libc::_exit(2) }
        })?;
        Ok(Self { world, watch })
    }

    /// Whether this is the process that prints and writes the report.
    pub fn is_first(&self) -> bool {
        self.world.rank() == 0
    }

    /// The bridge's options, with the device of this process.
    ///
    /// # Errors
    /// There are fewer GPUs than processes on this machine, or HIP's error.
    pub fn options(&self, selection: &Selection, options: Options) -> Result<Options> {
        let tables = selection.tables();
        // SAFETY: the tables are a platform's own.
        let runtime = unsafe { hip::Runtime::from_tables(tables.hip.clone(), tables.rtc.clone()) }?;
        Ok(Options {
            hip_device: Some(self.world.device(runtime.device_count()?)?),
            ..options
        })
    }

    /// Joins the devices of all processes.
    ///
    /// # Errors
    /// The platform has no library of collectives, or it cannot connect the devices.
    pub fn connect(self, bridge: &Bridge) -> Result<Ranks> {
        let communicator = self
            .world
            .communicator(&bridge.collectives()?, bridge.hip_device(), LIMIT)?;
        Ok(Ranks {
            communicator,
            stream: bridge.stream()?,
            world: self.world,
            watch: self.watch,
        })
    }
}

impl Ranks {
    /// This process, from 0.
    pub fn rank(&self) -> usize {
        self.communicator.rank()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.communicator.ranks()
    }

    /// What the report says of them.
    pub fn start(&self) -> Start {
        Start {
            count: self.count(),
            launcher: self.world.launcher().to_string(),
        }
    }

    /// For calls of its own kind.
    pub(crate) fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// The part of `0..count` that is this process's. The parts follow each other in the order of the ranks, and differ in
    /// length by one at most.
    ///
    /// # Errors
    /// One would be empty; `what` names the items, `remedy` what to do.
    pub fn share(&self, count: usize, what: &str, remedy: &str) -> Result<Range<usize>> {
        let ranks = self.count();
        if count < ranks {
            return Err(Error::input(format!(
                "{count} {what} are too few for {ranks} ranks; {remedy}, or start fewer processes"
            )));
        }
        Ok(share(count, self.rank(), ranks))
    }

    /// Queues a reduction of `memory` over all processes, element by element.
    ///
    /// # Errors
    /// The library's.
    pub(crate) fn all_reduce<'g, M>(&'g self, memory: M, op: ReduceOp, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        Ok(self.communicator.all_reduce_in_place(memory, op, stream)?)
    }

    /// Queues that every process gets the shares of all: `memory` has equally long items, of which each process has its
    /// [share](Self::share) of `count` in its place already.
    ///
    /// # Errors
    /// The library's.
    pub(crate) fn all_gather<'g, M>(&'g self, memory: M, count: usize, stream: &'g Stream) -> Result<()>
    where
        M: DeviceMemoryMut<Element: Element> + 'g,
    {
        let (communicator, ranks) = (&self.communicator, self.count());
        if count.is_multiple_of(ranks) {
            return Ok(communicator.all_gather_in_place(memory, stream)?);
        }
        // As NCCL's manual does it where the parts differ in length.
        let mut group = Group::new();
        let mut rest = memory.write_on(stream)?;
        let item = rest.len() / count;
        for rank in 0..ranks {
            let (part, others) = rest.split_at_mut(share(count, rank, ranks).len() * item)?;
            group.broadcast(communicator, part, rank, stream)?;
            rest = others;
        }
        Ok(group.launch()?)
    }

    /// The answers of all processes, by rank.
    ///
    /// # Errors
    /// The library's.
    pub fn answers(&self, own: u32) -> Result<Vec<u32>> {
        let mut answers = vec![0; self.count()];
        answers[self.rank()] = own;
        let mut memory = self.communicator.device().alloc_from(&self.stream, &answers)?;
        self.all_gather(&mut memory, self.count(), &self.stream)?;
        self.communicator.wait(&self.stream)?;
        memory.copy_to_slice(&self.stream, &mut answers)?;
        Ok(answers)
    }

    /// Waits until every process has come here: none of them is missed from now on.
    ///
    /// # Errors
    /// One ended before, or does not come.
    pub fn leave(self) -> Result<()> {
        drop(self.communicator);
        Ok(self.watch.leave(LIMIT)?)
    }
}

/// A rank's part of `0..count`.
fn share(count: usize, rank: usize, ranks: usize) -> Range<usize> {
    let begin = |rank: usize| count / ranks * rank + (count % ranks).min(rank);
    begin(rank)..begin(rank + 1)
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranks")
            .field("communicator", &self.communicator)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_each_other_and_differ_by_one_at_most() {
        for (count, ranks) in [(32, 3), (7, 7), (100, 8), (1, 1), (usize::MAX, 5)] {
            let mut end = 0;
            for rank in 0..ranks {
                let share = share(count, rank, ranks);
                assert_eq!(share.start, end);
                assert!([count / ranks, count.div_ceil(ranks)].contains(&share.len()));
                end = share.end;
            }
            assert_eq!(end, count);
        }
    }
}
