use std::ffi::c_int;

use hip_sys::hipFunction_attribute;

use super::Function;
use crate::call::call;
use crate::{Error, Result};

/// A block size that keeps the device busiest, and the blocks it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSuggestion {
    /// Blocks that fill the device.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
}

impl Function {
    /// The largest number of threads that a block of this kernel can have, by the registers and shared memory that it
    /// needs.
    ///
    /// # Errors
    ///
    /// HIP cannot report it.
    #[doc(alias = "hipFuncGetAttribute")]
    pub fn max_threads_per_block(&self) -> Result<u32> {
        self.module().device().make_current()?;
        let what = hipFunction_attribute::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        let mut threads = 0;
        // SAFETY: writes one int to the address given; the function is alive.
        unsafe {
            call!(
                self.module().device().runtime(),
                hipFuncGetAttribute(&mut threads, what, self.raw()),
                "hipFuncGetAttribute({what:?}, {})",
                self.name()
            )?;
        }
        Ok(u32::try_from(threads).unwrap_or(0))
    }

    /// How many blocks of `block` threads with `shared_bytes` bytes of dynamic shared memory each one multiprocessor
    /// runs at once.
    ///
    /// # Errors
    ///
    /// A block that no multiprocessor can run, or HIP cannot report it.
    #[doc(alias = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor")]
    pub fn active_blocks(&self, block: u32, shared_bytes: usize) -> Result<u32> {
        self.module().device().make_current()?;
        let threads = self.int(block)?;
        let mut blocks = 0;
        // SAFETY: writes one int to the address given; the function is alive.
        unsafe {
            call!(
                self.module().device().runtime(),
                hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, self.raw(), threads, shared_bytes),
                "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor({}, {block} threads, {shared_bytes} shared bytes)",
                self.name()
            )?;
        }
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// The block size of at most `most` threads (0: any) that keeps the device busiest.
    ///
    /// # Errors
    ///
    /// HIP cannot report it.
    #[doc(alias = "hipModuleOccupancyMaxPotentialBlockSize")]
    pub fn suggested_block(&self, shared_bytes: usize, most: u32) -> Result<BlockSuggestion> {
        self.module().device().make_current()?;
        let limit = most;
        let most = self.int(most)?;
        let (mut grid, mut block) = (0, 0);
        // SAFETY: writes one int to each of the addresses given; the function is alive.
        unsafe {
            call!(
                self.module().device().runtime(),
                hipModuleOccupancyMaxPotentialBlockSize(&mut grid, &mut block, self.raw(), shared_bytes, most),
                "hipModuleOccupancyMaxPotentialBlockSize({}, {shared_bytes} shared bytes, at most {most} threads)",
                self.name()
            )?;
        }
        match (u32::try_from(grid), u32::try_from(block)) {
            (Ok(grid), Ok(block)) if grid > 0 && block > 0 => Ok(BlockSuggestion {
                grid,
                // ROCm answers a whole warp for a limit below one.
                block: if limit > 0 { block.min(limit) } else { block },
            }),
            _ => Err(Error::Answer {
                call: "hipModuleOccupancyMaxPotentialBlockSize",
                answer: format!("{grid} blocks of {block}"),
                expected: "something to launch",
            }),
        }
    }

    fn int(&self, threads: u32) -> Result<c_int> {
        c_int::try_from(threads).map_err(|_| Error::Launch {
            function: self.name().to_owned(),
            reason: format!("blocks of {threads} threads; use fewer"),
        })
    }
}
