//! Values over a plane as colours, with a colour bar.

use plotters::element::BitMapElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::viridis::colour;
use super::{Area, FAINT, INK, Raster, Rasters, failed, headline, text, tick};
use crate::{Error, Result};

/// A plane of values, row after row, the first row at `y.0`.
pub(super) struct Grid<'a> {
    pub x: (f64, f64),
    pub y: (f64, f64),
    pub width: usize,
    pub height: usize,
    pub values: &'a [f32],
}

/// Width of the colour bar with its numbers.
const BAR: u32 = 110;

pub(super) fn draw<B: DrawingBackend>(
    area: &Area<B>,
    title: &str,
    (x_label, y_label): (&str, &str),
    grid: &Grid<'_>,
    marks: &[(f64, f64, String)],
    rasters: &mut Rasters,
) -> Result<()> {
    if grid.width == 0 || grid.height == 0 || grid.values.len() != grid.width * grid.height {
        let Grid {
            width, height, values, ..
        } = grid;
        return Err(Error::Plot(format!(
            "a map of {width} x {height} has {} values",
            values.len()
        )));
    }
    let (low, high) = range(grid.values);
    let (left, right) = area.split_horizontally(area.dim_in_pixel().0 - BAR);

    let mut chart = ChartBuilder::on(&left)
        .caption(title, headline(24))
        .margin(14)
        .x_label_area_size(56)
        .y_label_area_size(84)
        .build_cartesian_2d(grid.x.0..grid.x.1, grid.y.0..grid.y.1)
        .map_err(failed)?;
    let plane = chart.plotting_area().dim_in_pixel();
    let corner = (grid.x.0, grid.y.1);
    let image = Raster {
        at: chart.backend_coord(&corner),
        size: plane,
        pixels: pixels(grid, plane, low, high),
    };
    if let Some(image) = rasters.take(image) {
        let image = BitMapElement::with_owned_buffer(corner, image.size, image.pixels)
            .ok_or_else(|| Error::Plot("the map has no area".into()))?;
        chart.draw_series(std::iter::once(image)).map_err(failed)?;
    }
    let (span_x, span_y) = (grid.x.1 - grid.x.0, grid.y.1 - grid.y.0);
    chart
        .configure_mesh()
        .disable_mesh()
        .x_desc(x_label)
        .y_desc(y_label)
        .x_label_formatter(&|x| tick(*x, span_x))
        .y_label_formatter(&|y| tick(*y, span_y))
        .label_style(text(16, INK))
        .axis_desc_style(text(17, INK))
        .axis_style(INK)
        .draw()
        .map_err(failed)?;

    // over the image, and legible on any colour of it
    let anchor = Pos::new(HPos::Left, VPos::Bottom);
    for (x, y, label) in marks {
        let at = chart.backend_coord(&(*x, *y));
        let root = left.strip_coord_spec();
        let offset = left.get_base_pixel();
        let at = (at.0 - offset.0, at.1 - offset.1);
        for (ring, width) in [(BLACK, 4), (WHITE, 2)] {
            root.draw(&Circle::new(at, 11, ring.stroke_width(width)))
                .map_err(failed)?;
        }
        let near_right = at.0 > left.dim_in_pixel().0 as i32 - 160;
        let anchor = if near_right {
            Pos::new(HPos::Right, VPos::Bottom)
        } else {
            anchor
        };
        let base = (at.0 + if near_right { -13 } else { 13 }, at.1 - 6);
        for (dx, dy) in [(-1, -1), (1, -1), (-1, 1), (1, 1), (0, -2), (0, 2), (-2, 0), (2, 0)] {
            let style = text(16, RGBColor(0, 0, 0)).pos(anchor);
            root.draw_text(label, &style, (base.0 + dx, base.1 + dy))
                .map_err(failed)?;
        }
        root.draw_text(label, &text(16, WHITE).pos(anchor), base)
            .map_err(failed)?;
    }
    bar(&right, low, high)
}

/// From the noise floor to the highest value: the lower half of the values tells nothing but noise.
fn range(values: &[f32]) -> (f32, f32) {
    let mut sorted: Vec<f32> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f32::total_cmp);
    match (sorted.get(sorted.len() / 4), sorted.last()) {
        (Some(&low), Some(&high)) if high > low => (low, high),
        (Some(&low), _) => (low, low + 1.0),
        _ => (0.0, 1.0),
    }
}

/// One colour per pixel, from the largest value that falls on it: a peak one sample wide must not vanish between two
/// pixels.
fn pixels(grid: &Grid<'_>, (columns, rows): (u32, u32), low: f32, high: f32) -> Vec<u8> {
    let cells = |pixel: u32, pixels: u32, values: usize| {
        let first = pixel as usize * values / pixels as usize;
        let last = ((pixel as usize + 1) * values)
            .div_ceil(pixels as usize)
            .clamp(first + 1, values);
        first..last
    };
    let mut bytes = Vec::with_capacity((columns * rows * 3) as usize);
    for row in 0..rows {
        // the picture's first row is the top, the plane's is the bottom
        let ys = cells(rows - 1 - row, rows, grid.height);
        for column in 0..columns {
            let xs = cells(column, columns, grid.width);
            let value = ys
                .clone()
                .flat_map(|y| &grid.values[y * grid.width..][xs.clone()])
                .fold(f32::NEG_INFINITY, |most, &value| most.max(value));
            bytes.extend(colour((value - low) / (high - low)));
        }
    }
    bytes
}

fn bar<B: DrawingBackend>(area: &Area<B>, low: f32, high: f32) -> Result<()> {
    let (top, bottom) = (64, area.dim_in_pixel().1 as i32 - 72);
    for y in top..bottom {
        let [r, g, b] = colour((bottom - 1 - y) as f32 / (bottom - 1 - top) as f32);
        area.draw(&Rectangle::new([(8, y), (28, y + 1)], RGBColor(r, g, b).filled()))
            .map_err(failed)?;
    }
    area.draw(&Rectangle::new([(8, top), (28, bottom)], INK))
        .map_err(failed)?;
    let span = f64::from(high - low);
    let step = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
        .into_iter()
        .find(|step| span / step <= 8.0)
        .unwrap_or(span / 4.0);
    let first = (f64::from(low) / step).ceil() as i64;
    for multiple in first..=(f64::from(high) / step).floor() as i64 {
        let value = multiple as f64 * step;
        let y = bottom - (f64::from(bottom - top) * (value - f64::from(low)) / span) as i32;
        let style = text(15, INK).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&PathElement::new([(28, y), (33, y)], INK)).map_err(failed)?;
        area.draw_text(&tick(value, step * 8.0), &style, (38, y))
            .map_err(failed)?;
    }
    area.draw_text("dB", &text(16, FAINT), (10, top - 26)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_one_sample_wide_is_seen_on_a_picture_with_fewer_pixels() {
        let mut values = vec![0.0; 1000 * 10];
        values[7 * 1000 + 777] = 1.0;
        let grid = Grid {
            x: (0.0, 1.0),
            y: (0.0, 1.0),
            width: 1000,
            height: 10,
            values: &values,
        };
        let bytes = pixels(&grid, (100, 5), 0.0, 1.0);
        assert!(bytes.chunks(3).any(|pixel| pixel == colour(1.0)));
    }

    #[test]
    fn the_first_row_lies_at_the_bottom() {
        let values = [1.0, 0.0];
        let grid = Grid {
            x: (0.0, 1.0),
            y: (0.0, 1.0),
            width: 1,
            height: 2,
            values: &values,
        };
        assert_eq!(pixels(&grid, (1, 2), 0.0, 1.0)[3..], colour(1.0));
    }
}
