//! HIP's functions, gathered from the modules that define them.

use crate::{device, error, event, graph, init, launch, memory, module, stream, text};

/// The HIP function table. It is available without a driver; its functions then return `hipErrorNoDevice`.
#[must_use]
pub const fn hip_api() -> hip_sys::Api {
    let mut api = hip_sys::Api::EMPTY;
    api.hipGetErrorName = Some(text::get_error_name);
    api.hipGetErrorString = Some(text::get_error_string);
    api.hipGetLastError = Some(error::get_last_error);
    api.hipPeekAtLastError = Some(error::peek_at_last_error);
    api.hipExtGetLastError = Some(error::ext_get_last_error);
    text::fill(&mut api);
    init::fill(&mut api);
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
