//! Four pointwise kernels over one data set, two by OpenCL and two by HIP.
//!
//! | stage | API | what it does | bytes read, written (4 194 304 samples) |
//! |---|---|---|---|
//! | add | OpenCL | `x += c` | 33.55 MB, 33.55 MB |
//! | rotate | OpenCL | `x *= e^(i 30 deg)` | 33.55 MB, 33.55 MB |
//! | scale | HIP | `x *= s` | 33.55 MB, 33.55 MB |
//! | magnitude | HIP | `y = \|x\|^2` | 33.55 MB, 16.78 MB |
//!
//! That is 251.7 MB of traffic an iteration, published elsewhere at 14.0 ms. The data set is worked on in place, over
//! all iterations. `s` is 2 and 1/2 in turn, which makes two iterations a rotation by 60 degrees about a point: nothing
//! grows or fades however many there are, and what is verified after the last one is still the data of the first.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the job: its options, its data and what that must become |
//! | `job` | an iteration, on two sides or on one stream |
//! | `kernels` | the four kernels, as OpenCL's half and HIP's half |
//! | `two_devices` | the same on memory of a context with two devices, which ROCm puts elsewhere |
//! | `in_flight` | the same on several data sets at once, as a program with a stream of blocks has them |

pub mod in_flight;
mod job;
mod kernels;
pub mod two_devices;

use std::f64::consts::PI;

use interop::Bridge;
use job::Job;
use kernels::{ClHalf, OFFSET, factor};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::sides::Sides;
use super::{Common, Launch};
use crate::outcome::{Kernels, Outcome, Picture};
use crate::{C32, C64, Error, Result};

/// Timed iterations unless told otherwise.
const ITERATIONS: usize = 20;
/// The published time of one iteration over the default number of samples, in milliseconds.
pub(crate) const PUBLISHED_MS: f64 = 14.0;
const PUBLISHED_SAMPLES: usize = 4_194_304;
/// Rounding of the first iteration, and what every further one may add to it.
const TOLERANCE: f64 = 1e-6;
const TOLERANCE_PER_STEP: f64 = 2e-7;

/// Options of `hipcl pipeline note`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Complex samples to work on.
    #[arg(long, value_name = "N", default_value_t = PUBLISHED_SAMPLES)]
    pub samples: usize,
    /// Where OpenCL's kernels are launched.
    #[command(flatten)]
    pub launch: Launch,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            samples: PUBLISHED_SAMPLES,
            launch: Launch::default(),
        }
    }
}

/// Whether HIP can run the two OpenCL kernels.
///
/// # Errors
/// Why not.
pub(crate) fn works_on_stream(bridge: &Bridge) -> Result<()> {
    let sides = Sides::new(bridge, Kernels::Stream)?;
    ClHalf::new(bridge, &sides, PUBLISHED_SAMPLES).map(drop)
}

/// Runs the four kernels over and over and verifies the last state against the closed form.
///
/// # Errors
/// A size that the device can't hold, options that exclude each other, kernels that can't be launched as requested, or
/// a failed call.
pub fn run(bridge: &Bridge, common: &Common<'_>, options: &Options) -> Result<Outcome> {
    let count = options.samples;
    let most = bridge.cl_device().max_alloc_bytes() / size_of::<C32>() as u64;
    if count == 0 || count as u64 > most {
        return Err(Error::input(format!(
            "--samples {count} is not between 1 and {most}, the most that fit in one buffer of the device"
        )));
    }
    let input = generate(count, common.seed);
    let launch = &options.launch;
    let make = |kernels| Job::new(bridge, kernels, &input);
    let (mut job, kernels) = launch.choose(common.route.is_some(), make)?;

    let mut timer = common.timer(ITERATIONS);
    let copies = if launch.graph {
        let recorded = job.record()?;
        timer = timer.at_once(job::GRAPH_STEPS);
        timer.run(bridge, |timer| job.replay(timer, &recorded))
    } else {
        timer.run(bridge, |timer| job.run(timer, launch.waits))
    }?;
    // The data set changes sides twice an iteration, or stays with HIP.
    let crossings = match kernels.0 {
        Kernels::Queue => 2 * timer.iterations() as u64,
        Kernels::Stream => 0,
    };
    let Job { x, squared, .. } = job;
    let steps = timer.steps();

    let mut last = vec![C32::default(); count];
    x.download(&mut last)?;
    let mut last_squared = vec![0.0; count];
    squared.download(&mut last_squared)?;
    let max_rel_error = error(&input, &last, &last_squared, steps);

    let iteration_ms = timer.iteration_median_us() / 1e3;
    let megabytes = timer.iteration_bytes() as f64 / 1e6;
    let mut notes = Vec::new();
    if count == PUBLISHED_SAMPLES {
        notes.push(format!(
            "{megabytes:.1} MB of traffic in {iteration_ms:.2} ms per iteration; published: {PUBLISHED_MS:.1} ms, {:.2} times as long",
            PUBLISHED_MS / iteration_ms
        ));
    }
    Ok(Outcome {
        route: x.route(),
        residency: x.residency(),
        kernels,
        expected_copies_bytes: super::crossing_bytes(&x) * crossings,
        timer,
        copies,
        max_rel_error,
        tolerance: TOLERANCE + TOLERANCE_PER_STEP * steps as f64,
        satellites: None,
        emitters: None,
        targets: None,
        network: None,
        truth_ok: None,
        picture: Picture::Timeline,
        notes,
    })
}

fn generate(count: usize, seed: u64) -> Vec<C32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..count)
        .map(|_| C32::new(random.random_range(-1.0..1.0), random.random_range(-1.0..1.0)))
        .collect()
}

/// The memory traffic of one iteration in bytes: seven reads and writes of all samples, and one of half their size.
pub(crate) fn traffic(samples: usize) -> u64 {
    (samples * (7 * size_of::<C32>() + size_of::<f32>())) as u64
}

/// Largest deviation of both results from the closed form, relative to the largest reference value of each.
///
/// All samples go through the same affine map, so that `steps` iterations are `x -> a x + b` with numbers found in
/// double precision.
fn error(input: &[C32], last: &[C32], squared: &[f32], steps: usize) -> f64 {
    let wide = |x: &C32| C64::new(x.re.into(), x.im.into());
    let turn = C64::from_polar(1.0, PI / 6.0);
    let (mut a, mut b) = (C64::from(1.0), C64::default());
    for step in 0..steps {
        let by = turn * f64::from(factor(step));
        (a, b) = (by * a, by * (b + wide(&OFFSET)));
    }
    let (mut worst, mut largest) = (0.0_f64, 0.0_f64);
    let (mut worst_squared, mut largest_squared) = (0.0_f64, 0.0_f64);
    for ((x, got), &got_squared) in input.iter().zip(last).zip(squared) {
        let expected = a * wide(x) + b;
        worst = worst_of(worst, (wide(got) - expected).norm());
        largest = largest.max(expected.norm());
        worst_squared = worst_of(worst_squared, (f64::from(got_squared) - expected.norm_sqr()).abs());
        largest_squared = largest_squared.max(expected.norm_sqr());
    }
    worst_of(
        worst / largest.max(f64::MIN_POSITIVE),
        worst_squared / largest_squared.max(f64::MIN_POSITIVE),
    )
}

/// The larger one, and NaN if either is: `f64::max` would forget it.
fn worst_of(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pipeline in single precision on the host.
    fn simulate(input: &[C32], steps: usize) -> (Vec<C32>, Vec<f32>) {
        let (sine, cosine) = (PI / 6.0).sin_cos();
        let turn = C32::new(cosine as f32, sine as f32);
        let last: Vec<C32> = input
            .iter()
            .map(|&x| (0..steps).fold(x, |x, step| (x + OFFSET) * turn * factor(step)))
            .collect();
        let squared = last.iter().map(C32::norm_sqr).collect();
        (last, squared)
    }

    #[test]
    fn a_thousand_iterations_stay_within_the_tolerance() {
        let input = generate(1000, 3);
        for steps in [1, 2, 21, 1000] {
            let (last, squared) = simulate(&input, steps);
            let tolerance = TOLERANCE + TOLERANCE_PER_STEP * steps as f64;
            let error = error(&input, &last, &squared, steps);
            assert!(error <= tolerance, "{steps} steps: {error:e}");
        }
    }

    #[test]
    fn one_wrong_sample_or_one_step_too_few_is_seen() {
        let input = generate(1000, 3);
        let (mut last, mut squared) = simulate(&input, 21);
        assert!(error(&input, &last, &squared, 20) > 0.01);
        squared[500] += 0.01;
        assert!(error(&input, &last, &squared, 21) > 1e-4);
        last[7].im = f32::NAN;
        assert!(error(&input, &last, &squared, 21).is_nan());
    }
}
