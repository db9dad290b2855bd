//! Every form of gemm against a triple loop in double precision.

use num_complex::Complex;
use proptest::prelude::*;
use rocblas_sys::{
    Api, rocblas_double_complex, rocblas_float_complex, rocblas_handle, rocblas_operation, rocblas_status,
};

use crate::device::{Buffer, Element, Handle, Numbers, SUCCESS, same, slot};

type Plain<C, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_operation,
    rocblas_operation,
    I,
    I,
    I,
    *const C,
    *const C,
    I,
    *const C,
    I,
    *const C,
    *mut C,
    I,
) -> rocblas_status;
type Strided<C, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_operation,
    rocblas_operation,
    I,
    I,
    I,
    *const C,
    *const C,
    I,
    i64,
    *const C,
    I,
    i64,
    *const C,
    *mut C,
    I,
    i64,
    I,
) -> rocblas_status;
type Batched<C, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_operation,
    rocblas_operation,
    I,
    I,
    I,
    *const C,
    *const *const C,
    I,
    *const *const C,
    I,
    *const C,
    *const *mut C,
    I,
    I,
) -> rocblas_status;

pub trait Gemm: Element {
    /// The type in C.
    type C;
    fn plain(api: &Api) -> (Plain<Self::C, i32>, Plain<Self::C, i64>);
    fn strided(api: &Api) -> (Strided<Self::C, i32>, Strided<Self::C, i64>);
    fn batched(api: &Api) -> (Batched<Self::C, i32>, Batched<Self::C, i64>);
}

macro_rules! gemm {
    ($rust:ty, $c:ty: $plain:ident $plain64:ident $strided:ident $strided64:ident $batched:ident $batched64:ident) => {
        impl Gemm for $rust {
            type C = $c;
            fn plain(api: &Api) -> (Plain<$c, i32>, Plain<$c, i64>) {
                (slot!(api, $plain), slot!(api, $plain64))
            }
            fn strided(api: &Api) -> (Strided<$c, i32>, Strided<$c, i64>) {
                (slot!(api, $strided), slot!(api, $strided64))
            }
            fn batched(api: &Api) -> (Batched<$c, i32>, Batched<$c, i64>) {
                (slot!(api, $batched), slot!(api, $batched64))
            }
        }
    };
}
gemm!(f32, f32: rocblas_sgemm rocblas_sgemm_64 rocblas_sgemm_strided_batched rocblas_sgemm_strided_batched_64
    rocblas_sgemm_batched rocblas_sgemm_batched_64);
gemm!(f64, f64: rocblas_dgemm rocblas_dgemm_64 rocblas_dgemm_strided_batched rocblas_dgemm_strided_batched_64
    rocblas_dgemm_batched rocblas_dgemm_batched_64);
gemm!(Complex<f32>, rocblas_float_complex: rocblas_cgemm rocblas_cgemm_64
    rocblas_cgemm_strided_batched rocblas_cgemm_strided_batched_64 rocblas_cgemm_batched rocblas_cgemm_batched_64);
gemm!(Complex<f64>, rocblas_double_complex: rocblas_zgemm rocblas_zgemm_64
    rocblas_zgemm_strided_batched rocblas_zgemm_strided_batched_64 rocblas_zgemm_batched rocblas_zgemm_batched_64);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// The first matrix of the batch only.
    Plain,
    Strided,
    Batched,
}

/// Elements before the first matrix of each buffer, so that a write in front of it is seen.
const MARGIN: usize = 3;

#[derive(Clone, Debug)]
struct Case {
    form: Form,
    wide_int: bool,
    ops: [rocblas_operation; 2],
    m: usize,
    n: usize,
    k: usize,
    /// Added to the smallest legal leading dimension of A, B and C.
    extra_ld: [usize; 3],
    /// Added to the smallest stride without overlap; `None` is a stride of zero.
    extra_stride: [Option<usize>; 3],
    count: usize,
    alpha: Complex<f64>,
    beta: Complex<f64>,
    seed: u64,
}

#[derive(Clone, Copy)]
struct Layout {
    cols: usize,
    ld: usize,
    stride: usize,
    count: usize,
}

impl Layout {
    fn at(&self, i: usize, row: usize, col: usize) -> usize {
        MARGIN + i * self.stride + row + col * self.ld
    }

    fn len(&self) -> usize {
        MARGIN + self.stride * self.count + self.ld * self.cols + MARGIN
    }
}

impl Case {
    fn layouts(&self) -> [Layout; 3] {
        let Case { m, n, k, .. } = *self;
        let stored = |op, rows, cols| match op {
            rocblas_operation::rocblas_operation_none => (rows, cols),
            _ => (cols, rows),
        };
        let shapes = [stored(self.ops[0], m, k), stored(self.ops[1], k, n), (m, n)];
        std::array::from_fn(|i| {
            let (rows, cols) = shapes[i];
            let ld = rows.max(1) + self.extra_ld[i];
            Layout {
                cols,
                ld,
                stride: self.extra_stride[i].map_or(0, |extra| ld * cols + extra),
                count: self.count,
            }
        })
    }

    /// Calls the form under test and says if memory is as it must be afterwards.
    fn check<T: Gemm>(&self) -> Result<(), TestCaseError> {
        let Case { m, n, k, count, .. } = *self;
        let [la, lb, lc] = self.layouts();
        let (alpha, beta): (T, T) = (T::narrow(self.alpha), T::narrow(self.beta));
        let zero = Complex::ZERO;
        let mut numbers = Numbers::new(self.seed);
        let mut a: Vec<T> = numbers.elements(la.len());
        let mut b: Vec<T> = numbers.elements(lb.len());
        let mut c: Vec<T> = numbers.elements(lc.len());
        if alpha.wide() == zero {
            a.fill(T::NAN);
            b.fill(T::NAN);
        }
        let computed = if self.form == Form::Plain { 1 } else { count };
        let each = |mut visit: Box<dyn FnMut(usize, usize, usize) + '_>| {
            for i in 0..computed {
                for col in 0..n {
                    for row in 0..m {
                        visit(i, row, col);
                    }
                }
            }
        };
        if beta.wide() == zero {
            each(Box::new(|i, row, col| c[lc.at(i, row, col)] = T::NAN));
        }
        let (da, db, dc) = (Buffer::new(&a), Buffer::new(&b), Buffer::new(&c));
        let status = self.call(&da, &db, &dc, alpha, beta);
        prop_assert_eq!(status, SUCCESS);
        let after = dc.read();
        prop_assert!(same(&da.read(), &a) && same(&db.read(), &b), "an operand was written");

        let read = |op, layout: Layout, values: &[T], i, row, col| match op {
            rocblas_operation::rocblas_operation_none => values[layout.at(i, row, col)].wide(),
            rocblas_operation::rocblas_operation_transpose => values[layout.at(i, col, row)].wide(),
            _ => values[layout.at(i, col, row)].wide().conj(),
        };
        let mut rest = after.clone();
        let mut worst = Ok(());
        each(Box::new(|i, row, col| {
            let at = lc.at(i, row, col);
            let (mut sum, mut size) = (zero, 0.0);
            if alpha.wide() != zero {
                for p in 0..k {
                    let term =
                        alpha.wide() * read(self.ops[0], la, &a, i, row, p) * read(self.ops[1], lb, &b, i, p, col);
                    sum += term;
                    size += term.norm();
                }
            }
            if beta.wide() != zero {
                let term = beta.wide() * c[at].wide();
                sum += term;
                size += term.norm();
            }
            let error = (after[at].wide() - sum).norm();
            let bound = 4.0 * (k + 4) as f64 * T::EPSILON * size;
            // Written so that NaN fails too.
            let good = error <= bound;
            if !good {
                worst = Err(format!("C[{i}]({row}, {col}) = {:?}, expected {sum}", after[at]));
            }
            // What is left after the results are taken out must be as it was.
            rest[at] = c[at];
        }));
        prop_assert!(worst.is_ok(), "{:?}", worst);
        prop_assert!(same(&rest, &c), "an element outside the result was written");
        Ok(())
    }

    fn call<T: Gemm>(&self, a: &Buffer<T>, b: &Buffer<T>, c: &Buffer<T>, alpha: T, beta: T) -> rocblas_status {
        let api = hip_host_blas::rocblas_api();
        let handle = Handle::new();
        let [la, lb, lc] = self.layouts();
        let Case { m, n, k, count, .. } = *self;
        let [ta, tb] = self.ops;
        let first = |buffer: &Buffer<T>| buffer.ptr().wrapping_add(MARGIN).cast::<T::C>();
        let (pa, pb, pc) = (first(a).cast_const(), first(b).cast_const(), first(c));
        let (alpha, beta) = ((&raw const alpha).cast(), (&raw const beta).cast());
        let array = |buffer: &Buffer<T>, layout: Layout| {
            let pointers: Vec<_> = (0..count)
                .map(|i| first(buffer).wrapping_add(i * layout.stride))
                .collect();
            Buffer::new(&pointers)
        };
        macro_rules! call {
            ($int:ty, $pick:tt) => {
                // SAFETY: the buffers have the described layouts and outlive the call, which `read`
                // and `drop` wait for.
                unsafe {
                    match self.form {
                        Form::Plain => T::plain(&api).$pick(
                            handle.0,
                            ta,
                            tb,
                            m as $int,
                            n as $int,
                            k as $int,
                            alpha,
                            pa,
                            la.ld as $int,
                            pb,
                            lb.ld as $int,
                            beta,
                            pc,
                            lc.ld as $int,
                        ),
                        Form::Strided => T::strided(&api).$pick(
                            handle.0,
                            ta,
                            tb,
                            m as $int,
                            n as $int,
                            k as $int,
                            alpha,
                            pa,
                            la.ld as $int,
                            la.stride as i64,
                            pb,
                            lb.ld as $int,
                            lb.stride as i64,
                            beta,
                            pc,
                            lc.ld as $int,
                            lc.stride as i64,
                            count as $int,
                        ),
                        Form::Batched => {
                            let (a, b, c) = (array(a, la), array(b, lb), array(c, lc));
                            let status = T::batched(&api).$pick(
                                handle.0,
                                ta,
                                tb,
                                m as $int,
                                n as $int,
                                k as $int,
                                alpha,
                                a.ptr().cast_const().cast(),
                                la.ld as $int,
                                b.ptr().cast_const().cast(),
                                lb.ld as $int,
                                beta,
                                c.ptr().cast_const(),
                                lc.ld as $int,
                                count as $int,
                            );
                            // The arrays are read in stream order; freeing them waits.
                            status
                        }
                    }
                }
            };
        }
        if self.wide_int { call!(i64, 1) } else { call!(i32, 0) }
    }
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..24usize, 2 => 24..80usize, 1 => Just(1usize)]
}

fn operation() -> impl Strategy<Value = rocblas_operation> {
    prop_oneof![
        Just(rocblas_operation::rocblas_operation_none),
        Just(rocblas_operation::rocblas_operation_transpose),
        Just(rocblas_operation::rocblas_operation_conjugate_transpose),
    ]
}

fn factor() -> impl Strategy<Value = Complex<f64>> {
    prop_oneof![
        Just(Complex::ZERO),
        Just(Complex::ONE),
        Just(-Complex::<f64>::ONE),
        Just(Complex::I),
        (-2.0..2.0, -2.0..2.0).prop_map(|(re, im)| Complex::new(re, im)),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let form = prop_oneof![Just(Form::Plain), Just(Form::Strided), Just(Form::Batched)];
    let stride = || proptest::option::weighted(0.8, 0..5usize);
    (
        (form, any::<bool>(), [operation(), operation()]),
        (size(), size(), size()),
        [0..4usize, 0..4, 0..4],
        (stride(), stride(), 0..5usize),
        0..5usize,
        (factor(), factor()),
        any::<u64>(),
    )
        .prop_map(
            |((form, wide_int, ops), (m, n, k), extra_ld, strides, count, (alpha, beta), seed)| Case {
                form,
                wide_int,
                ops,
                m,
                n,
                k,
                extra_ld,
                extra_stride: [strides.0, strides.1, Some(strides.2)],
                count: if form == Form::Plain { 1 } else { count },
                alpha,
                beta,
                seed,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn sgemm_is_the_product_and_touches_nothing_else(case in case()) {
        case.check::<f32>()?;
    }

    #[test]
    fn dgemm_is_the_product_and_touches_nothing_else(case in case()) {
        case.check::<f64>()?;
    }

    #[test]
    fn cgemm_is_the_product_and_touches_nothing_else(case in case()) {
        case.check::<Complex<f32>>()?;
    }

    #[test]
    fn zgemm_is_the_product_and_touches_nothing_else(case in case()) {
        case.check::<Complex<f64>>()?;
    }
}

/// A case with nothing special about it.
fn ordinary(m: usize, n: usize, k: usize) -> Case {
    Case {
        form: Form::Strided,
        wide_int: false,
        ops: [rocblas_operation::rocblas_operation_none; 2],
        m,
        n,
        k,
        extra_ld: [0; 3],
        extra_stride: [Some(0); 3],
        count: 1,
        alpha: Complex::new(0.7, -0.3),
        beta: Complex::new(-0.2, 0.9),
        seed: 7,
    }
}

#[test]
fn products_larger_than_a_tile_are_whole() {
    for (m, n, k) in [(300, 260, 40), (257, 513, 3), (600, 1, 300), (1, 600, 20)] {
        let mut case = ordinary(m, n, k);
        case.ops = [
            rocblas_operation::rocblas_operation_conjugate_transpose,
            rocblas_operation::rocblas_operation_transpose,
        ];
        case.check::<f32>().unwrap();
        case.check::<Complex<f32>>().unwrap();
        case.ops = [rocblas_operation::rocblas_operation_none; 2];
        case.check::<f64>().unwrap();
        case.check::<Complex<f64>>().unwrap();
    }
}

#[test]
fn tall_thin_products_are_right_for_every_width_and_height() {
    for n in 1..=17 {
        for m in [32, 33, 39, 40, 63, 101] {
            let mut case = ordinary(m, n, 6);
            case.count = 2;
            case.extra_ld = [1, 0, 3];
            case.extra_stride = [Some(1), None, Some(2)];
            for beta in [Complex::ZERO, Complex::ONE, Complex::new(0.5, -1.5)] {
                case.beta = beta;
                case.check::<f32>().unwrap();
                case.check::<f64>().unwrap();
                case.check::<Complex<f32>>().unwrap();
                case.check::<Complex<f64>>().unwrap();
            }
        }
    }
    let mut tall = ordinary(40_000, 3, 2);
    tall.count = 2;
    tall.check::<Complex<f32>>().unwrap();
}

#[test]
fn a_batch_with_one_shared_operand_is_right() {
    let mut case = ordinary(400, 5, 5);
    case.count = 60;
    case.extra_stride = [Some(0), None, Some(0)];
    case.beta = Complex::ZERO;
    case.check::<Complex<f32>>().unwrap();
    case.ops[1] = rocblas_operation::rocblas_operation_conjugate_transpose;
    case.check::<Complex<f32>>().unwrap();
}

#[test]
fn the_same_call_gives_the_same_bits_every_time() {
    let mut numbers = Numbers::new(3);
    let case = ordinary(300, 280, 90);
    let [la, lb, lc] = case.layouts();
    let a = Buffer::new(&numbers.elements::<Complex<f32>>(la.len()));
    let b = Buffer::new(&numbers.elements::<Complex<f32>>(lb.len()));
    let zeros = vec![Complex::ZERO; lc.len()];
    let once = || {
        let c = Buffer::new(&zeros);
        assert_eq!(case.call(&a, &b, &c, Complex::ONE, Complex::ZERO), SUCCESS);
        c.read()
    };
    let first = once();
    for _ in 0..10 {
        assert!(same(&once(), &first));
    }
}
