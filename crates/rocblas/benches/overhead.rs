//! What the safe layer costs: each call against the same C call, in nanoseconds, on functions that do nothing, so that
//! nothing else is measured. The aim is at most 50 ns.
//!
//! `cargo bench -p hipcl-rocblas --bench overhead`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use hip_sys::hipError_t;
use rocblas::{Handle, Library, Matrix, OnDevice, Op};
use rocblas_sys::{rocblas_handle, rocblas_int, rocblas_operation, rocblas_pointer_mode, rocblas_status};

const GOOD: rocblas_status = rocblas_status::rocblas_status_success;

unsafe extern "C" fn axpy(
    _: rocblas_handle,
    n: rocblas_int,
    _: *const f32,
    x: *const f32,
    _: rocblas_int,
    y: *mut f32,
    _: rocblas_int,
) -> rocblas_status {
    black_box((n, x, y));
    GOOD
}

unsafe extern "C" fn gemm(
    _: rocblas_handle,
    _: rocblas_operation,
    _: rocblas_operation,
    m: rocblas_int,
    n: rocblas_int,
    k: rocblas_int,
    _: *const f32,
    a: *const f32,
    _: rocblas_int,
    b: *const f32,
    _: rocblas_int,
    _: *const f32,
    c: *mut f32,
    _: rocblas_int,
) -> rocblas_status {
    black_box((m, n, k, a, b, c));
    GOOD
}

unsafe extern "C" fn mode(_: rocblas_handle, mode: rocblas_pointer_mode) -> rocblas_status {
    black_box(mode);
    GOOD
}

unsafe extern "C" fn get_device(device: *mut i32) -> hipError_t {
    // SAFETY: an int's address by the C caller's promise.
    unsafe { device.write(0) };
    hipError_t::hipSuccess
}

/// Few enough to end before another program gets its turn on the core, so that a busy machine does not add to the best
/// mean.
const ROUNDS: u32 = 2_000;

/// The best of many means, in nanoseconds.
fn measure(mut work: impl FnMut()) -> f64 {
    (0..3_000)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..ROUNDS {
                work();
            }
            begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let hip = hip_sys::Api {
        hipGetDevice: Some(get_device),
        ..hip_host::hip_api()
    };
    let api = rocblas_sys::Api {
        rocblas_saxpy: Some(axpy),
        rocblas_sgemm: Some(gemm),
        rocblas_set_pointer_mode: Some(mode),
        ..hip_host_blas::rocblas_api()
    };
    // SAFETY: the host platform's functions; those replaced do nothing.
    let (runtime, library) = unsafe {
        (
            hip::Runtime::from_tables(Arc::new(hip), None).unwrap(),
            Library::from_tables(Arc::new(api), None),
        )
    };
    let device = runtime.device(0).unwrap();
    let stream = device.stream().unwrap();
    let blas = Handle::new(&library, &stream).unwrap();
    let x = device.alloc::<f32>(64).unwrap();
    let mut y = device.alloc::<f32>(64).unwrap();
    let number = device.alloc::<f32>(1).unwrap();
    let (raw, raw_axpy, raw_gemm) = (blas.raw(), library.api().rocblas_saxpy, library.api().rocblas_sgemm);
    let (x_address, y_address) = (x.on(&stream).unwrap().as_ptr(), y.on_mut(&stream).unwrap().as_mut_ptr());
    let none = rocblas_operation::rocblas_operation_none;

    let c_axpy = measure(|| {
        let alpha = black_box(1.0_f32);
        // SAFETY: does nothing.
        let status = unsafe { raw_axpy.unwrap()(raw, 64, &alpha, x_address, 1, y_address, 1) };
        let _ = black_box(status);
    });
    let c_gemm = measure(|| {
        let (alpha, beta) = (black_box(1.0_f32), black_box(0.0_f32));
        // SAFETY: does nothing.
        let status = unsafe {
            raw_gemm.unwrap()(
                raw, none, none, 8, 8, 8, &alpha, x_address, 8, x_address, 8, &beta, y_address, 8,
            )
        };
        let _ = black_box(status);
    });
    let safe_axpy = measure(|| {
        let (x, y) = (x.on(&stream).unwrap(), y.on_mut(&stream).unwrap());
        blas.axpy(black_box(1.0), x.into(), y.into()).unwrap();
    });
    let device_axpy = measure(|| {
        let (x, y) = (x.on(&stream).unwrap(), y.on_mut(&stream).unwrap());
        blas.axpy(OnDevice(&number), x.into(), y.into()).unwrap();
    });
    let safe_gemm = measure(|| {
        let a = Matrix::new(x.on(&stream).unwrap(), 8, 8, 8);
        let c = Matrix::new(y.on_mut(&stream).unwrap(), 8, 8, 8);
        blas.gemm(Op::None, Op::None, black_box(1.0), a, a, black_box(0.0), c)
            .unwrap();
    });
    let (slice, mut output) = (x.on(&stream).unwrap(), y.on_mut(&stream).unwrap());
    let kept_slices = measure(|| {
        let a = Matrix::new(slice, 8, 8, 8);
        let c = Matrix::new(output.reborrow(), 8, 8, 8);
        blas.gemm(Op::None, Op::None, black_box(1.0), a, a, black_box(0.0), c)
            .unwrap();
    });
    println!("call | safe, ns | C, ns | more, ns");
    for (call, safe, raw) in [
        ("axpy, both slices taken anew", safe_axpy, c_axpy),
        (
            "axpy, alpha in device memory, three slices taken anew",
            device_axpy,
            c_axpy,
        ),
        ("gemm, both slices taken anew", safe_gemm, c_gemm),
        ("gemm, slices kept", kept_slices, c_gemm),
    ] {
        println!("{call} | {safe:.1} | {raw:.1} | {:.1}", safe - raw);
    }
}
