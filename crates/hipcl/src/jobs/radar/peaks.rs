//! From the largest cells of a map to targets: threshold and interpolation.

use bytemuck::{Pod, Zeroable};

use super::scene::Echo;
use super::shape::Shape;
use crate::jobs::gps::threshold;
use crate::outcome::Target;

/// Probability that noise alone gives a target.
const FALSE_ALARM: f64 = 1e-3;
/// The least of the beams' means is this much below the noise that it stands for.
const NOISE_MARGIN: f64 = 1.1;
/// Targets are not this many dB weaker than the strongest: sidelobes reach up to there.
pub(super) const DYNAMIC_RANGE_DB: f64 = 20.0;
/// Logarithms that bend less than this have no top between the cells.
const FLAT: f64 = 1e-3;
/// A generated echo is found within this many samples,
const DELAY_TOLERANCE: f64 = 0.25;
/// this part of a beamwidth
const SINE_TOLERANCE: f64 = 0.1;
/// and this many dB.
const AMPLITUDE_TOLERANCE_DB: f64 = 0.5;

/// A local maximum of the map with the cells around it, as the kernels write it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Peak {
    /// Its beam.
    pub beam: u32,
    /// Its delay in samples.
    pub delay: u32,
    /// Its power; 0 where the map has no further maximum.
    pub power: f32,
    /// Power one delay before it.
    pub earlier: f32,
    /// Power one delay behind it.
    pub later: f32,
    /// Power one beam before it.
    pub below: f32,
    /// Power one beam behind it.
    pub above: f32,
}

/// What one batch gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The largest local maxima, largest first.
    pub peaks: Vec<Peak>,
    /// Power of the noise in a cell.
    pub noise: f32,
}

/// A maximum between the cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Top {
    /// Delay in samples.
    pub delay: f64,
    /// Beam, not whole.
    pub beam: f64,
    /// Power.
    pub power: f64,
}

impl Top {
    /// By a parabola through the logarithms of three cells in each direction, which fits the top of a main lobe.
    pub fn of(beam: usize, delay: usize, power: f64, [earlier, later]: [f64; 2], [below, above]: [f64; 2]) -> Self {
        let (along, over) = parabola(power, earlier, later);
        let (across, more) = parabola(power, below, above);
        Self {
            delay: delay as f64 + along,
            beam: beam as f64 + across,
            power: power * (over + more).exp(),
        }
    }
}

impl From<&Peak> for Top {
    fn from(peak: &Peak) -> Self {
        let wide = |pair: [f32; 2]| pair.map(f64::from);
        Self::of(
            peak.beam as usize,
            peak.delay as usize,
            peak.power.into(),
            wide([peak.earlier, peak.later]),
            wide([peak.below, peak.above]),
        )
    }
}

/// Where between its neighbours the top of the logarithms lies, and how far above the middle's.
fn parabola(middle: f64, before: f64, behind: f64) -> (f64, f64) {
    // without power there is no logarithm
    let log = |x: f64| (x / middle).max(1e-12).ln();
    let (before, behind) = (log(before), log(behind));
    let bend = before + behind;
    if bend.is_nan() || bend > -FLAT {
        return (0.0, 0.0);
    }
    let place = (0.5 * (before - behind) / bend).clamp(-0.5, 0.5);
    (place, -0.25 * (before - behind) * place)
}

impl Found {
    /// What a peak must exceed to count.
    pub fn limit(&self, shape: &Shape) -> f64 {
        let over_noise =
            threshold::exceeded_with(shape.blocks, (FALSE_ALARM / shape.cells() as f64).ln()) / shape.blocks as f64;
        let strongest = self.peaks.first().map_or(0.0, |peak| f64::from(peak.power));
        f64::max(
            NOISE_MARGIN * over_noise * f64::from(self.noise),
            strongest * 10f64.powf(-DYNAMIC_RANGE_DB / 10.0),
        )
    }

    /// The peaks that count.
    pub(super) fn tops(&self, shape: &Shape) -> Vec<Top> {
        let limit = self.limit(shape);
        let counts = |peak: &&Peak| peak.power > 0.0 && f64::from(peak.power) >= limit;
        self.peaks.iter().filter(counts).map(Top::from).collect()
    }

    /// The peaks that count, in the user's units.
    pub fn targets(&self, shape: &Shape) -> Vec<Target> {
        let target = |top: &Top| Target {
            delay_samples: top.delay,
            range_m: shape.range_m(top.delay),
            angle_deg: shape.sine(top.beam).asin().to_degrees(),
            amplitude_db: 10.0 * top.power.log10(),
        };
        self.tops(shape).iter().map(target).collect()
    }
}

/// What is wrong with the targets, given the echoes that were generated; empty if nothing is. At most `most` echoes,
/// the strongest, can have been found.
pub fn compare(shape: &Shape, echoes: &[Echo], targets: &[Target], most: usize) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut taken = vec![false; targets.len()];
    for echo in echoes.iter().take(most) {
        let place = format!(
            "the echo at {:.2} samples, {:.2} deg, {:.2} dB",
            echo.delay,
            echo.sine.asin().to_degrees(),
            20.0 * echo.amplitude.log10()
        );
        let off = |target: &Target| {
            [
                (target.delay_samples - echo.delay).abs(),
                (target.angle_deg.to_radians().sin() - echo.sine).abs() / shape.beamwidth(),
                (target.amplitude_db - 20.0 * echo.amplitude.log10()).abs(),
            ]
        };
        let nearest = (0..targets.len())
            .filter(|&i| !taken[i])
            .min_by(|&i, &j| off(&targets[i])[0].total_cmp(&off(&targets[j])[0]));
        let Some(i) = nearest.filter(|&i| off(&targets[i])[0] < shape.resolution()) else {
            complaints.push(format!("{place} was missed"));
            continue;
        };
        taken[i] = true;
        let [delay, beams, db] = off(&targets[i]);
        // written so that NaN is a complaint
        let near = delay <= DELAY_TOLERANCE && beams <= SINE_TOLERANCE && db <= AMPLITUDE_TOLERANCE_DB;
        if !near {
            complaints.push(format!(
                "{place} was found {delay:.3} samples, {beams:.3} beamwidths and {db:.2} dB off"
            ));
        }
    }
    for (target, _) in targets.iter().zip(&taken).filter(|(_, taken)| !**taken) {
        complaints.push(format!(
            "reported, but not generated: {:.2} samples, {:.2} deg, {:.2} dB",
            target.delay_samples, target.angle_deg, target.amplitude_db
        ));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak(delay: u32, power: f32) -> Peak {
        Peak {
            beam: 5,
            delay,
            power,
            earlier: 0.5 * power,
            later: 0.5 * power,
            below: 0.5 * power,
            above: 0.5 * power,
        }
    }

    #[test]
    fn a_gaussian_lobe_is_interpolated_exactly() {
        let lobe = |x: f64, y: f64| 3.0 * (-(x - 100.3_f64).powi(2) / 5.0 - (y - 6.8_f64).powi(2) / 7.0).exp();
        let top = Top::of(
            7,
            100,
            lobe(100.0, 7.0),
            [lobe(99.0, 7.0), lobe(101.0, 7.0)],
            [lobe(100.0, 6.0), lobe(100.0, 8.0)],
        );
        assert!((top.delay - 100.3).abs() < 1e-9, "{top:?}");
        assert!((top.beam - 6.8).abs() < 1e-9, "{top:?}");
        assert!((top.power - 3.0).abs() < 1e-9, "{top:?}");
    }

    #[test]
    fn neighbours_without_power_or_as_high_move_a_peak_by_half_a_cell_at_most() {
        for (before, behind) in [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (f64::NAN, 0.5)] {
            let (place, over) = parabola(1.0, before, behind);
            assert!(
                place.abs() <= 0.5 && over.is_finite(),
                "{before} {behind}: {place} {over}"
            );
        }
    }

    #[test]
    fn only_what_exceeds_the_noise_and_the_sidelobes_counts() {
        let shape = Shape::default();
        let found = |powers: [f32; 3], noise: f32| Found {
            peaks: powers
                .iter()
                .zip([9, 50, 90])
                .map(|(&power, delay)| peak(delay, power))
                .collect(),
            noise,
        };
        assert_eq!(found([100.0, 1.1, 0.9], 1e-3).targets(&shape).len(), 2);
        assert_eq!(found([100.0, 20.0, 2.0], 1.0).targets(&shape).len(), 2);
        assert_eq!(found([2.0, 0.0, 0.0], 1.0).targets(&shape).len(), 0);
        assert_eq!(found([2.0, 0.0, 0.0], 0.0).targets(&shape).len(), 1);
        // noise averaged over 16 blocks exceeds this in fewer than one of 1000 maps
        let limit = found([0.0; 3], 1.0).limit(&shape);
        assert!((3.3..4.4).contains(&limit), "{limit}");
    }

    #[test]
    fn a_target_off_its_echo_one_missed_and_one_too_many_are_named() {
        let shape = Shape::default();
        let echo = Echo {
            delay: 100.0,
            sine: 0.5,
            amplitude: 1.0,
        };
        let right = Target {
            delay_samples: 100.1,
            range_m: 0.0,
            angle_deg: 30.1,
            amplitude_db: 0.2,
        };
        let echoes = [echo];
        let judge = |targets: &[Target]| compare(&shape, &echoes, targets, 5).join("; ");
        assert_eq!(judge(std::slice::from_ref(&right)), "");
        assert!(judge(&[]).contains("missed"));
        let wrong: [fn(&mut Target); 4] = [
            |target| target.delay_samples = 100.3,
            |target| target.angle_deg = 32.0,
            |target| target.amplitude_db = -0.6,
            |target| target.amplitude_db = f64::NAN,
        ];
        for wrong in wrong {
            let mut target = right.clone();
            wrong(&mut target);
            assert!(judge(&[target]).contains("off"));
        }
        let other = Target {
            delay_samples: 500.0,
            ..right.clone()
        };
        assert!(judge(&[right, other]).contains("not generated"));
    }
}
