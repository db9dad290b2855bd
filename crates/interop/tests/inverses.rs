//! rocSOLVER on shared memory: inverses and solutions in place, and what is known of each matrix.

mod common;

use interop::{Bridge, Options, Shared};
use num_complex::Complex;
use rocblas::solver::{self, Mirror};
use rocblas::{Error, Fill, Handle, Matrix, Op, PointerArray};

type C32 = Complex<f32>;
type C64 = Complex<f64>;

struct Rig {
    bridge: Bridge,
    stream: hip::Stream,
    handle: Handle,
}

fn rig() -> Rig {
    let bridge = Bridge::open(&common::selection(), &Options::default())
        .expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
    let stream = bridge.stream().expect("a stream");
    let handle = Handle::new(&bridge.blas().expect("rocBLAS"), &stream).expect("a handle");
    Rig { bridge, stream, handle }
}

impl Rig {
    fn filled(&self, numbers: &[C32]) -> Shared<C32> {
        let mut shared = self.bridge.alloc(numbers.len()).expect("memory");
        shared.upload(numbers).expect("an upload");
        shared
    }
}

fn numbers(len: usize, seed: u64) -> Vec<C32> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| C32::new(next(), next())).collect()
}

/// Hermitian, and far from singular.
fn hermitian(n: usize, seed: u64) -> Vec<C32> {
    let mut a = numbers(n * n, seed);
    for j in 0..n {
        for i in 0..j {
            a[i + j * n] = a[j + i * n].conj();
        }
        a[j + j * n] = C32::new(2.0 * n as f32, 0.0);
    }
    a
}

fn general(n: usize, seed: u64) -> Vec<C32> {
    let mut a = numbers(n * n, seed);
    // The great entries are off the diagonal, so that rows have to be exchanged.
    for j in 0..n {
        a[(j + 1) % n + j * n] += C32::new(2.0 * n as f32, 0.0);
    }
    a
}

fn wide(v: C32) -> C64 {
    C64::new(v.re.into(), v.im.into())
}

/// The greatest difference between `a * x` and `b`, all of `n` rows.
fn residual(a: &[C32], x: &[C32], b: impl Fn(usize, usize) -> C64, n: usize) -> f64 {
    let mut worst = 0.0_f64;
    for (j, x) in x.chunks(n).enumerate() {
        for i in 0..n {
            let sum: C64 = (0..n).map(|l| wide(a[i + l * n]) * wide(x[l])).sum();
            worst = worst.max((sum - b(i, j)).norm());
        }
    }
    worst
}

fn identity(i: usize, j: usize) -> C64 {
    C64::new(if i == j { 1.0 } else { 0.0 }, 0.0)
}

fn downloaded(shared: &Shared<C32>) -> Vec<C32> {
    let mut all = vec![C32::default(); shared.len()];
    shared.download(&mut all).expect("a download");
    all
}

#[test]
fn a_batch_of_341_x_341_is_inverted_in_place_and_tells_of_each_matrix_alone() {
    const N: usize = 341;
    const COUNT: usize = 4;
    const BAD: usize = 2;
    let rig = rig();
    let mirror = Mirror::new(rig.bridge.hip_device()).expect("a kernel");
    let mut data: Vec<C32> = (0..COUNT as u64).flat_map(|i| hermitian(N, i)).collect();
    // One that is not positive definite, from minor 8 on.
    data[BAD * N * N + 7 * (N + 1)] = C32::new(-1.0, 0.0);
    let mut a = rig.filled(&data);
    let before = rig.bridge.meter().snapshot();
    let batch = Matrix::new(&mut a, N, N, N).batch(N * N, COUNT);
    let found = solver::hermitian_inverse(&rig.handle, &mirror, Fill::Lower, batch).expect("queued");
    let failures = found.failures().expect("an answer");
    let counts = rig.bridge.meter().snapshot().since(&before);
    assert_eq!(counts.data_set, 0, "{counts:?}");
    assert_eq!(counts.control, 2 * 4 * COUNT as u64, "two integers a matrix");
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].matrix, BAD);
    let error = found.check().expect_err("one failed").to_string();
    assert!(
        error.starts_with("matrix 2 of 4: ") && error.contains("order 8"),
        "{error}"
    );
    let inverse = downloaded(&a);
    for i in (0..COUNT).filter(|&i| i != BAD) {
        let matrix = i * N * N..(i + 1) * N * N;
        let off = residual(&data[matrix.clone()], &inverse[matrix], identity, N);
        assert!(off < 1e-4, "matrix {i} is off by {off}");
    }
}

#[test]
fn a_hermitian_inverse_never_looks_at_the_triangle_that_is_not_named() {
    let rig = rig();
    let mirror = Mirror::new(rig.bridge.hip_device()).expect("a kernel");
    for (n, count) in [(1, 2), (2, 3), (33, 5), (341, 2)] {
        for fill in [Fill::Lower, Fill::Upper] {
            let data: Vec<C32> = (0..count).flat_map(|i| hermitian(n, i)).collect();
            let mut given = data.clone();
            for (index, entry) in given.iter_mut().enumerate() {
                let (i, j) = (index % n, index / n % n);
                if i != j && (i > j) == (fill == Fill::Upper) {
                    *entry = C32::new(f32::NAN, f32::NAN);
                }
            }
            let mut a = rig.filled(&given);
            let count = count as usize;
            let batch = Matrix::new(&mut a, n, n, n).batch(n * n, count);
            let found = solver::hermitian_inverse(&rig.handle, &mirror, fill, batch);
            found.expect("queued").check().expect("inverses");
            let inverse = downloaded(&a);
            // the first and the last, since a large one takes long to check
            for matrix in [0, count - 1] {
                let at = matrix * n * n..(matrix + 1) * n * n;
                let off = residual(&data[at.clone()], &inverse[at], identity, n);
                assert!(off < 1e-4, "matrix {matrix} of {n}, {fill:?}, is off by {off}");
            }
        }
    }
}

#[test]
fn every_form_of_a_general_inverse_is_right() {
    let rig = rig();
    let (n, size, ld) = (17, 17 * 17, 20);
    let data: Vec<C32> = (0..3).flat_map(|i| general(n, i)).collect();
    let is_inverse = |place: usize, inverse: &[C32]| {
        let off = residual(&data[place * size..][..size], inverse, identity, n);
        assert!(off < 1e-4, "matrix {place} is off by {off}");
    };

    // One, with gaps between its columns and something in front.
    let mut apart = vec![C32::default(); 5 + ld * n];
    for (column, to) in data[..size].chunks(n).zip(apart[5..].chunks_mut(ld)) {
        to[..n].copy_from_slice(column);
    }
    let mut one = rig.filled(&apart);
    let matrix = Matrix::new(&mut one, n, n, ld).at(5);
    let found = solver::general_inverse(&rig.handle, matrix).expect("queued");
    found.check().expect("regular");
    let dense: Vec<C32> = downloaded(&one)[5..]
        .chunks(ld)
        .flat_map(|column| column[..n].to_vec())
        .collect();
    is_inverse(0, &dense);

    let mut strided = rig.filled(&data);
    let batch = Matrix::new(&mut strided, n, n, n).batch(size, 3);
    let found = solver::general_inverse(&rig.handle, batch).expect("queued");
    found.check().expect("regular");
    let inverses = downloaded(&strided);
    (0..3).for_each(|i| is_inverse(i, &inverses[i * size..][..size]));

    // Only the last and the first, and the one between them stays.
    let mut anywhere = rig.filled(&data);
    let offsets = PointerArray::at_offsets([2 * size, 0], n, n, n);
    for round in 0..2 {
        let found = solver::general_inverse(&rig.handle, offsets.of(&mut anywhere)).expect("queued");
        found.check().expect("regular");
        let now = downloaded(&anywhere);
        assert_eq!(now[size..2 * size], data[size..2 * size]);
        if round == 0 {
            is_inverse(2, &now[2 * size..]);
            is_inverse(0, &now[..size]);
        } else {
            // The inverse of the inverse.
            let off = |i: usize| (wide(now[i]) - wide(data[i])).norm();
            assert!((0..size).all(|i| off(i) < 1e-2));
        }
    }
}

/// `herk` leaves the other triangle of a covariance as it was (NaN here). No way of inverting the covariance reads it.
#[test]
fn a_covariance_of_one_triangle_has_a_whole_inverse() {
    let rig = rig();
    let (n, segments) = (12, 40);
    let snapshots = rig.filled(&numbers(n * segments, 7));
    let mirror = Mirror::new(rig.bridge.hip_device()).expect("HIPRTC");
    for fill in [Fill::Lower, Fill::Upper] {
        let covariance = || {
            let mut covariance = rig.filled(&vec![C32::new(f32::NAN, 1e30); n * n]);
            let (from, to) = (
                Matrix::new(&snapshots, n, segments, n),
                Matrix::new(&mut covariance, n, n, n),
            );
            let scale = 1.0 / segments as f32;
            rig.handle.herk(fill, Op::None, scale, from, 0.0, to).expect("queued");
            covariance
        };
        let mut whole = covariance();
        mirror
            .complete(&rig.handle, fill, Matrix::new(&mut whole, n, n, n))
            .expect("queued");
        let whole = downloaded(&whole);
        let is_inverse = |inverse: &[C32]| {
            let off = residual(&whole, inverse, identity, n);
            assert!(off < 1e-4, "{fill:?}: off by {off}");
        };

        let mut at_once = covariance();
        let found =
            solver::hermitian_inverse(&rig.handle, &mirror, fill, Matrix::new(&mut at_once, n, n, n)).expect("queued");
        found.check().expect("positive definite");
        is_inverse(&downloaded(&at_once));

        let mut by_steps = covariance();
        let factor = solver::potrf(&rig.handle, fill, Matrix::new(&mut by_steps, n, n, n)).expect("queued");
        let triangle = solver::potri(&rig.handle, factor).expect("queued");
        assert_eq!(triangle.fill(), fill);
        triangle
            .complete(&mirror)
            .expect("queued")
            .check()
            .expect("positive definite");
        is_inverse(&downloaded(&by_steps));
    }
}

#[test]
fn systems_are_solved_and_a_singular_one_is_told() {
    let rig = rig();
    let (n, nrhs) = (12, 3);
    let (a, b) = (general(n, 4), numbers(n * nrhs, 6));
    let (mut factors, mut x) = (rig.filled(&a), rig.filled(&b));
    let to = Matrix::new(&mut x, n, nrhs, n);
    let found = solver::gesv(&rig.handle, Matrix::new(&mut factors, n, n, n), to).expect("queued");
    found.check().expect("regular");
    let off = residual(&a, &downloaded(&x), |i, j| wide(b[i + j * n]), n);
    assert!(off < 1e-4, "off by {off}");

    let a = hermitian(n, 5);
    let (mut factor, mut x) = (rig.filled(&a), rig.filled(&b));
    let (from, to) = (Matrix::new(&mut factor, n, n, n), Matrix::new(&mut x, n, nrhs, n));
    let found = solver::posv(&rig.handle, Fill::Upper, from, to).expect("queued");
    found.check().expect("positive definite");
    let off = residual(&a, &downloaded(&x), |i, j| wide(b[i + j * n]), n);
    assert!(off < 1e-4, "off by {off}");

    let mut zero = rig.filled(&vec![C32::default(); n * n]);
    let found = solver::general_inverse(&rig.handle, Matrix::new(&mut zero, n, n, n)).expect("queued");
    let error = found.check().expect_err("zero has no inverse");
    assert!(matches!(error, Error::Singular { pivot: 1 }), "{error}");
    rig.stream.synchronize().expect("no fault");
}

#[test]
fn the_solution_does_not_lie_where_the_factors_do() {
    let rig = rig();
    let mut working = rig.bridge.report().working();
    if !working.any(|route| route == interop::Route::SvmCoarse) {
        return common::skipped("OpenCL's SVM means nothing to HIP here");
    }
    let n = 6;
    let owner = clmgr::SvmBuffer::<C32>::coarse(rig.bridge.cl_context(), 2 * n * n);
    let owner = std::sync::Arc::new(owner.expect("memory"));
    let begin = owner.as_ptr();
    let adopt = |offset: usize, len: usize| {
        let grain = clmgr::SvmGrain::Coarse;
        // SAFETY: the memory lives as long as its owner, and the stretch lies in it; calls that would
        // use both at once are what is refused.
        unsafe { rig.bridge.adopt_svm(begin.add(offset), len, grain, owner.clone()) }.expect("adopted")
    };
    // A model of a device is told of each allocation once.
    let _all = adopt(0, 2 * n * n);
    let mut a = adopt(0, n * n);
    for (offset, meets) in [(n * n - 1, true), (n * n, false)] {
        let mut b = adopt(offset, n * n);
        b.upload(&numbers(n * n, 8)).expect("an upload");
        a.upload(&hermitian(n, 7)).expect("an upload");
        let check = |name: &str, result: rocblas::Result<solver::Info>| match result {
            Err(error) => {
                assert!(meets, "{error}");
                assert_eq!(
                    error.to_string(),
                    format!(
                        "{name}: b shares memory with a; use a separate buffer for the result (inputs may share one)"
                    )
                );
            }
            Ok(found) => {
                assert!(!meets, "{name}");
                found.check().expect("regular");
            }
        };
        let (from, to) = (Matrix::new(&mut a, n, n, n), Matrix::new(&mut b, n, n, n));
        check("gesv", solver::gesv(&rig.handle, from, to).map(solver::Lu::into_info));
        a.upload(&hermitian(n, 7)).expect("an upload");
        let (from, to) = (Matrix::new(&mut a, n, n, n), Matrix::new(&mut b, n, n, n));
        check(
            "posv",
            solver::posv(&rig.handle, Fill::Upper, from, to)
                .map(|factor| factor.into_info().expect("it was made here")),
        );
    }
}

#[test]
fn what_is_not_square_or_does_not_go_together_is_refused() {
    let rig = rig();
    let (mut a, mut b) = (rig.filled(&numbers(12, 1)), rig.filled(&numbers(12, 2)));
    let error = solver::general_inverse(&rig.handle, Matrix::new(&mut a, 3, 4, 3)).expect_err("not square");
    let text = error.to_string();
    assert!(text.contains("3 x 4") && !text.contains('\n'), "{text}");
    let (from, to) = (Matrix::new(&mut a, 3, 3, 3), Matrix::new(&mut b, 4, 1, 4));
    let error = solver::gesv(&rig.handle, from, to).expect_err("other rows").to_string();
    assert!(error.contains("4 x 1"), "{error}");
    let error = solver::general_inverse(&rig.handle, Matrix::new(&mut a, 4, 4, 4)).expect_err("too large");
    assert!(error.to_string().starts_with("getrf: a: "), "{error}");
}

#[test]
fn the_other_memory_model_agrees() {
    common::once_more_where_the_host_cannot_touch_device_memory("the_other_memory_model_agrees", &[]);
}
