//! The half of every `-sys` crate's table of functions that needs no library and no operating system.

use core::ffi::{CStr, c_void};
use core::fmt;
use core::ptr::NonNull;

/// One slot of a table, seen without its type.
pub type Slot = Option<NonNull<c_void>>;

/// A slot for one form of a function whose signature differs between releases.
///
/// The symbol is the same, so the library itself must show which form it has: by symbols that only releases with, or
/// without, this form export.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Index of the slot.
    pub slot: usize,
    /// Name of the slot.
    pub name: &'static str,
    /// The slot stays empty unless each of these symbols is present (`true`) or absent (`false`).
    pub conditions: &'static [(&'static CStr, bool)],
}

/// Calls `resolve` for every symbol, and for those that distinguish the forms.
pub fn resolve<const N: usize>(
    symbols: &[&'static CStr; N],
    forms: &[Form],
    resolve: &mut dyn FnMut(&CStr) -> Option<*mut c_void>,
) -> [Slot; N] {
    let mut slots = symbols.map(|symbol| resolve(symbol).and_then(NonNull::new));
    for form in forms {
        let has = |symbol: &CStr| {
            let at = symbols.iter().position(|other| *other == symbol);
            at.is_some_and(|at| slots[at].is_some())
        };
        let fits = form
            .conditions
            .iter()
            .all(|(symbol, present)| has(symbol) == *present);
        if !fits {
            slots[form.slot] = None;
        }
    }
    slots
}

/// The names of the slots: the symbols, but for the slots that are one of several forms.
pub const fn names<const N: usize>(
    symbols: &[&'static CStr; N],
    forms: &[Form],
) -> [&'static str; N] {
    let mut names = [""; N];
    let mut i = 0;
    while i < N {
        names[i] = match symbols[i].to_str() {
            Ok(name) => name,
            Err(_) => panic!("C identifiers are ASCII"),
        };
        i += 1;
    }
    let mut i = 0;
    while i < forms.len() {
        names[forms[i].slot] = forms[i].name;
        i += 1;
    }
    names
}

/// How every C enum prints: `hipErrorNoDevice (100)`, or `hipError_t(4711)` for a value without a name.
pub fn debug_enum(
    f: &mut fmt::Formatter<'_>,
    ty: &str,
    name: Option<&str>,
    value: &dyn fmt::Display,
) -> fmt::Result {
    match name {
        Some(name) => write!(f, "{name} ({value})"),
        None => write!(f, "{ty}({value})"),
    }
}

/// Adds to a generated table what needs no library: `EMPTY`, `SYMBOLS`, `from_symbols`, `present`.
///
/// The type must be `#[repr(C)]` and consist of `Option<unsafe extern "C" fn …>` slots only, one for each of its
/// `C_SYMBOLS`, in that order. Its `FORMS` name the slots that not every library with the symbol may fill. A call through a slot
/// is a load from the table and one indirect jump; nothing is looked up.
#[macro_export]
macro_rules! function_table {
    ($table:ident) => {
        const _: () = assert!(
            size_of::<$table>() == size_of::<[$crate::table::Slot; $table::C_SYMBOLS.len()]>(),
            "one slot for each symbol"
        );

        impl $table {
            /// A table in which no function is present.
            pub const EMPTY: Self = Self::from_slots([None; Self::C_SYMBOLS.len()]);

            /// The names of all slots, in their order. A slot is named after its symbol; where releases call the function in
            /// different ways, the older way's slot has `_until_` and its last major release after that.
            pub const SYMBOLS: &'static [&'static str] =
                &$crate::table::names(&Self::C_SYMBOLS, Self::FORMS);

            /// Fills each slot with what `resolve` returns for its symbol.
            ///
            /// Of a function with several forms only one slot is filled: other symbols that `resolve` has or lacks
            /// decide which, as in a real library of that release.
            ///
            /// # Safety
            ///
            /// Every address must be a function with the C signature of the slot that it fills, callable as long as the
            /// table is used.
            pub unsafe fn from_symbols(
                mut resolve: impl FnMut(&core::ffi::CStr) -> Option<*mut core::ffi::c_void>,
            ) -> Self {
                Self::from_slots($crate::table::resolve(
                    &Self::C_SYMBOLS,
                    Self::FORMS,
                    &mut resolve,
                ))
            }

            /// The names of the functions that the library has.
            pub fn present(&self) -> impl Iterator<Item = &'static str> {
                Self::SYMBOLS
                    .iter()
                    .zip(self.slots())
                    .filter(|(_, slot)| slot.is_some())
                    .map(|(name, _)| *name)
            }

            const fn from_slots(slots: [$crate::table::Slot; Self::C_SYMBOLS.len()]) -> Self {
                // SAFETY: the table is `repr(C)` and holds optional C function pointers only, as many as there are symbols
                // (asserted above). Such a pointer and an optional data pointer have the same size and niche.
                unsafe { core::mem::transmute(slots) }
            }

            fn slots(&self) -> [$crate::table::Slot; Self::C_SYMBOLS.len()] {
                // SAFETY: the reverse of `from_slots`.
                unsafe { core::mem::transmute(*self) }
            }
        }

        impl Default for $table {
            fn default() -> Self {
                Self::EMPTY
            }
        }

        impl core::fmt::Debug for $table {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(
                    f,
                    "{}({} of {} functions)",
                    stringify!($table),
                    self.present().count(),
                    Self::SYMBOLS.len()
                )
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: [&CStr; 4] = [c"changed", c"changed", c"marker", c"plain"];
    const FORMS: &[Form] = &[
        Form {
            slot: 0,
            name: "changed",
            conditions: &[(c"marker", true)],
        },
        Form {
            slot: 1,
            name: "changed_until_6",
            conditions: &[(c"marker", false)],
        },
    ];

    fn filled(offered: &[&CStr]) -> Vec<&'static str> {
        let address = NonNull::<u8>::dangling().as_ptr().cast::<c_void>();
        let slots = resolve(&SYMBOLS, FORMS, &mut |name| {
            offered.contains(&name).then_some(address)
        });
        let names = names(&SYMBOLS, FORMS);
        (0..SYMBOLS.len())
            .filter(|at| slots[*at].is_some())
            .map(|at| names[at])
            .collect()
    }

    #[test]
    fn a_function_of_two_forms_fills_the_slot_of_its_library_only() {
        assert_eq!(
            filled(&[c"changed", c"marker", c"plain"]),
            ["changed", "marker", "plain"]
        );
        assert_eq!(
            filled(&[c"changed", c"plain"]),
            ["changed_until_6", "plain"]
        );
        assert_eq!(filled(&[c"marker"]), ["marker"]);
        assert_eq!(filled(&[]), Vec::<&str>::new());
    }
}
