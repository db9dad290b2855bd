//! Reading `.npy` files of complex64 without trusting their headers.
//!
//! The array's shape is only the file's claim. Allocation grows with the bytes actually read: a header of 200 bytes
//! that claims terabytes costs nothing, whether the file is regular or a pipe.

use std::io::{Error, ErrorKind, Read};

use ndarray::{ArrayBase, Dimension, OwnedRepr, ShapeBuilder};
use ndarray_npy::{ReadDataError, ReadNpyError, ReadNpyExt as _, ReadableElement};
use py_literal::Value;

use crate::C32;

/// Magic, version and header length in its longer form.
const PREFIX: usize = 12;
/// NumPy also refuses a longer one (`numpy.load`, `max_header_size`).
const LONGEST_HEADER: usize = 10_000;
/// A shape in a dictionary has two; the fields of a record have four. The parser's work grows with each.
const DEEPEST: usize = 4;
/// Bytes read at once.
const PIECE: usize = 1 << 20;

/// An element as it is read.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Sample(C32);

/// Reads an array of complex64, of either byte order.
///
/// # Errors
/// As for [`ReadNpyExt::read_npy`](ndarray_npy::ReadNpyExt::read_npy); a header that is longer or more deeply nested
/// than any array's is [`ReadNpyError::Io`] of [`ErrorKind::InvalidData`].
pub(crate) fn read<D: Dimension>(mut file: impl Read) -> Result<ArrayBase<OwnedRepr<C32>, D>, ReadNpyError> {
    let header = header(&mut file)?;
    let array = ArrayBase::<OwnedRepr<Sample>, D>::read_npy(header.chain(file))?;
    let shape = array.raw_dim().set_f(!array.is_standard_layout());
    // In place: a vector whose elements keep their layout keeps its memory.
    let samples = array
        .into_raw_vec_and_offset()
        .0
        .into_iter()
        .map(|Sample(value)| value)
        .collect();
    ArrayBase::from_shape_vec(shape, samples).map_err(|error| Error::new(ErrorKind::InvalidData, error).into())
}

/// The bytes up to the data, if they can be an array's.
fn header(file: &mut impl Read) -> Result<std::io::Cursor<Vec<u8>>, ReadNpyError> {
    let invalid = |what: String| Error::new(ErrorKind::InvalidData, what);
    let mut bytes = vec![0; PREFIX];
    file.read_exact(&mut bytes)?;
    // The versions differ in the width of the length; the parser itself rejects what is not an array.
    let (begin, length) = match bytes[6] {
        1 => (10, usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))),
        _ => {
            let length = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
            (PREFIX, usize::try_from(length).unwrap_or(usize::MAX))
        }
    };
    if !bytes.starts_with(b"\x93NUMPY") {
        return Ok(std::io::Cursor::new(bytes));
    }
    if length > LONGEST_HEADER {
        let what = format!("a header of {length} bytes; the limit for an array is {LONGEST_HEADER}");
        return Err(invalid(what).into());
    }
    let missing = (begin + length).saturating_sub(PREFIX);
    let read = file.take(missing as u64).read_to_end(&mut bytes)?;
    if read < missing {
        return Err(Error::from(ErrorKind::UnexpectedEof).into());
    }
    check(&bytes[begin..]).map_err(invalid)?;
    Ok(std::io::Cursor::new(bytes))
}

/// Whether the parser is done with a header of this text soon: it tries every reading of nested brackets.
fn check(header: &[u8]) -> Result<(), String> {
    // Where a string with one of these ends is told by more than its next quote; no array's header has any.
    let has = |what: &[u8]| header.windows(what.len()).any(|part| part == what);
    if has(b"\\") || has(b"'''") || has(b"\"\"\"") {
        return Err("a header with an escape or a long string".into());
    }
    let (mut depth, mut string) = (0_usize, None);
    for byte in header {
        match (string, byte) {
            (Some(quote), byte) if byte == quote => string = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => string = Some(byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        if depth > DEEPEST {
            return Err(format!("a header nested deeper than {DEEPEST} levels"));
        }
    }
    Ok(())
}

impl ReadableElement for Sample {
    fn read_to_end_exact_vec<R: Read>(
        mut reader: R,
        descriptor: &Value,
        len: usize,
    ) -> Result<Vec<Self>, ReadDataError> {
        let number = match descriptor {
            Value::String(name) if name == "<c8" => f32::from_le_bytes,
            Value::String(name) if name == ">c8" => f32::from_be_bytes,
            other => return Err(ReadDataError::WrongDescriptor(other.clone())),
        };
        let mut samples = Vec::new();
        let mut piece = Vec::new();
        while samples.len() < len {
            let wanted = (len - samples.len()).saturating_mul(size_of::<C32>()).min(PIECE);
            piece.clear();
            (&mut reader).take(wanted as u64).read_to_end(&mut piece)?;
            if piece.len() < wanted {
                return Err(ReadDataError::MissingData);
            }
            let (numbers, _) = piece.as_chunks::<4>();
            let (pairs, _) = numbers.as_chunks::<2>();
            samples
                .try_reserve(pairs.len())
                .map_err(|error| Error::new(ErrorKind::OutOfMemory, error))?;
            samples.extend(pairs.iter().map(|&[re, im]| Self(C32::new(number(re), number(im)))));
        }
        // The rest is counted, not kept.
        match std::io::copy(&mut reader, &mut std::io::sink())? {
            0 => Ok(samples),
            extra => Err(ReadDataError::ExtraBytes(usize::try_from(extra).unwrap_or(usize::MAX))),
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Ix1, Ix2};

    use super::*;

    /// A file of format version 1 whose header is this text.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16 + 1).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.push(b'\n');
        bytes.extend(data);
        bytes
    }

    fn shaped(shape: &str) -> String {
        format!("{{'descr': '<c8', 'fortran_order': False, 'shape': {shape}, }}")
    }

    #[test]
    fn a_header_that_promises_more_than_there_is_costs_no_memory() {
        for shape in [
            "(68719476736,)",
            "(1152921504606846975,)",
            "(9223372036854775807,)",
            "(99999999999999999999999,)",
        ] {
            let bytes = file(&shaped(shape), &[0; 64]);
            assert!(read::<Ix1>(&*bytes).is_err(), "{shape}");
        }
        let bytes = file(&shaped("(262144, 262144)"), &[0; 64]);
        assert!(matches!(read::<Ix2>(&*bytes), Err(ReadNpyError::MissingData)));
        let bytes = file(&shaped("(0, 9223372036854775807)"), &[]);
        // Empty, or refused: not a panic.
        let _ = read::<Ix2>(&*bytes);
    }

    #[test]
    fn a_long_and_a_deep_header_are_refused_before_they_are_parsed() {
        let mut long = b"\x93NUMPY\x02\x00".to_vec();
        long.extend(u32::MAX.to_le_bytes());
        long.extend([b' '; 64]);
        let error = read::<Ix1>(&*long).unwrap_err().to_string();
        assert!(error.contains("4294967295 bytes"), "{error}");
        let deep = file(&"(".repeat(9_000), &[]);
        let error = read::<Ix1>(&*deep).unwrap_err().to_string();
        assert!(error.contains("nested"), "{error}");
    }

    #[test]
    fn a_header_or_data_that_ends_early_is_told_from_data_that_goes_on() {
        let good = file(&shaped("(3,)"), &[0; 24]);
        assert_eq!(read::<Ix1>(&*good).unwrap().len(), 3);
        for cut in 0..good.len() {
            assert!(read::<Ix1>(&good[..cut]).is_err(), "{cut}");
        }
        let long = [&good[..], b"xyz"].concat();
        assert!(matches!(read::<Ix1>(&*long), Err(ReadNpyError::ExtraBytes(3))));
    }

    #[test]
    fn brackets_in_strings_do_not_hide_nested_ones() {
        for nested in ["[')',", "[\")\",", "['''a''',", "['\\')',"] {
            let text = format!("{{'descr': {}", nested.repeat(40));
            let error = read::<Ix2>(&file(&text, &[])[..]).unwrap_err();
            assert!(
                matches!(&error, ReadNpyError::Io(error) if error.kind() == ErrorKind::InvalidData),
                "{error}"
            );
        }
    }
}
