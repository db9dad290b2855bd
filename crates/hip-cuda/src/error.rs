//! The calling thread's last error, and the frame that every HIP entry point runs in.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hip_sys::hipError_t;

/// What the bodies of entry points return.
pub(crate) type Result<T = ()> = std::result::Result<T, hipError_t>;

pub(crate) const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;
pub(crate) const UNSUPPORTED: hipError_t = hipError_t::hipErrorNotSupported;

thread_local! {
    static LAST: Cell<hipError_t> = const { Cell::new(hipError_t::hipSuccess) };
    /// The last result that was an error; successes leave it unchanged.
    static LAST_FAILURE: Cell<hipError_t> = const { Cell::new(hipError_t::hipSuccess) };
}

/// Runs the body of one HIP entry point: no panic across the C boundary, and the thread's last error set.
///
/// HIP 6 stores the result of *every* call, a success included (hipamd/src/hip_internal.hpp, `HIP_RETURN`).
pub(crate) fn entry(body: impl FnOnce() -> Result) -> hipError_t {
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => hipError_t::hipSuccess,
        Ok(Err(code)) => code,
        Err(_) => hipError_t::hipErrorUnknown,
    };
    LAST.set(code);
    if !matches!(code, hipError_t::hipSuccess | hipError_t::hipErrorNotReady) {
        LAST_FAILURE.set(code);
    }
    code
}

/// Stores a result at the C caller's pointer, refusing null.
///
/// # Safety
/// `out` is null or valid for writing one `T`.
pub(crate) unsafe fn store<T>(out: *mut T, value: T) -> Result {
    if out.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, so by this function's contract valid for a write; unaligned because C callers may pack.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Refuses null pointers, which CUDA's driver does not do everywhere.
macro_rules! not_null {
    ($($pointer:expr),+) => {
        if $($pointer.is_null())||+ {
            return Err($crate::error::INVALID);
        }
    };
}
pub(crate) use not_null;

/// Defines HIP's C functions under their own names, and a function that puts them into the table.
///
/// A body runs in [`entry`] and returns `Result`. It is an `unsafe` block as a whole, for one reason
/// everywhere: an argument is either passed on to the driver function with the same contract, or read and written as
/// HIP's documentation requires the caller to allow, after `null` was refused.
macro_rules! calls {
    (
        $(#[$meta:meta])*
        $visibility:vis fn $fill:ident;
        $($(#[$doc:meta])* fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $body:block)*
    ) => {
        $(
            $(#[$doc])*
            #[allow(non_snake_case, unused_unsafe, clippy::too_many_arguments, reason = "C functions")]
            unsafe extern "C" fn $name($($argument: $ty),*) -> hip_sys::hipError_t {
                // SAFETY: the C caller keeps HIP's contract for this function, which is what the body needs; see
                // `calls!`.
                $crate::error::entry(|| unsafe { $body })
            }
        )*

        $(#[$meta])*
        $visibility const fn $fill(api: &mut hip_sys::Api) {
            $(api.$name = Some($name);)*
        }
    };
}
pub(crate) use calls;

pub(crate) unsafe extern "C" fn get_last_error() -> hipError_t {
    LAST.replace(hipError_t::hipSuccess)
}

pub(crate) unsafe extern "C" fn peek_at_last_error() -> hipError_t {
    LAST.get()
}

/// The last failure since the last call, which later successes do not hide (hipamd/src/hip_error.cpp).
pub(crate) unsafe extern "C" fn ext_get_last_error() -> hipError_t {
    LAST_FAILURE.replace(hipError_t::hipSuccess)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_the_last_failure_outlives_a_success() {
        assert_eq!(entry(|| panic!("on purpose")), hipError_t::hipErrorUnknown);
        assert_eq!(entry(|| Ok(())), hipError_t::hipSuccess);
        // SAFETY: neither takes an argument.
        let (last, failure) = unsafe { (get_last_error(), ext_get_last_error()) };
        assert_eq!((last, failure), (hipError_t::hipSuccess, hipError_t::hipErrorUnknown));
    }
}
