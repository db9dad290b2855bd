//! NVIDIA's own libraries, called directly, as a program without this workspace would: to measure against.
//!
//! Nothing in the tables goes through here. Streams and pointers are those of the tables, which are the driver's.

mod cublas;
mod cufft;

pub use cublas::{Cublas, Product};
pub use cufft::Cufft;

/// A refused call or a missing library, on one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// The result of a peer's call.
pub type Result<T> = std::result::Result<T, Error>;

/// Declares a function of a library that is looked up when it is first called.
macro_rules! function {
    ($library:ident: $name:ident($($argument:ident: $ty:ty),* $(,)?)) => {
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "a C function")]
        unsafe fn $name($($argument: $ty),*) -> $crate::peer::Result<()> {
            static ADDRESS: $crate::cuda::Symbol =
                $crate::cuda::Symbol::new($crate::cuda::c_name(concat!(stringify!($name), "\0")));
            let missing = || $crate::peer::Error(format!("{} has no {}", $library::TITLE, stringify!($name)));
            let library = $library::opened()?;
            let address = ADDRESS.in_library(library).ok_or_else(missing)?;
            // SAFETY: the address of the function of this name and signature, by the library's header.
            let function = unsafe {
                std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($ty),*) -> std::ffi::c_uint>(address)
            };
            // SAFETY: the caller's promise is the callee's demand.
            match unsafe { function($($argument),*) } {
                0 => Ok(()),
                code => Err($crate::peer::Error(format!("{} returned {code}", stringify!($name)))),
            }
        }
    };
}
use function;

/// Makes the calling thread's device current, as the libraries expect it.
fn make_current() -> Result<()> {
    crate::device::here()
        .map(drop)
        .map_err(|code| Error(format!("no current device: {code:?}")))
}
