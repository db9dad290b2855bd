//! What is checked of a call before it is one of a group.

use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Stream};

use crate::{Communicator, Error, Result};

/// A call on its way into a group: it takes its memory, and checks what it got.
pub(super) struct Taking<'g> {
    pub(super) name: &'static str,
    pub(super) rank: &'g Communicator,
    pub(super) stream: &'g Stream,
}

impl<'g> Taking<'g> {
    pub(super) fn new(name: &'static str, rank: &'g Communicator, stream: &'g Stream) -> Result<Self> {
        if stream.device() != rank.device() {
            return Err(Error::WrongDevice {
                call: name,
                stream: stream.device().ordinal(),
                communicator: rank.device().ordinal(),
            });
        }
        check_capture(name, rank, stream)?;
        Ok(Self { name, rank, stream })
    }

    pub(super) fn read<M: DeviceMemory + 'g>(&self, memory: M) -> Result<DeviceSlice<'g, M::Element>> {
        let slice = memory.read_on(self.stream).map_err(|error| self.refused(error))?;
        self.check_stream(slice.stream())?;
        Ok(slice)
    }

    pub(super) fn write<M: DeviceMemoryMut + 'g>(&self, memory: M) -> Result<DeviceSliceMut<'g, M::Element>> {
        let slice = memory.write_on(self.stream).map_err(|error| self.refused(error))?;
        self.check_stream(slice.stream())?;
        Ok(slice)
    }

    fn refused(&self, error: hip::Error) -> Error {
        match error {
            hip::Error::WrongStream { .. } => Error::WrongStream { call: self.name },
            error => error.into(),
        }
    }

    fn check_stream(&self, stream: &Stream) -> Result<()> {
        match *stream == *self.stream {
            true => Ok(()),
            false => Err(Error::WrongStream { call: self.name }),
        }
    }

    /// Memory as long as other memory.
    pub(super) fn same(&self, argument: &'static str, len: usize, needed: usize) -> Result<()> {
        if len == needed {
            return Ok(());
        }
        Err(Error::Length {
            call: self.name,
            argument,
            len,
            needed,
            ranks: self.rank.ranks(),
        })
    }

    /// Memory for a part of every rank.
    pub(super) fn all(&self, argument: &'static str, len: usize, part: usize) -> Result<()> {
        self.same(argument, len, part.saturating_mul(self.rank.ranks()))
    }

    /// The length of a rank's part.
    pub(super) fn part(&self, len: usize) -> Result<usize> {
        let ranks = self.rank.ranks();
        if ranks > 0 && len.is_multiple_of(ranks) {
            return Ok(len / ranks);
        }
        Err(Error::NotDivisible {
            call: self.name,
            len,
            ranks,
        })
    }

    pub(super) fn peer(&self, rank: usize) -> Result<i32> {
        let ranks = self.rank.ranks();
        let raw = i32::try_from(rank).ok().filter(|_| rank < ranks);
        raw.ok_or_else(|| Error::NoRank {
            call: self.name,
            rank,
            ranks,
        })
    }
}

/// That the stream can take the call now, also if it is recorded.
pub(super) fn check_capture(name: &'static str, rank: &Communicator, stream: &Stream) -> Result<()> {
    match stream.is_recording() {
        true => rank.check_graphs(name),
        false => Ok(stream.check_uncaptured()?),
    }
}
