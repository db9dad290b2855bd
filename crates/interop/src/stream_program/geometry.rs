//! OpenCL ranges as HIP grids.

use clmgr::{KernelInfo, NdRange};

/// Blocks and threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
}

/// Work-items of a work-group where the caller leaves the choice.
const PREFERRED: usize = 256;
/// CUDA takes no more in the third dimension.
const MOST_IN_Z: usize = 64;

impl Geometry {
    /// The grid of a range that [`NdRange::check`] has passed.
    pub(super) fn of(range: &NdRange, kernel: &KernelInfo) -> Result<Self, String> {
        let global = used(range.global, range.dims, 1);
        let local = match (range.local, kernel.required_work_group) {
            (Some(local), required) => {
                let local = used(local, range.dims, 1);
                if let Some(required) = required.filter(|required| *required != local) {
                    return Err(format!(
                        "work-groups of {local:?}; it requires {required:?} (reqd_work_group_size)"
                    ));
                }
                local
            }
            (None, Some(required)) => {
                if global.iter().zip(required).any(|(g, r)| g % r != 0) {
                    return Err(format!(
                        "it requires work-groups of {required:?} (reqd_work_group_size), which do not divide the range {global:?}"
                    ));
                }
                required
            }
            (None, None) => chosen(global, kernel.max_work_group),
        };
        let threads = local
            .iter()
            .try_fold(1_usize, |product, axis| product.checked_mul(*axis));
        if threads.is_none_or(|threads| threads > kernel.max_work_group) {
            return Err(format!(
                "work-groups of {local:?}; this device runs it in work-groups of at most {} work-items",
                kernel.max_work_group
            ));
        }
        let mut geometry = Self {
            grid: [1; 3],
            block: [1; 3],
        };
        for axis in 0..range.dims as usize {
            let Ok(items) = u32::try_from(global[axis]) else {
                return Err(format!(
                    "the range {global:?}; HIP allows fewer than 2^32 work-items in a dimension"
                ));
            };
            // At most the number of work-items of a group, and a divisor.
            let group = local[axis] as u32;
            geometry.grid[axis] = items / group;
            geometry.block[axis] = group;
        }
        Ok(geometry)
    }
}

/// The entries of the dimensions that a range has; `rest` for the others.
pub(super) fn used(values: [usize; 3], dims: u32, rest: usize) -> [usize; 3] {
    std::array::from_fn(|axis| match axis < dims as usize {
        true => values[axis],
        false => rest,
    })
}

/// Work-groups that divide the range, as large as they may be.
fn chosen(global: [usize; 3], most: usize) -> [usize; 3] {
    let mut room = PREFERRED.min(most.max(1));
    let mut local = [1; 3];
    for (axis, (size, global)) in local.iter_mut().zip(global).enumerate() {
        if global == 1 {
            continue;
        }
        let most = if axis == 2 { room.min(MOST_IN_Z) } else { room };
        *size = (1..=most.min(global))
            .rev()
            .find(|size| global % size == 0)
            .unwrap_or(1);
        room /= *size;
    }
    local
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chosen_groups_divide_the_range_and_are_small_enough(
            global in [1_usize..5000, 1_usize..300, 1_usize..300], most in 1_usize..1025,
        ) {
            let local = chosen(global, most);
            prop_assert!(global.iter().zip(local).all(|(g, l)| g % l == 0));
            prop_assert!(local.iter().product::<usize>() <= most.min(PREFERRED));
            prop_assert!(local[2] <= MOST_IN_Z);
        }
    }

    #[test]
    fn usual_ranges_get_full_groups() {
        assert_eq!(chosen([1 << 20, 1, 1], 1024), [256, 1, 1]);
        assert_eq!(chosen([16, 64, 4], 1024), [16, 16, 1]);
        assert_eq!(chosen([1, 1, 4096], 1024), [1, 1, 64]);
        assert_eq!(chosen([1000, 1, 1], 64), [50, 1, 1]);
        assert_eq!(chosen([4096, 1, 1], 0), [1, 1, 1]);
    }

    #[test]
    fn entries_behind_the_dimensions_are_not_used() {
        assert_eq!(used([4, 7, 9], 1, 1), [4, 1, 1]);
        assert_eq!(used([4, 7, 9], 3, 1), [4, 7, 9]);
    }
}
