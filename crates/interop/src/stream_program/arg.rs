//! The arguments of an OpenCL kernel on a HIP stream.

use std::ffi::c_void;

use bytemuck::Pod;

use crate::{HipGuard, HipGuardMut};

/// One argument of a [`StreamKernel`](crate::StreamKernel): memory (a HIP slice, or the guard of a
/// [`Shared`](crate::Shared) buffer by [`HipGuard::arg`](crate::HipGuard::arg)), a value, or local memory.
#[derive(Clone, Copy, Debug)]
pub struct StreamArg<'a>(pub(super) Kind<'a>);

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    Memory {
        address: *const c_void,
        stream: &'a hip::Stream,
        is_writable: bool,
    },
    Bytes(&'a [u8]),
    Local(usize),
}

impl<'a> StreamArg<'a> {
    /// A value of a plain type: a number, a vector as an array (`[f32; 2]` for `float2`; three elements take the space
    /// of four), or a `#[repr(C)]` structure.
    #[must_use]
    pub fn scalar<T: Pod>(value: &'a T) -> Self {
        Self::bytes(bytemuck::bytes_of(value))
    }

    /// The bytes of a value.
    #[must_use]
    pub fn bytes(bytes: &'a [u8]) -> Self {
        Self(Kind::Bytes(bytes))
    }

    /// Local memory of this many bytes, for a `local` pointer.
    #[must_use]
    pub fn local(bytes: usize) -> Self {
        Self(Kind::Local(bytes))
    }

    /// Where the memory lies, if it is memory.
    pub(crate) fn address(&self) -> Option<usize> {
        match self.0 {
            Kind::Memory { address, .. } => Some(address.addr()),
            Kind::Bytes(_) | Kind::Local(_) => None,
        }
    }

    /// The same for an OpenCL queue, which checks number, kinds and sizes.
    pub(super) fn for_queue(&self) -> clmgr::Arg<'a> {
        match self.0 {
            Kind::Memory { address, .. } => clmgr::Arg::Svm(address),
            Kind::Bytes(bytes) => clmgr::Arg::Bytes(bytes),
            Kind::Local(bytes) => clmgr::Arg::Local(bytes),
        }
    }
}

/// For a `global const` or `constant` pointer.
impl<'a, T> From<hip::DeviceSlice<'a, T>> for StreamArg<'a> {
    fn from(slice: hip::DeviceSlice<'a, T>) -> Self {
        Self(Kind::Memory {
            address: slice.as_ptr().cast(),
            stream: slice.stream(),
            is_writable: false,
        })
    }
}

/// For a `global` pointer.
impl<'a, T> From<hip::DeviceSliceMut<'a, T>> for StreamArg<'a> {
    fn from(mut slice: hip::DeviceSliceMut<'a, T>) -> Self {
        Self(Kind::Memory {
            address: slice.as_mut_ptr().cast_const().cast(),
            stream: slice.stream(),
            is_writable: true,
        })
    }
}

impl<T: Pod> HipGuard<'_, T> {
    /// The argument for an OpenCL kernel on the guard's stream ([`StreamKernel`](crate::StreamKernel)).
    #[must_use]
    pub fn arg(&self) -> StreamArg<'_> {
        self.slice().into()
    }
}

impl<T: Pod> HipGuardMut<'_, T> {
    /// The argument for an OpenCL kernel on the guard's stream ([`StreamKernel`](crate::StreamKernel)).
    #[must_use]
    pub fn arg(&mut self) -> StreamArg<'_> {
        self.slice_mut().into()
    }
}
