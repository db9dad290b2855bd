//! Where PoCL deviates from the specification.

use std::ffi::OsString;

use crate::device::Device;

/// The name of PoCL's platform.
pub(crate) const PLATFORM: &str = "Portable Computing Language";

/// Whether PoCL drives the device.
pub(crate) fn drives(device: &Device) -> bool {
    device.platform_name() == PLATFORM
}

/// Why a program's code is not asked for: PoCL answers only after it has compiled and opened every kernel of the program,
/// and to open one runs the constructors in it.
pub(crate) const TELLS_NO_CODE: &str =
    "PoCL would run the module's constructors to answer; it keeps compiled kernels in a cache of its own";

/// Why the platform with that name has no device, and what to do about it, if known.
pub(crate) fn without_device(platform: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    if platform != PLATFORM {
        return None;
    }
    // pocl: lib/CL/pocl_cache.c, pocl_cache_init_topdir
    let folder = ["POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"]
        .into_iter()
        .find_map(|name| Some((name, variable(name).filter(|value| !value.is_empty())?)));
    Some(match folder {
        Some((name, folder)) => format!(
            "PoCL reports no device if it cannot write its cache: check that this user may write to {} ({name}), or set POCL_CACHE_DIR to another folder",
            folder.display()
        ),
        None => "PoCL reports no device if it cannot write its cache, and none of POCL_CACHE_DIR, XDG_CACHE_HOME and HOME is set: set POCL_CACHE_DIR to a folder"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_cache_folder_is_reported_with_its_variable() {
        let nothing = without_device(PLATFORM, |_| None).unwrap();
        assert!(
            nothing.contains("none of") && nothing.contains("POCL_CACHE_DIR"),
            "{nothing}"
        );
        let home = |name: &str| (name == "HOME").then(|| OsString::from("/nonexistent"));
        let unwritable = without_device(PLATFORM, home).unwrap();
        assert!(unwritable.contains("/nonexistent (HOME)"), "{unwritable}");
        assert_eq!(without_device("Another OpenCL", home), None);
    }
}
