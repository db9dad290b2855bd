//! getrf, getrs, getri and gesv.

use std::ptr::{null, null_mut};

use proptest::prelude::*;
use rocblas_sys::{rocblas_operation, rocblas_status};

use super::{Batch, Case, Form, SPARE, Solver, Solver32, assert_solved, case, indices, integers, norm};
use crate::functions::{check, for_all_types};
use crate::matrix::Op;
use crate::memory::{Buffer, Handle, SUCCESS};
use crate::number::{C64, Int, Number, numbers};

/// `P^T A = L U`, element by element.
fn assert_factors<T: Number>(case: Case, lu: &[T], a: &[T], ld: usize, pivots: Option<&[usize]>) {
    let Case { m, n, .. } = case;
    let mut rows: Vec<usize> = (0..m).collect();
    for (step, row) in pivots.unwrap_or_default().iter().enumerate() {
        assert!((step + 1..=m).contains(row), "pivot {row} in step {step} of {case:?}");
        rows.swap(step, row - 1);
    }
    let size = norm(lu, (m, n), ld).max(1.0) * norm(a, (m, n), ld).max(1.0);
    let bound = size * T::EPSILON * (m + n) as f64 * 4.0;
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let lower = |l: usize| {
            if l == i { C64::ONE } else { lu[i + l * ld].wide() }
        };
        let product: C64 = (0..=i.min(j).min(m - 1))
            .map(|l| lower(l) * lu[l + j * ld].wide())
            .sum();
        let error = (product - a[rows[i] + j * ld].wide()).norm();
        assert!(
            error <= bound,
            "{case:?} ({i}, {j}) is off by {error:e}, allowed {bound:e}"
        );
        if pivots.is_some() && j < i {
            assert!(
                lu[i + j * ld].wide().norm() <= 1.5,
                "{case:?} ({i}, {j}): not the largest pivot"
            );
        }
    }
}

fn getrf_factors_with_and_without_exchanges<T: Solver<I>, I: Int>() {
    let handle = Handle::new();
    check((case(), any::<bool>()), |(case, pivot)| {
        let Case { m, n, .. } = case;
        let mut a = Batch::<T>::new(case, (m, n), case.gaps[0], 0);
        if !pivot {
            // Without exchanges the diagonal has to be the largest.
            for i in 0..a.count {
                for j in 0..m.min(n) {
                    let at = i * a.ld * n + j * (a.ld + 1);
                    a.host[at] = T::of(a.host[at].wide() + C64::from((m + n) as f64));
                }
            }
            a = Batch::of(a.host, (m, n), a.ld, a.count);
        }
        let (steps, stride) = (m.min(n), (m.min(n) + SPARE) as i64);
        let (ipiv, info) = (integers::<I>(stride as usize * a.count), integers::<I>(a.count));
        let (m_, n_) = (I::of(m as i64), I::of(n as i64));
        handle.finish(if pivot {
            by_form!(case, handle, getrf getrf_strided getrf_batched, (m_, n_), a, [(ipiv.ptr(), stride)] [] [info.ptr()])
        } else {
            by_form!(case, handle, npvt npvt_strided npvt_batched, (m_, n_), a, [] [] [info.ptr()])
        });
        a.assert_only_elements_written();
        ipiv.assert_only_written(|i| pivot && i % (stride as usize) < steps);
        assert_eq!(indices(&info), vec![0; a.count]);
        let found = a.device.read();
        for i in 0..a.count {
            let pivots: Option<Vec<usize>> = pivot.then(|| {
                let all = ipiv.read();
                let mine = &all[i * stride as usize..][..steps];
                mine.iter().map(|&row| usize::try_from(row.into()).unwrap()).collect()
            });
            assert_factors(case, a.part(&found, i), a.part(&a.host, i), a.ld, pivots.as_deref());
        }
    });
}

fn getrs_solves_with_the_factors<T: Solver<I>, I: Int>() {
    let handle = Handle::new();
    check(case(), |case| {
        let Case { n, nrhs, op, .. } = case;
        let a = Batch::<T>::new(case, (n, n), case.gaps[0], 0);
        let b = Batch::<T>::new(case, (n, nrhs), case.gaps[1], 1);
        let stride = (n + SPARE) as i64;
        let (ipiv, info) = (integers::<I>(stride as usize * a.count), integers::<I>(a.count));
        let (n_, nrhs_) = (I::of(n as i64), I::of(nrhs as i64));
        handle.finish(by_form!(case, handle, getrf getrf_strided getrf_batched, (n_, n_), a, [(ipiv.ptr(), stride)] [] [info.ptr()]));
        let factors = format!("{:?}", a.device.read());
        handle.finish(by_form!(case, handle, getrs getrs_strided getrs_batched, (op.c(), n_, nrhs_), a, [(ipiv.ptr().cast_const(), stride)] [b] []));
        assert_eq!(format!("{:?}", a.device.read()), factors);
        b.assert_only_elements_written();
        assert_solved(case, op, &a, &b, &a.host);
    });
}

fn gesv_factors_and_solves<T: Solver32<I>, I: Int>() {
    let handle = Handle::new();
    check(case(), |case| {
        let Case { n, nrhs, .. } = case;
        let a = Batch::<T>::new(case, (n, n), case.gaps[0], 0);
        let b = Batch::<T>::new(case, (n, nrhs), case.gaps[1], 1);
        let stride = (n + SPARE) as i64;
        let (ipiv, info) = (integers::<I>(stride as usize * a.count), integers::<I>(a.count));
        let (n_, nrhs_) = (I::of(n as i64), I::of(nrhs as i64));
        handle.finish(by_form!(case, handle, gesv gesv_strided gesv_batched, (n_, nrhs_), a, [(ipiv.ptr(), stride)] [b] [info.ptr()]));
        assert_eq!(indices(&info), vec![0; a.count]);
        a.assert_only_elements_written();
        b.assert_only_elements_written();
        assert_solved(case, Op::None, &a, &b, &a.host);
        let found = a.device.read();
        let rows = ipiv.read();
        let rows: Vec<usize> = rows[..n]
            .iter()
            .map(|&row| usize::try_from(row.into()).unwrap())
            .collect();
        assert_factors(Case { m: n, ..case }, &found, &a.host, a.ld, Some(&rows));
    });
}

fn getri_inverts_in_place_and_apart<T: Solver32<I> + Solver<I>, I: Int>() {
    let handle = Handle::new();
    check((case(), any::<bool>()), |(case, in_place)| {
        let n = case.n;
        let a = Batch::<T>::new(case, (n, n), case.gaps[0], 0);
        let c = Batch::<T>::new(case, (n, n), case.gaps[1], 1);
        let stride = (n + SPARE) as i64;
        let (ipiv, info) = (integers::<I>(stride as usize * a.count), integers::<I>(a.count));
        let n_ = I::of(n as i64);
        handle.finish(by_form!(case, handle, getrf getrf_strided getrf_batched, (n_, n_), a, [(ipiv.ptr(), stride)] [] [info.ptr()]));
        handle.finish(if in_place {
            by_form!(case, handle, getri getri_strided getri_batched, (n_), a, [(ipiv.ptr(), stride)] [] [info.ptr()])
        } else {
            by_form!(case, handle, apart apart_strided apart_batched, (n_), a, [(ipiv.ptr(), stride)] [c] [info.ptr()])
        });
        assert_eq!(indices(&info), vec![0; a.count]);
        let inverse = if in_place { &a } else { &c };
        inverse.assert_only_elements_written();
        let found = inverse.device.read();
        for k in 0..a.count {
            let (a_k, x_k) = (a.part(&a.host, k), inverse.part(&found, k));
            let size = norm(a_k, (n, n), a.ld) * norm(x_k, (n, n), inverse.ld).max(1.0);
            let bound = size * T::EPSILON * 40.0 * (n + 1) as f64;
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let product: C64 = (0..n)
                    .map(|l| a_k[i + l * a.ld].wide() * x_k[l + j * inverse.ld].wide())
                    .sum();
                let error = (product - C64::from(f64::from(i == j))).norm();
                assert!(
                    error <= bound,
                    "{case:?} ({i}, {j}) is off by {error:e}, allowed {bound:e}"
                );
            }
        }
    });
}

/// 3 x 3 of rank 2: the second column is twice the first one.
fn singular<T: Number>() -> Vec<T> {
    [1.0, 2.0, 4.0, 2.0, 4.0, 8.0, 0.5, 3.0, 1.0]
        .map(|x| T::of(C64::from(x)))
        .to_vec()
}

fn a_zero_pivot_is_named_and_the_factors_are_complete<T: Solver<I> + Solver32<I>, I: Int>() {
    let handle = Handle::new();
    let (a, b) = (Buffer::new(&singular::<T>()), Buffer::new(&numbers::<T>(3, 1)));
    let (ipiv, info) = (integers::<I>(3), integers::<I>(1));
    let three = I::of(3);
    // SAFETY: matrices of those shapes.
    unsafe {
        handle.finish(T::getrf()(
            handle.raw,
            three,
            three,
            a.ptr(),
            three,
            ipiv.ptr(),
            info.ptr(),
        ));
        assert_eq!(indices(&info), [2]);
        assert_eq!(indices(&ipiv)[0], 3);
        let factors = a.read();
        assert!(factors.iter().all(|x| x.wide().is_finite()), "{factors:?}");
        let case = Case {
            m: 3,
            n: 3,
            nrhs: 1,
            gaps: [0; 2],
            op: Op::None,
            upper: false,
            seed: 0,
            form: Form::Plain,
        };
        assert_factors(case, &factors, &singular::<T>(), 3, Some(&indices(&ipiv)));
        handle.finish(T::getri()(handle.raw, three, a.ptr(), three, ipiv.ptr(), info.ptr()));
        assert_eq!(indices(&info), [2]);
        assert_eq!(format!("{:?}", a.read()), format!("{factors:?}"));
        let again = Buffer::new(&singular::<T>());
        handle.finish(T::gesv()(
            handle.raw,
            three,
            I::of(1),
            again.ptr(),
            three,
            ipiv.ptr(),
            b.ptr(),
            three,
            info.ptr(),
        ));
    }
    assert_eq!(indices(&info), [2]);
    b.assert_untouched();
}

fn general_solvers_refuse_in_rocsolver_order<T: Solver<I>, I: Int>() {
    use rocblas_status as s;
    let (pointer, size) = (s::rocblas_status_invalid_pointer, s::rocblas_status_invalid_size);
    let handle = Handle::apart();
    let buffer = Buffer::new(&numbers::<T>(40, 3));
    let (a, b) = (buffer.ptr(), buffer.ptr().wrapping_add(20));
    let (ipiv, info) = (integers::<I>(8), integers::<I>(2));
    let (no, none) = (null_mut::<T>(), null_mut::<I>());
    let getrf = |raw, [m, n, lda]: [i64; 3], a, ipiv, info| {
        // SAFETY: what the model refuses is not touched.
        unsafe { T::getrf()(raw, I::of(m), I::of(n), a, I::of(lda), ipiv, info) }
    };
    let (p, i) = (ipiv.ptr(), info.ptr());
    assert_eq!(
        getrf(null_mut(), [-1; 3], no, none, none),
        s::rocblas_status_invalid_handle
    );
    for sizes in [[-1, 2, 2], [2, -1, 2], [3, 2, 2]] {
        assert_eq!(getrf(handle.raw, sizes, no, none, none), size);
    }
    assert_eq!(getrf(handle.raw, [3, 2, 3], no, p, i), pointer);
    assert_eq!(getrf(handle.raw, [3, 2, 3], a, none, i), pointer);
    assert_eq!(getrf(handle.raw, [3, 2, 3], a, p, none), pointer);
    assert_eq!(getrf(handle.raw, [0, 2, 0], no, none, none), pointer);
    let mut on_host = [I::of(0); 4];
    assert_eq!(getrf(handle.raw, [3, 2, 3], a, on_host.as_mut_ptr(), i), pointer);
    assert_eq!(getrf(handle.raw, [3, 2, 3], a, p, on_host.as_mut_ptr()), pointer);
    info.assert_untouched();
    handle.finish(getrf(handle.raw, [0, 2, 0], no, none, i));
    assert_eq!(info.read()[0].into(), 0);
    let getrs = |trans, [n, nrhs, lda, ldb]: [i64; 4], a, p: *const I, b| {
        // SAFETY: as above.
        unsafe {
            T::getrs()(
                handle.raw,
                trans,
                I::of(n),
                I::of(nrhs),
                a,
                I::of(lda),
                p,
                b,
                I::of(ldb),
            )
        }
    };
    let n = Op::None.c();
    let p = p.cast_const();
    assert_eq!(
        getrs(rocblas_operation(7), [-1; 4], no, null(), no),
        s::rocblas_status_invalid_value
    );
    for sizes in [[-1, 1, 3, 3], [3, -1, 3, 3], [3, 1, 2, 3], [3, 1, 3, 2]] {
        assert_eq!(getrs(n, sizes, no, null(), no), size);
    }
    assert_eq!(getrs(n, [0, 1, 0, 0], no, null(), no), SUCCESS);
    assert_eq!(getrs(n, [3, 0, 3, 3], a, p, no), SUCCESS);
    assert_eq!(getrs(n, [3, 1, 3, 3], no, p, b), pointer);
    assert_eq!(getrs(n, [3, 1, 3, 3], a, null(), b), pointer);
    assert_eq!(getrs(n, [3, 1, 3, 3], a, p, no), pointer);
    assert_eq!(getrs(n, [3, 1, 3, 3], a, p, a), pointer);
    buffer.assert_untouched();
    // No row of the matrix has the number -7; it is read in stream order.
    assert_eq!(getrs(n, [3, 1, 3, 3], a, p, b), SUCCESS);
    assert_ne!(handle.wait(), hip_sys::hipError_t::hipSuccess);
    buffer.assert_untouched();
}

for_all_types! {
    getrf_factors_with_and_without_exchanges getrs_solves_with_the_factors
    general_solvers_refuse_in_rocsolver_order
}
for_all_types! { 32:
    gesv_factors_and_solves getri_inverts_in_place_and_apart
    a_zero_pivot_is_named_and_the_factors_are_complete
}
