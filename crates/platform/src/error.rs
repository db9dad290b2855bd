use std::path::PathBuf;

use crate::{LibraryReport, LibraryState, Platform};

/// Why no platform could be chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The variable holds something that is not a platform.
    #[error("unknown platform `{name}` in {source_name}; use {}", names())]
    Unknown {
        /// The requested name.
        name: String,
        /// Where the request came from, such as `HIPCL_PLATFORM`.
        source_name: &'static str,
    },
    /// The platform exists but was not compiled into this program.
    #[error("platform {platform} is not in this build; {remedy}")]
    NotBuilt {
        /// The requested platform.
        platform: Platform,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The platform's main library could not be loaded.
    #[error("platform {platform} cannot be used: {cause}")]
    NoLibrary {
        /// The requested platform.
        platform: Platform,
        /// The loader's one-line reason with every path tried.
        cause: String,
    },
    /// The platform's library of collectives could not be loaded.
    #[error("platform {platform} has no collectives here: {cause}; {remedy}")]
    NoCollectives {
        /// The platform.
        platform: Platform,
        /// The loader's one-line reason with every path tried.
        cause: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The library is present but reports no usable device.
    #[error(
        "platform {platform} cannot be used: {cause}; {}{}",
        .platform.facts().no_device_remedy,
        or_host(*.asked_by)
    )]
    NoDevice {
        /// The requested platform.
        platform: Platform,
        /// The library's answer.
        cause: String,
        /// Where the request came from, such as `HIPCL_PLATFORM`; `None` if the platform was only
        /// tried.
        asked_by: Option<&'static str>,
        /// The platform's libraries, found or missing.
        libraries: Vec<LibraryReport>,
    },
    /// Two libraries of one set come from different installations.
    #[error("mixed ROCm releases: {first} and {second} are in different folders; set ROCM_PATH to one installation")]
    MixedReleases {
        /// The HIP library, which is loaded first.
        first: PathBuf,
        /// The library that does not match it.
        second: PathBuf,
        /// The libraries that were examined before the second one.
        libraries: Vec<LibraryReport>,
    },
}

impl Error {
    /// The platform that cannot be used; `None` for an unknown name.
    #[must_use]
    pub fn platform(&self) -> Option<Platform> {
        match self {
            Self::Unknown { .. } => None,
            Self::NotBuilt { platform, .. }
            | Self::NoLibrary { platform, .. }
            | Self::NoCollectives { platform, .. }
            | Self::NoDevice { platform, .. } => Some(*platform),
            Self::MixedReleases { .. } => Some(Platform::Amd),
        }
    }

    /// The platform's libraries as far as examined, found or missing.
    #[must_use]
    pub fn libraries(&self) -> Vec<LibraryReport> {
        match self {
            Self::Unknown { .. } | Self::NotBuilt { .. } | Self::NoCollectives { .. } => Vec::new(),
            Self::NoLibrary { cause, .. } => vec![LibraryReport {
                name: "HIP",
                state: LibraryState::Missing(cause.clone()),
                functions: 0,
                release: None,
            }],
            Self::NoDevice { libraries, .. } | Self::MixedReleases { libraries, .. } => libraries.clone(),
        }
    }
}

/// How to get the software device instead, where a platform was requested.
fn or_host(asked_by: Option<&str>) -> String {
    match asked_by {
        None => String::new(),
        Some("HIPCL_PLATFORM" | "HIP_PLATFORM") => ", or set HIPCL_PLATFORM=host".to_owned(),
        Some(option) if option.starts_with('-') => format!(", or use {option} host"),
        Some(_) => ", or select the platform host".to_owned(),
    }
}

/// Every platform's name, for a sentence.
fn names() -> String {
    let names: Vec<_> = Platform::ALL.iter().map(Platform::to_string).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
