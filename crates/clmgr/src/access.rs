//! Who may read and write a buffer object.

use std::fmt;

use opencl_sys::cl_mem_flags;

/// The permitted uses of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Access {
    /// It may be read.
    ReadOnly,
    /// It may be written.
    WriteOnly,
    /// It may be read and written.
    #[default]
    ReadWrite,
}

impl Access {
    /// Whether reading is allowed.
    #[must_use]
    pub fn reads(self) -> bool {
        self != Self::WriteOnly
    }

    /// Whether writing is allowed.
    #[must_use]
    pub fn writes(self) -> bool {
        self != Self::ReadOnly
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::WriteOnly => "write-only",
            Self::ReadWrite => "read-write",
        })
    }
}

/// What kernels and the host may do with a buffer object, by its `cl_mem_flags`.
///
/// The default permits everything to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferAccess {
    /// What kernels may do: `CL_MEM_READ_ONLY`, `CL_MEM_WRITE_ONLY` or `CL_MEM_READ_WRITE`.
    pub device: Access,
    /// What the host may do: `CL_MEM_HOST_READ_ONLY`, `CL_MEM_HOST_WRITE_ONLY`, or none with
    /// `CL_MEM_HOST_NO_ACCESS`.
    pub host: Option<Access>,
}

impl Default for BufferAccess {
    fn default() -> Self {
        Self::device(Access::ReadWrite)
    }
}

impl BufferAccess {
    /// This access for kernels, and every access for the host.
    #[must_use]
    pub const fn device(device: Access) -> Self {
        Self {
            device,
            host: Some(Access::ReadWrite),
        }
    }

    /// Reads the flags of a buffer. Without any, everything is permitted, as OpenCL defines.
    #[must_use]
    pub fn from_flags(flags: cl_mem_flags) -> Self {
        let has = |flag| flags & flag != 0;
        let device = if has(opencl_sys::CL_MEM_READ_ONLY) {
            Access::ReadOnly
        } else if has(opencl_sys::CL_MEM_WRITE_ONLY) {
            Access::WriteOnly
        } else {
            Access::ReadWrite
        };
        let host = if has(opencl_sys::CL_MEM_HOST_NO_ACCESS) {
            None
        } else if has(opencl_sys::CL_MEM_HOST_READ_ONLY) {
            Some(Access::ReadOnly)
        } else if has(opencl_sys::CL_MEM_HOST_WRITE_ONLY) {
            Some(Access::WriteOnly)
        } else {
            Some(Access::ReadWrite)
        };
        Self { device, host }
    }

    /// The flags that create a buffer with this access.
    #[must_use]
    pub fn flags(self) -> cl_mem_flags {
        let device = match self.device {
            Access::ReadOnly => opencl_sys::CL_MEM_READ_ONLY,
            Access::WriteOnly => opencl_sys::CL_MEM_WRITE_ONLY,
            Access::ReadWrite => opencl_sys::CL_MEM_READ_WRITE,
        };
        let host = match self.host {
            None => opencl_sys::CL_MEM_HOST_NO_ACCESS,
            Some(Access::ReadOnly) => opencl_sys::CL_MEM_HOST_READ_ONLY,
            Some(Access::WriteOnly) => opencl_sys::CL_MEM_HOST_WRITE_ONLY,
            Some(Access::ReadWrite) => 0,
        };
        device | host
    }

    /// Whether the host may read.
    #[must_use]
    pub fn host_reads(self) -> bool {
        self.host.is_some_and(Access::reads)
    }

    /// Whether the host may write.
    #[must_use]
    pub fn host_writes(self) -> bool {
        self.host.is_some_and(Access::writes)
    }
}

impl fmt::Display for BufferAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for kernels, ", self.device)?;
        match self.host {
            Some(host) => write!(f, "{host} for the host"),
            None => f.write_str("no access for the host"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_access_survives_its_flags() {
        let all = [Access::ReadOnly, Access::WriteOnly, Access::ReadWrite];
        for device in all {
            for host in all.map(Some).into_iter().chain([None]) {
                let access = BufferAccess { device, host };
                assert_eq!(BufferAccess::from_flags(access.flags()), access);
            }
        }
    }

    #[test]
    fn a_buffer_without_flags_is_open_to_all() {
        assert_eq!(BufferAccess::from_flags(0), BufferAccess::default());
    }
}
