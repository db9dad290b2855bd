//! Recordings: an .npy file of complex64, elements x samples.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ndarray::Ix2;
use ndarray_npy::ReadNpyError;

use crate::{C32, Error, Result};

/// A recording, element after element.
#[derive(Debug)]
pub(super) struct Samples {
    pub elements: usize,
    pub per_element: usize,
    pub samples: Vec<C32>,
}

/// Reads a recording of at most `most` samples, in either memory order.
pub(super) fn read(path: &Path, most: u64) -> Result<Samples> {
    let refuse = |cause: String| Err(Error::Input(format!("cannot use `{}`: {cause}", path.display())));
    let file = File::open(path).map_err(|source| Error::read(path, source))?;
    let metadata = file.metadata().map_err(|source| Error::read(path, source))?;
    if metadata.is_dir() {
        return Err(Error::read(path, std::io::ErrorKind::IsADirectory.into()));
    }
    if metadata.is_file() && metadata.len() == 0 {
        return refuse("the file is empty; name an .npy file of complex64".into());
    }
    if metadata.len() / size_of::<C32>() as u64 > most {
        return refuse(format!(
            "it has more than the {most} samples that fit in one buffer of the device; shorten it"
        ));
    }
    let array = match crate::npy::read::<Ix2>(BufReader::new(file)) {
        Ok(array) => array,
        Err(error) => return refuse(explain(&error)),
    };
    let (elements, per_element) = array.dim();
    if elements == 0 || per_element == 0 {
        return refuse(format!(
            "its shape is {elements} x {per_element}; it needs elements x samples, neither of them 0"
        ));
    }
    let samples = match array.is_standard_layout() {
        true => array.into_raw_vec_and_offset().0,
        // The columns lie one behind the other.
        false => {
            let mut samples = Vec::new();
            if samples.try_reserve_exact(array.len()).is_err() {
                return refuse(
                    "there is no memory to transpose it; save it in C order (numpy.ascontiguousarray)".into(),
                );
            }
            samples.extend(array.iter().copied());
            samples
        }
    };
    if let Some(at) = samples.iter().position(|x| !(x.re.is_finite() && x.im.is_finite())) {
        return refuse(format!(
            "element {}, sample {} is {}, not a finite number; clean the recording",
            at / per_element,
            at % per_element,
            samples[at]
        ));
    }
    // powers, and powers of powers on the way to an inverse, must stay within single precision
    let largest = samples
        .iter()
        .flat_map(|x| [x.re.abs(), x.im.abs()])
        .fold(0.0, f32::max);
    if largest > 0.0 && !(1e-9..=1e9).contains(&largest) {
        return refuse(format!(
            "its largest sample is {largest:e}; scale the recording to about 1"
        ));
    }
    Ok(Samples {
        elements,
        per_element,
        samples,
    })
}

fn explain(error: &ReadNpyError) -> String {
    match error {
        ReadNpyError::WrongNdim(_, found) => {
            format!("it has {found} dimensions; it needs two: elements x samples")
        }
        ReadNpyError::WrongDescriptor(found) => {
            format!("its element type is {found}; save it as complex64 ('<c8')")
        }
        ReadNpyError::MissingData => {
            "it is truncated: it has fewer samples than its header states; copy it again".into()
        }
        ReadNpyError::ExtraBytes(bytes) => {
            format!("{bytes} bytes follow the samples that its header states; copy it again")
        }
        ReadNpyError::ParseHeader(cause) => {
            format!("it is not an .npy file ({cause}); save it with numpy.save")
        }
        ReadNpyError::Io(cause) if cause.kind() == std::io::ErrorKind::UnexpectedEof => {
            "it is truncated in its header; copy it again".into()
        }
        other => format!("{other}; save it with numpy.save as complex64"),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2, ShapeBuilder as _};
    use ndarray_npy::write_npy;

    use super::*;

    const MOST: u64 = 1 << 20;

    fn value(element: usize, sample: usize) -> C32 {
        C32::new(element as f32, sample as f32)
    }

    #[test]
    fn both_memory_orders_give_the_same_samples() {
        let folder = tempfile::tempdir().unwrap();
        let rows = Array2::from_shape_fn((3, 5), |(e, t)| value(e, t));
        let columns = Array2::from_shape_fn((3, 5).f(), |(e, t)| value(e, t));
        assert!(!columns.is_standard_layout());
        for (name, array) in [("c.npy", rows), ("f.npy", columns)] {
            let path = folder.path().join(name);
            write_npy(&path, &array).unwrap();
            let read = read(&path, MOST).unwrap();
            assert_eq!((read.elements, read.per_element), (3, 5));
            assert_eq!(read.samples[7], value(1, 2), "{name}");
        }
    }

    #[test]
    fn every_unusable_file_is_named_with_its_cause_on_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let good = Array2::from_shape_fn((2, 8), |(e, t)| value(e, t));
        write_npy(path("good.npy"), &good).unwrap();
        let bytes = std::fs::read(path("good.npy")).unwrap();

        std::fs::write(path("empty.npy"), b"").unwrap();
        std::fs::write(path("text.npy"), b"not numpy at all, but long enough").unwrap();
        std::fs::write(path("head.npy"), &bytes[..20]).unwrap();
        std::fs::write(path("short.npy"), &bytes[..bytes.len() - 3]).unwrap();
        std::fs::write(path("long.npy"), [&bytes[..], b"xx"].concat()).unwrap();
        write_npy(path("line.npy"), &Array1::from_elem(4, C32::default())).unwrap();
        write_npy(path("real.npy"), &Array2::from_elem((2, 2), 1.0_f32)).unwrap();
        let mut holed = good.clone();
        holed[[1, 3]].im = f32::NAN;
        write_npy(path("nan.npy"), &holed).unwrap();
        write_npy(path("huge.npy"), &good.mapv(|x| x * 1e20)).unwrap();
        write_npy(path("tiny.npy"), &good.mapv(|x| x * 1e-20)).unwrap();
        write_npy(path("none.npy"), &Array2::<C32>::default((0, 4))).unwrap();

        for (name, cause) in [
            ("missing.npy", "cannot read"),
            (".", "cannot read"),
            ("empty.npy", "empty"),
            ("text.npy", "not an .npy file"),
            ("head.npy", "truncated"),
            ("short.npy", "truncated"),
            ("long.npy", "2 bytes follow"),
            ("line.npy", "1 dimensions"),
            ("real.npy", "complex64"),
            ("nan.npy", "element 1, sample 3"),
            ("none.npy", "0 x 4"),
            ("huge.npy", "scale the recording"),
            ("tiny.npy", "scale the recording"),
        ] {
            let message = read(&path(name), MOST).unwrap_err().to_string();
            assert!(message.contains(cause), "{name}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
        assert!(
            read(&path("good.npy"), 4)
                .unwrap_err()
                .to_string()
                .contains("more than the 4")
        );
    }
}
