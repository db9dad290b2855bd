//! Each solver function that fails is the error of the call that needs it, in every scalar and form, and leaves nothing
//! behind.

mod common;

use std::sync::Arc;

use common::{C64, Number, device, library, numbers};
use num_complex::Complex;
use rocblas::{Error, Fill, Handle, Library, Matrix, Op, PointerArray, Result, solver};

const N: usize = 3;
const COUNT: usize = 2;

const ROUTINES: [&str; 10] = [
    "getrf",
    "getrf_npvt",
    "getrs",
    "getri",
    "getri_outofplace",
    "gesv",
    "potrf",
    "potrs",
    "potri",
    "posv",
];

/// How the name of a form's C function ends.
const FORMS: [&str; 3] = ["", "_strided_batched", "_batched"];

/// Calls a routine, and those whose result it needs, on two equal operands of any form.
macro_rules! call {
    ($routine:ident, $blas:ident, $a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        match $routine {
            "getrf" => solver::getrf($blas, a)?.check(),
            "getrf_npvt" => solver::getrf_npvt($blas, a)?.check(),
            "getrs" => {
                let lu = solver::getrf($blas, a)?;
                solver::getrs($blas, Op::None, &lu, b)?;
                lu.check()
            }
            "getri" => solver::getri($blas, solver::getrf($blas, a)?)?.check(),
            "getri_outofplace" => {
                let lu = solver::getrf($blas, a)?;
                lu.check()?;
                solver::getri_outofplace($blas, &lu, b)?.check()
            }
            "gesv" => solver::gesv($blas, a, b)?.check(),
            "potrf" => solver::potrf($blas, Fill::Lower, a)?.check(),
            "potrs" => {
                let factor = solver::potrf($blas, Fill::Lower, a)?;
                solver::potrs($blas, &factor, b)?;
                factor.check()
            }
            "potri" => solver::potri($blas, solver::potrf($blas, Fill::Lower, a)?)?.check(),
            "posv" => solver::posv($blas, Fill::Lower, a, b)?.check(),
            other => panic!("no routine is called {other}"),
        }
    }};
}

fn run<T: Number>(library: &Library, device: &hip::Device, routine: &str, form: &str) -> Result<()> {
    let stream = device.stream()?;
    let blas = &Handle::new(library, &stream)?;
    let mut values = numbers::<T>(N * N * COUNT, 3);
    for matrix in values.chunks_mut(N * N) {
        for i in 0..N {
            matrix[i + i * N] = T::of(C64::new(9.0, 0.0));
        }
    }
    let mut a = device.alloc_from(&stream, &values)?;
    let mut b = device.alloc_from(&stream, &values)?;
    let (a, b) = (a.on_mut(&stream)?, b.on_mut(&stream)?);
    let [at_a, at_b] = [(); 2].map(|()| PointerArray::at_offsets([0, N * N], N, N, N));
    match form {
        "" => call!(routine, blas, Matrix::new(a, N, N, N), Matrix::new(b, N, N, N)),
        "_strided_batched" => call!(
            routine,
            blas,
            Matrix::new(a, N, N, N).batch(N * N, COUNT),
            Matrix::new(b, N, N, N).batch(N * N, COUNT)
        ),
        _ => call!(routine, blas, at_a.of(a), at_b.of(b)),
    }
}

fn each_is_told<T: Number>(letter: char) {
    let (device, library) = (device(), library());
    let before = device.memory_info().unwrap();
    // SAFETY: all functions are the host platform's, and none is a solver's.
    let without = unsafe {
        Library::from_tables(
            Arc::new(hip_host_blas::rocblas_api()),
            Some(Arc::new(rocsolver_sys::Api::EMPTY)),
        )
    };
    for routine in ROUTINES {
        for form in FORMS {
            run::<T>(&library, &device, routine, form).unwrap();
            let name = format!("rocsolver_{letter}{routine}{form}");
            hip_host::faults::set_failures(&format!("{name}:1")).unwrap();
            let outcome = run::<T>(&library, &device, routine, form);
            hip_host::faults::set_failures("").unwrap();
            let Err(Error::Status { call, .. }) = &outcome else {
                panic!("{name}: {outcome:?}")
            };
            assert!(call.starts_with(&format!("{name}(")), "{name}: {call}");
            let sizes = if form.is_empty() { "n 3" } else { "count 2" };
            assert!(call.contains(sizes), "{name}: {call}");

            let outcome = run::<T>(&without, &device, routine, form);
            assert!(
                matches!(outcome, Err(Error::MissingSymbol { symbol, .. }) if symbol.ends_with(form)),
                "{name}: {outcome:?}"
            );
            assert_eq!(device.memory_info().unwrap(), before, "{name}");
        }
        // Memory of pivots and results, and the copy that tells what was found.
        for (call, nth) in [("hipMalloc", 3), ("hipMemcpyWithStream", 3)] {
            hip_host::faults::set_failures(&format!("{call}:{nth}")).unwrap();
            let outcome = run::<T>(&library, &device, routine, "_strided_batched");
            hip_host::faults::set_failures("").unwrap();
            assert!(matches!(outcome, Err(Error::Hip(_))), "{routine}, {call}: {outcome:?}");
            assert_eq!(device.memory_info().unwrap(), before, "{routine}, {call}");
        }
    }
    let deferred = device.runtime().take_deferred_errors();
    assert!(deferred.is_empty(), "{deferred:?}");
}

#[test]
fn each_function_that_fails_is_told_and_leaves_nothing() {
    each_is_told::<f32>('s');
    each_is_told::<f64>('d');
    each_is_told::<Complex<f32>>('c');
    each_is_told::<Complex<f64>>('z');
}
