//! A program of several processes, one for each GPU, as `mpirun`, `srun` or `torchrun` start it.
//!
//! A [`World`] tells a process which of them it is and which GPU is its own, joins them for collectives, and sees one
//! of them end too early:
//!
//! ```
//! use std::time::Duration;
//!
//! use interop::world::World;
//! use interop::{Bridge, Options};
//! use interop::rccl::ReduceOp;
//!
//! const LIMIT: Duration = Duration::from_secs(60);
//!
//! let world = World::from_env()?;
//! let watch = world.watch(LIMIT, |rank| {
//!     eprintln!("error: rank {rank} ended");
//!     std::process::abort();
//! })?;
//! let options = Options {
//!     hip_device: Some(world.device(1)?), // of the GPUs that this process sees
//!     ..Options::default()
//! };
//! let bridge = Bridge::open(&interop::platform::select()?, &options)?;
//! let communicator = world.communicator(&bridge.collectives()?, bridge.hip_device(), LIMIT)?;
//! let stream = bridge.stream()?;
//! let mut sum = bridge.alloc::<f32>(1000)?;
//! sum.upload(&[1.0; 1000])?;
//! communicator.all_reduce_in_place(&mut sum, ReduceOp::Sum, &stream)?;
//! communicator.wait(&stream)?;
//! let mut found = [0.0; 1000];
//! sum.download(&mut found)?;
//! assert_eq!(found, [world.size() as f32; 1000]);
//! watch.leave(LIMIT)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where the processes meet
//!
//! Processes of one machine that one launcher started need nothing: they meet at a socket that is named after the
//! launcher's process and has no file. `torchrun` names a machine and a port (`MASTER_ADDR`, `MASTER_PORT`); the
//! processes meet at the port after it, as its own store listens at that one. For several machines under `mpirun` or
//! `srun`, `HIPCL_WORLD=tcp://HOST:PORT` names a free port of the machine with the first process. It also helps where a
//! script stands between the launcher and the processes.
//!
//! A program that can connect to such a port can take a process's place, as with the launchers themselves. The socket of
//! one machine takes processes of the same user only.

mod error;
mod launcher;
mod meeting;
mod watch;

use std::time::Duration;

pub use error::WorldError;
use hip::Device;
pub use launcher::Launcher;
use launcher::Place;
use meeting::Meeting;
use rccl::{Communicator, Library, UniqueId};
pub use watch::Watch;

/// This process among those that were started together. A program makes one, since several would take each other's turn.
#[derive(Debug)]
pub struct World {
    place: Place,
    meeting: Meeting,
    /// How often the processes have met.
    met: std::cell::Cell<u32>,
}

impl World {
    /// As the launcher says in the environment; a process alone if none says anything.
    ///
    /// # Errors
    ///
    /// [`WorldError::Variable`] for one that is not a number or not possible, [`WorldError::Incomplete`] if others are
    /// missing, [`WorldError::NoMeeting`] for several machines without a place to meet.
    pub fn from_env() -> Result<Self, WorldError> {
        Self::of(&|name| std::env::var(name).ok())
    }

    fn of(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, WorldError> {
        let place = Place::of(variable)?;
        Ok(Self {
            meeting: Meeting::of(&place, variable)?,
            place,
            met: std::cell::Cell::new(0),
        })
    }

    /// Which process this is, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.place.rank
    }

    /// How many processes there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.place.size
    }

    /// Which process of this machine it is, from 0.
    #[must_use]
    pub fn local_rank(&self) -> usize {
        self.place.local_rank
    }

    /// Who started the processes.
    #[must_use]
    pub fn launcher(&self) -> Launcher {
        self.place.launcher
    }

    /// The GPU of this process among the `devices` that it sees: that of its local rank, or the only one, since
    /// launchers can show each process its own.
    ///
    /// # Errors
    ///
    /// [`WorldError::NoDevice`] if there are fewer than processes on this machine.
    pub fn device(&self, devices: usize) -> Result<usize, WorldError> {
        let local = self.place.local_rank;
        match devices {
            1 => Ok(0),
            _ if local < devices => Ok(local),
            _ => Err(WorldError::NoDevice {
                local_rank: local,
                devices,
            }),
        }
    }

    /// Gives every process the bytes that `make` makes in the first one. All have to call it, equally often.
    ///
    /// # Errors
    ///
    /// [`WorldError::Late`] if a process does not come within `limit`, [`WorldError::Disagree`] if the processes count
    /// differently, [`WorldError::TooLarge`] for more than 1 MiB, [`WorldError::Socket`].
    pub fn share(&self, limit: Duration, make: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, WorldError> {
        let time = self.met.replace(self.met.get() + 1);
        match self.place.rank {
            0 => {
                let bytes = make();
                if self.place.size > 1 {
                    self.meeting.give(&self.place, time, &bytes, limit)?;
                }
                Ok(bytes)
            }
            _ => Ok(self.meeting.get(&self.place, time, limit)?.0),
        }
    }

    /// Joins the processes for collectives between their GPUs: one rank on the device of each. All have to call it.
    /// `limit` is for the meeting; RCCL then waits for every rank without one, so [`watch`](Self::watch) first.
    ///
    /// # Errors
    ///
    /// As [`share`](Self::share), and [`WorldError::Collectives`] if RCCL cannot connect them.
    pub fn communicator(
        &self,
        library: &Library,
        device: &Device,
        limit: Duration,
    ) -> Result<Communicator, WorldError> {
        let mut made = Ok(());
        let id = self.share(limit, || match UniqueId::new(library) {
            Ok(id) => id.to_bytes().to_vec(),
            // Without bytes the others know too.
            Err(error) => {
                made = Err(error);
                Vec::new()
            }
        })?;
        made?;
        let id = id.try_into().map_err(|_| WorldError::Lost { rank: 0 })?;
        let id = UniqueId::from_bytes(id);
        Ok(Communicator::new(
            library,
            device,
            &id,
            self.place.rank,
            self.place.size,
        )?)
    }

    /// Sees from now on that a process ends before it has called [`Watch::leave`]: killed, by an error, or by its
    /// machine. Then `lost` gets its rank, in a thread of its own, once. All have to call it.
    ///
    /// A collective never ends if a rank is gone, and neither does a wait for its stream. So `lost` has to end the
    /// process, without the waits of an orderly exit (`_exit`), unless the program waits by
    /// [`Communicator::wait`] alone and aborts.
    ///
    /// # Errors
    ///
    /// As [`share`](Self::share).
    pub fn watch(&self, limit: Duration, lost: impl FnOnce(usize) + Send + 'static) -> Result<Watch, WorldError> {
        let time = self.met.replace(self.met.get() + 1);
        let lines = match self.place.rank {
            _ if self.place.size == 1 => return Ok(Watch::alone()),
            0 => self.meeting.give(&self.place, time, &[], limit)?,
            _ => vec![(0, self.meeting.get(&self.place, time, limit)?.1)],
        };
        Watch::start(self.place.rank, lines, lost).map_err(|source| WorldError::Socket {
            call: "watching the other processes",
            at: self.meeting.at(),
            source,
        })
    }
}

#[cfg(test)]
mod tests;
