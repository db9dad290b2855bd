//! Positions and numbers on an axis.

/// A tick label with as many digits as the axis needs.
pub(crate) fn tick(value: f64, span: f64) -> String {
    let digits = (1.0 - span.abs().max(1e-12).log10()).ceil().clamp(0.0, 6.0) as usize;
    let text = format!("{value:.digits$}");
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        "0".into()
    } else {
        text
    }
}

/// Three significant digits.
pub(crate) fn significant(value: f64) -> String {
    let digits = if value > 0.0 {
        (2.0 - value.log10().floor()).clamp(0.0, 3.0) as usize
    } else {
        0
    };
    format!("{value:.digits$}")
}

/// Three significant digits of any magnitude and sign; a dash for what is no number.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "-".into(),
        size if size != 0.0 && !(1e-3..1e7).contains(&size) => format!("{value:.2e}"),
        size if value < 0.0 => format!("-{}", significant(size)),
        size => significant(size),
    }
}

/// Round positions on an axis from 0 to `end`, about `count` of them.
pub(crate) fn ticks(end: f64, count: f64) -> Vec<f64> {
    let rough = end / count;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    (0..=(end / step + 1e-9) as usize).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_show_as_many_digits_as_the_axis_resolves() {
        assert_eq!(tick(-90.0, 180.0), "-90");
        assert_eq!(tick(0.25, 1.0), "0.2");
        assert_eq!(tick(-0.0, 180.0), "0");
    }

    #[test]
    fn ticks_are_round_and_cover_the_axis() {
        assert_eq!(ticks(100.0, 8.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(7.5, 8.0).len(), 8);
    }

    #[test]
    fn three_digits_whatever_the_magnitude() {
        assert_eq!(
            [0.01234, 1.2345, 12.345, 1234.5].map(significant),
            ["0.012", "1.23", "12.3", "1234"]
        );
        assert_eq!(
            [-12.345, 1.5e-5, 2e9, 0.0, f64::NAN, f64::INFINITY].map(number),
            ["-12.3", "1.50e-5", "2.00e9", "0", "-", "-"]
        );
    }
}
