//! The code object: a shared library behind a header that names it, its length and its digest.
//!
//! HIP passes code objects as bare pointers, so the length must be in the bytes; the digest keeps a torn or foreign file
//! from being run.

use crate::module::LoadError;

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
        return Err(LoadError::OtherPlatform);
    }
    let (header, rest) = code.split_at_checked(HEADER).ok_or(LoadError::Damaged)?;
    let library = rest.get(..length(header)?).ok_or(LoadError::Damaged)?;
    if blake3::hash(library).as_bytes() != &header[MAGIC.len() + 8..] {
        return Err(LoadError::Damaged);
    }
    Ok(library)
}

fn length(header: &[u8]) -> Result<usize, LoadError> {
    let bytes = header[MAGIC.len()..]
        .first_chunk()
        .ok_or(LoadError::Damaged)?;
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
/// `code` points to a code object of whatever platform: at least eight readable bytes and, if they are this platform's
/// magic, as many as the header says.
pub(crate) unsafe fn unwrap_at<'a>(code: *const u8) -> Result<&'a [u8], LoadError> {
    // SAFETY: eight bytes are readable by this function's contract.
    if unsafe { std::slice::from_raw_parts(code, MAGIC.len()) } != MAGIC {
        return Err(LoadError::OtherPlatform);
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
