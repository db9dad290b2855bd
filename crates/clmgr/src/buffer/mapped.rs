//! The maps of an allocation that are not undone yet.

use parking_lot::Mutex;

use crate::error::Result;
use crate::handle::Handle;
use crate::queue::Queue;

/// One map. Equal maps are interchangeable.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub queue: Queue,
    /// The buffer object that was mapped, which may be a part of the allocation; the memory itself
    /// where there is none.
    pub object: Handle,
    pub pointer: Handle,
    pub writes: bool,
}

/// The maps of an allocation, so one whose guard was leaked can be undone.
///
/// Borrows show which guards are leaked: none is alive while the buffer is borrowed exclusively, and no writing one is
/// alive while it is borrowed at all. A part of a buffer borrows it in the same way, so a buffer and its parts have one
/// list.
#[derive(Default)]
pub(crate) struct Maps(Mutex<Vec<Mapped>>);

impl Maps {
    pub fn add(&self, map: Mapped) {
        self.0.lock().push(map);
    }

    /// Undoes the map of a guard. Its address does not identify it: a buffer and a part of it may be mapped at one.
    pub fn end(&self, map: Mapped, unmap: impl FnOnce(&Mapped) -> Result<()>) -> Result<()> {
        let mut maps = self.0.lock();
        if let Some(position) = maps.iter().position(|known| *known == map) {
            maps.swap_remove(position);
        }
        drop(maps);
        self.undo(map, unmap)
    }

    /// Undoes the maps whose guards must have been leaked, given that the caller has the buffer exclusively or shares
    /// it. It returns the first error and leaves the others with their queues.
    pub fn undo_leaked(&self, exclusive: bool, unmap: impl Fn(&Mapped) -> Result<()>) -> Result<()> {
        let mut first = Ok(());
        for map in self.take(|map| exclusive || map.writes) {
            let queue = map.queue.clone();
            match self.undo(map, &unmap) {
                Err(error) if first.is_ok() => first = Err(error),
                Err(error) => queue.defer(error),
                Ok(()) => {}
            }
        }
        first
    }

    /// Undoes every map for a drop, which leaves errors with their queues. Returns whether none is
    /// left.
    pub fn undo_in_drop(&self, unmap: impl Fn(&Mapped) -> Result<()>) -> bool {
        self.undo_all(self.take(|_| true), unmap)
    }

    /// As [`undo_in_drop`](Self::undo_in_drop), for the maps of `object`, which is about to be released.
    pub fn undo_of_in_drop(&self, object: Handle, unmap: impl Fn(&Mapped) -> Result<()>) -> bool {
        self.undo_all(self.take(|map| map.object == object), unmap)
    }

    fn undo_all(&self, maps: Vec<Mapped>, unmap: impl Fn(&Mapped) -> Result<()>) -> bool {
        let mut all = true;
        for map in maps {
            let queue = map.queue.clone();
            if let Err(error) = self.undo(map, &unmap) {
                queue.defer(error);
                all = false;
            }
        }
        all
    }

    /// Undoes a map that was taken out. If that fails, it is back: the memory counts as mapped.
    fn undo(&self, map: Mapped, unmap: impl FnOnce(&Mapped) -> Result<()>) -> Result<()> {
        let ended = unmap(&map);
        if ended.is_err() {
            self.add(map);
        }
        ended
    }

    fn take(&self, which: impl Fn(&Mapped) -> bool) -> Vec<Mapped> {
        let mut maps = self.0.lock();
        if maps.is_empty() {
            return Vec::new();
        }
        let (taken, kept) = maps.drain(..).partition(which);
        *maps = kept;
        taken
    }
}
