//! rocBLAS before 4.1 (ROCm 6.1) copies to the host on the null stream, which does not wait for the streams of `hip`:
//! results and factors are those of the handle's stream all the same.

mod common;

use std::ffi::c_void;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hip::{Device, Stream};
use hip_sys::{hipError_t, hipMemcpyKind, hipStream_t};
use rocblas::{Error, Fill, Handle, Library, Matrix, OnDevice, Op, PointerArray, solver};
use rocblas_sys::{rocblas_handle, rocblas_int, rocblas_operation, rocblas_pointer_mode, rocblas_status};

const HOST: rocblas_pointer_mode = rocblas_pointer_mode::rocblas_pointer_mode_host;
const DEVICE: rocblas_pointer_mode = rocblas_pointer_mode::rocblas_pointer_mode_device;

/// What opens the gate that holds the stream, once the program waits for the stream.
static OPENER: Mutex<Option<Sender<()>>> = Mutex::new(None);

fn opener() -> MutexGuard<'static, Option<Sender<()>>> {
    OPENER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pointer_mode(handle: rocblas_handle) -> rocblas_pointer_mode {
    let mut mode = HOST;
    // SAFETY: a live handle, and a place for the mode.
    let status = unsafe { common::rocblas_api().rocblas_get_pointer_mode.unwrap()(handle, &mut mode) };
    assert_eq!(status, rocblas_status::rocblas_status_success);
    mode
}

/// Calls in another pointer mode than the handle's.
fn in_mode(
    handle: rocblas_handle,
    mode: rocblas_pointer_mode,
    call: impl FnOnce() -> rocblas_status,
) -> rocblas_status {
    let (set, before) = (
        common::rocblas_api().rocblas_set_pointer_mode.unwrap(),
        pointer_mode(handle),
    );
    // SAFETY: a live handle and modes of the library.
    unsafe {
        assert_eq!(set(handle, mode), rocblas_status::rocblas_status_success);
        let status = call();
        assert_eq!(set(handle, before), rocblas_status::rocblas_status_success);
        status
    }
}

/// A plain copy to the host, on the null stream.
fn fetch<T: Default>(from: *const T) -> T {
    let mut value = T::default();
    let copy = common::tables().hip.hipMemcpy.unwrap();
    let to = (&raw mut value).cast::<c_void>();
    // SAFETY: one value at either place.
    let code = unsafe { copy(to, from.cast(), size_of::<T>(), hipMemcpyKind::hipMemcpyDeviceToHost) };
    assert_eq!(code, hipError_t::hipSuccess);
    value
}

/// The end of `rocblas_internal_dot_template` for a result on the host, as it was.
unsafe extern "C" fn dot(
    handle: rocblas_handle,
    n: rocblas_int,
    x: *const f32,
    incx: rocblas_int,
    y: *const f32,
    incy: rocblas_int,
    result: *mut f32,
) -> rocblas_status {
    let real = common::rocblas_api().rocblas_sdot.unwrap();
    if pointer_mode(handle) == DEVICE {
        // SAFETY: the caller's arguments.
        return unsafe { real(handle, n, x, incx, y, incy, result) };
    }
    let hip = &common::tables().hip;
    let mut workspace = std::ptr::null_mut();
    // SAFETY: a place for an address, and memory for one number, which stays.
    unsafe {
        assert_eq!(hip.hipMalloc.unwrap()(&mut workspace, 4), hipError_t::hipSuccess);
        assert_eq!(hip.hipMemset.unwrap()(workspace, 0, 4), hipError_t::hipSuccess);
    }
    let workspace = workspace.cast::<f32>();
    // SAFETY: the caller's arguments, and device memory for the result.
    let status = in_mode(handle, DEVICE, || unsafe {
        real(handle, n, x, incx, y, incy, workspace)
    });
    // SAFETY: the caller's place for the result.
    unsafe { result.write(fetch(workspace)) };
    status
}

/// A product whose factors Tensile wants on the host, as it was.
unsafe extern "C" fn gemm(
    handle: rocblas_handle,
    trans_a: rocblas_operation,
    trans_b: rocblas_operation,
    m: rocblas_int,
    n: rocblas_int,
    k: rocblas_int,
    alpha: *const f32,
    a: *const f32,
    lda: rocblas_int,
    b: *const f32,
    ldb: rocblas_int,
    beta: *const f32,
    c: *mut f32,
    ldc: rocblas_int,
) -> rocblas_status {
    let real = common::rocblas_api().rocblas_sgemm.unwrap();
    let (alpha, beta) = match pointer_mode(handle) {
        DEVICE => (fetch(alpha), fetch(beta)),
        // SAFETY: numbers of the host.
        _ => unsafe { (alpha.read(), beta.read()) },
    };
    // SAFETY: the caller's arguments.
    in_mode(handle, HOST, || unsafe {
        real(handle, trans_a, trans_b, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc)
    })
}

unsafe extern "C" fn synchronize(stream: hipStream_t) -> hipError_t {
    drop(opener().take());
    // SAFETY: the caller's argument.
    unsafe { common::tables().hip.hipStreamSynchronize.unwrap()(stream) }
}

unsafe extern "C" fn copy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> hipError_t {
    // A copy to the host may itself wait for the stream.
    drop(opener().take());
    // SAFETY: the caller's arguments.
    unsafe { common::tables().hip.hipMemcpyWithStream.unwrap()(to, from, bytes, kind, stream) }
}

/// A handle of the older library, on a device whose waits open the gate.
fn older() -> (Handle, Stream, Device) {
    let hip = hip_sys::Api {
        hipStreamSynchronize: Some(synchronize),
        hipMemcpyWithStream: Some(copy),
        ..*common::tables().hip
    };
    // SAFETY: one platform's functions, some of them wrapped.
    let runtime = unsafe { hip::Runtime::from_tables(Arc::new(hip), None) }.unwrap();
    let device = runtime.device(0).unwrap();
    let stream = device.stream().unwrap();
    let api = rocblas_sys::Api {
        rocblas_sdot: Some(dot),
        rocblas_sdot_64: None,
        rocblas_sgemm: Some(gemm),
        ..common::rocblas_api()
    };
    // SAFETY: as above.
    let library = unsafe { Library::from_tables(Arc::new(api), common::tables().rocsolver.clone()) };
    (Handle::new(&library, &stream).unwrap(), stream, device)
}

/// Holds the stream until `open` is dropped.
fn close(stream: &Stream) -> Sender<()> {
    let (open, gate): (Sender<()>, Receiver<()>) = channel();
    stream
        .host_function(move || {
            let _ = gate.recv();
        })
        .unwrap();
    open
}

/// The opener is the process's.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn a_result_for_the_host_is_that_of_the_work_before_it() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (blas, stream, device) = older();
    let ones = device.alloc_from(&stream, &[1.0_f32; 100]).unwrap();
    let mut x = device.alloc_zeroed::<f32>(100).unwrap();
    let open = close(&stream);
    x.on_mut(&stream).unwrap().copy_from(ones.on(&stream).unwrap()).unwrap();
    *opener() = Some(open);
    let x = x.on(&stream).unwrap();
    let sum = blas.dot(x.into(), x.into());
    drop(opener().take());
    assert_eq!(sum.unwrap(), 100.0);
}

#[test]
fn a_factor_on_the_device_is_that_of_the_work_before_it() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (blas, stream, device) = older();
    let numbers = device.alloc_from(&stream, &[2.0_f32, 10.0]).unwrap();
    let mut factors = device.alloc_zeroed::<f32>(2).unwrap();
    let a = device.alloc_from(&stream, &[3.0_f32]).unwrap();
    let mut c = device.alloc_from(&stream, &[1.0_f32]).unwrap();
    let open = close(&stream);
    let written = factors.on_mut(&stream).unwrap().copy_from(numbers.on(&stream).unwrap());
    written.unwrap();
    *opener() = Some(open);
    let factor = |index: usize| OnDevice(factors.on(&stream).unwrap().slice(index..=index).unwrap());
    let a = Matrix::new(&a, 1, 1, 1);
    let to = Matrix::new(&mut c, 1, 1, 1);
    let product = blas.gemm(Op::None, Op::None, factor(0), a, a, factor(1), to);
    drop(opener().take());
    product.unwrap();
    let mut seen = [0.0];
    c.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [28.0]);
}

#[test]
fn a_product_with_a_factor_on_the_device_is_not_captured() {
    let common::Setup { blas, stream, device } = common::setup();
    let factors = device.alloc_from(&stream, &[2.0_f32, 10.0]).unwrap();
    let a = device.alloc_from(&stream, &[3.0_f32]).unwrap();
    let mut c = device.alloc_from(&stream, &[1.0_f32]).unwrap();
    let graph = blas.capture(|blas| {
        let factor = |index: usize| factors.on(&stream)?.slice(index..=index).map(OnDevice);
        let from = Matrix::new(&a, 1, 1, 1);
        let to = Matrix::new(&mut c, 1, 1, 1);
        let error = blas
            .gemm(Op::None, Op::None, factor(0)?, from, from, factor(1)?, to)
            .unwrap_err();
        assert!(matches!(error, Error::Captured { .. }), "{error}");
        Ok(())
    });
    assert_eq!(graph.unwrap().node_count().unwrap(), 0);
}

#[test]
fn triangles_of_a_batch_by_pointers_are_not_inverted_out_of_order() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !common::has_solver() {
        return;
    }
    let (blas, stream, device) = older();
    let mut a = device.alloc_from(&stream, &[4.0_f32, 9.0]).unwrap();
    let offsets = PointerArray::at_offsets([0, 1], 1, 1, 1);
    let matrices = offsets.of(&mut a);
    let factors = solver::potrf(&blas, Fill::Lower, matrices).unwrap();
    let error = solver::potri(&blas, factors).map(drop).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let matrices = offsets.of(&mut a);
    let factors = solver::getrf(&blas, matrices).unwrap();
    let error = solver::getri(&blas, factors).map(drop).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}
