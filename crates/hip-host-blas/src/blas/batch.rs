//! A batch of equally shaped matrices, by either kind of place.

use rocblas_sys::{rocblas_status, rocblas_stride};

use super::aliasing::ensure_apart;
use super::arguments::{Strided, check_batch, check_range, fail_in_stream};
use super::status::Outcome;
use super::view::{Op, Source, Target};

/// How a call names its matrices.
#[derive(Debug)]
pub(crate) enum Place<T> {
    /// At a fixed distance, in elements. A single matrix is a batch of one.
    Strided(*mut T, i64),
    /// By a device array of device pointers, which is read in stream order.
    Array(*const *mut T),
}

// Not derived: a copy of the description needs no copy of an element.
impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Place<T> {}

// SAFETY: an address; every use is unsafe and carries the duty that the memory may be touched.
unsafe impl<T: Send> Send for Place<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Place<T> {}

impl<T> Place<T> {
    /// A matrix on its own.
    pub(crate) fn single(ptr: *const T) -> Self {
        Self::strided(ptr, 0)
    }

    /// The first of several at this distance.
    pub(crate) fn strided(ptr: *const T, stride: rocblas_stride) -> Self {
        Self::Strided(ptr.cast_mut(), stride)
    }

    /// True if both name the same matrices (or the same array of them).
    pub(crate) fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::Strided(one, stride), Self::Strided(other, other_stride)) => one == other && stride == other_stride,
            (Self::Array(one), Self::Array(other)) => one == other,
            _ => false,
        }
    }

    /// The same place for elements of another type.
    pub(crate) fn cast<U>(self) -> Place<U> {
        match self {
            Self::Strided(ptr, stride) => Place::Strided(ptr.cast(), stride),
            Self::Array(array) => Place::Array(array.cast()),
        }
    }

    pub(crate) fn is_null(self) -> bool {
        match self {
            Self::Strided(ptr, _) => ptr.is_null(),
            Self::Array(array) => array.is_null(),
        }
    }
}

/// `count` matrices of `shape` as they are stored.
#[derive(Debug)]
pub(crate) struct Batch<T> {
    pub(crate) place: Place<T>,
    pub(crate) shape: (usize, usize),
    pub(crate) ld: usize,
    pub(crate) count: usize,
}

// As for `Place`.
impl<T> Clone for Batch<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Batch<T> {}

impl<T> Batch<T> {
    fn is_empty(&self) -> bool {
        self.count == 0 || self.shape.0 == 0 || self.shape.1 == 0
    }

    /// Refuses null and memory that the device can't reach. Where the matrices are named by an
    /// array that is all that is known at the call; see `check_in_stream`.
    pub(crate) fn check(&self, call: &str, argument: &str) -> Outcome {
        if self.is_empty() {
            return Ok(());
        }
        if self.place.is_null() {
            return Err(rocblas_status::rocblas_status_invalid_pointer);
        }
        match self.place {
            Place::Strided(..) => {
                let strided = self.strided().expect("asked just now");
                check_batch(call, argument, strided, self.shape, self.count)
            }
            Place::Array(array) => {
                let bytes = self.count.saturating_mul(size_of::<*mut T>());
                check_range(call, argument, array.cast(), bytes)
            }
        }
    }

    /// As `check`, for matrices that are written: they must not overlap.
    pub(crate) fn check_result(&self, call: &str, argument: &str) -> Outcome {
        self.check(call, argument)?;
        match self.strided() {
            Some(strided) => ensure_apart(call, strided, self.shape, self.count),
            None => Ok(()),
        }
    }

    /// What the call could not see: the matrices of an array. A bad one is an asynchronous fault of
    /// the stream, as on the device. To be called in stream order.
    ///
    /// # Safety
    /// `check` succeeded, and freeing device memory waits for the stream.
    pub(crate) unsafe fn check_in_stream(&self, call: &str, argument: &str) {
        if self.is_empty() || self.strided().is_some() {
            return;
        }
        for i in 0..self.count {
            // SAFETY: the caller's promise.
            let ptr = unsafe { self.ptr(i) }.cast_const();
            let matrix = Strided {
                ptr,
                ld: self.ld,
                stride: 0,
            };
            if ptr.is_null() || check_batch(call, argument, matrix, self.shape, 1).is_err() {
                fail_in_stream(format!("{call}: {argument}: matrix {i} of the batch"));
            }
        }
    }

    /// As `check_in_stream`, for matrices that are written: no two may begin at the same place.
    ///
    /// # Safety
    /// As for `check_in_stream`.
    pub(crate) unsafe fn check_result_in_stream(&self, call: &str, argument: &str) {
        // SAFETY: the caller's promise.
        unsafe { self.check_in_stream(call, argument) };
        if self.is_empty() || self.strided().is_some() {
            return;
        }
        // SAFETY: as above.
        let mut places: Vec<usize> = (0..self.count).map(|i| unsafe { self.ptr(i) }.addr()).collect();
        places.sort_unstable();
        if places.windows(2).any(|pair| pair[0] == pair[1]) {
            fail_in_stream(format!("{call}: {argument}: two results in one place"));
        }
    }

    /// The batch as one at fixed distances, if it is.
    pub(crate) fn strided(&self) -> Option<Strided<*const T>> {
        match self.place {
            Place::Strided(ptr, stride) => Some(Strided {
                ptr: ptr.cast_const(),
                ld: self.ld,
                stride,
            }),
            Place::Array(_) => None,
        }
    }

    /// # Safety
    /// As for `check_in_stream`.
    unsafe fn ptr(&self, i: usize) -> *mut T {
        match self.place {
            Place::Strided(ptr, stride) => ptr.wrapping_offset((stride as isize).wrapping_mul(i as isize)),
            // The array of matrices without elements may be null: it was not checked.
            Place::Array(_) if self.is_empty() => std::ptr::null_mut(),
            // SAFETY: the caller's promise: the array has an element for each matrix.
            Place::Array(array) => unsafe { array.add(i).read_unaligned() },
        }
    }

    /// # Safety
    /// As for `check_in_stream`, in stream order.
    pub(crate) unsafe fn source(&self, op: Op, i: usize) -> Source<T> {
        Source {
            // SAFETY: the caller's promise.
            ptr: unsafe { self.ptr(i) }.cast_const(),
            ld: self.ld,
            op,
        }
    }

    /// # Safety
    /// As for `check_in_stream`, in stream order.
    pub(crate) unsafe fn target(&self, i: usize) -> Target<T> {
        Target {
            // SAFETY: the caller's promise.
            ptr: unsafe { self.ptr(i) },
            ld: self.ld,
        }
    }
}
