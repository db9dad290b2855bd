use std::fmt;

/// How work of one API is ordered after work of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Grade {
    /// The calling thread waits: `clFinish` before HIP work, `hipStreamSynchronize` before OpenCL
    /// work. The one way that every pair of drivers offers.
    Host,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
        })
    }
}
