//! Access to a [`Shared`](crate::Shared) buffer for as long as a borrow lasts.
//!
//! Work may be enqueued while the guard lives; it need not have run when the guard goes. Leaking a
//! guard is harmless: the buffer noted the access when it granted it.

use crate::backing::Backing;
use crate::{Result, Shared};
use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;

/// Read access for OpenCL kernels on one queue.
#[must_use = "access ends with the guard"]
pub struct ClGuard<'a, T: Pod> {
    backing: &'a dyn Backing,
    buffer: PhantomData<&'a Shared<T>>,
}

impl<'a, T: Pod> ClGuard<'a, T> {
    pub(crate) fn new(backing: &'a dyn Backing) -> Self {
        Self {
            backing,
            buffer: PhantomData,
        }
    }

    /// The kernel argument. The kernel must not write through it.
    #[must_use]
    pub fn arg(&self) -> clmgr::Arg<'_> {
        self.backing.cl_arg()
    }

    /// The memory as a buffer object, for code that takes nothing else: the buffer itself, or a view
    /// of shared virtual memory. It must only be read.
    ///
    /// # Errors
    /// On a route where OpenCL has a bare pointer, or if the driver refuses the view.
    pub fn mem_arg(&self) -> Result<clmgr::Arg<'_>> {
        self.backing.mem_arg()
    }
}

/// Read and write access for OpenCL kernels on one queue.
#[must_use = "access ends with the guard"]
pub struct ClGuardMut<'a, T: Pod> {
    backing: &'a dyn Backing,
    buffer: PhantomData<&'a mut Shared<T>>,
}

impl<'a, T: Pod> ClGuardMut<'a, T> {
    pub(crate) fn new(backing: &'a dyn Backing) -> Self {
        Self {
            backing,
            buffer: PhantomData,
        }
    }

    /// The kernel argument.
    #[must_use]
    pub fn arg(&self) -> clmgr::Arg<'_> {
        self.backing.cl_arg()
    }

    /// The memory as a buffer object, for code that takes nothing else: the buffer itself, or a view
    /// of shared virtual memory.
    ///
    /// # Errors
    /// On a route where OpenCL has a bare pointer, or if the driver refuses the view.
    pub fn mem_arg(&self) -> Result<clmgr::Arg<'_>> {
        self.backing.mem_arg()
    }
}

impl<T: Pod> fmt::Debug for ClGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClGuard").field(&self.arg()).finish()
    }
}

impl<T: Pod> fmt::Debug for ClGuardMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClGuardMut").field(&self.arg()).finish()
    }
}

/// Read access for HIP work on one stream.
#[must_use = "access ends with the guard"]
#[derive(Debug)]
pub struct HipGuard<'a, T: Pod> {
    slice: hip::DeviceSlice<'a, T>,
    buffer: PhantomData<&'a Shared<T>>,
}

impl<'a, T: Pod> HipGuard<'a, T> {
    pub(crate) fn new(slice: hip::DeviceSlice<'a, T>) -> Self {
        Self {
            slice,
            buffer: PhantomData,
        }
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
    buffer: PhantomData<&'a mut Shared<T>>,
}

impl<'a, T: Pod> HipGuardMut<'a, T> {
    pub(crate) fn new(slice: hip::DeviceSliceMut<'a, T>) -> Self {
        Self {
            slice,
            buffer: PhantomData,
        }
    }

    /// The elements, to be read and written on the guard's stream.
    #[must_use]
    pub fn slice_mut(&mut self) -> hip::DeviceSliceMut<'_, T> {
        self.slice.reborrow()
    }
}
