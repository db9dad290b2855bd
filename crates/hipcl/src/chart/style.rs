//! What every picture looks like.

use std::sync::OnceLock;

use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::{Error, Result};

/// Width of every picture, in pixels.
pub(crate) const WIDTH: u32 = 1280;

pub(crate) const OPENCL_COLOUR: RGBColor = RGBColor(0x2a, 0x78, 0xb5);
pub(crate) const HIP_COLOUR: RGBColor = RGBColor(0xd9, 0x5f, 0x02);
pub(crate) const THIRD_COLOUR: RGBColor = RGBColor(0x1b, 0x9e, 0x77);
pub(crate) const FOURTH_COLOUR: RGBColor = RGBColor(0x75, 0x70, 0xb3);
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(crate) const FAINT: RGBColor = RGBColor(0x70, 0x70, 0x70);
pub(crate) const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// Registers the embedded typeface: a machine without any installed font draws the same picture.
pub(crate) fn fonts() -> Result<()> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered =
        *REGISTERED.get_or_init(|| register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).is_ok());
    registered
        .then_some(())
        .ok_or_else(|| Error::Plot("the embedded typeface cannot be read".into()))
}

pub(crate) fn text(size: u32, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour)
}

pub(crate) fn headline(size: u32) -> TextStyle<'static> {
    text(size, INK)
}

pub(crate) fn failed(error: impl std::fmt::Display) -> Error {
    Error::Plot(error.to_string())
}

/// The pixels, three bytes each, as a PNG file's bytes.
pub(crate) fn encode(pixels: &[u8], (width, height): (u32, u32)) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}
