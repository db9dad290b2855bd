//! A product on shared memory asks the host's allocator for nothing: guards, checks and the call.

#[path = "common/counting.rs"]
mod counting;

use std::sync::Arc;

use counting::allocations_of;
use interop::{Bridge, Options};
use rocblas::{Handle, Matrix, Op, PointerArray};
use rocblas_sys::{rocblas_handle, rocblas_int, rocblas_operation, rocblas_status, rocblas_stride};

const GOOD: rocblas_status = rocblas_status::rocblas_status_success;

/// The platform's own bookkeeping is not this crate's: the calls under test end before they reach it.
fn quiet(api: &rocblas_sys::Api) -> rocblas_sys::Api {
    type I = rocblas_int;
    type O = rocblas_operation;
    type In = *const f32;
    unsafe extern "C" fn gemm(
        _: rocblas_handle,
        _: O,
        _: O,
        _: I,
        _: I,
        _: I,
        _: In,
        _: In,
        _: I,
        _: In,
        _: I,
        _: In,
        _: *mut f32,
        _: I,
    ) -> rocblas_status {
        GOOD
    }
    unsafe extern "C" fn strided(
        _: rocblas_handle,
        _: O,
        _: O,
        _: I,
        _: I,
        _: I,
        _: In,
        _: In,
        _: I,
        _: rocblas_stride,
        _: In,
        _: I,
        _: rocblas_stride,
        _: In,
        _: *mut f32,
        _: I,
        _: rocblas_stride,
        _: I,
    ) -> rocblas_status {
        GOOD
    }
    unsafe extern "C" fn batched(
        _: rocblas_handle,
        _: O,
        _: O,
        _: I,
        _: I,
        _: I,
        _: In,
        _: *const In,
        _: I,
        _: *const In,
        _: I,
        _: In,
        _: *const *mut f32,
        _: I,
        _: I,
    ) -> rocblas_status {
        GOOD
    }
    rocblas_sys::Api {
        rocblas_sgemm: Some(gemm),
        rocblas_sgemm_strided_batched: Some(strided),
        rocblas_sgemm_batched: Some(batched),
        ..*api
    }
}

#[test]
fn products_on_shared_memory_allocate_nothing() {
    let mut selection = platform::select_named(Some("host")).expect("the host platform");
    let api = selection.tables().rocblas.as_deref().expect("rocBLAS");
    let quiet = quiet(api);
    // SAFETY: the functions pass everything on.
    unsafe { selection.tables_mut() }.rocblas = Some(Arc::new(quiet));
    let bridge =
        Bridge::open(&selection, &Options::default()).expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
    let stream = bridge.stream().expect("a stream");
    let handle = Handle::new(&bridge.blas().expect("rocBLAS"), &stream).expect("a handle");
    let mut a = bridge.alloc::<f32>(64).expect("memory");
    a.upload(&[1.0; 64]).expect("an upload");
    let mut c = bridge.alloc::<f32>(64).expect("memory");
    let at_a = PointerArray::at_offsets([0, 16], 4, 4, 4);
    let at_b = PointerArray::at_offsets([16, 32], 4, 4, 4);
    let at_c = PointerArray::at_offsets([0, 48], 4, 4, 4);
    let none = Op::None;
    let mut round = || {
        let (x, y) = (Matrix::new(&a, 8, 8, 8), Matrix::new(&mut c, 8, 8, 8));
        handle.gemm(none, none, 1.0, x, x, 0.0, y).expect("a product");
        let x = Matrix::new(&a, 4, 4, 4).batch(16, 4);
        let y = Matrix::new(&mut c, 4, 4, 4).batch(16, 4);
        handle
            .gemm_strided_batched(none, none, 1.0, x, x, 0.0, y)
            .expect("products");
        let (x, y, z) = (at_a.of(&a), at_b.of(&a), at_c.of(&mut c));
        handle.gemm_batched(none, none, 1.0, x, y, 0.0, z).expect("products");
        let (left, mut right) = c.split_at_mut(32).expect("two parts");
        let (x, y) = (Matrix::new(&left, 4, 4, 4), Matrix::new(&mut right, 4, 4, 4));
        handle.gemm(none, none, 1.0, x, x, 0.0, y).expect("a product");
    };
    // The first rounds note who uses the memory, and send addresses.
    assert!(allocations_of(&mut round) > 0, "the counter counts");
    round();
    let count = allocations_of(|| (0..100).for_each(|_| round()));
    assert_eq!(count, 0, "in 100 rounds");
}
