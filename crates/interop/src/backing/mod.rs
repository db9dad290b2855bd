//! The memory behind a shared buffer, one file per route.
//!
//! A backing moves bytes and tells addresses; who may use it when is the business of
//! [`Shared`](crate::Shared), which waits before it calls here.

mod host_pinned;
mod staging;
mod svm_coarse;

use crate::core::Core;
use crate::uses::Access;
use crate::{Residency, Result, Route};
use bytemuck::Pod;
use host_pinned::HostPinned;
use staging::Staging;
use svm_coarse::SvmCoarse;

pub(crate) enum Backing<T: Pod> {
    SvmCoarse(SvmCoarse<T>),
    HostPinned(HostPinned<T>),
    Staging(Staging<T>),
}

impl<T: Pod> Backing<T> {
    pub(crate) fn allocate(core: &Core, route: Route, len: usize) -> Result<Self> {
        Ok(match route {
            Route::SvmCoarse => Self::SvmCoarse(SvmCoarse::allocate(core, len)?),
            Route::HostPinned => Self::HostPinned(HostPinned::allocate(core, len)?),
            Route::Staging => Self::Staging(Staging::allocate(core, len)?),
        })
    }

    pub(crate) fn route(&self) -> Route {
        match self {
            Self::SvmCoarse(_) => Route::SvmCoarse,
            Self::HostPinned(_) => Route::HostPinned,
            Self::Staging(_) => Route::Staging,
        }
    }

    pub(crate) fn residency(&self, core: &Core) -> Residency {
        core.hsa.as_ref().map_or(Residency::Unknown, |hsa| {
            hsa.residency(self.hip_ptr().cast())
        })
    }

    /// OpenCL's and HIP's address of the first byte, where both are known.
    pub(crate) fn addresses(&self) -> Option<(usize, usize)> {
        match self {
            Self::SvmCoarse(svm) => Some((svm.cl_ptr().addr(), svm.hip_ptr().addr())),
            Self::HostPinned(pinned) => Some((pinned.host_ptr().addr(), pinned.hip_ptr().addr())),
            Self::Staging(_) => None,
        }
    }

    pub(crate) fn cl_arg(&self) -> clmgr::Arg<'_> {
        match self {
            Self::SvmCoarse(svm) => svm.cl_arg(),
            Self::HostPinned(pinned) => pinned.cl_arg(),
            Self::Staging(staging) => staging.cl_arg(),
        }
    }

    pub(crate) fn hip_slice<'a>(
        &self,
        len: usize,
        stream: &'a hip::Stream,
    ) -> hip::DeviceSlice<'a, T> {
        let ptr = self.hip_ptr();
        // SAFETY: `len` elements that the device can read are allocated at the address; whoever
        // takes the slice was admitted as a reader on this stream, and the memory is freed only
        // after the stream has been waited for. HIP owns what it is told it owns.
        unsafe {
            match self {
                Self::SvmCoarse(_) => hip::DeviceSlice::from_raw_parts(ptr, len, stream),
                Self::HostPinned(_) | Self::Staging(_) => {
                    hip::DeviceSlice::from_hip_raw_parts(ptr, len, stream)
                }
            }
        }
    }

    pub(crate) fn hip_slice_mut<'a>(
        &self,
        len: usize,
        stream: &'a hip::Stream,
    ) -> hip::DeviceSliceMut<'a, T> {
        let ptr = self.hip_ptr();
        // SAFETY: as `hip_slice`; the taker was admitted as the only writer.
        unsafe {
            match self {
                Self::SvmCoarse(_) => hip::DeviceSliceMut::from_raw_parts(ptr, len, stream),
                Self::HostPinned(_) | Self::Staging(_) => {
                    hip::DeviceSliceMut::from_hip_raw_parts(ptr, len, stream)
                }
            }
        }
    }

    /// Makes the bytes current for OpenCL; no other user is at work.
    pub(crate) fn bring_to_cl(&self, core: &Core, access: Access) -> Result<()> {
        match self {
            Self::SvmCoarse(_) | Self::HostPinned(_) => Ok(()),
            Self::Staging(staging) => staging.bring_to_cl(core, access),
        }
    }

    /// Makes the bytes current for HIP; no other user is at work.
    pub(crate) fn bring_to_hip(&self, core: &Core, access: Access) -> Result<()> {
        match self {
            Self::SvmCoarse(_) | Self::HostPinned(_) => Ok(()),
            Self::Staging(staging) => staging.bring_to_hip(core, access),
        }
    }

    /// Complete when it returns.
    pub(crate) fn write(&mut self, core: &Core, data: &[T]) -> Result<()> {
        match self {
            Self::SvmCoarse(svm) => svm.write(core, data),
            Self::HostPinned(pinned) => pinned.write(core, data),
            Self::Staging(staging) => staging.write(core, data),
        }
    }

    /// Complete when it returns.
    pub(crate) fn read(&self, core: &Core, data: &mut [T]) -> Result<()> {
        match self {
            Self::SvmCoarse(svm) => svm.read(core, data),
            Self::HostPinned(pinned) => pinned.read(core, data),
            Self::Staging(staging) => staging.read(core, data),
        }
    }

    fn hip_ptr(&self) -> *mut T {
        match self {
            Self::SvmCoarse(svm) => svm.hip_ptr(),
            Self::HostPinned(pinned) => pinned.hip_ptr(),
            Self::Staging(staging) => staging.hip_ptr(),
        }
    }
}
