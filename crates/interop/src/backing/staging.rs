//! One allocation for each API and a copy through pinned host memory at every change of side.
//!
//! This is what a program without sharing has to do, done properly, for comparison and for pairs
//! of devices on which nothing better works. Its copies always count as copies of the data set.

use super::Backing;
use super::cl_object::ClObject;
use crate::alias::Span;
use crate::core::Core;
use crate::uses::Access;
use crate::{Category, Error, Result, Route};
use parking_lot::Mutex;

pub(crate) struct Staging {
    sides: Mutex<Sides>,
    bytes: usize,
    // Valid as long as the buffers above, which never move their memory.
    cl_mem: usize,
    hip_address: usize,
}

struct Sides {
    cl: ClObject,
    hip: hip::DeviceBuffer<u8>,
    between: hip::PinnedBuffer<u8>,
    current: Current,
}

/// Which allocation holds what was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Current {
    Cl,
    Hip,
    Both,
}

impl Staging {
    pub(crate) fn allocate(core: &Core, bytes: usize) -> Result<Self> {
        Self::new(core, ClObject::allocate(core, bytes)?, Current::Both)
    }

    /// HIP's copy of an object that other code has filled.
    pub(crate) fn over(core: &Core, cl: ClObject) -> Result<Self> {
        Self::new(core, cl, Current::Cl)
    }

    fn new(core: &Core, cl: ClObject, current: Current) -> Result<Self> {
        let bytes = cl.bytes();
        let mut hip = core.hip_device.alloc::<u8>(bytes)?;
        let between = core.hip_device.alloc_pinned(bytes)?;
        let hip_address = hip.on_mut(&core.stream)?.as_mut_ptr().expose_provenance();
        let cl_mem = match cl.arg() {
            clmgr::Arg::Mem(object) => object.expose_provenance(),
            _ => unreachable!("the argument of a buffer object is its handle"),
        };
        let sides = Mutex::new(Sides {
            cl,
            hip,
            between,
            current,
        });
        Ok(Self {
            sides,
            bytes,
            cl_mem,
            hip_address,
        })
    }
}

impl Backing for Staging {
    fn route(&self) -> Route {
        Route::Staging
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn hip_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.hip_address)
    }

    fn is_hips(&self) -> bool {
        true
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        clmgr::Arg::Mem(std::ptr::with_exposed_provenance_mut(self.cl_mem))
    }

    /// There are two allocations, and so no one address.
    fn cl_address(&self) -> Option<usize> {
        None
    }

    /// Bytes of this buffer alone.
    fn spans(&self) -> Vec<Span> {
        Vec::new()
    }

    fn needs_host(&self) -> bool {
        true
    }

    fn check_divisible(&self) -> Result<()> {
        Err(Error::Unsupported {
            route: Route::Staging,
            reason: "every change of side copies all of the memory, so that parts cannot be on both sides; use buffers of their own, or another route".into(),
        })
    }

    fn bring_to_cl(&self, core: &Core, _queue: &clmgr::Queue, access: Access) -> Result<()> {
        let sides = &mut *self.sides.lock();
        if sides.current == Current::Hip {
            let _scope = core.meter.scope(Category::DataSet);
            sides
                .hip
                .copy_to_slice(&core.stream, sides.between.host_mut()?)?;
            sides.cl.write(core, sides.between.host()?)?;
            sides.current = Current::Both;
        }
        if access == Access::Write {
            sides.current = Current::Cl;
        }
        Ok(())
    }

    fn bring_to_hip(&self, core: &Core, access: Access) -> Result<()> {
        let sides = &mut *self.sides.lock();
        if sides.current == Current::Cl {
            let _scope = core.meter.scope(Category::DataSet);
            sides.cl.read(core, sides.between.host_mut()?)?;
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

    fn write(&mut self, core: &Core, data: &[u8]) -> Result<()> {
        let sides = self.sides.get_mut();
        sides.cl.write(core, data)?;
        sides.current = Current::Cl;
        Ok(())
    }

    fn read(&self, core: &Core, data: &mut [u8]) -> Result<()> {
        let sides = self.sides.lock();
        match sides.current {
            Current::Hip => sides.hip.copy_to_slice(&core.stream, data)?,
            Current::Cl | Current::Both => sides.cl.read(core, data)?,
        }
        Ok(())
    }
}
