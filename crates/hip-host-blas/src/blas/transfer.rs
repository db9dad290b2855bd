//! `rocblas_{set,get}_{vector,matrix}`, also `..._async`, each also `_64`: copies between the host and the device.
//!
//! Checks in the order of rocBLAS' `library/src/rocblas_auxiliary.cpp`, which leaves the rest to HIP. There a HIP error
//! is printed and the call succeeds; here it is the call's status too, since a copy that did not happen must not
//! read as one that did.

use std::ffi::c_void;

use hip_sys::{hipMemcpyKind, hipStream_t};
use rocblas_sys::{rocblas_int, rocblas_status};

use super::arguments::ensure;
use super::status::{Outcome, entry, from_hip};

const HIP: hip_sys::Api = hip_host::hip_api();

/// Columns of bytes on both sides.
struct Columns {
    /// Bytes of a column, and how many columns.
    shape: (i64, i64),
    /// Bytes from one column to the next.
    pitches: (i64, i64),
}

/// A call's request: elements of `size` bytes. A vector is a matrix of one row.
struct Call {
    rows: i64,
    cols: i64,
    size: i64,
    from: (*const c_void, i64),
    to: (*mut c_void, i64),
    kind: hipMemcpyKind,
}

impl Call {
    /// rocBLAS' checks; `None` for a quick return.
    fn columns(&self) -> Outcome<Option<Columns>> {
        if self.rows == 0 || self.cols == 0 {
            return Ok(None);
        }
        let (from, to) = (self.from.1, self.to.1);
        let positive = self.rows > 0 && self.cols > 0 && from > 0 && to > 0 && self.size > 0;
        ensure(
            positive && self.rows <= from && self.rows <= to,
            rocblas_status::rocblas_status_invalid_size,
        )?;
        ensure(
            !self.from.0.is_null() && !self.to.0.is_null(),
            rocblas_status::rocblas_status_invalid_pointer,
        )?;
        let bytes = |elements: i64| {
            elements
                .checked_mul(self.size)
                .ok_or(rocblas_status::rocblas_status_invalid_size)
        };
        Ok(Some(Columns {
            shape: (bytes(self.rows)?, self.cols),
            pitches: (bytes(from)?, bytes(to)?),
        }))
    }

    /// # Safety
    /// As for `hipMemcpy2D`.
    unsafe fn wait(&self) -> Outcome {
        let Some(Columns { shape, pitches }) = self.columns()? else {
            return Ok(());
        };
        // SAFETY: the caller's promise. All numbers are positive.
        from_hip(unsafe {
            (HIP.hipMemcpy2D.expect("built"))(
                self.to.0,
                pitches.1 as usize,
                self.from.0,
                pitches.0 as usize,
                shape.0 as usize,
                shape.1 as usize,
                self.kind,
            )
        })
    }

    /// # Safety
    /// As for `hipMemcpy2DAsync`.
    unsafe fn queue(&self, stream: hipStream_t) -> Outcome {
        let Some(Columns { shape, pitches }) = self.columns()? else {
            return Ok(());
        };
        // SAFETY: the caller's promise. All numbers are positive.
        from_hip(unsafe {
            (HIP.hipMemcpy2DAsync.expect("built"))(
                self.to.0,
                pitches.1 as usize,
                self.from.0,
                pitches.0 as usize,
                shape.0 as usize,
                shape.1 as usize,
                self.kind,
                stream,
            )
        })
    }
}

macro_rules! transfers {
    ($($int:ty, $kind:ident: $vector:ident $vector_async:ident $matrix:ident $matrix_async:ident;)*) => {$(
        pub(super) unsafe extern "C" fn $vector(
            n: $int, elem_size: $int, x: *const c_void, incx: $int, y: *mut c_void, incy: $int,
        ) -> rocblas_status {
            let call = vector(n.into(), elem_size.into(), (x, incx.into()), (y, incy.into()), hipMemcpyKind::$kind);
            // SAFETY: the C caller's duty.
            entry(stringify!($vector), |_| unsafe { call.wait() })
        }

        pub(super) unsafe extern "C" fn $vector_async(
            n: $int, elem_size: $int, x: *const c_void, incx: $int, y: *mut c_void, incy: $int, stream: hipStream_t,
        ) -> rocblas_status {
            let call = vector(n.into(), elem_size.into(), (x, incx.into()), (y, incy.into()), hipMemcpyKind::$kind);
            // SAFETY: the C caller's duty.
            entry(stringify!($vector_async), |_| unsafe { call.queue(stream) })
        }

        pub(super) unsafe extern "C" fn $matrix(
            rows: $int, cols: $int, elem_size: $int, a: *const c_void, lda: $int, b: *mut c_void, ldb: $int,
        ) -> rocblas_status {
            let call = Call {
                rows: rows.into(), cols: cols.into(), size: elem_size.into(),
                from: (a, lda.into()), to: (b, ldb.into()), kind: hipMemcpyKind::$kind,
            };
            // SAFETY: the C caller's duty.
            entry(stringify!($matrix), |_| unsafe { call.wait() })
        }

        #[allow(clippy::too_many_arguments, reason = "the C signature")]
        pub(super) unsafe extern "C" fn $matrix_async(
            rows: $int, cols: $int, elem_size: $int, a: *const c_void, lda: $int, b: *mut c_void, ldb: $int,
            stream: hipStream_t,
        ) -> rocblas_status {
            let call = Call {
                rows: rows.into(), cols: cols.into(), size: elem_size.into(),
                from: (a, lda.into()), to: (b, ldb.into()), kind: hipMemcpyKind::$kind,
            };
            // SAFETY: the C caller's duty.
            entry(stringify!($matrix_async), |_| unsafe { call.queue(stream) })
        }
    )*};
}

/// A vector's elements are the columns of a matrix of one row, its increments the leading dimensions.
fn vector(n: i64, size: i64, from: (*const c_void, i64), to: (*mut c_void, i64), kind: hipMemcpyKind) -> Call {
    Call {
        rows: 1,
        cols: n,
        size,
        from,
        to,
        kind,
    }
}

transfers! {
    rocblas_int, hipMemcpyHostToDevice:
        rocblas_set_vector rocblas_set_vector_async rocblas_set_matrix rocblas_set_matrix_async;
    i64, hipMemcpyHostToDevice:
        rocblas_set_vector_64 rocblas_set_vector_async_64 rocblas_set_matrix_64 rocblas_set_matrix_async_64;
    rocblas_int, hipMemcpyDeviceToHost:
        rocblas_get_vector rocblas_get_vector_async rocblas_get_matrix rocblas_get_matrix_async;
    i64, hipMemcpyDeviceToHost:
        rocblas_get_vector_64 rocblas_get_vector_async_64 rocblas_get_matrix_64 rocblas_get_matrix_async_64;
}
