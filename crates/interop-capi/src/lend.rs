//! A value that is lent out, to many readers or one writer, for longer than a scope.
//!
//! C has no borrows: what Rust's compiler refuses, the table of the objects refuses when it happens. It never waits, because
//! a caller that holds an open access and asks for a second one would wait for itself.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use parking_lot::Mutex;

use crate::failure::Failure;
use crate::handle::Object;
use crate::table::{Alone, Held};

/// An object with a value that is reached through its [`Reader`]s or its one [`Writer`], and what a writer leaves for others
/// to know meanwhile.
pub(crate) struct Lend<T, N = ()> {
    /// The default while there is no writer.
    note: Mutex<N>,
    value: UnsafeCell<T>,
}

// SAFETY: as for `RwLock`: the value is reached by reference only through `Reader` and `Writer`, of which the table keeps a
// writer alone; `T: Send` lets a writer on another thread replace it, `T: Sync` lets readers share it.
unsafe impl<T: Send + Sync, N: Send> Sync for Lend<T, N> {}

impl<T, N: Default> Lend<T, N> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            note: Mutex::default(),
            value: UnsafeCell::new(value),
        }
    }

    pub(crate) fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// What the writer has left.
    pub(crate) fn note(&self) -> N
    where
        N: Clone,
    {
        self.note.lock().clone()
    }
}

/// Shared use of a value, which it keeps alive.
pub(crate) struct Reader<T: Send + Sync + 'static, N: Send + 'static = ()>(Held<Lend<T, N>>);

/// Exclusive use of a value, which it keeps alive.
pub(crate) struct Writer<T: Send + Sync + 'static, N: Default + Send + 'static = ()> {
    lent: Alone<Lend<T, N>>,
    has_left: bool,
}

impl<T: Send + Sync, N: Send> Reader<T, N>
where
    Lend<T, N>: Object,
{
    /// Together with other readers.
    #[inline]
    pub(crate) fn of(handle: *mut <Lend<T, N> as Object>::Raw, argument: &'static str) -> Result<Self, Failure> {
        Ok(Self(Lend::shared(handle, argument)?))
    }
}

impl<T: Send + Sync, N: Default + Send> Writer<T, N>
where
    Lend<T, N>: Object,
{
    /// As the only borrower.
    #[inline]
    pub(crate) fn of(handle: *mut <Lend<T, N> as Object>::Raw, argument: &'static str) -> Result<Self, Failure> {
        Ok(Self {
            lent: Lend::alone(handle, argument)?,
            has_left: false,
        })
    }
}

impl<T: Send + Sync, N: Send> Reader<T, N> {
    /// The value, for as long as this reader lives, whatever the lifetime says.
    ///
    /// # Safety
    /// The reference, and all that borrows from it, is gone before this reader is dropped.
    pub(crate) unsafe fn extended<'a>(&self) -> &'a T {
        // SAFETY: the table keeps writers away while this reader lives, and the value in its place.
        unsafe { &*self.0.value.get() }
    }
}

impl<T: Send + Sync, N: Default + Send> Writer<T, N> {
    /// Leaves this for others to know until the writer is dropped.
    pub(crate) fn leave(&mut self, note: N) {
        self.has_left = true;
        *self.lent.note.lock() = note;
    }

    /// The value, for as long as this writer lives, whatever the lifetime says.
    ///
    /// # Safety
    /// The reference, and all that borrows from it, is gone before this writer is dropped, and no other reference is
    /// taken from this writer meanwhile.
    pub(crate) unsafe fn extended<'a>(&mut self) -> &'a mut T {
        // SAFETY: this writer is the only borrower while it lives, and the table keeps the value in its place; the caller
        // takes no second reference.
        unsafe { &mut *self.lent.value.get() }
    }
}

impl<T: Send + Sync, N: Send> Deref for Reader<T, N> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the table keeps writers away while this reader lives.
        unsafe { &*self.0.value.get() }
    }
}

impl<T: Send + Sync, N: Default + Send> Deref for Writer<T, N> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this writer is the only borrower, and is itself borrowed.
        unsafe { &*self.lent.value.get() }
    }
}

impl<T: Send + Sync, N: Default + Send> DerefMut for Writer<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this writer is the only borrower, and is itself borrowed exclusively.
        unsafe { &mut *self.lent.value.get() }
    }
}

impl<T: Send + Sync, N: Default + Send> Drop for Writer<T, N> {
    #[inline]
    fn drop(&mut self) {
        // Before the next writer comes.
        if self.has_left {
            *self.lent.note.lock() = N::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::object;
    use crate::status::{HIPCL_ERROR_BUSY, HIPCL_ERROR_STALE_HANDLE};

    type Number = Lend<u32, Option<u8>>;
    type NumberReader = Reader<u32, Option<u8>>;
    type NumberWriter = Writer<u32, Option<u8>>;
    pub(crate) enum NumberRaw {}
    object!(Number, NumberRaw, Event);

    fn published(value: u32) -> *mut NumberRaw {
        Number::new(value).publish().ok().unwrap()
    }

    fn status<T>(result: Result<T, Failure>) -> Option<i32> {
        result.err().map(|failure| failure.status)
    }

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let number = published(1);
        let (one, two) = (
            NumberReader::of(number, "x").ok().unwrap(),
            NumberReader::of(number, "x").ok().unwrap(),
        );
        assert_eq!(status(NumberWriter::of(number, "x")), Some(HIPCL_ERROR_BUSY));
        assert_eq!(*one + *two, 2);
        drop(one);
        assert_eq!(status(NumberWriter::of(number, "x")), Some(HIPCL_ERROR_BUSY));
        drop(two);
        let mut writer = NumberWriter::of(number, "x").ok().unwrap();
        *writer = 5;
        assert_eq!(status(NumberReader::of(number, "x")), Some(HIPCL_ERROR_BUSY));
        assert_eq!(status(NumberWriter::of(number, "x")), Some(HIPCL_ERROR_BUSY));
        drop(writer);
        assert_eq!(*NumberReader::of(number, "x").ok().unwrap(), 5);
    }

    #[test]
    fn a_note_lasts_as_long_as_its_writer() {
        let number = published(1);
        let note = || Number::of(number, "x").ok().unwrap().note();
        let mut writer = NumberWriter::of(number, "x").ok().unwrap();
        assert_eq!(note(), None);
        writer.leave(Some(7));
        assert_eq!(note(), Some(7));
        drop(writer);
        assert_eq!(note(), None);
    }

    #[test]
    fn a_taken_value_is_not_lent_and_a_lent_value_cannot_be_taken() {
        let number = published(3);
        let reader = NumberReader::of(number, "x").ok().unwrap();
        assert_eq!(status(Number::take(number, "x")), Some(HIPCL_ERROR_BUSY));
        drop(reader);
        let writer = NumberWriter::of(number, "x").ok().unwrap();
        assert_eq!(status(Number::take(number, "x")), Some(HIPCL_ERROR_BUSY));
        drop(writer);
        assert_eq!(Number::take(number, "x").ok().unwrap().into_inner(), 3);
        assert_eq!(status(NumberReader::of(number, "x")), Some(HIPCL_ERROR_STALE_HANDLE));
        assert_eq!(status(NumberWriter::of(number, "x")), Some(HIPCL_ERROR_STALE_HANDLE));
    }

    #[test]
    fn a_panic_gives_back_what_was_lent() {
        let number = published(0);
        let panicked = std::panic::catch_unwind(|| {
            let mut writer = NumberWriter::of(number, "x").ok().unwrap();
            writer.leave(Some(1));
            *writer = 2;
            panic!("planted");
        });
        assert!(panicked.is_err());
        assert_eq!(*NumberWriter::of(number, "x").ok().unwrap(), 2);
        assert_eq!(Number::of(number, "x").ok().unwrap().note(), None);
        assert!(Number::take(number, "x").is_ok());
    }
}
