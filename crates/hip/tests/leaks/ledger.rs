//! Every call of a function of the host platform is written down.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hip::{Result, Runtime};
use hip_sys::*;

/// Calls, and those of them that succeeded, by name.
static CALLS: Mutex<Calls> = Mutex::new(BTreeMap::new());

pub type Calls = BTreeMap<&'static str, (u64, u64)>;

/// The calls since this was last asked.
pub fn take() -> Calls {
    std::mem::take(&mut *CALLS.lock().unwrap_or_else(PoisonError::into_inner))
}

pub fn note(name: &'static str, result: &dyn Any) {
    let hip = result.downcast_ref::<hipError_t>();
    let rtc = result.downcast_ref::<hiprtcResult>();
    let ok = hip.is_none_or(|code| *code == hipError_t::hipSuccess)
        && rtc.is_none_or(|code| *code == hiprtcResult::HIPRTC_SUCCESS);
    let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = calls.entry(name).or_default();
    entry.0 += 1;
    entry.1 += u64::from(ok);
}

macro_rules! ledger {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {
        mod counted {
            use super::*;
            $(
                #[allow(clippy::too_many_arguments, reason = "C signatures")]
                pub unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
                    // SAFETY: the caller's promise is the callee's demand; only functions that are there are wrapped.
                    let result = unsafe { hip_host::hip_api().$slot.unwrap()($($argument),*) };
                    note(stringify!($name), &result);
                    result
                }
            )*
        }

        /// The host platform's table, with an entry in the ledger for every call.
        pub fn counted_table() -> Api {
            let host = hip_host::hip_api();
            Api {
                $($slot: match host.$slot {
                    Some(_) => Some(counted::$name),
                    None => None,
                },)*
                // other releases' functions, which the host platform does not have
                ..Api::EMPTY
            }
        }
    };
}

hip_sys::for_each_function!(ledger);

macro_rules! rtc_ledger {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {
        mod rtc_counted {
            use super::*;
            $(
                pub unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
                    // SAFETY: the caller's promise is the callee's demand; only functions that are there are wrapped.
                    let result = unsafe { hip_host::rtc_api().$slot.unwrap()($($argument),*) };
                    note(stringify!($name), &result);
                    result
                }
            )*
        }

        /// The host platform's table of the compiler, with an entry in the ledger for every call.
        pub fn counted_rtc_table() -> RtcApi {
            let host = hip_host::rtc_api();
            RtcApi {
                $($slot: match host.$slot {
                    Some(_) => Some(rtc_counted::$name),
                    None => None,
                },)*
            }
        }
    };
}

hip_sys::for_each_rtc_function!(rtc_ledger);

/// A runtime whose calls are counted.
pub fn counted_runtime() -> Result<Runtime> {
    // SAFETY: the host platform's functions, or wrappers that call them.
    unsafe { Runtime::from_tables(Arc::new(counted_table()), Some(Arc::new(counted_rtc_table()))) }
}
