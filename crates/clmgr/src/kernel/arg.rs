//! The arguments and the range of a launch.

use std::ffi::c_void;

use bytemuck::Pod;
use opencl_sys::cl_mem;

/// How a pointer argument is passed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Pointer {
    Neither,
    Mem,
    Svm,
}

/// One argument of a launch.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// A buffer object.
    Mem(cl_mem),
    /// A pointer into shared virtual memory.
    Svm(*const c_void),
    /// The bytes of a value.
    Bytes(&'a [u8]),
    /// Local memory of this many bytes.
    Local(usize),
}

impl<'a> Arg<'a> {
    /// A value of a plain type, e.g. `Arg::scalar(&1.5f32)`.
    #[must_use]
    pub fn scalar<T: Pod>(value: &'a T) -> Self {
        Self::Bytes(bytemuck::bytes_of(value))
    }

    pub(super) fn pointer(&self) -> Pointer {
        match self {
            Self::Mem(_) => Pointer::Mem,
            Self::Svm(_) => Pointer::Svm,
            Self::Bytes(_) | Self::Local(_) => Pointer::Neither,
        }
    }
}

/// The work-items of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NdRange {
    /// The work-items in each dimension.
    pub global: [usize; 3],
    /// The work-items of a work-group; the driver chooses if there is none.
    pub local: Option<[usize; 3]>,
    /// The number of dimensions, 1 to 3. Further entries are not used.
    pub dims: u32,
    /// What `get_global_id` begins with in each dimension.
    pub offset: [usize; 3],
}

impl NdRange {
    /// One dimension.
    #[must_use]
    pub const fn d1(x: usize) -> Self {
        Self {
            global: [x, 1, 1],
            local: None,
            offset: [0; 3],
            dims: 1,
        }
    }

    /// Two dimensions; `x` runs fastest.
    #[must_use]
    pub const fn d2(x: usize, y: usize) -> Self {
        Self {
            global: [x, y, 1],
            local: None,
            offset: [0; 3],
            dims: 2,
        }
    }

    /// Three dimensions; `x` runs fastest.
    #[must_use]
    pub const fn d3(x: usize, y: usize, z: usize) -> Self {
        Self {
            global: [x, y, z],
            local: None,
            offset: [0; 3],
            dims: 3,
        }
    }

    /// One dimension in work-groups of `local`, which must divide `x`.
    #[must_use]
    pub const fn d1_local(x: usize, local: usize) -> Self {
        Self::d1(x).with_local([local, 1, 1])
    }

    /// The same range in work-groups of `local`, each of which must divide the range.
    #[must_use]
    pub const fn with_local(mut self, local: [usize; 3]) -> Self {
        self.local = Some(local);
        self
    }

    /// The same range with global ids that begin at `offset`.
    #[must_use]
    pub const fn with_offset(mut self, offset: [usize; 3]) -> Self {
        self.offset = offset;
        self
    }

    /// Refuses a range that OpenCL cannot launch, with the reason: no work-items, work-groups that do not divide it, or
    /// indices beyond the largest number.
    ///
    /// # Errors
    ///
    /// The reason, and the remedy.
    pub fn check(&self) -> std::result::Result<(), String> {
        let dims = self.dims as usize;
        if !(1..=3).contains(&dims) {
            return Err(format!("a range of {dims} dimensions; OpenCL allows 1 to 3"));
        }
        let global = &self.global[..dims];
        if global.contains(&0) {
            return Err(format!("the range {global:?} has no work-items"));
        }
        let offset = &self.offset[..dims];
        if global.iter().zip(offset).any(|(g, o)| g.checked_add(*o).is_none()) {
            return Err(format!(
                "the offset {offset:?} plus the range {global:?} exceeds the largest index"
            ));
        }
        if let Some(local) = &self.local {
            let local = &local[..dims];
            if local.contains(&0) || global.iter().zip(local).any(|(g, l)| g % l != 0) {
                return Err(format!(
                    "work-groups of {local:?} do not divide the range {global:?}; round the range up and test the index in the kernel"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_without_work_or_with_unfitting_groups_are_refused() {
        assert!(NdRange::d1(0).check().is_err());
        assert!(NdRange::d2(4, 0).check().is_err());
        assert!(NdRange::d1_local(10, 4).check().is_err());
        assert!(NdRange::d1_local(8, 0).check().is_err());
        assert!(
            NdRange {
                dims: 4,
                ..NdRange::d1(1)
            }
            .check()
            .is_err()
        );
        assert!(
            NdRange {
                dims: 0,
                ..NdRange::d1(1)
            }
            .check()
            .is_err()
        );
        assert!(NdRange::d1(8).with_offset([usize::MAX, 0, 0]).check().is_err());
        assert!(NdRange::d1(8).with_offset([8, usize::MAX, 0]).check().is_ok());
        assert!(NdRange::d1_local(8, 4).check().is_ok());
        assert!(NdRange::d3(2, 3, 4).check().is_ok());
    }
}
