//! The coarse/acquisition codes of GPS L1 (IS-GPS-200, section 3.3.2.3), from their two shift registers.

/// Chips of one period.
pub const CHIPS: usize = 1023;
/// Chips per second at the satellite.
pub const CHIP_RATE_HZ: f64 = 1.023e6;
/// Carrier frequency of L1 in Hz.
pub const CARRIER_HZ: f64 = 1575.42e6;
/// Satellites that are searched for have the numbers 1 to this.
pub const PRNS: usize = 32;

/// Stages of the second register whose sum makes the code of each satellite, PRN 1 first (IS-GPS-200, table 3-Ia).
const PHASE_SELECTOR: [(usize, usize); PRNS] = [
    (2, 6),
    (3, 7),
    (4, 8),
    (5, 9),
    (1, 9),
    (2, 10),
    (1, 8),
    (2, 9),
    (3, 10),
    (2, 3),
    (3, 4),
    (5, 6),
    (6, 7),
    (7, 8),
    (8, 9),
    (9, 10),
    (1, 4),
    (2, 5),
    (3, 6),
    (4, 7),
    (5, 8),
    (6, 9),
    (1, 3),
    (4, 6),
    (5, 7),
    (6, 8),
    (7, 9),
    (8, 10),
    (1, 6),
    (2, 7),
    (3, 8),
    (4, 9),
];

/// A ten-stage shift register; stage `n` of the specification is bit `n - 1`.
struct Register {
    stages: u16,
    feedback: u16,
}

impl Register {
    fn new(feedback_stages: &[usize]) -> Self {
        Self {
            stages: 0x3ff,
            feedback: feedback_stages.iter().fold(0, |mask, stage| mask | 1 << (stage - 1)),
        }
    }

    fn stage(&self, stage: usize) -> u16 {
        self.stages >> (stage - 1) & 1
    }

    fn step(&mut self) {
        let bit = (self.stages & self.feedback).count_ones() as u16 & 1;
        self.stages = (self.stages << 1 | bit) & 0x3ff;
    }
}

/// One period of the code of satellite `prn` (1 to 32; `None` for another number): `true` is the specification's binary
/// 1.
pub fn bits(prn: u8) -> Option<[bool; CHIPS]> {
    let &(first, second) = PHASE_SELECTOR.get(usize::from(prn).checked_sub(1)?)?;
    let mut g1 = Register::new(&[3, 10]);
    let mut g2 = Register::new(&[2, 3, 6, 8, 9, 10]);
    Some(std::array::from_fn(|_| {
        let bit = g1.stage(10) ^ g2.stage(first) ^ g2.stage(second);
        g1.step();
        g2.step();
        bit == 1
    }))
}

/// One period as the signal's sign: +1 for binary 0, -1 for binary 1.
pub fn signs(prn: u8) -> Option<[f32; CHIPS]> {
    Some(bits(prn)?.map(|bit| if bit { -1.0 } else { 1.0 }))
}

/// One period sampled at the beginnings of `block` equal steps: the replica that the search correlates with.
pub fn sampled(prn: u8, block: usize) -> Option<Vec<f32>> {
    let signs = signs(prn)?;
    Some((0..block).map(|n| signs[n * CHIPS / block]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first ten chips in octal, as IS-GPS-200 lists them for checking.
    const FIRST_TEN_OCTAL: [u16; PRNS] = [
        0o1440, 0o1620, 0o1710, 0o1744, 0o1133, 0o1455, 0o1131, 0o1454, 0o1626, 0o1504, 0o1642, 0o1750, 0o1764, 0o1772,
        0o1775, 0o1776, 0o1156, 0o1467, 0o1633, 0o1715, 0o1746, 0o1763, 0o1063, 0o1706, 0o1743, 0o1761, 0o1770, 0o1774,
        0o1127, 0o1453, 0o1625, 0o1712,
    ];

    #[test]
    fn codes_begin_as_the_specification_lists_them() {
        for (index, &expected) in FIRST_TEN_OCTAL.iter().enumerate() {
            let bits = bits(index as u8 + 1).unwrap();
            let first = bits[..10].iter().fold(0, |value, &bit| value << 1 | u16::from(bit));
            assert_eq!(first, expected, "PRN {}", index + 1);
        }
        assert!(bits(0).is_none() && bits(33).is_none());
    }

    #[test]
    fn codes_are_balanced_and_correlate_as_gold_codes_do() {
        for prn in 1..=PRNS as u8 {
            let code = signs(prn).unwrap();
            assert_eq!(
                code.iter().sum::<f32>(),
                -1.0,
                "a period has 512 ones and 511 zeros, PRN {prn}"
            );
            let other = signs(prn % PRNS as u8 + 1).unwrap();
            for shift in 0..CHIPS {
                let correlation =
                    |with: &[f32; CHIPS]| -> f32 { (0..CHIPS).map(|n| code[n] * with[(n + shift) % CHIPS]).sum() };
                if shift > 0 {
                    assert!(
                        [-65.0, -1.0, 63.0].contains(&correlation(&code)),
                        "PRN {prn}, shift {shift}"
                    );
                }
                assert!(
                    [-65.0, -1.0, 63.0].contains(&correlation(&other)),
                    "PRN {prn}, shift {shift}"
                );
            }
        }
    }

    #[test]
    fn sampling_visits_every_chip_in_order() {
        let sampled = sampled(7, 4 * CHIPS).unwrap();
        let signs = signs(7).unwrap();
        assert!(sampled.iter().enumerate().all(|(n, &value)| value == signs[n / 4]));
    }
}
