//! Judges what was found in a generated scene.

use super::detect::Detector;
use super::geometry::Geometry;
use super::scene::{Scene, Transmitter};
use crate::outcome::Satellite;

/// How far a found Doppler shift may lie from the true one, in rows of the map. A bit edge inside a sub-interval splits
/// its spectral line in two, which pulls the maximum.
const DOPPLER_ROWS: f64 = 2.0;
/// How far a found code phase may lie from the true one, in chips. The code's own Doppler moves it by 0.03 chips in 10
/// ms.
const CODE_PHASE_CHIPS: f64 = 0.5;

/// What was found, against what is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Satellites that are there, strong enough to be found for certain, and were not found.
    pub missed: Vec<u8>,
    /// Satellites that were reported and are not there, or not at that place.
    pub false_alarms: Vec<u8>,
    /// Satellites that are too weak to be found for certain, and were not.
    pub too_weak: Vec<u8>,
}

impl Verdict {
    /// Judges `found` against `scene`.
    pub fn new(scene: &Scene, geometry: &Geometry, detector: &Detector<'_>, found: &[Satellite]) -> Self {
        let mut verdict = Self::default();
        for satellite in found {
            let right = scene
                .transmitters
                .iter()
                .any(|transmitter| is_at(geometry, transmitter, satellite));
            if !right {
                verdict.false_alarms.push(satellite.prn);
            }
        }
        for transmitter in &scene.transmitters {
            if found.iter().any(|satellite| satellite.prn == transmitter.prn) {
                continue;
            }
            let others: Vec<f64> = scene
                .transmitters
                .iter()
                .filter(|other| other.prn != transmitter.prn && other.cn0_db_hz >= transmitter.cn0_db_hz)
                .map(|other| other.cn0_db_hz)
                .collect();
            if transmitter.cn0_db_hz >= detector.weakest_cn0_db_hz(&others) {
                verdict.missed.push(transmitter.prn);
            } else {
                verdict.too_weak.push(transmitter.prn);
            }
        }
        verdict
    }

    /// Nothing missed that had to be found, nothing reported that is not there.
    pub fn is_right(&self) -> bool {
        self.missed.is_empty() && self.false_alarms.is_empty()
    }
}

fn is_at(geometry: &Geometry, transmitter: &Transmitter, satellite: &Satellite) -> bool {
    let block = geometry.block() as f64;
    let delay = (satellite.code_phase_samples - transmitter.code_phase_samples).rem_euclid(block);
    let chips = delay.min(block - delay) * 1023.0 / block;
    let rows = (satellite.doppler_hz - transmitter.doppler_hz).abs() / geometry.row_step_hz();
    satellite.prn == transmitter.prn && chips <= CODE_PHASE_CHIPS && rows <= DOPPLER_ROWS
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Parameters;
    use super::*;

    #[test]
    fn only_what_is_there_and_at_its_place_is_right() {
        let geometry = Geometry::new(&Parameters {
            rate_hz: 2e6,
            doppler_max_hz: 5000.0,
            doppler_step_hz: 500.0,
            blocks: 10,
            sub: 5,
        })
        .unwrap();
        let detector = Detector::new(&geometry, 1e-3);
        let transmitter = |prn, cn0_db_hz| Transmitter {
            prn,
            doppler_hz: 1234.0,
            code_phase_samples: 0.25,
            carrier_phase_cycles: 0.0,
            cn0_db_hz,
            bit_edge: None,
        };
        let scene = Scene {
            rate_hz: 2e6,
            seed: 1,
            transmitters: vec![transmitter(3, 50.0), transmitter(4, 30.0)],
        };
        let found = |prn, doppler_hz, code_phase_samples| Satellite {
            prn,
            doppler_hz,
            code_phase_samples,
            peak_over_median: 99.0,
        };
        let verdict = |found: &[Satellite]| Verdict::new(&scene, &geometry, &detector, found);

        let weak_is_missing = Verdict {
            too_weak: vec![4],
            ..Verdict::default()
        };
        assert_eq!(verdict(&[found(3, 1250.0, 0.3)]), weak_is_missing);
        assert_eq!(
            verdict(&[found(3, 1250.0, 1999.9)]),
            weak_is_missing,
            "delays run in a circle"
        );
        assert!(weak_is_missing.is_right());
        assert_eq!(verdict(&[]).missed, [3]);
        assert!(!verdict(&[]).is_right());
        for wrong in [found(3, 1500.0, 0.3), found(3, 1250.0, 4.0), found(5, 1250.0, 0.3)] {
            let verdict = verdict(&[found(3, 1250.0, 0.3), wrong]);
            assert_eq!(verdict.false_alarms.len(), 1);
            assert!(!verdict.is_right());
        }
    }
}
