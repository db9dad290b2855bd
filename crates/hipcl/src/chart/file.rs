//! A picture's file.

use std::path::Path;

use super::bars::Bars;
use super::draw::render;
use crate::output::OutputFile;
use crate::{Error, Result};

/// The format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Scalable Vector Graphics.
    Svg,
    /// Portable Network Graphics.
    Png,
}

impl Format {
    /// By the extension of a name, in either case.
    ///
    /// # Errors
    /// Another extension, or none.
    pub fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        match extension.to_str() {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            _ => Err(Error::input(format!(
                "cannot tell the format of `{}`; end the name in .svg or .png",
                path.display()
            ))),
        }
    }
}

/// A file for a picture, checked before the work and written after it, whole or not at all.
#[derive(Debug)]
pub struct PlotFile {
    format: Format,
    file: OutputFile,
}

impl PlotFile {
    /// Makes sure that the name says the format and that the file can be written.
    ///
    /// # Errors
    /// Otherwise.
    pub fn reserve(path: &Path) -> Result<Self> {
        let format = Format::of(path)?;
        Ok(Self {
            format,
            file: OutputFile::reserve(path)?,
        })
    }

    /// What its name asks for.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The file alone.
    pub fn file(&self) -> &OutputFile {
        &self.file
    }

    /// Draws a chart and writes it.
    ///
    /// # Errors
    /// Otherwise; nothing of it is left then.
    pub fn commit(self, bars: &Bars) -> Result<()> {
        let bytes = render(bars, self.format)?;
        self.write(&bytes)
    }

    /// Writes a picture that is drawn already, in [`format`](Self::format).
    ///
    /// # Errors
    /// The file cannot be written; nothing of it is left then.
    pub fn write(self, bytes: &[u8]) -> Result<()> {
        self.file.commit(bytes)
    }
}
