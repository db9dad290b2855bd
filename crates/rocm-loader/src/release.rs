//! ROCm's release numbers, and the oldest one that is supported.

use core::fmt;

#[cfg(feature = "load")]
use crate::Loaded;

/// Major and minor number of a ROCm release, such as 6.4. Patch numbers change no interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The first number; the binary interface changes with it.
    pub major: u32,
    /// The second number; it only adds functions, with few exceptions.
    pub minor: u32,
}

impl Release {
    /// The release `major.minor`.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Whether this release comes before `other`.
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        self.major < other.major || self.major == other.major && self.minor < other.minor
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The oldest accepted release of a library.
#[cfg(feature = "load")]
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    /// Anything older is refused.
    pub oldest: Release,
    /// Queries an open library's release. A library that cannot tell is accepted: its functions are optional anyway.
    pub release: fn(&Loaded) -> Option<Release>,
    /// What older releases lack, for the error's text.
    pub lacking: &'static str,
}

#[cfg(test)]
mod tests {
    use super::Release;

    #[test]
    fn releases_are_ordered_as_numbers_and_not_as_texts() {
        let (old, new) = (Release::new(6, 4), Release::new(6, 10));
        assert!(old < new && old.is_before(new) && !new.is_before(old));
        assert!(new.is_before(Release::new(7, 0)) && !new.is_before(new));
        assert_eq!(new.to_string(), "6.10");
    }
}
