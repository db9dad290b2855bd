//! The delay-Doppler map of one satellite.

use super::geometry::Geometry;
use crate::outcome::{Picture, Satellite};

/// Columns that a picture needs at most; more are merged, each taking its largest value.
const COLUMNS: usize = 1000;

/// The map of satellite `prn`, `[row][delay]`, in dB above its `median`, with `mark` in it.
pub(super) fn picture(geometry: &Geometry, prn: usize, map: &[f32], median: f32, mark: Option<&Satellite>) -> Picture {
    let delays = geometry.block();
    let merged = delays.div_ceil(COLUMNS);
    let width = delays.div_ceil(merged);
    let values = map
        .chunks_exact(delays)
        .flat_map(|row| row.chunks(merged))
        .map(|cells| {
            let largest = cells.iter().copied().fold(0.0, f32::max);
            10.0 * (largest / median).max(1e-3).log10()
        })
        .collect();
    let half_row = 0.5 * geometry.row_step_hz();
    Picture::Map {
        title: match mark {
            Some(found) => format!("GPS PRN {prn}, {:.0} times the median", found.peak_over_median),
            None => format!("GPS PRN {prn}, not found"),
        },
        x_label: "code phase in samples".into(),
        y_label: "Doppler in Hz".into(),
        x: (-0.5, (width * merged) as f64 - 0.5),
        y: (
            geometry.row_hz(0) - half_row,
            geometry.row_hz(geometry.rows() - 1) + half_row,
        ),
        width,
        height: geometry.rows(),
        values,
        marks: mark
            .map(|found| (found.code_phase_samples, found.doppler_hz, format!("PRN {}", found.prn)))
            .into_iter()
            .collect(),
    }
}
