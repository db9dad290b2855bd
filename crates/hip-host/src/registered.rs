//! Functions and variables that a program's own binary registers. `hipcc` puts them there, with code for AMD's processors,
//! which cannot run here: these calls answer what ROCm answers where the code for a card is missing. Other addresses are
//! none, and the answer is ROCm's for an address it does not know.

use std::collections::HashSet;
use std::ffi::{c_int, c_uint, c_void};

use hip_sys::{
    dim3, hipError_t, hipFuncAttribute, hipFuncAttributes, hipFuncCache_t, hipFunction_t,
    hipMemcpyKind, hipSharedMemConfig, hipStream_t,
};

use parking_lot::{Mutex, const_mutex};

use crate::error::{Result, entry};
use crate::log;

static REGISTERED: Mutex<Option<HashSet<usize>>> = const_mutex(None);

/// The program's binary has device code for the kernel or variable with this address on the host.
pub fn add(address: *const c_void) {
    let mut registered = REGISTERED.lock();
    registered.get_or_insert_default().insert(address.addr());
}

/// Fails for an address that a binary registered: its code is for other processors.
fn check_code(call: &'static str, address: *const c_void) -> Result {
    let registered = REGISTERED.lock();
    if !registered
        .as_ref()
        .is_some_and(|all| all.contains(&address.addr()))
    {
        return Ok(());
    }
    log::refused(
        call,
        format_args!("the program has {address:p} for AMD's processors only; compile it by HIPRTC"),
    );
    Err(hipError_t::hipErrorNoBinaryForGpu)
}

/// The answer for a function (hipamd/src/hip_platform.cpp, `getStatFunc`).
fn no_function(call: &'static str, function: *const c_void) -> hipError_t {
    entry(call, || {
        check_code(call, function)?;
        log::refused(
            call,
            format_args!("{function:p} is no kernel of this program; launch a module's kernel"),
        );
        Err(hipError_t::hipErrorInvalidDeviceFunction)
    })
}

/// The answer for a variable (hipamd/src/hip_platform.cpp, `getStatGlobalVar`).
fn no_variable(call: &'static str, symbol: *const c_void) -> hipError_t {
    entry(call, || {
        check_code(call, symbol)?;
        log::refused(
            call,
            format_args!("{symbol:p} is no variable of this program; ask a module for its own"),
        );
        Err(hipError_t::hipErrorInvalidSymbol)
    })
}

macro_rules! functions {
    ($($function:ident $name:literal ($($before:ident: $before_ty:ty),*) ($($after:ident: $after_ty:ty),*);)*) => {$(
        #[allow(clippy::too_many_arguments, reason = "the C signature")]
        pub(crate) unsafe extern "C" fn $function(
            $($before: $before_ty,)*
            function: *const c_void,
            $($after: $after_ty),*
        ) -> hipError_t {
            no_function($name, function)
        }
    )*};
}

functions! {
    launch_kernel "hipLaunchKernel" ()
        (_grid: dim3, _block: dim3, _params: *mut *mut c_void, _shared: usize, _stream: hipStream_t);
    launch_kernel_spt "hipLaunchKernel_spt" ()
        (_grid: dim3, _block: dim3, _params: *mut *mut c_void, _shared: usize, _stream: hipStream_t);
    launch_cooperative_kernel "hipLaunchCooperativeKernel" ()
        (_grid: dim3, _block: dim3, _params: *mut *mut c_void, _shared: c_uint, _stream: hipStream_t);
    launch_cooperative_kernel_spt "hipLaunchCooperativeKernel_spt" ()
        (_grid: dim3, _block: dim3, _params: *mut *mut c_void, _shared: u32, _stream: hipStream_t);
    func_get_attributes "hipFuncGetAttributes" (_out: *mut hipFuncAttributes) ();
    func_set_attribute "hipFuncSetAttribute" () (_attribute: hipFuncAttribute, _value: c_int);
    func_set_cache_config "hipFuncSetCacheConfig" () (_config: hipFuncCache_t);
    func_set_shared_mem_config "hipFuncSetSharedMemConfig" () (_config: hipSharedMemConfig);
    get_func_by_symbol "hipGetFuncBySymbol" (_out: *mut hipFunction_t) ();
    occupancy_max_active_blocks "hipOccupancyMaxActiveBlocksPerMultiprocessor"
        (_out: *mut c_int) (_threads: c_int, _shared: usize);
    occupancy_max_active_blocks_with_flags "hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"
        (_out: *mut c_int) (_threads: c_int, _shared: usize, _flags: c_uint);
    occupancy_max_potential_block_size "hipOccupancyMaxPotentialBlockSize"
        (_grid: *mut c_int, _block: *mut c_int) (_shared: usize, _limit: c_int);
}

macro_rules! variables {
    ($($function:ident $name:literal ($($before:ident: $before_ty:ty),*) ($symbol:ident) ($($after:ident: $after_ty:ty),*);)*) => {$(
        #[allow(clippy::too_many_arguments, reason = "the C signature")]
        pub(crate) unsafe extern "C" fn $function(
            $($before: $before_ty,)*
            $symbol: *const c_void,
            $($after: $after_ty),*
        ) -> hipError_t {
            no_variable($name, $symbol)
        }
    )*};
}

variables! {
    get_symbol_address "hipGetSymbolAddress" (_out: *mut *mut c_void) (symbol) ();
    get_symbol_size "hipGetSymbolSize" (_out: *mut usize) (symbol) ();
    memcpy_to_symbol "hipMemcpyToSymbol" () (symbol)
        (_from: *const c_void, _bytes: usize, _offset: usize, _kind: hipMemcpyKind);
    memcpy_to_symbol_async "hipMemcpyToSymbolAsync" () (symbol)
        (_from: *const c_void, _bytes: usize, _offset: usize, _kind: hipMemcpyKind, _stream: hipStream_t);
    memcpy_from_symbol "hipMemcpyFromSymbol" (_to: *mut c_void) (symbol)
        (_bytes: usize, _offset: usize, _kind: hipMemcpyKind);
    memcpy_from_symbol_async "hipMemcpyFromSymbolAsync" (_to: *mut c_void) (symbol)
        (_bytes: usize, _offset: usize, _kind: hipMemcpyKind, _stream: hipStream_t);
    memcpy_to_symbol_spt "hipMemcpyToSymbol_spt" () (symbol)
        (_from: *const c_void, _bytes: usize, _offset: usize, _kind: hipMemcpyKind);
    memcpy_to_symbol_async_spt "hipMemcpyToSymbolAsync_spt" () (symbol)
        (_from: *const c_void, _bytes: usize, _offset: usize, _kind: hipMemcpyKind, _stream: hipStream_t);
    memcpy_from_symbol_spt "hipMemcpyFromSymbol_spt" (_to: *mut c_void) (symbol)
        (_bytes: usize, _offset: usize, _kind: hipMemcpyKind);
    memcpy_from_symbol_async_spt "hipMemcpyFromSymbolAsync_spt" (_to: *mut c_void) (symbol)
        (_bytes: usize, _offset: usize, _kind: hipMemcpyKind, _stream: hipStream_t);
}
