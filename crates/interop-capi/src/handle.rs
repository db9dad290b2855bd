//! Handles: numbers that C code holds in the place of objects, and the tables that know what they stand for.
//!
//! | bits 63 to 56 | 55 to 24 | 23 to 0 |
//! |---|---|---|
//! | kind | generation | index of the slot in the kind's table |
//!
//! A handle is never dereferenced. A lookup compares its kind with the kind that the call takes, and its generation with
//! that of the slot, which grows when an object is destroyed: a handle of a destroyed object, or of another kind, is an
//! error and never another object. The kind's highest bit is set, so a handle is no address that a program can have.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::failure::Failure;
use crate::status::{HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE};

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
        let kind = (handle >> 56) as u8;
        Self::ALL.into_iter().find(|known| *known as u8 == kind)
    }
}

/// An object that C code may have a handle of.
pub(crate) trait Object: Sized + Send + Sync + 'static {
    /// The opaque type that the C type points to.
    type Raw;
    const KIND: Kind;

    fn table() -> &'static Table<Self>;

    /// The object of this argument.
    fn of(handle: *mut Self::Raw, argument: &'static str) -> Result<Arc<Self>, Failure> {
        Self::table().get(handle.addr() as u64, argument)
    }

    /// A handle of a new object.
    fn publish(self) -> Result<*mut Self::Raw, Failure> {
        let handle = Self::table().insert(Arc::new(self))?;
        Ok(std::ptr::without_provenance_mut(handle as usize))
    }

    /// Takes the object out of its table. It lives until calls that have it are over.
    fn retire(handle: *mut Self::Raw, argument: &'static str) -> Result<Arc<Self>, Failure> {
        Self::table().remove(handle.addr() as u64, argument)
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

            fn table() -> &'static $crate::handle::Table<Self> {
                static TABLE: $crate::handle::Table<$object> = $crate::handle::Table::new();
                &TABLE
            }
        }
    };
}
pub(crate) use object;

const INDEX_BITS: u32 = 24;
const MOST: usize = 1 << INDEX_BITS;

/// The objects of one kind.
pub(crate) struct Table<T> {
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// Empty slots. One whose generations are used up is not among them: no handle is ever given twice.
    free: Vec<usize>,
}

struct Slot<T> {
    generation: u32,
    object: Option<Arc<T>>,
}

impl<T: Object> Table<T> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: RwLock::new(Slots {
                slots: Vec::new(),
                free: Vec::new(),
            }),
        }
    }

    fn insert(&self, object: Arc<T>) -> Result<u64, Failure> {
        let mut slots = self.slots.write();
        let index = match slots.free.pop() {
            Some(index) => index,
            None if slots.slots.len() < MOST => {
                slots.slots.push(Slot {
                    generation: 0,
                    object: None,
                });
                slots.slots.len() - 1
            }
            None => {
                let name = T::KIND.name();
                return Err(Failure::new(
                    crate::status::HIPCL_ERROR_LIMIT,
                    format!("{MOST} objects of type {name} are alive, the most that there can be; destroy some"),
                ));
            }
        };
        let slot = &mut slots.slots[index];
        slot.object = Some(object);
        Ok(u64::from(T::KIND as u8) << 56 | u64::from(slot.generation) << INDEX_BITS | index as u64)
    }

    fn get(&self, handle: u64, argument: &'static str) -> Result<Arc<T>, Failure> {
        let (index, generation) = place::<T>(handle, argument)?;
        let slots = self.slots.read();
        match slots.slots.get(index) {
            Some(Slot {
                generation: current,
                object: Some(object),
            }) if *current == generation => Ok(Arc::clone(object)),
            Some(slot) if generation <= slot.generation => Err(stale::<T>(argument)),
            _ => Err(unknown::<T>(handle, argument)),
        }
    }

    fn remove(&self, handle: u64, argument: &'static str) -> Result<Arc<T>, Failure> {
        let (index, generation) = place::<T>(handle, argument)?;
        let mut slots = self.slots.write();
        let slot = match slots.slots.get_mut(index) {
            Some(slot) if slot.generation == generation && slot.object.is_some() => slot,
            Some(slot) if generation <= slot.generation => return Err(stale::<T>(argument)),
            _ => return Err(unknown::<T>(handle, argument)),
        };
        let object = slot.object.take().ok_or_else(|| stale::<T>(argument))?;
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            slots.free.push(index);
        }
        Ok(object)
    }
}

/// Slot and generation of a handle of this kind.
fn place<T: Object>(handle: u64, argument: &'static str) -> Result<(usize, u32), Failure> {
    if handle >> 56 != u64::from(T::KIND as u8) {
        return Err(unknown::<T>(handle, argument));
    }
    Ok((handle as usize & (MOST - 1), (handle >> INDEX_BITS) as u32))
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

    fn status(result: Result<Arc<Number>, Failure>) -> (i32, String) {
        let failure = result.err().expect("a refusal");
        (failure.status, failure.text)
    }

    #[test]
    fn a_handle_is_its_own_object_until_that_is_destroyed() {
        let (one, two) = (Number(1).publish().ok().unwrap(), Number(2).publish().ok().unwrap());
        assert_eq!(Number::of(one, "x").ok().unwrap().0, 1);
        assert_eq!(Number::of(two, "x").ok().unwrap().0, 2);
        assert_eq!(Number::retire(one, "x").ok().unwrap().0, 1);
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
        drop(Number::retire(handle, "x").ok().unwrap());
        assert_eq!(held.0, 7);
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
    fn a_slot_whose_generations_are_used_up_is_not_used_again() {
        let table = Table::<Other>::new();
        let first = table.insert(Arc::new(Other)).ok().unwrap();
        table.slots.write().slots[0].generation = u32::MAX;
        let last = first | u64::from(u32::MAX) << INDEX_BITS;
        assert!(table.get(last, "x").is_ok());
        assert!(table.remove(last, "x").is_ok());
        let next = table.insert(Arc::new(Other)).ok().unwrap();
        assert_eq!(next & (MOST as u64 - 1), 1);
        assert!(table.get(last, "x").is_err());
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
