//! C function pointers carry no state, so each counted table needs its own functions.
//!
//! The counting functions are generic over a slot number; a slot holds the original functions and the ledger that
//! counts. The owner of the table that was handed out keeps the [`Lease`]: while a stream or a queue that outlives its
//! bridge can still call through that table, no other bridge gets the slot. A slot keeps its originals for ever, because
//! code may have copied a function out of the table; it is reused only for a table with the same originals.

use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use super::ledger::Ledger;

/// One set of counting functions: the originals they call and the ledger they write to.
pub(super) struct Slot<O: 'static> {
    originals: OnceLock<O>,
    ledger: RwLock<Option<Arc<Ledger>>>,
}

impl<O> Slot<O> {
    pub(super) const fn new() -> Self {
        Self {
            originals: OnceLock::new(),
            ledger: RwLock::new(None),
        }
    }

    /// The functions behind the counting ones; set before any of those is handed out.
    pub(super) fn originals(&self) -> Option<&O> {
        self.originals.get()
    }

    /// The counter, if there is one.
    pub(super) fn ledger(&self) -> Option<Arc<Ledger>> {
        self.ledger.read().clone()
    }
}

/// Holds a slot; dropping it stops the counting and lets the slot be taken again.
pub(crate) struct Lease {
    index: usize,
    release: fn(usize),
}

impl Lease {
    pub(super) fn index(&self) -> usize {
        self.index
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        (self.release)(self.index);
    }
}

/// What a C function returns, and how to tell that it succeeded.
pub(super) trait Outcome {
    /// The result where the function is missing.
    const MISSING: Self;
    /// Whether the call succeeded.
    fn is_success(&self) -> bool;
}

/// Serialises taking a slot.
pub(super) static TAKING: Mutex<()> = Mutex::new(());

/// Takes a slot for `originals`: a free one that has them already, else an unused one.
pub(super) fn take<O>(
    slots: &'static [Slot<O>],
    originals: O,
    is_same: fn(&O, &O) -> bool,
    ledger: &Arc<Ledger>,
    release: fn(usize),
) -> Option<Lease> {
    let _taking = TAKING.lock();
    let is_free = |slot: &Slot<O>| slot.ledger.read().is_none();
    let index = slots
        .iter()
        .position(|slot| {
            let has_them = slot.originals().is_some_and(|own| is_same(own, &originals));
            has_them && is_free(slot)
        })
        .or_else(|| slots.iter().position(|slot| slot.originals.get().is_none()))?;
    let slot = &slots[index];
    slot.originals.get_or_init(|| originals);
    *slot.ledger.write() = Some(Arc::clone(ledger));
    Some(Lease { index, release })
}

/// Ends the counting of a slot.
pub(super) fn give_back<O>(slot: &Slot<O>) {
    *slot.ledger.write() = None;
}

/// A call on its way through a counting function.
pub(super) struct Call<'a, Api> {
    pub(super) function: &'static str,
    /// The original functions behind the counting ones.
    pub(super) table: &'a Api,
    pub(super) ledger: &'a Ledger,
}

impl<Api> Call<'_, Api> {
    /// Counts if the call succeeded.
    pub(super) fn after<R: Outcome>(&self, result: R, count: impl FnOnce()) -> R {
        if result.is_success() {
            count();
        }
        result
    }
}

/// Declares the counting functions of one table.
///
/// | list | a line is | meaning |
/// |---|---|---|
/// | `copies` | `name(arguments) -> result, \|it\| work` | `work` counts when the call has succeeded |
/// | `watched` | `name(arguments) -> result, \|it, call\| work` | `work` makes the call, and returns its result |
/// | `excluded` | `name name ...: reason` | the function stays as it is |
///
/// `it` is a [`Call`]. Expects in scope: `Api`, the table's type, and [`Outcome`] for each result type.
macro_rules! counted_table {
    ($count:literal slots: $($index:literal)*;
     copies { $($name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty, |$it:ident| $work:expr;)* }
     watched { $($other:ident($($given:ident: $kind:ty),* $(,)?) -> $result:ty, |$its:ident, $call:ident| $doing:expr;)* }
     $(#[$note:meta])*
     excluded { $($($left:ident)+: $reason:literal;)* }) => {
        counted_table! { @table
            $count slots: $($index)*;
            $($name($($arg: $ty),*) -> $ret, |$it, call| {
                let status = call();
                $it.after(status, || $work)
            };)*
            $($other($($given: $kind),*) -> $result, |$its, $call| $doing;)*
        }

        $(#[$note])*
        #[cfg(test)]
        const EXCLUDED: &[(&str, &str)] = &[$($((stringify!($left), $reason),)+)*];
    };
    (@table $count:literal slots: $($index:literal)*;
     $($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, |$it:ident, $call:ident| $work:expr;)*) => {
        /// How many tables can be counted apart at once.
        pub(super) const SLOTS: usize = $count;

        /// The replaced functions.
        #[cfg(test)]
        const COUNTED: &[&str] = &[$(stringify!($name)),*];

        static TABLE: [Slot<Api>; SLOTS] = [const { Slot::new() }; SLOTS];

        /// Whether the replaced functions are the same functions of the same library.
        fn is_same(one: &Api, two: &Api) -> bool {
            $(one.$name.map(|function| function as usize) == two.$name.map(|function| function as usize))&&*
        }

        // The function for each slot only names the slot, so the rest is compiled once.
        mod counting {
            use super::*;
            $(
                #[allow(non_snake_case, reason = "the C function's name")]
                #[allow(clippy::too_many_arguments, reason = "the C function's arguments")]
                pub(super) unsafe extern "C" fn $name<const S: usize>($($arg: $ty),*) -> $ret {
                    // SAFETY: the caller's promise about the function of this name.
                    unsafe { counted::$name(&TABLE[S], $($arg),*) }
                }
            )*
        }

        mod counted {
            use super::*;
            $(
                #[allow(non_snake_case, reason = "the C function's name")]
                #[allow(clippy::too_many_arguments, reason = "the C function's arguments")]
                pub(super) unsafe fn $name(slot: &'static Slot<Api>, $($arg: $ty),*) -> $ret {
                    let Some((table, original)) = slot.originals().and_then(|table| Some((table, table.$name?))) else {
                        // A counting function is handed out only where there is an original.
                        return Outcome::MISSING;
                    };
                    // SAFETY: the arguments are the caller's, passed on unchanged to the function
                    // that the caller meant to call.
                    let $call = || unsafe { original($($arg),*) };
                    let Some(ledger) = slot.ledger() else {
                        return $call();
                    };
                    let $it = Call {
                        function: stringify!($name),
                        table,
                        ledger: &ledger,
                    };
                    $work
                }
            )*
        }

        fn install<const S: usize>(api: &mut Api) {
            $(if api.$name.is_some() {
                api.$name = Some(counting::$name::<S>);
            })*
        }

        const INSTALL: [fn(&mut Api); SLOTS] = [$(install::<$index>),*];

        /// Puts counting functions in front of the copy calls of `api`; `None` if every slot is taken.
        pub(super) fn wrap(api: &mut Api, ledger: &Arc<Ledger>) -> Option<Lease> {
            let lease = slots::take(&TABLE, *api, is_same, ledger, |index| slots::give_back(&TABLE[index]))?;
            INSTALL[lease.index()](api);
            Some(lease)
        }
    };
}
pub(super) use counted_table;

/// Each function that moves data is in one of the two lists, and the lists name only functions in the table.
#[cfg(test)]
pub(super) fn check_lists(symbols: &[&str], counted: &[&str], excluded: &[(&str, &str)], moves: impl Fn(&str) -> bool) {
    for symbol in symbols.iter().filter(|symbol| moves(symbol)) {
        let reasons = excluded.iter().filter(|(name, _)| name == symbol).count();
        let counts = counted.iter().filter(|name| *name == symbol).count();
        assert_eq!(
            reasons + counts,
            1,
            "{symbol} must be counted or excluded with a reason, exactly once"
        );
    }
    for name in counted.iter().chain(excluded.iter().map(|(name, _)| name)) {
        assert!(symbols.contains(name), "the table has no {name}");
    }
}
