use hip_sys::hipDeviceAttribute_t;

use crate::{Error, Result};

/// How many threads a kernel gets: `grid` blocks of `block` threads, each as (x, y, z).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks in each dimension.
    pub grid: (u32, u32, u32),
    /// Threads of a block in each dimension.
    pub block: (u32, u32, u32),
    /// Dynamic shared memory of a block in bytes.
    pub shared_bytes: u32,
}

impl LaunchConfig {
    /// One thread for each of `items`, in blocks of `block` threads. The last block may have threads to spare, so the
    /// kernel has to know `items`.
    ///
    /// ```
    /// let config = hip::LaunchConfig::linear(1000, 256)?;
    /// assert_eq!((config.grid, config.block), ((4, 1, 1), (256, 1, 1)));
    /// # Ok::<(), hip::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Nothing to do, blocks of 0 threads, or 2^32 threads and more, which HIP cannot launch in one dimension.
    pub fn linear(items: usize, block: u32) -> Result<Self> {
        let refused = |reason: String| {
            Err(Error::Launch {
                function: "LaunchConfig::linear".to_owned(),
                reason,
            })
        };
        if items == 0 {
            return refused("0 items; skip the launch".to_owned());
        }
        if block == 0 {
            return refused("blocks of 0 threads; use at least 1".to_owned());
        }
        let blocks = items.div_ceil(block as usize);
        match u32::try_from(blocks) {
            Ok(blocks) if blocks.checked_mul(block).is_some() => Ok(Self {
                grid: (blocks, 1, 1),
                block: (block, 1, 1),
                shared_bytes: 0,
            }),
            _ => refused(format!(
                "{items} items in blocks of {block} need 2^32 threads or more; let each thread process several items"
            )),
        }
    }
}

/// A device's launch limits. 0 means that the device does not report the limit; HIP itself still checks it.
pub(crate) struct Limits {
    block: [u32; 3],
    grid: [u32; 3],
    threads: u32,
    shared_bytes: u32,
}

impl Limits {
    /// The limits of the device whose attributes these are.
    pub(crate) fn of(limit: impl Fn(hipDeviceAttribute_t) -> u32) -> Self {
        Self {
            block: [
                limit(hipDeviceAttribute_t::hipDeviceAttributeMaxBlockDimX),
                limit(hipDeviceAttribute_t::hipDeviceAttributeMaxBlockDimY),
                limit(hipDeviceAttribute_t::hipDeviceAttributeMaxBlockDimZ),
            ],
            grid: [
                limit(hipDeviceAttribute_t::hipDeviceAttributeMaxGridDimX),
                limit(hipDeviceAttribute_t::hipDeviceAttributeMaxGridDimY),
                limit(hipDeviceAttribute_t::hipDeviceAttributeMaxGridDimZ),
            ],
            threads: limit(hipDeviceAttribute_t::hipDeviceAttributeMaxThreadsPerBlock),
            shared_bytes: limit(hipDeviceAttribute_t::hipDeviceAttributeMaxSharedMemoryPerBlock),
        }
    }

    /// Whether the launch is possible as far as can be seen at a glance; if not, [`Limits::refuse`] has the last word.
    pub(crate) fn admit(&self, config: &LaunchConfig) -> bool {
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
        } = *config;
        let axis = |grid: u32, block: u32, axis: usize| {
            grid.wrapping_sub(1) < self.grid[axis]
                && block.wrapping_sub(1) < self.block[axis]
                && u64::from(grid) * u64::from(block) < 1 << 32
        };
        axis(grid.0, block.0, 0)
            && axis(grid.1, block.1, 1)
            && axis(grid.2, block.2, 2)
            && u64::from(block.0) * u64::from(block.1) * u64::from(block.2) <= u64::from(self.threads)
            && shared_bytes <= self.shared_bytes
    }

    /// Why the launch is impossible, if it is.
    pub(crate) fn refuse(&self, config: &LaunchConfig) -> Option<String> {
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
        } = *config;
        for (axis, grid, block, most_grid, most_block) in [
            ('x', grid.0, block.0, self.grid[0], self.block[0]),
            ('y', grid.1, block.1, self.grid[1], self.block[1]),
            ('z', grid.2, block.2, self.grid[2], self.block[2]),
        ] {
            if grid == 0 || block == 0 {
                return Some(format!(
                    "grid.{axis} = {grid}, block.{axis} = {block}; both must be at least 1"
                ));
            }
            if exceeds(block, most_block) {
                return Some(format!(
                    "block.{axis} = {block}; the device allows at most {most_block}"
                ));
            }
            if exceeds(grid, most_grid) {
                return Some(format!("grid.{axis} = {grid}; the device allows at most {most_grid}"));
            }
            // "HIP does not support kernel launch with total work items defined in dimension with size
            // gridDim x blockDim >= 2^32" (HIP FAQ).
            if grid.checked_mul(block).is_none() {
                return Some(format!(
                    "grid.{axis} x block.{axis} = {grid} x {block}; HIP allows fewer than 2^32 threads in a dimension"
                ));
            }
        }
        let threads = u64::from(block.0) * u64::from(block.1) * u64::from(block.2);
        if self.threads != 0 && threads > u64::from(self.threads) {
            return Some(format!(
                "blocks of {threads} threads; the device allows at most {}",
                self.threads
            ));
        }
        if exceeds(shared_bytes, self.shared_bytes) {
            return Some(format!(
                "{shared_bytes} bytes of shared memory; the device has {} per block",
                self.shared_bytes
            ));
        }
        None
    }
}

fn exceeds(value: u32, most: u32) -> bool {
    most != 0 && value > most
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LaunchConfig, Limits};

    proptest! {
        #[test]
        fn linear_covers_all_items_and_no_block_is_idle(items in 1_usize..1 << 31, block in 1_u32..=1024) {
            let config = LaunchConfig::linear(items, block).unwrap();
            let threads = u64::from(config.grid.0) * u64::from(block);
            prop_assert!(threads >= items as u64);
            prop_assert!(threads - (items as u64) < u64::from(block));
        }
    }

    proptest! {
        #[test]
        fn what_is_admitted_is_what_is_not_refused(
            grid in (0_u32..5, 0_u32..5, 0_u32..5),
            block in (0_u32..5, 0_u32..5, 0_u32..5),
            shared_bytes in 0_u32..4,
            large in 0_u32..3,
        ) {
            let limits = Limits { block: [4, 3, 2], grid: [u32::MAX, 3, 4], threads: 12, shared_bytes: 2 };
            let grid = (grid.0 << (15 * large), grid.1, grid.2);
            let config = LaunchConfig { grid, block, shared_bytes };
            prop_assert_eq!(limits.admit(&config), limits.refuse(&config).is_none());
        }
    }

    #[test]
    fn linear_refuses_what_has_no_grid() {
        for (items, block) in [(0, 64), (1, 0), (1 << 32, 64), (usize::MAX, 1), ((1 << 32) - 1, 2)] {
            let error = LaunchConfig::linear(items, block).unwrap_err().to_string();
            assert!(error.starts_with("cannot launch `LaunchConfig::linear`: "), "{error}");
        }
        assert!(LaunchConfig::linear((1 << 32) - 1, 1).is_ok());
    }

    #[test]
    fn each_limit_is_named_when_it_is_exceeded() {
        let limits = Limits {
            block: [1024, 1024, 64],
            grid: [1 << 30, 65_535, 65_535],
            threads: 1024,
            shared_bytes: 65_536,
        };
        let good = LaunchConfig {
            grid: (1, 1, 1),
            block: (32, 32, 1),
            shared_bytes: 65_536,
        };
        assert_eq!(limits.refuse(&good), None);
        for (config, part) in [
            (
                LaunchConfig {
                    grid: (0, 1, 1),
                    ..good
                },
                "grid.x = 0",
            ),
            (
                LaunchConfig {
                    block: (1, 1, 0),
                    ..good
                },
                "block.z = 0",
            ),
            (
                LaunchConfig {
                    block: (1, 1, 65),
                    ..good
                },
                "block.z = 65",
            ),
            (
                LaunchConfig {
                    grid: (1, 65_536, 1),
                    ..good
                },
                "grid.y = 65536",
            ),
            (
                LaunchConfig {
                    grid: (1 << 28, 1, 1),
                    ..good
                },
                "2^32",
            ),
            (
                LaunchConfig {
                    block: (33, 32, 1),
                    ..good
                },
                "1056 threads",
            ),
            (
                LaunchConfig {
                    shared_bytes: 65_537,
                    ..good
                },
                "65537 bytes of shared memory",
            ),
        ] {
            let reason = limits.refuse(&config).unwrap_or_default();
            assert!(reason.contains(part), "{config:?}: {reason}");
        }
    }
}
