//! Hermitian inverses of rocSOLVER on shared memory, one and many at once, beside products of the same size.

use rocblas::solver::{self, Mirror};
use rocblas::{Fill, Handle, Matrix, Op};

use super::line::{Better, Line};
use super::{Figures, Setup, seconds};
use crate::{C32, Error, Result};
use std::time::Instant;

/// Rows of the matrices: the sensors of the job `capon`.
const SIZE: usize = 341;
/// How many at once.
const ON_HOST: [usize; 2] = [1, 4];
const ON_A_CARD: [usize; 3] = [1, 10, 100];
const SAMPLES: usize = 15;
/// The permitted error in the product of an inverse with its matrix, in single precision.
const TOLERANCE: f64 = 1e-3;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let counts: &[usize] = match setup.bridge.report().platform.facts().is_model {
        true => &ON_HOST,
        false => &ON_A_CARD,
    };
    let mut found = Figures::default();
    for &count in counts {
        found.lines.push(inverses(setup, count)?);
    }
    Ok(found)
}

fn inverses(setup: &Setup, count: usize) -> Result<Line> {
    let bridge = &setup.bridge;
    let (queue, stream) = (bridge.queue()?, bridge.stream()?);
    let handle = Handle::new(&bridge.blas()?, &stream)?;
    let mirror = Mirror::new(bridge.hip_device())?;
    let each = SIZE * SIZE;
    let numbers: Vec<C32> = (0..count).flat_map(positive).collect();
    let mut a = bridge.alloc::<C32>(each * count)?;
    let mut times = Vec::with_capacity(SAMPLES);
    for sample in 0..=SAMPLES {
        a.upload(&numbers)?;
        // OpenCL made them, as it does in a program that needs the two
        drop(a.cl_mut(&queue)?);
        drop(a.hip_mut(&stream)?);
        stream.synchronize()?;
        let start = Instant::now();
        let batch = Matrix::new(&mut a, SIZE, SIZE, SIZE).batch(each, count);
        let answer = solver::hermitian_inverse(&handle, &mirror, Fill::Lower, batch)?;
        stream.synchronize()?;
        // the first call loads what the library needs
        if sample > 0 {
            times.push(start.elapsed().as_secs_f64() * 1e3 / count as f64);
        }
        answer.check()?;
    }
    let mut inverse = vec![C32::default(); each * count];
    a.download(&mut inverse)?;
    for matrix in [0, count - 1] {
        let all = matrix * each..(matrix + 1) * each;
        let off = residual(&numbers[all.clone()], &inverse[all]);
        if off.is_nan() || off > TOLERANCE {
            return Err(Error::input(format!(
                "inverse {matrix} of {count} times its matrix differs from the identity by {off:.1e}; run `hipcl doctor`"
            )));
        }
    }
    let mut product = bridge.alloc::<C32>(each * count)?;
    let products = seconds(SAMPLES, || {
        let factor = Matrix::new(&a, SIZE, SIZE, SIZE).batch(each, count);
        let product = Matrix::new(&mut product, SIZE, SIZE, SIZE).batch(each, count);
        let (one, zero) = (C32::new(1.0, 0.0), C32::default());
        handle.gemm_strided_batched(Op::None, Op::None, one, factor, factor, zero, product)?;
        Ok(stream.synchronize()?)
    })?;
    // factor n^3 / 3 and inverse 2 n^3 / 3 multiply-adds of halves of a matrix: half of a product's n^3
    let half = products.iter().map(|time| time * 1e3 / count as f64 / 2.0).collect();
    let limit = Line::of("", "ms", Better::Lower, half).value;
    let name = match count {
        1 => format!("Hermitian inverse, {SIZE} x {SIZE}"),
        _ => format!("each of {count} at once"),
    };
    Ok(Line::of(name, "ms", Better::Lower, times).against(limit, "as many operations at the rate of cgemm"))
}

/// Hermitian and positive definite, with numbers of its own for each `seed`.
fn positive(seed: usize) -> Vec<C32> {
    let number = |i: usize, j: usize| {
        let mixed = (i * SIZE + j + seed * 7919).wrapping_mul(2_654_435_761) >> 7;
        C32::new((mixed % 17) as f32 - 8.0, (mixed / 17 % 13) as f32 - 6.0) * 0.01
    };
    let mut a = vec![C32::default(); SIZE * SIZE];
    for j in 0..SIZE {
        for i in 0..j {
            a[i + j * SIZE] = number(i, j);
            a[j + i * SIZE] = number(i, j).conj();
        }
        // more than the rest of its row together
        a[j + j * SIZE] = C32::new(0.11 * SIZE as f32, 0.0);
    }
    a
}

/// The largest deviation of some columns of the product from the identity.
fn residual(a: &[C32], inverse: &[C32]) -> f64 {
    let wide = |x: C32| num_complex::Complex::new(f64::from(x.re), f64::from(x.im));
    let mut worst = 0.0_f64;
    for j in (0..SIZE).step_by(20) {
        for i in 0..SIZE {
            let sum: num_complex::Complex<f64> = (0..SIZE)
                .map(|k| wide(a[i + k * SIZE]) * wide(inverse[k + j * SIZE]))
                .sum();
            let off = (sum - f64::from(u8::from(i == j))).norm();
            // NaN stays
            worst = if off > worst || off.is_nan() { off } else { worst };
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_inverse_is_not_taken_for_one() {
        let a = positive(0);
        assert!(a != positive(1));
        assert!(residual(&a, &a) > TOLERANCE);
        let mut identity = vec![C32::default(); SIZE * SIZE];
        (0..SIZE).for_each(|i| identity[i + i * SIZE] = C32::new(1.0, 0.0));
        assert!(residual(&identity, &identity) < 1e-12);
        identity[3] = C32::new(f32::NAN, 0.0);
        assert!(residual(&identity, &identity).is_nan());
    }
}
