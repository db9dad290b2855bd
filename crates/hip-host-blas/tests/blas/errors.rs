//! Which status a wrong call returns: rocBLAS' order of checks, and the model's own.

use std::ptr::{null, null_mut};

use num_complex::Complex;
use rocblas_sys::{
    rocblas_fill, rocblas_float_complex, rocblas_handle, rocblas_operation, rocblas_pointer_mode, rocblas_status,
};

use crate::device::{Buffer, Handle, SUCCESS, Stream, slot};

const NONE: rocblas_operation = rocblas_operation::rocblas_operation_none;
const CONJ: rocblas_operation = rocblas_operation::rocblas_operation_conjugate_transpose;
const TRANS: rocblas_operation = rocblas_operation::rocblas_operation_transpose;
const NO_OPERATION: rocblas_operation = rocblas_operation(7);
const NO_FILL: rocblas_fill = rocblas_fill(7);

const INVALID_HANDLE: rocblas_status = rocblas_status::rocblas_status_invalid_handle;
const INVALID_VALUE: rocblas_status = rocblas_status::rocblas_status_invalid_value;
const INVALID_SIZE: rocblas_status = rocblas_status::rocblas_status_invalid_size;
const INVALID_POINTER: rocblas_status = rocblas_status::rocblas_status_invalid_pointer;

const ZERO: rocblas_float_complex = rocblas_float_complex { x: 0.0, y: 0.0 };
const ONE: rocblas_float_complex = rocblas_float_complex { x: 1.0, y: 0.0 };

/// A call of cgemm_strided_batched in which each argument can be spoiled.
struct Gemm {
    handle: rocblas_handle,
    trans: [rocblas_operation; 2],
    m: i32,
    n: i32,
    k: i32,
    alpha: *const rocblas_float_complex,
    a: *const rocblas_float_complex,
    lda: i32,
    stride_a: i64,
    b: *const rocblas_float_complex,
    ldb: i32,
    beta: *const rocblas_float_complex,
    c: *mut rocblas_float_complex,
    ldc: i32,
    stride_c: i64,
    count: i32,
}

struct Bench {
    handle: Handle,
    a: Buffer<Complex<f32>>,
    b: Buffer<Complex<f32>>,
    c: Buffer<Complex<f32>>,
}

/// A is 4 x 3, B is 3 x 2, C is 4 x 2, two of each, and nothing more.
impl Bench {
    fn new() -> Self {
        let zeros = |len| Buffer::new(&vec![Complex::new(0.0f32, 0.0); len]);
        Self {
            handle: Handle::new(),
            a: zeros(24),
            b: zeros(12),
            c: zeros(16),
        }
    }

    fn good(&self) -> Gemm {
        Gemm {
            handle: self.handle.0,
            trans: [NONE, NONE],
            m: 4,
            n: 2,
            k: 3,
            alpha: &ONE,
            a: self.a.ptr().cast(),
            lda: 4,
            stride_a: 12,
            b: self.b.ptr().cast(),
            ldb: 3,
            beta: &ZERO,
            c: self.c.ptr().cast(),
            ldc: 4,
            stride_c: 8,
            count: 2,
        }
    }

    fn with(&self, spoil: impl FnOnce(&mut Gemm)) -> rocblas_status {
        let mut call = self.good();
        spoil(&mut call);
        let gemm = slot!(hip_host_blas::rocblas_api(), rocblas_cgemm_strided_batched);
        // SAFETY: whatever is wrong with the arguments must be found before it is used.
        unsafe {
            gemm(
                call.handle,
                call.trans[0],
                call.trans[1],
                call.m,
                call.n,
                call.k,
                call.alpha,
                call.a,
                call.lda,
                call.stride_a,
                call.b,
                call.ldb,
                6,
                call.beta,
                call.c,
                call.ldc,
                call.stride_c,
                call.count,
            )
        }
    }
}

#[test]
fn gemm_checks_in_rocblas_order() {
    let bench = Bench::new();
    assert_eq!(bench.with(|_| {}), SUCCESS);
    // Each line is wrong in its own way and in all ways that are checked later: the first one must
    // win.
    let all_null = |call: &mut Gemm| {
        call.alpha = null();
        call.beta = null();
        call.a = null();
        call.b = null();
        call.c = null_mut();
    };
    let status = bench.with(|call| {
        call.handle = null_mut();
        call.trans = [NO_OPERATION; 2];
        call.m = -1;
        all_null(call);
    });
    assert_eq!(status, INVALID_HANDLE);
    for trans in [[NO_OPERATION, NONE], [NONE, NO_OPERATION]] {
        let status = bench.with(|call| {
            call.trans = trans;
            call.m = -1;
            all_null(call);
        });
        assert_eq!(status, INVALID_VALUE);
    }
    let sizes: [fn(&mut Gemm); 8] = [
        |call| call.m = -1,
        |call| call.n = -1,
        |call| call.k = -1,
        |call| call.count = -1,
        |call| call.lda = 3,
        |call| call.ldb = 2,
        |call| call.ldc = 3,
        |call| call.trans = [CONJ, TRANS],
    ];
    for (i, spoil) in sizes.into_iter().enumerate() {
        let status = bench.with(|call| {
            if i == 7 {
                // Transposed, A must hold k = 3 rows and B n = 2: one short.
                (call.lda, call.ldb) = (2, 2);
            }
            spoil(call);
            all_null(call);
        });
        assert_eq!(status, INVALID_SIZE, "size {i}");
    }
    // An invalid size is found even where another size makes the call empty.
    assert_eq!(bench.with(|call| (call.m, call.ldb) = (0, 1)), INVALID_SIZE);
    let pointers: [fn(&mut Gemm); 5] = [
        |call| call.alpha = null(),
        |call| call.beta = null(),
        |call| call.a = null(),
        |call| call.b = null(),
        |call| call.c = null_mut(),
    ];
    for (i, spoil) in pointers.into_iter().enumerate() {
        assert_eq!(bench.with(spoil), INVALID_POINTER, "pointer {i}");
    }
}

#[test]
fn gemm_with_nothing_to_compute_needs_no_pointers() {
    let bench = Bench::new();
    let empty: [fn(&mut Gemm); 3] = [|call| call.m = 0, |call| call.n = 0, |call| call.count = 0];
    for spoil in empty {
        let status = bench.with(|call| {
            spoil(call);
            (call.alpha, call.beta) = (null(), null());
            (call.a, call.b, call.c) = (null(), null(), null_mut());
        });
        assert_eq!(status, SUCCESS);
    }
    // beta == 1 and no product: C stays, and is not even looked at.
    for alpha_is_zero in [true, false] {
        let status = bench.with(|call| {
            if alpha_is_zero {
                call.alpha = &ZERO;
            } else {
                (call.k, call.alpha) = (0, null());
            }
            call.beta = &ONE;
            (call.a, call.b, call.c) = (null(), null(), null_mut());
        });
        assert_eq!(status, SUCCESS);
    }
    // alpha == 0 or k == 0 with another beta: C is needed, A and B are not.
    let status = bench.with(|call| {
        call.alpha = &ZERO;
        (call.a, call.b) = (null(), null());
    });
    assert_eq!(status, SUCCESS);
    let status = bench.with(|call| {
        call.alpha = &ZERO;
        call.c = null_mut();
    });
    assert_eq!(status, INVALID_POINTER);
    let status = bench.with(|call| {
        (call.k, call.alpha) = (0, null());
        (call.a, call.b) = (null(), null());
    });
    assert_eq!(status, SUCCESS);
}

#[test]
fn memory_that_the_device_cannot_reach_is_refused() {
    let bench = Bench::new();
    let mut local = [ZERO; 64];
    let on_host = local.as_mut_ptr();
    assert_eq!(bench.with(|call| call.a = on_host), INVALID_POINTER);
    assert_eq!(bench.with(|call| call.b = on_host), INVALID_POINTER);
    assert_eq!(bench.with(|call| call.c = on_host), INVALID_POINTER);
    // Where nothing of it is read, it may be anything.
    let status = bench.with(|call| {
        call.alpha = &ZERO;
        call.a = on_host;
    });
    assert_eq!(status, SUCCESS);
}

#[test]
fn one_element_past_an_allocation_is_refused() {
    let bench = Bench::new();
    let past = |ptr: *const rocblas_float_complex| ptr.wrapping_add(1);
    assert_eq!(bench.with(|call| call.a = past(call.a)), INVALID_POINTER);
    assert_eq!(bench.with(|call| call.b = past(call.b)), INVALID_POINTER);
    assert_eq!(bench.with(|call| call.c = past(call.c).cast_mut()), INVALID_POINTER);
    assert_eq!(bench.with(|call| call.count = 3), INVALID_POINTER);
    assert_eq!(bench.with(|call| call.stride_a = 13), INVALID_POINTER);
    // A negative stride runs towards lower addresses.
    assert_eq!(bench.with(|call| call.stride_a = -12), INVALID_POINTER);
    let status = bench.with(|call| {
        call.stride_a = -12;
        call.a = call.a.wrapping_add(12);
    });
    assert_eq!(status, SUCCESS);
    let status = bench.with(|call| call.stride_c = i64::MAX);
    assert_eq!(status, INVALID_POINTER);
}

#[test]
fn results_of_a_batch_must_not_overlap() {
    let bench = Bench::new();
    assert_eq!(bench.with(|call| call.stride_c = 0), INVALID_SIZE);
    assert_eq!(bench.with(|call| call.stride_c = 7), INVALID_SIZE);
    // Two matrices of two rows each, interleaved in the columns of one matrix of four rows.
    let status = bench.with(|call| {
        (call.m, call.ldc, call.stride_c) = (2, 4, 2);
    });
    assert_eq!(status, SUCCESS);
}

#[test]
fn a_result_in_the_place_of_an_operand_is_refused() {
    let bench = Bench::new();
    let c = bench.c.ptr().cast_const().cast();
    let as_operand = |call: &mut Gemm| (call.count, call.b) = (1, c);
    assert_eq!(bench.with(as_operand), INVALID_POINTER);
    // One column of A, or one row, in the result.
    for (m, k, at) in [(4, 1, 4), (1, 2, 3)] {
        let status = bench.with(|call| {
            (call.count, call.m, call.k) = (1, m, k);
            call.a = call.c.wrapping_add(at).cast_const();
            call.c = call.c.wrapping_add(if m == 1 { 7 } else { 0 });
        });
        assert_eq!(status, INVALID_POINTER, "A at {at}");
    }
    // The first two rows times a 2 x 2 give the other two rows of the same matrix.
    let status = bench.with(|call| {
        (call.count, call.m, call.k) = (1, 2, 2);
        call.a = call.c.wrapping_add(2).cast_const();
    });
    assert_eq!(status, SUCCESS);
}

#[test]
fn herk_checks_in_rocblas_order() {
    let handle = Handle::new();
    let zeros = |len| Buffer::new(&vec![Complex::new(0.0f32, 0.0); len]);
    // A is 4 x 3, C is 4 x 4.
    let (a, c) = (zeros(12), zeros(16));
    let lower = rocblas_fill::rocblas_fill_lower;
    let call = |handle, uplo, trans, [n, k, lda, ldc]: [i32; 4], alpha, a: Option<_>, beta, c: Option<_>| {
        let herk = slot!(hip_host_blas::rocblas_api(), rocblas_cherk);
        let (a, c): (*mut Complex<f32>, *mut Complex<f32>) = (a.unwrap_or(null_mut()), c.unwrap_or(null_mut()));
        // SAFETY: whatever is wrong with the arguments must be found before it is used.
        unsafe { herk(handle, uplo, trans, n, k, alpha, a.cast(), lda, beta, c.cast(), ldc) }
    };
    let good = [4, 3, 4, 4];
    let (h, one, none) = (handle.0, &1.0f32 as *const f32, null::<f32>());
    let (a, c) = (Some(a.ptr()), Some(c.ptr()));
    assert_eq!(call(h, lower, NONE, good, one, a, one, c), SUCCESS);
    assert_eq!(
        call(null_mut(), NO_FILL, NO_OPERATION, [-1; 4], none, None, none, None),
        INVALID_HANDLE
    );
    assert_eq!(call(h, NO_FILL, NONE, [-1; 4], none, None, none, None), INVALID_VALUE);
    assert_eq!(
        call(h, rocblas_fill::rocblas_fill_full, NONE, good, one, a, one, c),
        INVALID_VALUE
    );
    assert_eq!(
        call(h, lower, NO_OPERATION, [-1; 4], none, None, none, None),
        INVALID_VALUE
    );
    // A A^T of a complex matrix is not hermitian.
    assert_eq!(call(h, lower, TRANS, [-1; 4], none, None, none, None), INVALID_VALUE);
    for sizes in [[-1, 3, 4, 4], [4, -1, 4, 4], [4, 3, 3, 4], [4, 3, 4, 3]] {
        assert_eq!(call(h, lower, NONE, sizes, none, None, none, None), INVALID_SIZE);
    }
    assert_eq!(call(h, lower, CONJ, [4, 3, 2, 4], none, None, none, None), INVALID_SIZE);
    assert_eq!(call(h, lower, NONE, [0, 3, 0, 0], none, None, none, None), SUCCESS);
    assert_eq!(call(h, lower, NONE, good, none, a, one, c), INVALID_POINTER);
    assert_eq!(call(h, lower, NONE, good, one, a, none, c), INVALID_POINTER);
    assert_eq!(call(h, lower, NONE, good, one, None, one, c), INVALID_POINTER);
    assert_eq!(call(h, lower, NONE, good, one, a, one, None), INVALID_POINTER);
    assert_eq!(call(h, lower, NONE, [4, 0, 4, 4], none, None, one, None), SUCCESS);
    // One row too many for either buffer.
    assert_eq!(call(h, lower, NONE, [5, 2, 5, 5], one, a, one, c), INVALID_POINTER);
    assert_eq!(call(h, lower, NONE, [4, 4, 4, 4], one, a, one, c), INVALID_POINTER);
}

#[test]
fn in_device_pointer_mode_the_factors_come_from_device_memory() {
    let bench = Bench::new();
    // SAFETY: a live handle.
    let status = unsafe {
        slot!(hip_host_blas::rocblas_api(), rocblas_set_pointer_mode)(
            bench.handle.0,
            rocblas_pointer_mode::rocblas_pointer_mode_device,
        )
    };
    assert_eq!(status, SUCCESS);
    assert_eq!(bench.with(|_| {}), INVALID_POINTER);
    let factors = Buffer::new(&[Complex::new(2.0f32, 0.0), Complex::new(0.0, 0.0)]);
    let ones = Buffer::new(&[Complex::new(1.0f32, 0.0); 24]);
    let status = bench.with(|call| {
        call.alpha = factors.ptr().cast();
        call.beta = factors.ptr().wrapping_add(1).cast();
        (call.a, call.b) = (ones.ptr().cast(), ones.ptr().cast());
    });
    assert_eq!(status, SUCCESS);
    assert_eq!(bench.c.read(), [Complex::new(6.0, 0.0); 16]);
}

#[test]
fn a_bad_pointer_in_a_device_array_fails_the_stream_and_not_the_process() {
    let bench = Bench::new();
    let stream = Stream::new();
    let mut local = [Complex::new(0.0f32, 0.0); 16];
    let pointers = |ptr: *mut Complex<f32>, second: *mut Complex<f32>| Buffer::new(&[ptr, second]);
    let a = pointers(bench.a.ptr(), bench.a.ptr());
    let b = pointers(bench.b.ptr(), bench.b.ptr());
    let good = pointers(bench.c.ptr(), bench.c.ptr().wrapping_add(8));
    let bad = pointers(bench.c.ptr(), local.as_mut_ptr());
    let api = hip_host_blas::rocblas_api();
    let call = |c: &Buffer<*mut Complex<f32>>| {
        // SAFETY: the arrays hold two pointers each; the bad one must be found before it is used.
        unsafe {
            slot!(api, rocblas_cgemm_batched)(
                bench.handle.0,
                NONE,
                NONE,
                4,
                2,
                3,
                &ONE,
                a.ptr().cast_const().cast(),
                4,
                b.ptr().cast_const().cast(),
                3,
                &ZERO,
                c.ptr().cast_const().cast(),
                4,
                2,
            )
        }
    };
    // SAFETY: live objects.
    let status = unsafe { slot!(api, rocblas_set_stream)(bench.handle.0, stream.0) };
    assert_eq!(status, SUCCESS);
    assert_eq!(call(&good), SUCCESS);
    assert_eq!(stream.synchronize(), hip_sys::hipError_t::hipSuccess);
    assert_eq!(call(&bad), SUCCESS);
    assert_ne!(stream.synchronize(), hip_sys::hipError_t::hipSuccess);
    assert_eq!(local, [Complex::new(0.0, 0.0); 16]);
    // The arrays themselves are checked at the call.
    let on_host = local.as_ptr().cast::<*mut Complex<f32>>();
    // SAFETY: as above.
    let status = unsafe {
        slot!(api, rocblas_cgemm_batched)(
            bench.handle.0,
            NONE,
            NONE,
            4,
            2,
            3,
            &ONE,
            on_host.cast(),
            4,
            on_host.cast(),
            3,
            &ZERO,
            on_host.cast(),
            4,
            2,
        )
    };
    assert_eq!(status, INVALID_POINTER);
}
