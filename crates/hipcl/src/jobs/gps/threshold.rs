//! From a false-alarm probability to a threshold.
//!
//! In a cell without a satellite, each of the `L` sub-intervals contributes `|Y|^2` of a complex Gaussian `Y`, so the
//! cell's power in units of the noise power has the Gamma distribution of shape `L`, whose tail is
//! `Q(L, x) = exp(-x) sum_{k<L} x^k / k!`. The search reports a false satellite if the largest of all its cells exceeds
//! the threshold. That probability is at most the number of cells times the tail of one (Bonferroni's bound), whatever
//! the dependence between cells; the threshold makes this product equal to the requested probability. The bound is
//! conservative, because neighbouring cells are dependent: delays lie closer than a chip and Doppler bins closer than
//! the inverse of a sub-interval, so there are fewer independent cells than cells. On generated noise at two million
//! samples per second, the true probability is about four fifths of the bound, and less at higher rates.
//!
//! The statistic is the peak over the median of a satellite's own map. The median of the distribution turns it into
//! units of the noise power, so an unknown gain of the receiver cancels.

/// `ln Q(shape, x)`: logarithm of the probability that a Gamma variable of whole `shape` and scale 1 exceeds `x`.
pub fn ln_tail(shape: usize, x: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..shape {
        term *= x / k as f64;
        sum += term;
    }
    sum.ln() - x
}

/// The `x` that a Gamma variable of whole `shape` exceeds with the probability `exp(ln_probability)`,
/// `ln_probability <= 0`.
pub fn exceeded_with(shape: usize, ln_probability: f64) -> f64 {
    // the tail falls strictly with x; the bracket holds because Q(L, x) <= 2^L exp(-x / 2)
    let (mut low, mut high) = (0.0, 2.0 * (shape as f64 - ln_probability));
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if ln_tail(shape, middle) > ln_probability {
            low = middle
        } else {
            high = middle
        }
    }
    0.5 * (low + high)
}

/// Median of the power of a cell without a satellite, in units of the noise power of one sub-interval.
pub fn median_power(sub_intervals: usize) -> f64 {
    exceeded_with(sub_intervals, 0.5f64.ln())
}

/// Power, in units of the noise power of one sub-interval, that any of `cells` cells without a satellite exceeds with
/// at most the probability `false_alarm`.
pub fn power(sub_intervals: usize, cells: usize, false_alarm: f64) -> f64 {
    exceeded_with(sub_intervals, (false_alarm / cells as f64).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_of_shape_one_is_exponential() {
        assert!((exceeded_with(1, (1e-9f64).ln()) - 9.0 * 10f64.ln()).abs() < 1e-9);
        assert!((median_power(1) - 2f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn known_medians_are_met() {
        // medians of Gamma(2) and Gamma(10)
        assert!((median_power(2) - 1.678_346_990).abs() < 1e-8);
        assert!((median_power(10) - 9.668_714_614).abs() < 1e-8);
    }

    #[test]
    fn tail_and_its_inverse_agree() {
        for shape in [1, 2, 4, 20] {
            for probability in [0.9, 0.5, 1e-3, 1e-12] {
                let x = exceeded_with(shape, f64::ln(probability));
                assert!(
                    (ln_tail(shape, x) - probability.ln()).abs() < 1e-6,
                    "shape {shape}, probability {probability}"
                );
            }
        }
    }
}
