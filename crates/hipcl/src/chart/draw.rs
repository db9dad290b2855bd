//! A chart as the bytes of a file.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::bars::Bars;
use super::file::Format;
use super::layout::{Align, Scene, Shape, scene};
use super::style::{WIDTH, encode, failed, fonts, text};
use crate::Result;

/// The chart as a file's bytes.
///
/// # Errors
/// [`Error::Plot`](crate::Error::Plot).
pub fn render(bars: &Bars, format: Format) -> Result<Vec<u8>> {
    fonts()?;
    let scene = scene(bars)?;
    let size = (WIDTH, scene.height);
    match format {
        Format::Svg => {
            let mut text = String::new();
            draw(&SVGBackend::with_string(&mut text, size).into_drawing_area(), &scene)?;
            Ok(text.into_bytes())
        }
        Format::Png => {
            let mut pixels = vec![0; size.0 as usize * size.1 as usize * 3];
            let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
            draw(&area, &scene)?;
            drop(area);
            encode(&pixels, size)
        }
    }
}

fn draw<B: DrawingBackend>(area: &DrawingArea<B, Shift>, scene: &Scene) -> Result<()> {
    area.fill(&WHITE).map_err(failed)?;
    for shape in &scene.shapes {
        match shape {
            Shape::Box { from, to, ink } => area.draw(&Rectangle::new([*from, *to], ink.filled())),
            Shape::Line { from, to, width, ink } => {
                area.draw(&PathElement::new([*from, *to], ink.stroke_width(*width)))
            }
            Shape::Text {
                at,
                align,
                size,
                ink,
                text: line,
            } => {
                let side = match align {
                    Align::Left => HPos::Left,
                    Align::Middle => HPos::Center,
                    Align::Right => HPos::Right,
                };
                let style = text(*size, *ink).pos(Pos::new(side, VPos::Center));
                area.draw_text(line, &style, *at)
            }
        }
        .map_err(failed)?;
    }
    area.present().map_err(failed)
}
