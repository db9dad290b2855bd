//! Access to a [`Shared`](crate::Shared) buffer for as long as a borrow lasts.
//!
//! Work may be enqueued while the guard lives; it need not have run when the guard goes. Leaking a
//! guard is harmless: the buffer noted the access when it granted it.

use crate::Shared;
use bytemuck::Pod;
use std::marker::PhantomData;

/// Read access for OpenCL kernels on one queue.
#[must_use = "access ends with the guard"]
#[derive(Debug)]
pub struct ClGuard<'a, T: Pod> {
    arg: clmgr::Arg<'a>,
    buffer: PhantomData<&'a Shared<T>>,
}

impl<'a, T: Pod> ClGuard<'a, T> {
    pub(crate) fn new(arg: clmgr::Arg<'a>) -> Self {
        Self {
            arg,
            buffer: PhantomData,
        }
    }

    /// The kernel argument. The kernel must not write through it.
    #[must_use]
    pub fn arg(&self) -> clmgr::Arg<'_> {
        self.arg
    }
}

/// Read and write access for OpenCL kernels on one queue.
#[must_use = "access ends with the guard"]
#[derive(Debug)]
pub struct ClGuardMut<'a, T: Pod> {
    arg: clmgr::Arg<'a>,
    buffer: PhantomData<&'a mut Shared<T>>,
}

impl<'a, T: Pod> ClGuardMut<'a, T> {
    pub(crate) fn new(arg: clmgr::Arg<'a>) -> Self {
        Self {
            arg,
            buffer: PhantomData,
        }
    }

    /// The kernel argument.
    #[must_use]
    pub fn arg(&self) -> clmgr::Arg<'_> {
        self.arg
    }
}

/// Read access for HIP work on one stream.
#[must_use = "access ends with the guard"]
#[derive(Debug)]
pub struct HipGuard<'a, T: Pod> {
    slice: hip::DeviceSlice<'a, T>,
}

impl<'a, T: Pod> HipGuard<'a, T> {
    pub(crate) fn new(slice: hip::DeviceSlice<'a, T>) -> Self {
        Self { slice }
    }

    /// The elements, to be read on the guard's stream.
    #[must_use]
    pub fn slice(&self) -> hip::DeviceSlice<'_, T> {
        self.slice
    }
}

/// Read and write access for HIP work on one stream.
#[must_use = "access ends with the guard"]
#[derive(Debug)]
pub struct HipGuardMut<'a, T: Pod> {
    slice: hip::DeviceSliceMut<'a, T>,
}

impl<'a, T: Pod> HipGuardMut<'a, T> {
    pub(crate) fn new(slice: hip::DeviceSliceMut<'a, T>) -> Self {
        Self { slice }
    }

    /// The elements, to be read and written on the guard's stream.
    #[must_use]
    pub fn slice_mut(&mut self) -> hip::DeviceSliceMut<'_, T> {
        self.slice.reborrow()
    }
}
