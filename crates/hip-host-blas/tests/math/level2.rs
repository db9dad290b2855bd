//! gemv and ger.

use std::ptr::{null, null_mut};

use proptest::prelude::*;
use rocblas_sys::{rocblas_operation, rocblas_status};

use crate::functions::{check, families, for_all_types};
use crate::level1::{increment, place, vector};
use crate::matrix::{Op, element, inside, op, stored};
use crate::memory::{Buffer, Handle, SUCCESS};
use crate::number::{C64, Int, assert_close, nan, numbers, sum};

families! { Level2 from BLAS:
    gemv(rocblas_operation, I, I, *const Self, *const Self, I, *const Self, I, *const Self, *mut Self, I) =
        rocblas_sgemv rocblas_dgemv rocblas_cgemv rocblas_zgemv;
        rocblas_sgemv_64 rocblas_dgemv_64 rocblas_cgemv_64 rocblas_zgemv_64;
    geru(I, I, *const Self, *const Self, I, *const Self, I, *mut Self, I) =
        rocblas_sger rocblas_dger rocblas_cgeru rocblas_zgeru;
        rocblas_sger_64 rocblas_dger_64 rocblas_cgeru_64 rocblas_zgeru_64;
    gerc(I, I, *const Self, *const Self, I, *const Self, I, *mut Self, I) =
        rocblas_sger rocblas_dger rocblas_cgerc rocblas_zgerc;
        rocblas_sger_64 rocblas_dger_64 rocblas_cgerc_64 rocblas_zgerc_64;
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1..20_usize, 1 => 200..600_usize]
}

fn gemv_agrees_with_loops<T: Level2<I>, I: Int>() {
    let handle = Handle::new();
    let input = (
        op(),
        size(),
        size(),
        0..3_usize,
        increment(),
        increment(),
        any::<u64>(),
        0..3,
    );
    check(input, |(op, m, n, gap, incx, incy, seed, kind)| {
        let lda = m + gap;
        let (rows, cols) = stored(op, m, n);
        let a = numbers::<T>(lda * n, seed);
        let x = vector::<T>(cols, incx, seed ^ 1);
        let scalars = numbers::<T>(2, seed ^ 3);
        let (alpha, beta) = match kind {
            0 => (scalars[0], T::of(C64::ZERO)),
            1 => (T::of(C64::ZERO), scalars[1]),
            _ => (scalars[0], scalars[1]),
        };
        let mut y = vector::<T>(rows, incy, seed ^ 2);
        if kind == 0 {
            // What beta = 0 replaces is not read.
            y.fill(nan());
        }
        let (device_a, device_x, device_y) = (Buffer::new(&a), Buffer::new(&x), Buffer::new(&y));
        // SAFETY: operands of those shapes.
        handle.finish(unsafe {
            T::gemv()(
                handle.raw,
                op.c(),
                I::of(m as i64),
                I::of(n as i64),
                &alpha,
                device_a.ptr(),
                I::of(lda as i64),
                device_x.ptr(),
                I::of(incx),
                &beta,
                device_y.ptr(),
                I::of(incy),
            )
        });
        device_a.assert_untouched();
        device_x.assert_untouched();
        device_y.assert_only_written(|i| i % incy.unsigned_abs() as usize == 0);
        let found = device_y.read();
        for row in 0..rows {
            let at = place(rows, incy, row);
            let old = if kind == 0 { C64::ZERO } else { y[at].wide() };
            let products = (0..cols).map(|col| {
                let a = element(&a, lda, op, row, col);
                (alpha.wide() * a, x[place(cols, incx, col)].wide())
            });
            let terms = products.chain([(beta.wide(), old)]);
            assert_close(found[at], sum::<T>(terms), || format!("{op:?} element {row}"));
        }
    });
}

fn ger_agrees_with_loops<T: Level2<I>, I: Int>() {
    let handle = Handle::new();
    let input = (
        size(),
        size(),
        0..3_usize,
        increment(),
        increment(),
        any::<u64>(),
        any::<bool>(),
    );
    check(input, |(m, n, gap, incx, incy, seed, conjugate)| {
        let lda = m + gap;
        let a = numbers::<T>(lda * n, seed);
        let (x, y) = (vector::<T>(m, incx, seed ^ 1), vector::<T>(n, incy, seed ^ 2));
        let alpha = numbers::<T>(1, seed ^ 3)[0];
        let (device_a, device_x, device_y) = (Buffer::new(&a), Buffer::new(&x), Buffer::new(&y));
        let ger = if conjugate { T::gerc() } else { T::geru() };
        // SAFETY: operands of those shapes.
        handle.finish(unsafe {
            ger(
                handle.raw,
                I::of(m as i64),
                I::of(n as i64),
                &alpha,
                device_x.ptr(),
                I::of(incx),
                device_y.ptr(),
                I::of(incy),
                device_a.ptr(),
                I::of(lda as i64),
            )
        });
        device_x.assert_untouched();
        device_y.assert_untouched();
        device_a.assert_only_written(|i| inside(i, m, n, lda));
        let found = device_a.read();
        for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
            let y = y[place(n, incy, col)].wide();
            let y = if conjugate { y.conj() } else { y };
            let terms = [
                (alpha.wide() * x[place(m, incx, row)].wide(), y),
                (a[row + col * lda].wide(), C64::ONE),
            ];
            assert_close(found[row + col * lda], sum::<T>(terms), || format!("({row}, {col})"));
        }
    });
}

fn level_2_refuses_in_rocblas_order<T: Level2<I>, I: Int>() {
    use rocblas_status as s;
    let (pointer, size) = (s::rocblas_status_invalid_pointer, s::rocblas_status_invalid_size);
    let handle = Handle::new();
    let buffer = Buffer::new(&numbers::<T>(64, 5));
    let (a, x, y) = (
        buffer.ptr(),
        buffer.ptr().wrapping_add(40),
        buffer.ptr().wrapping_add(50),
    );
    let (no, none) = (null::<T>(), null_mut::<T>());
    let (zero, one, two) = (T::of(C64::ZERO), T::of(C64::ONE), T::of(C64::from(2.0)));
    let gemv = |raw, op, [m, n, lda, incx, incy]: [i64; 5], alpha, a, x, beta, y| {
        // SAFETY: what the model refuses is not touched.
        unsafe {
            T::gemv()(
                raw,
                op,
                I::of(m),
                I::of(n),
                alpha,
                a,
                I::of(lda),
                x,
                I::of(incx),
                beta,
                y,
                I::of(incy),
            )
        }
    };
    let n = Op::None.c();
    let fine = [3, 4, 5, 1, 1];
    let wrong = rocblas_operation(7);
    let invalid_handle = s::rocblas_status_invalid_handle;
    assert_eq!(gemv(null_mut(), wrong, [-1; 5], no, no, no, no, none), invalid_handle);
    assert_eq!(
        gemv(handle.raw, wrong, [-1; 5], no, no, no, no, none),
        s::rocblas_status_invalid_value
    );
    for sizes in [
        [-1, 4, 5, 1, 1],
        [3, -1, 5, 1, 1],
        [3, 4, 2, 1, 1],
        [0, 4, 0, 1, 1],
        [3, 4, 5, 0, 1],
        [3, 4, 5, 1, 0],
    ] {
        assert_eq!(gemv(handle.raw, n, sizes, no, no, no, no, none), size, "{sizes:?}");
    }
    for sizes in [[0, 4, 1, 1, 1], [3, 0, 3, 1, 1]] {
        assert_eq!(gemv(handle.raw, n, sizes, no, no, no, no, none), SUCCESS);
    }
    assert_eq!(gemv(handle.raw, n, fine, no, a, x, &one, y), pointer);
    assert_eq!(gemv(handle.raw, n, fine, &two, a, x, no, y), pointer);
    assert_eq!(gemv(handle.raw, n, fine, &zero, no, no, &one, none), SUCCESS);
    assert_eq!(gemv(handle.raw, n, fine, &zero, no, no, &two, none), pointer);
    assert_eq!(gemv(handle.raw, n, fine, &two, no, x, &one, y), pointer);
    assert_eq!(gemv(handle.raw, n, fine, &two, a, no, &one, y), pointer);
    assert_eq!(gemv(handle.raw, n, fine, &two, a, x, &one, x), pointer);
    assert_eq!(gemv(handle.raw, n, fine, &two, a, x, &one, a.wrapping_add(10)), pointer);
    let host = numbers::<T>(64, 1);
    assert_eq!(gemv(handle.raw, n, fine, &two, host.as_ptr(), x, &one, y), pointer);
    let ger = |[m, n, lda, incx, incy]: [i64; 5], alpha, x, y, a| {
        // SAFETY: what the model refuses is not touched.
        unsafe {
            T::geru()(
                handle.raw,
                I::of(m),
                I::of(n),
                alpha,
                x,
                I::of(incx),
                y,
                I::of(incy),
                a,
                I::of(lda),
            )
        }
    };
    assert_eq!(ger([3, 4, 2, 1, 1], no, no, no, none), size);
    assert_eq!(ger([3, 4, 3, 1, 0], no, no, no, none), size);
    assert_eq!(ger([3, 0, 3, 1, 1], no, no, no, none), SUCCESS);
    assert_eq!(ger(fine, no, x, y, a), pointer);
    assert_eq!(ger(fine, &zero, no, no, none), SUCCESS);
    assert_eq!(ger(fine, &two, no, y, a), pointer);
    assert_eq!(ger(fine, &two, x, no, a), pointer);
    assert_eq!(ger(fine, &two, x, y, none), pointer);
    assert_eq!(ger(fine, &two, a.wrapping_add(1), y, a), pointer);
    handle.finish(SUCCESS);
    buffer.assert_untouched();
    // The row below a matrix of 3 rows in columns of 5 is not part of it.
    let below = a.wrapping_add(3);
    // SAFETY: 4 elements, 5 apart, between the columns of the matrix.
    handle.finish(unsafe {
        T::gemv()(
            handle.raw,
            n,
            I::of(3),
            I::of(4),
            &two,
            a,
            I::of(5),
            x,
            I::of(1),
            &one,
            below,
            I::of(5),
        )
    });
    buffer.assert_only_written(|i| i % 5 == 3 && i < 15);
}

for_all_types! {
    gemv_agrees_with_loops ger_agrees_with_loops level_2_refuses_in_rocblas_order
}
