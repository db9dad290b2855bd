//! The matrices of a batch, in either form.

use rocblas_sys::{rocblas_int, rocblas_status as Status, rocblas_stride};

use crate::blas::Result;
use crate::blas::family::Place;
use crate::blas::handle::Handle;

/// Matrices (or vectors) of one batch.
pub(super) enum Operand<T> {
    /// From this address on, at this distance in elements.
    Strided(*mut T, rocblas_stride),
    /// Each at its own address, with the list of them on the device.
    Listed(Vec<*mut T>, *const *mut T),
}

impl<T> Operand<T> {
    /// # Safety
    /// A list is null (refused unless the batch is empty) or a device array of `batch` addresses.
    pub(super) unsafe fn of(handle: &Handle, place: Place<T>, batch: rocblas_int) -> Result<Self> {
        match place {
            Place::Strided(first, stride) => Ok(Self::Strided(first, stride)),
            // SAFETY: the caller's promise.
            Place::Listed(list) => unsafe { Self::listed(handle, list, batch) },
        }
    }

    /// Reads a device array of addresses.
    ///
    /// # Safety
    /// As [`Operand::of`].
    unsafe fn listed(handle: &Handle, list: *const *mut T, batch: rocblas_int) -> Result<Self> {
        let batch = usize::try_from(batch).map_err(|_| Status::rocblas_status_invalid_size)?;
        if batch == 0 {
            return Ok(Self::Listed(Vec::new(), list));
        }
        if list.is_null() {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        // SAFETY: the caller's promise; an address is a number of 64 bits.
        let addresses = unsafe { handle.read::<u64>(list.cast(), batch) }?;
        let pointers = addresses
            .into_iter()
            .map(|address| crate::memory::pointer(address).cast());
        Ok(Self::Listed(pointers.collect(), list))
    }

    /// The matrix with this index, which is below the batch's size.
    pub(super) fn at(&self, index: usize) -> *mut T {
        match self {
            Self::Strided(first, stride) => {
                let step = isize::try_from(*stride).unwrap_or(0);
                first.wrapping_offset(step.wrapping_mul(index as isize))
            }
            Self::Listed(list, _) => list.get(index).copied().unwrap_or(std::ptr::null_mut()),
        }
    }

    /// The matrices from this index on, for a kernel: the first and the distance, or the rest of the list.
    pub(super) fn from(&self, index: usize) -> (*mut T, rocblas_stride, *const *mut T) {
        match self {
            Self::Strided(_, stride) => (self.at(index), *stride, std::ptr::null()),
            Self::Listed(_, list) => (std::ptr::null_mut(), 0, list.wrapping_add(index)),
        }
    }

    /// Whether an address is missing.
    pub(super) fn has_null(&self) -> bool {
        match self {
            Self::Strided(first, _) => first.is_null(),
            Self::Listed(list, _) => list.iter().any(|at| at.is_null()),
        }
    }
}

/// The size of a batch, refusing negative ones.
pub(super) fn batch_size(batch: rocblas_int) -> Result<usize> {
    usize::try_from(batch).map_err(|_| Status::rocblas_status_invalid_size)
}

/// Refuses sizes and leading dimensions that LAPACK refuses: each pair is a leading dimension and its rows.
pub(super) fn check_sizes(sizes: &[rocblas_int], leading: &[(rocblas_int, rocblas_int)]) -> Result {
    let negative = sizes.iter().any(|size| *size < 0);
    if negative || leading.iter().any(|(ld, rows)| *ld < (*rows).max(1)) {
        return Err(Status::rocblas_status_invalid_size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_matrices_lie_at_their_distance_in_elements() {
        let mut cells = [0_f64; 8];
        let first = cells.as_mut_ptr();
        let operand = Operand::Strided(first, 3);
        assert_eq!(operand.at(2), first.wrapping_add(6));
        assert!(!operand.has_null());
        assert_eq!(operand.from(1), (first.wrapping_add(3), 3, std::ptr::null()));
        let list = [first, std::ptr::null_mut()];
        let listed = Operand::Listed(list.to_vec(), list.as_ptr());
        assert!(listed.has_null());
        assert_eq!(listed.from(1).2, list.as_ptr().wrapping_add(1));
    }

    #[test]
    fn a_leading_dimension_below_the_rows_is_refused() {
        assert_eq!(check_sizes(&[4, 1], &[(4, 4)]), Ok(()));
        assert_eq!(check_sizes(&[0], &[(0, 0)]), Err(Status::rocblas_status_invalid_size));
        assert_eq!(check_sizes(&[4], &[(3, 4)]), Err(Status::rocblas_status_invalid_size));
        assert_eq!(check_sizes(&[-1], &[]), Err(Status::rocblas_status_invalid_size));
    }
}
