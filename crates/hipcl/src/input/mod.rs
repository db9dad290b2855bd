//! Files of complex baseband samples.
//!
//! | format | a sample is | value |
//! |---|---|---|
//! | `cf32` | two little-endian IEEE 754 singles, I then Q | as stored |
//! | `ci16` | two little-endian 16-bit integers | over 32768 |
//! | `ci8` | two signed bytes | over 128 |
//! | `cu8` | two unsigned bytes, 127.5 is zero | over 127.5 |
//! | `npy` | one element of a one-dimensional NumPy array of complex64, either byte order | as stored |
//! | `sigmf` | what `core:datatype` says: `cf32_le`, `ci16_le`, `ci8`, `cu8` | as above |
//!
//! Whatever [`read`] returns is usable: there is at least one sample, all are finite, and they are not all the same.

mod check;
mod format;
mod npy;
mod raw;
mod sigmf;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

pub(crate) use check::{rate as check_rate, samples as check_signal};
pub use format::Format;

use crate::{C32, Error, Result};

/// Samples and how fast they were taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Complex baseband samples in the order of time.
    pub samples: Vec<C32>,
    /// Samples per second.
    pub rate_hz: f64,
}

/// Reads the whole of `path`.
///
/// `format` defaults to that of the file extension. `rate_hz` is needed unless the file states its own (SigMF), and
/// takes precedence.
///
/// # Errors
/// [`Error::Io`] if a file can't be read; [`Error::Input`] if it is empty, truncated, of another format than requested,
/// holds a NaN, an infinity or nothing but one value, or if the rate is missing or not a positive number.
pub fn read(path: &Path, format: Option<Format>, rate_hz: Option<f64>) -> Result<Recording> {
    read_first(path, format, rate_hz, |_| Ok(usize::MAX))
}

/// The text of a file that a person or this project wrote: metadata, a report. An endless device or pipe is refused
/// like any other overlong file.
pub(crate) fn text(path: &Path) -> Result<String> {
    const MOST: u64 = 64 << 20;
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MOST + 1).read_to_string(&mut text))
        .map_err(|error| Error::read(path, error))?;
    if text.len() as u64 > MOST {
        return Err(Error::input(format!(
            "`{}` has more than {} MiB of text; name another file",
            path.display(),
            MOST >> 20
        )));
    }
    Ok(text)
}

/// As [`read`], but takes no more samples from a raw file than `most` says for its rate: recordings can be larger than
/// the memory.
///
/// # Errors
/// As [`read`], and those of `most`.
pub fn read_first(
    path: &Path,
    format: Option<Format>,
    rate_hz: Option<f64>,
    most: impl FnOnce(f64) -> Result<usize>,
) -> Result<Recording> {
    if let Some(rate) = rate_hz {
        check::rate(rate)?;
    }
    let stated = |rate: Option<f64>| {
        rate.ok_or_else(|| {
            Error::input(format!(
                "`{}` does not state its sample rate; set --rate",
                path.display()
            ))
        })
    };
    let raw = |layout| sigmf::Metadata {
        data: path.to_path_buf(),
        layout,
        rate_hz: None,
    };
    let described = match format.or_else(|| Format::of(path)) {
        None => {
            // A file that is not there needs another name, not a format.
            path.metadata().map_err(|error| Error::read(path, error))?;
            return Err(Error::input(format!(
                "the name of `{}` does not indicate its format; set --format to {}",
                path.display(),
                Format::names()
            )));
        }
        Some(Format::Npy) => None,
        Some(Format::Sigmf) => Some(sigmf::read(path)?),
        Some(Format::Cf32) => Some(raw(raw::Layout::Cf32)),
        Some(Format::Ci16) => Some(raw(raw::Layout::Ci16)),
        Some(Format::Ci8) => Some(raw(raw::Layout::Ci8)),
        Some(Format::Cu8) => Some(raw(raw::Layout::Cu8)),
    };
    let (samples, rate_hz) = match described {
        None => (npy::read(path)?, stated(rate_hz)?),
        Some(file) => {
            let rate = stated(rate_hz.or(file.rate_hz))?;
            (raw::read(&file.data, file.layout, most(rate)?)?, rate)
        }
    };
    check::samples(path, &samples)?;
    Ok(Recording { samples, rate_hz })
}
