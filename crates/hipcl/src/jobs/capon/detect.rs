//! From the spectrum to emitters: threshold, peaks, refinement.

use super::array;

/// Probability that a scene without any emitter gives at least one detection.
pub const FALSE_ALARM: f64 = 1e-3;

/// How much higher than noise alone a direction beside the emitters may look: outside their main lobes at most a third
/// of a steering vector lies in the span of the emitters' ones, so Capon's power there is at most 1.5 times the floor.
const SIDELOBE_MARGIN: f64 = 1.5;

/// Over the floor, when there is no statistics to go by (fewer snapshots than elements, made regular by loading).
const LOADED_THRESHOLD: f64 = 4.0;

/// Points of the fine search to each side of a coarse peak.
const FINE_HALF: usize = 20;

/// Points of the fine search of one peak.
pub const FINE: usize = 2 * FINE_HALF + 1;

/// Peaks that are refined at most, the highest first.
pub const MOST_PEAKS: usize = 64;

/// Directions of the coarse search as sines: `-90` to `90` degrees in equal steps of the angle.
pub fn coarse_grid(step_deg: f64) -> Vec<f64> {
    let half = (90.0 / step_deg).floor() as i64;
    (-half..=half)
        .map(|i| (i as f64 * step_deg).to_radians().sin())
        .collect()
}

/// The factor over the floor (the median of the spectrum) from which on a peak counts.
///
/// For noise alone, `K / (a^H R^-1 a) * (a^H S^-1 a)` with the true covariance `S` is Gamma distributed with
/// `K - N + 1` degrees of freedom (Capon and Goodman): the quantile that belongs to [`FALSE_ALARM`], shared evenly by
/// the directions searched, over the median.
pub fn threshold(elements: usize, snapshots: usize, directions: usize) -> f64 {
    if snapshots < elements {
        return LOADED_THRESHOLD;
    }
    let freedom = (snapshots - elements + 1) as f64;
    let deviate = normal_quantile(FALSE_ALARM / directions as f64);
    // Wilson and Hilferty: the cube root of a Gamma variable is nearly normal
    let cubed = |z: f64| {
        (1.0 - 1.0 / (9.0 * freedom) + z / (3.0 * freedom.sqrt()))
            .max(0.0)
            .powi(3)
    };
    SIDELOBE_MARGIN * cubed(deviate) / cubed(0.0).max(f64::MIN_POSITIVE)
}

/// What the estimate of a power has to be multiplied by: the mean of the Gamma variable above is `K - N + 1`, not `K`.
pub fn unbias(elements: usize, snapshots: usize, loading: f64) -> f64 {
    if snapshots < elements || loading > 0.0 {
        1.0
    } else {
        snapshots as f64 / (snapshots - elements + 1) as f64
    }
}

/// The deviate that a standard normal variable exceeds with this probability, for small probabilities.
fn normal_quantile(probability: f64) -> f64 {
    // fixed point of Q(z) = phi(z) / z * (1 - 1/z^2 + 3/z^4 - 15/z^6), good to 0.1 % from z = 3 on
    let mut z = 4.0_f64;
    for _ in 0..50 {
        let tail = (1.0 - z.powi(-2) + 3.0 * z.powi(-4) - 15.0 * z.powi(-6)).max(0.1);
        z = (-2.0 * (probability * z * std::f64::consts::TAU.sqrt() / tail).ln())
            .max(4.0)
            .sqrt();
    }
    z
}

/// Median of a spectrum.
pub fn floor(power: &[f32]) -> f64 {
    let mut sorted = power.to_vec();
    sorted.sort_by(f32::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0).into()
}

/// Indices of the local maxima above `limit`, the highest [`MOST_PEAKS`] of them, in order of direction.
pub fn peaks(power: &[f32], limit: f64) -> Vec<usize> {
    let at = |i: Option<usize>| i.and_then(|i| power.get(i)).copied().unwrap_or(f32::NEG_INFINITY);
    let mut peaks: Vec<usize> = (0..power.len())
        .filter(|&i| f64::from(power[i]) > limit && power[i] > at(i.checked_sub(1)) && power[i] >= at(Some(i + 1)))
        .collect();
    peaks.sort_by(|&a, &b| power[b].total_cmp(&power[a]));
    peaks.truncate(MOST_PEAKS);
    peaks.sort_unstable();
    peaks
}

/// Directions of the fine search between the neighbours of the coarse peak `index`.
pub fn fine_grid(coarse: &[f64], index: usize) -> [f64; FINE] {
    let centre = coarse[index];
    let low = coarse[index.saturating_sub(1)];
    let high = coarse[(index + 1).min(coarse.len() - 1)];
    std::array::from_fn(|i| {
        let part = (i as f64 - FINE_HALF as f64) / FINE_HALF as f64;
        centre
            + if part < 0.0 {
                part * (centre - low)
            } else {
                part * (high - centre)
            }
    })
}

/// Direction (sine) and power of the top of a fine search: the parabola through the three points around the least
/// inverse power, which is what is smooth there.
pub fn top(grid: &[f64], power: &[f32]) -> (f64, f64) {
    let inverse: Vec<f64> = power.iter().map(|&power| 1.0 / f64::from(power)).collect();
    let best = (0..inverse.len())
        .min_by(|&a, &b| inverse[a].total_cmp(&inverse[b]))
        .unwrap_or(0);
    if best == 0 || best + 1 >= inverse.len() {
        return (grid[best], f64::from(power[best]));
    }
    let (x, y) = (&grid[best - 1..=best + 1], &inverse[best - 1..=best + 1]);
    let (left, right) = (x[0] - x[1], x[2] - x[1]);
    let (dl, dr) = ((y[0] - y[1]) / left, (y[2] - y[1]) / right);
    let curvature = (dr - dl) / (right - left);
    let slope = dl - curvature * left;
    if curvature.is_nan() || curvature <= 0.0 {
        return (x[1], f64::from(power[best]));
    }
    let shift = (-0.5 * slope / curvature).clamp(left, right);
    let least = y[1] + slope * shift + curvature * shift * shift;
    // rounding can push the vertex of a very sharp peak below zero
    (
        x[1] + shift,
        if least > 0.0 {
            1.0 / least
        } else {
            f64::from(power[best])
        },
    )
}

/// Removes a peak that two neighbouring fine searches found twice: tops within a fiftieth of a beamwidth are one.
pub fn distinct(mut tops: Vec<(f64, f64)>, elements: usize) -> Vec<(f64, f64)> {
    tops.sort_by(|a, b| a.0.total_cmp(&b.0));
    tops.dedup_by(|later, earlier| {
        let same = later.0 - earlier.0 < 0.02 * array::beamwidth(elements);
        if same && later.1 > earlier.1 {
            *earlier = *later;
        }
        same
    });
    tops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        for (probability, deviate) in [(1e-3, 3.0902), (1e-5, 4.2649), (1e-7, 5.1993), (1e-9, 5.9978)] {
            assert!((normal_quantile(probability) - deviate).abs() < 0.01, "{probability}");
        }
    }

    #[test]
    fn the_parabola_finds_the_top_between_two_points() {
        let grid: Vec<f64> = (0..9).map(|i| f64::from(i) * 0.1).collect();
        let power: Vec<f32> = grid
            .iter()
            .map(|x| (1.0 / (0.01 + (x - 0.437_f64).powi(2))) as f32)
            .collect();
        let (at, high) = top(&grid, &power);
        assert!((at - 0.437).abs() < 1e-5 && (high - 100.0).abs() < 0.01, "{at} {high}");
    }

    #[test]
    fn a_flat_spectrum_has_no_peak_above_its_threshold() {
        let power = vec![1.0_f32; 100];
        assert!(peaks(&power, floor(&power) * threshold(32, 256, 100)).is_empty());
    }

    #[test]
    fn peaks_at_the_ends_and_on_a_plateau_count_once() {
        assert_eq!(peaks(&[5.0, 1.0, 4.0, 4.0, 1.0, 6.0], 2.0), [0, 2, 5]);
    }
}
