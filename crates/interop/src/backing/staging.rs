//! One allocation for each API and a copy through pinned host memory at every change of side.
//!
//! This is what a program without sharing has to do, done properly, for comparison and for pairs
//! of devices on which nothing better works. Its copies always count as copies of the data set.

use crate::core::Core;
use crate::uses::Access;
use crate::{Category, Result};
use bytemuck::Pod;
use clmgr::RegularBuffer;
use parking_lot::Mutex;

pub(crate) struct Staging<T: Pod> {
    sides: Mutex<Sides<T>>,
    // Valid as long as the buffers above, which never move their memory.
    cl_mem: usize,
    hip_address: usize,
}

struct Sides<T: Pod> {
    cl: RegularBuffer<T>,
    hip: hip::DeviceBuffer<T>,
    between: hip::PinnedBuffer<T>,
    current: Current,
}

/// Which allocation holds what was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Current {
    Cl,
    Hip,
    Both,
}

impl<T: Pod> Staging<T> {
    pub(crate) fn allocate(core: &Core, len: usize) -> Result<Self> {
        let cl = RegularBuffer::new(&core.context, len)?;
        let mut hip = core.hip_device.alloc::<T>(len)?;
        let between = core.hip_device.alloc_pinned(len)?;
        let hip_address = hip.on_mut(&core.stream)?.as_mut_ptr().expose_provenance();
        let cl_mem = cl.raw().expose_provenance();
        let sides = Mutex::new(Sides {
            cl,
            hip,
            between,
            current: Current::Both,
        });
        Ok(Self {
            sides,
            cl_mem,
            hip_address,
        })
    }

    pub(crate) fn hip_ptr(&self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.hip_address)
    }

    pub(crate) fn cl_arg(&self) -> clmgr::Arg<'_> {
        clmgr::Arg::Mem(std::ptr::with_exposed_provenance_mut(self.cl_mem))
    }

    pub(crate) fn bring_to_cl(&self, core: &Core, access: Access) -> Result<()> {
        let sides = &mut *self.sides.lock();
        if sides.current == Current::Hip {
            let _scope = core.meter.scope(Category::DataSet);
            sides
                .hip
                .copy_to_slice(&core.stream, sides.between.host_mut()?)?;
            sides.cl.write(&core.queue, sides.between.host()?)?;
            sides.current = Current::Both;
        }
        if access == Access::Write {
            sides.current = Current::Cl;
        }
        Ok(())
    }

    pub(crate) fn bring_to_hip(&self, core: &Core, access: Access) -> Result<()> {
        let sides = &mut *self.sides.lock();
        if sides.current == Current::Cl {
            let _scope = core.meter.scope(Category::DataSet);
            sides.cl.read(&core.queue, sides.between.host_mut()?)?;
            sides
                .hip
                .copy_from_slice(&core.stream, sides.between.host()?)?;
            sides.current = Current::Both;
        }
        if access == Access::Write {
            sides.current = Current::Hip;
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, core: &Core, data: &[T]) -> Result<()> {
        let sides = self.sides.get_mut();
        sides.cl.write(&core.queue, data)?;
        sides.current = Current::Cl;
        Ok(())
    }

    pub(crate) fn read(&self, core: &Core, data: &mut [T]) -> Result<()> {
        let sides = self.sides.lock();
        match sides.current {
            Current::Hip => sides.hip.copy_to_slice(&core.stream, data)?,
            Current::Cl | Current::Both => sides.cl.read(&core.queue, data)?,
        }
        Ok(())
    }
}
