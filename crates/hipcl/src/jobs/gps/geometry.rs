//! What is searched: blocks, Doppler bins, and the sizes that follow from them.

use super::ca_code::PRNS;
use crate::{Error, Result, input};

/// How a search is to be carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Samples per second.
    pub rate_hz: f64,
    /// Doppler shifts from minus this to plus this are searched.
    pub doppler_max_hz: f64,
    /// Distance of the coarse Doppler bins.
    pub doppler_step_hz: f64,
    /// Blocks of 1 ms.
    pub blocks: usize,
    /// Blocks of a sub-interval, which is summed coherently.
    pub sub: usize,
}

/// The sizes and frequencies of a search. Every block is one code period long.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    rate_hz: f64,
    block: usize,
    blocks: usize,
    sub: usize,
    coarse_hz: Vec<f64>,
    fine_hz: Vec<f64>,
}

/// HIP's launch grid has at most 65535 blocks in its second dimension, and each satellite needs one a bin.
const MOST_COARSE_BINS: f64 = 2047.0;
/// A navigation bit lasts this many code periods.
const BLOCKS_OF_A_BIT: usize = 20;

impl Geometry {
    /// Checks `parameters` and derives the rest.
    ///
    /// The coarse bins lie at multiples of the step, as far as needed to reach the maximum. The fine bins divide a
    /// coarse bin evenly, at most half the inverse of a sub-interval apart, so a satellite between two of them loses at
    /// most 0.9 dB.
    ///
    /// # Errors
    /// [`Error::Input`]: a rate that gives no block of whole samples, or a block whose length has another prime factor than 2, 3 and 5;
    /// less than one sample a chip; Doppler bins that make no sense; blocks that are not two or more whole
    /// sub-intervals, or sub-intervals longer than a bit.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        let &Parameters {
            rate_hz,
            doppler_max_hz,
            doppler_step_hz,
            blocks,
            sub,
        } = parameters;
        let block = block_of(rate_hz)?;
        if !(doppler_step_hz > 0.0 && doppler_step_hz <= 1000.0) {
            return Err(Error::input(format!(
                "a Doppler step of {doppler_step_hz} Hz cannot cover all frequencies with correlations of 1 ms; set --doppler-step between 0 and 1000"
            )));
        }
        if !(doppler_max_hz >= 0.0 && doppler_max_hz + doppler_step_hz <= rate_hz / 2.0) {
            return Err(Error::input(format!(
                "Doppler shifts up to {doppler_max_hz} Hz cannot be searched at {rate_hz} samples per second; set --doppler-max between 0 and {}",
                (rate_hz / 2.0 - doppler_step_hz).floor()
            )));
        }
        if sub == 0 || sub > BLOCKS_OF_A_BIT {
            return Err(Error::input(format!(
                "sub-intervals of {sub} blocks do not fit a navigation bit of {BLOCKS_OF_A_BIT} blocks; set --sub between 1 and {BLOCKS_OF_A_BIT}"
            )));
        }
        if !blocks.is_multiple_of(sub) || blocks / sub < 2 {
            return Err(Error::input(format!(
                "{blocks} blocks are not two or more sub-intervals of {sub}, and a bit edge may spoil one of them; set --blocks to a multiple of --sub, at least {}",
                2 * sub
            )));
        }
        let reach = (doppler_max_hz / doppler_step_hz).ceil();
        let fine = (doppler_step_hz * sub as f64 / 500.0).ceil();
        let sizes = [2.0 * reach + 1.0, fine, PRNS as f64, blocks as f64, block as f64];
        // far beyond any device, and small enough that no product of sizes overflows
        if sizes.iter().product::<f64>() > 1e12 || sizes[0] > MOST_COARSE_BINS {
            return Err(Error::input(format!(
                "a search of {} coarse Doppler bins and {blocks} blocks is too large; use a larger --doppler-step, a smaller --doppler-max or fewer --blocks",
                sizes[0]
            )));
        }
        let reach = reach as i64;
        let fine = fine as usize;
        Ok(Self {
            rate_hz,
            block,
            blocks,
            sub,
            coarse_hz: (-reach..=reach).map(|bin| bin as f64 * doppler_step_hz).collect(),
            fine_hz: (0..fine)
                .map(|bin| (bin as f64 - (fine - 1) as f64 / 2.0) * doppler_step_hz / fine as f64)
                .collect(),
        })
    }

    /// Samples per second.
    pub fn rate_hz(&self) -> f64 {
        self.rate_hz
    }

    /// Samples of a block; also the number of delays.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Blocks that are used.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Blocks of a sub-interval.
    pub fn sub(&self) -> usize {
        self.sub
    }

    /// Sub-intervals, whose powers are summed.
    pub fn sub_intervals(&self) -> usize {
        self.blocks / self.sub
    }

    /// Frequencies that the wipe-off removes.
    pub fn coarse_hz(&self) -> &[f64] {
        &self.coarse_hz
    }

    /// Frequencies relative to a coarse one that the steering matrix resolves.
    pub fn fine_hz(&self) -> &[f64] {
        &self.fine_hz
    }

    /// Samples that a search needs.
    pub fn samples(&self) -> usize {
        self.blocks * self.block
    }

    /// Doppler bins of the power map.
    pub fn rows(&self) -> usize {
        self.coarse_hz.len() * self.fine_hz.len()
    }

    /// Frequency of a row of the power map; rows lie at equal distances.
    pub fn row_hz(&self, row: usize) -> f64 {
        self.coarse_hz[row / self.fine_hz.len()] + self.fine_hz[row % self.fine_hz.len()]
    }

    /// Distance of two rows.
    pub fn row_step_hz(&self) -> f64 {
        if self.fine_hz.len() > 1 {
            self.fine_hz[1] - self.fine_hz[0]
        } else {
            self.coarse_hz.get(1).map_or(1.0, |f| f - self.coarse_hz[0])
        }
    }

    /// Cells of one satellite's power map, `[row][delay]`.
    pub fn cells(&self) -> usize {
        self.rows() * self.block
    }

    /// Complex values of the correlations, `[prn][coarse Doppler][block][delay]`.
    pub fn correlations(&self) -> usize {
        PRNS * self.correlations_of_one()
    }

    /// Those of one satellite.
    pub fn correlations_of_one(&self) -> usize {
        self.coarse_hz.len() * self.samples()
    }
}

/// Samples of a code period.
fn block_of(rate_hz: f64) -> Result<usize> {
    input::check_rate(rate_hz)?;
    let block = rate_hz / 1000.0;
    if block.fract() != 0.0 {
        return Err(Error::input(format!(
            "{rate_hz} samples per second give {block} samples in a code period of 1 ms, which must be a whole number; resample to a multiple of 1000 samples per second, or correct --rate"
        )));
    }
    if !(1023.0..=1e6).contains(&block) {
        return Err(Error::input(format!(
            "{rate_hz} samples per second are outside the range of 1.023 to 1000 million; correct --rate, or resample"
        )));
    }
    let block = block as usize;
    let Some(factor) = other_factor(block) else {
        return Ok(block);
    };
    let below = (1023..block).rev().find(|&length| other_factor(length).is_none());
    let above = (block + 1..).find(|&length| other_factor(length).is_none());
    let neighbours: Vec<String> = below
        .into_iter()
        .chain(above)
        .map(|length| (length * 1000).to_string())
        .collect();
    Err(Error::input(format!(
        "{rate_hz} samples per second give a block of {block} samples with the prime factor {factor}; the search takes only the factors 2, 3 and 5, which the FFT transforms directly; resample to {} samples per second",
        neighbours.join(" or ")
    )))
}

/// The largest prime factor if it is none of 2, 3 and 5.
fn other_factor(length: usize) -> Option<usize> {
    let mut rest = length;
    for factor in [2, 3, 5] {
        while rest.is_multiple_of(factor) {
            rest /= factor;
        }
    }
    let mut largest = None;
    let mut factor = 7;
    while factor * factor <= rest {
        while rest.is_multiple_of(factor) {
            rest /= factor;
            largest = Some(factor);
        }
        factor += 2;
    }
    if rest > 1 { Some(rest) } else { largest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        Parameters {
            rate_hz: 4e6,
            doppler_max_hz: 5000.0,
            doppler_step_hz: 500.0,
            blocks: 10,
            sub: 5,
        }
    }

    fn message(change: impl FnOnce(&mut Parameters)) -> String {
        let mut parameters = parameters();
        change(&mut parameters);
        let message = Geometry::new(&parameters).unwrap_err().to_string();
        assert_eq!(message.lines().count(), 1);
        message
    }

    #[test]
    fn rows_cover_the_doppler_range_without_gap_or_overlap() {
        for (step, sub, blocks) in [
            (500.0, 5, 10),
            (500.0, 10, 20),
            (250.0, 5, 15),
            (1000.0, 1, 2),
            (333.0, 4, 8),
            (100.0, 2, 4),
        ] {
            let geometry = Geometry::new(&Parameters {
                doppler_step_hz: step,
                sub,
                blocks,
                ..parameters()
            })
            .unwrap();
            for row in 1..geometry.rows() {
                let distance = geometry.row_hz(row) - geometry.row_hz(row - 1);
                assert!(
                    (distance - geometry.row_step_hz()).abs() < 1e-6,
                    "row {row}, step {step}: {distance}"
                );
            }
            assert!(geometry.row_step_hz() <= 500.0 / sub as f64 + 1e-9);
            assert!(geometry.row_hz(geometry.rows() - 1) + geometry.row_step_hz() / 2.0 >= 5000.0);
        }
    }

    #[test]
    fn default_search_has_the_documented_sizes() {
        let geometry = Geometry::new(&parameters()).unwrap();
        assert_eq!(
            (geometry.block(), geometry.rows(), geometry.sub_intervals()),
            (4000, 105, 2)
        );
        assert_eq!(geometry.fine_hz(), [-200.0, -100.0, 0.0, 100.0, 200.0]);
        assert_eq!(geometry.correlations(), 32 * 21 * 10 * 4000);
    }

    #[test]
    fn a_rate_the_fft_does_not_take_names_factor_and_neighbours() {
        assert!(message(|p| p.rate_hz = 4.1e6).contains("factor 41"));
        let text = message(|p| p.rate_hz = 2.002e6);
        assert!(text.contains("2002 samples") && text.contains("factor 13"), "{text}");
        assert!(text.contains("resample to 2000000 or 2025000 samples"), "{text}");
        assert!(message(|p| p.rate_hz = 4_000_100.0).contains("4000.1 samples"));
    }

    #[test]
    fn a_search_that_makes_no_sense_is_refused() {
        for rate in [0.0, -4e6, f64::NAN, f64::INFINITY] {
            assert!(message(|p| p.rate_hz = rate).contains("not a sample rate"));
        }
        assert!(message(|p| p.rate_hz = 1e6).contains("1.023"));
        assert!(message(|p| p.doppler_step_hz = 0.0).contains("--doppler-step"));
        assert!(message(|p| p.doppler_step_hz = f64::NAN).contains("--doppler-step"));
        assert!(message(|p| p.doppler_step_hz = 1e-9).contains("too large"));
        assert!(message(|p| p.doppler_max_hz = -1.0).contains("--doppler-max"));
        assert!(message(|p| p.doppler_max_hz = f64::NAN).contains("--doppler-max"));
        assert!(message(|p| p.doppler_max_hz = 2e6).contains("--doppler-max"));
        assert!(message(|p| p.sub = 0).contains("--sub"));
        assert!(message(|p| p.sub = 21).contains("--sub"));
        assert!(message(|p| p.blocks = 5).contains("at least 10"));
        assert!(message(|p| p.blocks = 12).contains("--blocks"));
        assert!(message(|p| p.blocks = 5 * 1_000_000_000).contains("too large"));
    }

    #[test]
    fn largest_other_factor_is_named() {
        assert_eq!(other_factor(4000), None);
        assert_eq!(other_factor(2 * 7 * 7), Some(7));
        assert_eq!(other_factor(2 * 7 * 11), Some(11));
        assert_eq!(other_factor(1023), Some(31));
    }
}
