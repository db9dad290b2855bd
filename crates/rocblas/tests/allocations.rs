//! The hot path asks the host's allocator for nothing, and HIP's for nothing either.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use rocblas::{Handle, Library, Matrix, OnDevice, Op, PointerArray};
use rocblas_sys::{rocblas_handle, rocblas_int, rocblas_operation, rocblas_status, rocblas_stride};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter left, and nothing to count.
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

const GOOD: rocblas_status = rocblas_status::rocblas_status_success;

/// The platform's own bookkeeping is not this crate's: the calls under test end before they reach it.
fn quiet_platform() -> rocblas_sys::Api {
    type I = rocblas_int;
    type O = rocblas_operation;
    type In = *const f32;
    type Out = *mut f32;
    unsafe extern "C" fn axpy(_: rocblas_handle, _: I, _: In, _: In, _: I, _: Out, _: I) -> rocblas_status {
        GOOD
    }
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
        _: Out,
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
        _: Out,
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
        _: *const Out,
        _: I,
        _: I,
    ) -> rocblas_status {
        GOOD
    }
    unsafe extern "C" fn dot(_: rocblas_handle, _: I, _: In, _: I, _: In, _: I, _: Out) -> rocblas_status {
        GOOD
    }
    unsafe extern "C" fn mode(_: rocblas_handle, _: rocblas_sys::rocblas_pointer_mode) -> rocblas_status {
        GOOD
    }
    rocblas_sys::Api {
        rocblas_saxpy: Some(axpy),
        rocblas_sgemm: Some(gemm),
        rocblas_sgemm_strided_batched: Some(strided),
        rocblas_sgemm_batched: Some(batched),
        rocblas_sdot: Some(dot),
        rocblas_set_pointer_mode: Some(mode),
        ..common::rocblas_api()
    }
}

/// A device whose copies to the host and waits do nothing: those of the host platform allocate.
fn quiet_device() -> hip::Device {
    use hip_sys::{hipError_t, hipMemcpyKind, hipStream_t};
    unsafe extern "C" fn copy(
        _: *mut std::ffi::c_void,
        _: *const std::ffi::c_void,
        _: usize,
        _: hipMemcpyKind,
        _: hipStream_t,
    ) -> hipError_t {
        hipError_t::hipSuccess
    }
    unsafe extern "C" fn wait(_: hipStream_t) -> hipError_t {
        hipError_t::hipSuccess
    }
    let hip = hip_sys::Api {
        hipMemcpyAsync: Some(copy),
        hipMemcpyWithStream: Some(copy),
        hipStreamSynchronize: Some(wait),
        ..*common::tables().hip
    };
    // SAFETY: the host platform's functions, and two that do nothing on streams that get no work.
    let runtime = unsafe { hip::Runtime::from_tables(Arc::new(hip), None) }.unwrap();
    runtime.device(0).unwrap()
}

#[test]
fn calls_allocate_nothing() {
    let device = quiet_device();
    let stream = device.stream().unwrap();
    // SAFETY: the host platform's functions, and some that do nothing.
    let library = unsafe { Library::from_tables(Arc::new(quiet_platform()), None) };
    let blas = Handle::new(&library, &stream).unwrap();
    let x = device.alloc::<f32>(64).unwrap();
    let mut y = device.alloc::<f32>(64).unwrap();
    let number = device.alloc::<f32>(1).unwrap();
    let mut z = device.alloc::<f32>(64).unwrap();
    let (pointers, results) = (
        PointerArray::at_offsets([0, 16], 4, 4, 4),
        PointerArray::at_offsets([0, 16], 4, 4, 4),
    );
    let (none, on) = (Op::None, &stream);
    let mut round = || {
        let slice = x.on(on).unwrap();
        blas.axpy(1.0, slice.into(), y.on_mut(on).unwrap().into()).unwrap();
        let number = number.on(on).unwrap();
        blas.axpy(OnDevice(number), slice.into(), y.on_mut(on).unwrap().into())
            .unwrap();
        blas.dot(slice.into(), slice.into()).unwrap();
        let a = Matrix::new(slice, 8, 8, 8);
        let c = Matrix::new(y.on_mut(on).unwrap(), 8, 8, 8);
        blas.gemm(none, none, 1.0, a, a, 0.0, c).unwrap();
        let a = Matrix::new(slice, 4, 4, 4).batch(16, 4);
        let c = Matrix::new(y.on_mut(on).unwrap(), 4, 4, 4).batch(16, 4);
        blas.gemm_strided_batched(none, none, 1.0, a, a, 0.0, c).unwrap();
        let a = pointers.of(&x);
        blas.gemm_batched(none, none, 1.0, a, a, 0.0, results.of(&mut z))
            .unwrap();
    };
    // The first rounds note which streams use the memory.
    assert!(allocations_of(&mut round) > 0, "the counter counts");
    round();
    let count = allocations_of(|| (0..100).for_each(|_| round()));
    assert_eq!(count, 0, "in 100 rounds");
}
