//! The double-precision reference: from the raw samples to the spectrum, by the textbook's definitions.
//!
//! Nothing here is shared with the pipeline: one bin of the transform is summed directly, the covariance matrix is
//! formed entry by entry, and the quadratic form is a triangular solve with its Cholesky factor, not an inverse.

use super::array;
use super::scene::Shape;
use crate::{C32, C64, Error, Result};

/// The factorised covariance matrix of one channel.
#[derive(Clone, Debug)]
pub struct Reference {
    elements: usize,
    /// Rows of the lower triangular factor, one after the other.
    factor: Vec<C64>,
}

impl Reference {
    /// Works the samples (element after element) up to the factor. `loading` adds this multiple of the mean diagonal
    /// entry to the diagonal.
    ///
    /// # Errors
    /// A covariance matrix that is not positive definite.
    pub fn new(samples: &[C32], shape: Shape, channel: usize, loading: f64) -> Result<Self> {
        let snapshots = snapshots(samples, shape, channel);
        let mut matrix = covariance(&snapshots, shape);
        let n = shape.elements;
        let trace: f64 = (0..n).map(|i| matrix[i * n + i].re).sum();
        for i in 0..n {
            matrix[i * n + i] += loading * trace / n as f64;
        }
        factorise(&mut matrix, n)?;
        Ok(Self {
            elements: n,
            factor: matrix,
        })
    }

    /// Capon's power in a direction: 1 / (a^H R^-1 a).
    pub fn power(&self, sine: f64) -> f64 {
        // with R = L L^H the form is the squared length of y, L y = a
        let mut y: Vec<C64> = Vec::with_capacity(self.elements);
        let mut squared = 0.0;
        for i in 0..self.elements {
            let row = &self.factor[i * self.elements..][..=i];
            let known: C64 = row.iter().zip(&y).map(|(l, y)| l * y).sum();
            let value = (array::response(i, sine) - known) / row[i].re;
            squared += value.norm_sqr();
            y.push(value);
        }
        1.0 / squared
    }
}

/// One bin of the discrete Fourier transform of every segment, divided by the segment's length: row after row, one row
/// an element.
fn snapshots(samples: &[C32], shape: Shape, channel: usize) -> Vec<C64> {
    let turn = -std::f64::consts::TAU * channel as f64 / shape.channels as f64;
    let weights: Vec<C64> = (0..shape.channels)
        .map(|t| C64::from_polar(1.0 / shape.channels as f64, turn * t as f64))
        .collect();
    let wide = |x: &C32| C64::new(x.re.into(), x.im.into());
    samples
        .chunks_exact(shape.samples())
        .flat_map(|element| element.chunks_exact(shape.channels))
        .map(|segment| segment.iter().zip(&weights).map(|(x, weight)| wide(x) * weight).sum())
        .collect()
}

/// The lower triangle of the mean outer product of the snapshots.
fn covariance(snapshots: &[C64], shape: Shape) -> Vec<C64> {
    let n = shape.elements;
    let row = |i: usize| &snapshots[i * shape.segments..][..shape.segments];
    let mut matrix = vec![C64::default(); n * n];
    for i in 0..n {
        for j in 0..=i {
            let sum: C64 = row(i).iter().zip(row(j)).map(|(a, b)| a * b.conj()).sum();
            matrix[i * n + j] = sum / shape.segments as f64;
        }
    }
    matrix
}

/// Replaces the lower triangle by its Cholesky factor.
fn factorise(matrix: &mut [C64], n: usize) -> Result<()> {
    for i in 0..n {
        let (above, rest) = matrix.split_at_mut(i * n);
        let row = &mut rest[..=i];
        for j in 0..i {
            let other = &above[j * n..][..=j];
            let known: C64 = row[..j].iter().zip(other).map(|(a, b)| a * b.conj()).sum();
            row[j] = (row[j] - known) / other[j].re;
        }
        let known: f64 = row[..i].iter().map(C64::norm_sqr).sum();
        let pivot = row[i].re - known;
        if pivot.is_nan() || pivot <= 0.0 {
            return Err(Error::Input(format!(
                "the reference's covariance matrix is not positive definite at its leading minor of order {}; use --loading",
                i + 1
            )));
        }
        row[i] = pivot.sqrt().into();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_emitter_without_noise_but_loading_has_the_closed_form() {
        let shape = Shape {
            elements: 6,
            segments: 5,
            channels: 4,
        };
        let (sine, power) = (0.3, 2.0_f64);
        // segments of constant phase: a line in bin 1
        let samples: Vec<C32> = (0..shape.elements)
            .flat_map(|element| {
                (0..shape.samples()).map(move |t| {
                    let x = array::response(element, sine) * C64::i().powu(t as u32 % 4) * power.sqrt();
                    C32::new(x.re as f32, x.im as f32)
                })
            })
            .collect();
        let reference = Reference::new(&samples, shape, 1, 0.1).unwrap();
        // R = P a a^H + (0.1 P) I, so a^H R^-1 a = N / (0.1 P + N P)
        let expected = power * (0.1 + 6.0) / 6.0;
        assert!((reference.power(sine) - expected).abs() < 1e-6 * expected);
        // and a direction orthogonal to it sees only the loading
        let orthogonal = sine + 2.0 / 6.0;
        let expected = 0.1 * power / 6.0;
        assert!((reference.power(orthogonal) - expected).abs() < 1e-5 * expected);
    }

    #[test]
    fn fewer_snapshots_than_elements_are_refused() {
        let shape = Shape {
            elements: 3,
            segments: 1,
            channels: 2,
        };
        let samples = vec![C32::new(1.0, 0.5); 6];
        assert!(Reference::new(&samples, shape, 0, 0.0).is_err());
    }
}
