//! How many blocks of a kernel a unit holds, and what a kernel needs.
//!
//! The model counts what gfx9 does: 2048 threads of a unit in whole wavefronts, and its 64 KiB of local memory.
//! Registers are not counted, since host code has none of the device's.

use std::ffi::{c_int, c_uint};

use hip_sys::{hipError_t, hipFunction_attribute as Attribute, hipFunction_t};

use super::function;
use crate::device::{MAX_SHARED_BYTES, MAX_THREADS_PER_BLOCK, WARP};
use crate::error::{Result, entry, store};
use crate::workers;

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;
const THREADS_OF_A_UNIT: usize = 2048;
/// Slots of a unit for workgroups.
const BLOCKS_OF_A_UNIT: usize = 32;

/// Blocks of `threads` threads with `shared` bytes each that a unit holds at once.
pub(super) fn blocks_of_a_unit(threads: usize, shared: usize) -> usize {
    if threads == 0 || threads > MAX_THREADS_PER_BLOCK as usize {
        return 0;
    }
    let by_threads = THREADS_OF_A_UNIT / threads.next_multiple_of(WARP as usize);
    let by_memory = (MAX_SHARED_BYTES as usize).checked_div(shared).unwrap_or(usize::MAX);
    by_threads.min(by_memory).min(BLOCKS_OF_A_UNIT)
}

fn known(function: hipFunction_t) -> Result {
    if function.is_null() {
        return Err(INVALID);
    }
    function::find(function).map(|_| ())
}

fn max_active(
    call: &'static str,
    out: *mut c_int,
    function: hipFunction_t,
    threads: c_int,
    shared: usize,
    flags: c_uint,
) -> hipError_t {
    entry(call, || {
        // Default and caching override, which changes nothing.
        if out.is_null() || flags > 1 {
            return Err(INVALID);
        }
        known(function)?;
        let threads = usize::try_from(threads).map_err(|_| INVALID)?;
        if threads == 0 {
            return Err(INVALID);
        }
        let blocks = blocks_of_a_unit(threads, shared);
        // SAFETY: not null; room for an int by the C caller's promise.
        unsafe { store(out, blocks as c_int) }
    })
}

pub(crate) unsafe extern "C" fn module_occupancy_max_active_blocks(
    out: *mut c_int,
    function: hipFunction_t,
    threads: c_int,
    shared: usize,
) -> hipError_t {
    let call = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor";
    max_active(call, out, function, threads, shared, 0)
}

pub(crate) unsafe extern "C" fn module_occupancy_max_active_blocks_with_flags(
    out: *mut c_int,
    function: hipFunction_t,
    threads: c_int,
    shared: usize,
    flags: c_uint,
) -> hipError_t {
    let call = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags";
    max_active(call, out, function, threads, shared, flags)
}

/// The block size that fills a unit, and the grid that fills the device.
fn best_block(
    call: &'static str,
    (grid, block): (*mut c_int, *mut c_int),
    function: hipFunction_t,
    shared: usize,
    limit: c_int,
    flags: c_uint,
) -> hipError_t {
    entry(call, || {
        if grid.is_null() || block.is_null() || flags > 1 {
            return Err(INVALID);
        }
        known(function)?;
        let limit = match limit {
            // Less than none is no limit either.
            ..=0 => MAX_THREADS_PER_BLOCK as usize,
            limit => (limit as usize).min(MAX_THREADS_PER_BLOCK as usize),
        };
        let warp = WARP as usize;
        // The largest of those that keep most threads at work; a limit is rounded up to wavefronts.
        let sizes = (1..=limit.div_ceil(warp)).map(|warps| warps * warp);
        let best = sizes
            .max_by_key(|&threads| (threads * blocks_of_a_unit(threads, shared), threads))
            .unwrap_or(limit);
        let blocks = blocks_of_a_unit(best, shared) * workers::width();
        // SAFETY: neither is null; room for an int each by the C caller's promise.
        unsafe {
            store(grid, c_int::try_from(blocks).unwrap_or(c_int::MAX))?;
            store(block, best as c_int)
        }
    })
}

pub(crate) unsafe extern "C" fn module_occupancy_max_potential_block_size(
    grid: *mut c_int,
    block: *mut c_int,
    function: hipFunction_t,
    shared: usize,
    limit: c_int,
) -> hipError_t {
    let call = "hipModuleOccupancyMaxPotentialBlockSize";
    best_block(call, (grid, block), function, shared, limit, 0)
}

pub(crate) unsafe extern "C" fn module_occupancy_max_potential_block_size_with_flags(
    grid: *mut c_int,
    block: *mut c_int,
    function: hipFunction_t,
    shared: usize,
    limit: c_int,
    flags: c_uint,
) -> hipError_t {
    let call = "hipModuleOccupancyMaxPotentialBlockSizeWithFlags";
    best_block(call, (grid, block), function, shared, limit, flags)
}

pub(crate) unsafe extern "C" fn func_get_attribute(
    out: *mut c_int,
    attribute: Attribute,
    function: hipFunction_t,
) -> hipError_t {
    entry("hipFuncGetAttribute", || {
        if out.is_null() {
            return Err(INVALID);
        }
        if function.is_null() {
            return Err(hipError_t::hipErrorInvalidHandle);
        }
        function::find(function)?;
        let value = match attribute {
            Attribute::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => MAX_THREADS_PER_BLOCK as c_int,
            Attribute::HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => MAX_SHARED_BYTES as c_int,
            // gfx9's major and minor (hipamd/src/hip_module.cpp, `hipFuncGetAttribute`).
            Attribute::HIP_FUNC_ATTRIBUTE_PTX_VERSION | Attribute::HIP_FUNC_ATTRIBUTE_BINARY_VERSION => 90,
            // What host code has none of, or what the compiler does not say.
            Attribute::HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
            | Attribute::HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES
            | Attribute::HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
            | Attribute::HIP_FUNC_ATTRIBUTE_NUM_REGS
            | Attribute::HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA
            | Attribute::HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => 0,
            _ => return Err(INVALID),
        };
        // SAFETY: not null; room for an int by the C caller's promise.
        unsafe { store(out, value) }
    })
}
