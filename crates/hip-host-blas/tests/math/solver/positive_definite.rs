//! potrf, potrs, posv and potri.

use proptest::prelude::*;

use super::{Batch, Case, Fill, Solver, Solver32, assert_solved, case, indices, integers};
use crate::functions::{check, for_all_types};
use crate::matrix::Op;
use crate::memory::Handle;
use crate::number::{C64, Int, Number};

/// A hermitian matrix with a large diagonal, of which only one triangle is told.
fn positive_definite<T: Number>(case: Case) -> (Batch<T>, Vec<T>) {
    let mut a = Batch::<T>::new(case, (case.n, case.n), case.gaps[0], 0);
    let mut whole = a.host.clone();
    for k in 0..a.count {
        let at = |i: usize, j: usize| k * a.ld * case.n + i + j * a.ld;
        for (i, j) in (0..case.n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let mut value = whole[at(i, j)].wide();
            if i == j {
                value = C64::from(value.re + 2.0 * case.n as f64);
            }
            (whole[at(i, j)], whole[at(j, i)]) = (T::of(value), T::of(value.conj()));
            let (told, other) = if case.upper {
                (at(j, i), at(i, j))
            } else {
                (at(i, j), at(j, i))
            };
            a.host[other] = crate::number::nan();
            a.host[told] = whole[told];
        }
    }
    (Batch::of(a.host, a.shape, a.ld, a.count), whole)
}

impl Case {
    fn fill(self) -> Fill {
        if self.upper {
            Fill::rocblas_fill_upper
        } else {
            Fill::rocblas_fill_lower
        }
    }

    /// True if the element belongs to the triangle that is told.
    fn told(self, i: usize, ld: usize) -> bool {
        let (row, col) = (i % (ld * self.n) % ld, i % (ld * self.n) / ld);
        row < self.n && (row == col || (row < col) == self.upper)
    }
}

fn potrs_solves_with_the_factor<T: Solver<I>, I: Int>() {
    let handle = Handle::new();
    check(case(), |case| {
        let (a, whole) = positive_definite::<T>(case);
        let b = Batch::<T>::new(case, (case.n, case.nrhs), case.gaps[1], 1);
        let info = integers::<I>(a.count);
        let (n, nrhs, lda) = (I::of(case.n as i64), I::of(case.nrhs as i64), I::of(a.ld as i64));
        // SAFETY: matrices of those shapes.
        handle.finish(unsafe {
            if a.count == 1 {
                T::potrf()(handle.raw, case.fill(), n, a.device.ptr(), lda, info.ptr())
            } else {
                T::potrf_batched()(
                    handle.raw,
                    case.fill(),
                    n,
                    a.pointers.outputs(),
                    lda,
                    info.ptr(),
                    I::of(a.count as i64),
                )
            }
        });
        assert_eq!(indices(&info), vec![0; a.count]);
        a.device.assert_only_written(|i| case.told(i, a.ld));
        handle.finish(by_form!(case, handle, potrs potrs_strided potrs_batched, (case.fill(), n, nrhs), a, [] [b] []));
        b.assert_only_elements_written();
        assert_solved(case, Op::None, &a, &b, &whole);
    });
}

fn posv_solves_or_names_the_minor<T: Solver32<I>, I: Int>() {
    let handle = Handle::new();
    check((case(), any::<bool>()), |(case, spoil)| {
        let (mut a, whole) = positive_definite::<T>(case);
        let b = Batch::<T>::new(case, (case.n, case.nrhs), case.gaps[1], 1);
        // The last matrix of the batch gets a minor that is not positive definite.
        let minor = case.seed as usize % case.n;
        if spoil {
            let at = (a.count - 1) * a.ld * case.n + minor * (a.ld + 1);
            a.host[at] = T::of(C64::from(-1.0));
            a = Batch::of(a.host, a.shape, a.ld, a.count);
        }
        let info = integers::<I>(a.count);
        let (n, nrhs) = (I::of(case.n as i64), I::of(case.nrhs as i64));
        handle.finish(
            by_form!(case, handle, posv posv_strided posv_batched, (case.fill(), n, nrhs), a, [] [b] [info.ptr()]),
        );
        let mut expected = vec![0; a.count];
        if spoil {
            expected[a.count - 1] = minor + 1;
        }
        assert_eq!(indices(&info), expected);
        a.device.assert_only_written(|i| case.told(i, a.ld));
        b.assert_only_elements_written();
        if spoil {
            let last = b.ld * case.nrhs * (a.count - 1);
            b.device.assert_only_written(|i| i < last);
        } else {
            assert_solved(case, Op::None, &a, &b, &whole);
            // SAFETY: as above.
            handle.finish(unsafe {
                T::potri_batched()(
                    handle.raw,
                    case.fill(),
                    n,
                    a.pointers.outputs(),
                    I::of(a.ld as i64),
                    info.ptr(),
                    I::of(a.count as i64),
                )
            });
            a.device.assert_only_written(|i| case.told(i, a.ld));
        }
    });
}

for_all_types! { potrs_solves_with_the_factor }
for_all_types! { 32: posv_solves_or_names_the_minor }
