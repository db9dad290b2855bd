use std::fmt;

/// The direction in which data cross from one API to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Written by an OpenCL kernel, read by a HIP kernel.
    OpenClToHip,
    /// Written by a HIP kernel, read by an OpenCL kernel.
    HipToOpenCl,
}

impl Direction {
    /// Both, in trial order.
    pub const BOTH: [Self; 2] = [Self::OpenClToHip, Self::HipToOpenCl];

    /// The API that writes, and the one that reads.
    pub(crate) fn ends(self) -> (&'static str, &'static str) {
        match self {
            Self::OpenClToHip => ("OpenCL", "HIP"),
            Self::HipToOpenCl => ("HIP", "OpenCL"),
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (writer, reader) = self.ends();
        write!(f, "{writer} to {reader}")
    }
}
