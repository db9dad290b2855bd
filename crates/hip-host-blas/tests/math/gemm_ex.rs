//! gemm_ex, gemm_batched_ex, gemm_strided_batched_ex.

use std::ptr::{null, null_mut};

use half::{bf16, f16};
use proptest::prelude::*;
use rocblas_sys::{
    rocblas_bfloat16, rocblas_datatype, rocblas_double_complex, rocblas_float_complex, rocblas_gemm_algo, rocblas_half,
    rocblas_status,
};

use crate::functions::check;
use crate::matrix::{Op, element, inside, op, stored};
use crate::memory::{BLAS, Buffer, Handle, Pointers, SUCCESS};
use crate::number::{C64, Number, assert_close, nan, numbers, sum};

macro_rules! narrow {
    ($c:ident, $rust:ident, $bits:literal) => {
        impl Number for $c {
            type Real = Self;
            const EPSILON: f64 = 1.0 / (1 << $bits) as f64;
            fn of(value: C64) -> Self {
                Self {
                    data: $rust::from_f64(value.re).to_bits(),
                }
            }
            fn wide(self) -> C64 {
                $rust::from_bits(self.data).to_f64().into()
            }
        }
    };
}
narrow!(rocblas_half, f16, 10);
narrow!(rocblas_bfloat16, bf16, 7);

/// A number with the name that `gemm_ex` knows it by.
trait Named: Number {
    const NAME: rocblas_datatype;
}

macro_rules! named {
    ($($type:ty = $name:ident)*) => {$(
        impl Named for $type {
            const NAME: rocblas_datatype = rocblas_datatype::$name;
        }
    )*};
}
named! {
    f32 = rocblas_datatype_f32_r
    f64 = rocblas_datatype_f64_r
    rocblas_float_complex = rocblas_datatype_f32_c
    rocblas_double_complex = rocblas_datatype_f64_c
    rocblas_half = rocblas_datatype_f16_r
    rocblas_bfloat16 = rocblas_datatype_bf16_r
}

const ALGO: rocblas_gemm_algo = rocblas_gemm_algo::rocblas_gemm_algo_standard;

#[derive(Clone, Debug)]
struct Case {
    ops: (Op, Op),
    dims: [usize; 3],
    gaps: [usize; 4],
    seed: u64,
    /// Plain, strided, batched, each with its `_64` form.
    form: usize,
    in_place: bool,
    overwrite: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let size = || prop_oneof![6 => 1..12_usize, 1 => 33..70_usize];
    let gaps = [0..3_usize, 0..3, 0..3, 0..3];
    let flags = (any::<bool>(), any::<bool>());
    (
        (op(), op()),
        [size().boxed(), size().boxed(), size().boxed()],
        gaps,
        any::<u64>(),
        0..6_usize,
        flags,
    )
        .prop_map(|(ops, dims, gaps, seed, form, (in_place, overwrite))| Case {
            ops,
            dims,
            gaps,
            seed,
            form,
            in_place,
            overwrite,
        })
}

/// `In` for A and B, `Out` for C and D, `S` for the scalars. `Wide` bounds the rounding within the
/// product.
fn agrees_with_loops<In: Named, Out: Named, S: Named, Wide: Number>() {
    let handle = Handle::new();
    check(case(), |case| {
        let ((op_a, op_b), [m, n, k]) = (case.ops, case.dims);
        let count = if case.form < 2 { 1 } else { 3 };
        let (shape_a, shape_b) = (stored(op_a, m, k), stored(op_b, k, n));
        let [lda, ldb, ldc] = [shape_a.0 + case.gaps[0], shape_b.0 + case.gaps[1], m + case.gaps[2]];
        let ldd = if case.in_place { ldc } else { m + case.gaps[3] };
        let sizes = [lda * shape_a.1, ldb * shape_b.1, ldc * n, ldd * n];
        let a = numbers::<In>(sizes[0] * count, case.seed);
        let b = numbers::<In>(sizes[1] * count, case.seed ^ 1);
        let scalars = numbers::<S>(2, case.seed ^ 2);
        let (alpha, beta) = (scalars[0], if case.overwrite { S::of(C64::ZERO) } else { scalars[1] });
        let c = match case.overwrite {
            true => vec![nan::<Out>(); sizes[2] * count],
            false => numbers::<Out>(sizes[2] * count, case.seed ^ 3),
        };
        let (device_a, device_b, device_c) = (Buffer::new(&a), Buffer::new(&b), Buffer::new(&c));
        let other = Buffer::new(&vec![nan::<Out>(); sizes[3] * count]);
        let device_d = if case.in_place { &device_c } else { &other };
        let [sa, sb, sc, sd] = sizes.map(|size| size as i64);
        let (pa, pb, pc, pd) = (device_a.ptr(), device_b.ptr(), device_c.ptr(), device_d.ptr());
        let (ta, tc, ts) = (In::NAME, Out::NAME, S::NAME);
        let (oa, ob) = (op_a.c(), op_b.c());
        let (alpha_ptr, beta_ptr) = ((&raw const alpha).cast(), (&raw const beta).cast());
        macro_rules! call {
            ($function:ident, $int:ty, ($a:expr $(, $sa:expr)?), ($b:expr $(, $sb:expr)?), ($c:expr $(, $sc:expr)?), ($d:expr $(, $sd:expr)?) $(, $count:expr)?) => {
                // SAFETY: matrices of those shapes, scalars of the compute type.
                unsafe {
                    BLAS.$function.unwrap()(
                        handle.raw, oa, ob, m as $int, n as $int, k as $int, alpha_ptr,
                        $a.cast(), ta, lda as $int, $($sa,)? $b.cast(), ta, ldb as $int, $($sb,)? beta_ptr,
                        $c.cast(), tc, ldc as $int, $($sc,)? $d.cast(), tc, ldd as $int, $($sd,)?
                        $($count as $int,)? ts, ALGO, 0, 0,
                    )
                }
            };
        }
        let arrays = [
            Pointers::at(pa.cast::<u8>(), sa * size_of::<In>() as i64, count),
            Pointers::at(pb.cast(), sb * size_of::<In>() as i64, count),
            Pointers::at(pc.cast(), sc * size_of::<Out>() as i64, count),
            Pointers::at(pd.cast(), sd * size_of::<Out>() as i64, count),
        ];
        let [xa, xb, xc, xd] = [0, 1, 2, 3].map(|i: usize| arrays[i].outputs().cast_mut());
        let xd = if case.in_place { xc } else { xd };
        let status = match case.form {
            0 => call!(rocblas_gemm_ex, i32, (pa), (pb), (pc), (pd)),
            1 => call!(rocblas_gemm_ex_64, i64, (pa), (pb), (pc), (pd)),
            2 => call!(
                rocblas_gemm_strided_batched_ex,
                i32,
                (pa, sa),
                (pb, sb),
                (pc, sc),
                (pd, sd),
                count
            ),
            3 => call!(
                rocblas_gemm_strided_batched_ex_64,
                i64,
                (pa, sa),
                (pb, sb),
                (pc, sc),
                (pd, sd),
                count
            ),
            4 => call!(rocblas_gemm_batched_ex, i32, (xa), (xb), (xc), (xd), count),
            _ => call!(rocblas_gemm_batched_ex_64, i64, (xa), (xb), (xc), (xd), count),
        };
        handle.finish(status);
        device_a.assert_untouched();
        device_b.assert_untouched();
        if !case.in_place {
            device_c.assert_untouched();
        }
        device_d.assert_only_written(|i| inside(i % sizes[3], m, n, ldd));
        let found = device_d.read();
        for i in 0..count {
            let (a, b) = (&a[i * sizes[0]..], &b[i * sizes[1]..]);
            for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
                let products = (0..k).map(|l| {
                    (
                        alpha.wide() * element(a, lda, op_a, row, l),
                        element(b, ldb, op_b, l, col),
                    )
                });
                let old = if case.overwrite {
                    C64::ZERO
                } else {
                    c[i * sizes[2] + row + col * ldc].wide()
                };
                let (value, bound) = sum::<Wide>(products.chain([(beta.wide(), old)]));
                // A half has no fractions below this one.
                let step = if size_of::<Out>() == 2 { 2_f64.powi(-24) } else { 0.0 };
                let bound = bound + value.norm() * Out::EPSILON + step;
                assert_close(found[i * sizes[3] + row + col * ldd], (value, bound), || {
                    format!("{case:?} ({row}, {col})")
                });
            }
        }
    });
}

#[test]
fn uniform_types_agree_with_loops() {
    agrees_with_loops::<f32, f32, f32, f32>();
    agrees_with_loops::<f64, f64, f64, f64>();
    agrees_with_loops::<rocblas_float_complex, rocblas_float_complex, rocblas_float_complex, f32>();
    agrees_with_loops::<rocblas_double_complex, rocblas_double_complex, rocblas_double_complex, f64>();
}

#[test]
fn narrow_types_are_computed_in_single_precision() {
    agrees_with_loops::<rocblas_half, rocblas_half, rocblas_half, f32>();
    agrees_with_loops::<rocblas_half, rocblas_half, f32, f32>();
    agrees_with_loops::<rocblas_half, f32, f32, f32>();
    agrees_with_loops::<rocblas_bfloat16, rocblas_bfloat16, f32, f32>();
    agrees_with_loops::<rocblas_bfloat16, f32, f32, f32>();
}

#[test]
fn gemm_ex_refuses_in_rocblas_order() {
    use rocblas_status as s;
    let (pointer, size) = (s::rocblas_status_invalid_pointer, s::rocblas_status_invalid_size);
    let (real, half) = (f32::NAME, rocblas_half::NAME);
    let handle = Handle::new();
    let buffer = Buffer::new(&numbers::<f32>(64, 5));
    let at = |offset| buffer.ptr().wrapping_add(offset).cast::<std::ffi::c_void>();
    let (a, b, c, d) = (at(0).cast_const(), at(16).cast_const(), at(32).cast_const(), at(48));
    let (zero, one, two) = (0_f32, 1_f32, 2_f32);
    let (no, zero, one, two) = (
        null::<std::ffi::c_void>(),
        (&raw const zero).cast(),
        (&raw const one).cast(),
        (&raw const two).cast(),
    );
    let n = Op::None.c();
    let call =
        |raw, op, [m, n, k, lda, ldb, ldc, ldd]: [i32; 7], alpha, a, b, beta, c, d, types: [rocblas_datatype; 2]| {
            // SAFETY: what the model refuses is not touched.
            unsafe {
                BLAS.rocblas_gemm_ex.unwrap()(
                    raw, op, op, m, n, k, alpha, a, types[0], lda, b, types[0], ldb, beta, c, types[1], ldc, d, real,
                    ldd, real, ALGO, 0, 0,
                )
            }
        };
    let fine = [2, 3, 4, 2, 4, 2, 2];
    let all = [real; 2];
    let raw = handle.raw;
    let wrong = rocblas_sys::rocblas_operation(7);
    assert_eq!(
        call(null_mut(), wrong, [-1; 7], no, no, no, no, no, null_mut(), all),
        s::rocblas_status_invalid_handle
    );
    assert_eq!(
        call(raw, wrong, [-1; 7], no, no, no, no, no, null_mut(), all),
        s::rocblas_status_invalid_value
    );
    for i in 0..7 {
        let mut sizes = fine;
        sizes[i] = if i < 3 { -1 } else { sizes[i] - 1 };
        assert_eq!(
            call(raw, n, sizes, no, no, no, no, no, null_mut(), all),
            size,
            "{sizes:?}"
        );
    }
    assert_eq!(
        call(raw, n, [0, 3, 4, 2, 4, 2, 2], no, no, no, no, no, null_mut(), all),
        SUCCESS
    );
    assert_eq!(call(raw, n, fine, no, a, b, one, c, d, all), pointer);
    assert_eq!(call(raw, n, fine, two, a, b, no, c, d, all), pointer);
    assert_eq!(call(raw, n, fine, two, a, b, one, c, null_mut(), all), pointer);
    assert_eq!(call(raw, n, fine, two, a, b, one, no, d, all), pointer);
    assert_eq!(call(raw, n, fine, two, no, b, one, c, d, all), pointer);
    assert_eq!(call(raw, n, fine, two, a, no, one, c, d, all), pointer);
    assert_eq!(
        call(raw, n, fine, two, a, b, one, c, at(32).wrapping_byte_add(4), all),
        pointer
    );
    assert_eq!(call(raw, n, fine, two, d, b, one, c, d, all), pointer);
    assert_eq!(call(raw, n, [2, 3, 4, 2, 4, 3, 2], two, a, b, one, d, d, all), size);
    assert_eq!(
        call(raw, n, fine, two, a, b, one, d, d, [real, half]),
        s::rocblas_status_invalid_value
    );
    assert_eq!(
        call(raw, n, fine, two, a, b, one, c, d, [half, half]),
        s::rocblas_status_not_implemented
    );
    assert_eq!(call(raw, n, fine, zero, no, no, one, d, d, all), SUCCESS);
    handle.finish(SUCCESS);
    buffer.assert_untouched();
    // k = 0 is a multiplication by beta, and alpha is not looked at.
    handle.finish(call(raw, n, [2, 3, 0, 2, 1, 2, 2], no, no, no, two, c, d, all));
    let found = buffer.read();
    assert!((0..6).all(|i| found[48 + i] == 2.0 * found[32 + i]));
}
