//! HIP's functions, gathered from the modules that define them.

use crate::{device, error, event, graph, launch, memory, module, stream};

/// Defines HIP's C functions under their own names, and a function that puts them into the table.
///
/// A body runs in [`crate::error::entry`] and returns `Result`. It is an `unsafe` block as a whole, for one reason
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
                // SAFETY: the C caller keeps HIP's contract for this function, which is what the body needs; see `calls!`.
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

/// The HIP function table. It is available without a driver; its functions then return `hipErrorNoDevice`.
#[must_use]
pub const fn hip_api() -> hip_sys::Api {
    let mut api = hip_sys::Api::EMPTY;
    api.hipGetErrorName = Some(error::get_error_name);
    api.hipGetErrorString = Some(error::get_error_string);
    api.hipGetLastError = Some(error::get_last_error);
    api.hipPeekAtLastError = Some(error::peek_at_last_error);
    api.hipExtGetLastError = Some(error::ext_get_last_error);
    error::fill(&mut api);
    error::fill_versions(&mut api);
    device::calls::fill(&mut api);
    device::settings::fill(&mut api);
    device::peer::fill(&mut api);
    memory::allocation::fill(&mut api);
    memory::host::fill(&mut api);
    memory::info::fill(&mut api);
    memory::copy::fill(&mut api);
    memory::rectangle::fill(&mut api);
    memory::set::fill(&mut api);
    memory::managed::fill(&mut api);
    memory::pool::fill(&mut api);
    memory::virtual_memory::fill(&mut api);
    memory::external::fill(&mut api);
    memory::ipc::fill(&mut api);
    stream::fill(&mut api);
    stream::value::fill(&mut api);
    event::fill(&mut api);
    module::fill(&mut api);
    launch::fill(&mut api);
    graph::fill(&mut api);
    api
}
