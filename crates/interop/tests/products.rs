//! rocBLAS on shared memory: each call comes after OpenCL's work, is right, and copies no data.

mod common;

use std::sync::OnceLock;

use interop::{Bridge, Options, Route, Shared};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Error, Fill, Handle, Matrix, OnDevice, Op, PointerArray, Vector};

type C32 = Complex<f32>;
type C64 = Complex<f64>;

const ONE: C32 = C32::new(1.0, 0.0);
const ZERO: C32 = C32::new(0.0, 0.0);

/// Long enough that a product which did not wait would see old numbers.
const CL: &str = "
__kernel void turn(__global float2 *x, uint rounds)
{
    size_t i = get_global_id(0);
    float2 v = x[i];
    for (uint n = 0; n < rounds; ++n)
        v = (float2)(-v.y, v.x);
    x[i] = v;
}";

struct Rig {
    bridge: Bridge,
    turn: clmgr::Kernel,
    queue: clmgr::Queue,
    stream: hip::Stream,
}

impl Rig {
    fn common() -> &'static Self {
        static RIG: OnceLock<Rig> = OnceLock::new();
        RIG.get_or_init(|| {
            let bridge = Bridge::open(&common::selection(), &Options::default())
                .expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
            let program = bridge.programs().get(CL, "").expect("a program");
            Self {
                turn: program.kernel("turn").expect("a kernel"),
                queue: bridge.queue().expect("a queue"),
                stream: bridge.stream().expect("a stream"),
                bridge,
            }
        })
    }

    fn handle(&self) -> Handle {
        Handle::new(&self.bridge.blas().expect("rocBLAS"), &self.stream).expect("a handle")
    }

    /// A buffer whose numbers OpenCL has multiplied by i, not yet waited for.
    fn turned(&self, route: Route, numbers: &[C32]) -> (Shared<C32>, Vec<C64>) {
        let mut shared = self.filled(route, numbers);
        let guard = shared.cl_mut(&self.queue).expect("access for OpenCL");
        let args = [guard.arg(), clmgr::Arg::scalar(&4001_u32)];
        // SAFETY: `turn` takes a buffer of as many numbers as work-items, and a uint.
        unsafe { self.turn.launch(&self.queue, clmgr::NdRange::d1(numbers.len()), &args) }.expect("a launch");
        let expected = numbers.iter().map(|v| wide(*v) * C64::I).collect();
        (shared, expected)
    }

    fn filled(&self, route: Route, numbers: &[C32]) -> Shared<C32> {
        let shared = self.bridge.alloc_on(route, numbers.len());
        let mut shared: Shared<C32> = shared.expect("memory");
        shared.upload(numbers).expect("an upload");
        shared
    }

    fn routes(&self) -> Vec<Route> {
        self.bridge.report().working().collect()
    }
}

fn wide(v: C32) -> C64 {
    C64::new(v.re.into(), v.im.into())
}

fn numbers(len: usize, seed: u64) -> Vec<C32> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| C32::new(next(), next())).collect()
}

fn stored(op: Op, rows: usize, cols: usize) -> (usize, usize) {
    match op {
        Op::None => (rows, cols),
        _ => (cols, rows),
    }
}

fn element(op: Op, data: &[C64], ld: usize, i: usize, j: usize) -> C64 {
    match op {
        Op::None => data[i + j * ld],
        Op::Transpose => data[j + i * ld],
        Op::ConjTranspose => data[j + i * ld].conj(),
    }
}

/// Of an m x n product, column after column.
fn product(
    (op_a, a, lda): (Op, &[C64], usize),
    (op_b, b, ldb): (Op, &[C64], usize),
    [m, n, k]: [usize; 3],
) -> Vec<C64> {
    let mut c = Vec::new();
    for j in 0..n {
        for i in 0..m {
            let of = |l| element(op_a, a, lda, i, l) * element(op_b, b, ldb, l, j);
            c.push((0..k).map(of).sum());
        }
    }
    c
}

fn check(found: &[C32], expected: &[C64], k: usize) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (wide(*found) - expected).norm();
        let most = 4.0 * (k + 1) as f64 * f64::from(f32::EPSILON) * 2.0;
        prop_assert!(off <= most, "{place}: {found} instead of {expected}");
    }
    Ok(())
}

fn downloaded(shared: &Shared<C32>) -> Vec<C32> {
    let mut all = vec![ZERO; shared.len()];
    shared.download(&mut all).expect("a download");
    all
}

fn any_op() -> impl Strategy<Value = Op> {
    prop::sample::select(vec![Op::None, Op::Transpose, Op::ConjTranspose])
}

proptest! {
    #![proptest_config(common::cases(60))]

    #[test]
    fn a_product_after_opencl_is_that_of_what_opencl_wrote(
        route in prop::sample::select(Rig::common().routes()),
        ops in (any_op(), any_op()),
        m in 1_usize..24, n in 1_usize..24, k in 1_usize..24,
        gaps in prop::array::uniform3(0_usize..3),
        offsets in prop::array::uniform3(0_usize..5),
        seed in any::<u64>(),
    ) {
        let rig = Rig::common();
        let (a_shape, b_shape) = (stored(ops.0, m, k), stored(ops.1, k, n));
        let [lda, ldb, ldc] = [a_shape.0 + gaps[0], b_shape.0 + gaps[1], m + gaps[2]];
        let (a, a_now) = rig.turned(route, &numbers(offsets[0] + lda * a_shape.1, seed));
        let (b, b_now) = rig.turned(route, &numbers(offsets[1] + ldb * b_shape.1, seed ^ 7));
        let untouched = numbers(offsets[2] + ldc * n, 3);
        let mut c = rig.filled(route, &untouched);
        let before = rig.bridge.meter().snapshot();
        rig.handle().gemm(ops.0,
            ops.1,
            ONE,
            Matrix::new(&a, a_shape.0, a_shape.1, lda).at(offsets[0]),
            Matrix::new(&b, b_shape.0, b_shape.1, ldb).at(offsets[1]),
            ZERO,
            Matrix::new(&mut c, m, n, ldc).at(offsets[2]),
        ).expect("a product");
        // Other tests count in the same meter; what is staged is counted there, too.
        let _ = before;
        let expected = product(
            (ops.0, &a_now[offsets[0]..], lda),
            (ops.1, &b_now[offsets[1]..], ldb),
            [m, n, k],
        );
        let found = downloaded(&c);
        let column = |j: usize| offsets[2] + j * ldc..offsets[2] + j * ldc + m;
        let inside: Vec<C32> = (0..n).flat_map(|j| found[column(j)].to_vec()).collect();
        check(&inside, &expected, k)?;
        for (place, (now, then)) in found.iter().zip(&untouched).enumerate() {
            let is_in = (0..n).any(|j| column(j).contains(&place));
            prop_assert!(is_in || now == then, "element {} of the gaps was written", place);
        }
    }

    #[test]
    fn batches_at_strides_and_offsets_are_the_products_of_their_matrices(
        route in prop::sample::select(Rig::common().routes()),
        n in 1_usize..9, count in 1_usize..6,
        order in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let rig = Rig::common();
        let size = n * n;
        let (a, a_now) = rig.turned(route, &numbers(size * count, seed));
        let (b, b_now) = rig.turned(route, &numbers(size, seed ^ 9));
        let mut c = rig.filled(route, &vec![ZERO; size * count]);
        rig.handle().gemm_strided_batched(Op::None, Op::ConjTranspose, ONE,
            Matrix::new(&a, n, n, n).batch(size, count),
            Matrix::new(&b, n, n, n).batch(0, count),
            ZERO,
            Matrix::new(&mut c, n, n, n).batch(size, count),
        ).expect("products");
        let of = |i: usize| product(
            (Op::None, &a_now[i * size..], n), (Op::ConjTranspose, &b_now, n), [n; 3],
        );
        let expected: Vec<C64> = (0..count).flat_map(of).collect();
        check(&downloaded(&c), &expected, n)?;

        // The same by pointers, the results in another order.
        let first = order.index(count);
        let place = |i: usize| (i + first) % count * size;
        let at_a = PointerArray::at_offsets((0..count).map(|i| i * size).collect::<Vec<_>>(), n, n, n);
        let at_b = PointerArray::at_offsets(vec![0; count], n, n, n);
        let at_c = PointerArray::at_offsets((0..count).map(place).collect::<Vec<_>>(), n, n, n);
        rig.handle().gemm_batched(Op::None, Op::ConjTranspose, ONE,
            at_a.of(&a), at_b.of(&b), ZERO, at_c.of(&mut c),
        ).expect("products");
        let found = downloaded(&c);
        for i in 0..count {
            check(&found[place(i)..place(i) + size], &of(i), n)?;
        }
    }
}

#[test]
fn a_covariance_needs_one_input_buffer_and_copies_nothing() {
    let bridge = Bridge::open(&common::selection(), &Options::default()).expect("a bridge");
    let stream = bridge.stream().expect("a stream");
    let handle = Handle::new(&bridge.blas().expect("rocBLAS"), &stream).expect("a handle");
    let (n, k) = (5, 40);
    let input = numbers(n * k, 5);
    let mut a = bridge.alloc::<C32>(n * k).expect("memory");
    a.upload(&input).expect("an upload");
    let (mut whole, mut lower) = (
        bridge.alloc::<C32>(n * n).expect("memory"),
        bridge.alloc::<C32>(n * n).expect("memory"),
    );
    lower.upload(&[ZERO; 25]).expect("an upload");
    let before = bridge.meter().snapshot();
    let samples = Matrix::new(&a, n, k, n);
    let (none, adjoint) = (Op::None, Op::ConjTranspose);
    let c = Matrix::new(&mut whole, n, n, n);
    handle
        .gemm(none, adjoint, ONE, samples, samples, ZERO, c)
        .expect("a product");
    let c = Matrix::new(&mut lower, n, n, n);
    handle.herk(Fill::Lower, none, 1.0, samples, 0.0, c).expect("a product");
    stream.synchronize().expect("no fault");
    let counts = bridge.meter().snapshot().since(&before);
    assert_eq!((counts.data_set, counts.control), (0, 0), "{counts:?}");
    let wide: Vec<C64> = input.iter().map(|v| wide(*v)).collect();
    let expected = product((none, &wide, n), (adjoint, &wide, n), [n, n, k]);
    check(&downloaded(&whole), &expected, k).expect("right");
    let found = downloaded(&lower);
    for j in 0..n {
        check(&found[j * n + j..(j + 1) * n], &expected[j * n + j..(j + 1) * n], k).expect("right");
        assert_eq!(found[j * n..j * n + j], vec![ZERO; j], "the upper triangle");
    }
}

#[test]
fn elements_that_are_narrower_than_the_sum_are_taken_by_gemm_ex() {
    let rig = Rig::common();
    let narrow = half::f16::from_f32;
    let mut a = rig.bridge.alloc::<half::f16>(6).expect("memory");
    let input = [1.0, 2.0, 3.0, 4.0, 5.0, 2048.0].map(narrow);
    a.upload(&input).expect("an upload");
    let mut c = rig.bridge.alloc::<f32>(4).expect("memory");
    let input = Matrix::new(&a, 2, 3, 2);
    let output = Matrix::new(&mut c, 2, 2, 2);
    let (none, transpose) = (Op::None, Op::Transpose);
    rig.handle()
        .gemm_ex(none, transpose, 1.0, input, input, 0.0, output)
        .expect("a product");
    let mut found = [0.0; 4];
    c.download(&mut found).expect("a download");
    // The last one is more than a narrow number holds.
    assert_eq!(found, [35.0, 10254.0, 10254.0, 4_194_324.0]);
}

#[test]
fn addresses_are_sent_once_for_as_long_as_the_memory_stays() {
    if !common::on_host_or_skip("moves memory between direct routes") {
        return;
    }
    let bridge = Bridge::open(&common::selection(), &Options::default()).expect("a bridge");
    let stream = bridge.stream().expect("a stream");
    let handle = Handle::new(&bridge.blas().expect("rocBLAS"), &stream).expect("a handle");
    let mut a = bridge.alloc::<C32>(8).expect("memory");
    a.upload(&[ONE; 8]).expect("an upload");
    let mut c = bridge.alloc::<C32>(8).expect("memory");
    let at_a = PointerArray::at_offsets([4, 0], 2, 2, 2);
    let at_b = PointerArray::at_offsets([0, 0], 2, 2, 2);
    let at_c = PointerArray::at_offsets([0, 4], 2, 2, 2);
    let mut sent = |a: &Shared<C32>| {
        let before = bridge.meter().snapshot();
        let (a, b) = (at_a.of(a), at_b.of(a));
        let (none, c) = (Op::None, at_c.of(&mut c));
        handle.gemm_batched(none, none, ONE, a, b, ZERO, c).expect("products");
        stream.synchronize().expect("no fault");
        let counts = bridge.meter().snapshot().since(&before);
        assert_eq!(counts.data_set, 0);
        counts.control
    };
    assert_eq!(sent(&a), 3 * 2 * 8, "three arrays of two addresses");
    assert_eq!(sent(&a), 0);
    a.move_to(Route::HipPointer).expect("moved");
    assert_eq!(sent(&a), 2 * 2 * 8, "the inputs are elsewhere");
    assert_eq!(sent(&a), 0);
}

#[test]
fn what_does_not_fit_is_refused_by_name_before_the_library_is_called() {
    let rig = Rig::common();
    let handle = rig.handle();
    let a = rig.filled(rig.bridge.route(), &numbers(6, 1));
    let mut c = rig.filled(rig.bridge.route(), &[ONE; 4]);
    let (none, adjoint) = (Op::None, Op::ConjTranspose);
    let mut gemm = |a: Matrix<&Shared<C32>>, b: Matrix<&Shared<C32>>, [m, n, ldc, at]: [usize; 4]| {
        let c = Matrix::new(&mut c, m, n, ldc).at(at);
        let error = handle.gemm(none, adjoint, ONE, a, b, ZERO, c).expect_err("refused");
        let text = error.to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    };
    let good = Matrix::new(&a, 2, 3, 2);
    assert_eq!(
        gemm(good.at(1), good, [2, 2, 2, 0]),
        "gemm: a: a 2 x 3 matrix with leading dimension 2 from element 1 on needs 7 elements; the memory has 6"
    );
    assert_eq!(
        gemm(good, Matrix::new(&a, 2, 3, 1), [2, 2, 2, 0]),
        "gemm: b: a matrix of 2 rows needs a leading dimension of at least 2; it is 1"
    );
    let text = gemm(good, good, [2, 2, 2, 5]);
    assert!(text.starts_with("gemm: c: ") && text.contains('5'), "{text}");
    assert_eq!(gemm(good, good, [2, 1, 2, 0]), "gemm: c is 2 x 1, but 2 x 2 is needed");
    let batch = Matrix::new(&a, 1, 1, 1).batch(1, 4);
    let output = Matrix::new(&mut c, 1, 1, 1).batch(0, 4);
    let error = handle.gemm_strided_batched(none, none, ONE, batch, batch, ZERO, output);
    let text = error.expect_err("four results in one place").to_string();
    assert!(text.starts_with("gemm_strided_batched: c: matrices 0 and 1"), "{text}");
    let same = PointerArray::at_offsets([1, 1], 1, 1, 1);
    let (at_a, at_b) = (
        PointerArray::at_offsets([0, 1], 1, 1, 1),
        PointerArray::at_offsets([0, 1], 1, 1, 1),
    );
    let (a, b, c) = (at_a.of(&a), at_b.of(&a), same.of(&mut c));
    let error = handle.gemm_batched(none, none, ONE, a, b, ZERO, c);
    let text = error.expect_err("two results in one place").to_string();
    assert!(text.starts_with("gemm_batched: c: matrices 0 and 1"), "{text}");
}

#[test]
fn an_output_over_an_input_is_refused_though_both_were_adopted() {
    let rig = Rig::common();
    if !rig.bridge.report().working().any(|route| route == Route::SvmCoarse) {
        return common::skipped("OpenCL's SVM means nothing to HIP here");
    }
    let (context, n) = (rig.bridge.cl_context(), 4);
    let memory = clmgr::SvmBuffer::<C32>::coarse(context, 2 * n * n).expect("memory");
    let (begin, grain) = (memory.as_ptr(), clmgr::SvmGrain::Coarse);
    let owner = std::sync::Arc::new(memory);
    let adopt = |offset: usize, len: usize| {
        // SAFETY: the memory lives as long as its owner, and the stretch lies in it.
        unsafe { rig.bridge.adopt_svm(begin.add(offset), len, grain, owner.clone()) }.expect("adopted")
    };
    let (mut all, mut first) = (adopt(0, 2 * n * n), adopt(0, n * n));
    all.upload(&numbers(2 * n * n, 2)).expect("an upload");
    let other = rig.filled(Route::SvmCoarse, &numbers(n * n, 3));
    let handle = rig.handle();
    // Its last number is the output's first.
    let (meets, apart) = (n * n - 1, n * n);
    let none = Op::None;
    let mut call = |name: &str, a: usize| {
        let input = Matrix::new(&all, n, n, n).at(a);
        let elsewhere = Matrix::new(&other, n, n, n);
        let output = Matrix::new(&mut first, n, n, n);
        let (one, zero) = (ONE, ZERO);
        match name {
            "herk" => handle.herk(Fill::Upper, none, 1.0, input, 0.0, output),
            "gemm a" => handle.gemm(none, none, one, input, elsewhere, zero, output),
            "gemm b" => handle.gemm(none, none, one, elsewhere, input, zero, output),
            "gemm_ex a" => handle.gemm_ex(none, none, one, input, elsewhere, zero, output),
            "gemm_ex b" => handle.gemm_ex(none, none, one, elsewhere, input, zero, output),
            _ => unreachable!("{name}"),
        }
    };
    for name in ["herk", "gemm a", "gemm b", "gemm_ex a", "gemm_ex b"] {
        let error = call(name, meets).expect_err(name);
        assert!(matches!(error, Error::OperandsOverlap { .. }), "{error}");
        let (routine, argument) = name.split_once(' ').unwrap_or((name, "a"));
        assert_eq!(
            error.to_string(),
            format!(
                "{routine}: c shares memory with {argument}; use a separate buffer for the result (inputs may share one)"
            )
        );
        call(name, apart).expect("neighbours share nothing");
    }
    let batch = |a: usize| Matrix::new(&all, n, n, n).at(a).batch(n * n, 1);
    for a in [meets, apart] {
        let output = Matrix::new(&mut first, n, n, n).batch(n * n, 1);
        let done = handle.gemm_strided_batched(none, none, ONE, batch(a), batch(apart), ZERO, output);
        assert_eq!(done.is_err(), a == meets, "{done:?}");
        let [of_a, of_b, of_c] = [a, apart, 0].map(|at| PointerArray::at_offsets([at], n, n, n));
        let (left, right) = (of_a.of(&all), of_b.of(&all));
        let done = handle.gemm_batched(none, none, ONE, left, right, ZERO, of_c.of(&mut first));
        assert_eq!(done.is_err(), a == meets, "{done:?}");
    }
}

#[test]
fn a_refused_operand_is_this_crates_own_error_and_costs_the_others_nothing() {
    let rig = Rig::common();
    let elsewhere = Bridge::open(&common::selection(), &Options::default()).expect("another bridge");
    let (handle, none) = (rig.handle(), Op::None);
    let (mut a, _) = rig.turned(rig.bridge.route(), &numbers(4, 6));
    let mut c = elsewhere.alloc::<C32>(4).expect("memory");
    let input = Matrix::new(&a, 2, 2, 2);
    let output = Matrix::new(&mut c, 2, 2, 2);
    let error = handle.gemm(none, none, ONE, input, input, ZERO, output);
    let error = error.expect_err("the handle's stream is of another bridge");
    let text = error.to_string();
    let error = interop::Error::from(error);
    assert!(
        matches!(error, interop::Error::OtherOwner { what: "stream", .. }),
        "{error}"
    );
    assert_eq!(error.to_string(), text);
    // The inputs were taken for nothing, and are used by the other API as before.
    let guard = a.cl_mut(&rig.queue).expect("access for OpenCL");
    let args = [guard.arg(), clmgr::Arg::scalar(&4_u32)];
    // SAFETY: `turn` takes a buffer of as many numbers as work-items, and a uint.
    unsafe { rig.turn.launch(&rig.queue, clmgr::NdRange::d1(4), &args) }.expect("a launch");
    let input: Vec<C64> = numbers(4, 6).into_iter().map(|v| wide(v) * C64::I).collect();
    check(&downloaded(&a), &input, 0).expect("as it was");
}

#[test]
fn parts_of_one_buffer_are_operands_of_one_call() {
    let rig = Rig::common();
    let (n, size) = (6, 36);
    let input = numbers(size, 8);
    let mut all = rig.filled(rig.bridge.route(), &[input.clone(), vec![ZERO; size]].concat());
    let (a, mut c) = all.split_at_mut(size).expect("two parts");
    let matrix = Matrix::new(&a, n, n, n);
    let (none, output) = (Op::None, Matrix::new(&mut c, n, n, n));
    rig.handle()
        .gemm(none, none, ONE, matrix, matrix, ZERO, output)
        .expect("a product");
    let wide: Vec<C64> = input.iter().map(|v| wide(*v)).collect();
    let expected = product((none, &wide, n), (none, &wide, n), [n; 3]);
    let found = downloaded(&all);
    assert_eq!(found[..size], input);
    check(&found[size..], &expected, n).expect("right");
}

#[test]
fn a_factor_in_shared_memory_is_what_opencl_wrote() {
    let rig = Rig::common();
    let values = numbers(8, 9);
    for route in rig.routes() {
        let (alpha, factor) = rig.turned(route, &[C32::new(2.0, -1.0)]);
        let (mut x, mut c) = (rig.filled(route, &values), rig.filled(route, &[ONE]));
        let handle = rig.handle();
        handle.scal(OnDevice(&alpha), Vector::from(&mut x)).expect("level 1");
        let expected: Vec<C64> = values.iter().map(|v| factor[0] * wide(*v)).collect();
        check(&downloaded(&x), &expected, 1).expect("right");

        // Level 3 copies its factors with HIP, which has to know the memory.
        let a = rig.filled(route, &[ONE]);
        let matrix = Matrix::new(&a, 1, 1, 1);
        let output = Matrix::new(&mut c, 1, 1, 1);
        let product = handle.gemm(
            Op::None,
            Op::None,
            OnDevice(&alpha),
            matrix,
            matrix,
            OnDevice(&alpha),
            output,
        );
        match product {
            Ok(()) => check(&downloaded(&c), &[factor[0] + factor[0]], 1).expect("right"),
            Err(error) => {
                let refused = matches!(&error, Error::Unsupported { argument: "alpha", found, .. } if found.contains("another runtime owns"));
                assert!(refused, "{route}: {error}");
                let guard = alpha.hip(&rig.stream).expect("access for HIP");
                assert!(guard.slice().is_foreign(), "{route}: {error}");
            }
        }
    }
}

#[test]
fn the_other_memory_model_agrees() {
    common::once_more_where_the_host_cannot_touch_device_memory(
        "the_other_memory_model_agrees",
        // They use HIP's memory, which OpenCL does not reach there, or measure.
        &["addresses_are_sent_once_for_as_long_as_the_memory_stays"],
    );
}

#[test]
fn a_bridge_lends_its_rocblas_to_no_stream_of_another_runtime() {
    let open = || Bridge::open(&common::selection(), &Options::default()).expect("a bridge");
    let (own, other) = (open(), open());
    let (blas, stream) = (own.blas().expect("rocBLAS"), other.stream().expect("a stream"));
    let error = Handle::new(&blas, &stream)
        .map(drop)
        .expect_err("it is of another runtime");
    assert!(matches!(error, rocblas::Error::OtherRuntime { .. }), "{error}");
}
