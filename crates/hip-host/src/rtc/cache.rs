//! Compiled kernels on disk, by the digest of all that went into them.
//!
//! The cache only ever saves time: whatever goes wrong with it, the kernel is compiled.

use std::io::Write;
use std::path::PathBuf;

use super::container;

/// A digest of everything the compiled code depends on.
pub(crate) struct Key(blake3::Hash);

/// Builds a [`Key`]; each part's length is part of it, so that no two lists of parts look alike.
#[derive(Default)]
pub(crate) struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    pub(crate) fn part(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.0
            .update(&(bytes.len() as u64).to_le_bytes())
            .update(bytes);
        self
    }

    pub(crate) fn finish(&self) -> Key {
        Key(self.0.finalize())
    }
}

/// `HIPCL_CACHE_DIR`, else the user's cache folder.
fn folder() -> Option<PathBuf> {
    let base = match std::env::var_os("HIPCL_CACHE_DIR").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => directories::BaseDirs::new()?.cache_dir().join("hipcl"),
    };
    Some(base.join("host-kernels"))
}

fn file(key: &Key) -> Option<PathBuf> {
    Some(folder()?.join(format!("{}.hco", key.0.to_hex())))
}

/// The code kept under `key`, if it is there and whole.
pub(crate) fn get(key: &Key) -> Option<Vec<u8>> {
    let code = std::fs::read(file(key)?).ok()?;
    container::unwrap(&code).is_ok().then_some(code)
}

/// Keeps `code` under `key`, or does nothing.
pub(crate) fn put(key: &Key, code: &[u8]) {
    let write = || -> Option<()> {
        let path = file(key)?;
        let folder = path.parent()?;
        std::fs::create_dir_all(folder).ok()?;
        let mut temporary = tempfile::NamedTempFile::new_in(folder).ok()?;
        temporary.write_all(code).ok()?;
        // A rename is seen whole or not at all by whoever reads at the same time.
        temporary.persist(path).ok()?;
        Some(())
    };
    let _ = write();
}
