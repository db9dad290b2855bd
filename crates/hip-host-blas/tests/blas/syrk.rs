//! herk and syrk against a triple loop in double precision.

use num_complex::Complex;
use proptest::prelude::*;
use rocblas_sys::{
    Api, rocblas_double_complex, rocblas_fill, rocblas_float_complex, rocblas_handle, rocblas_operation, rocblas_status,
};

use crate::device::{Buffer, Element, Handle, Numbers, SUCCESS, same, slot};

type RankK<S, C, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_fill,
    rocblas_operation,
    I,
    I,
    *const S,
    *const C,
    I,
    *const S,
    *mut C,
    I,
) -> rocblas_status;

/// The plain form and the `_64` form.
type Forms<S, C> = (RankK<S, C, i32>, RankK<S, C, i64>);

trait Syrk: Element {
    type C;
    fn symmetric(api: &Api) -> Forms<Self::C, Self::C>;
}

trait Herk: Syrk {
    type Real: Element;
    fn hermitian(api: &Api) -> Forms<Self::Real, Self::C>;
}

macro_rules! syrk {
    ($rust:ty, $c:ty: $syrk:ident $syrk64:ident) => {
        impl Syrk for $rust {
            type C = $c;
            fn symmetric(api: &Api) -> Forms<$c, $c> {
                (slot!(api, $syrk), slot!(api, $syrk64))
            }
        }
    };
}
syrk!(f32, f32: rocblas_ssyrk rocblas_ssyrk_64);
syrk!(f64, f64: rocblas_dsyrk rocblas_dsyrk_64);
syrk!(Complex<f32>, rocblas_float_complex: rocblas_csyrk rocblas_csyrk_64);
syrk!(Complex<f64>, rocblas_double_complex: rocblas_zsyrk rocblas_zsyrk_64);

impl Herk for Complex<f32> {
    type Real = f32;
    fn hermitian(api: &Api) -> Forms<f32, Self::C> {
        (slot!(api, rocblas_cherk), slot!(api, rocblas_cherk_64))
    }
}
impl Herk for Complex<f64> {
    type Real = f64;
    fn hermitian(api: &Api) -> Forms<f64, Self::C> {
        (slot!(api, rocblas_zherk), slot!(api, rocblas_zherk_64))
    }
}

#[derive(Clone, Debug)]
struct Case {
    wide_int: bool,
    uplo: rocblas_fill,
    trans: bool,
    n: usize,
    k: usize,
    extra_ld: [usize; 2],
    alpha: Complex<f64>,
    beta: Complex<f64>,
    seed: u64,
}

impl Case {
    /// `call(trans, sizes, a, c)` is the function under test.
    fn check<T: Element>(
        &self,
        hermitian: bool,
        alpha: Complex<f64>,
        beta: Complex<f64>,
        call: impl FnOnce(rocblas_operation, [usize; 4], *mut T, *mut T) -> rocblas_status,
    ) -> Result<(), TestCaseError> {
        let Case { n, k, .. } = *self;
        let zero = Complex::ZERO;
        let (rows, cols) = if self.trans { (k, n) } else { (n, k) };
        let (lda, ldc) = (rows.max(1) + self.extra_ld[0], n.max(1) + self.extra_ld[1]);
        let mut numbers = Numbers::new(self.seed);
        let mut a: Vec<T> = numbers.elements(lda * cols + 1);
        if alpha == zero {
            a.fill(T::NAN);
        }
        let mut c: Vec<T> = numbers.elements(ldc * n + 1);
        let in_triangle = |row, col| match self.uplo {
            rocblas_fill::rocblas_fill_lower => row >= col,
            _ => row <= col,
        };
        let triangle: Vec<(usize, usize)> = (0..n)
            .flat_map(|col| (0..n).map(move |row| (row, col)))
            .filter(|&(row, col)| in_triangle(row, col))
            .collect();
        if beta == zero {
            for &(row, col) in &triangle {
                c[row + col * ldc] = T::NAN;
            }
        }
        let (da, dc) = (Buffer::new(&a), Buffer::new(&c));
        let trans = match (self.trans, hermitian) {
            (false, _) => rocblas_operation::rocblas_operation_none,
            (true, true) => rocblas_operation::rocblas_operation_conjugate_transpose,
            (true, false) => rocblas_operation::rocblas_operation_transpose,
        };
        prop_assert_eq!(call(trans, [n, k, lda, ldc], da.ptr(), dc.ptr()), SUCCESS);
        let after = dc.read();
        let mut rest = after.clone();
        // A call with nothing to do leaves even the imaginary parts of the diagonal.
        let nothing = (k == 0 || alpha == zero) && beta == Complex::ONE;
        for (row, col) in triangle {
            let element = |i: usize, p: usize| {
                let value = if self.trans { a[p + i * lda] } else { a[i + p * lda] }.wide();
                if self.trans && hermitian { value.conj() } else { value }
            };
            let at = row + col * ldc;
            let (mut sum, mut size) = (zero, 0.0);
            if alpha != zero {
                for p in 0..k {
                    let right = element(col, p);
                    let term = alpha * element(row, p) * if hermitian { right.conj() } else { right };
                    sum += term;
                    size += term.norm();
                }
            }
            if beta != zero {
                let mut old = c[at].wide();
                if hermitian && row == col && !nothing {
                    old.im = 0.0;
                }
                sum += beta * old;
                size += (beta * old).norm();
            }
            let error = (after[at].wide() - sum).norm();
            let bound = 4.0 * (k + 4) as f64 * T::EPSILON * size;
            prop_assert!(error <= bound, "C({row}, {col}) = {:?}, expected {sum}", after[at]);
            if hermitian && row == col && !nothing {
                prop_assert_eq!(after[at].wide().im, 0.0);
            }
            rest[at] = c[at];
        }
        prop_assert!(same(&rest, &c), "an element outside the triangle was written");
        prop_assert!(same(&da.read(), &a), "the operand was written");
        Ok(())
    }

    fn symmetric<T: Syrk>(&self) -> Result<(), TestCaseError> {
        let (alpha, beta): (T, T) = (T::narrow(self.alpha), T::narrow(self.beta));
        let (api, handle) = (hip_host_blas::rocblas_api(), Handle::new());
        self.check::<T>(false, alpha.wide(), beta.wide(), |trans, [n, k, lda, ldc], a, c| {
            let (alpha, beta) = ((&raw const alpha).cast(), (&raw const beta).cast());
            let (a, c) = (a.cast(), c.cast());
            // SAFETY: the buffers have these shapes.
            unsafe {
                if self.wide_int {
                    T::symmetric(&api).1(
                        handle.0, self.uplo, trans, n as i64, k as i64, alpha, a, lda as i64, beta, c, ldc as i64,
                    )
                } else {
                    T::symmetric(&api).0(
                        handle.0, self.uplo, trans, n as i32, k as i32, alpha, a, lda as i32, beta, c, ldc as i32,
                    )
                }
            }
        })
    }

    fn hermitian<T: Herk>(&self) -> Result<(), TestCaseError> {
        let alpha: T::Real = Element::narrow(self.alpha);
        let beta: T::Real = Element::narrow(self.beta);
        let (api, handle) = (hip_host_blas::rocblas_api(), Handle::new());
        self.check::<T>(true, alpha.wide(), beta.wide(), |trans, [n, k, lda, ldc], a, c| {
            let (a, c) = (a.cast(), c.cast());
            // SAFETY: the buffers have these shapes.
            unsafe {
                if self.wide_int {
                    T::hermitian(&api).1(
                        handle.0, self.uplo, trans, n as i64, k as i64, &alpha, a, lda as i64, &beta, c, ldc as i64,
                    )
                } else {
                    T::hermitian(&api).0(
                        handle.0, self.uplo, trans, n as i32, k as i32, &alpha, a, lda as i32, &beta, c, ldc as i32,
                    )
                }
            }
        })
    }
}

fn case() -> impl Strategy<Value = Case> {
    let size = || prop_oneof![0..12usize, 12..70usize];
    let factor = || {
        prop_oneof![
            Just(Complex::ZERO),
            Just(Complex::ONE),
            (-2.0..2.0, -2.0..2.0).prop_map(|(re, im)| Complex::new(re, im)),
        ]
    };
    let uplo = prop_oneof![
        Just(rocblas_fill::rocblas_fill_upper),
        Just(rocblas_fill::rocblas_fill_lower)
    ];
    (
        (any::<bool>(), uplo, any::<bool>()),
        (size(), size()),
        [0..4usize, 0..4],
        (factor(), factor()),
        any::<u64>(),
    )
        .prop_map(
            |((wide_int, uplo, trans), (n, k), extra_ld, (alpha, beta), seed)| Case {
                wide_int,
                uplo,
                trans,
                n,
                k,
                extra_ld,
                alpha,
                beta,
                seed,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn cherk_updates_its_triangle_only(case in case()) {
        case.hermitian::<Complex<f32>>()?;
    }

    #[test]
    fn zherk_updates_its_triangle_only(case in case()) {
        case.hermitian::<Complex<f64>>()?;
    }

    #[test]
    fn ssyrk_and_dsyrk_update_their_triangle_only(case in case()) {
        case.symmetric::<f32>()?;
        case.symmetric::<f64>()?;
    }

    #[test]
    fn csyrk_and_zsyrk_update_their_triangle_only(case in case()) {
        case.symmetric::<Complex<f32>>()?;
        case.symmetric::<Complex<f64>>()?;
    }
}

#[test]
fn triangles_larger_than_a_tile_are_whole() {
    for uplo in [rocblas_fill::rocblas_fill_upper, rocblas_fill::rocblas_fill_lower] {
        for (trans, n, k) in [(false, 600, 30), (true, 341, 65), (false, 257, 5)] {
            let case = Case {
                wide_int: false,
                uplo,
                trans,
                n,
                k,
                extra_ld: [1, 2],
                alpha: Complex::new(0.5, 0.0),
                beta: Complex::new(-0.5, 0.0),
                seed: 11,
            };
            case.hermitian::<Complex<f32>>().unwrap();
            case.symmetric::<f64>().unwrap();
        }
    }
}
