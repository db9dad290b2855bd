//! Each allocating call, and what can be found out about its memory.
//!
//! | file | what it holds |
//! |---|---|
//! | this one | the calls, and what is known of the memory of one |
//! | `memory.rs` | memory by one of the calls, and where it lies |
//! | `used.rs` | whether kernels of each API can use it, and how fast |

mod memory;
mod used;

use std::fmt;
use std::str::FromStr;

pub(crate) use memory::Memory;
pub(crate) use used::use_by;

use crate::Residency;

/// A call that allocates device-accessible memory.
///
/// A [`Route`](crate::Route) is a way to share memory; an `Allocation` is where programs that know nothing of routes
/// get theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Allocation {
    /// `clCreateBuffer` without host flags.
    ClBuffer,
    /// `clCreateBuffer(CL_MEM_ALLOC_HOST_PTR)`.
    ClAllocHostPtr,
    /// `clSVMAlloc` without granularity flags.
    SvmCoarse,
    /// `clSVMAlloc(CL_MEM_SVM_FINE_GRAIN_BUFFER)`.
    SvmFine,
    /// `hipMalloc`.
    HipMalloc,
    /// `hipHostMalloc`.
    HipHostMalloc,
    /// `hipMallocManaged`.
    HipMallocManaged,
}

impl Allocation {
    /// Every call, OpenCL's first.
    pub const ALL: [Self; 7] = [
        Self::ClBuffer,
        Self::ClAllocHostPtr,
        Self::SvmCoarse,
        Self::SvmFine,
        Self::HipMalloc,
        Self::HipHostMalloc,
        Self::HipMallocManaged,
    ];

    /// Whether the call is one of HIP; otherwise it is one of OpenCL.
    #[must_use]
    pub fn is_hip_call(self) -> bool {
        matches!(self, Self::HipMalloc | Self::HipHostMalloc | Self::HipMallocManaged)
    }

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClBuffer => "cl-buffer",
            Self::ClAllocHostPtr => "cl-alloc-host-ptr",
            Self::SvmCoarse => "cl-svm-coarse",
            Self::SvmFine => "cl-svm-fine",
            Self::HipMalloc => "hip-malloc",
            Self::HipHostMalloc => "hip-host-malloc",
            Self::HipMallocManaged => "hip-malloc-managed",
        }
    }

    /// The call as a programmer knows it.
    #[must_use]
    pub fn call(self) -> &'static str {
        match self {
            Self::ClBuffer => "clCreateBuffer",
            Self::ClAllocHostPtr => "clCreateBuffer, ALLOC_HOST_PTR",
            Self::SvmCoarse => "clSVMAlloc, coarse",
            Self::SvmFine => "clSVMAlloc, fine",
            Self::HipMalloc => "hipMalloc",
            Self::HipHostMalloc => "hipHostMalloc",
            Self::HipMallocManaged => "hipMallocManaged",
        }
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name is not an allocation's.
#[derive(Debug, thiserror::Error)]
#[error("unknown allocation `{name}`; use {}", Allocation::ALL.map(Allocation::name).join(", "))]
pub struct UnknownAllocation {
    name: String,
}

impl FromStr for Allocation {
    type Err = UnknownAllocation;

    fn from_str(name: &str) -> Result<Self, UnknownAllocation> {
        Self::ALL
            .into_iter()
            .find(|allocation| allocation.name() == name)
            .ok_or_else(|| UnknownAllocation { name: name.to_owned() })
    }
}

/// Which source says where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Witness {
    /// The HSA runtime, queried by the memory's address.
    Hsa,
    /// HIP, queried by the address of memory that it allocated itself.
    Hip,
    /// The software device, which repeats what the program registered about OpenCL memory.
    Registered,
    /// No API knows.
    None,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hsa => "hsa_amd_pointer_info",
            Self::Hip => "hipPointerGetAttributes",
            Self::Registered => "by definition",
            Self::None => "no API",
        })
    }
}

/// Where memory lies, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// Where.
    pub residency: Residency,
    /// Who says so.
    pub witness: Witness,
}

#[cfg(test)]
mod tests {
    use super::Allocation;

    #[test]
    fn every_allocation_is_found_by_the_name_it_prints() {
        for allocation in Allocation::ALL {
            let found = allocation.to_string().parse::<Allocation>();
            assert_eq!(found.expect("own name"), allocation);
        }
        let error = "malloc".parse::<Allocation>().expect_err("none").to_string();
        assert!(
            error.contains("`malloc`") && error.contains("hip-host-malloc"),
            "{error}"
        );
    }
}
