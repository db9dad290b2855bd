//! The requirements on every recording, whatever its format.

use std::path::Path;

use crate::{C32, Error, Result};

/// Power outside of these limits would leave the range of single precision in the correlations.
const MEAN_POWER: std::ops::RangeInclusive<f64> = 1e-24..=1e24;

/// A rate is a positive number.
pub(crate) fn rate(rate_hz: f64) -> Result<()> {
    if rate_hz.is_finite() && rate_hz > 0.0 {
        Ok(())
    } else {
        Err(Error::input(format!(
            "{rate_hz} Hz is not a sample rate; set --rate to a positive number of samples per second"
        )))
    }
}

/// Refuses samples that no search can make sense of.
pub(crate) fn samples(path: &Path, samples: &[C32]) -> Result<()> {
    let path = path.display();
    if let Some(index) = samples
        .iter()
        .position(|sample| !sample.re.is_finite() || !sample.im.is_finite())
    {
        return Err(Error::input(format!(
            "sample {index} of `{path}` is {}; check --format, or repair the recording",
            samples[index]
        )));
    }
    let Some(first) = samples.first() else {
        return Err(Error::input(format!(
            "`{path}` is empty; record again, or name another file"
        )));
    };
    if samples.iter().all(|sample| sample == first) {
        return Err(Error::input(format!(
            "all {} samples of `{path}` are {first}, so it contains no signal; check the receiver and --format",
            samples.len()
        )));
    }
    let power = samples
        .iter()
        .map(|sample| f64::from(sample.re).powi(2) + f64::from(sample.im).powi(2))
        .sum::<f64>()
        / samples.len() as f64;
    if !MEAN_POWER.contains(&power) {
        return Err(Error::input(format!(
            "the mean power of `{path}` is {power:e}, outside 1e-24..1e24; check --format, or scale the recording"
        )));
    }
    Ok(())
}
