use ash::vk;

/// What can go wrong on Vulkan's side.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no loader.
    #[error("no Vulkan loader: {reason}; install one (Debian: libvulkan1) or set HIPCL_VULKAN to its path")]
    NoLoader {
        /// What the system said.
        reason: String,
    },
    /// No Vulkan device is the bridge's hardware.
    #[error("no Vulkan device matches {hip}: {reason}")]
    NoDevice {
        /// The HIP device.
        hip: String,
        /// What was examined, and the remedy.
        reason: String,
    },
    /// The driver lacks something that sharing needs.
    #[error("Vulkan device `{device}` {lacks}")]
    Lacks {
        /// Its name.
        device: String,
        /// What, and what it is needed for.
        lacks: String,
    },
    /// The driver refused a call.
    #[error("{call} failed: {code:?} ({})", .code.as_raw())]
    Call {
        /// With its key arguments.
        call: String,
        /// The answer.
        code: vk::Result,
    },
    /// What Vulkan wrote differs from what the other API read, or the other way round.
    #[error(
        "{mismatches} of {words} words written by {writer} were read differently by {reader}: the Vulkan device {device} is different hardware, or lays out its memory differently"
    )]
    Pattern {
        /// The Vulkan device.
        device: String,
        /// Who wrote.
        writer: &'static str,
        /// Who read.
        reader: &'static str,
        /// Words that differed.
        mismatches: usize,
        /// Words compared.
        words: usize,
    },
    /// The queue did not finish in time.
    #[error("the Vulkan queue did not finish within {limit:?}; check for earlier work that never ends")]
    Late {
        /// How long the wait was.
        limit: std::time::Duration,
    },
}

impl Error {
    /// Whether there is no Vulkan for this request, rather than one that failed.
    #[must_use]
    pub fn is_impossible(&self) -> bool {
        matches!(self, Self::NoLoader { .. } | Self::NoDevice { .. } | Self::Lacks { .. })
    }
}

/// For `map_err`: the call that failed.
pub(crate) fn call(what: impl Into<String>) -> impl FnOnce(vk::Result) -> Error {
    move |code| Error::Call {
        call: what.into(),
        code,
    }
}
