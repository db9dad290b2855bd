//! Functions and variables that a program's own binary registers. `hipcc` puts them there, with code for AMD's
//! processors, which cannot run here: these calls return what ROCm returns where the code for a card is missing. Other
//! addresses are invalid, and the result is ROCm's for an address it does not know.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::{c_int, c_uint, c_void};

use hip_sys::{
    dim3, hipError_t, hipFuncAttribute, hipFuncAttributes, hipFuncCache_t, hipFunction_t, hipMemcpyKind,
    hipSharedMemConfig, hipStream_t,
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
    if !registered.as_ref().is_some_and(|all| all.contains(&address.addr())) {
        return Ok(());
    }
    log::refused(
        call,
        format_args!("the program contains {address:p} only for AMD GPUs; compile it with HIPRTC"),
    );
    Err(hipError_t::hipErrorNoBinaryForGpu)
}

/// The result for a function (hipamd/src/hip_platform.cpp, `getStatFunc`).
fn no_function(call: &'static str, function: *const c_void) -> hipError_t {
    entry(call, || {
        check_code(call, function)?;
        log::refused(
            call,
            format_args!("{function:p} is not a kernel of this program; launch a kernel of a module"),
        );
        Err(hipError_t::hipErrorInvalidDeviceFunction)
    })
}

/// As [`no_function`], for a query whose result needs a place.
fn no_answer(call: &'static str, function: *const c_void, has_room: bool, unknown: hipError_t) -> hipError_t {
    entry(call, || {
        if !has_room {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        check_code(call, function)?;
        log::refused(
            call,
            format_args!("{function:p} is not a kernel of this program; query a kernel of a module"),
        );
        Err(if function.is_null() {
            hipError_t::hipErrorInvalidDeviceFunction
        } else {
            unknown
        })
    })
}

pub(crate) unsafe extern "C" fn func_get_attributes(
    out: *mut hipFuncAttributes,
    function: *const c_void,
) -> hipError_t {
    // ROCm's word for a function that it does not know is here the one for variables.
    let unknown = hipError_t::hipErrorInvalidSymbol;
    no_answer("hipFuncGetAttributes", function, !out.is_null(), unknown)
}

pub(crate) unsafe extern "C" fn occupancy_max_active_blocks(
    out: *mut c_int,
    function: *const c_void,
    _threads: c_int,
    _shared: usize,
) -> hipError_t {
    let unknown = hipError_t::hipErrorInvalidDeviceFunction;
    let call = "hipOccupancyMaxActiveBlocksPerMultiprocessor";
    no_answer(call, function, !out.is_null(), unknown)
}

pub(crate) unsafe extern "C" fn occupancy_max_active_blocks_with_flags(
    out: *mut c_int,
    function: *const c_void,
    _threads: c_int,
    _shared: usize,
    _flags: c_uint,
) -> hipError_t {
    let unknown = hipError_t::hipErrorInvalidDeviceFunction;
    let call = "hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags";
    no_answer(call, function, !out.is_null(), unknown)
}

/// A preference that AMD devices ignore: ROCm does not check the function.
pub(crate) unsafe extern "C" fn func_set_cache_config(_function: *const c_void, config: hipFuncCache_t) -> hipError_t {
    entry("hipFuncSetCacheConfig", || {
        if config.0 > hipFuncCache_t::hipFuncCachePreferEqual.0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        Ok(())
    })
}

/// As [`func_set_cache_config`].
pub(crate) unsafe extern "C" fn func_set_shared_mem_config(
    _function: *const c_void,
    _config: hipSharedMemConfig,
) -> hipError_t {
    entry("hipFuncSetSharedMemConfig", || Ok(()))
}

/// A launch in three calls, as compilers wrote it before `<<<>>>` was one.
struct Launch {
    arguments: Vec<u8>,
}

thread_local! {
    static LAUNCHES: RefCell<Vec<Launch>> = const { RefCell::new(Vec::new()) };
}

pub(crate) unsafe extern "C" fn configure_call(
    _grid: dim3,
    _block: dim3,
    _shared: usize,
    _stream: hipStream_t,
) -> hipError_t {
    entry("hipConfigureCall", || {
        let arguments = Vec::new();
        LAUNCHES.with_borrow_mut(|launches| launches.push(Launch { arguments }));
        Ok(())
    })
}

/// More bytes of arguments than any kernel takes.
const MOST_ARGUMENTS: usize = 1 << 16;

pub(crate) unsafe extern "C" fn setup_argument(argument: *const c_void, bytes: usize, offset: usize) -> hipError_t {
    entry("hipSetupArgument", || {
        let end = offset.checked_add(bytes).filter(|end| *end <= MOST_ARGUMENTS);
        // ROCm follows a null pointer, and takes an argument of no call.
        let Some(end) = end.filter(|_| !argument.is_null()) else {
            return Err(hipError_t::hipErrorInvalidValue);
        };
        LAUNCHES.with_borrow_mut(|launches| {
            let missing = hipError_t::hipErrorMissingConfiguration;
            let arguments = &mut launches.last_mut().ok_or(missing)?.arguments;
            arguments.resize(arguments.len().max(end), 0);
            // SAFETY: not null; the C caller promises an argument of that many bytes, for which there is room now.
            unsafe {
                let to = arguments.as_mut_ptr().add(offset);
                std::ptr::copy_nonoverlapping(argument.cast(), to, bytes);
            }
            Ok(())
        })
    })
}

pub(crate) unsafe extern "C" fn launch_by_ptr(function: *const c_void) -> hipError_t {
    let configured = LAUNCHES.with_borrow_mut(Vec::pop).is_some();
    if configured {
        return no_function("hipLaunchByPtr", function);
    }
    entry("hipLaunchByPtr", || Err(hipError_t::hipErrorMissingConfiguration))
}

/// The result for a variable (hipamd/src/hip_platform.cpp, `getStatGlobalVar`).
fn no_variable(call: &'static str, symbol: *const c_void) -> hipError_t {
    entry(call, || {
        check_code(call, symbol)?;
        log::refused(
            call,
            format_args!("{symbol:p} is not a variable of this program; query a variable of a module"),
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
    func_set_attribute "hipFuncSetAttribute" () (_attribute: hipFuncAttribute, _value: c_int);
    get_func_by_symbol "hipGetFuncBySymbol" (_out: *mut hipFunction_t) ();
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

/// As [`no_variable`], with a place for the result.
fn no_fact<T>(call: &'static str, out: *mut T, symbol: *const c_void) -> hipError_t {
    if out.is_null() {
        return entry(call, || Err(hipError_t::hipErrorInvalidValue));
    }
    no_variable(call, symbol)
}

pub(crate) unsafe extern "C" fn get_symbol_address(out: *mut *mut c_void, symbol: *const c_void) -> hipError_t {
    no_fact("hipGetSymbolAddress", out, symbol)
}

pub(crate) unsafe extern "C" fn get_symbol_size(out: *mut usize, symbol: *const c_void) -> hipError_t {
    no_fact("hipGetSymbolSize", out, symbol)
}
