//! Raw bindings of HIP and HIPRTC: C types under their own names, and the functions as tables of optional slots.
//!
//! | file | what |
//! |---|---|
//! | `types.rs` | types, enums and constants (generated) |
//! | `names.rs` | `name()` of the enums (generated) |
//! | `functions.rs`, `rtc_functions.rs` | the functions, each declared once in a macro that lists them (generated) |
//! | `api.rs` | [`Api`] and [`RtcApi`], one slot for each function |
//! | `library.rs` | where the library is found; features `load` and `linked` |
//! | `layout.rs` | sizes and offsets as the C compiler sees them (generated, tests only) |
//! | `versions.rs` | what means something else from release to release |
//! | `constants.rs` | the few macros that the generator cannot express |
//!
//! Nothing is linked unless the feature `linked` asks for it: [`Api::load`] opens the library at run time,
//! [`Api::from_symbols`] takes the functions from anywhere. A C enum is a transparent newtype with associated
//! constants, so a value that a newer release adds is never undefined behaviour; it prints with its C name. No wrapper
//! checks an argument here; that is the work of the crate `hip`.
//!
//! The tables serve ROCm 5.7 to 10.1: a slot's note says which releases have it. Of a function that releases call with
//! other arguments the newest form has the plain name; an older one has a slot that ends in `_until_` and the last
//! major release it is good for, with types of such names. A library fills the slot of its own form only, so none is
//! ever called in the wrong way. Older libraries than 5.7 are refused by name. What else means another thing in another
//! release is in [`versions`].
//!
//! | feature | default | what |
//! |---|---|---|
//! | `load` | yes | `load`, `load_from`, `load_beside`; without it the crate needs `core` only |
//! | `linked` | no | `linked`: the program is linked with the library, which has to be there when it is built and when it starts |
//!
//! ```no_run
//! let (api, library) = hip_sys::Api::load()?;
//! match (api.release(), api.hipMemGetHandleForAddressRange) {
//!     (Some(release), None) => println!("ROCm {release} in {} is older than 7.0", library.path().display()),
//!     (release, function) => println!("{release:?}: {function:?}"),
//! }
//! # Ok::<(), hip_sys::LoadError>(())
//! ```
//!
//! A file's initialisers run when it is opened, so safe code cannot open one by its path:
//!
//! ```compile_fail,E0133
//! let (api, library) = hip_sys::Api::load_from("libother.so".as_ref())?;
//! # Ok::<(), hip_sys::LoadError>(())
//! ```

#![no_std]

mod api;
mod constants;
mod functions;
#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
#[rustfmt::skip]
mod layout;
#[cfg(feature = "load")]
mod library;
#[rustfmt::skip]
mod names;
mod rtc_functions;
#[rustfmt::skip]
mod types;
pub mod versions;

pub use api::{Api, RtcApi};
pub use constants::*;
pub use rocm_loader::Release;
#[doc(hidden)]
pub use rocm_loader::model_functions;
#[cfg(feature = "load")]
pub use rocm_loader::{LoadError, Loaded};
pub use types::*;
