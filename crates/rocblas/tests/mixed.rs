//! `gemm_ex`: narrow inputs, wide sums, and the sum in another matrix than the addend.

mod common;

use common::{C64, Number, Setup, element, numbers, op, setup, stored};
use half::{bf16, f16};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Element, GemmInput, Matrix, Op, PointerArray};

/// An element that the reference can compute with.
trait Wide: Element + PartialEq + std::fmt::Debug {
    /// Distance from 1 to the next number of its precision.
    const STEP: f64;
    /// Distance from 0 to the next number: what rounding can lose below the normal numbers, where `STEP` no longer
    /// bounds it.
    const TINY: f64;
    fn from_wide(value: C64) -> Self;
    fn to_wide(self) -> C64;
}

macro_rules! wide_half {
    ($($half:ty: $step:expr, $tiny:expr);+) => {$(
        impl Wide for $half {
            const STEP: f64 = $step;
            const TINY: f64 = $tiny;
            fn from_wide(value: C64) -> Self {
                <$half>::from_f64(value.re)
            }
            fn to_wide(self) -> C64 {
                C64::new(self.to_f64(), 0.0)
            }
        }
    )+};
}
// 11 and 8 significant bits; the first bit patterns above zero.
wide_half!(f16: 1.0 / 1024.0, f16::from_bits(1).to_f64_const(); bf16: 1.0 / 128.0, bf16::from_bits(1).to_f64_const());

macro_rules! wide {
    ($($number:ty),+) => {$(
        impl Wide for $number {
            const STEP: f64 = <$number as Number>::EPSILON;
            /// That of `f32`; for `f64` it is more than enough.
            const TINY: f64 = f32::from_bits(1) as f64;
            fn from_wide(value: C64) -> Self {
                Number::of(value)
            }
            fn to_wide(self) -> C64 {
                Number::wide(self)
            }
        }
    )+};
}
wide!(f32, f64, Complex<f32>, Complex<f64>);

#[derive(Debug, Clone)]
struct Case {
    ops: [Op; 2],
    /// m, n, k
    sizes: [usize; 3],
    /// Elements between the columns of a, b, c, d.
    gaps: [usize; 4],
    in_place: bool,
    alpha: C64,
    beta: C64,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let sizes = (1_usize..9, 1_usize..9, 0_usize..12).prop_map(|(m, n, k)| [m, n, k]);
    // Also factors that leave nothing but subnormal halves of the products.
    let scale = || prop_oneof![3 => Just(1.0), 1 => Just(1.0 / 4_194_304.0)];
    let factor = move || (-2.0..2.0_f64, -2.0..2.0_f64, scale()).prop_map(|(re, im, scale)| C64::new(re, im) * scale);
    (
        prop::array::uniform2(op()),
        sizes,
        prop::array::uniform4(0_usize..4),
        any::<bool>(),
        (factor(), prop_oneof![Just(C64::ZERO), factor()]),
        any::<u64>(),
    )
        .prop_map(|(ops, sizes, gaps, in_place, (alpha, beta), seed)| Case {
            ops,
            sizes,
            gaps,
            in_place,
            alpha,
            beta,
            seed,
        })
}

fn made<T: Wide>(len: usize, seed: u64) -> Vec<T> {
    numbers::<C64>(len, seed).into_iter().map(T::from_wide).collect()
}

fn gemm_ex_is_right<In, Out, Compute>(setup: &Setup, case: &Case)
where
    In: Wide + GemmInput<Out, Compute>,
    Out: Wide,
    Compute: Wide,
{
    let Case {
        ops: [op_a, op_b],
        sizes: [m, n, k],
        gaps,
        in_place,
        seed,
        ..
    } = *case;
    let (alpha, beta) = (Compute::from_wide(case.alpha), Compute::from_wide(case.beta));
    let (a_shape, b_shape) = (stored(op_a, m, k), stored(op_b, k, n));
    let lda = a_shape.0.max(1) + gaps[0];
    let ldb = b_shape.0.max(1) + gaps[1];
    let (ldc, ldd) = (m + gaps[2], m + gaps[3]);
    let a = made::<In>(lda * a_shape.1, seed);
    let b = made::<In>(ldb * b_shape.1, seed ^ 1);
    let c = made::<Out>(ldc * n, seed ^ 2);
    let d = made::<Out>(ldd * n, seed ^ 3);
    let upload_in = |values: &[In]| setup.device.alloc_from(&setup.stream, values).unwrap();
    let upload = |values: &[Out]| setup.device.alloc_from(&setup.stream, values).unwrap();
    let (buffer_a, buffer_b) = (upload_in(&a), upload_in(&b));
    let (mut buffer_c, mut buffer_d) = (upload(&c), upload(&d));
    let stream = &setup.stream;
    let matrix_a = Matrix::new(buffer_a.on(stream).unwrap(), a_shape.0, a_shape.1, lda);
    let matrix_b = Matrix::new(buffer_b.on(stream).unwrap(), b_shape.0, b_shape.1, ldb);
    let blas = &setup.blas;
    if in_place {
        let c = Matrix::new(buffer_c.on_mut(stream).unwrap(), m, n, ldc);
        blas.gemm_ex(op_a, op_b, alpha, matrix_a, matrix_b, beta, c)
    } else {
        let c = Matrix::new(buffer_c.on(stream).unwrap(), m, n, ldc);
        let d = Matrix::new(buffer_d.on_mut(stream).unwrap(), m, n, ldd);
        blas.gemm_ex_into(op_a, op_b, alpha, matrix_a, matrix_b, beta, c, d)
    }
    .unwrap();

    let download = |buffer: &hip::DeviceBuffer<Out>| {
        let mut values = vec![Out::zeroed(); buffer.len()];
        buffer.copy_to_slice(stream, &mut values).unwrap();
        values
    };
    let (found, before, ld) = if in_place {
        (download(&buffer_c), &c, ldc)
    } else {
        assert_eq!(download(&buffer_c), c, "the addend was changed");
        (download(&buffer_d), &d, ldd)
    };
    let (alpha, beta) = (alpha.to_wide(), beta.to_wide());
    let wide_a = a.iter().map(|value| value.to_wide()).collect::<Vec<_>>();
    let wide_b = b.iter().map(|value| value.to_wide()).collect::<Vec<_>>();
    for index in 0..found.len() {
        let (i, j) = (index % ld, index / ld);
        if i >= m {
            assert_eq!(found[index], before[index], "between the columns");
            continue;
        }
        let (mut sum, mut size) = (C64::ZERO, 0.0);
        for l in 0..k {
            let (x, y) = (
                element(&wide_a, 0, lda, op_a, i, l),
                element(&wide_b, 0, ldb, op_b, l, j),
            );
            sum += x * y;
            size += x.norm() * y.norm();
        }
        let kept = match beta == C64::ZERO {
            true => C64::ZERO,
            false => beta * c[i + j * ldc].to_wide(),
        };
        let expected = alpha * sum + kept;
        let scale = alpha.norm() * size + kept.norm();
        // Errors of the arithmetic add up, the result is rounded once.
        let steps = 2.0 * k as f64 + 8.0;
        let bound = scale * (Compute::STEP * steps + Out::STEP) + Compute::TINY * steps + Out::TINY;
        let found = found[index].to_wide();
        assert!(
            (found - expected).norm() <= bound,
            "({i}, {j}): {found}, not {expected}"
        );
    }
}

/// How the matrices of a batch are told.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Told {
    Stride,
    Pointers,
}

/// Each product of a batch is what `gemm_ex` makes of its matrices.
fn batches_are_right<In, Out, Compute>(setup: &Setup, case: &Case, told: Told, count: usize)
where
    In: Wide + GemmInput<Out, Compute>,
    Out: Wide,
    Compute: Wide,
{
    let Case {
        ops: [op_a, op_b],
        sizes: [m, n, k],
        gaps,
        in_place,
        seed,
        ..
    } = *case;
    let (alpha, beta) = (Compute::from_wide(case.alpha), Compute::from_wide(case.beta));
    let (a_shape, b_shape) = (stored(op_a, m, k), stored(op_b, k, n));
    let (lda, ldb) = (a_shape.0.max(1) + gaps[0], b_shape.0.max(1) + gaps[1]);
    let (ldc, ldd) = (m + gaps[2], m + gaps[3]);
    let strides = [lda * a_shape.1, ldb * b_shape.1, ldc * n + 1, ldd * n + 2];
    let a = made::<In>(strides[0] * count, seed);
    let b = made::<In>(strides[1] * count, seed ^ 1);
    let c = made::<Out>(strides[2] * count, seed ^ 2);
    let d = made::<Out>(strides[3] * count, seed ^ 3);
    let upload_in = |values: &[In]| setup.device.alloc_from(&setup.stream, values).unwrap();
    let upload = |values: &[Out]| setup.device.alloc_from(&setup.stream, values).unwrap();
    let (buffer_a, buffer_b) = (upload_in(&a), upload_in(&b));
    let (stream, blas) = (&setup.stream, &setup.blas);
    let on_a = || buffer_a.on(stream).unwrap();
    let on_b = || buffer_b.on(stream).unwrap();

    let (mut one_c, mut one_d) = (upload(&c), upload(&d));
    for i in 0..count {
        let at = strides.map(|stride| i * stride);
        let a = Matrix::new(on_a().slice(at[0]..).unwrap(), a_shape.0, a_shape.1, lda);
        let b = Matrix::new(on_b().slice(at[1]..).unwrap(), b_shape.0, b_shape.1, ldb);
        if in_place {
            let (_, c) = one_c.on_mut(stream).unwrap().split_at_mut(at[2]).unwrap();
            let c = Matrix::new(c, m, n, ldc);
            blas.gemm_ex(op_a, op_b, alpha, a, b, beta, c).unwrap();
        } else {
            let c = one_c.on(stream).unwrap().slice(at[2]..).unwrap();
            let c = Matrix::new(c, m, n, ldc);
            let (_, d) = one_d.on_mut(stream).unwrap().split_at_mut(at[3]).unwrap();
            let d = Matrix::new(d, m, n, ldd);
            blas.gemm_ex_into(op_a, op_b, alpha, a, b, beta, c, d).unwrap();
        }
    }

    let (mut all_c, mut all_d) = (upload(&c), upload(&d));
    match told {
        Told::Stride => {
            let a = Matrix::new(on_a(), a_shape.0, a_shape.1, lda).batch(strides[0], count);
            let b = Matrix::new(on_b(), b_shape.0, b_shape.1, ldb).batch(strides[1], count);
            if in_place {
                let c = all_c.on_mut(stream).unwrap();
                let c = Matrix::new(c, m, n, ldc).batch(strides[2], count);
                blas.gemm_strided_batched_ex(op_a, op_b, alpha, a, b, beta, c)
            } else {
                let c = Matrix::new(all_c.on(stream).unwrap(), m, n, ldc).batch(strides[2], count);
                let d = all_d.on_mut(stream).unwrap();
                let d = Matrix::new(d, m, n, ldd).batch(strides[3], count);
                blas.gemm_strided_batched_ex_into(op_a, op_b, alpha, a, b, beta, c, d)
            }
        }
        Told::Pointers => {
            let offsets = strides.map(|stride| (0..count).map(|i| i * stride).collect::<Vec<_>>());
            let [at_a, at_b, at_c, at_d] = offsets;
            let a = PointerArray::at_offsets(at_a, a_shape.0, a_shape.1, lda);
            let b = PointerArray::at_offsets(at_b, b_shape.0, b_shape.1, ldb);
            let c = PointerArray::at_offsets(at_c, m, n, ldc);
            let d = PointerArray::at_offsets(at_d, m, n, ldd);
            let (a, b) = (a.of(&buffer_a), b.of(&buffer_b));
            if in_place {
                blas.gemm_batched_ex(op_a, op_b, alpha, a, b, beta, c.of(&mut all_c))
            } else {
                let (c, d) = (c.of(&all_c), d.of(&mut all_d));
                blas.gemm_batched_ex_into(op_a, op_b, alpha, a, b, beta, c, d)
            }
        }
    }
    .unwrap();

    let download = |buffer: &hip::DeviceBuffer<Out>| {
        let mut values = vec![Out::zeroed(); buffer.len()];
        buffer.copy_to_slice(stream, &mut values).unwrap();
        values
    };
    for (one, all) in [(&one_c, &all_c), (&one_d, &all_d)] {
        for (one, all) in download(one).into_iter().zip(download(all)) {
            // Numbers are at most 2 * sqrt(2) times those of a sum of k products of numbers up to sqrt(2).
            let bound = Out::STEP * 8.0 * (k as f64 + 2.0);
            let off = (one.to_wide() - all.to_wide()).norm();
            assert!(off <= bound, "{all:?} in a batch, {one:?} alone");
        }
    }
    assert!(k == 0 || count == 0 || download(if in_place { &all_c } else { &all_d }) != if in_place { c } else { d });
}

proptest! {
    #![proptest_config(common::cases(40))]

    #[test]
    fn batches_are_the_products_of_each(
        case in case(), told in prop_oneof![Just(Told::Stride), Just(Told::Pointers)], count in 0_usize..4,
    ) {
        let setup = setup();
        batches_are_right::<f16, f16, f16>(&setup, &case, told, count);
        batches_are_right::<bf16, f32, f32>(&setup, &case, told, count);
        batches_are_right::<f64, f64, f64>(&setup, &case, told, count);
        batches_are_right::<Complex<f32>, Complex<f32>, Complex<f32>>(&setup, &case, told, count);
    }
}

proptest! {
    #![proptest_config(common::cases(80))]

    #[test]
    fn gemm_ex_is_the_product_in_every_combination_of_types(case in case()) {
        let setup = setup();
        gemm_ex_is_right::<f16, f16, f16>(&setup, &case);
        gemm_ex_is_right::<f16, f16, f32>(&setup, &case);
        gemm_ex_is_right::<f16, f32, f32>(&setup, &case);
        gemm_ex_is_right::<bf16, bf16, f32>(&setup, &case);
        gemm_ex_is_right::<bf16, f32, f32>(&setup, &case);
        gemm_ex_is_right::<f32, f32, f32>(&setup, &case);
        gemm_ex_is_right::<f64, f64, f64>(&setup, &case);
        gemm_ex_is_right::<Complex<f32>, Complex<f32>, Complex<f32>>(&setup, &case);
        gemm_ex_is_right::<Complex<f64>, Complex<f64>, Complex<f64>>(&setup, &case);
    }
}

#[test]
fn a_combination_that_the_library_lacks_is_its_own_answer() {
    let setup = setup();
    let stream = &setup.stream;
    let a = setup.device.alloc_from(stream, &[2_i8; 16]).unwrap();
    let mut product = setup.device.alloc_from(stream, &[0_i32; 16]).unwrap();
    let a = Matrix::new(a.on(stream).unwrap(), 4, 4, 4);
    let c = Matrix::new(product.on_mut(stream).unwrap(), 4, 4, 4);
    let outcome = setup.blas.gemm_ex(Op::None, Op::None, 1, a, a, 0, c);
    // The host platform has no integer products; cards have.
    let Err(error) = outcome else {
        let mut found = [0; 16];
        product.copy_to_slice(stream, &mut found).unwrap();
        assert_eq!(found, [16; 16]);
        return;
    };
    assert_eq!(
        error.to_string(),
        "`rocblas_gemm_ex(None, None, m 4, n 4, k 4, lda 4, ldb 4, ldc 4, ldd 4, rocblas_datatype_i8_r (160) to \
         rocblas_datatype_i32_r (162) in rocblas_datatype_i32_r (162))` failed: rocblas_status_not_implemented (2); \
         this platform does not have it"
    );
}

#[test]
fn addend_and_sum_have_one_shape() {
    let setup = setup();
    let stream = &setup.stream;
    let (x, mut y) = (setup.upload(&[0.0_f32; 16]), setup.upload(&[0.0_f32; 16]));
    let square = Matrix::new(x.on(stream).unwrap(), 2, 2, 2);
    let d = Matrix::new(y.on_mut(stream).unwrap(), 2, 3, 2);
    let outcome = setup
        .blas
        .gemm_ex_into(Op::None, Op::None, 1.0, square, square, 0.0, square, d);
    assert_eq!(
        outcome.unwrap_err().to_string(),
        "gemm_ex_into: d is 2 x 3, but 2 x 2 is needed"
    );
}
