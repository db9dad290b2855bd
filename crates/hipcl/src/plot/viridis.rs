//! A colour scale that grows evenly in lightness, so it reads the same in grey and for colour-blind eyes.

/// Viridis at nine equal steps.
const STOPS: [[f32; 3]; 9] = [
    [68.0, 1.0, 84.0],
    [71.0, 44.0, 122.0],
    [59.0, 81.0, 139.0],
    [44.0, 113.0, 142.0],
    [33.0, 144.0, 141.0],
    [39.0, 173.0, 129.0],
    [92.0, 200.0, 99.0],
    [170.0, 220.0, 50.0],
    [253.0, 231.0, 37.0],
];

/// The colour at `position`, 0 (dark) to 1 (light); values outside, NaN included, are taken to the ends.
pub(super) fn colour(position: f32) -> [u8; 3] {
    let position = if position.is_nan() {
        0.0
    } else {
        position.clamp(0.0, 1.0)
    };
    let scaled = position * (STOPS.len() - 1) as f32;
    let below = (scaled as usize).min(STOPS.len() - 2);
    let part = scaled - below as f32;
    std::array::from_fn(|channel| {
        let (low, high) = (STOPS[below][channel], STOPS[below + 1][channel]);
        (low + part * (high - low)).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_dark_and_light_whatever_is_given() {
        assert_eq!(colour(-3.0), [68, 1, 84]);
        assert_eq!(colour(f32::NAN), [68, 1, 84]);
        assert_eq!(colour(7.0), [253, 231, 37]);
    }
}
