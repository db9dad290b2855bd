//! Sizes above 2^31 - 1 go to the `_64` functions, all others to the plain ones.

mod common;

use std::cell::RefCell;
use std::sync::Arc;

use common::device;
use hip::{Device, DeviceSlice, DeviceSliceMut, Stream};
use rocblas::{Error, Fill, Handle, Library, Matrix, Op, Vector, solver};
use rocblas_sys::{rocblas_handle, rocblas_int, rocblas_operation, rocblas_status};

thread_local! {
    /// What was called, with which sizes.
    static CALLS: RefCell<Vec<(&'static str, Vec<i64>)>> = const { RefCell::new(Vec::new()) };
}

fn heard(name: &'static str, sizes: &[i64]) -> rocblas_status {
    CALLS.with_borrow_mut(|calls| calls.push((name, sizes.to_vec())));
    rocblas_status::rocblas_status_success
}

unsafe extern "C" fn axpy(
    _: rocblas_handle,
    n: rocblas_int,
    _: *const f32,
    _: *const f32,
    x: rocblas_int,
    _: *mut f32,
    y: rocblas_int,
) -> rocblas_status {
    heard("axpy", &[n, x, y].map(i64::from))
}

unsafe extern "C" fn axpy_64(
    _: rocblas_handle,
    n: i64,
    _: *const f32,
    _: *const f32,
    x: i64,
    _: *mut f32,
    y: i64,
) -> rocblas_status {
    heard("axpy_64", &[n, x, y])
}

unsafe extern "C" fn gemm(
    _: rocblas_handle,
    _: rocblas_operation,
    _: rocblas_operation,
    m: rocblas_int,
    n: rocblas_int,
    k: rocblas_int,
    _: *const f32,
    _: *const f32,
    lda: rocblas_int,
    _: *const f32,
    ldb: rocblas_int,
    _: *const f32,
    _: *mut f32,
    ldc: rocblas_int,
) -> rocblas_status {
    heard("gemm", &[m, n, k, lda, ldb, ldc].map(i64::from))
}

unsafe extern "C" fn gemm_64(
    _: rocblas_handle,
    _: rocblas_operation,
    _: rocblas_operation,
    m: i64,
    n: i64,
    k: i64,
    _: *const f32,
    _: *const f32,
    lda: i64,
    _: *const f32,
    ldb: i64,
    _: *const f32,
    _: *mut f32,
    ldc: i64,
) -> rocblas_status {
    heard("gemm_64", &[m, n, k, lda, ldb, ldc])
}

fn api() -> rocblas_sys::Api {
    rocblas_sys::Api {
        rocblas_saxpy: Some(axpy),
        rocblas_saxpy_64: Some(axpy_64),
        rocblas_sgemm: Some(gemm),
        rocblas_sgemm_64: Some(gemm_64),
        ..common::rocblas_api()
    }
}

fn handle(device: &Device, api: rocblas_sys::Api) -> Handle {
    let solver = common::has_solver().then(|| Arc::new(common::rocsolver_api()));
    // SAFETY: the host platform's functions, and some that only take notes.
    let library = unsafe { Library::from_tables(Arc::new(api), solver) };
    Handle::new(&library, &device.stream().unwrap()).unwrap()
}

const MOST: usize = i32::MAX as usize;

/// As much memory as anybody asks for. Nothing ever touches it.
fn endless(stream: &Stream) -> DeviceSlice<'_, f32> {
    // SAFETY: the functions that are given it do nothing.
    unsafe { DeviceSlice::from_raw_parts(std::ptr::dangling(), usize::MAX >> 3, stream) }
}

fn endless_mut(stream: &Stream) -> DeviceSliceMut<'_, f32> {
    // SAFETY: the functions that are given it do nothing.
    unsafe { DeviceSliceMut::from_raw_parts(std::ptr::without_provenance_mut(1 << 63), usize::MAX >> 3, stream) }
}

#[test]
fn one_size_above_32_bits_makes_all_of_them_64_bits_wide() {
    let blas = handle(&device(), api());
    let stream = blas.stream();
    let add = |n, incx, incy| {
        let x = Vector::new(endless(stream), n, incx);
        let y = Vector::new(endless_mut(stream), n, incy);
        blas.axpy(1.0, x, y).unwrap();
        CALLS.take().remove(0)
    };
    let most = MOST as i64;
    assert_eq!(add(MOST, 1, -1), ("axpy", vec![most, 1, -1]));
    assert_eq!(add(MOST + 1, 1, -1), ("axpy_64", vec![most + 1, 1, -1]));
    assert_eq!(add(5, 1 << 31, 1), ("axpy_64", vec![5, 1 << 31, 1]));
    assert_eq!(add(5, 1, -(1 << 31)), ("axpy", vec![5, 1, -(1 << 31)]));
    assert_eq!(add(5, 1, -(1 << 31) - 1), ("axpy_64", vec![5, 1, -(1 << 31) - 1]));

    let multiply = |m, n, k, ld| {
        let of = |rows, cols| Matrix::new(endless(stream), rows, cols, ld);
        let c = Matrix::new(endless_mut(stream), m, n, ld);
        blas.gemm(Op::None, Op::None, 1.0, of(m, k), of(k, n), 0.0, c).unwrap();
        CALLS.take().remove(0)
    };
    assert_eq!(multiply(2, 3, 4, MOST), ("gemm", vec![2, 3, 4, most, most, most]));
    let large = most + 1;
    assert_eq!(
        multiply(2, 3, 4, MOST + 1),
        ("gemm_64", vec![2, 3, 4, large, large, large])
    );
    assert_eq!(multiply(2, MOST + 1, 4, 4), ("gemm_64", vec![2, large, 4, 4, 4, 4]));
}

#[test]
fn a_missing_64_bit_function_is_named_with_its_release_and_the_size() {
    let api = rocblas_sys::Api {
        rocblas_saxpy_64: None,
        rocblas_sgemm_64: None,
        ..api()
    };
    let blas = handle(&device(), api);
    let stream = blas.stream();
    let x = Vector::new(endless(stream), 1 << 32, 1);
    let y = Vector::new(endless_mut(stream), 1 << 32, 1);
    assert_eq!(
        blas.axpy(1.0, x, y).unwrap_err().to_string(),
        "n = 4294967296 does not fit 32 bits, and `rocblas_saxpy_64` is missing from the loaded rocBLAS; install ROCm 6.1 or \
         later, or split the problem"
    );
    let a = Matrix::new(endless(stream), 2, 2, 1 << 31);
    let c = Matrix::new(endless_mut(stream), 2, 2, 2);
    let error = blas.gemm(Op::None, Op::None, 1.0, a, a, 0.0, c).unwrap_err();
    assert!(
        matches!(
            error,
            Error::No64Bit {
                symbol: "rocblas_sgemm_64",
                what: "lda",
                since: "6.3",
                ..
            }
        ),
        "{error}"
    );
    assert!(CALLS.take().is_empty());
}

#[test]
fn a_matrix_with_more_elements_than_rocsolver_can_index_is_refused() {
    if !common::has_solver() {
        return common::skipped("no rocSOLVER");
    }
    let blas = handle(&device(), api());
    let stream = blas.stream();
    // The last element of the first has index 2^31, although each size fits 32 bits.
    for (n, ld) in [(3, 1 << 30), (46_342, 46_342)] {
        let large = || Matrix::new(endless_mut(stream), n, n, ld);
        let errors = [
            solver::getrf(&blas, large()).map(drop).unwrap_err(),
            solver::getrf_npvt(&blas, large()).map(drop).unwrap_err(),
            solver::potrf(&blas, Fill::Lower, large()).map(drop).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::TooLarge { bits: 32, .. }), "{error}");
        }
    }
    let error = solver::potrf(&blas, Fill::Lower, Matrix::new(endless_mut(stream), 3, 3, 1 << 30))
        .map(drop)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the span of a matrix in elements = 2147483651 does not fit the library's 32-bit sizes; split the problem"
    );
}
