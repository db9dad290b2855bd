//! A value that is lent out, to many readers or one writer, for longer than a scope.
//!
//! C has no borrows: what Rust's compiler refuses, this refuses when it happens. It never waits, because a caller that
//! holds an open access and asks for a second one would wait for itself.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

/// The state of a value that one borrower may write.
const WRITER: u32 = u32::MAX;
/// The state of a value that is lent no more.
const CLOSED: u32 = u32::MAX - 1;
/// More readers than any program has; beyond, a reader is refused like a writer.
const MOST_READERS: u32 = u32::MAX / 2;

/// Why a value was not lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Someone has it who does not go together with this borrower.
    Busy,
    /// It was taken away for good.
    Closed,
}

/// A value with a count of its borrowers, and what a writer leaves for others to know meanwhile.
pub(crate) struct Lend<T, N = ()> {
    /// The number of readers, [`WRITER`] or [`CLOSED`].
    state: AtomicU32,
    /// The default while there is no writer.
    note: Mutex<N>,
    /// Gone once it was closed.
    value: UnsafeCell<ManuallyDrop<T>>,
}

// SAFETY: as for `RwLock`: the value is reached by reference only through `Reader` and `Writer`, whose counts keep a
// writer alone; `T: Send` lets a writer on another thread replace it, `T: Sync` lets readers share it.
unsafe impl<T: Send + Sync, N: Send> Sync for Lend<T, N> {}

impl<T, N: Default> Lend<T, N> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(0),
            note: Mutex::default(),
            value: UnsafeCell::new(ManuallyDrop::new(value)),
        }
    }

    /// Shared use, together with other readers.
    pub(crate) fn read(self: Arc<Self>) -> Result<Reader<T, N>, Refusal> {
        let more = |state| (state < MOST_READERS).then(|| state + 1);
        match self.state.try_update(Ordering::Acquire, Ordering::Relaxed, more) {
            Ok(_) => Ok(Reader(self)),
            Err(CLOSED) => Err(Refusal::Closed),
            Err(_) => Err(Refusal::Busy),
        }
    }

    /// Use by one borrower alone.
    pub(crate) fn write(self: Arc<Self>) -> Result<Writer<T, N>, Refusal> {
        self.take(WRITER)?;
        Ok(Writer(self))
    }

    /// What the writer has left.
    pub(crate) fn note(&self) -> N
    where
        N: Clone,
    {
        self.note.lock().clone()
    }

    /// Takes the value away from every later borrower, also from one that has the `Arc` already. Refused while it is
    /// lent.
    pub(crate) fn close(&self) -> Result<T, Refusal> {
        self.take(CLOSED)?;
        // SAFETY: the state was 0, so no borrower is left, and it never leaves `CLOSED`, so that none comes and nothing
        // else takes or drops the value.
        Ok(unsafe { ManuallyDrop::take(&mut *self.value.get()) })
    }

    fn take(&self, state: u32) -> Result<(), Refusal> {
        match self
            .state
            .compare_exchange(0, state, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => Ok(()),
            Err(CLOSED) => Err(Refusal::Closed),
            Err(_) => Err(Refusal::Busy),
        }
    }
}

impl<T, N> Drop for Lend<T, N> {
    fn drop(&mut self) {
        if *self.state.get_mut() != CLOSED {
            // SAFETY: dropped once, here; only `close` takes the value elsewhere.
            unsafe { ManuallyDrop::drop(self.value.get_mut()) }
        }
    }
}

/// Shared use of a value, which it keeps alive.
pub(crate) struct Reader<T, N = ()>(Arc<Lend<T, N>>);

/// Exclusive use of a value, which it keeps alive.
pub(crate) struct Writer<T, N: Default = ()>(Arc<Lend<T, N>>);

impl<T, N> Reader<T, N> {
    /// The value, for as long as this reader lives, whatever the lifetime says.
    ///
    /// # Safety
    /// The reference, and all that borrows from it, is gone before this reader is dropped.
    pub(crate) unsafe fn extended<'a>(&self) -> &'a T {
        // SAFETY: the count keeps writers away while this reader lives, and the `Arc` keeps the value in its place.
        unsafe { &*self.0.value.get() }
    }
}

impl<T, N: Default> Writer<T, N> {
    /// Leaves this for others to know until the writer is dropped.
    pub(crate) fn leave(&self, note: N) {
        *self.0.note.lock() = note;
    }

    /// The value, for as long as this writer lives, whatever the lifetime says.
    ///
    /// # Safety
    /// The reference, and all that borrows from it, is gone before this writer is dropped, and no other reference is
    /// taken from this writer meanwhile.
    pub(crate) unsafe fn extended<'a>(&mut self) -> &'a mut T {
        // SAFETY: this writer is the only borrower while it lives, and the `Arc` keeps the value in its place; the
        // caller takes no second reference.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T, N> Deref for Reader<T, N> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the count keeps writers away while this reader lives.
        unsafe { &*self.0.value.get() }
    }
}

impl<T, N: Default> Deref for Writer<T, N> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this writer is the only borrower, and is itself borrowed.
        unsafe { &*self.0.value.get() }
    }
}

impl<T, N: Default> DerefMut for Writer<T, N> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this writer is the only borrower, and is itself borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T, N> Drop for Reader<T, N> {
    fn drop(&mut self) {
        // What this reader saw comes before what the next writer does.
        self.0.state.fetch_sub(1, Ordering::Release);
    }
}

impl<T, N: Default> Drop for Writer<T, N> {
    fn drop(&mut self) {
        // Before the next writer comes.
        *self.0.note.lock() = N::default();
        // What this writer did is seen by the next borrower.
        self.0.state.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let value = Arc::new(Lend::<_>::new(1));
        let (one, two) = (
            Arc::clone(&value).read().ok().unwrap(),
            Arc::clone(&value).read().ok().unwrap(),
        );
        assert_eq!(Arc::clone(&value).write().err(), Some(Refusal::Busy));
        assert_eq!(*one + *two, 2);
        drop(one);
        assert_eq!(Arc::clone(&value).write().err(), Some(Refusal::Busy));
        drop(two);
        let mut writer = Arc::clone(&value).write().ok().unwrap();
        *writer = 5;
        assert_eq!(Arc::clone(&value).read().err(), Some(Refusal::Busy));
        assert_eq!(Arc::clone(&value).write().err(), Some(Refusal::Busy));
        drop(writer);
        assert_eq!(*Arc::clone(&value).read().ok().unwrap(), 5);
    }

    #[test]
    fn a_note_lasts_as_long_as_its_writer() {
        let value = Arc::new(Lend::<u8, Option<u8>>::new(1));
        let writer = Arc::clone(&value).write().ok().unwrap();
        assert_eq!(value.note(), None);
        writer.leave(Some(7));
        assert_eq!(value.note(), Some(7));
        drop(writer);
        assert_eq!(value.note(), None);
    }

    #[test]
    fn a_closed_value_is_not_lent_and_a_lent_value_cannot_be_closed() {
        let value = Arc::new(Lend::<_>::new(()));
        let reader = Arc::clone(&value).read().ok().unwrap();
        assert_eq!(value.close(), Err(Refusal::Busy));
        drop(reader);
        let writer = Arc::clone(&value).write().ok().unwrap();
        assert_eq!(value.close(), Err(Refusal::Busy));
        drop(writer);
        assert_eq!(value.close(), Ok(()), "once");
        assert_eq!(Arc::clone(&value).read().err(), Some(Refusal::Closed));
        assert_eq!(Arc::clone(&value).write().err(), Some(Refusal::Closed));
        assert_eq!(value.close(), Err(Refusal::Closed));
    }

    #[test]
    fn who_closes_a_value_has_it_though_others_hold_the_cell() {
        let value = Arc::new(Lend::<_>::new(Arc::new(())));
        let looked_up = Arc::clone(&value);
        let inner = value.close().ok().unwrap();
        assert_eq!(Arc::strong_count(&inner), 1);
        drop((value, looked_up));
        assert_eq!(Arc::strong_count(&inner), 1, "not dropped a second time");
        let unclosed = Lend::<_>::new(Arc::clone(&inner));
        drop(unclosed);
        assert_eq!(Arc::strong_count(&inner), 1, "dropped with its cell");
    }

    #[test]
    fn writers_on_several_threads_lose_no_update() {
        let value = Arc::new(Lend::<_>::new(0_u32));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut done = 0;
                    while done < 1000 {
                        if let Ok(mut writer) = Arc::clone(&value).write() {
                            *writer += 1;
                            done += 1;
                        } else {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!(*Arc::clone(&value).read().ok().unwrap(), 4000);
    }
}
