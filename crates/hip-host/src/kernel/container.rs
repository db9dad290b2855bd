//! The code object: a shared library behind a header that says its length, its digest, its maker, and by which symbol its
//! table of kernels is found.
//!
//! HIP passes code objects as bare pointers, so the length must be in the bytes; the digest keeps a torn or foreign
//! file from being run.

use kernel_cache::KeyBuilder;

use super::LoadError;

const MAGIC: [u8; 8] = *b"HIPCLHC2";
const DIGEST: usize = blake3::OUT_LEN;
/// Magic, length of the library, digest of all that follows it.
const START: usize = MAGIC.len() + 8 + DIGEST;
/// Then the maker and the digest that names the table; then the library.
const HEADER: usize = START + 2 * DIGEST;

/// A digest of all that decides what a source becomes on this machine.
pub(crate) type Maker = [u8; DIGEST];

/// Code as it is loaded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Code<'a> {
    pub(crate) library: &'a [u8],
    /// The symbol of its table of kernels.
    pub(crate) table: String,
}

/// The symbol of a library's table of kernels.
///
/// The library holds the caller's code too, which could define a symbol that it knows. It cannot know this one: it holds
/// the digest of all that the caller gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table([u8; DIGEST]);

impl Table {
    pub(crate) fn of<'a>(given: impl IntoIterator<Item = &'a String>) -> Self {
        Self(KeyBuilder::default().list(given).finish().into())
    }

    pub(crate) fn symbol(self) -> String {
        format!("__hipcl_kernels_{}", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// Wraps a shared library.
pub(crate) fn wrap(library: &[u8], table: Table, maker: &Maker) -> Vec<u8> {
    let mut code = Vec::with_capacity(HEADER + library.len());
    code.extend(MAGIC);
    code.extend((library.len() as u64).to_le_bytes());
    code.extend([0; DIGEST]);
    code.extend(maker);
    code.extend(table.0);
    code.extend(library);
    let digest = blake3::hash(&code[START..]);
    code[START - DIGEST..START].copy_from_slice(digest.as_bytes());
    code
}

/// The shared library in a code object that `maker` made.
pub(crate) fn unwrap<'a>(code: &'a [u8], maker: &Maker) -> Result<Code<'a>, LoadError> {
    if !code.starts_with(&MAGIC) {
        return Err(foreign(|at| code.get(at).copied()));
    }
    let header = code.get(..HEADER).ok_or(LoadError::Damaged)?;
    let code = code.get(..HEADER + length(header)?).ok_or(LoadError::Damaged)?;
    if blake3::hash(&code[START..]).as_bytes() != &header[START - DIGEST..START] {
        return Err(LoadError::Damaged);
    }
    if header[START..START + DIGEST] != *maker {
        return Err(LoadError::OtherMaker);
    }
    let table = header[START + DIGEST..].first_chunk().ok_or(LoadError::Damaged)?;
    Ok(Code {
        library: &code[HEADER..],
        table: Table(*table).symbol(),
    })
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
pub(crate) unsafe fn unwrap_at<'a>(code: *const u8, maker: &Maker) -> Result<Code<'a>, LoadError> {
    // SAFETY: read byte by byte up to the first that differs, which this function's contract allows.
    let byte = |at| Some(unsafe { *code.add(at) });
    if !begins_with(&MAGIC, byte) {
        return Err(foreign(byte));
    }
    // SAFETY: the magic says that a header follows, by this function's contract readable.
    let length = length(unsafe { std::slice::from_raw_parts(code, HEADER) })?;
    // SAFETY: the header says how much follows, by this function's contract readable.
    unwrap(unsafe { std::slice::from_raw_parts(code, HEADER + length) }, maker)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKER: Maker = [1; DIGEST];

    #[test]
    fn what_was_wrapped_comes_back_and_damage_shows() {
        let table = Table::of(&["a text".to_owned()]);
        let code = wrap(b"a library", table, &MAKER);
        let back = unwrap(&code, &MAKER).unwrap();
        assert_eq!((back.library, back.table), (&b"a library"[..], table.symbol()));
        for cut in 8..code.len() {
            assert!(unwrap(&code[..cut], &MAKER).is_err(), "{cut}");
        }
        for flipped in 0..code.len() {
            let mut code = code.clone();
            code[flipped] ^= 1;
            assert!(unwrap(&code, &MAKER).is_err(), "{flipped}");
        }
    }

    #[test]
    fn what_another_maker_made_is_refused() {
        let code = wrap(b"a library", Table::of(&["a text".to_owned()]), &MAKER);
        assert!(matches!(unwrap(&code, &[2; DIGEST]), Err(LoadError::OtherMaker)));
    }

    #[test]
    fn each_text_has_a_table_of_its_own_name() {
        let [a, b] = ["a", "b"].map(|text| Table::of(&[text.to_owned()]).symbol());
        assert_ne!(a, b);
    }
}
