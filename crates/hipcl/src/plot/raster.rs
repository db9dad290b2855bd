//! Images within a picture.
//!
//! The PNG backend draws them as pixels. The SVG backend would draw a rectangle for each pixel, so there an image stands
//! in the file as a PNG of its own.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::chart::style::encode;
use crate::{Error, Result};

/// An image, three bytes for each pixel.
pub(super) struct Raster {
    /// Its upper left corner in the picture.
    pub at: (i32, i32),
    pub size: (u32, u32),
    pub pixels: Vec<u8>,
}

/// What becomes of the images of a picture.
pub(super) struct Rasters(Option<Vec<Raster>>);

impl Rasters {
    /// The backend draws them.
    pub(super) fn drawn() -> Self {
        Self(None)
    }

    /// [`into_svg`](Self::into_svg) inserts them.
    pub(super) fn apart() -> Self {
        Self(Some(Vec::new()))
    }

    /// Takes the image, or gives it back to be drawn.
    pub(super) fn take(&mut self, raster: Raster) -> Option<Raster> {
        match &mut self.0 {
            Some(all) => {
                all.push(raster);
                None
            }
            None => Some(raster),
        }
    }

    /// The picture with its images between the ground, which is the first shape, and everything else.
    pub(super) fn into_svg(self, svg: String) -> Result<String> {
        let all = self.0.unwrap_or_default();
        if all.is_empty() {
            return Ok(svg);
        }
        let ground = svg
            .find("<rect ")
            .and_then(|from| svg[from..].find("/>").map(|length| from + length + 2))
            .ok_or_else(|| Error::Plot("the picture has no ground".into()))?;
        let (below, above) = svg.split_at(ground);
        let mut whole = below.to_owned();
        for raster in &all {
            let (x, y) = raster.at;
            let (width, height) = raster.size;
            let png = BASE64_STANDARD.encode(encode(&raster.pixels, raster.size)?);
            whole.push_str(&format!(
                "\n<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" href=\"data:image/png;base64,{png}\"/>"
            ));
        }
        whole.push_str(above);
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red() -> Raster {
        Raster {
            at: (3, 4),
            size: (2, 1),
            pixels: [255, 0, 0].repeat(2),
        }
    }

    #[test]
    fn an_image_lies_on_the_ground_and_below_the_rest() {
        let mut rasters = Rasters::apart();
        assert!(rasters.take(red()).is_none());
        let svg = "<svg>\n<rect x=\"0\"/>\n<text>\nmark\n</text>\n</svg>\n";
        let whole = rasters.into_svg(svg.to_owned()).unwrap();
        let places = ["<rect", "<image x=\"3\" y=\"4\" width=\"2\" height=\"1\"", "mark"].map(|part| whole.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{whole}");

        let data = whole
            .split("base64,")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap();
        let png = BASE64_STANDARD.decode(data).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, red().pixels);
    }

    #[test]
    fn where_the_backend_draws_images_it_gets_them() {
        let mut rasters = Rasters::drawn();
        assert_eq!(rasters.take(red()).map(|it| it.pixels), Some(red().pixels));
        assert_eq!(rasters.into_svg("<svg/>".into()).unwrap(), "<svg/>");
    }
}
