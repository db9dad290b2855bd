//! One figure with its spread and its limit.

use serde::{Deserialize, Serialize};

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A time.
    Lower,
    /// A rate.
    Higher,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// What was measured; unique in its report.
    pub name: String,
    /// The median sample.
    pub value: f64,
    /// Unit of `value`, `low`, `high` and `limit`.
    pub unit: String,
    /// The 1st percentile, where the samples are known.
    pub low: Option<f64>,
    /// The 99th percentile.
    pub high: Option<f64>,
    /// What the figure is compared with.
    pub limit: Option<f64>,
    /// What that is.
    pub limit_is: String,
    /// `value` in per cent of `limit`.
    pub percent: Option<f64>,
    /// Which way is better.
    pub better: Better,
}

impl Line {
    /// A figure from its samples, at least one.
    pub fn of(name: impl Into<String>, unit: &str, better: Better, mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let rank = |fraction: f64| {
            let place = (fraction * samples.len() as f64).ceil() as usize;
            samples.get(place.max(1) - 1).copied()
        };
        let middle = match samples.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => samples[n / 2],
            n => f64::midpoint(samples[n / 2 - 1], samples[n / 2]),
        };
        Self {
            low: rank(0.01),
            high: rank(0.99),
            ..Self::known(name, unit, better, middle)
        }
    }

    /// A figure whose samples someone else reduced.
    pub fn known(name: impl Into<String>, unit: &str, better: Better, value: f64) -> Self {
        Self {
            name: name.into(),
            value,
            unit: unit.to_owned(),
            low: None,
            high: None,
            limit: None,
            limit_is: String::new(),
            percent: None,
            better,
        }
    }

    /// With the 99th percentile.
    #[must_use]
    pub fn up_to(mut self, high: f64) -> Self {
        self.high = Some(high);
        self
    }

    /// Compared with `limit`, in the same unit.
    #[must_use]
    pub fn against(mut self, limit: f64, limit_is: impl Into<String>) -> Self {
        self.limit = Some(limit);
        self.limit_is = limit_is.into();
        self.percent = (limit > 0.0).then_some(100.0 * self.value / limit);
        self
    }

    /// How much better (above 1) or worse (below 1) than `earlier`; `None` if a figure is not positive.
    pub fn gain_over(&self, earlier: &Self) -> Option<f64> {
        let positive = self.value > 0.0 && earlier.value > 0.0;
        positive.then(|| match self.better {
            Better::Lower => earlier.value / self.value,
            Better::Higher => self.value / earlier.value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_median_spread_and_share_of_its_limit() {
        let samples = (1..=100).map(f64::from).rev().collect();
        let line = Line::of("t", "us", Better::Lower, samples).against(101.0, "the wall");
        assert_eq!((line.value, line.low, line.high), (50.5, Some(1.0), Some(99.0)));
        assert_eq!(line.percent, Some(50.0));
        assert!(Line::of("none", "us", Better::Lower, Vec::new()).value.is_nan());
    }

    #[test]
    fn a_gain_is_above_one_whichever_way_is_better() {
        let line = |better, value| Line::known("x", "u", better, value);
        let gain = |better, now, then| line(better, now).gain_over(&line(better, then));
        assert_eq!(gain(Better::Lower, 2.0, 4.0), Some(2.0));
        assert_eq!(gain(Better::Higher, 2.0, 4.0), Some(0.5));
        assert_eq!(gain(Better::Lower, -1.0, 4.0), None);
    }
}
