use std::fmt;

/// Where an allocation's bytes live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Residency {
    /// Device memory.
    Vram,
    /// Host memory that the device reads over its link.
    HostPinned,
    /// Managed memory, which moves.
    Managed,
    /// No API reports it.
    Unknown,
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vram => "vram",
            Self::HostPinned => "host-pinned",
            Self::Managed => "managed",
            Self::Unknown => "unknown",
        })
    }
}
