//! HSA's functions that the host platform has. The others are not exported: a program that needs one does not link.

use std::ffi::{c_char, c_int, c_void};

use hsa_sys::{hsa_agent_info_t, hsa_agent_t, hsa_amd_pointer_info_t, hsa_status_t};

static TABLE: hsa_sys::Api = model::hsa_api();

/// Defines the C function for each slot named; a slot that is empty does not compile.
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $ty),*) -> hsa_status_t {
            const { assert!(model::hsa_api().$name.is_some()) };
            let function = TABLE.$name.expect("asserted when this was compiled");
            // SAFETY: the slot has this very signature, and the C caller keeps its contract.
            unsafe { function($($argument),*) }
        }
    )*};
}

export! {
    fn hsa_init();
    fn hsa_shut_down();
    fn hsa_status_string(status: hsa_status_t, status_string: *mut *const c_char);
    fn hsa_iterate_agents(
        callback: Option<unsafe extern "C" fn(agent: hsa_agent_t, data: *mut c_void) -> hsa_status_t>,
        data: *mut c_void,
    );
    fn hsa_agent_get_info(agent: hsa_agent_t, attribute: hsa_agent_info_t, value: *mut c_void);
    fn hsa_amd_agents_allow_access(
        num_agents: u32, agents: *const hsa_agent_t, flags: *const u32, ptr: *const c_void,
    );
    fn hsa_amd_pointer_info(
        ptr: *const c_void,
        info: *mut hsa_amd_pointer_info_t,
        alloc: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
        num_agents_accessible: *mut u32,
        accessible: *mut *mut hsa_agent_t,
    );
    fn hsa_amd_portable_export_dmabuf(ptr: *const c_void, size: usize, dmabuf: *mut c_int, offset: *mut u64);
    fn hsa_amd_portable_close_dmabuf(dmabuf: c_int);
}
