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

use std::fs;
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
/// `format` defaults to what the name's ending says. `rate_hz` is needed unless the file states its own (SigMF); given, it wins.
///
/// # Errors
/// [`Error::Io`] if a file can't be read; [`Error::Input`] if it is empty, truncated, of another format than asked for, holds a NaN,
/// an infinity or nothing but one value, or if the rate is missing or not a positive number.
pub fn read(path: &Path, format: Option<Format>, rate_hz: Option<f64>) -> Result<Recording> {
    if let Some(rate) = rate_hz {
        check::rate(rate)?;
    }
    let (samples, stated_rate) = match format.or_else(|| Format::of(path)) {
        None => {
            return Err(Error::input(format!(
                "the name of `{}` does not tell its format: give --format {}",
                path.display(),
                Format::names()
            )));
        }
        Some(Format::Npy) => (npy::read(path)?, None),
        Some(Format::Sigmf) => {
            let recording = sigmf::read(path)?;
            (recording.samples, recording.rate_hz)
        }
        Some(Format::Cf32) => (raw_file(path, raw::Layout::Cf32)?, None),
        Some(Format::Ci16) => (raw_file(path, raw::Layout::Ci16)?, None),
        Some(Format::Ci8) => (raw_file(path, raw::Layout::Ci8)?, None),
        Some(Format::Cu8) => (raw_file(path, raw::Layout::Cu8)?, None),
    };
    let Some(rate_hz) = rate_hz.or(stated_rate) else {
        return Err(Error::input(format!(
            "`{}` does not state its sample rate: give --rate HZ",
            path.display()
        )));
    };
    check::samples(path, &samples)?;
    Ok(Recording { samples, rate_hz })
}

fn raw_file(path: &Path, layout: raw::Layout) -> Result<Vec<C32>> {
    raw::decode(
        path,
        &fs::read(path).map_err(|error| Error::read(path, error))?,
        layout,
    )
}
