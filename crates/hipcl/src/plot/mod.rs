//! The picture of a run: what the job found on top, the stages of an iteration below.

use std::sync::OnceLock;

use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::outcome::Picture;
use crate::report::Report;
use crate::{Error, Result};

mod lines;
mod map;
mod timeline;
mod viridis;

const WIDTH: u32 = 1280;
/// Height of what the job found.
const FINDING_HEIGHT: u32 = 660;
/// Height of the stage timeline for each stage, and around them.
const STAGE_HEIGHT: u32 = 34;
const TIMELINE_FRAME: u32 = 120;

const OPENCL_COLOUR: RGBColor = RGBColor(0x2a, 0x78, 0xb5);
const HIP_COLOUR: RGBColor = RGBColor(0xd9, 0x5f, 0x02);
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FAINT: RGBColor = RGBColor(0x70, 0x70, 0x70);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

type Area<'a> = DrawingArea<BitMapBackend<'a>, plotters::coord::Shift>;

/// Draws `picture`, with the stages of `report`, as a PNG file's bytes.
///
/// # Errors
/// [`Error::Plot`].
pub fn png(picture: &Picture, report: &Report) -> Result<Vec<u8>> {
    fonts()?;
    let finding = if matches!(picture, Picture::Timeline) {
        0
    } else {
        FINDING_HEIGHT
    };
    let height = finding + TIMELINE_FRAME + STAGE_HEIGHT * report.stages.len().max(1) as u32;
    let mut pixels = vec![0; (WIDTH * height * 3) as usize];
    {
        let root = BitMapBackend::with_buffer(&mut pixels, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let (upper, lower) = root.split_vertically(finding);
        match picture {
            Picture::Map {
                title,
                x_label,
                y_label,
                x,
                y,
                width,
                height,
                values,
                marks,
            } => {
                let grid = map::Grid {
                    x: *x,
                    y: *y,
                    width: *width,
                    height: *height,
                    values,
                };
                map::draw(&upper, title, (x_label, y_label), &grid, marks)?;
            }
            Picture::Lines {
                title,
                x_label,
                y_label,
                series,
                marks,
            } => {
                lines::draw(&upper, title, (x_label, y_label), series, marks)?;
            }
            Picture::Timeline => {}
        }
        timeline::draw(&lower, report)?;
        root.present().map_err(failed)?;
    }
    encode(&pixels, height)
}

fn encode(pixels: &[u8], height: u32) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, WIDTH, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Plot(error.to_string())
}

/// Registers the embedded typeface: a machine without any installed font draws the same picture.
fn fonts() -> Result<()> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered =
        *REGISTERED.get_or_init(|| register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).is_ok());
    registered
        .then_some(())
        .ok_or_else(|| Error::Plot("the embedded typeface cannot be read".into()))
}

fn text(size: u32, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour)
}

fn headline(size: u32) -> TextStyle<'static> {
    text(size, INK)
}

/// A tick label with as many digits as the axis needs.
fn tick(value: f64, span: f64) -> String {
    let digits = (1.0 - span.abs().max(1e-12).log10()).ceil().clamp(0.0, 6.0) as usize;
    let text = format!("{value:.digits$}");
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        "0".into()
    } else {
        text
    }
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
}
