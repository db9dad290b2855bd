//! The picture of a run: what the job found on top, the stages of an iteration below.

use plotters::prelude::*;

use crate::Result;
use crate::chart::scale::{significant, tick, ticks};
use crate::chart::style::{
    FAINT, FOURTH_COLOUR, GRID, HIP_COLOUR, INK, OPENCL_COLOUR, THIRD_COLOUR, WIDTH, encode, failed, fonts, headline,
    text,
};
use crate::outcome::Picture;
use crate::report::Report;

mod lines;
mod map;
mod timeline;
mod viridis;

/// Height of what the job found.
const FINDING_HEIGHT: u32 = 660;
/// Height of the stage timeline for each stage, and around them.
const STAGE_HEIGHT: u32 = 34;
const TIMELINE_FRAME: u32 = 120;

type Area<'a> = DrawingArea<BitMapBackend<'a>, plotters::coord::Shift>;

/// Draws `picture`, with the stages of `report`, as a PNG file's bytes.
///
/// # Errors
/// [`Error::Plot`](crate::Error::Plot).
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
