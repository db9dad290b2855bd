//! The half of every `-sys` crate's table of functions that needs no library and no operating system.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

/// One slot of a table, seen without its type.
pub type Slot = Option<NonNull<c_void>>;

/// What fills a slot.
///
/// A function whose signature differs between releases has a slot for each form. The symbol is the same, so the library
/// itself must show which form it has: by symbols that only releases with, or without, this form export.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// The symbol in the library.
    pub symbol: &'static CStr,
    /// The slot stays empty unless each of these symbols is present (`true`) or absent (`false`).
    pub conditions: &'static [(&'static CStr, bool)],
}

/// Text that ends in its only null byte as a C string.
pub const fn c_string(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a C identifier has no null byte inside"),
    }
}

/// Calls `resolve` for the symbol of every slot, then empties the slots whose conditions the outcome does not meet.
pub fn resolve<const N: usize>(
    functions: &[Function; N],
    resolve: &mut dyn FnMut(&CStr) -> Option<*mut c_void>,
) -> [Slot; N] {
    let mut slots = functions.map(|function| resolve(function.symbol).and_then(NonNull::new));
    for (at, function) in functions.iter().enumerate() {
        let has = |symbol: &CStr| {
            let at = functions.iter().position(|other| other.symbol == symbol);
            at.is_some_and(|at| slots[at].is_some())
        };
        let fits = function
            .conditions
            .iter()
            .all(|(symbol, present)| has(symbol) == *present);
        if !fits {
            slots[at] = None;
        }
    }
    slots
}

/// Makes a table of optional functions of a list of declarations: the `#[repr(C)]` structure with a documented slot for
/// each, and what needs no library: `EMPTY`, `SYMBOLS`, `from_symbols`, `present`.
///
/// The list is the one that a generated `for_each_function!` holds. A declaration is, in this order:
///
/// | part | |
/// |---|---|
/// | `pub other` | without `other`, the host platform's release declares the function and Rust can define it |
/// | `form SYMBOL` | the function's symbol: it is called in different ways, and this slot is for one of them |
/// | `if [(c"SYMBOL", true), ...]` | the slot stays empty unless the library has these symbols, or with `false` lacks them |
/// | `fn SLOT(ARGUMENTS) -> TYPE` | the slot and its signature |
/// | `, "NOTE"` | for the documentation, which releases have the function, if not all that are supported |
///
/// The compiler copies all that it matched so far for each optional part. So a list of a thousand declarations takes
/// seconds more with each part that is matched in detail: the arguments are left to a macro for each function.
///
/// A call through a slot is a load from the table and one indirect jump; nothing is looked up.
#[macro_export]
macro_rules! function_table {
    (
        $(#[$about:meta])*
        $visibility:vis struct $table:ident;
        $(
            $(#[$attribute:meta])*
            pub $(other)? $(form $symbol:ident if $conditions:tt)?
            fn $slot:ident $arguments:tt -> $result:ty $(, $note:literal)?;
        )*
    ) => {
        $(#[$about])*
        #[allow(non_snake_case, clippy::type_complexity, reason = "C names and signatures")]
        #[repr(C)]
        #[derive(Clone, Copy)]
        $visibility struct $table {
            $(
                #[doc = concat!(
                    "`", $crate::symbol!($slot $($symbol)?), $crate::argument_names!($arguments), "`" $(, "; ", $note)?
                )]
                $(#[$attribute])*
                pub $slot: Option<unsafe extern "C" fn $arguments -> $result>,
            )*
        }

        const _: () = assert!(
            size_of::<$table>() == size_of::<[$crate::table::Slot; $table::SYMBOLS.len()]>(),
            "a slot is an address"
        );

        impl $table {
            /// The names of all slots, in their order. A slot is named after its symbol; where releases call the
            /// function in different ways, the older way's slot has `_until_` and its last major release after that.
            pub const SYMBOLS: &'static [&'static str] = &[$(stringify!($slot)),*];

            /// What fills the slots, in their order.
            const FUNCTIONS: [$crate::table::Function; Self::SYMBOLS.len()] = [$(
                $crate::table::Function {
                    symbol: $crate::table::c_string(concat!($crate::symbol!($slot $($symbol)?), "\0")),
                    conditions: $crate::conditions!($($conditions)?),
                }
            ),*];

            /// A table in which no function is present.
            pub const EMPTY: Self = Self::from_slots([None; Self::SYMBOLS.len()]);

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
                Self::from_slots($crate::table::resolve(&Self::FUNCTIONS, &mut resolve))
            }

            /// The names of the functions that the library has.
            pub fn present(&self) -> impl Iterator<Item = &'static str> {
                Self::SYMBOLS
                    .iter()
                    .zip(self.slots())
                    .filter(|(_, slot)| slot.is_some())
                    .map(|(name, _)| *name)
            }

            const fn from_slots(slots: [$crate::table::Slot; Self::SYMBOLS.len()]) -> Self {
                // SAFETY: the table is `repr(C)` and holds optional C function pointers only, as many as there are
                // slots (asserted above). Such a pointer and an optional data pointer have the same size and niche.
                unsafe { core::mem::transmute(slots) }
            }

            fn slots(&self) -> [$crate::table::Slot; Self::SYMBOLS.len()] {
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

/// The symbol of a slot: its own name, unless another follows.
#[doc(hidden)]
#[macro_export]
macro_rules! symbol {
    ($slot:ident) => {
        stringify!($slot)
    };
    ($slot:ident $symbol:ident) => {
        stringify!($symbol)
    };
}

/// The names in a list of arguments, as text.
#[doc(hidden)]
#[macro_export]
macro_rules! argument_names {
    (($($name:ident: $ty:ty),*)) => {
        stringify!(($($name),*))
    };
    (($($name:ident: $ty:ty),*, ...)) => {
        stringify!(($($name),*, ...))
    };
}

/// The conditions of a slot: none, unless there is a list of them.
#[doc(hidden)]
#[macro_export]
macro_rules! conditions {
    () => {
        &[]
    };
    ($conditions:tt) => {
        &$conditions
    };
}

/// Hands the functions of a list to the macro `$with`, as `fn symbol(argument: type) -> type = slot;`, without those
/// that are marked as `other`. The list is in the form of [`function_table!`].
#[macro_export]
macro_rules! model_functions {
    (
        $with:ident;
        $(
            $(#[$attribute:meta])*
            pub
            $(fn $name:ident $arguments:tt -> $result:ty $(, $note:literal)?;)?
            $(form $symbol:ident if $conditions:tt fn $slot:ident $form:tt -> $form_result:ty $(, $form_note:literal)?;)?
            $(
                other $(form $other_symbol:ident if $other_conditions:tt)?
                fn $other:ident $other_arguments:tt -> $other_result:ty $(, $other_note:literal)?;
            )?
        )*
    ) => {
        $with! {
            $(
                $(fn $name $arguments -> $result = $name;)?
                $(fn $symbol $form -> $form_result = $slot;)?
            )*
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list as the generator writes it.
    macro_rules! for_each_function {
        ($with:ident) => {
            for_each_function! { crate::model_functions, $with; }
        };
        ($($with:ident)::+, $($first:tt)*) => {
            $($with)::+! { $($first)*
                pub form changed if [(c"marker", true)] fn changed(count: i32) -> i32, "as called from 7 on";
                pub form changed if [(c"marker", false)] fn changed_until_6(count: i16) -> i32;
                #[doc(alias = "mark")]
                pub fn marker() -> ();
                pub other form older if [(c"marker", false), (c"plain", true)]
                    fn older(text: *const u8, ...) -> !;
                pub fn plain(from: usize, to: usize) -> (), "since 5";
            }
        };
    }

    for_each_function! { crate::function_table, struct Table; }

    fn filled(offered: &[&CStr]) -> Vec<&'static str> {
        unsafe extern "C" fn unused() {}
        let resolve = |name: &CStr| offered.contains(&name).then_some(unused as *mut c_void);
        // SAFETY: no slot of this table is called.
        unsafe { Table::from_symbols(resolve) }.present().collect()
    }

    #[test]
    fn a_function_of_two_forms_fills_the_slot_of_its_library_only() {
        assert_eq!(
            filled(&[c"changed", c"marker", c"plain"]),
            ["changed", "marker", "plain"]
        );
        assert_eq!(filled(&[c"changed", c"plain"]), ["changed_until_6", "plain"]);
        assert_eq!(filled(&[c"marker"]), ["marker"]);
        assert_eq!(filled(&[]), Vec::<&str>::new());
    }

    #[test]
    fn a_slot_with_several_conditions_wants_each_of_them() {
        assert_eq!(filled(&[c"older", c"plain"]), ["older", "plain"]);
        assert_eq!(filled(&[c"older"]), Vec::<&str>::new());
        assert_eq!(filled(&[c"older", c"plain", c"marker"]), ["marker", "plain"]);
    }

    #[test]
    fn the_model_has_every_function_but_those_marked_under_its_symbol() {
        macro_rules! names {
            ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {
                [$(stringify!($name = $slot)),*]
            };
        }
        assert_eq!(
            for_each_function!(names),
            [
                "changed = changed",
                "changed = changed_until_6",
                "marker = marker",
                "plain = plain"
            ]
        );
    }

    #[test]
    fn the_slots_have_the_signatures_of_the_list() {
        let table = Table {
            changed: Some(twice),
            ..Table::EMPTY
        };
        unsafe extern "C" fn twice(count: i32) -> i32 {
            2 * count
        }
        // SAFETY: the function of this test.
        let doubled = table.changed.map(|call| unsafe { call(21) });
        assert_eq!(doubled, Some(42));
        assert!(table.older.is_none() && table.changed_until_6.is_none());
        assert_eq!(format!("{table:?}"), "Table(1 of 5 functions)");
    }
}
