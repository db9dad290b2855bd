//! The array: a uniform line with elements half a wavelength apart.

use crate::C64;

/// Response of element `element` to a plane wave whose direction from broadside has this sine.
pub fn response(element: usize, sine: f64) -> C64 {
    // in turns, reduced before the angle is formed: exact to the last bit for any length of the array
    let turns = 0.5 * sine * element as f64;
    C64::from_polar(1.0, std::f64::consts::TAU * (turns - turns.round()))
}

/// The half-power width of the beam at broadside, in units of the sine.
pub fn beamwidth(elements: usize) -> f64 {
    1.772 / elements as f64
}
