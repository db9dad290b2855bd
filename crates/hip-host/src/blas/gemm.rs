//! The entry points `rocblas_{s,d,c,z}gemm`, `..._strided_batched`, `..._batched` and their `_64`
//! forms.

use num_complex::Complex;
use rocblas_sys::{
    rocblas_double_complex, rocblas_float_complex, rocblas_handle, rocblas_int, rocblas_operation, rocblas_status,
    rocblas_stride,
};

use super::aliasing::{ensure_apart, ensure_not_in_place};
use super::arguments::{
    Carried, Int, Strided, check_batch, check_range, enqueue, ensure, fail_in_stream, operation, scalar, sizes,
};
use super::handle::{self, Handle};
use super::product::{Operands, Product};
use super::scalar::Scalar;
use super::status::{Outcome, entry};
use super::view::{Op, Source, Target};

/// The part of the arguments that all forms share, as they come over the C boundary.
struct Arguments<T, I> {
    handle: rocblas_handle,
    trans: [rocblas_operation; 2],
    /// `m`, `n`, `k`, `lda`, `ldb`, `ldc`, `batch_count`
    sizes: [I; 7],
    alpha: *const T,
    beta: *const T,
}

/// A call that passed the checks and has something to compute.
struct Call<T> {
    handle: Handle,
    ops: [Op; 2],
    ld: [usize; 3],
    count: usize,
    product: Product<T>,
}

impl<T: Scalar> Call<T> {
    /// The stored shapes of `A`, `B` and `C`.
    fn shapes(&self) -> [(usize, usize); 3] {
        let Product { m, n, k, .. } = self.product;
        [self.ops[0].stored(m, k), self.ops[1].stored(k, n), (m, n)]
    }
}

/// rocBLAS' checks, in its order. `nulls` says which of `A`, `B` and `C` are null. `None` means
/// that there is nothing to do.
///
/// # Safety
/// `alpha` and `beta` are null or, in host pointer mode, readable.
unsafe fn validate<T: Scalar, I: Int>(
    name: &'static str,
    arguments: Arguments<T, I>,
    nulls: [bool; 3],
) -> Outcome<Option<Call<T>>> {
    let invalid_pointer = rocblas_status::rocblas_status_invalid_pointer;
    let handle = handle::current(arguments.handle)?;
    let ops = [operation(arguments.trans[0])?, operation(arguments.trans[1])?];
    let [m, n, k, lda, ldb, ldc, count] = sizes(arguments.sizes)?;
    let enough = lda >= ops[0].stored(m, k).0 && ldb >= ops[1].stored(k, n).0 && ldc >= m;
    ensure(enough, rocblas_status::rocblas_status_invalid_size)?;
    // k == 0 is not among the quick returns: C must still be multiplied by beta.
    if m == 0 || n == 0 || count == 0 {
        return Ok(None);
    }
    ensure(!arguments.beta.is_null(), invalid_pointer)?;
    // SAFETY: not null, and the caller's promise.
    let beta = unsafe { scalar(&handle, name, arguments.beta)? };
    let alpha = if k == 0 {
        T::ZERO
    } else {
        ensure(!arguments.alpha.is_null(), invalid_pointer)?;
        // SAFETY: as above.
        unsafe { scalar(&handle, name, arguments.alpha)? }
    };
    let product = Product { m, n, k, alpha, beta };
    if beta == T::ONE && !product.reads_operands() {
        return Ok(None);
    }
    let [null_a, null_b, null_c] = nulls;
    let missing = product.reads_operands() && (null_a || null_b);
    ensure(!null_c && !missing, invalid_pointer)?;
    Ok(Some(Call {
        handle,
        ops,
        ld: [lda, ldb, ldc],
        count,
        product,
    }))
}

/// One product, or a batch at fixed distances.
///
/// # Safety
/// The C caller's duties: `alpha` and `beta` as for [`validate`]; the matrices are not touched by
/// others until the stream has passed this call.
unsafe fn strided<T: Scalar, I: Int>(
    name: &'static str,
    arguments: Arguments<T, I>,
    a: (*const T, rocblas_stride),
    b: (*const T, rocblas_stride),
    c: (*mut T, rocblas_stride),
) -> Outcome {
    let nulls = [a.0.is_null(), b.0.is_null(), c.0.is_null()];
    // SAFETY: the caller's promise.
    let Some(call) = (unsafe { validate(name, arguments, nulls)? }) else {
        return Ok(());
    };
    let [lda, ldb, ldc] = call.ld;
    let strided = |(ptr, stride), ld| Strided { ptr, ld, stride };
    let (a, b) = (strided(a, lda), strided(b, ldb));
    let c = Strided {
        ptr: c.0,
        ld: ldc,
        stride: c.1,
    };
    let [shape_a, shape_b, shape_c] = call.shapes();
    let count = call.count;
    if call.product.reads_operands() {
        check_batch(name, "A", a, shape_a, count)?;
        check_batch(name, "B", b, shape_b, count)?;
        let result = (c.as_const(), shape_c);
        ensure_not_in_place(name, "A", (a, shape_a), result, count)?;
        ensure_not_in_place(name, "B", (b, shape_b), result, count)?;
    }
    check_batch(name, "C", c.as_const(), shape_c, count)?;
    ensure_apart(name, c, shape_c, count)?;
    let matrices = Carried((a, b, c));
    let (product, [op_a, op_b]) = (call.product, call.ops);
    enqueue(&call.handle, name, move || {
        // SAFETY: the shapes are those that were checked, inside memory that the device can reach;
        // the caller promises that nothing else touches them, and results of one batch do not
        // overlap.
        unsafe {
            product.run(count, |i| {
                let (a, b, c) = matrices.get();
                Operands {
                    a: a.source(op_a, i),
                    b: b.source(op_b, i),
                    c: c.target(i),
                }
            });
        }
    })
}

/// A batch whose matrices are named by device arrays of device pointers. The arrays are read in
/// stream order, so that is when the matrices can be checked; a bad one is an asynchronous fault of
/// the stream, as on the device.
///
/// # Safety
/// As for [`strided`], the arrays included.
unsafe fn batched<T: Scalar, I: Int>(
    name: &'static str,
    arguments: Arguments<T, I>,
    a: *const *const T,
    b: *const *const T,
    c: *const *mut T,
) -> Outcome {
    let nulls = [a.is_null(), b.is_null(), c.is_null()];
    // SAFETY: the caller's promise.
    let Some(call) = (unsafe { validate(name, arguments, nulls)? }) else {
        return Ok(());
    };
    let bytes = call.count * size_of::<*const T>();
    if call.product.reads_operands() {
        check_range(name, "A", a.cast(), bytes)?;
        check_range(name, "B", b.cast(), bytes)?;
    }
    check_range(name, "C", c.cast(), bytes)?;
    let arrays = Carried((a, b, c));
    let handle = call.handle;
    enqueue(&handle, name, move || {
        let (a, b, c) = arrays.get();
        let Call { product, count, .. } = call;
        let [lda, ldb, ldc] = call.ld;
        let [shape_a, shape_b, shape_c] = call.shapes();
        let reads = product.reads_operands();
        let check = |argument, i, ptr: *const T, shape, ld| {
            let matrix = Strided { ptr, ld, stride: 0 };
            if check_batch(name, argument, matrix, shape, 1).is_err() {
                fail_in_stream(format!("matrix {i} of the batch"));
            }
        };
        for i in 0..count {
            // SAFETY: the arrays were checked to hold `count` pointers; freeing device memory waits
            // for the stream.
            unsafe {
                if reads {
                    check("A", i, a.add(i).read_unaligned(), shape_a, lda);
                    check("B", i, b.add(i).read_unaligned(), shape_b, ldb);
                }
                check("C", i, c.add(i).read_unaligned(), shape_c, ldc);
            }
        }
        let [op_a, op_b] = call.ops;
        // SAFETY: as in `strided`; every matrix was checked just now. Without operands to read,
        // their arrays may be null and are not read.
        unsafe {
            product.run(count, |i| {
                let (a, b, c) = arrays.get();
                let input = |array: *const *const T, ld, op| Source {
                    ptr: if reads {
                        array.add(i).read_unaligned()
                    } else {
                        std::ptr::null()
                    },
                    ld,
                    op,
                };
                Operands {
                    a: input(a, lda, op_a),
                    b: input(b, ldb, op_b),
                    c: Target {
                        ptr: c.add(i).read_unaligned(),
                        ld: ldc,
                    },
                }
            });
        }
    })
}

/// The C functions for one element type (`$c` in C, `$rust` here, the same layout) and one integer
/// type.
macro_rules! entry_points {
    ($int:ty, $c:ty, $rust:ty: $gemm:ident, $strided:ident, $batched:ident) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $gemm(
            handle: rocblas_handle,
            transA: rocblas_operation,
            transB: rocblas_operation,
            m: $int,
            n: $int,
            k: $int,
            alpha: *const $c,
            A: *const $c,
            lda: $int,
            B: *const $c,
            ldb: $int,
            beta: *const $c,
            C: *mut $c,
            ldc: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                trans: [transA, transB],
                sizes: [m, n, k, lda, ldb, ldc, 1],
                alpha: alpha.cast(),
                beta: beta.cast(),
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($gemm), |name| unsafe {
                strided(name, arguments, (A.cast(), 0), (B.cast(), 0), (C.cast(), 0))
            })
        }

        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $strided(
            handle: rocblas_handle,
            transA: rocblas_operation,
            transB: rocblas_operation,
            m: $int,
            n: $int,
            k: $int,
            alpha: *const $c,
            A: *const $c,
            lda: $int,
            stride_a: rocblas_stride,
            B: *const $c,
            ldb: $int,
            stride_b: rocblas_stride,
            beta: *const $c,
            C: *mut $c,
            ldc: $int,
            stride_c: rocblas_stride,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                trans: [transA, transB],
                sizes: [m, n, k, lda, ldb, ldc, batch_count],
                alpha: alpha.cast(),
                beta: beta.cast(),
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($strided), |name| unsafe {
                strided(
                    name,
                    arguments,
                    (A.cast(), stride_a),
                    (B.cast(), stride_b),
                    (C.cast(), stride_c),
                )
            })
        }

        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $batched(
            handle: rocblas_handle,
            transA: rocblas_operation,
            transB: rocblas_operation,
            m: $int,
            n: $int,
            k: $int,
            alpha: *const $c,
            A: *const *const $c,
            lda: $int,
            B: *const *const $c,
            ldb: $int,
            beta: *const $c,
            C: *const *mut $c,
            ldc: $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                trans: [transA, transB],
                sizes: [m, n, k, lda, ldb, ldc, batch_count],
                alpha: alpha.cast(),
                beta: beta.cast(),
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($batched), |name| unsafe {
                batched(name, arguments, A.cast(), B.cast(), C.cast())
            })
        }
    };
}

entry_points!(rocblas_int, f32, f32: rocblas_sgemm, rocblas_sgemm_strided_batched, rocblas_sgemm_batched);
entry_points!(rocblas_int, f64, f64: rocblas_dgemm, rocblas_dgemm_strided_batched, rocblas_dgemm_batched);
entry_points!(rocblas_int, rocblas_float_complex, Complex<f32>:
    rocblas_cgemm, rocblas_cgemm_strided_batched, rocblas_cgemm_batched);
entry_points!(rocblas_int, rocblas_double_complex, Complex<f64>:
    rocblas_zgemm, rocblas_zgemm_strided_batched, rocblas_zgemm_batched);
entry_points!(i64, f32, f32: rocblas_sgemm_64, rocblas_sgemm_strided_batched_64, rocblas_sgemm_batched_64);
entry_points!(i64, f64, f64: rocblas_dgemm_64, rocblas_dgemm_strided_batched_64, rocblas_dgemm_batched_64);
entry_points!(i64, rocblas_float_complex, Complex<f32>:
    rocblas_cgemm_64, rocblas_cgemm_strided_batched_64, rocblas_cgemm_batched_64);
entry_points!(i64, rocblas_double_complex, Complex<f64>:
    rocblas_zgemm_64, rocblas_zgemm_strided_batched_64, rocblas_zgemm_batched_64);
