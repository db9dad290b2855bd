//! Interleaved samples without a header. Byte order is little-endian on every machine.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::{C32, Error, Result};

/// How one raw sample is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Cf32,
    Ci16,
    Ci8,
    Cu8,
}

impl Layout {
    fn sample_bytes(self) -> usize {
        match self {
            Self::Cf32 => 8,
            Self::Ci16 => 4,
            Self::Ci8 | Self::Cu8 => 2,
        }
    }
}

/// The first `most` samples of `path`, or all if it holds fewer.
pub(super) fn read(path: &Path, layout: Layout, most: usize) -> Result<Vec<C32>> {
    let failed = |error| Error::read(path, error);
    let file = File::open(path).map_err(failed)?;
    let size = layout.sample_bytes() as u64;
    let most = (most as u64).saturating_mul(size);
    // a pipe has no length, its bytes are counted as they come
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    // A sparse file may be larger than any memory.
    bytes
        .try_reserve(usize::try_from(length.min(most)).unwrap_or(usize::MAX))
        .map_err(|error| failed(std::io::Error::new(std::io::ErrorKind::OutOfMemory, error)))?;
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    check_whole(path, (bytes.len() as u64).max(length), size)?;
    decode(path, &bytes, layout)
}

fn check_whole(path: &Path, length: u64, size: u64) -> Result<()> {
    if length == 0 {
        return Err(Error::input(format!(
            "`{}` is empty; record again, or name another file",
            path.display()
        )));
    }
    if !length.is_multiple_of(size) {
        return Err(Error::input(format!(
            "`{}` is truncated or has another format: {length} bytes are not a multiple of the {size} bytes of a sample; check --format, or copy the file again",
            path.display()
        )));
    }
    Ok(())
}

/// Turns bytes of `path`, whole samples, into samples.
fn decode(path: &Path, bytes: &[u8], layout: Layout) -> Result<Vec<C32>> {
    if layout != Layout::Cf32 && holds_floats(bytes) {
        return Err(Error::input(format!(
            "`{}` contains 32-bit floats, not integers; use --format cf32",
            path.display()
        )));
    }
    Ok(match layout {
        Layout::Cf32 => samples(bytes, |part: [u8; 4]| f32::from_le_bytes(part)),
        Layout::Ci16 => samples(bytes, |part: [u8; 2]| f32::from(i16::from_le_bytes(part)) / 32768.0),
        Layout::Ci8 => samples(bytes, |part: [u8; 1]| f32::from(i8::from_le_bytes(part)) / 128.0),
        Layout::Cu8 => samples(bytes, |part: [u8; 1]| (f32::from(part[0]) - 127.5) / 127.5),
    })
}

/// Whether the beginning of `bytes` can hardly be anything but floats: as such, all values have
/// ordinary magnitudes, while the exponents of other data lie anywhere. Samples of one or two bits
/// may pass for one magnitude, but do not have many values.
fn holds_floats(bytes: &[u8]) -> bool {
    const FEWEST: usize = 256;
    const MOST: usize = 16384;
    const VALUES: usize = 32;
    let (words, rest) = bytes.as_chunks::<4>();
    let words = &words[..words.len().min(MOST)];
    let ordinary = |word: &&[u8; 4]| (1e-15..1e12).contains(&f32::from_le_bytes(**word).abs());
    let values: HashSet<[u8; 2]> = words.iter().map(|word| [word[2], word[3]]).collect();
    // a receiver's silence is an exact 0 now and then
    let few = words.len() / 64;
    rest.is_empty()
        && words.len() >= FEWEST
        && values.len() >= VALUES
        && words.iter().filter(ordinary).count() + few >= words.len()
}

/// `bytes` as pairs of numbers of `N` bytes each; the length is a multiple of `2 N`.
fn samples<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<C32> {
    let (numbers, _) = bytes.as_chunks::<N>();
    let (pairs, _) = numbers.as_chunks::<2>();
    pairs.iter().map(|&[re, im]| C32::new(number(re), number(im))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: &[u8], layout: Layout) -> C32 {
        let samples = decode(Path::new("f"), bytes, layout).unwrap();
        assert_eq!(samples.len(), 1);
        samples[0]
    }

    #[test]
    fn real_part_comes_first_and_bytes_are_little_endian() {
        let mut bytes = 1.5f32.to_le_bytes().to_vec();
        bytes.extend((-0.25f32).to_le_bytes());
        assert_eq!(one(&bytes, Layout::Cf32), C32::new(1.5, -0.25));
        assert_eq!(one(&[0x00, 0x40, 0x00, 0x80], Layout::Ci16), C32::new(0.5, -1.0));
        assert_eq!(one(&[0x40, 0x80], Layout::Ci8), C32::new(0.5, -1.0));
    }

    #[test]
    fn no_more_is_read_than_asked_for_and_the_rest_still_has_to_be_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.ci8");
        std::fs::write(&path, [1, 2, 3, 4, 5, 6]).unwrap();
        let first = read(&path, Layout::Ci8, 2).unwrap();
        assert_eq!(first, read(&path, Layout::Ci8, usize::MAX).unwrap()[..2]);
        std::fs::write(&path, [1, 2, 3, 4, 5, 6, 7]).unwrap();
        let error = read(&path, Layout::Ci8, 2).unwrap_err().to_string();
        assert!(error.contains("7 bytes"), "{error}");
    }

    #[test]
    fn a_file_of_holes_larger_than_any_memory_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("holes.cf32");
        let file = File::create(&path).unwrap();
        // Where the file system has no such files there is nothing to refuse.
        if file.set_len(1 << 62).is_ok() {
            let error = read(&path, Layout::Cf32, usize::MAX).unwrap_err();
            assert!(error.to_string().contains("holes.cf32"), "{error}");
        }
    }

    #[test]
    fn unsigned_bytes_have_no_bias() {
        assert_eq!(one(&[0, 255], Layout::Cu8), C32::new(-1.0, 1.0));
        assert_eq!(one(&[127, 128], Layout::Cu8).re, -one(&[127, 128], Layout::Cu8).im);
    }
}
