//! Curves with marks.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{
    Area, FAINT, FOURTH_COLOUR, GRID, HIP_COLOUR, INK, OPENCL_COLOUR, THIRD_COLOUR, failed, headline, text, tick,
};
use crate::{Error, Result};

const COLOURS: [RGBColor; 4] = [OPENCL_COLOUR, HIP_COLOUR, THIRD_COLOUR, FOURTH_COLOUR];
const LABEL_SIZE: u32 = 15;
/// Height of a peak's marker.
const MARKER: i32 = 16;
/// Width of a character of a label and height of its line, in pixels.
const LABEL_CELL: (i32, i32) = (9, 20);

pub(super) fn draw<B: DrawingBackend>(
    area: &Area<B>,
    title: &str,
    (x_label, y_label): (&str, &str),
    series: &[(String, Vec<(f64, f64)>)],
    marks: &[(f64, f64, String)],
) -> Result<()> {
    let points = || {
        series
            .iter()
            .flat_map(|(_, points)| points)
            .filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    let Some((x, y)) = bounds(points()) else {
        return Err(Error::Plot("the curves have no finite value".into()));
    };
    // room above the curves for the marks' labels
    let y = (y.0 - 0.03 * (y.1 - y.0), y.1 + 0.2 * (y.1 - y.0));
    let mut chart = ChartBuilder::on(area)
        .caption(title, headline(24))
        .margin(14)
        .margin_right(30)
        .x_label_area_size(56)
        .y_label_area_size(76)
        .build_cartesian_2d(x.0..x.1, y.0..y.1)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .x_labels(13)
        .x_desc(x_label)
        .y_desc(y_label)
        .x_label_formatter(&|value| tick(*value, x.1 - x.0))
        .y_label_formatter(&|value| tick(*value, y.1 - y.0))
        .label_style(text(16, INK))
        .axis_desc_style(text(17, INK))
        .axis_style(INK)
        .draw()
        .map_err(failed)?;
    for ((name, points), colour) in series.iter().zip(COLOURS.into_iter().cycle()) {
        // one stroke for each segment: a path's joints cut off peaks that are a pixel wide
        let segments = points
            .windows(2)
            .map(|pair| PathElement::new(pair.to_vec(), colour.stroke_width(2)));
        chart
            .draw_series(segments)
            .map_err(failed)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(3)));
    }

    let base = area.get_base_pixel();
    let mut at: Vec<((i32, i32), &str)> = marks
        .iter()
        .map(|(x, y, label)| {
            let pixel = chart.backend_coord(&(*x, *y));
            ((pixel.0 - base.0, pixel.1 - base.1), label.as_str())
        })
        .collect();
    // the highest first, so a label has only lower marks below it
    at.sort_by_key(|((_, y), _)| *y);
    let peaks: Vec<(i32, i32)> = at.iter().map(|(peak, _)| *peak).collect();
    let mut taken: Vec<Label> = Vec::new();
    for ((x, y), name) in at {
        let label = Label::place((x, y), name, &taken, &peaks);
        // the end of the text next to the peak stands where it should, however wide the text really is
        let (anchor, side) = if label.right < x {
            (label.right, HPos::Right)
        } else if label.left > x {
            (label.left, HPos::Left)
        } else {
            area.draw(&PathElement::new([(x, label.bottom + 2), (x, y - 9)], FAINT))
                .map_err(failed)?;
            (x, HPos::Center)
        };
        area.draw(&TriangleMarker::new((x, y - 5), -7, HIP_COLOUR.filled()))
            .map_err(failed)?;
        let style = text(LABEL_SIZE, INK).pos(Pos::new(side, VPos::Bottom));
        area.draw_text(name, &style, (anchor, label.bottom)).map_err(failed)?;
        taken.push(label);
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .border_style(GRID)
        .label_font(text(15, INK))
        .draw()
        .map_err(failed)
}

/// Where a label stands.
#[derive(Clone, Copy, Debug)]
struct Label {
    left: i32,
    right: i32,
    bottom: i32,
}

impl Label {
    /// The place nearest to the middle above `peak` that covers neither another label nor another peak with its slopes:
    /// to a side first, then higher.
    fn place(peak: (i32, i32), text: &str, taken: &[Self], peaks: &[(i32, i32)]) -> Self {
        let half = LABEL_CELL.0 * text.chars().count() as i32 / 2;
        let at = |side: i32, lift: i32| Self {
            left: peak.0 + side - half,
            right: peak.0 + side + half,
            bottom: peak.1 - MARKER - lift * LABEL_CELL.1,
        };
        let free = |label: &Self| {
            taken.iter().all(|other| !label.meets(other)) && peaks.iter().all(|other| !label.covers(*other))
        };
        let aside = half + MARKER;
        let mut places = (0..20).flat_map(|lift| [0, aside, -aside].map(|side| at(side, lift)));
        places.find(free).unwrap_or(at(0, 0))
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && (self.bottom - other.bottom).abs() < LABEL_CELL.1
    }

    /// Whether the marker of a peak, or the curve below it, runs through the label.
    fn covers(&self, (x, y): (i32, i32)) -> bool {
        self.left < x + 8 && x - 8 < self.right && self.bottom > y - MARKER
    }
}

/// Smallest and largest of both coordinates, never an empty interval.
fn bounds<'a>(points: impl Iterator<Item = &'a (f64, f64)>) -> Option<((f64, f64), (f64, f64))> {
    let mut bounds: Option<((f64, f64), (f64, f64))> = None;
    for &(x, y) in points {
        let (bx, by) = bounds.get_or_insert(((x, x), (y, y)));
        *bx = (bx.0.min(x), bx.1.max(x));
        *by = (by.0.min(y), by.1.max(y));
    }
    let widen = |(low, high): (f64, f64)| {
        if high > low {
            (low, high)
        } else {
            (low - 0.5, high + 0.5)
        }
    };
    bounds.map(|(x, y)| (widen(x), widen(y)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_close_peaks_cover_neither_each_other_nor_the_peaks() {
        let peaks = [(100, 50), (104, 60), (130, 80), (140, 20)];
        let mut taken: Vec<Label> = Vec::new();
        for peak in peaks {
            let label = Label::place(peak, "-9.91°, -7.8 dB", &taken, &peaks);
            assert!(taken.iter().all(|other| !label.meets(other)), "{label:?} {taken:?}");
            assert!(peaks.iter().all(|peak| !label.covers(*peak)), "{label:?}");
            taken.push(label);
        }
    }
}
