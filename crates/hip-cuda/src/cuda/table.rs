//! How a library's functions become a table in which every call returns a `Result`.

/// Declares a table of functions that are looked up by name when the library is opened.
///
/// `cudarc` supplies the structures and the named values. Its own functions are not used: they panic where a symbol is
/// missing, and they return Rust enums, which a newer driver's code would make undefined behaviour. Here a code is a
/// number, and a missing symbol is the error that `missing` returns for its name.
macro_rules! functions {
    (
        $(#[$meta:meta])*
        pub(crate) struct $table:ident fails as $error:ty, code by $check:path, absent by $missing:path;
        $($function:ident($($argument:ident: $ty:ty),* $(,)?);)*
    ) => {
        $(#[$meta])*
        #[allow(non_snake_case, clippy::type_complexity, reason = "C names, C signatures")]
        pub(crate) struct $table {
            pub(crate) library: $crate::cuda::library::Opened,
            $($function: Option<unsafe extern "C" fn($($argument: $ty),*) -> std::ffi::c_uint>,)*
        }

        #[allow(non_snake_case, clippy::too_many_arguments, clippy::missing_safety_doc, dead_code, reason = "C functions")]
        impl $table {
            pub(crate) fn open(names: &$crate::cuda::library::Names) -> Result<Self, String> {
                let library = $crate::cuda::library::Opened::find(names)?;
                $(
                    let $function = library
                        .symbol($crate::cuda::table::c_name(concat!(stringify!($function), "\0")))
                        // SAFETY: the address of the C function of this name, whose signature the declaration states; a
                        // pointer to a function and one to data have the same size.
                        .map(|address| unsafe {
                            std::mem::transmute::<
                                *mut std::ffi::c_void,
                                unsafe extern "C" fn($($argument: $ty),*) -> std::ffi::c_uint,
                            >(address)
                        });
                )*
                Ok(Self { library, $($function),* })
            }

            $(
                #[inline]
                pub(crate) unsafe fn $function(&self, $($argument: $ty),*) -> Result<(), $error> {
                    match self.$function {
                        // SAFETY: the caller's promise is the callee's demand.
                        Some(function) => $check(unsafe { function($($argument),*) }, stringify!($function)),
                        None => Err($missing(stringify!($function))),
                    }
                }
            )*
        }
    };
}
pub(crate) use functions;

/// A literal that ends in a zero, as a C string.
pub(crate) const fn c_name(text: &'static str) -> &'static std::ffi::CStr {
    match std::ffi::CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a literal with one zero, at its end"),
    }
}
