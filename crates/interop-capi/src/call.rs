//! What every exported function does: it catches panics, keeps errors, and looks at pointers before it uses them.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::failure::Failure;
use crate::handle::Object;
use crate::lend::Refusal;
use crate::status::{HIPCL_ERROR_BUSY, HIPCL_ERROR_PANIC, HIPCL_ERROR_STALE_HANDLE, HIPCL_SUCCESS, fail, hipcl_status};

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

/// That an argument's object is in use, or was destroyed while the call looked at it.
pub(crate) fn refused(refusal: Refusal, argument: &str, kind: &str) -> Failure {
    match refusal {
        Refusal::Busy => Failure::new(
            HIPCL_ERROR_BUSY,
            format!(
                "`{argument}` is in use: by an open access (hipcl_access_end ends it), by another operand of this call, \
                 or by a call on another thread"
            ),
        ),
        Refusal::Closed => Failure::new(
            HIPCL_ERROR_STALE_HANDLE,
            format!("`{argument}` is a {kind} that was destroyed; do not use it any more"),
        ),
    }
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
    call(function, || {
        let object: Arc<T> = T::retire(handle, argument)?;
        drop(object);
        Ok(())
    })
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
}
