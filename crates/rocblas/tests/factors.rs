//! `alpha` and `beta`: of the host or of the device, and the pointer mode between calls.

mod common;
#[path = "../../hip/tests/common/mod.rs"]
mod streams;

use std::sync::Arc;

use common::{AT_FIRST_OPEN, C64, Setup, setup};
use hip::DeviceBuffer;
use rocblas::{
    Diag, Error, Factor, Fill, Handle, Library, Matrix, OnDevice, Op, PointerArray, Result, Side, Triangle, Vector,
};
use rocblas_sys::{rocblas_pointer_mode, rocblas_status};
use streams::Gate;

fn pointer_mode(blas: &Handle) -> rocblas_pointer_mode {
    let mut mode = rocblas_pointer_mode(99);
    // SAFETY: the handle is alive; writes one mode to the address given.
    let status = unsafe { blas.library().api().rocblas_get_pointer_mode.unwrap()(blas.raw(), &mut mode) };
    assert_eq!(status, rocblas_status::rocblas_status_success);
    mode
}

const HOST: rocblas_pointer_mode = rocblas_pointer_mode::rocblas_pointer_mode_host;

/// What every routine that has factors leaves behind, called with these on small operands.
fn outcomes(
    setup: &Setup,
    alpha: impl Factor<C64> + Copy,
    beta: impl Factor<C64> + Copy,
) -> Vec<(&'static str, Vec<C64>)> {
    type Call<'c> = Box<dyn Fn(Matrix<&mut DeviceBuffer<C64>>) -> Result<()> + 'c>;
    type VectorCall<'c> = Box<dyn Fn(Vector<&mut DeviceBuffer<C64>>) -> Result<()> + 'c>;
    let (stream, blas) = (&setup.stream, &setup.blas);
    let number = |i| C64::new(1.0 + f64::from(i), 2.0 - f64::from(i));
    let values: Vec<_> = (0..16).map(number).collect();
    let input = setup.upload(&values);
    let a = Matrix::new(input.on(stream).unwrap(), 4, 4, 4);
    let x = Vector::new(input.on(stream).unwrap(), 4, 2);
    let none = Op::None;
    let triangle = Triangle {
        side: Side::Left,
        fill: Fill::Upper,
        op: none,
        diag: Diag::NonUnit,
    };
    let (inputs, outputs) = (PointerArray::new(4, 4, 4), PointerArray::new(4, 4, 4));
    let batch = inputs.of(&input);
    let mut outcomes = Vec::new();
    let calls: Vec<(&'static str, Call<'_>)> = vec![
        ("gemm", Box::new(|c| blas.gemm(none, none, alpha, a, a, beta, c))),
        (
            "gemm_strided_batched",
            Box::new(|c| blas.gemm_strided_batched(none, none, alpha, a.into(), a.into(), beta, c.into())),
        ),
        ("gemm_ex", Box::new(|c| blas.gemm_ex(none, none, alpha, a, a, beta, c))),
        ("syrk", Box::new(|c| blas.syrk(Fill::Upper, none, alpha, a, beta, c))),
        ("trsm", Box::new(|c| blas.trsm(triangle, alpha, a, c))),
        ("trmm", Box::new(|c| blas.trmm(triangle, alpha, a, a, c))),
        ("ger", Box::new(|c| blas.ger(alpha, x, x, c))),
        ("gerc", Box::new(|c| blas.gerc(alpha, x, x, c))),
    ];
    for (name, call) in calls {
        let mut output = setup.upload(&values);
        let c = Matrix::new(&mut output, 4, 4, 4);
        call(c).unwrap();
        assert_eq!(pointer_mode(blas), HOST, "after {name}");
        outcomes.push((name, setup.download(&output)));
    }
    let calls: Vec<(&'static str, VectorCall<'_>)> = vec![
        ("gemv", Box::new(|y| blas.gemv(none, alpha, a, x, beta, y))),
        ("axpy", Box::new(|y| blas.axpy(alpha, x, y))),
        ("scal", Box::new(|y| blas.scal(alpha, y))),
    ];
    for (name, call) in calls {
        let mut output = setup.upload(&values);
        call(Vector::new(&mut output, 4, -3)).unwrap();
        assert_eq!(pointer_mode(blas), HOST, "after {name}");
        outcomes.push((name, setup.download(&output)));
    }
    let mut output = setup.upload(&values);
    blas.gemm_batched(none, none, alpha, batch, batch, beta, outputs.of(&mut output))
        .unwrap();
    outcomes.push(("gemm_batched", setup.download(&output)));
    outcomes
}

#[test]
fn numbers_on_the_device_do_what_numbers_of_the_host_do() {
    let setup = setup();
    let (alpha, beta) = (C64::new(0.5, -1.5), C64::new(2.0, 0.25));
    let on_device = setup.upload(&[alpha, beta]);
    let slice = on_device.on(&setup.stream).unwrap();
    let expected = outcomes(&setup, alpha, beta);
    let found = outcomes(
        &setup,
        OnDevice(slice.slice(..1).unwrap()),
        OnDevice(slice.slice(1..).unwrap()),
    );
    assert_eq!(found, expected);
    // None of them left its output as it was.
    let values: Vec<_> = outcomes(&setup, C64::ZERO, C64::ONE);
    for ((name, found), (_, other)) in found.iter().zip(&values) {
        assert_ne!(found, other, "{name}");
    }
}

#[test]
fn a_number_on_the_device_is_read_in_stream_order() {
    let setup = setup();
    let stream = &setup.stream;
    let x = setup.upload(&[1.0_f32; 4]);
    for closed in AT_FIRST_OPEN {
        let mut alpha = setup.upload(&[3.0_f32]);
        let mut y = setup.upload(&[0.0_f32; 4]);
        let gate = closed.then(|| Gate::close(stream));
        alpha.on_mut(stream).unwrap().fill_zero().unwrap();
        let (x, out) = (x.on(stream).unwrap(), y.on_mut(stream).unwrap());
        setup.blas.axpy(OnDevice(&alpha), x.into(), out.into()).unwrap();
        if let Some(gate) = gate {
            assert!(!stream.is_idle().unwrap());
            gate.open();
        }
        assert_eq!(setup.download(&y), [0.0; 4]);
    }
}

#[test]
fn a_result_on_the_device_can_be_the_next_factor() {
    let setup = setup();
    let stream = &setup.stream;
    let x = setup.upload(&[1.0_f64, 2.0, 2.0]);
    for closed in AT_FIRST_OPEN {
        let mut y = setup.upload(&[0.0_f64; 3]);
        let mut norm = setup.upload(&[0.0_f64]);
        let gate = closed.then(|| Gate::close(stream));
        let v = Vector::from(&x);
        setup.blas.nrm2_into(v, norm.on_mut(stream).unwrap()).unwrap();
        let out = y.on_mut(stream).unwrap();
        setup.blas.axpy(OnDevice(&norm), v, out.into()).unwrap();
        if let Some(gate) = gate {
            assert!(!stream.is_idle().unwrap(), "the host did not wait");
            gate.open();
        }
        assert_eq!(setup.download(&y), [3.0, 6.0, 6.0]);
    }
}

type Input<'a> = Matrix<hip::DeviceSlice<'a, f32>>;

#[test]
fn factors_of_one_call_are_of_one_kind_and_one_element() {
    let setup = setup();
    let stream = &setup.stream;
    let numbers = setup.upload(&[1.0_f32; 4]);
    let other = setup.device.stream().unwrap();
    let slice = numbers.on(stream).unwrap();
    let a = Matrix::new(slice, 2, 2, 2);
    let one = OnDevice(slice.slice(..1).unwrap());
    fn run(setup: &Setup, a: Input<'_>, alpha: impl Factor<f32>, beta: impl Factor<f32>) -> String {
        let mut c = setup.upload(&[1.0_f32; 4]);
        let c = Matrix::new(&mut c, 2, 2, 2);
        let refused = setup.blas.gemm(Op::None, Op::None, alpha, a, a, beta, c);
        refused.unwrap_err().to_string()
    }
    assert_eq!(
        run(&setup, a, one, 1.0),
        "gemm: beta cannot be a host value; use device memory, as alpha does"
    );
    assert_eq!(
        run(&setup, a, 1.0, one),
        "gemm: beta cannot be in device memory; use a host value, as alpha is"
    );
    assert_eq!(
        run(&setup, a, one, OnDevice(&numbers)),
        "gemm: beta is memory of 4 elements, but one element is needed"
    );
    let elsewhere = numbers.on(&other).unwrap().slice(..1).unwrap();
    assert!(run(&setup, a, OnDevice(elsewhere), one).starts_with("gemm: alpha was taken for another stream"));
    assert_eq!(pointer_mode(&setup.blas), HOST);
}

#[test]
fn level_3_refuses_numbers_in_memory_of_another_runtime() {
    let setup = setup();
    let stream = &setup.stream;
    let numbers = setup.upload(&[2.0_f32; 4]);
    let mut c = setup.upload(&[1.0_f32; 4]);
    let pointer = numbers.on(stream).unwrap().as_ptr();
    // SAFETY: one readable number, in use on this stream only, for as long as `numbers` lives.
    let foreign = OnDevice(unsafe { hip::DeviceSlice::from_raw_parts(pointer, 1, stream) });
    let a = Matrix::new(numbers.on(stream).unwrap(), 2, 2, 2);
    let out = Matrix::new(c.on_mut(stream).unwrap(), 2, 2, 2);
    let error = setup
        .blas
        .gemm(Op::None, Op::None, foreign, a, a, foreign, out)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "gemm: alpha cannot be in memory that another runtime owns; use a host value, or memory of HIP"
    );
    // Kernels of level 1 read it themselves.
    let out = c.on_mut(stream).unwrap();
    setup.blas.scal(foreign, out.into()).unwrap();
    assert_eq!(setup.download(&c), [2.0; 4]);
}

#[test]
fn a_mode_that_cannot_be_set_back_is_an_error_and_is_set_by_the_next_call() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static BROKEN: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn set(handle: rocblas_sys::rocblas_handle, mode: rocblas_pointer_mode) -> rocblas_status {
        if mode == HOST && BROKEN.load(Ordering::Relaxed) {
            return rocblas_status::rocblas_status_internal_error;
        }
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { common::rocblas_api().rocblas_set_pointer_mode.unwrap()(handle, mode) }
    }
    let device = common::device();
    let stream = device.stream().unwrap();
    let api = rocblas_sys::Api {
        rocblas_set_pointer_mode: Some(set),
        ..common::rocblas_api()
    };
    // SAFETY: the host platform's functions, or one that calls it.
    let library = unsafe { Library::from_tables(Arc::new(api), None) };
    let blas = Handle::new(&library, &stream).unwrap();
    let two = device.alloc_from(&stream, &[2.0_f32]).unwrap();
    let mut x = device.alloc_from(&stream, &[1.0_f32]).unwrap();
    BROKEN.store(true, Ordering::Relaxed);
    let error = blas
        .scal(OnDevice(&two), x.on_mut(&stream).unwrap().into())
        .unwrap_err();
    assert!(
        matches!(&error, Error::Status { call, .. } if call.starts_with("rocblas_set_pointer_mode")),
        "{error}"
    );
    let refused = blas.scal(3.0, x.on_mut(&stream).unwrap().into());
    assert!(refused.is_err(), "an address must not be read as a number");
    BROKEN.store(false, Ordering::Relaxed);
    blas.scal(3.0, x.on_mut(&stream).unwrap().into()).unwrap();
    let mut seen = [0.0];
    x.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [6.0]);
}
