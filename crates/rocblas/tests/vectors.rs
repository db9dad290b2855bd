//! Levels 1 and 2 against a plain double-precision reference, with vectors of any increment.

mod common;

use common::{C64, Number, Setup, element, numbers, op, setup};
use hip::DeviceBuffer;
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Error, Matrix, Op, Scalar, Vector};

/// A vector of the tests: where it lies in its buffer.
#[derive(Debug, Clone, Copy)]
struct Place {
    n: usize,
    inc: isize,
    offset: usize,
}

impl Place {
    fn buffer_len(self) -> usize {
        self.offset + self.n * self.inc.unsigned_abs() + 2
    }

    /// Where element `i` lies.
    fn at(self, i: usize) -> usize {
        let steps = if self.inc > 0 { i } else { self.n - 1 - i };
        self.offset + steps * self.inc.unsigned_abs()
    }

    fn values<T: Number>(self, data: &[T]) -> Vec<C64> {
        (0..self.n).map(|i| data[self.at(i)].wide()).collect()
    }

    fn vector<T>(self, buffer: &DeviceBuffer<T>) -> Vector<&DeviceBuffer<T>> {
        Vector::new(buffer, self.n, self.inc).at(self.offset)
    }

    fn vector_mut<T>(self, buffer: &mut DeviceBuffer<T>) -> Vector<&mut DeviceBuffer<T>> {
        Vector::new(buffer, self.n, self.inc).at(self.offset)
    }

    /// The elements are as `expected` says, within its bounds, and nothing else was changed.
    fn holds<T: Number>(self, found: &[T], before: &[T], expected: &[(C64, f64)]) {
        let mut inside = vec![false; found.len()];
        for (i, &(value, bound)) in expected.iter().enumerate() {
            let at = self.at(i);
            inside[at] = true;
            let off = (found[at].wide() - value).norm();
            assert!(off <= bound, "element {i}: {:?}, not {value}", found[at]);
        }
        for at in 0..found.len() {
            assert!(
                inside[at] || found[at] == before[at],
                "element {at} of the buffer is outside the vector and was changed"
            );
        }
    }
}

fn inc() -> impl Strategy<Value = isize> {
    prop_oneof![Just(1), Just(-1), 1_isize..5, -4_isize..0]
}

fn place(n: usize) -> impl Strategy<Value = Place> {
    (inc(), 0_usize..4).prop_map(move |(inc, offset)| Place { n, inc, offset })
}

fn factor() -> impl Strategy<Value = C64> {
    prop_oneof![
        Just(C64::ZERO),
        Just(C64::ONE),
        (-2.0..2.0_f64, -2.0..2.0_f64).prop_map(|(re, im)| C64::new(re, im)),
    ]
}

/// The bound of one sum of `terms` products that are `size` large together.
fn bound<T: Number>(terms: usize, size: f64) -> f64 {
    size * T::EPSILON * (2.0 * terms as f64 + 8.0)
}

/// The two vectors in buffers of a device.
fn level_1_is_right<T: Number>(setup: &Setup, x: Place, y: Place, alpha: C64, seed: u64)
where
    T::Real: Number,
{
    let alpha = T::of(alpha);
    let data_x = numbers::<T>(x.buffer_len(), seed);
    let data_y = numbers::<T>(y.buffer_len(), seed ^ 1);
    let (xs, ys) = (x.values(&data_x), y.values(&data_y));
    let mut buffer_x = setup.upload(&data_x);
    let mut buffer_y = setup.upload(&data_y);
    let blas = &setup.blas;

    let sum = |conjugate: bool| -> (C64, f64) {
        let products = xs
            .iter()
            .zip(&ys)
            .map(|(x, y)| if conjugate { x.conj() * y } else { x * y });
        let size = products.clone().map(|product| product.norm()).sum();
        (products.sum(), bound::<T>(x.n, size))
    };
    let (vx, vy) = (x.vector(&buffer_x), y.vector(&buffer_y));
    for (found, expected) in [
        (blas.dot(vx, vy).unwrap(), sum(false)),
        (blas.dotc(vx, vy).unwrap(), sum(true)),
    ] {
        assert!(common::close(found, expected), "{found:?}, not {expected:?}");
    }
    let squares: f64 = xs.iter().map(|x| x.norm_sqr()).sum();
    let absolutes: f64 = xs.iter().map(|x| x.re.abs() + x.im.abs()).sum();
    for (found, expected) in [
        (blas.nrm2(vx).unwrap(), squares.sqrt()),
        (blas.asum(vx).unwrap(), absolutes),
    ] {
        let off = (found.wide() - expected).norm();
        assert!(off <= bound::<T>(x.n, expected), "{found:?}, not {expected}");
    }

    let mut results = setup.upload(&[T::ONE; 2]);
    let mut norms = setup.upload(&[T::Real::ONE; 2]);
    {
        let (one, other) = results.on_mut(&setup.stream).unwrap().split_at_mut(1).unwrap();
        blas.dot_into(vx, vy, one).unwrap();
        blas.dotc_into(vx, vy, other).unwrap();
        let (one, other) = norms.on_mut(&setup.stream).unwrap().split_at_mut(1).unwrap();
        blas.nrm2_into(vx, one).unwrap();
        blas.asum_into(vx, other).unwrap();
    }
    let on_host = [blas.dot(vx, vy).unwrap(), blas.dotc(vx, vy).unwrap()];
    assert_eq!(setup.download(&results), on_host);
    let on_host = [blas.nrm2(vx).unwrap(), blas.asum(vx).unwrap()];
    assert_eq!(setup.download(&norms), on_host);

    let (vx, vy) = (x.vector(&buffer_x), y.vector_mut(&mut buffer_y));
    blas.axpy(alpha, vx, vy).unwrap();
    let expected: Vec<_> = xs
        .iter()
        .zip(&ys)
        .map(|(x, y)| {
            let product = alpha.wide() * x;
            (product + y, bound::<T>(1, product.norm() + y.norm()))
        })
        .collect();
    y.holds(&setup.download(&buffer_y), &data_y, &expected);

    blas.copy(x.vector(&buffer_x), y.vector_mut(&mut buffer_y)).unwrap();
    let exact = |values: &[C64]| values.iter().map(|&value| (value, 0.0)).collect::<Vec<_>>();
    y.holds(&setup.download(&buffer_y), &data_y, &exact(&xs));

    let mut buffer_y = setup.upload(&data_y);
    let (vx, vy) = (x.vector_mut(&mut buffer_x), y.vector_mut(&mut buffer_y));
    blas.swap(vx, vy).unwrap();
    x.holds(&setup.download(&buffer_x), &data_x, &exact(&ys));
    y.holds(&setup.download(&buffer_y), &data_y, &exact(&xs));

    blas.scal(alpha, y.vector_mut(&mut buffer_y)).unwrap();
    let expected: Vec<_> = xs
        .iter()
        .map(|x| (alpha.wide() * x, bound::<T>(1, (alpha.wide() * x).norm())))
        .collect();
    y.holds(&setup.download(&buffer_y), &data_y, &expected);
}

#[derive(Debug, Clone)]
struct Product {
    op: Op,
    gap: usize,
    x: Place,
    y: Place,
    alpha: C64,
    beta: C64,
    seed: u64,
}

fn product() -> impl Strategy<Value = Product> {
    (1_usize..12, 1_usize..12).prop_flat_map(|(rows, cols)| {
        (
            op(),
            0_usize..4,
            place(cols),
            place(rows),
            factor(),
            factor(),
            any::<u64>(),
        )
            .prop_map(|(op, gap, x, y, alpha, beta, seed)| Product {
                op,
                gap,
                x,
                y,
                alpha,
                beta,
                seed,
            })
    })
}

fn gemv_is_right<T: Number>(setup: &Setup, case: &Product) {
    let Product { op, x, y, seed, .. } = *case;
    let (alpha, beta) = (T::of(case.alpha), T::of(case.beta));
    let (rows, cols) = common::stored(op, y.n, x.n);
    let ld = rows + case.gap;
    let a = numbers::<T>(ld * cols, seed);
    let data_x = numbers::<T>(x.buffer_len(), seed ^ 1);
    let data_y = numbers::<T>(y.buffer_len(), seed ^ 2);
    let (buffer_a, buffer_x) = (setup.upload(&a), setup.upload(&data_x));
    let mut buffer_y = setup.upload(&data_y);
    let matrix = Matrix::new(buffer_a.on(&setup.stream).unwrap(), rows, cols, ld);
    let (vx, vy) = (x.vector(&buffer_x), y.vector_mut(&mut buffer_y));
    setup.blas.gemv(op, alpha, matrix, vx, beta, vy).unwrap();

    let (xs, ys) = (x.values(&data_x), y.values(&data_y));
    let expected: Vec<_> = (0..y.n)
        .map(|i| {
            let before = T::of(ys[i]);
            let (a, x) = (|l| element(&a, 0, ld, op, i, l), |l: usize| xs[l]);
            common::expected(xs.len(), alpha, beta, before, a, x)
        })
        .collect();
    y.holds(&setup.download(&buffer_y), &data_y, &expected);
}

fn ger_is_right<T: Number>(setup: &Setup, case: &Product, conjugate: bool) {
    let Product { x, y, seed, .. } = *case;
    let alpha = T::of(case.alpha);
    let (rows, cols) = (x.n, y.n);
    let ld = rows + case.gap;
    let before = numbers::<T>(ld * cols, seed);
    let data_x = numbers::<T>(x.buffer_len(), seed ^ 1);
    let data_y = numbers::<T>(y.buffer_len(), seed ^ 2);
    let mut buffer_a = setup.upload(&before);
    let (buffer_x, buffer_y) = (setup.upload(&data_x), setup.upload(&data_y));
    let matrix = Matrix::new(buffer_a.on_mut(&setup.stream).unwrap(), rows, cols, ld);
    let (vx, vy) = (x.vector(&buffer_x), y.vector(&buffer_y));
    if conjugate {
        setup.blas.gerc(alpha, vx, vy, matrix)
    } else {
        setup.blas.ger(alpha, vx, vy, matrix)
    }
    .unwrap();

    let (xs, ys) = (x.values(&data_x), y.values(&data_y));
    for (index, found) in setup.download(&buffer_a).into_iter().enumerate() {
        let (i, j) = (index % ld, index / ld);
        if i >= rows {
            assert_eq!(found, before[index], "between the columns");
            continue;
        }
        let other = if conjugate { ys[j].conj() } else { ys[j] };
        let expected = common::expected(1, alpha, T::ONE, before[index], |_| xs[i], |_| other);
        assert!(
            common::close(found, expected),
            "({i}, {j}): {found:?}, not {expected:?}"
        );
    }
}

proptest! {
    #![proptest_config(common::cases(60))]

    #[test]
    fn level_1_is_what_its_formulas_say(
        (x, y) in (0_usize..40).prop_flat_map(|n| (place(n), place(n))), alpha in factor(), seed in any::<u64>(),
    ) {
        let setup = setup();
        level_1_is_right::<f32>(&setup, x, y, alpha, seed);
        level_1_is_right::<f64>(&setup, x, y, alpha, seed);
        level_1_is_right::<Complex<f32>>(&setup, x, y, alpha, seed);
        level_1_is_right::<Complex<f64>>(&setup, x, y, alpha, seed);
    }

    #[test]
    fn gemv_is_the_product(case in product()) {
        let setup = setup();
        gemv_is_right::<f32>(&setup, &case);
        gemv_is_right::<f64>(&setup, &case);
        gemv_is_right::<Complex<f32>>(&setup, &case);
        gemv_is_right::<Complex<f64>>(&setup, &case);
    }

    #[test]
    fn ger_is_the_outer_product(case in product()) {
        let setup = setup();
        for conjugate in [false, true] {
            ger_is_right::<f32>(&setup, &case, conjugate);
            ger_is_right::<f64>(&setup, &case, conjugate);
            ger_is_right::<Complex<f32>>(&setup, &case, conjugate);
            ger_is_right::<Complex<f64>>(&setup, &case, conjugate);
        }
    }
}

#[test]
fn a_complex_vector_is_scaled_by_a_real_number() {
    let setup = setup();
    let mut x = setup.upload(&[Complex::new(1.0_f32, -2.0), Complex::new(3.0, 4.0)]);
    let backwards = Vector::new(x.on_mut(&setup.stream).unwrap(), 2, -1);
    setup.blas.scal_real(0.5, backwards).unwrap();
    assert_eq!(setup.download(&x), [Complex::new(0.5, -1.0), Complex::new(1.5, 2.0)]);
}

#[test]
fn a_vector_has_to_fit_its_memory() {
    let setup = setup();
    let buffer = setup.upload(&[0.0_f32; 10]);
    let of = |n, inc| setup.blas.asum(Vector::new(&buffer, n, inc)).map(drop);
    let misfit = |n, inc| match of(n, inc) {
        Err(Error::Operand {
            call: "asum",
            argument: "x",
            cause,
        }) => *cause,
        other => panic!("{other:?}"),
    };
    of(10, 1).unwrap();
    of(4, 3).unwrap();
    of(4, -3).unwrap();
    of(0, isize::MIN).unwrap();
    of(1, isize::MAX).unwrap();
    assert_eq!(
        misfit(5, -3).to_string(),
        "a vector of 5 elements with increment -3 needs 13 elements; the memory has 10"
    );
    assert!(matches!(
        misfit(usize::MAX / 2, isize::MIN),
        Error::TooShort { needed: usize::MAX, .. }
    ));
    assert!(matches!(misfit(usize::MAX, 1), Error::TooLarge { .. }));
    assert_eq!(
        misfit(2, 0).to_string(),
        "a vector cannot have increment 0; use 1, or a negative one to run backwards"
    );
}

#[test]
fn vectors_of_the_wrong_length_are_refused_by_name() {
    let setup = setup();
    let stream = &setup.stream;
    let (x, a) = (setup.upload(&[0.0_f32; 3]), setup.upload(&[0.0_f32; 6]));
    let (mut y, mut b) = (setup.upload(&[0.0_f32; 2]), setup.upload(&[0.0_f32; 6]));
    let vx = Vector::from(&x);
    let a = Matrix::new(a.on(stream).unwrap(), 3, 2, 3);
    let mut run = |which: usize| {
        let vy = Vector::from(&mut y);
        match which {
            0 => setup.blas.axpy(1.0, vx, vy),
            1 => setup.blas.copy(vx, vy),
            2 => setup.blas.dot(vx, vy).map(drop),
            3 => setup.blas.gemv(Op::None, 1.0, a, vx, 0.0, vy),
            4 => setup.blas.gemv(Op::Transpose, 1.0, a, vx, 0.0, vy),
            5 => {
                let b = Matrix::new(b.on_mut(stream).unwrap(), 2, 3, 2);
                setup.blas.ger(1.0, vx, vy, b)
            }
            _ => unreachable!(),
        }
    };
    for (which, text) in [
        (0, "axpy: y is a vector of 2, but one of 3 is needed"),
        (1, "copy: y is a vector of 2, but one of 3 is needed"),
        (2, "dot: y is a vector of 2, but one of 3 is needed"),
        (3, "gemv: x is a vector of 3, but one of 2 is needed"),
        (5, "ger: x is a vector of 3, but one of 2 is needed"),
    ] {
        assert_eq!(run(which).unwrap_err().to_string(), text);
    }
    run(4).unwrap();
}

#[test]
fn a_sum_over_nothing_is_zero() {
    let setup = setup();
    let nothing = setup.device.alloc::<f64>(0).unwrap();
    let mut result = setup.upload(&[7.0_f64, 7.0]);
    let x = Vector::from(&nothing);
    assert_eq!(setup.blas.dot(x, x).unwrap(), 0.0);
    assert_eq!(setup.blas.nrm2(x).unwrap(), 0.0);
    let (dot, norm) = result.on_mut(&setup.stream).unwrap().split_at_mut(1).unwrap();
    setup.blas.dot_into(x, x, dot).unwrap();
    setup.blas.nrm2_into(x, norm).unwrap();
    assert_eq!(setup.download(&result), [0.0, 0.0]);
}

#[test]
fn a_result_is_one_element_of_the_handles_stream() {
    let setup = setup();
    let other = setup.device.stream().unwrap();
    let x = setup.upload(&[1.0_f32; 2]);
    let mut result = setup.upload(&[0.0_f32; 2]);
    let v = Vector::from(&x);
    assert_eq!(
        setup
            .blas
            .nrm2_into(v, result.on_mut(&setup.stream).unwrap())
            .unwrap_err()
            .to_string(),
        "nrm2_into: result is memory of 2 elements, but one element is needed"
    );
    let (one, _) = result.on_mut(&other).unwrap().split_at_mut(1).unwrap();
    assert!(matches!(
        setup.blas.dot_into(v, v, one),
        Err(Error::WrongStream { argument: "result", .. })
    ));
}

#[test]
fn one_element_may_have_any_increment() {
    let setup = setup();
    let mut x = setup.upload(&[3.0_f32]);
    for inc in [isize::MIN, -1, 1] {
        let slice = x.on(&setup.stream).unwrap();
        let one = Vector::new(slice, 1, inc);
        assert_eq!(setup.blas.asum(one).unwrap(), 3.0, "{inc}");
        let slice = x.on_mut(&setup.stream).unwrap();
        let one = Vector::new(slice, 1, inc);
        setup.blas.scal(1.0, one).unwrap();
    }
    assert_eq!(setup.download(&x), [3.0]);
}
