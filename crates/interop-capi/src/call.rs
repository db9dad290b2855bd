//! What every exported function does: it catches panics, keeps errors, and looks at pointers before it uses them.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::failure::Failure;
use crate::handle::Object;
use crate::status::{HIPCL_ERROR_PANIC, HIPCL_SUCCESS, fail, hipcl_status};

/// Runs the body of an exported function. Nothing unwinds out of it, and a failure becomes the thread's last error.
#[inline]
pub(crate) fn call(function: &'static str, body: impl FnOnce() -> Result<(), Failure>) -> hipcl_status {
    // A panic leaves no object half changed that C code could see: values that were lent go back when their guards are
    // dropped, and the layers below are as they are after any panic of a thread.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => HIPCL_SUCCESS,
        Ok(Err(failure)) => fail(function, failure),
        Err(payload) => {
            let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
                (Some(text), _) => (*text).to_owned(),
                (_, Some(text)) => text.clone(),
                _ => "without a text".to_owned(),
            };
            // A payload may panic in its drop.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            let text = format!("the library panicked, which is a defect of it: {text}");
            fail(function, Failure::new(HIPCL_ERROR_PANIC, text))
        }
    }
}

/// The place of a result, which holds null or zero until it is set.
///
/// A pointer, because a caller may pass one place for two results.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Clears the place first, so that a failed call leaves no old value.
    ///
    /// # Safety
    /// `place` is null or a place for a `T`, which is plain data that may be all zeros, until the call ends.
    pub(crate) unsafe fn new(place: *mut T, argument: &'static str) -> Result<Self, Failure> {
        check_pointer(place.cast_const(), argument)?;
        // SAFETY: neither null nor misaligned; the caller's promise for the rest.
        unsafe { place.write_bytes(0, 1) };
        Ok(Self(place))
    }

    /// What the place holds if the call fails, where zero would mislead.
    pub(crate) fn preset(&mut self, value: T) {
        // SAFETY: a place for a `T` until the call ends, by the promise made to `new`; plain data needs no drop.
        unsafe { self.0.write(value) }
    }

    pub(crate) fn set(mut self, value: T) {
        self.preset(value);
    }
}

impl<R> Out<*mut R> {
    /// Gives the caller a handle of this object.
    pub(crate) fn publish<T: Object<Raw = R>>(self, object: T) -> Result<(), Failure> {
        self.set(object.publish()?);
        Ok(())
    }
}

/// The place of a result that the caller may do without.
///
/// # Safety
/// As [`Out::new`].
pub(crate) unsafe fn optional_out<T>(place: *mut T, argument: &'static str) -> Result<Option<Out<T>>, Failure> {
    if place.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { Out::new(place, argument) }.map(Some)
}

/// That a pointer may be used, as far as it can be seen.
fn check_pointer<T>(pointer: *const T, argument: &'static str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("`{argument}` is null")));
    }
    if !pointer.is_aligned() {
        let needed = align_of::<T>();
        return Err(Failure::argument(format!(
            "`{argument}` is {pointer:p}, which is no multiple of {needed}, the alignment of its type"
        )));
    }
    Ok(())
}

/// A structure that the caller fills.
///
/// # Safety
/// `place` is null or a `T` that nothing changes before the call ends.
pub(crate) unsafe fn input<'a, T>(place: *const T, argument: &'static str) -> Result<&'a T, Failure> {
    check_pointer(place, argument)?;
    // SAFETY: neither null nor misaligned; the caller's promise for the rest.
    Ok(unsafe { &*place })
}

/// A structure that begins with its own size, so that later versions of the header can add members at its end.
///
/// A program that was compiled with an older header passes a smaller one: what it lacks is zero, which is what leaves the
/// library as it was without the member. One of a newer header is larger: what this library does not know must be zero in
/// what it reads, and becomes zero in what it fills.
///
/// # Safety
/// `repr(C)`, plain data that may be all zeros, and its first member is its size, a `usize`.
pub(crate) unsafe trait Versioned: Copy {
    /// The size in the first version of the header.
    const FIRST: usize;
    /// What the header calls it.
    const NAME: &'static str;
}

/// Declares structures of the header that begin with their size.
macro_rules! versioned {
    ($($name:ident $first:literal;)+) => {$(
        // SAFETY: `repr(C)`, plain data, and the first member is the size, as the line before the macro's use shows.
        unsafe impl $crate::call::Versioned for $name {
            const FIRST: usize = $first;
            const NAME: &'static str = stringify!($name);
        }
        const _: () = assert!(std::mem::offset_of!($name, struct_size) == 0 && size_of::<$name>() >= $first);
    )+};
}
pub(crate) use versioned;

/// More than any structure has, so that what was not initialised is told from a size.
const MOST_SIZE: usize = 4096;

/// The size that a structure says it has.
///
/// # Safety
/// `place` is null or the caller's structure, of which the first member is set.
unsafe fn stated_size<T: Versioned>(place: *const T, argument: &'static str) -> Result<usize, Failure> {
    check_pointer(place, argument)?;
    // SAFETY: neither null nor misaligned, and the first member is the size.
    let size = unsafe { place.cast::<usize>().read() };
    match (T::FIRST..=MOST_SIZE).contains(&size) && size.is_multiple_of(align_of::<T>()) {
        true => Ok(size),
        false => Err(Failure::argument(format!(
            "`{argument}.struct_size` is {size}; set it to sizeof(struct {}), which is {} in this version of the library",
            T::NAME,
            size_of::<T>()
        ))),
    }
}

/// A structure that the caller fills, and that begins with its size.
///
/// # Safety
/// `place` is null or as many bytes as its first member says, which nothing changes before the call ends.
pub(crate) unsafe fn versioned_input<T: Versioned>(place: *const T, argument: &'static str) -> Result<T, Failure> {
    // SAFETY: the caller's promise.
    let size = unsafe { stated_size(place, argument) }?;
    // SAFETY: as many bytes are there.
    unsafe { read_known(place, size, argument) }
}

/// The elements of an array of such structures, all of one size.
///
/// # Safety
/// As [`versioned_input`], for each of `count` structures one behind the other.
pub(crate) unsafe fn versioned_inputs<T: Versioned>(
    place: *const T,
    count: usize,
    argument: &'static str,
) -> Result<Vec<T>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the caller's promise, for the first.
    let size = unsafe { stated_size(place, argument) }?;
    let elements = (0..count).map(|index| {
        let element = place.wrapping_byte_add(index * size);
        // SAFETY: as for the first, which has the size that the caller compiled all with.
        match unsafe { stated_size(element, argument) }? == size {
            // SAFETY: as many bytes are there.
            true => unsafe { read_known(element, size, argument) },
            false => Err(Failure::argument(format!(
                "`{argument}[{index}].struct_size` is not that of the first, which is {size}"
            ))),
        }
    });
    elements.collect()
}

/// # Safety
/// `size` bytes are at `place`.
unsafe fn read_known<T: Versioned>(place: *const T, size: usize, argument: &str) -> Result<T, Failure> {
    let known = size.min(size_of::<T>());
    // SAFETY: the caller's bytes.
    let unknown = unsafe { std::slice::from_raw_parts(place.cast::<u8>().wrapping_add(known), size - known) };
    if unknown.iter().any(|byte| *byte != 0) {
        return Err(Failure::argument(format!(
            "`{argument}` uses members of struct {} that this version of the library does not have; update the library",
            T::NAME
        )));
    }
    // SAFETY: may be all zeros.
    let mut value = unsafe { std::mem::zeroed::<T>() };
    // SAFETY: so many bytes are at both, which do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(place.cast::<u8>(), (&raw mut value).cast::<u8>(), known) };
    Ok(value)
}

/// The place of a structure that the library fills, and that begins with its size. All else is zero until it is set.
pub(crate) struct VersionedOut<T> {
    place: *mut T,
    size: usize,
}

impl<T: Versioned> VersionedOut<T> {
    /// Reads the size before anything is written.
    ///
    /// # Safety
    /// `place` is null or as many bytes as its first member says, until the call ends.
    pub(crate) unsafe fn new(place: *mut T, argument: &'static str) -> Result<Self, Failure> {
        // SAFETY: the caller's promise.
        let size = unsafe { stated_size(place.cast_const(), argument) }?;
        let behind = size_of::<usize>();
        // SAFETY: as many bytes are there.
        unsafe { place.cast::<u8>().wrapping_add(behind).write_bytes(0, size - behind) };
        Ok(Self { place, size })
    }

    /// Sets all members that the caller's structure has, but the size.
    pub(crate) fn set(self, value: T) {
        let (behind, known) = (size_of::<usize>(), self.size.min(size_of::<T>()));
        let from = (&raw const value).cast::<u8>().wrapping_add(behind);
        let to = self.place.cast::<u8>().wrapping_add(behind);
        // SAFETY: `known` bytes are at both, by the promise made to `new`, and they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, known - behind) };
    }
}

/// `len` elements to be read; null will do for none.
///
/// # Safety
/// `place` is null or `len` elements that nothing changes before the call ends.
pub(crate) unsafe fn slice<'a, T>(place: *const T, len: usize, argument: &'static str) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    check_pointer(place, argument)?;
    check_size::<T>(len, argument)?;
    // SAFETY: neither null nor misaligned, and no larger than memory can be; the caller's promise for the rest.
    Ok(unsafe { std::slice::from_raw_parts(place, len) })
}

/// `bytes` bytes to be written.
///
/// # Safety
/// `place` is null or `bytes` bytes that nothing else uses before the call ends. They need not be initialised: nothing
/// reads them before they are written.
pub(crate) unsafe fn slice_mut<'a>(
    place: *mut c_void,
    bytes: usize,
    argument: &'static str,
) -> Result<&'a mut [u8], Failure> {
    if bytes == 0 {
        return Ok(&mut []);
    }
    let place: *mut u8 = place.cast();
    check_pointer(place.cast_const(), argument)?;
    check_size::<u8>(bytes, argument)?;
    // SAFETY: not null, and no larger than memory can be; the caller's promise for the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(place, bytes) })
}

fn check_size<T>(len: usize, argument: &str) -> Result<(), Failure> {
    match len.checked_mul(size_of::<T>()).map(isize::try_from) {
        Some(Ok(_)) => Ok(()),
        _ => Err(Failure::argument(format!(
            "`{argument}` has {len} elements of {} bytes, more than the address space",
            size_of::<T>()
        ))),
    }
}

/// A text that ends with a nul.
///
/// # Safety
/// `text` is null or ends with a nul, and nothing changes it before the call ends.
pub(crate) unsafe fn text<'a>(text: *const c_char, argument: &'static str) -> Result<&'a str, Failure> {
    check_pointer(text, argument)?;
    // SAFETY: not null; the caller's promise for the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|error| Failure::argument(format!("`{argument}` is not UTF-8: {error}")))
}

/// As [`text`], where null stands for none.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(
    place: *const c_char,
    argument: &'static str,
) -> Result<Option<&'a str>, Failure> {
    if place.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { text(place, argument) }.map(Some)
}

/// The name of a value in one of the header's lists.
pub(crate) fn one_of<T: Copy>(value: i32, list: &[(i32, T)], argument: &str, names: &str) -> Result<T, Failure> {
    let found = list.iter().find(|(number, _)| *number == value);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| Failure::argument(format!("`{argument}` is {value}; use one of {names}")))
}

/// Drops an object that C code destroys.
pub(crate) fn destroy<T: Object>(function: &'static str, handle: *mut T::Raw, argument: &'static str) -> hipcl_status {
    call(function, || T::retire(handle, argument))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{HIPCL_ERROR_ARGUMENT, hipcl_last_error};

    fn last_error() -> String {
        // SAFETY: a text that ends with a nul, read before the next failure.
        unsafe { CStr::from_ptr(hipcl_last_error()) }
            .to_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn a_panic_becomes_a_status_with_its_text() {
        let value = 3;
        assert_eq!(call("f", || panic!("planted {value}")), HIPCL_ERROR_PANIC);
        assert!(last_error().starts_with("f: the library panicked") && last_error().contains("planted 3"));
    }

    #[test]
    fn a_payload_that_panics_in_its_drop_does_not_cross_either() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("in the drop");
            }
        }
        assert_eq!(call("f", || std::panic::panic_any(Bomb)), HIPCL_ERROR_PANIC);
        assert!(last_error().contains("without a text"));
    }

    #[test]
    fn a_success_leaves_the_last_error_and_each_thread_has_its_own() {
        assert_eq!(call("f", || Err(Failure::argument("planted"))), HIPCL_ERROR_ARGUMENT);
        assert_eq!(call("g", || Ok(())), HIPCL_SUCCESS);
        assert_eq!(last_error(), "f: planted");
        std::thread::scope(|scope| scope.spawn(|| assert_eq!(last_error(), "")).join().unwrap());
    }

    #[test]
    fn pointers_that_cannot_be_used_are_refused() {
        // SAFETY: null, misaligned or too long: none is read.
        unsafe {
            assert!(slice::<u32>(std::ptr::null(), 1, "x").is_err());
            assert!(slice::<u32>(std::ptr::null(), 0, "x").is_ok());
            assert!(slice(std::ptr::without_provenance::<u32>(6), 1, "x").is_err());
            assert!(slice(&raw const HIPCL_SUCCESS_PLACE, usize::MAX / 2, "x").is_err());
            assert!(text(std::ptr::null(), "x").is_err());
            assert!(optional_text(std::ptr::null(), "x").is_ok());
            assert!(text(c"\xFF".as_ptr(), "x").is_err());
        }
    }

    static HIPCL_SUCCESS_PLACE: u32 = 0;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Grown {
        struct_size: usize,
        first: u32,
        second: u32,
        later: u64,
    }
    versioned! { Grown 16; }

    /// As programs have it that were compiled with another header.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Compiled<const WORDS: usize> {
        struct_size: usize,
        words: [u64; WORDS],
    }

    fn compiled<const WORDS: usize>(words: [u64; WORDS]) -> Compiled<WORDS> {
        Compiled {
            struct_size: size_of::<Compiled<WORDS>>(),
            words,
        }
    }

    #[test]
    fn a_structure_of_another_header_is_read_as_far_as_both_know_it() {
        let read = |place: *const Grown| {
            // SAFETY: a structure as large as it says.
            unsafe { versioned_input(place, "x") }
        };
        let older = read(std::ptr::from_ref(&compiled([7 | 8 << 32])).cast()).ok().unwrap();
        assert_eq!((older.first, older.second, older.later), (7, 8, 0));
        let newer = read(std::ptr::from_ref(&compiled([7, 9, 0])).cast()).ok().unwrap();
        assert_eq!((newer.first, newer.second, newer.later), (7, 0, 9));
        let failure = read(std::ptr::from_ref(&compiled([7, 9, 1])).cast()).unwrap_err();
        assert!(failure.text.contains("update the library"), "{}", failure.text);
        for size in [0, 8, 12, 17, MOST_SIZE + 8, usize::MAX] {
            let wrong = Compiled {
                struct_size: size,
                words: [0; 2],
            };
            let failure = read((&raw const wrong).cast()).unwrap_err();
            assert!(
                failure.text.contains("sizeof(struct Grown), which is 24"),
                "{}",
                failure.text
            );
        }
    }

    #[test]
    fn an_array_of_another_header_is_read_by_its_own_distance() {
        let array = [compiled([1, 0, 0]), compiled([2, 5, 0])];
        // SAFETY: two structures as large as they say.
        let read = unsafe { versioned_inputs::<Grown>((&raw const array).cast(), 2, "x") }
            .ok()
            .unwrap();
        assert_eq!((read[0].first, read[1].first, read[1].later), (1, 2, 5));
    }

    #[test]
    fn no_byte_behind_a_smaller_structure_is_written_and_those_behind_the_known_ones_are_zero() {
        let value = Grown {
            struct_size: 99,
            first: 1,
            second: 2,
            later: 3,
        };
        let mut older = (compiled([u64::MAX]), u64::MAX);
        // SAFETY: a structure as large as it says.
        let place = unsafe { VersionedOut::<Grown>::new((&raw mut older.0).cast(), "x") };
        place.ok().unwrap().set(value);
        assert_eq!((older.0, older.1), (compiled([1 | 2 << 32]), u64::MAX));
        let mut newer = compiled([u64::MAX; 3]);
        // SAFETY: as above.
        let place = unsafe { VersionedOut::<Grown>::new((&raw mut newer).cast(), "x") };
        place.ok().unwrap().set(value);
        assert_eq!(newer, compiled([1 | 2 << 32, 3, 0]));
        let mut failed = compiled([u64::MAX; 2]);
        // SAFETY: as above.
        drop(unsafe { VersionedOut::<Grown>::new((&raw mut failed).cast(), "x") });
        assert_eq!(failed, compiled([0; 2]), "a call that fails leaves zeros");
    }
}
