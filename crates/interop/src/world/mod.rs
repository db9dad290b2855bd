//! A program of several processes, one for each GPU, as `mpirun`, `srun` or `torchrun` start it.
//!
//! A [`World`] tells a process which of them it is, which GPU is its own, and gives all of them what the first one made,
//! such as the id by which RCCL's ranks find each other:
//!
//! ```
//! use std::time::Duration;
//!
//! use interop::world::World;
//!
//! let world = World::from_env()?;
//! // Called by every process, and run by the first: `UniqueId::new(&library)?.to_bytes()` with RCCL.
//! let id = world.share(Duration::from_secs(60), || b"made once".to_vec())?;
//! assert_eq!(id, b"made once");
//! let device = world.device(8)?; // of the 8 GPUs of this machine
//! # assert_eq!((world.size(), device), (1, 0));
//! # Ok::<(), interop::world::WorldError>(())
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

use std::time::Duration;

pub use error::WorldError;
pub use launcher::Launcher;

use launcher::Place;
use meeting::Meeting;

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
        if self.place.size == 1 {
            return Ok(make());
        }
        match self.place.rank {
            0 => self.meeting.give(&self.place, time, make(), limit),
            _ => self.meeting.get(&self.place, time, limit),
        }
    }
}

#[cfg(test)]
mod tests;
