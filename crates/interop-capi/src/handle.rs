//! Handles: numbers that C code holds in the place of objects.
//!
//! | bits 63 to 56 | 55 to 24 | 23 to 0 |
//! |---|---|---|
//! | kind | generation | index of the slot in the kind's [`Table`] |
//!
//! A handle is never dereferenced. A lookup compares its kind with the kind that the call takes, and its generation with
//! that of the slot, which grows when an object is destroyed: a handle of a destroyed object, or of another kind, is an
//! error and never another object. The kind's highest bit is set, so a handle is no address that a program can have.

use crate::failure::Failure;
use crate::status::{HIPCL_ERROR_BUSY, HIPCL_ERROR_HANDLE, HIPCL_ERROR_LIMIT, HIPCL_ERROR_STALE_HANDLE};
use crate::table::{Alone, Held, INDEX_BITS, Miss, Place, Table};

/// What a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Bridge = 0x81,
    Queue,
    Stream,
    Buffer,
    Access,
    Program,
    Kernel,
    Blas,
    Fft,
    Text,
    Event,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Bridge,
        Self::Queue,
        Self::Stream,
        Self::Buffer,
        Self::Access,
        Self::Program,
        Self::Kernel,
        Self::Blas,
        Self::Fft,
        Self::Text,
        Self::Event,
    ];

    /// The C type.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bridge => "hipcl_bridge",
            Self::Queue => "hipcl_queue",
            Self::Stream => "hipcl_stream",
            Self::Buffer => "hipcl_buffer",
            Self::Access => "hipcl_access",
            Self::Program => "hipcl_program",
            Self::Kernel => "hipcl_kernel",
            Self::Blas => "hipcl_blas",
            Self::Fft => "hipcl_fft",
            Self::Text => "hipcl_text",
            Self::Event => "hipcl_event",
        }
    }

    fn of(handle: u64) -> Option<Self> {
        let kind = (handle >> KIND_SHIFT) as u8;
        Self::ALL.into_iter().find(|known| *known as u8 == kind)
    }
}

/// An object that C code may have a handle of.
pub(crate) trait Object: Sized + Send + Sync + 'static {
    /// The opaque type that the C type points to.
    type Raw;
    const KIND: Kind;

    fn table() -> &'static Table<Self>;

    /// The object of this argument, for as long as the result lives.
    #[inline]
    fn of(handle: *mut Self::Raw, argument: &'static str) -> Result<Held<Self>, Failure> {
        find::<Self, _>(handle, argument, |place| Self::table().hold(place))
    }

    /// As [`of`](Self::of), but refused while another call or access has the object [`alone`](Self::alone).
    #[inline]
    fn shared(handle: *mut Self::Raw, argument: &'static str) -> Result<Held<Self>, Failure> {
        find::<Self, _>(handle, argument, |place| Self::table().share(place))
    }

    /// The object of this argument, which no other call or access has.
    #[inline]
    fn alone(handle: *mut Self::Raw, argument: &'static str) -> Result<Alone<Self>, Failure> {
        find::<Self, _>(handle, argument, |place| Self::table().alone(place))
    }

    /// A handle of a new object.
    fn publish(self) -> Result<*mut Self::Raw, Failure> {
        let place = Self::table().insert(self).ok_or_else(|| {
            let (most, name) = (1 << INDEX_BITS, Self::KIND.name());
            let text = format!("{most} objects of type {name} are alive, the most that there can be; destroy some");
            Failure::new(HIPCL_ERROR_LIMIT, text)
        })?;
        let handle =
            (Self::KIND as usize) << KIND_SHIFT | (place.generation as usize) << INDEX_BITS | place.index as usize;
        Ok(std::ptr::without_provenance_mut(handle))
    }

    /// Makes the handle stale. The object is dropped once no call and no access has it.
    fn retire(handle: *mut Self::Raw, argument: &'static str) -> Result<(), Failure> {
        find::<Self, _>(handle, argument, |place| Self::table().retire(place))
    }

    /// Makes the handle stale and takes its object, which no call and no access has.
    fn take(handle: *mut Self::Raw, argument: &'static str) -> Result<Self, Failure> {
        find::<Self, _>(handle, argument, |place| Self::table().take(place))
    }
}

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a handle needs pointers of 64 bits");

/// Makes a type an object with a table.
macro_rules! object {
    ($object:ident, $raw:ident, $kind:ident) => {
        impl $crate::handle::Object for $object {
            type Raw = $raw;
            const KIND: $crate::handle::Kind = $crate::handle::Kind::$kind;

            fn table() -> &'static $crate::table::Table<Self> {
                static TABLE: $crate::table::Table<$object> = $crate::table::Table::new();
                &TABLE
            }
        }
    };
}
pub(crate) use object;

const KIND_SHIFT: u32 = 56;

/// What `look` finds at the place of a handle.
#[inline]
fn find<T: Object, R>(
    handle: *mut T::Raw,
    argument: &'static str,
    look: impl FnOnce(Place) -> Result<R, Miss>,
) -> Result<R, Failure> {
    let number = handle.addr();
    let found = match number >> KIND_SHIFT == T::KIND as usize {
        true => look(Place {
            index: (number & ((1 << INDEX_BITS) - 1)) as u32,
            generation: (number >> INDEX_BITS) as u32,
        }),
        false => Err(Miss::Unknown),
    };
    found.map_err(|miss| missed::<T>(miss, number as u64, argument))
}

#[cold]
fn missed<T: Object>(miss: Miss, handle: u64, argument: &str) -> Failure {
    match miss {
        Miss::Stale => stale::<T>(argument),
        Miss::Unknown => unknown::<T>(handle, argument),
        Miss::Busy => busy(argument),
    }
}

/// That an argument's object is in use.
fn busy(argument: &str) -> Failure {
    Failure::new(
        HIPCL_ERROR_BUSY,
        format!(
            "`{argument}` is in use: by an open access (hipcl_access_end ends it), by another operand of this call, or by a \
             call on another thread"
        ),
    )
}

fn stale<T: Object>(argument: &str) -> Failure {
    Failure::new(
        HIPCL_ERROR_STALE_HANDLE,
        format!(
            "`{argument}` is a {} that was destroyed; do not use it any more",
            T::KIND.name()
        ),
    )
}

/// No handle of this table, for whatever reason.
fn unknown<T: Object>(handle: u64, argument: &str) -> Failure {
    let wanted = T::KIND.name();
    let text = match Kind::of(handle) {
        _ if handle == 0 => format!("`{argument}` is null; pass a {wanted}"),
        Some(kind) if kind != T::KIND => format!("`{argument}` is a {}; pass a {wanted}", kind.name()),
        _ => format!("`{argument}` is {handle:#x}, which this library did not return; pass a {wanted}"),
    };
    Failure::new(HIPCL_ERROR_HANDLE, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Number(u32);
    enum NumberRaw {}
    object!(Number, NumberRaw, Text);

    struct Other;
    enum OtherRaw {}
    object!(Other, OtherRaw, Fft);

    fn status<T>(result: Result<T, Failure>) -> (i32, String) {
        let failure = result.err().expect("a refusal");
        (failure.status, failure.text)
    }

    #[test]
    fn a_handle_is_its_own_object_until_that_is_destroyed() {
        let (one, two) = (Number(1).publish().ok().unwrap(), Number(2).publish().ok().unwrap());
        assert_eq!(Number::of(one, "x").ok().unwrap().0, 1);
        assert_eq!(Number::of(two, "x").ok().unwrap().0, 2);
        assert!(Number::retire(one, "x").is_ok());
        assert_eq!(status(Number::of(one, "x")).0, HIPCL_ERROR_STALE_HANDLE);
        assert_eq!(status(Number::retire(one, "x")).0, HIPCL_ERROR_STALE_HANDLE);
        // The slot's next object has another handle.
        let three = Number(3).publish().ok().unwrap();
        assert_ne!(three, one);
        assert_eq!(status(Number::of(one, "x")).0, HIPCL_ERROR_STALE_HANDLE);
        assert_eq!(Number::of(two, "x").ok().unwrap().0, 2);
    }

    #[test]
    fn an_object_lives_until_the_last_call_that_has_it_is_over() {
        let handle = Number(7).publish().ok().unwrap();
        let held = Number::of(handle, "x").ok().unwrap();
        assert!(Number::retire(handle, "x").is_ok());
        assert_eq!(held.0, 7);
        let lent = Number(8).publish().ok().unwrap();
        let alone = Number::alone(lent, "x").ok().unwrap();
        assert!(Number::retire(lent, "x").is_ok());
        assert_eq!(alone.0, 8);
    }

    #[test]
    fn who_is_refused_an_object_in_use_is_told_so() {
        let handle = Number(9).publish().ok().unwrap();
        let alone = Number::alone(handle, "x").ok().unwrap();
        for refused in [
            status(Number::shared(handle, "x")),
            status(Number::alone(handle, "x")),
            status(Number::take(handle, "x")),
        ] {
            assert_eq!(refused.0, HIPCL_ERROR_BUSY);
            assert!(refused.1.starts_with("`x` is in use"), "{}", refused.1);
        }
        drop(alone);
        assert_eq!(Number::take(handle, "x").ok().unwrap().0, 9);
        assert_eq!(status(Number::take(handle, "x")).0, HIPCL_ERROR_STALE_HANDLE);
    }

    #[test]
    fn null_foreign_and_invented_handles_are_told_apart() {
        let other = Other.publish().ok().unwrap();
        let (code, text) = status(Number::of(other.cast(), "x"));
        assert_eq!(code, HIPCL_ERROR_HANDLE);
        assert!(text.contains("`x` is a hipcl_fft; pass a hipcl_text"), "{text}");
        let (code, text) = status(Number::of(std::ptr::null_mut(), "x"));
        assert_eq!(code, HIPCL_ERROR_HANDLE);
        assert!(text.contains("is null"), "{text}");
        for invented in [
            1,
            usize::MAX,
            (&raw const code).addr(),
            (Kind::Text as usize) << 56 | 0xFF_FFFF,
        ] {
            let invented = std::ptr::without_provenance_mut(invented);
            assert_eq!(status(Number::of(invented, "x")).0, HIPCL_ERROR_HANDLE);
        }
    }

    #[test]
    fn kinds_are_no_addresses_and_differ() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert!(kind as u8 >= 0x80);
            assert_eq!(Kind::ALL.iter().position(|other| *other as u8 == kind as u8), Some(at));
            assert_eq!(Kind::of((kind as u64) << 56), Some(kind));
        }
    }
}
