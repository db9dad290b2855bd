//! Each C function that fails is the error of the call that needs it: with its name and its code, nothing allocated,
//! nothing deferred, and the next call as if nothing had been.

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{C64, Setup, device, library, setup};
use num_complex::Complex;
use rocblas::{Batch, Diag, Error, Fill, Handle, Matrix, Op, PointerArray, Result, Scalar, Side, Triangle, Vector};

/// Rules of failure hold for the whole process: one test at a time.
struct Failures(#[expect(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl Failures {
    fn new() -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        Self(ONE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What `work` gives while the rule is in force.
    fn during<R>(&self, rule: &str, work: impl FnOnce() -> R) -> R {
        hip_host::faults::set_failures(rule).unwrap();
        let result = work();
        hip_host::faults::set_failures("").unwrap();
        result
    }
}

/// A call with operands, and the C function it has to reach.
type Call = (&'static str, fn(&Operands<'_>) -> Result<()>);

/// Something for every call: a large input, and addresses of it.
struct Operands<'a> {
    setup: &'a Setup,
}

const N: usize = 4;
const TRIANGLE: Triangle = Triangle {
    side: Side::Left,
    fill: Fill::Lower,
    op: Op::None,
    diag: Diag::Unit,
};

impl Operands<'_> {
    /// Gives `work` an input and an output of `N` x `N` numbers, and the number 1 in device memory.
    fn with<T: Scalar, R>(&self, work: impl FnOnce(In<'_, T>, Out<'_, T>) -> Result<R>) -> Result<()> {
        let device = &self.setup.device;
        let stream = &self.setup.stream;
        let input = device.alloc_from(stream, &[T::ONE; N * N])?;
        let mut output = device.alloc_from(stream, &[T::ONE; N * N])?;
        let input = In(input.on(stream)?);
        work(input, Out(output.on_mut(stream)?))?;
        stream.synchronize()?;
        Ok(())
    }

    fn blas(&self) -> &Handle {
        &self.setup.blas
    }
}

struct In<'a, T>(hip::DeviceSlice<'a, T>);
struct Out<'a, T>(hip::DeviceSliceMut<'a, T>);

/// Where the matrices of batches of pointers are.
const OFFSETS: [usize; 3] = [0, 4, 8];

impl<'a, T> In<'a, T> {
    fn matrix(&self) -> Matrix<hip::DeviceSlice<'a, T>> {
        Matrix::new(self.0, N, N, N)
    }
    fn batch(&self) -> Batch<hip::DeviceSlice<'a, T>> {
        Matrix::new(self.0, 2, 2, 2).batch(4, 3)
    }
    fn vector(&self) -> Vector<hip::DeviceSlice<'a, T>> {
        Vector::new(self.0, N, 1)
    }
}

impl<'a, T> Out<'a, T> {
    fn matrix(self) -> Matrix<hip::DeviceSliceMut<'a, T>> {
        Matrix::new(self.0, N, N, N)
    }
    fn batch(self) -> Batch<hip::DeviceSliceMut<'a, T>> {
        Matrix::new(self.0, 2, 2, 2).batch(4, 3)
    }
    fn vector(self) -> Vector<hip::DeviceSliceMut<'a, T>> {
        Vector::new(self.0, N, 1)
    }
    fn element(self) -> hip::DeviceSliceMut<'a, T> {
        self.0.split_at_mut(1).unwrap().0
    }
}

/// The routines in one scalar: each with its C function.
macro_rules! routines {
    ($calls:ident, $scalar:ty: $(($symbol:literal, |$blas:ident, $x:ident, $y:ident| $call:expr)),+ $(,)?) => {
        $($calls.push(($symbol, |operands| {
            let $blas = operands.blas();
            operands.with::<$scalar, _>(|$x, $y| $call)
        }));)+
    };
}

macro_rules! in_every_scalar {
    ($calls:ident: $(($scalar:ty, $axpy:literal, $scal:literal, $copy:literal, $swap:literal, $gemv:literal, $gemm:literal,
        $strided:literal, $batched:literal, $syrk:literal, $trsm:literal, $trmm:literal)),+ $(,)?) => {$(
        routines!($calls, $scalar:
            ($axpy, |blas, x, y| blas.axpy(<$scalar>::ONE, x.vector(), y.vector())),
            ($scal, |blas, _x, y| blas.scal(<$scalar>::ZERO, y.vector())),
            ($copy, |blas, x, y| blas.copy(x.vector(), y.vector())),
            ($swap, |blas, _x, y| {
                let (one, other) = y.0.split_at_mut(8)?;
                blas.swap(one.into(), other.into())
            }),
            ($gemv, |blas, x, y| blas.gemv(Op::None, <$scalar>::ONE, x.matrix(), x.vector(), <$scalar>::ONE, y.vector())),
            ($gemm, |blas, x, y| blas.gemm(Op::None, Op::None, <$scalar>::ONE, x.matrix(), x.matrix(), <$scalar>::ONE, y.matrix())),
            ($strided, |blas, x, y| {
                blas.gemm_strided_batched(Op::None, Op::None, <$scalar>::ONE, x.batch(), x.batch(), <$scalar>::ONE, y.batch())
            }),
            ($batched, |blas, x, y| {
                let (from, to) = (PointerArray::at_offsets(OFFSETS, 2, 2, 2), PointerArray::at_offsets(OFFSETS, 2, 2, 2));
                let x = from.of(x.0);
                blas.gemm_batched(Op::None, Op::None, <$scalar>::ONE, x, x, <$scalar>::ONE, to.of(y.0))
            }),
            ($syrk, |blas, x, y| blas.syrk(Fill::Lower, Op::None, <$scalar>::ONE, x.matrix(), <$scalar>::ONE, y.matrix())),
            ($trsm, |blas, x, y| blas.trsm(TRIANGLE, <$scalar>::ONE, x.matrix(), y.matrix())),
            ($trmm, |blas, x, y| blas.trmm(TRIANGLE, <$scalar>::ONE, x.matrix(), x.matrix(), y.matrix())),
            ($trmm, |blas, x, y| blas.trmm_in_place(TRIANGLE, <$scalar>::ONE, x.matrix(), y.matrix())),
        );
    )+};
}

/// Every routine in every scalar.
fn calls() -> Vec<Call> {
    type C32 = Complex<f32>;
    let mut calls: Vec<Call> = Vec::new();
    in_every_scalar!(calls:
        (f32, "rocblas_saxpy", "rocblas_sscal", "rocblas_scopy", "rocblas_sswap", "rocblas_sgemv", "rocblas_sgemm",
            "rocblas_sgemm_strided_batched", "rocblas_sgemm_batched", "rocblas_ssyrk", "rocblas_strsm", "rocblas_strmm"),
        (f64, "rocblas_daxpy", "rocblas_dscal", "rocblas_dcopy", "rocblas_dswap", "rocblas_dgemv", "rocblas_dgemm",
            "rocblas_dgemm_strided_batched", "rocblas_dgemm_batched", "rocblas_dsyrk", "rocblas_dtrsm", "rocblas_dtrmm"),
        (C32, "rocblas_caxpy", "rocblas_cscal", "rocblas_ccopy", "rocblas_cswap", "rocblas_cgemv", "rocblas_cgemm",
            "rocblas_cgemm_strided_batched", "rocblas_cgemm_batched", "rocblas_csyrk", "rocblas_ctrsm", "rocblas_ctrmm"),
        (C64, "rocblas_zaxpy", "rocblas_zscal", "rocblas_zcopy", "rocblas_zswap", "rocblas_zgemv", "rocblas_zgemm",
            "rocblas_zgemm_strided_batched", "rocblas_zgemm_batched", "rocblas_zsyrk", "rocblas_ztrsm", "rocblas_ztrmm"),
    );
    routines!(calls, f32:
        ("rocblas_sdot", |blas, x, _y| blas.dot(x.vector(), x.vector())),
        ("rocblas_sdot", |blas, x, y| blas.dotc_into(x.vector(), x.vector(), y.element())),
        ("rocblas_snrm2", |blas, x, _y| blas.nrm2(x.vector())),
        ("rocblas_snrm2", |blas, x, y| blas.nrm2_into(x.vector(), y.element())),
        ("rocblas_sasum", |blas, x, _y| blas.asum(x.vector())),
        ("rocblas_sger", |blas, x, y| blas.ger(1.0, x.vector(), x.vector(), y.matrix())),
        ("rocblas_gemm_ex", |blas, x, y| blas.gemm_ex(Op::None, Op::None, 1.0, x.matrix(), x.matrix(), 1.0, y.matrix())),
        ("rocblas_gemm_ex", |blas, x, y| {
            blas.gemm_ex_into(Op::None, Op::None, 1.0, x.matrix(), x.matrix(), 1.0, x.matrix(), y.matrix())
        }),
        ("rocblas_gemm_strided_batched_ex", |blas, x, y| {
            blas.gemm_strided_batched_ex(Op::None, Op::None, 1.0, x.batch(), x.batch(), 1.0, y.batch())
        }),
        ("rocblas_gemm_batched_ex", |blas, x, y| {
            let (from, to) = (PointerArray::at_offsets(OFFSETS, 2, 2, 2), PointerArray::at_offsets(OFFSETS, 2, 2, 2));
            let x = from.of(x.0);
            blas.gemm_batched_ex(Op::None, Op::None, 1.0, x, x, 1.0, to.of(y.0))
        }),
    );
    routines!(calls, f64:
        ("rocblas_ddot", |blas, x, _y| blas.dotc(x.vector(), x.vector())),
        ("rocblas_dnrm2", |blas, x, _y| blas.nrm2(x.vector())),
        ("rocblas_dasum", |blas, x, y| blas.asum_into(x.vector(), y.element())),
        ("rocblas_dger", |blas, x, y| blas.gerc(1.0, x.vector(), x.vector(), y.matrix())),
    );
    routines!(calls, C32:
        ("rocblas_cdotu", |blas, x, y| blas.dot_into(x.vector(), x.vector(), y.element())),
        ("rocblas_cdotc", |blas, x, _y| blas.dotc(x.vector(), x.vector())),
        ("rocblas_scnrm2", |blas, x, _y| blas.nrm2(x.vector())),
        ("rocblas_scasum", |blas, x, _y| blas.asum(x.vector())),
        ("rocblas_csscal", |blas, _x, y| blas.scal_real(2.0, y.vector())),
        ("rocblas_cgeru", |blas, x, y| blas.ger(C32::ONE, x.vector(), x.vector(), y.matrix())),
        ("rocblas_cgerc", |blas, x, y| blas.gerc(C32::ONE, x.vector(), x.vector(), y.matrix())),
        ("rocblas_cherk", |blas, x, y| blas.herk(Fill::Upper, Op::None, 1.0, x.matrix(), 1.0, y.matrix())),
    );
    routines!(calls, C64:
        ("rocblas_zdotu", |blas, x, _y| blas.dot(x.vector(), x.vector())),
        ("rocblas_zdotc", |blas, x, y| blas.dotc_into(x.vector(), x.vector(), y.element())),
        ("rocblas_dznrm2", |blas, x, _y| blas.nrm2(x.vector())),
        ("rocblas_dzasum", |blas, x, _y| blas.asum(x.vector())),
        ("rocblas_zdscal", |blas, _x, y| blas.scal_real(2.0, y.vector())),
        ("rocblas_zgeru", |blas, x, y| blas.ger(C64::ONE, x.vector(), x.vector(), y.matrix())),
        ("rocblas_zgerc", |blas, x, y| blas.gerc(C64::ONE, x.vector(), x.vector(), y.matrix())),
        ("rocblas_zherk", |blas, x, y| blas.herk(Fill::Upper, Op::None, 1.0, x.matrix(), 1.0, y.matrix())),
    );
    calls
}

#[test]
fn every_function_that_refuses_is_named_and_leaves_nothing_behind() {
    let failures = Failures::new();
    let setup = setup();
    let operands = Operands { setup: &setup };
    let free = || setup.device.memory_info().unwrap().free;
    for (symbol, call) in calls() {
        call(&operands).unwrap_or_else(|error| panic!("{symbol}: {error}"));
        let before = free();
        let outcome = failures.during(&format!("{symbol}:1:5"), || call(&operands));
        let Err(Error::Status {
            call: text, code: 5, ..
        }) = &outcome
        else {
            panic!("{symbol}: {outcome:?}");
        };
        assert!(text.starts_with(&format!("{symbol}(")), "{symbol}: {text}");
        assert_eq!(free(), before, "{symbol} leaked");
        assert!(setup.device.runtime().take_deferred_errors().is_empty());
        call(&operands).unwrap_or_else(|error| panic!("{symbol} afterwards: {error}"));
    }
}

#[test]
fn every_function_that_fails_on_the_device_is_an_error_of_its_stream() {
    let failures = Failures::new();
    for (symbol, call) in calls() {
        let setup = setup();
        let before = setup.device.memory_info().unwrap().free;
        let operands = Operands { setup: &setup };
        let outcome = failures.during(&format!("async/{symbol}:1"), || call(&operands));
        // Where a batch of pointers goes first, it is the one that waits, and what it learns is deferred.
        let deferred = setup.device.runtime().take_deferred_errors();
        assert!(
            outcome.is_err() || !deferred.is_empty(),
            "{symbol} failed on the device, and no call reported it"
        );
        // The stream does not tell any more whether it still works, so that what it used stays allocated.
        let after = setup.device.memory_info().unwrap().free;
        assert!(after <= before, "{symbol}");
    }
}

#[test]
fn a_handle_that_cannot_be_set_up_is_destroyed() {
    let failures = Failures::new();
    let device = device();
    let stream = device.stream().unwrap();
    for symbol in [
        "rocblas_create_handle",
        "rocblas_set_stream",
        "rocblas_set_pointer_mode",
        "rocblas_set_atomics_mode",
    ] {
        let outcome = failures.during(&format!("{symbol}:1:6"), || Handle::new(&library(), &stream).map(drop));
        let Err(Error::Status { call, code: 6, .. }) = &outcome else {
            panic!("{symbol}: {outcome:?}");
        };
        assert!(call.starts_with(symbol), "{call}");
        // One that was made would be destroyed now, and this rule would make that an error.
        assert!(device.runtime().take_deferred_errors().is_empty());
        let destroyed = failures.during(&format!("{symbol}:1:6, rocblas_destroy_handle:1:6"), || {
            drop(Handle::new(&library(), &stream));
            device.runtime().take_deferred_errors().len()
        });
        assert_eq!(destroyed, usize::from(symbol != "rocblas_create_handle"), "{symbol}");
    }
}

#[test]
fn a_batch_of_pointers_that_cannot_be_made_leaves_nothing_allocated() {
    let failures = Failures::new();
    let setup = setup();
    let x = setup.upload(&[0.0_f32; 16]);
    let free = || setup.device.memory_info().unwrap().free;
    let before = free();
    let make = |rule: &str| {
        let outcome = failures.during(rule, || {
            PointerArray::at_offsets([0, 4], 2, 2, 2).of(&x).send(&setup.blas)
        });
        assert!(matches!(outcome, Err(Error::Hip(_))), "{rule}: {outcome:?}");
    };
    for rule in ["hipMalloc:1:2", "hipMemcpyWithStream:1:1"] {
        make(rule);
        assert_eq!(free(), before, "{rule}");
    }
    // It ends the stream.
    make("async/hipMemcpyWithStream:1:1");
}

#[test]
fn modes_and_workspace_that_fail_say_so() {
    let failures = Failures::new();
    let mut setup = setup();
    let memory = setup.device.alloc::<u8>(64).unwrap();
    let refused = |outcome: Result<()>, symbol: &str| {
        let Err(Error::Status { call, code: 6, .. }) = &outcome else {
            panic!("{symbol}: {outcome:?}");
        };
        assert!(call.starts_with(symbol), "{call}");
    };
    let rule = |symbol: &str| format!("{symbol}:1:6");
    let blas = &setup.blas;
    for (symbol, call) in [
        (
            "rocblas_get_atomics_mode",
            (&|| blas.atomics_allowed().map(drop)) as &dyn Fn() -> Result<()>,
        ),
        ("rocblas_set_atomics_mode", &|| blas.allow_atomics(true)),
        ("rocblas_get_device_memory_size", &|| blas.workspace_bytes().map(drop)),
        ("rocblas_start_device_memory_size_query", &|| {
            blas.workspace_needed(|_| Ok(())).map(drop)
        }),
        ("rocblas_stop_device_memory_size_query", &|| {
            blas.workspace_needed(|_| Ok(())).map(drop)
        }),
    ] {
        refused(failures.during(&rule(symbol), call), symbol);
    }
    // The query that could not be stopped is still open on this platform; a new handle is not.
    setup.blas = Handle::new(&library(), &setup.stream).unwrap();
    let symbol = "rocblas_set_workspace";
    let set = |blas: &mut Handle| blas.set_workspace(memory).unwrap_err();
    let (error, memory) = failures.during(&rule(symbol), || set(&mut setup.blas));
    refused(Err(error), symbol);
    setup.blas.set_workspace(memory).unwrap();
    let outcome = failures.during(&rule(symbol), || setup.blas.take_workspace());
    refused(outcome.map(drop), symbol);
    assert!(setup.blas.take_workspace().unwrap().is_some(), "it is still there");
}

#[test]
fn a_handle_finds_its_own_stream_again_after_a_capture_that_could_not_tell_it() {
    let failures = Failures::new();
    let setup = setup();
    let (stream, blas) = (&setup.stream, &setup.blas);
    let mut x = setup.upload(&[3.0_f32]);
    let lose = || {
        // The first call tells the stream that records.
        let captured = failures.during("rocblas_set_stream:2", || blas.capture(|_| Ok(())));
        assert!(matches!(captured, Err(Error::Status { .. })));
    };
    lose();
    blas.scal(2.0, x.on_mut(stream).unwrap().into()).unwrap();
    assert_eq!(setup.download(&x), [6.0]);
    lose();
    // Another capture is not the one that the library was told of.
    let graph = stream.capture(|stream| {
        let called = blas.scal(2.0, x.on_mut(stream)?.into());
        assert!(matches!(called, Err(Error::Captured { .. })));
        Ok(())
    });
    assert_eq!(graph.unwrap().node_count().unwrap(), 0);
    lose();
    drop(setup);
}

/// rocBLAS may have queued a part of it.
#[test]
fn a_capture_with_a_call_that_failed_makes_no_graph_although_its_error_is_ignored() {
    let failures = Failures::new();
    let setup = setup();
    let mut x = setup.upload(&[3.0_f32]);
    let mut scale = |rule: &str| {
        failures.during(rule, || {
            setup.blas.capture(|blas| {
                let _ = blas.scal(2.0, x.on_mut(blas.stream())?.into());
                Ok(())
            })
        })
    };
    let error = scale("rocblas_sscal:1:6").unwrap_err();
    assert!(matches!(error, Error::Captured { .. }), "{error}");
    assert_eq!(scale("").unwrap().node_count().unwrap(), 1);
}

/// A success of calls that compute, and of no other.
unsafe extern "C" fn degraded(_: rocblas_sys::rocblas_handle, _: hip_sys::hipStream_t) -> rocblas_sys::rocblas_status {
    rocblas_sys::rocblas_status::rocblas_status_perf_degraded
}

#[test]
fn a_handle_whose_stream_was_not_set_is_none() {
    let _alone = Failures::new();
    let setup = setup();
    let api = rocblas_sys::Api {
        rocblas_set_stream: Some(degraded),
        ..common::rocblas_api()
    };
    // SAFETY: one platform's functions; one of them does nothing, and says so.
    let library = unsafe { rocblas::Library::from_tables(std::sync::Arc::new(api), None) };
    let made = Handle::new(&library, &setup.stream).map(drop);
    let Err(Error::Status { name, code: 7, .. }) = &made else {
        panic!("{made:?}");
    };
    assert_eq!(*name, "rocblas_status_perf_degraded");
}
