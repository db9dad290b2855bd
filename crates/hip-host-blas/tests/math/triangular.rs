//! trsm and trmm.

use std::ptr::{null, null_mut};

use proptest::prelude::*;
use rocblas_sys::{rocblas_diagonal, rocblas_fill, rocblas_operation, rocblas_side, rocblas_status, rocblas_stride};

use crate::functions::{check, families, for_all_types};
use crate::matrix::{Op, element, inside, op};
use crate::memory::{Buffer, Handle, Pointers, SUCCESS};
use crate::number::{C64, Int, Number, assert_close, nan, numbers, sum};

type Side = rocblas_side;
type Fill = rocblas_fill;
type Diag = rocblas_diagonal;

families! { Triangular from BLAS:
    trsm(Side, Fill, rocblas_operation, Diag, I, I, *const Self, *const Self, I, *mut Self, I) =
        rocblas_strsm rocblas_dtrsm rocblas_ctrsm rocblas_ztrsm;
        rocblas_strsm_64 rocblas_dtrsm_64 rocblas_ctrsm_64 rocblas_ztrsm_64;
    trsm_strided(Side, Fill, rocblas_operation, Diag, I, I, *const Self, *const Self, I, rocblas_stride, *mut Self, I, rocblas_stride, I) =
        rocblas_strsm_strided_batched rocblas_dtrsm_strided_batched rocblas_ctrsm_strided_batched rocblas_ztrsm_strided_batched;
        rocblas_strsm_strided_batched_64 rocblas_dtrsm_strided_batched_64 rocblas_ctrsm_strided_batched_64 rocblas_ztrsm_strided_batched_64;
    trsm_batched(Side, Fill, rocblas_operation, Diag, I, I, *const Self, *const *const Self, I, *const *mut Self, I, I) =
        rocblas_strsm_batched rocblas_dtrsm_batched rocblas_ctrsm_batched rocblas_ztrsm_batched;
        rocblas_strsm_batched_64 rocblas_dtrsm_batched_64 rocblas_ctrsm_batched_64 rocblas_ztrsm_batched_64;
    trmm(Side, Fill, rocblas_operation, Diag, I, I, *const Self, *const Self, I, *const Self, I, *mut Self, I) =
        rocblas_strmm rocblas_dtrmm rocblas_ctrmm rocblas_ztrmm;
        rocblas_strmm_64 rocblas_dtrmm_64 rocblas_ctrmm_64 rocblas_ztrmm_64;
    trmm_strided(Side, Fill, rocblas_operation, Diag, I, I, *const Self, *const Self, I, rocblas_stride, *const Self, I, rocblas_stride, *mut Self, I, rocblas_stride, I) =
        rocblas_strmm_strided_batched rocblas_dtrmm_strided_batched rocblas_ctrmm_strided_batched rocblas_ztrmm_strided_batched;
        rocblas_strmm_strided_batched_64 rocblas_dtrmm_strided_batched_64 rocblas_ctrmm_strided_batched_64 rocblas_ztrmm_strided_batched_64;
    trmm_batched(Side, Fill, rocblas_operation, Diag, I, I, *const Self, *const *const Self, I, *const *const Self, I, *const *mut Self, I, I) =
        rocblas_strmm_batched rocblas_dtrmm_batched rocblas_ctrmm_batched rocblas_ztrmm_batched;
        rocblas_strmm_batched_64 rocblas_dtrmm_batched_64 rocblas_ctrmm_batched_64 rocblas_ztrmm_batched_64;
}

/// A triangle and how it is applied to an `m` x `n` matrix.
#[derive(Clone, Copy, Debug)]
struct Case {
    left: bool,
    lower: bool,
    unit: bool,
    op: Op,
    m: usize,
    n: usize,
    gaps: [usize; 3],
    seed: u64,
    form: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let size = || prop_oneof![6 => 1..12_usize, 1 => 60..90_usize];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let gaps = [0..3_usize, 0..3, 0..3];
    (flags, op(), size(), size(), gaps, any::<u64>(), 0..3_usize).prop_map(
        |((left, lower, unit), op, m, n, gaps, seed, form)| Case {
            left,
            lower,
            unit,
            op,
            m,
            n,
            gaps,
            seed,
            form,
        },
    )
}

impl Case {
    fn modes(self) -> (Side, Fill, rocblas_operation, Diag) {
        let side = if self.left {
            Side::rocblas_side_left
        } else {
            Side::rocblas_side_right
        };
        let fill = if self.lower {
            Fill::rocblas_fill_lower
        } else {
            Fill::rocblas_fill_upper
        };
        let diag = if self.unit {
            Diag::rocblas_diagonal_unit
        } else {
            Diag::rocblas_diagonal_non_unit
        };
        (side, fill, self.op.c(), diag)
    }

    fn order(self) -> usize {
        if self.left { self.m } else { self.n }
    }

    fn ld(self) -> [usize; 3] {
        [
            self.order() + self.gaps[0],
            self.m + self.gaps[1],
            self.m + self.gaps[2],
        ]
    }

    /// A triangle far from singular, with no number where none may be read.
    fn triangle<T: Number>(self, seed: u64) -> Vec<T> {
        let (order, ld) = (self.order(), self.ld()[0]);
        let mut a = numbers::<T>(ld * order, seed);
        for (row, col) in (0..order).flat_map(|row| (0..order).map(move |col| (row, col))) {
            let at = &mut a[row + col * ld];
            if row == col {
                *at = if self.unit {
                    nan()
                } else {
                    T::of(at.wide() * 0.2 + C64::new(1.5, 0.5))
                };
            } else if (row > col) == self.lower {
                *at = T::of(at.wide() / order as f64);
            } else {
                *at = nan();
            }
        }
        a
    }

    /// Element (i, j) of the triangle as it is applied.
    fn applied<T: Number>(self, a: &[T], i: usize, j: usize) -> C64 {
        let lower = self.lower == (self.op == Op::None);
        if i == j && self.unit {
            C64::ONE
        } else if i == j || (i > j) == lower {
            element(a, self.ld()[0], self.op, i, j)
        } else {
            C64::ZERO
        }
    }

    /// The terms of element (i, j) of the triangle times `x`, or of `x` times the triangle.
    fn terms<T: Number>(self, a: &[T], x: impl Fn(usize, usize) -> C64, i: usize, j: usize) -> Vec<(C64, C64)> {
        let term = |l| {
            if self.left {
                (self.applied(a, i, l), x(l, j))
            } else {
                (self.applied(a, l, j), x(i, l))
            }
        };
        (0..self.order()).map(term).collect()
    }
}

/// How many matrices the batched forms get.
const COUNT: usize = 3;

fn trsm_solves<T: Triangular<I>, I: Int>() {
    let handle = Handle::new();
    check(case(), |case| {
        let ([lda, ldb, _], Case { m, n, form, .. }) = (case.ld(), case);
        let count = if form == 0 { 1 } else { COUNT };
        let a: Vec<Vec<T>> = (0..count).map(|i| case.triangle(case.seed ^ i as u64)).collect();
        let b = numbers::<T>(ldb * n * count, case.seed ^ 77);
        let alpha = numbers::<T>(1, case.seed ^ 99)[0];
        let (device_a, device_b) = (Buffer::new(&a.concat()), Buffer::new(&b));
        let strides = [(lda * case.order()) as i64, (ldb * n) as i64];
        let (side, fill, op, diag) = case.modes();
        let [m_, n_, lda_, ldb_, count_] = [m, n, lda, ldb, count].map(|size| I::of(size as i64));
        let (pa, pb) = (device_a.ptr(), device_b.ptr());
        // SAFETY: matrices of those shapes.
        let status = unsafe {
            match form {
                0 => T::trsm()(handle.raw, side, fill, op, diag, m_, n_, &alpha, pa, lda_, pb, ldb_),
                1 => T::trsm_strided()(
                    handle.raw, side, fill, op, diag, m_, n_, &alpha, pa, lda_, strides[0], pb, ldb_, strides[1],
                    count_,
                ),
                _ => {
                    let a = Pointers::at(pa, strides[0], count);
                    let b = Pointers::at(pb, strides[1], count);
                    let status = T::trsm_batched()(
                        handle.raw,
                        side,
                        fill,
                        op,
                        diag,
                        m_,
                        n_,
                        &alpha,
                        a.inputs(),
                        lda_,
                        b.outputs(),
                        ldb_,
                        count_,
                    );
                    handle.finish(SUCCESS);
                    status
                }
            }
        };
        handle.finish(status);
        device_a.assert_untouched();
        device_b.assert_only_written(|i| inside(i % (ldb * n), m, n, ldb));
        let found = device_b.read();
        for k in 0..count {
            let x = |i: usize, j: usize| found[k * ldb * n + i + j * ldb].wide();
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let goal = alpha.wide() * b[k * ldb * n + i + j * ldb].wide();
                let (product, bound) = sum::<T>(case.terms(&a[k], x, i, j));
                // The residual of a backward stable solve.
                let bound = bound + 8.0 * T::EPSILON * goal.norm();
                assert_close(T::of(product), (goal, bound + T::EPSILON * product.norm()), || {
                    format!("{case:?} ({i}, {j})")
                });
            }
        }
    });
}

fn trmm_multiplies<T: Triangular<I>, I: Int>() {
    let handle = Handle::new();
    check((case(), any::<bool>()), |(case, in_place)| {
        let ([lda, ldb, ldc], Case { m, n, form, .. }) = (case.ld(), case);
        let ldc = if in_place { ldb } else { ldc };
        let count = if form == 0 { 1 } else { COUNT };
        let a: Vec<Vec<T>> = (0..count).map(|i| case.triangle(case.seed ^ i as u64)).collect();
        let b = numbers::<T>(ldb * n * count, case.seed ^ 77);
        let alpha = numbers::<T>(1, case.seed ^ 99)[0];
        let (device_a, device_b) = (Buffer::new(&a.concat()), Buffer::new(&b));
        let other = Buffer::new(&vec![nan::<T>(); ldc * n * count]);
        let device_c = if in_place { &device_b } else { &other };
        let strides = [lda * case.order(), ldb * n, ldc * n].map(|stride| stride as i64);
        let (side, fill, op, diag) = case.modes();
        let [m_, n_, lda_, ldb_, ldc_, count_] = [m, n, lda, ldb, ldc, count].map(|size| I::of(size as i64));
        let (pa, pb, pc) = (device_a.ptr(), device_b.ptr(), device_c.ptr());
        // SAFETY: matrices of those shapes.
        let status = unsafe {
            match form {
                0 => T::trmm()(
                    handle.raw, side, fill, op, diag, m_, n_, &alpha, pa, lda_, pb, ldb_, pc, ldc_,
                ),
                1 => T::trmm_strided()(
                    handle.raw, side, fill, op, diag, m_, n_, &alpha, pa, lda_, strides[0], pb, ldb_, strides[1], pc,
                    ldc_, strides[2], count_,
                ),
                _ => {
                    let a = Pointers::at(pa, strides[0], count);
                    let b = Pointers::at(pb, strides[1], count);
                    let c = Pointers::at(pc, strides[2], count);
                    let status = T::trmm_batched()(
                        handle.raw,
                        side,
                        fill,
                        op,
                        diag,
                        m_,
                        n_,
                        &alpha,
                        a.inputs(),
                        lda_,
                        b.inputs(),
                        ldb_,
                        c.outputs(),
                        ldc_,
                        count_,
                    );
                    handle.finish(SUCCESS);
                    status
                }
            }
        };
        handle.finish(status);
        device_a.assert_untouched();
        if !in_place {
            device_b.assert_untouched();
        }
        device_c.assert_only_written(|i| inside(i % (ldc * n), m, n, ldc));
        let found = device_c.read();
        for k in 0..count {
            let x = |i: usize, j: usize| alpha.wide() * b[k * ldb * n + i + j * ldb].wide();
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let expected = sum::<T>(case.terms(&a[k], x, i, j));
                assert_close(found[k * ldc * n + i + j * ldc], expected, || {
                    format!("{case:?} ({i}, {j})")
                });
            }
        }
    });
}

fn triangular_calls_refuse_in_rocblas_order<T: Triangular<I>, I: Int>() {
    use rocblas_status as s;
    let (pointer, size, value) = (
        s::rocblas_status_invalid_pointer,
        s::rocblas_status_invalid_size,
        s::rocblas_status_invalid_value,
    );
    let handle = Handle::new();
    let buffer = Buffer::new(&numbers::<T>(64, 5));
    let (a, b, c) = (
        buffer.ptr().cast_const(),
        buffer.ptr().wrapping_add(20),
        buffer.ptr().wrapping_add(40),
    );
    let (no, none) = (null::<T>(), null_mut::<T>());
    let (zero, two) = (T::of(C64::ZERO), T::of(C64::from(2.0)));
    let fine = (
        Side::rocblas_side_left,
        Fill::rocblas_fill_lower,
        Op::None.c(),
        Diag::rocblas_diagonal_unit,
    );
    let (l, f, o, d) = fine;
    let trsm = |raw, (l, f, o, d), [m, n, lda, ldb]: [i64; 4], alpha, a, b| {
        // SAFETY: what the model refuses is not touched.
        unsafe { T::trsm()(raw, l, f, o, d, I::of(m), I::of(n), alpha, a, I::of(lda), b, I::of(ldb)) }
    };
    let trmm = |(l, f, o, d), [m, n, lda, ldb, ldc]: [i64; 5], alpha, a, b, c| {
        // SAFETY: as above.
        unsafe {
            T::trmm()(
                handle.raw,
                l,
                f,
                o,
                d,
                I::of(m),
                I::of(n),
                alpha,
                a,
                I::of(lda),
                b,
                I::of(ldb),
                c,
                I::of(ldc),
            )
        }
    };
    assert_eq!(
        trsm(null_mut(), fine, [3, 2, 3, 3], no, no, none),
        s::rocblas_status_invalid_handle
    );
    for modes in [
        (Side::rocblas_side_both, f, o, d),
        (l, Fill::rocblas_fill_full, o, d),
        (l, f, rocblas_operation(7), d),
        (l, f, o, rocblas_diagonal(7)),
    ] {
        assert_eq!(trsm(handle.raw, modes, [-1; 4], no, no, none), value);
        assert_eq!(trmm(modes, [-1; 5], no, no, no, none), value);
    }
    for sizes in [[-1, 2, 3, 3], [3, -1, 3, 3], [3, 2, 2, 3], [3, 2, 3, 2]] {
        assert_eq!(trsm(handle.raw, fine, sizes, no, no, none), size);
        let [m, n, lda, ldb] = sizes;
        assert_eq!(trmm(fine, [m, n, lda, ldb, 5], no, no, no, none), size);
    }
    // From the right the triangle is of order n.
    assert_eq!(
        trsm(
            handle.raw,
            (Side::rocblas_side_right, f, o, d),
            [2, 3, 2, 3],
            no,
            no,
            none
        ),
        size
    );
    assert_eq!(trmm(fine, [3, 2, 3, 3, 2], no, no, no, none), size);
    assert_eq!(trsm(handle.raw, fine, [0, 2, 0, 0], no, no, none), SUCCESS);
    assert_eq!(trmm(fine, [3, 0, 3, 3, 3], no, no, no, none), SUCCESS);
    let sizes = [3, 2, 3, 3];
    assert_eq!(trsm(handle.raw, fine, sizes, no, a, b), pointer);
    assert_eq!(trsm(handle.raw, fine, sizes, &two, no, b), pointer);
    assert_eq!(trsm(handle.raw, fine, sizes, &zero, no, none), pointer);
    assert_eq!(trsm(handle.raw, fine, sizes, &two, b, b), pointer);
    let sizes = [3, 2, 3, 3, 4];
    assert_eq!(trmm(fine, sizes, no, a, b, c), pointer);
    assert_eq!(trmm(fine, sizes, &two, no, b, c), pointer);
    assert_eq!(trmm(fine, sizes, &two, a, no, c), pointer);
    assert_eq!(trmm(fine, sizes, &two, a, b, none), pointer);
    assert_eq!(trmm(fine, sizes, &two, a, b, b), value);
    assert_eq!(trmm(fine, [3, 2, 3, 3, 3], &two, a, b, b.wrapping_add(1)), pointer);
    assert_eq!(trmm(fine, [3, 2, 3, 3, 3], &two, b, c, b), pointer);
    buffer.assert_untouched();
    // alpha = 0 reads neither operand, not even what is no number.
    handle.finish(trsm(handle.raw, fine, [3, 2, 3, 3], &zero, no, b));
    handle.finish(trmm(fine, [3, 2, 3, 3, 3], &zero, no, no, c));
    let found = buffer.read();
    assert!(
        found[20..26]
            .iter()
            .chain(&found[40..46])
            .all(|x| x.wide() == C64::ZERO)
    );
    buffer.assert_only_written(|i| (20..26).contains(&i) || (40..46).contains(&i));
}

fn arrays_of_a_batch_are_device_memory<T: Triangular<I>, I: Int>() {
    let handle = Handle::apart();
    let buffer = Buffer::new(&numbers::<T>(64, 5));
    let (a, b) = (buffer.ptr(), buffer.ptr().wrapping_add(32));
    let alpha = T::of(C64::from(2.0));
    let (n, count) = (I::of(2), I::of(2));
    let call = |a, b| {
        let (side, fill) = (Side::rocblas_side_left, Fill::rocblas_fill_upper);
        let diag = Diag::rocblas_diagonal_unit;
        // SAFETY: the model refuses what is not device memory.
        unsafe {
            T::trsm_batched()(
                handle.raw,
                side,
                fill,
                Op::None.c(),
                diag,
                n,
                n,
                &alpha,
                a,
                n,
                b,
                n,
                count,
            )
        }
    };
    let inputs = Pointers::at(a, 4, 2);
    let outputs = Pointers::at(b, 4, 2);
    let on_host = [a.cast_const(); 2];
    let invalid = rocblas_status::rocblas_status_invalid_pointer;
    assert_eq!(call(on_host.as_ptr(), outputs.outputs()), invalid);
    assert_eq!(call(null(), outputs.outputs()), invalid);
    handle.finish(call(inputs.inputs(), outputs.outputs()));
    // Two results in one place, a matrix that is none: known in stream order only.
    let twice = Pointers::at(b, 0, 2);
    assert_eq!(call(inputs.inputs(), twice.outputs()), SUCCESS);
    assert_ne!(handle.wait(), hip_sys::hipError_t::hipSuccess);
    let handle = Handle::apart();
    let far = Pointers::at(a, 1 << 20, 2);
    let (side, fill) = (Side::rocblas_side_left, Fill::rocblas_fill_upper);
    let diag = Diag::rocblas_diagonal_unit;
    // SAFETY: the model refuses the second matrix.
    let status = unsafe {
        T::trsm_batched()(
            handle.raw,
            side,
            fill,
            Op::None.c(),
            diag,
            n,
            n,
            &alpha,
            far.inputs(),
            n,
            outputs.outputs(),
            n,
            count,
        )
    };
    assert_eq!(status, SUCCESS);
    assert_ne!(handle.wait(), hip_sys::hipError_t::hipSuccess);
}

for_all_types! {
    trsm_solves trmm_multiplies triangular_calls_refuse_in_rocblas_order
    arrays_of_a_batch_are_device_memory
}
