//! C function pointers carry no state, so each counted table needs functions of its own.
//!
//! The counting functions are generic over a slot number; a slot holds the original functions and
//! the ledger that counts. A slot keeps its originals for ever, because a table that was handed
//! out may outlive its meter and must go on working; it is used again only for a table with the
//! same originals.

use super::ledger::Ledger;
use parking_lot::{Mutex, RwLock};
use std::sync::{Arc, OnceLock};

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

    pub(super) fn record(&self, function: &'static str, bytes: usize) {
        if let Some(ledger) = &*self.ledger.read() {
            ledger.record(function, bytes);
        }
    }
}

/// Holds a slot; dropping it stops the counting and lets the slot be taken again.
pub(super) struct Lease {
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

/// What a C function hands back, and how to tell that it worked.
pub(super) trait Outcome {
    /// The answer where the function is not there.
    const MISSING: Self;
    /// Whether the call did what it was asked to.
    fn is_success(&self) -> bool;
}

/// Serialises taking a slot.
pub(super) static TAKING: Mutex<()> = Mutex::new(());

/// Takes a slot for `originals`: a free one that has them already, else an unused one.
pub(super) fn take<O: PartialEq>(
    slots: &'static [Slot<O>],
    originals: O,
    ledger: &Arc<Ledger>,
    release: fn(usize),
) -> Option<Lease> {
    let _taking = TAKING.lock();
    let is_free = |slot: &Slot<O>| slot.ledger.read().is_none();
    let index = slots
        .iter()
        .position(|slot| slot.originals.get() == Some(&originals) && is_free(slot))
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

/// Declares the counting functions of one table: `name(arguments) -> result, bytes` for each.
///
/// Expects in scope: `Api`, the table's type, and [`Outcome`] for each result type.
macro_rules! counted_table {
    ($count:literal slots: $($index:literal)*;
     $($name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty, $bytes:expr;)*) => {
        /// How many tables can be counted apart at once.
        pub(super) const SLOTS: usize = $count;

        #[allow(non_snake_case, reason = "the fields have the C functions' names")]
        #[derive(Clone, Copy)]
        struct Originals {
            $($name: Option<unsafe extern "C" fn($($ty),*) -> $ret>,)*
        }

        impl Originals {
            fn addresses(&self) -> Vec<Option<usize>> {
                vec![$(self.$name.map(|function| function as usize)),*]
            }
        }

        // Equal addresses mean the same functions of the same library, which is what matters here.
        impl PartialEq for Originals {
            fn eq(&self, other: &Self) -> bool {
                self.addresses() == other.addresses()
            }
        }

        static TABLE: [Slot<Originals>; SLOTS] = [const { Slot::new() }; SLOTS];

        mod counting {
            use super::*;
            $(
                #[allow(non_snake_case, reason = "the C function's name")]
                #[allow(clippy::too_many_arguments, reason = "the C function's arguments")]
                pub(super) unsafe extern "C" fn $name<const S: usize>($($arg: $ty),*) -> $ret {
                    let slot = &TABLE[S];
                    let Some(original) = slot.originals().and_then(|table| table.$name) else {
                        // A counting function is handed out only where there is an original.
                        return Outcome::MISSING;
                    };
                    // SAFETY: the arguments are the caller's, passed on unchanged to the function
                    // that the caller meant to call.
                    let status = unsafe { original($($arg),*) };
                    if status.is_success() {
                        slot.record(stringify!($name), $bytes);
                    }
                    status
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
            let originals = Originals { $($name: api.$name),* };
            let lease = slots::take(&TABLE, originals, ledger, |index| slots::give_back(&TABLE[index]))?;
            INSTALL[lease.index()](api);
            Some(lease)
        }
    };
}
pub(super) use counted_table;
