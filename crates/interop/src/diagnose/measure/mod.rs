//! The cost of a hand-off and a launch, and the speed of the memory and the arithmetic, measured on the bridge itself.
//!
//! Each measurement scales itself to the device. On a device so slow that a figure would take more than about a second,
//! such as an emulated one, it moves fewer bytes and takes fewer samples.

mod bandwidth;
mod handoff;
mod launch;
mod pace;
mod products;

pub(crate) use bandwidth::{BRIEF, LEAST_BYTES, affordable_copy, brief_bytes, rate_of};
pub use bandwidth::{Bandwidth, Float4, bandwidth, bandwidth_briefly, joint_bandwidth};
pub use handoff::{DirectionCost, HandoffCost, handoff, handoff_busy, handoff_by_direction, handoff_on_stream};
pub use launch::{CallCost, LaunchCost, StreamLaunchCost, launch, launch_on_stream};
pub use products::arithmetic;

use crate::{Bridge, Result, StreamKernel};

/// The probe's kernel, loaded by HIP.
fn on_stream(bridge: &Bridge, name: &str) -> Result<StreamKernel> {
    let program = bridge.probe().cl().program();
    bridge.stream_program(program)?.kernel(name)
}

/// The median of `values`; NaN for none.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// The smallest value that at least `fraction` of the sorted `values` do not exceed.
fn quantile(values: &[f64], fraction: f64) -> f64 {
    let rank = (fraction * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::{median, quantile};

    #[test]
    fn medians_and_quantiles_of_small_sets_are_exact() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&mut []).is_nan());
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&hundred, 0.99), 99.0);
        assert_eq!(quantile(&hundred, 1.0), 100.0);
        assert_eq!(quantile(&[7.0], 0.5), 7.0);
    }
}
