//! Handles: asynchronous calls, order on the stream, lifetimes, and what a failing library looks like.

mod common;
#[path = "../../hip/tests/common/mod.rs"]
mod streams;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use common::{AT_FIRST_OPEN, device, library, setup};
use num_complex::Complex;
use rocblas::{Error, Fill, Handle, Library, Matrix, Op, solver};
use streams::{Gate, heard, unwatch, watch, watched_device};

type C32 = Complex<f32>;

#[test]
fn calls_return_before_they_run_and_run_in_order() {
    if !common::has_solver() {
        return;
    }
    let setup = setup();
    let stream = &setup.stream;
    let a = setup.upload(&[C32::new(2.0, 0.0)]);
    for closed in AT_FIRST_OPEN {
        let mut c = setup.upload(&[C32::ZERO]);
        let gate = closed.then(|| Gate::close(stream));
        let one = |slice| Matrix::new(slice, 1, 1, 1);
        {
            // Both factors are gone when the products run.
            let (alpha, beta) = (C32::new(3.0, 0.0), C32::ZERO);
            let out = Matrix::new(c.on_mut(stream).unwrap(), 1, 1, 1);
            let x = one(a.on(stream).unwrap());
            setup.blas.gemm(Op::None, Op::None, alpha, x, x, beta, out).unwrap();
            let out = Matrix::new(c.on_mut(stream).unwrap(), 1, 1, 1);
            setup.blas.herk(Fill::Lower, Op::None, 1.0, x, 1.0, out).unwrap();
        }
        let info = solver::potrf(
            &setup.blas,
            Fill::Lower,
            Matrix::new(c.on_mut(stream).unwrap(), 1, 1, 1),
        )
        .unwrap();
        if let Some(gate) = gate {
            assert!(!stream.is_idle().unwrap());
            gate.open();
        }
        info.check().unwrap();
        assert_eq!(setup.download(&c), [C32::new(4.0, 0.0)]);
    }
}

#[test]
fn a_product_waits_for_another_stream_that_makes_its_input() {
    let setup = setup();
    let producer = setup.device.stream().unwrap();
    for closed in AT_FIRST_OPEN {
        let mut a = setup.upload(&[5.0_f32]);
        let mut c = setup.upload(&[1.0_f32]);
        let gate = closed.then(|| Gate::close(&producer));
        a.on_mut(&producer).unwrap().fill_zero().unwrap();
        let x = Matrix::new(a.on(&setup.stream).unwrap(), 1, 1, 1);
        let out = Matrix::new(c.on_mut(&setup.stream).unwrap(), 1, 1, 1);
        setup.blas.gemm(Op::None, Op::None, 1.0, x, x, 0.0, out).unwrap();
        if let Some(gate) = gate {
            assert!(!setup.stream.is_idle().unwrap());
            gate.open();
        }
        assert_eq!(setup.download(&c), [0.0]);
    }
}

#[test]
fn a_handle_moves_to_another_thread() {
    let setup = setup();
    let value = std::thread::spawn(move || {
        let a = setup.upload(&[3.0_f64]);
        let mut c = setup.upload(&[0.0_f64]);
        let x = Matrix::new(a.on(&setup.stream).unwrap(), 1, 1, 1);
        let out = Matrix::new(c.on_mut(&setup.stream).unwrap(), 1, 1, 1);
        setup.blas.gemm(Op::None, Op::None, 1.0, x, x, 0.0, out).unwrap();
        setup.download(&c)
    });
    assert_eq!(value.join().unwrap(), [9.0]);
}

#[test]
fn a_handle_can_go_while_its_calls_run() {
    let setup = setup();
    let a = setup.upload(&vec![1.0_f32; 64 * 64]);
    let mut c = setup.device.alloc::<f32>(64 * 64).unwrap();
    let x = Matrix::new(a.on(&setup.stream).unwrap(), 64, 64, 64);
    let out = Matrix::new(c.on_mut(&setup.stream).unwrap(), 64, 64, 64);
    setup.blas.gemm(Op::None, Op::None, 1.0, x, x, 0.0, out).unwrap();
    drop(setup.blas);
    let mut seen = vec![0.0; 64 * 64];
    c.copy_to_slice(&setup.stream, &mut seen).unwrap();
    assert!(seen.iter().all(|&value| value == 64.0));
    assert!(setup.device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn a_stream_of_another_runtime_is_refused() {
    let (own, other) = (device(), device());
    let library = library().only_for(own.runtime());
    Handle::new(&library, &own.stream().unwrap()).unwrap();
    let error = Handle::new(&library, &other.stream().unwrap()).unwrap_err();
    assert!(matches!(error, Error::OtherRuntime { .. }), "{error}");
}

#[test]
fn a_missing_function_is_named_with_its_library() {
    if !common::has_solver() {
        return;
    }
    let device = device();
    let stream = device.stream().unwrap();
    let blas = rocblas_sys::Api {
        rocblas_cgemm: None,
        ..common::rocblas_api()
    };
    let solver = rocsolver_sys::Api {
        rocsolver_cpotrf: None,
        ..common::rocsolver_api()
    };
    // SAFETY: all functions are the host platform's.
    let library = unsafe { Library::from_tables(Arc::new(blas), Some(Arc::new(solver))) };
    let blas = Handle::new(&library, &stream).unwrap();
    let a = device.alloc_zeroed::<C32>(1).unwrap();
    let mut c = device.alloc_zeroed::<C32>(1).unwrap();
    let x = Matrix::new(a.on(&stream).unwrap(), 1, 1, 1);
    let error = blas
        .gemm(
            Op::None,
            Op::None,
            C32::ONE,
            x,
            x,
            C32::ZERO,
            Matrix::new(&mut c, 1, 1, 1),
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("`rocblas_cgemm` is missing from the loaded rocBLAS"),
        "{error}"
    );
    let error = solver::potrf(&blas, Fill::Lower, Matrix::new(&mut c, 1, 1, 1)).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("`rocsolver_cpotrf` is missing from the loaded rocSOLVER"),
        "{error}"
    );

    // SAFETY: a table without functions makes no promise to break.
    let nothing = unsafe { Library::from_tables(rocblas_sys::Api::EMPTY.into(), None) };
    assert!(matches!(
        Handle::new(&nothing, &stream),
        Err(Error::MissingSymbol {
            symbol: "rocblas_create_handle",
            ..
        })
    ));
    assert!(nothing.version().is_err());
}

#[test]
fn a_failing_library_is_quoted_with_the_sizes() {
    unsafe extern "C" fn out_of_memory(
        _: rocblas_sys::rocblas_handle,
        _: rocblas_sys::rocblas_operation,
        _: rocblas_sys::rocblas_operation,
        _: i32,
        _: i32,
        _: i32,
        _: *const f32,
        _: *const f32,
        _: i32,
        _: *const f32,
        _: i32,
        _: *const f32,
        _: *mut f32,
        _: i32,
    ) -> rocblas_sys::rocblas_status {
        rocblas_sys::rocblas_status::rocblas_status_memory_error
    }
    let device = device();
    let stream = device.stream().unwrap();
    let api = rocblas_sys::Api {
        rocblas_sgemm: Some(out_of_memory),
        ..common::rocblas_api()
    };
    // SAFETY: the host platform's functions, and one that does nothing.
    let blas = Handle::new(&unsafe { Library::from_tables(Arc::new(api), None) }, &stream).unwrap();
    let a = device.alloc_zeroed::<f32>(6).unwrap();
    let mut c = device.alloc_zeroed::<f32>(9).unwrap();
    let x = Matrix::new(a.on(&stream).unwrap(), 3, 2, 3);
    let out = Matrix::new(c.on_mut(&stream).unwrap(), 3, 3, 3);
    let error = blas.gemm(Op::None, Op::Transpose, 1.0, x, x, 0.0, out).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`rocblas_sgemm(None, Transpose, m 3, n 3, k 2, lda 3, ldb 3, ldc 3)` failed: rocblas_status_memory_error (5); \
         device memory is exhausted: free some, or use smaller matrices"
    );
}

#[test]
fn a_handle_that_cannot_be_destroyed_leaves_its_error() {
    unsafe extern "C" fn refuse(_: rocblas_sys::rocblas_handle) -> rocblas_sys::rocblas_status {
        rocblas_sys::rocblas_status::rocblas_status_internal_error
    }
    let device = device();
    let stream = device.stream().unwrap();
    let api = rocblas_sys::Api {
        rocblas_destroy_handle: Some(refuse),
        ..common::rocblas_api()
    };
    // SAFETY: the host platform's functions, and one that does nothing.
    let library = unsafe { Library::from_tables(Arc::new(api), None) };
    drop(Handle::new(&library, &stream).unwrap());
    let errors = device.runtime().take_deferred_errors();
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0]
            .to_string()
            .starts_with("`rocblas_destroy_handle()` failed: rocblas_status_internal_error (6)")
    );
    assert_eq!(errors[0].code(), None, "it is not HIP's code");
}

#[test]
fn results_are_reproducible_by_default() {
    let setup = setup();
    let mode = || {
        let mut mode = rocblas_sys::rocblas_atomics_mode(99);
        // SAFETY: the handle is alive; writes one mode to the address given.
        let status =
            unsafe { setup.blas.library().api().rocblas_get_atomics_mode.unwrap()(setup.blas.raw(), &mut mode) };
        assert_eq!(status, rocblas_sys::rocblas_status::rocblas_status_success);
        mode
    };
    assert_eq!(mode(), rocblas_sys::rocblas_atomics_mode::rocblas_atomics_not_allowed);
    setup.blas.allow_atomics(true).unwrap();
    assert_eq!(mode(), rocblas_sys::rocblas_atomics_mode::rocblas_atomics_allowed);
}

#[test]
fn the_version_is_a_text() {
    let version = library().version().unwrap();
    assert!(
        version.starts_with(|first: char| first.is_ascii_digit()) && !version.contains('\0'),
        "{version:?}"
    );
}

#[test]
fn a_handle_is_destroyed_after_its_last_call() {
    unsafe extern "C" fn destroy(handle: rocblas_sys::rocblas_handle) -> rocblas_sys::rocblas_status {
        heard("rocblas_destroy_handle");
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { common::rocblas_api().rocblas_destroy_handle.unwrap()(handle) }
    }
    let device = watched_device();
    let stream = device.stream().unwrap();
    let api = rocblas_sys::Api {
        rocblas_destroy_handle: Some(destroy),
        ..common::rocblas_api()
    };
    // SAFETY: the host platform's functions, or wrappers that call them.
    let blas = Handle::new(&unsafe { Library::from_tables(Arc::new(api), None) }, &stream).unwrap();
    let gate = Gate::close(&stream);
    let found_idle = Rc::new(RefCell::new(Vec::new()));
    let noted = found_idle.clone();
    watch(move |name| match name {
        "hipStreamSynchronize" => gate.open(),
        "rocblas_destroy_handle" => {
            noted.borrow_mut().push(stream.is_idle().unwrap());
            gate.open();
        }
        _ => {}
    });
    drop(blas);
    unwatch();
    assert_eq!(*found_idle.borrow(), [true]);
}

#[test]
fn device_memory_for_infos_is_asked_for_once() {
    if !common::has_solver() {
        return;
    }
    let device = watched_device();
    let stream = device.stream().unwrap();
    let blas = Handle::new(&library(), &stream).unwrap();
    let mut a = device.alloc_from(&stream, &[1.0_f32]).unwrap();
    let counts = Rc::new(RefCell::new((0, 0)));
    let counted = counts.clone();
    watch(move |name| match name {
        "hipMalloc" => counted.borrow_mut().0 += 1,
        "hipFree" => counted.borrow_mut().1 += 1,
        _ => {}
    });
    for _ in 0..5 {
        let matrix = Matrix::new(a.on_mut(&stream).unwrap(), 1, 1, 1);
        solver::potrf(&blas, Fill::Lower, matrix).unwrap().check().unwrap();
    }
    unwatch();
    assert_eq!(*counts.borrow(), (1, 0));
}
