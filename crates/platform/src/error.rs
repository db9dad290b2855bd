use crate::Platform;
use std::path::PathBuf;

/// Why no platform could be chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The variable holds something that is not a platform.
    #[error("unknown platform `{name}` in {source_name}; use amd, nvidia or host")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Where it was asked for, such as `HIPCL_PLATFORM`.
        source_name: &'static str,
    },
    /// The platform exists but was not compiled into this program.
    #[error("platform {platform} is not in this build; {remedy}")]
    NotBuilt {
        /// The platform asked for.
        platform: Platform,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The platform's main library could not be loaded.
    #[error("platform {platform} can't be used: {cause}")]
    NoLibrary {
        /// The platform asked for.
        platform: Platform,
        /// The loader's one-line reason with every path tried.
        cause: String,
    },
    /// The library is there but reports no usable device.
    #[error(
        "platform {platform} can't be used: {cause}; {}, or set HIPCL_PLATFORM=host",
        devices_remedy(*.platform)
    )]
    NoDevice {
        /// The platform asked for.
        platform: Platform,
        /// What the library answered.
        cause: String,
    },
    /// Two libraries of one set come from different installations.
    #[error(
        "mixed ROCm releases: {first} and {second} lie in different folders; set ROCM_PATH to one installation"
    )]
    MixedReleases {
        /// The HIP library, which is loaded first.
        first: PathBuf,
        /// The library that does not match it.
        second: PathBuf,
    },
}

fn devices_remedy(platform: Platform) -> &'static str {
    match platform {
        Platform::Nvidia => "check nvidia-smi and CUDA_VISIBLE_DEVICES",
        Platform::Amd | Platform::Host => {
            "check /dev/kfd, the render group and ROCR_VISIBLE_DEVICES"
        }
    }
}
