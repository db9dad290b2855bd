//! Results that share memory with each other or with an operand.

use std::ops::Range;

use hip_host::library;
use rocblas_sys::rocblas_status;

use super::arguments::{Strided, extent};
use super::batch::Batch;
use super::status::Outcome;

/// True if two matrices of the same leading dimension share an element; the second one begins
/// `distance` elements after the first. Matrices may lie interleaved (as blocks of a larger one), so
/// the question is answered exactly: the distance must be a difference of rows plus a difference of
/// columns times `ld`.
fn coincide((rows, cols): (usize, usize), (other_rows, other_cols): (usize, usize), ld: usize, distance: i128) -> bool {
    let ld = ld as i128;
    let within = |row: i128, col: i128| {
        -(other_rows as i128) < row && row < rows as i128 && -(other_cols as i128) < col && col < cols as i128
    };
    let (col, row) = (distance.div_euclid(ld), distance.rem_euclid(ld));
    within(row, col) || within(row - ld, col + 1)
}

/// True if two of `count` matrices share an element.
fn overlaps(rows: usize, cols: usize, ld: usize, stride: i64, count: usize) -> bool {
    if rows == 0 || cols == 0 || count < 2 {
        return false;
    }
    let stride = i128::from(stride.unsigned_abs());
    let end = ld as i128 * cols as i128;
    stride == 0
        || (1..count as i128)
            .map(|i| i * stride)
            .take_while(|&distance| distance < end)
            .any(|distance| coincide((rows, cols), (rows, cols), ld, distance))
}

/// Two results in one place: undefined on the real library, refused here.
pub(crate) fn ensure_apart<P>(call: &str, batch: Strided<P>, (rows, cols): (usize, usize), count: usize) -> Outcome {
    let Strided { ld, stride, .. } = batch;
    if !overlaps(rows, cols, ld, stride, count) {
        return Ok(());
    }
    library::refused(
        call,
        format_args!("{count} results of {rows} x {cols} with ld {ld} overlap at a stride of {stride}"),
    );
    Err(rocblas_status::rocblas_status_invalid_size)
}

/// A result in the place of an operand: undefined on the real library, refused here. Decided for
/// each product with its own operand where both have the same leading dimension, and otherwise only
/// if both begin at the same address.
pub(crate) fn ensure_not_in_place<T>(
    call: &str,
    argument: &str,
    operand: (Strided<*const T>, (usize, usize)),
    result: (Strided<*const T>, (usize, usize)),
    count: usize,
) -> Outcome {
    let ((operand, shape), (result, result_shape)) = (operand, result);
    let apart = |a: Range<usize>, b: Range<usize>| a.end <= b.start || b.end <= a.start;
    let extents = extent(operand, shape, count).zip(extent(result, result_shape, count));
    if extents.is_some_and(|(a, b)| apart(a, b)) {
        return Ok(());
    }
    let start = operand.ptr.addr() as i128 - result.ptr.addr() as i128;
    let step = i128::from(operand.stride) - i128::from(result.stride);
    let size = size_of::<T>() as i128;
    // Matrices that keep their distance need to be looked at once.
    let count = if step == 0 { 1 } else { count as i128 };
    let shared = (0..count).map(|i| start + i * step * size).any(|distance| {
        if operand.ld == result.ld && distance % size == 0 {
            coincide(result_shape, shape, result.ld, distance / size)
        } else {
            distance == 0
        }
    });
    if !shared {
        return Ok(());
    }
    library::refused(call, format_args!("{argument} shares memory with the result"));
    Err(rocblas_status::rocblas_status_invalid_pointer)
}

/// As `ensure_not_in_place`, for operands that may be of another type than the result. Those of
/// another size are compared as ranges of bytes, whatever lies between their columns.
pub(crate) fn ensure_elements_apart<T, R>(
    call: &str,
    argument: &str,
    operand: &Batch<T>,
    result: &Batch<R>,
) -> Outcome {
    let (Some(one), Some(other)) = (operand.strided(), result.strided()) else {
        return Ok(());
    };
    if size_of::<T>() == size_of::<R>() {
        let other = Strided {
            ptr: other.ptr.cast::<T>(),
            ld: other.ld,
            stride: other.stride,
        };
        let (one, other) = ((one, operand.shape), (other, result.shape));
        return ensure_not_in_place(call, argument, one, other, result.count);
    }
    let extents = extent(one, operand.shape, operand.count).zip(extent(other, result.shape, result.count));
    if extents.is_some_and(|(a, b)| a.end <= b.start || b.end <= a.start) {
        return Ok(());
    }
    library::refused(call, format_args!("{argument} shares memory with the result"));
    Err(rocblas_status::rocblas_status_invalid_pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element of every matrix, one by one.
    fn overlaps_by_counting(rows: usize, cols: usize, ld: usize, stride: i64, count: usize) -> bool {
        let mut seen = std::collections::HashSet::new();
        for i in 0..count as i64 {
            for col in 0..cols as i64 {
                for row in 0..rows as i64 {
                    if !seen.insert(i * stride + col * ld as i64 + row) {
                        return true;
                    }
                }
            }
        }
        false
    }

    #[test]
    fn matrices_coincide_if_an_element_of_one_is_an_element_of_the_other() {
        let shapes = || (1..4usize).flat_map(|rows| (1..4).map(move |cols| (rows, cols)));
        for (one, other) in shapes().flat_map(|one| shapes().map(move |other| (one, other))) {
            for ld in one.0.max(other.0)..6 {
                for distance in -25..25i128 {
                    let places = |(rows, cols): (usize, usize), start: i128| {
                        (0..rows)
                            .flat_map(move |row| (0..cols).map(move |col| start + row as i128 + (col * ld) as i128))
                    };
                    let counted = places(one, 0).any(|a| places(other, distance).any(|b| a == b));
                    assert_eq!(
                        coincide(one, other, ld, distance),
                        counted,
                        "{one:?} and {other:?}, ld {ld}, {distance} apart"
                    );
                }
            }
        }
    }

    #[test]
    fn overlap_of_a_batch_is_what_counting_elements_finds() {
        for rows in 0..4 {
            for cols in 0..4 {
                for ld in rows.max(1)..9 {
                    for stride in -20..20 {
                        for count in 0..4 {
                            assert_eq!(
                                overlaps(rows, cols, ld, stride, count),
                                overlaps_by_counting(rows, cols, ld, stride, count),
                                "{rows} x {cols}, ld {ld}, stride {stride}, {count} matrices"
                            );
                        }
                    }
                }
            }
        }
    }
}
