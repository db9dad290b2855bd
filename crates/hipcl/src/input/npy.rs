//! NumPy arrays of complex64.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ndarray::Ix1;

use crate::{C32, Error, Result};

/// Reads a one-dimensional array; complex64 of either byte order.
pub(super) fn read(path: &Path) -> Result<Vec<C32>> {
    let file = File::open(path).map_err(|error| Error::read(path, error))?;
    if file.metadata().map_err(|error| Error::read(path, error))?.len() == 0 {
        return Err(Error::input(format!(
            "`{}` is empty; record again, or name another file",
            path.display()
        )));
    }
    let array = crate::npy::read::<Ix1>(BufReader::new(file)).map_err(|error| {
        Error::input(format!(
            "cannot use `{}` as .npy: {}; save a one-dimensional complex64 array with `numpy.save(f, x.astype(numpy.complex64))`",
            path.display(),
            crate::error::one_line(&error.to_string())
        ))
    })?;
    if array.is_empty() {
        return Err(Error::input(format!(
            "`{}` contains an empty array; record again, or name another file",
            path.display()
        )));
    }
    Ok(array.into_raw_vec_and_offset().0)
}
