//! Compiled kernels on disk, by the digest of all that went into them.
//!
//! The cache only ever saves time: whatever goes wrong with it, the kernel is compiled.

use kernel_cache::{Key, Store};

use super::{container, maker};

/// Changes whenever the meaning of a key does.
const FORMAT: &[u8; 16] = b"hipcl-hosthco-03";

fn store() -> Option<Store> {
    let folder = kernel_cache::folder("host-kernels")?;
    Some(Store::new(&folder, FORMAT, "hco"))
}

/// The code stored under `key`, if it is present, complete and trusted.
pub(crate) fn get(key: Key) -> Option<Vec<u8>> {
    let code = store()?.read(key).ok()??;
    container::unwrap(&code, &maker()).is_ok().then_some(code)
}

/// Keeps `code` under `key`, or does nothing.
///
/// # Safety
/// The compiler made it, of what is in the key.
pub(crate) unsafe fn put(key: Key, code: &[u8]) {
    if let Some(store) = store() {
        // SAFETY: the caller's promise.
        let _ = unsafe { store.write(key, code) };
    }
}
