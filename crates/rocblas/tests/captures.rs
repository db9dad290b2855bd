//! Captures contain the calls of a handle that follows them, and a result that only a run of the graph computes is not
//! available before.

mod common;

use common::{Setup, setup};
use hip::DeviceBuffer;
use rocblas::{Error, Fill, Handle, Matrix, Op, PointerArray, Result, Vector, solver};

const A: [f32; 4] = [4.0, 1.0, 1.0, 3.0];

fn square(a: &mut DeviceBuffer<f32>) -> Matrix<&mut DeviceBuffer<f32>> {
    Matrix::new(a, 2, 2, 2)
}

fn column(b: &mut DeviceBuffer<f32>) -> Matrix<&mut DeviceBuffer<f32>> {
    Matrix::new(b, 2, 1, 2)
}

fn refused<T>(outcome: Result<T>) {
    match outcome {
        Err(error @ Error::Captured { .. }) => assert!(!error.to_string().contains('\n')),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[test]
fn a_graph_keeps_the_arrays_of_addresses_that_its_calls_read() {
    const COUNT: usize = 8;
    let setup = setup();
    let stream = &setup.stream;
    let a = setup.upload(&[3.0_f32; COUNT]);
    let mut c = setup.upload(&[0.0_f32; COUNT]);
    let offsets: Vec<usize> = (0..COUNT).collect();
    // cuBLAS loads a product's code on its first use, which a capture does not allow.
    let array = PointerArray::at_offsets(offsets.clone(), 1, 1, 1);
    let (from, mut other) = (array.of(&a), setup.upload(&[0.0_f32; COUNT]));
    setup
        .blas
        .gemm_batched(Op::None, Op::None, 1.0, from, from, 1.0, array.of(&mut other))
        .unwrap();
    for is_kept_by_its_user in [false, true] {
        let array = || PointerArray::at_offsets(offsets.clone(), 1, 1, 1);
        let (from, to) = (array(), array());
        // A copy from memory that is not page-locked is not captured.
        from.of(&a).send(&setup.blas).unwrap();
        to.of(&c).send(&setup.blas).unwrap();
        let captured = setup.blas.capture(|blas| {
            let from = from.of(&a);
            blas.gemm_batched(Op::None, Op::None, 1.0, from, from, 1.0, to.of(&mut c))
        });
        if !is_kept_by_its_user {
            drop((from, to));
        }
        let graph = captured.unwrap().instantiate().unwrap();
        // Where the arrays were, had they been freed.
        let others: Vec<_> = (0..32).map(|_| setup.upload(&[0.0_f32; 2 * COUNT])).collect();
        let slices = (a.on(stream).unwrap(), c.on_mut(stream).unwrap());
        // SAFETY: the graph reads the one and writes the other; the handle lives and does nothing else.
        unsafe { graph.launch(stream, &[&slices.0, &slices.1]) }.unwrap();
        let expected = if is_kept_by_its_user { 18.0 } else { 9.0 };
        assert_eq!(setup.download(&c), [expected; COUNT]);
        drop(others);
    }
}

#[test]
fn a_graph_keeps_the_pivots_that_its_calls_read() {
    if !common::has_solver() {
        return;
    }
    let setup = setup();
    let stream = &setup.stream;
    // Exchanges its rows.
    let mut a = setup.upload(&[0.0_f32, 2.0, 1.0, 0.0]);
    let mut b = setup.upload(&[3.0_f32, 4.0]);
    let lu = solver::getrf(&setup.blas, square(&mut a)).unwrap();
    // Libraries load code on its first use, which a capture does not allow.
    let mut other = setup.upload(&[3.0_f32, 4.0]);
    solver::getrs(&setup.blas, Op::None, &lu, column(&mut other)).unwrap();
    let captured = setup
        .blas
        .capture(|blas| solver::getrs(blas, Op::None, &lu, column(&mut b)));
    let graph = captured.unwrap().instantiate().unwrap();
    drop(lu);
    // Would write its pivots to the same memory.
    let mut identity = setup.upload(&[1.0_f32, 0.0, 0.0, 1.0]);
    let factors = solver::getrf(&setup.blas, square(&mut identity)).unwrap();
    assert_eq!(factors.pivots().unwrap().to_vec().unwrap(), [1, 2]);
    let slices = (a.on(stream).unwrap(), b.on_mut(stream).unwrap());
    // SAFETY: the graph reads the one and writes the other; the handle lives and does nothing else.
    unsafe { graph.launch(stream, &[&slices.0, &slices.1]) }.unwrap();
    assert_eq!(setup.download(&b), [2.0, 3.0]);
}

#[test]
fn a_graph_keeps_the_workspace_that_its_calls_may_use() {
    let mut setup = setup();
    let mut x = setup.upload(&[3.0_f32]);
    let memory = |bytes| setup.device.alloc::<u8>(bytes).unwrap();
    let (first, second) = (memory(4096), memory(8192));
    setup.blas.set_workspace(first).unwrap();
    let graph = setup
        .blas
        .capture(|blas| blas.scal(2.0, x.on_mut(blas.stream())?.into()))
        .unwrap();
    assert!(setup.blas.set_workspace(second).unwrap().is_none(), "the graph has it");
    drop(graph);
    assert_eq!(setup.blas.take_workspace().unwrap().unwrap().len(), 8192);
}

#[test]
fn each_run_computes_a_captured_product() {
    let setup = setup();
    let stream = &setup.stream;
    let x = setup.upload(&[3.0_f32]);
    let mut y = setup.upload(&[1.0_f32]);
    // cuBLAS loads a product's code on its first use, which a capture does not allow.
    let mut z = setup.upload(&[0.0_f32]);
    let by = Matrix::new(x.on(stream).unwrap(), 1, 1, 1);
    let to = Matrix::new(z.on_mut(stream).unwrap(), 1, 1, 1);
    let product = setup.blas.gemm(Op::None, Op::None, 1.0, by, by, 1.0, to);
    product.unwrap();
    let captured = setup.blas.capture(|blas| {
        let x = Matrix::new(x.on(stream)?, 1, 1, 1);
        let y = Matrix::new(y.on_mut(stream)?, 1, 1, 1);
        blas.gemm(Op::None, Op::None, 1.0, x, x, 1.0, y)
    });
    let graph = captured.unwrap().instantiate().unwrap();
    assert_eq!(setup.download(&y), [1.0]);
    for run in 1..=2 {
        let slices = (x.on(stream).unwrap(), y.on_mut(stream).unwrap());
        // SAFETY: the graph reads the one and writes the other; the handle lives and does nothing else.
        unsafe { graph.launch(stream, &[&slices.0, &slices.1]) }.unwrap();
        assert_eq!(setup.download(&y), [1.0 + 9.0 * run as f32]);
    }
    // The handle is on its own stream again.
    setup.blas.scal(0.0, y.on_mut(stream).unwrap().into()).unwrap();
    assert_eq!(setup.download(&y), [0.0]);
}

#[test]
fn a_handle_is_on_its_own_stream_again_after_an_error() {
    let setup = setup();
    let stream = &setup.stream;
    let mut x = setup.upload(&[3.0_f32]);
    let failed = setup.blas.capture(|blas| {
        blas.scal(2.0, x.on_mut(stream)?.into())?;
        Err(Error::Increment)
    });
    assert!(matches!(failed, Err(Error::Increment)));
    setup.blas.scal(5.0, x.on_mut(stream).unwrap().into()).unwrap();
    assert_eq!(setup.download(&x), [15.0]);
}

#[test]
fn calls_that_a_capture_would_miss_are_refused() {
    let setup = setup();
    let stream = &setup.stream;
    let other = Handle::new(setup.blas.library(), stream).unwrap();
    let mut x = setup.upload(&[3.0_f32]);
    let mut a = setup.upload(&A);
    let factor = solver::potrf(&other, Fill::Lower, square(&mut a)).unwrap();
    let graph = stream.capture(|stream| {
        refused(setup.blas.scal(2.0, x.on_mut(stream)?.into()));
        Ok(())
    });
    assert_eq!(graph.unwrap().node_count().unwrap(), 0);
    let mut b = setup.upload(&[1.0_f32; 2]);
    // As above.
    solver::potrs(&setup.blas, &factor, column(&mut b)).unwrap();
    let mut b = setup.upload(&[1.0_f32; 2]);
    let alone = setup.blas.capture(|blas| solver::potrs(blas, &factor, column(&mut b)));
    let nodes = alone.unwrap().node_count().unwrap();
    assert!(nodes > 0, "the solution is recorded");
    let graph = setup.blas.capture(|blas| {
        refused(solver::potrs(&other, &factor, column(&mut b)));
        solver::potrs(blas, &factor, column(&mut b))
    });
    assert_eq!(graph.unwrap().node_count().unwrap(), nodes);
    assert_eq!(setup.download(&x), [3.0]);
    assert_eq!(setup.download(&b), [1.0; 2]);
    factor.check().unwrap();
}

/// Memory for calls that are refused.
struct Room {
    a: DeviceBuffer<f32>,
    b: DeviceBuffer<f32>,
}

impl Room {
    fn new(setup: &Setup) -> Self {
        Self {
            a: setup.upload(&A),
            b: setup.upload(&[1.0; 2]),
        }
    }

    fn refuses(mut self, blas: &Handle) -> Result<()> {
        let stream = blas.stream();
        let x = Vector::from(self.a.on(stream)?);
        refused(blas.dot(x, x));
        refused(blas.nrm2(x));
        let (a, b) = (&mut self.a, &mut self.b);
        refused(solver::getrf(blas, square(a)));
        refused(solver::getrf_npvt(blas, square(a)));
        refused(solver::gesv(blas, square(a), column(b)));
        refused(solver::potrf(blas, Fill::Lower, square(a)));
        refused(solver::posv(blas, Fill::Lower, square(a), column(b)));
        let factor = solver::Cholesky::from_factor(blas, Fill::Lower, square(a))?;
        refused(solver::potri(blas, factor));
        Ok(())
    }
}

#[test]
fn results_that_only_a_run_computes_are_refused() {
    let setup = setup();
    let mut a = setup.upload(&A);
    let mut c = setup.upload(&A);
    let lu = solver::getrf(&setup.blas, square(&mut a)).unwrap();
    // Uploads would not be recorded either, so they come first.
    let room = Room::new(&setup);
    let graph = setup.blas.capture(|blas| {
        refused(solver::getri_outofplace(blas, &lu, square(&mut c)));
        refused(solver::getri(blas, lu));
        room.refuses(blas)
    });
    assert_eq!(graph.unwrap().node_count().unwrap(), 0);
    let api = setup.device.runtime().api();
    let mode = hip_sys::hipStreamCaptureMode::hipStreamCaptureModeRelaxed;
    let room = Room::new(&setup);
    let raw = setup.stream.raw();
    // SAFETY: the stream is alive, and this thread ends what it begins.
    let begun = unsafe { api.hipStreamBeginCapture.unwrap()(raw, mode) };
    assert_eq!(begun, hip_sys::hipError_t::hipSuccess);
    let outcome = room.refuses(&setup.blas);
    let mut graph = std::ptr::null_mut();
    // Memory that was dropped meanwhile waited for the stream, which spoils a capture by its handle, so there may be no
    // graph. SAFETY: as above; writes one handle, which is given back.
    unsafe {
        if api.hipStreamEndCapture.unwrap()(raw, &mut graph) == hip_sys::hipError_t::hipSuccess {
            let _ = api.hipGraphDestroy.unwrap()(graph);
        }
    }
    outcome.unwrap();
}

#[test]
fn a_capture_of_a_foreign_stream_by_its_owner_takes_in_no_call() {
    let setup = setup();
    let api = *setup.device.runtime().api();
    let mut raw = std::ptr::null_mut();
    setup.device.make_current().unwrap();
    // SAFETY: a place for one handle, and a flag of HIP.
    let made = unsafe { api.hipStreamCreateWithFlags.unwrap()(&mut raw, hip_sys::hipStreamNonBlocking) };
    assert_eq!(made, hip_sys::hipError_t::hipSuccess);
    // SAFETY: a live stream of this device, which is never destroyed.
    let stream = unsafe { hip::Stream::from_raw(&setup.device, raw, ()) }.unwrap();
    let blas = Handle::new(setup.blas.library(), &stream).unwrap();
    let mut x = setup.device.alloc_from(&stream, &[3.0_f32]).unwrap();
    let mut a = setup.device.alloc_from(&stream, &A).unwrap();
    let mode = hip_sys::hipStreamCaptureMode::hipStreamCaptureModeRelaxed;
    // SAFETY: a live stream.
    let begun = unsafe { api.hipStreamBeginCapture.unwrap()(raw, mode) };
    assert_eq!(begun, hip_sys::hipError_t::hipSuccess);
    let error = blas.scal(2.0, x.on_mut(&stream).unwrap().into()).unwrap_err();
    assert!(matches!(error, Error::Hip(hip::Error::NotSupported { .. })), "{error}");
    let square = Matrix::new(&mut a, 2, 2, 2);
    assert!(solver::potrf(&blas, Fill::Lower, square).is_err());
    let mut graph = std::ptr::null_mut();
    // SAFETY: the stream captures; a place for one handle.
    let ended = unsafe { api.hipStreamEndCapture.unwrap()(raw, &mut graph) };
    assert_eq!(ended, hip_sys::hipError_t::hipSuccess);
    blas.scal(5.0, x.on_mut(&stream).unwrap().into()).unwrap();
    assert_eq!(setup.download(&x), [15.0]);
}
