//! Calls that only query their workspace size return no results.

mod common;

use std::cell::RefCell;

use common::{Setup, setup};
use hip::DeviceBuffer;
use rocblas::solver::{self, Lu, Mirror};
use rocblas::{Error, Fill, Handle, Matrix, Op, Result, Vector};

const N: usize = 3;
/// Symmetric, with off-diagonal pivots in the first step, so that rows are exchanged.
const A: [f32; N * N] = [1.0, 4.0, 2.0, 4.0, 1.0, 3.0, 2.0, 3.0, 9.0];

fn square(a: &mut DeviceBuffer<f32>) -> Matrix<&mut DeviceBuffer<f32>> {
    Matrix::new(a, N, N, N)
}

fn missing<T>(outcome: Result<T>) {
    match outcome {
        Err(error @ Error::NotComputed { .. }) => assert!(!error.to_string().contains('\n')),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("there is no such result"),
    }
}

/// The result of `call` during a size query.
fn asked<'a, R>(setup: &'a Setup, call: impl FnOnce(&'a Handle) -> Result<R>) -> R {
    let made = RefCell::new(None);
    let asked = setup.blas.workspace_needed(|blas| {
        *made.borrow_mut() = Some(call(blas)?);
        Ok(())
    });
    asked.unwrap();
    made.take().unwrap()
}

/// Leaves another matrix's pivots in the handle's pool of integers, and an `info` that reports success.
fn another_matrix(setup: &Setup) {
    let mut other = setup.upload(&A);
    let lu = solver::getrf(&setup.blas, square(&mut other)).unwrap();
    lu.check().unwrap();
}

fn nothing_of<'a>(
    setup: &'a Setup,
    make: impl Fn(&'a Handle, Matrix<&'a mut DeviceBuffer<f32>>) -> Result<Lu<'a, f32>>,
    room: &'a mut [DeviceBuffer<f32>; 2],
) {
    let mut b = setup.upload(&[1.0_f32; N]);
    let [first, second] = room;
    another_matrix(setup);
    let lu = asked(setup, |blas| make(blas, square(first)));
    missing(lu.check());
    missing(lu.failures());
    if let Some(pivots) = lu.pivots() {
        missing(pivots.to_vec());
        missing(pivots.slice());
    }
    let right = Matrix::new(b.on_mut(&setup.stream).unwrap(), N, 1, N);
    missing(solver::getrs(&setup.blas, Op::None, &lu, right));
    let mut c = setup.upload(&[0.0_f32; N * N]);
    missing(solver::getri_outofplace(&setup.blas, &lu, square(&mut c)));
    // Further queries are fine: they compute nothing either.
    let info = asked(setup, |blas| solver::getri_outofplace(blas, &lu, square(&mut c)));
    missing(info.check());
    missing(solver::getri(&setup.blas, lu));
    let lu = asked(setup, |blas| make(blas, square(second)));
    missing(lu.into_info().check());
    assert_eq!(setup.download(&b), [1.0; N]);
    assert_eq!(setup.download(&c), [0.0; N * N]);
}

#[test]
fn factors_from_a_size_query_are_refused() {
    let setup = setup();
    let room = || [setup.upload(&A), setup.upload(&A)];
    let mut rooms = [room(), room(), room()];
    let [exchanged, plain, solved] = &mut rooms;
    nothing_of(&setup, solver::getrf, exchanged);
    nothing_of(&setup, solver::getrf_npvt, plain);
    let right = RefCell::new(setup.upload(&[1.0_f32; N]));
    nothing_of(
        &setup,
        |blas, a| {
            let mut right = right.borrow_mut();
            solver::gesv(blas, a, Matrix::new(&mut *right, N, 1, N))
        },
        solved,
    );
    for matrix in rooms.iter().flatten() {
        assert_eq!(setup.download(matrix), A);
    }
    assert_eq!(setup.download(&right.into_inner()), [1.0; N]);
}

#[test]
fn a_cholesky_factor_from_a_size_query_is_refused() {
    let setup = setup();
    let mirror = Mirror::<f32>::new(&setup.device).unwrap();
    let fill = Fill::Lower;
    let mut room: Vec<_> = (0..5).map(|_| setup.upload(&A)).collect();
    let mut b = setup.upload(&[1.0_f32; N]);
    {
        let [a, again, solved, inverse, chain] = &mut room[..] else {
            unreachable!()
        };
        let factor = asked(&setup, |blas| solver::potrf(blas, fill, square(a)));
        missing(factor.check());
        missing(factor.failures());
        let right = Matrix::new(b.on_mut(&setup.stream).unwrap(), N, 1, N);
        missing(solver::potrs(&setup.blas, &factor, right));
        missing(solver::potri(&setup.blas, factor));
        let factor = asked(&setup, |blas| solver::potrf(blas, fill, square(again)));
        missing(factor.into_info().unwrap().check());
        let factor = asked(&setup, |blas| {
            let right = Matrix::new(b.on_mut(&setup.stream)?, N, 1, N);
            solver::posv(blas, fill, square(solved), right)
        });
        missing(factor.check());
        let info = asked(&setup, |blas| {
            solver::hermitian_inverse(blas, &mirror, fill, square(inverse))
        });
        missing(info.check());
        let inverse = asked(&setup, |blas| {
            solver::potri(blas, solver::potrf(blas, fill, square(chain))?)
        });
        missing(inverse.failures());
        missing(inverse.complete(&mirror).unwrap().check());
    }
    for matrix in &room {
        assert_eq!(setup.download(matrix), A, "nothing is computed or mirrored");
    }
    assert_eq!(setup.download(&b), [1.0; N]);
}

#[test]
fn a_size_query_does_not_mirror_the_matrix() {
    let setup = setup();
    let mirror = Mirror::<f32>::new(&setup.device).unwrap();
    // Not symmetric: a mirrored triangle would show.
    let skewed = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    let mut a = setup.upload(&skewed);
    drop(asked(&setup, |blas| {
        solver::hermitian_inverse(blas, &mirror, Fill::Lower, square(&mut a))
    }));
    assert_eq!(setup.download(&a), skewed);
}

#[test]
fn a_size_query_does_not_write_an_empty_sum() {
    let setup = setup();
    let stream = &setup.stream;
    let x = setup.upload(&[1.0_f32; 0]);
    let mut sum = setup.upload(&[7.0_f32]);
    asked(&setup, |blas| {
        let x = Vector::from(&x);
        blas.dot_into(x, x, sum.on_mut(stream)?)
    });
    assert_eq!(setup.download(&sum), [7.0]);
    let (x, result) = (Vector::from(&x), sum.on_mut(stream).unwrap());
    setup.blas.dot_into(x, x, result).unwrap();
    assert_eq!(setup.download(&sum), [0.0]);
}

#[test]
fn a_size_query_status_outside_a_query_is_an_error() {
    let setup = setup();
    let stream = &setup.stream;
    let api = setup.blas.library().api();
    let mut x = setup.upload(&[2.0_f32]);
    let mut a = setup.upload(&A);
    // SAFETY: the handle is alive.
    let begun = unsafe { api.rocblas_start_device_memory_size_query.unwrap()(setup.blas.raw()) };
    assert_eq!(begun, rocblas_sys::rocblas_status::rocblas_status_success);
    let scaled = setup.blas.scal(2.0, x.on_mut(stream).unwrap().into());
    let factorised = solver::getrf(&setup.blas, square(&mut a)).map(drop);
    for outcome in [scaled, factorised] {
        let name = "rocblas_status_size_unchanged";
        assert!(
            matches!(&outcome, Err(Error::Status { name: found, .. }) if *found == name),
            "{outcome:?}"
        );
    }
    let mut bytes = 0;
    // SAFETY: the handle is alive; writes one size.
    let ended = unsafe { api.rocblas_stop_device_memory_size_query.unwrap()(setup.blas.raw(), &mut bytes) };
    assert_eq!(ended, rocblas_sys::rocblas_status::rocblas_status_success);
    setup.blas.scal(2.0, x.on_mut(stream).unwrap().into()).unwrap();
    assert_eq!(setup.download(&x), [4.0]);
}

#[test]
fn a_graph_of_calls_that_only_query_is_refused() {
    let setup = setup();
    let mut a = setup.upload(&A);
    let asked = setup.blas.workspace_needed(|blas| {
        missing(blas.capture(|_| Ok(())));
        blas.scal(2.0_f32, a.on_mut(&setup.stream)?.into())
    });
    asked.unwrap();
    let graph = setup
        .blas
        .capture(|blas| blas.scal(2.0_f32, a.on_mut(&setup.stream)?.into()));
    assert_eq!(graph.unwrap().node_count().unwrap(), 1);
}
