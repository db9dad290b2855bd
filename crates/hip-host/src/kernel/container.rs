//! The code object: a shared library behind a header that names it, its length and its digest.
//!
//! HIP passes code objects as bare pointers, so the length must be in the bytes; the digest keeps a torn or foreign
//! file from being run.

use super::LoadError;

const MAGIC: [u8; 8] = *b"HIPCLHC1";
const HEADER: usize = MAGIC.len() + 8 + 32;

/// Wraps a shared library.
pub(crate) fn wrap(library: &[u8]) -> Vec<u8> {
    let mut code = Vec::with_capacity(HEADER + library.len());
    code.extend(MAGIC);
    code.extend((library.len() as u64).to_le_bytes());
    code.extend(blake3::hash(library).as_bytes());
    code.extend(library);
    code
}

/// The shared library in a code object.
pub(crate) fn unwrap(code: &[u8]) -> Result<&[u8], LoadError> {
    if !code.starts_with(&MAGIC) {
        return Err(foreign(|at| code.get(at).copied()));
    }
    let (header, rest) = code.split_at_checked(HEADER).ok_or(LoadError::Damaged)?;
    let library = rest.get(..length(header)?).ok_or(LoadError::Damaged)?;
    if blake3::hash(library).as_bytes() != &header[MAGIC.len() + 8..] {
        return Err(LoadError::Damaged);
    }
    Ok(library)
}

/// What code for AMD's processors begins with: an ELF file, a bundle of several, a compressed bundle.
const FOREIGN: [&[u8]; 3] = [b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"];

/// Whether the bytes begin so; no byte after the first difference is read.
fn begins_with(magic: &[u8], byte: impl Fn(usize) -> Option<u8>) -> bool {
    magic.iter().enumerate().all(|(at, wanted)| byte(at) == Some(*wanted))
}

/// Why bytes that are not this platform's are refused.
fn foreign(byte: impl Fn(usize) -> Option<u8> + Copy) -> LoadError {
    if FOREIGN.iter().any(|magic| begins_with(magic, byte)) {
        LoadError::OtherPlatform
    } else {
        LoadError::Damaged
    }
}

fn length(header: &[u8]) -> Result<usize, LoadError> {
    let bytes = header[MAGIC.len()..].first_chunk().ok_or(LoadError::Damaged)?;
    let length = usize::try_from(u64::from_le_bytes(*bytes)).map_err(|_| LoadError::Damaged)?;
    // Far above any kernel, and small enough that no address overflows.
    if length > 1 << 32 {
        Err(LoadError::Damaged)
    } else {
        Ok(length)
    }
}

/// As [`unwrap`], where only the address is known.
///
/// # Safety
/// `code` points to a code object of whatever platform, or to bytes that differ from every platform's first ones:
/// readable as far as they agree with one and, if they are this platform's magic, as far as the header says.
pub(crate) unsafe fn unwrap_at<'a>(code: *const u8) -> Result<&'a [u8], LoadError> {
    // SAFETY: read byte by byte up to the first that differs, which this function's contract allows.
    let byte = |at| Some(unsafe { *code.add(at) });
    if !begins_with(&MAGIC, byte) {
        return Err(foreign(byte));
    }
    // SAFETY: the magic says that a header follows, by this function's contract readable.
    let length = length(unsafe { std::slice::from_raw_parts(code, HEADER) })?;
    // SAFETY: the header says how much follows, by this function's contract readable.
    unwrap(unsafe { std::slice::from_raw_parts(code, HEADER + length) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_wrapped_comes_back_and_damage_shows() {
        let code = wrap(b"a library");
        assert_eq!(unwrap(&code).unwrap(), b"a library");
        for cut in 8..code.len() {
            assert!(unwrap(&code[..cut]).is_err(), "{cut}");
        }
        for flipped in 0..code.len() {
            let mut code = code.clone();
            code[flipped] ^= 1;
            assert!(unwrap(&code).is_err(), "{flipped}");
        }
    }
}
