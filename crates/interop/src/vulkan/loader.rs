//! Finding Vulkan.

use std::sync::OnceLock;

use super::Error;

/// The loader that this process uses. It stays: drivers have threads of their own.
pub(super) fn entry() -> Result<&'static ash::Entry, Error> {
    static ENTRY: OnceLock<Result<ash::Entry, String>> = OnceLock::new();
    ENTRY
        .get_or_init(|| {
            let named = std::env::var_os("HIPCL_VULKAN").filter(|path| !path.is_empty());
            // SAFETY: a Vulkan loader, by its name or in its user's word.
            let loaded = unsafe {
                match &named {
                    Some(path) => ash::Entry::load_from(path),
                    None => ash::Entry::load(),
                }
            };
            loaded.map_err(|error| match named {
                Some(path) => format!("HIPCL_VULKAN={}: {error}", path.display()),
                None => error.to_string(),
            })
        })
        .as_ref()
        .map_err(|reason| Error::NoLoader { reason: reason.clone() })
}
