//! What the generated types of a `-sys` crate have in common.

use core::fmt;

/// How every C enum prints: `hipErrorNoDevice (100)`, or `hipError_t(4711)` for a value without a name.
pub fn debug_enum(f: &mut fmt::Formatter<'_>, ty: &str, name: Option<&str>, value: &dyn fmt::Display) -> fmt::Result {
    match name {
        Some(name) => write!(f, "{name} ({value})"),
        None => write!(f, "{ty}({value})"),
    }
}

/// Gives enums their names: `name()` and `Debug`. Each is a newtype with a constant for each of these values.
#[macro_export]
macro_rules! enum_names {
    ($($ty:ident { $($value:ident),* })*) => {$(
        impl $ty {
            /// The C name of this value, as the newest release that has the number calls it; `None` for a value that no
            /// release known here has.
            pub const fn name(self) -> Option<&'static str> {
                Some(match self {
                    $(Self::$value => stringify!($value),)*
                    _ => return None,
                })
            }
        }

        impl core::fmt::Debug for $ty {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $crate::types::debug_enum(f, stringify!($ty), self.name(), &self.0)
            }
        }
    )*};
}

/// Compares structures with what the C compiler says of them: sizes, alignments and the offsets of the fields, in
/// bytes.
#[macro_export]
macro_rules! layouts {
    ($($ty:ident: $size:literal bytes, aligned to $align:literal { $($field:ident: $offset:literal),* })*) => {$(
        const _: () = {
            assert!(size_of::<$ty>() == $size, concat!("size of ", stringify!($ty)));
            assert!(align_of::<$ty>() == $align, concat!("alignment of ", stringify!($ty)));
            $(assert!(
                core::mem::offset_of!($ty, $field) == $offset,
                concat!("offset of ", stringify!($ty), "::", stringify!($field))
            );)*
        };
    )*};
}

#[cfg(test)]
mod tests {
    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Error(i32);

    impl Error {
        const NONE: Self = Self(0);
        const OTHER: Self = Self(-7);
    }

    crate::enum_names! {
        Error { NONE, OTHER }
    }

    #[repr(C)]
    struct Pair {
        small: u8,
        large: u64,
    }

    crate::layouts! {
        Pair: 16 bytes, aligned to 8 { small: 0, large: 8 }
    }

    #[test]
    fn a_value_prints_with_its_name_or_with_its_type() {
        assert_eq!(Error::OTHER.name(), Some("OTHER"));
        assert_eq!(format!("{:?}", Error::NONE), "NONE (0)");
        assert_eq!(Error(3).name(), None);
        assert_eq!(format!("{:?}", Error(3)), "Error(3)");
    }
}
