//! What every entry point does with its arguments before it computes.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::mpsc::sync_channel;

use hip_host::library;
use rocblas_sys::{
    rocblas_diagonal, rocblas_fill, rocblas_operation, rocblas_pointer_mode, rocblas_side, rocblas_status,
};

use super::handle::Handle;
use super::scalar::Scalar;
use super::status::{Outcome, from_hip};
use super::triangular::Side;
use super::view::{Fill, Op, Source, Target, span};

/// The integer of an interface: `rocblas_int`, or `int64_t` in the `_64` forms.
pub(crate) trait Int: Copy + Send + Sync + 'static {
    /// A size; `None` if it is negative.
    fn size(self) -> Option<usize>;
    /// An increment, which may be negative.
    fn signed(self) -> i64;
    /// A one-based index that is known to fit, since the sizes of the call came in the same type.
    fn from_index(index: usize) -> Self;
}

macro_rules! int {
    ($($int:ty),*) => {$(
        impl Int for $int {
            fn size(self) -> Option<usize> {
                usize::try_from(self).ok()
            }
            fn signed(self) -> i64 {
                self.into()
            }
            fn from_index(index: usize) -> Self {
                index as $int
            }
        }
    )*};
}
int!(i32, i64);

/// All sizes at once: one negative size makes the call's size invalid.
pub(crate) fn sizes<I: Int, const N: usize>(values: [I; N]) -> Outcome<[usize; N]> {
    let mut out = [0; N];
    for (out, value) in out.iter_mut().zip(values) {
        *out = value.size().ok_or(rocblas_status::rocblas_status_invalid_size)?;
    }
    Ok(out)
}

pub(crate) fn ensure(condition: bool, otherwise: rocblas_status) -> Outcome {
    if condition { Ok(()) } else { Err(otherwise) }
}

pub(crate) fn operation(op: rocblas_operation) -> Outcome<Op> {
    match op {
        rocblas_operation::rocblas_operation_none => Ok(Op::None),
        rocblas_operation::rocblas_operation_transpose => Ok(Op::Transpose),
        rocblas_operation::rocblas_operation_conjugate_transpose => Ok(Op::ConjTranspose),
        _ => Err(rocblas_status::rocblas_status_invalid_value),
    }
}

pub(crate) fn fill(fill: rocblas_fill) -> Outcome<Fill> {
    match fill {
        rocblas_fill::rocblas_fill_upper => Ok(Fill::Upper),
        rocblas_fill::rocblas_fill_lower => Ok(Fill::Lower),
        _ => Err(rocblas_status::rocblas_status_invalid_value),
    }
}

pub(crate) fn side(side: rocblas_side) -> Outcome<Side> {
    match side {
        rocblas_side::rocblas_side_left => Ok(Side::Left),
        rocblas_side::rocblas_side_right => Ok(Side::Right),
        _ => Err(rocblas_status::rocblas_status_invalid_value),
    }
}

/// True if the diagonal counts as ones.
pub(crate) fn diagonal(diag: rocblas_diagonal) -> Outcome<bool> {
    match diag {
        rocblas_diagonal::rocblas_diagonal_non_unit => Ok(false),
        rocblas_diagonal::rocblas_diagonal_unit => Ok(true),
        _ => Err(rocblas_status::rocblas_status_invalid_value),
    }
}

/// The model's own check: the bytes a call will touch must be memory that the device can reach. The
/// real library finds out by a memory fault in the kernel, which ends the process.
pub(crate) fn check_range(call: &str, argument: &str, ptr: *const c_void, bytes: usize) -> Outcome {
    if bytes == 0 || library::check(ptr, bytes).is_ok() {
        return Ok(());
    }
    library::refused(
        call,
        format_args!("{argument}: not all of {bytes} bytes at {ptr:?} is memory that the device can reach"),
    );
    Err(rocblas_status::rocblas_status_invalid_pointer)
}

/// Elements must lie on a multiple of their size's natural alignment; a device reads them with
/// instructions that demand it.
pub(crate) fn check_aligned<T>(call: &str, argument: &str, ptr: *const T) -> Outcome {
    if ptr.is_aligned() {
        return Ok(());
    }
    library::refused(
        call,
        format_args!("{argument}: {ptr:?} is not aligned for its element type"),
    );
    Err(rocblas_status::rocblas_status_invalid_pointer)
}

/// A batch of equally shaped matrices at a fixed distance; a single matrix is a batch of one.
#[derive(Clone, Copy)]
pub(crate) struct Strided<P> {
    pub(crate) ptr: P,
    pub(crate) ld: usize,
    /// In elements.
    pub(crate) stride: i64,
}

/// The addresses of `count` matrices as one range, from the first byte touched to the last; `None`
/// if that is not within an address space.
pub(crate) fn extent<T>(batch: Strided<*const T>, (rows, cols): (usize, usize), count: usize) -> Option<Range<usize>> {
    let span = span(rows, cols, batch.ld)?;
    if span == 0 || count == 0 {
        return Some(0..0);
    }
    // Strides may be negative; 128 bits hold any product of two sizes.
    let reach = i128::from(batch.stride) * (count - 1) as i128;
    let size = size_of::<T>() as i128;
    let first = batch.ptr.addr() as i128 + reach.min(0) * size;
    let end = first + (reach.abs() + span as i128) * size;
    Some(first.try_into().ok()?..end.try_into().ok()?)
}

/// Checks that all bytes of `count` matrices are device memory.
pub(crate) fn check_batch<T>(
    call: &str,
    argument: &str,
    batch: Strided<*const T>,
    shape: (usize, usize),
    count: usize,
) -> Outcome {
    let extent = extent(batch, shape, count).ok_or(rocblas_status::rocblas_status_invalid_pointer)?;
    if !extent.is_empty() {
        check_aligned(call, argument, batch.ptr)?;
    }
    let first = batch.ptr.with_addr(extent.start).cast();
    check_range(call, argument, first, extent.len())
}

impl<T: Scalar> Strided<*const T> {
    pub(crate) fn source(self, op: Op, index: usize) -> Source<T> {
        Source {
            ptr: self
                .ptr
                .wrapping_offset((self.stride as isize).wrapping_mul(index as isize)),
            ld: self.ld,
            op,
        }
    }
}

impl<T: Scalar> Strided<*mut T> {
    pub(crate) fn target(self, index: usize) -> Target<T> {
        Target {
            ptr: self
                .ptr
                .wrapping_offset((self.stride as isize).wrapping_mul(index as isize)),
            ld: self.ld,
        }
    }

    pub(crate) fn as_const(self) -> Strided<*const T> {
        Strided {
            ptr: self.ptr.cast_const(),
            ld: self.ld,
            stride: self.stride,
        }
    }
}

/// A pointer that crosses to the stream's thread. Its permitted use is decided where it is used.
#[derive(Clone, Copy)]
pub(crate) struct Carried<P>(pub(crate) P);

// SAFETY: an address; every use is unsafe and carries its own duty.
unsafe impl<P> Send for Carried<P> {}
// SAFETY: as above.
unsafe impl<P> Sync for Carried<P> {}

impl<P: Copy> Carried<P> {
    /// Reached by a method, so that a closure captures the whole and not the pointer inside.
    pub(crate) fn get(self) -> P {
        self.0
    }
}

/// The scalar that `ptr` points at, by the handle's pointer mode. In device mode the call waits until the stream has
/// reached this point, as the real library does for level 3.
///
/// # Safety
/// In host mode `ptr` is readable.
pub(crate) unsafe fn scalar<T: Copy + Send + 'static>(
    handle: &Handle,
    call: &'static str,
    ptr: *const T,
) -> Outcome<T> {
    if handle.pointer_mode == rocblas_pointer_mode::rocblas_pointer_mode_host {
        // SAFETY: the caller's promise; C does not promise an alignment to Rust.
        return Ok(unsafe { ptr.read_unaligned() });
    }
    check_range(call, "alpha or beta", ptr.cast(), size_of::<T>())?;
    let (send, receive) = sync_channel(1);
    let ptr = Carried(ptr);
    enqueue_awaited(handle, call, move || {
        // SAFETY: the range was checked, and freeing device memory waits for the stream.
        let _ = send.send(unsafe { ptr.get().read_unaligned() });
    })?;
    receive
        .recv()
        .map_err(|_| rocblas_status::rocblas_status_internal_error)
}

/// Ends the work in a way that makes it the asynchronous error of its stream. Nothing is wrong in this library, so a
/// panic hook has nothing to report.
pub(crate) fn fail_in_stream(reason: String) -> ! {
    std::panic::resume_unwind(Box::new(reason))
}

/// Runs `work` in the order of the handle's stream and returns at once. A stream that captures records it instead, as a
/// kernel, to be run by each launch of the graph.
pub(crate) fn enqueue(handle: &Handle, call: &'static str, work: impl Fn() + Send + Sync + 'static) -> Outcome {
    from_hip(library::issue(handle.stream(), call, work))
}

/// As [`enqueue`], for work that the calling thread waits for. No graph can hold that: it ends a capture.
pub(super) fn enqueue_awaited(handle: &Handle, call: &'static str, work: impl FnOnce() + Send + 'static) -> Outcome {
    from_hip(library::issue_awaited(handle.stream(), call, work))
}
