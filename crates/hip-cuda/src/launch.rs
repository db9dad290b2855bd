//! Launches, and how many blocks fit.

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::CUfunction_attribute;
use hip_sys::{hipError_t, hipFunction_t, hipStream_t};

use crate::device::here;
use crate::error::{INVALID, Result, calls, not_null};

/// The shared memory that every CUDA device gives a block by default.
const SHARED_WITHOUT_ASKING: c_uint = 48 * 1024;

/// HIP's marks in the list of `extra` arguments. CUDA ends the list with 0, HIP with 3.
mod extra {
    pub(super) const POINTER: usize = 1;
    pub(super) const SIZE: usize = 2;
    pub(super) const END: usize = 3;
}

/// HIP's list as CUDA's: buffer and its size.
///
/// # Safety
/// `list` holds pairs of a mark and a value, and ends with HIP's end mark.
unsafe fn translated(list: *mut *mut c_void) -> Result<[*mut c_void; 5]> {
    let (mut buffer, mut size) = (std::ptr::null_mut(), std::ptr::null_mut());
    let mut at = list;
    // Two values and the end are all there can be.
    for _ in 0..3 {
        // SAFETY: within the list by this function's contract; its end stops the loop.
        let mark = unsafe { at.read_unaligned() }.addr();
        let slot = match mark {
            extra::POINTER => &mut buffer,
            extra::SIZE => &mut size,
            extra::END => break,
            _ => return Err(INVALID),
        };
        // SAFETY: a mark that is not the end is followed by its value, and by another mark.
        unsafe {
            *slot = at.add(1).read_unaligned();
            at = at.add(2);
        }
    }
    if buffer.is_null() || size.is_null() {
        return Err(INVALID);
    }
    Ok([
        std::ptr::without_provenance_mut(extra::POINTER),
        buffer,
        std::ptr::without_provenance_mut(extra::SIZE),
        size,
        std::ptr::null_mut(),
    ])
}

fn check(function: hipFunction_t, grid: [c_uint; 3], block: [c_uint; 3]) -> Result {
    if function.is_null() {
        return Err(hipError_t::hipErrorInvalidImage);
    }
    if grid.contains(&0) || block.contains(&0) {
        return Err(INVALID);
    }
    Ok(())
}

/// CUDA grants more than 48 KiB only to a kernel that opted in; HIP kernels do not.
///
/// # Safety
/// A live function.
unsafe fn allow_shared(function: hipFunction_t, bytes: c_uint) -> Result {
    if bytes <= SHARED_WITHOUT_ASKING {
        return Ok(());
    }
    let bytes = c_int::try_from(bytes).map_err(|_| INVALID)?;
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as c_uint;
    // SAFETY: the caller's promise; the driver refuses more than the device has.
    unsafe { here()?.cuFuncSetAttribute(function, attribute, bytes) }
}

calls! {
    pub(crate) fn fill;

    fn hipModuleLaunchKernel(
        function: hipFunction_t, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: hipStream_t,
        arguments: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        check(function, [grid_x, grid_y, grid_z], [block_x, block_y, block_z])?;
        let driver = here()?;
        allow_shared(function, shared)?;
        let mut list;
        let list = if extra.is_null() {
            std::ptr::null_mut()
        } else if arguments.is_null() {
            list = translated(extra)?;
            list.as_mut_ptr()
        } else {
            return Err(INVALID);
        };
        driver.cuLaunchKernel(
            function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments, list,
        )
    }
    fn hipModuleLaunchCooperativeKernel(
        function: hipFunction_t, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: hipStream_t,
        arguments: *mut *mut c_void,
    ) {
        check(function, [grid_x, grid_y, grid_z], [block_x, block_y, block_z])?;
        let driver = here()?;
        allow_shared(function, shared)?;
        driver.cuLaunchCooperativeKernel(
            function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments,
        )
    }
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int, function: hipFunction_t, block: c_int, shared: usize,
    ) {
        not_null!(blocks, function);
        allow_shared(function, c_uint::try_from(shared).map_err(|_| INVALID)?)?;
        here()?.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block, shared)
    }
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int, function: hipFunction_t, block: c_int, shared: usize, flags: c_uint,
    ) {
        not_null!(blocks, function);
        if flags > 1 {
            return Err(INVALID);
        }
        here()?.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block, shared)
    }
    fn hipModuleOccupancyMaxPotentialBlockSize(
        grid: *mut c_int, block: *mut c_int, function: hipFunction_t, shared: usize, limit: c_int,
    ) {
        not_null!(grid, block, function);
        here()?.cuOccupancyMaxPotentialBlockSize(grid, block, function, std::ptr::null(), shared, limit)
    }
    fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
        grid: *mut c_int, block: *mut c_int, function: hipFunction_t, shared: usize, limit: c_int, flags: c_uint,
    ) {
        not_null!(grid, block, function);
        if flags > 1 {
            return Err(INVALID);
        }
        here()?.cuOccupancyMaxPotentialBlockSize(grid, block, function, std::ptr::null(), shared, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: usize) -> *mut c_void {
        std::ptr::without_provenance_mut(number)
    }

    #[test]
    fn the_list_of_extra_arguments_gets_cudas_end() {
        let (mut buffer, mut size) = ([0_u8; 4], 4_usize);
        let (buffer, size) = ((&raw mut buffer).cast(), (&raw mut size).cast());
        let mut list = [mark(extra::SIZE), size, mark(extra::POINTER), buffer, mark(extra::END)];
        // SAFETY: two pairs and the end.
        let cuda = unsafe { translated(list.as_mut_ptr()) };
        assert_eq!(cuda, Ok([mark(1), buffer, mark(2), size, mark(0)]));
    }

    #[test]
    fn a_list_without_a_buffer_or_with_an_unknown_mark_is_refused() {
        for first in [extra::END, 7] {
            let mut list = [mark(first), mark(0), mark(extra::END)];
            // SAFETY: the end, or a mark with a value and the end.
            assert_eq!(unsafe { translated(list.as_mut_ptr()) }, Err(INVALID));
        }
    }

    #[test]
    fn an_empty_grid_is_refused_before_the_driver_sees_it() {
        let function = std::ptr::dangling_mut::<hip_sys::ihipModuleSymbol_t>();
        assert_eq!(check(function, [1, 0, 1], [1, 1, 1]), Err(INVALID));
        assert_eq!(check(function, [1, 1, 1], [1, 1, 1]), Ok(()));
    }
}
