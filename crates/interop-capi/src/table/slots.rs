//! The slots of a table, and who holds their objects.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use super::sync::{AtomicPtr, AtomicU64, Mutex, fence};
use super::word::{Miss, Place, Way, Word};

/// The first chunk and the second; each later one is twice as large.
pub(super) const FIRST: u32 = 32;
const FIRST_BITS: u32 = FIRST.ilog2();
pub(crate) const INDEX_BITS: u32 = 24;
const CHUNKS: usize = (INDEX_BITS - FIRST_BITS + 1) as usize;

/// Objects that a number names, each until it is retired and its last holder is gone.
pub(crate) struct Table<T> {
    /// Slots never move: a chunk that was stored here stays for ever.
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    empty: Mutex<Empty>,
    most: u32,
}

struct Empty {
    /// Slots that had an object. One whose generations are used up is not among them: no place is ever given twice.
    used: Vec<u32>,
    /// All slots from here on never had one.
    fresh: u32,
}

struct Slot<T> {
    word: AtomicU64,
    index: u32,
    /// Initialised from its publication until it is taken out.
    object: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: holders on several threads share the object (`T: Sync`), and the last of them takes it out (`T: Send`). Only the
// one that has the slot from the list of empty ones writes it, before it publishes it.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

impl<T> Table<T> {
    /// Of all that an index can name.
    pub(crate) const fn new() -> Self {
        Self::with_most(1 << INDEX_BITS)
    }

    pub(super) const fn with_most(most: u32) -> Self {
        assert!(most <= 1 << INDEX_BITS);
        Self {
            chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS],
            empty: Mutex::new(Empty {
                used: Vec::new(),
                fresh: 0,
            }),
            most,
        }
    }
}

impl<T: Send + Sync + 'static> Table<T> {
    /// A place of its own for this object; `None` if all are in use.
    pub(crate) fn insert(&self, object: T) -> Option<Place> {
        let index = self.vacant()?;
        let slot = self.slot(index)?;
        // SAFETY: the slot is empty and off the list of empty ones, so nothing else reaches its object until it is
        // published.
        unsafe { (*slot.object.get()).write(object) };
        // Nothing else changes the word of an empty slot. The lock of the list has ordered its last change before this.
        let word = Word(slot.word.load(Ordering::Relaxed));
        // Release: a lookup that finds the object alive sees it written.
        slot.word.store(word.published().0, Ordering::Release);
        let generation = word.generation();
        Some(Place { index, generation })
    }

    /// The object, to be shared with every other holder.
    #[inline]
    pub(crate) fn hold(&'static self, place: Place) -> Result<Held<T>, Miss> {
        let slot = self.enter(place, Way::Any)?;
        Ok(Held { table: self, slot })
    }

    /// The object, unless a holder is alone.
    #[inline]
    pub(crate) fn share(&'static self, place: Place) -> Result<Held<T>, Miss> {
        let slot = self.enter(place, Way::Shared)?;
        Ok(Held { table: self, slot })
    }

    /// The object, for one who is alone but for those that [`hold`](Self::hold) it later.
    #[inline]
    pub(crate) fn alone(&'static self, place: Place) -> Result<Alone<T>, Miss> {
        let slot = self.enter(place, Way::Alone)?;
        Ok(Alone { table: self, slot })
    }

    /// Makes the place stale at once. The object is dropped here, or by the last of its holders.
    pub(crate) fn retire(&self, place: Place) -> Result<(), Miss> {
        let slot = self.slot(place.index).ok_or(Miss::Unknown)?;
        let retired = slot.change(Ordering::AcqRel, |word| word.retired(place.generation))?;
        if retired.is_over() {
            // SAFETY: retired by this call, and without holders.
            drop(unsafe { self.take_out(slot) });
        }
        Ok(())
    }

    /// As [`retire`](Self::retire), of an object without holders.
    pub(crate) fn take(&self, place: Place) -> Result<T, Miss> {
        let slot = self.slot(place.index).ok_or(Miss::Unknown)?;
        slot.change(Ordering::Acquire, |word| word.taken(place.generation))?;
        // SAFETY: retired by this call, and without holders.
        Ok(unsafe { self.take_out(slot) })
    }

    #[inline]
    fn enter(&self, place: Place, way: Way) -> Result<&Slot<T>, Miss> {
        let slot = self.slot(place.index).ok_or(Miss::Unknown)?;
        // Acquire: after the publication, and after what an earlier holder did that this one does not go together with.
        // Those let go with Release, and every change between is a read-modify-write, which continues their sequence.
        slot.change(Ordering::Acquire, |word| word.held(place.generation, way))?;
        Ok(slot)
    }

    #[inline]
    fn leave(&self, slot: &Slot<T>, way: Way) {
        let less = Word::less(way);
        // Release: what this holder did comes before the object is taken out, and before the next one who is alone.
        let before = slot.word.fetch_sub(less, Ordering::Release);
        if Word(before - less).is_over() {
            self.end(slot);
        }
    }

    /// Drops the object after its last holder, once it was retired.
    #[cold]
    fn end(&self, slot: &Slot<T>) {
        // After what all other holders did, and after what came before the object was retired.
        fence(Ordering::Acquire);
        // SAFETY: retired, and the last holder has just gone; a retired object gets no new holder, so this is once.
        drop(unsafe { self.take_out(slot) });
    }

    /// Empties a slot and lists it for the next object.
    ///
    /// # Safety
    /// Its object was retired and has no holder, and the caller is the only one to know that.
    unsafe fn take_out(&self, slot: &Slot<T>) -> T {
        // SAFETY: published and not yet taken out, and no other reference exists.
        let object = unsafe { (*slot.object.get()).assume_init_read() };
        // Nothing else changes the word of a retired object without holders.
        if let Some(emptied) = Word(slot.word.load(Ordering::Relaxed)).emptied() {
            // Who looks the next object up reads its publication, not this; the lock orders this before that.
            slot.word.store(emptied.0, Ordering::Relaxed);
            self.empty.lock().used.push(slot.index);
        }
        object
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let (chunk, offset) = position(index);
        // Acquire: the slots were made before the chunk was stored.
        let first = self.chunks.get(chunk)?.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: `position` gives an offset within the chunk, which is never freed and only shared.
        Some(unsafe { &*first.add(offset) })
    }

    /// A slot that is empty and in no other hands.
    fn vacant(&self) -> Option<u32> {
        let mut empty = self.empty.lock();
        if let Some(index) = empty.used.pop() {
            return Some(index);
        }
        let index = empty.fresh;
        if index == self.most {
            return None;
        }
        let (chunk, offset) = position(index);
        if offset == 0 {
            let slots: Box<[Slot<T>]> = (index..index + chunk_len(chunk)).map(Slot::new).collect();
            // Release: see `slot`.
            self.chunks[chunk].store(Box::leak(slots).as_mut_ptr(), Ordering::Release);
        }
        empty.fresh += 1;
        Some(index)
    }

    #[cfg(test)]
    pub(super) fn set_generation(&self, index: u32, generation: u32) {
        let word = Word::of_generation(generation);
        self.slot(index).unwrap().word.store(word.0, Ordering::Relaxed);
    }
}

impl<T> Slot<T> {
    fn new(index: u32) -> Self {
        Self {
            word: AtomicU64::new(Word::NEW.0),
            index,
            object: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Changes the word unless it does not permit that, and returns the new one.
    #[inline]
    fn change(&self, order: Ordering, change: impl Fn(Word) -> Result<Word, Miss>) -> Result<Word, Miss> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let next = change(Word(word))?;
            match self.word.compare_exchange_weak(word, next.0, order, Ordering::Relaxed) {
                Ok(_) => return Ok(next),
                Err(current) => word = current,
            }
        }
    }
}

/// The chunk of a slot, and where the slot is in it.
#[inline]
fn position(index: u32) -> (usize, usize) {
    let chunk = (index | (FIRST - 1)).ilog2() + 1 - FIRST_BITS;
    let first = if chunk == 0 { 0 } else { chunk_len(chunk as usize) };
    (chunk as usize, (index - first) as usize)
}

/// Which is also the index of its first slot, but for the first chunk.
const fn chunk_len(chunk: usize) -> u32 {
    match chunk {
        0 => FIRST,
        chunk => FIRST << (chunk - 1),
    }
}

/// An object, which lives at least as long as this.
pub(crate) struct Held<T: Send + Sync + 'static> {
    table: &'static Table<T>,
    slot: &'static Slot<T>,
}

/// An object that no one shares.
pub(crate) struct Alone<T: Send + Sync + 'static> {
    table: &'static Table<T>,
    slot: &'static Slot<T>,
}

impl<T: Send + Sync> Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: published before the place was looked up, and taken out only after this holder has gone.
        unsafe { (*self.slot.object.get()).assume_init_ref() }
    }
}

impl<T: Send + Sync> Deref for Alone<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: as for `Held`.
        unsafe { (*self.slot.object.get()).assume_init_ref() }
    }
}

impl<T: Send + Sync> Drop for Held<T> {
    #[inline]
    fn drop(&mut self) {
        self.table.leave(self.slot, Way::Shared);
    }
}

impl<T: Send + Sync> Drop for Alone<T> {
    #[inline]
    fn drop(&mut self) {
        self.table.leave(self.slot, Way::Alone);
    }
}
