//! The picture of a run: what the job found on top, the stages of an iteration below.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::Result;
use crate::chart::Format;
use crate::chart::scale::{significant, tick, ticks};
use crate::chart::style::{
    FAINT, FOURTH_COLOUR, GRID, HIP_COLOUR, INK, OPENCL_COLOUR, THIRD_COLOUR, WIDTH, encode, failed, fonts, headline,
    text,
};
use crate::outcome::Picture;
use crate::report::Report;

mod lines;
mod map;
mod raster;
mod timeline;
mod viridis;

use raster::{Raster, Rasters};

/// Height of what the job found.
const FINDING_HEIGHT: u32 = 660;
/// Height of the stage timeline for each stage, and around them.
const STAGE_HEIGHT: u32 = 34;
const TIMELINE_FRAME: u32 = 120;

type Area<B> = DrawingArea<B, Shift>;

/// Draws `picture`, with the stages of `report`, as the bytes of a file.
///
/// # Errors
/// [`Error::Plot`](crate::Error::Plot).
pub fn render(picture: &Picture, report: &Report, format: Format) -> Result<Vec<u8>> {
    fonts()?;
    let finding = if matches!(picture, Picture::Timeline) {
        0
    } else {
        FINDING_HEIGHT
    };
    let height = finding + TIMELINE_FRAME + STAGE_HEIGHT * report.stages.len().max(1) as u32;
    let size = (WIDTH, height);
    match format {
        Format::Svg => {
            let mut text = String::new();
            let mut rasters = Rasters::apart();
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            draw(&area, finding, picture, report, &mut rasters)?;
            drop(area);
            rasters.into_svg(text).map(String::into_bytes)
        }
        Format::Png => {
            let mut pixels = vec![0; size.0 as usize * size.1 as usize * 3];
            let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
            draw(&area, finding, picture, report, &mut Rasters::drawn())?;
            drop(area);
            encode(&pixels, size)
        }
    }
}

fn draw<B: DrawingBackend>(
    root: &Area<B>,
    finding: u32,
    picture: &Picture,
    report: &Report,
    rasters: &mut Rasters,
) -> Result<()> {
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
            map::draw(&upper, title, (x_label, y_label), &grid, marks, rasters)?;
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
    root.present().map_err(failed)
}
