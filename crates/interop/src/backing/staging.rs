//! One allocation for each API and a copy through pinned host memory at every change of side, of the
//! bytes that change it.
//!
//! This is what a program without sharing has to do, for comparison and for pairs of devices on which nothing better
//! works. Its copies always count as copies of the data set.

use std::ops::Range;

use parking_lot::Mutex;

use super::Backing;
use super::cl_object::ClObject;
use super::gpu_va::reveal;
use super::stretches::Stretches;
use crate::access::Span;
use crate::core::Core;
use crate::values::Access;
use crate::{Category, Error, Result, Route};

pub(crate) struct Staging {
    sides: Mutex<Sides>,
    bytes: usize,
    spans: Vec<Span>,
    // Valid as long as the buffers above, which never move their memory.
    cl_mem: usize,
    hip_address: usize,
}

struct Sides {
    cl: ClObject,
    hip: hip::DeviceBuffer<u8>,
    between: hip::PinnedBuffer<u8>,
    current: Stretches<Current>,
}

/// Which allocation holds what was written last to some bytes.
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
        let mut spans = vec![Span::at(hip_address, bytes), cl.span()];
        if core.platform.facts().one_address_space {
            // A kernel shows it to the program too, which may adopt the memory by it.
            let address = reveal(core, cl.arg(), cl.access().reads())?;
            spans.push(Span::at(address, bytes));
        }
        let sides = Mutex::new(Sides {
            cl,
            hip,
            between,
            current: Stretches::new(bytes, current),
        });
        Ok(Self {
            sides,
            bytes,
            spans,
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

    fn is_known_to_hip(&self) -> bool {
        true
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        clmgr::Arg::Mem(std::ptr::with_exposed_provenance_mut(self.cl_mem))
    }

    /// There are two allocations, and so no one address.
    fn cl_address(&self) -> Option<usize> {
        None
    }

    /// Both allocations: a guard shows the object of the one and the address of the other.
    fn spans(&self) -> Vec<Span> {
        self.spans.clone()
    }

    fn needs_host(&self) -> bool {
        true
    }

    /// Parts share no cache line, and each is a part of the buffer object: OpenCL does not define what
    /// copies of a buffer do while kernels use parts of it.
    fn check_part(&self, core: &Core, bytes: &Range<usize>) -> Result<()> {
        let device = core.context.device();
        let alignment = device.sub_buffer_alignment();
        let is_end = |end: usize| end.is_multiple_of(alignment) || end == self.bytes;
        if is_end(bytes.start) && is_end(bytes.end) {
            return Ok(());
        }
        Err(Error::PartGrid {
            route: Route::Staging,
            bytes: bytes.clone(),
            alignment,
            device: device.name().to_owned(),
        })
    }

    fn bring_to_cl(&self, core: &Core, _queue: &clmgr::Queue, access: Access, bytes: &Range<usize>) -> Result<()> {
        let sides = &mut *self.sides.lock();
        for stale in sides.held_only_by(Current::Hip, bytes) {
            sides.copy_to_cl(core, &stale)?;
        }
        if access == Access::Write {
            sides.current.set(bytes, Current::Cl);
        }
        Ok(())
    }

    fn bring_to_hip(&self, core: &Core, access: Access, bytes: &Range<usize>) -> Result<()> {
        let sides = &mut *self.sides.lock();
        for stale in sides.held_only_by(Current::Cl, bytes) {
            sides.copy_to_hip(core, &stale)?;
        }
        if access == Access::Write {
            sides.current.set(bytes, Current::Hip);
        }
        Ok(())
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        let alignment = core.context.device().sub_buffer_alignment();
        let (end, bytes) = (begin + data.len(), self.bytes);
        // What changes sides later does so as a part, which begins and ends on the grid.
        let (first, last) = (begin - begin % alignment, end.next_multiple_of(alignment).min(bytes));
        let sides = self.sides.get_mut();
        for margin in [first..begin, end..last] {
            for stale in sides.held_only_by(Current::Hip, &margin) {
                let on_grid = stale.start - stale.start % alignment..stale.end.next_multiple_of(alignment).min(bytes);
                sides.copy_to_cl(core, &on_grid)?;
            }
        }
        sides.cl.write(core, begin, data)?;
        sides.current.set(&(first..last), Current::Cl);
        Ok(())
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        let sides = self.sides.lock();
        for (stretch, current) in sides.current.within(&(begin..begin + data.len())) {
            let data = &mut data[stretch.start - begin..stretch.end - begin];
            match current {
                Current::Hip => sides.read_hip(core, &stretch, data)?,
                Current::Cl | Current::Both => sides.cl.read(core, stretch.start, data)?,
            }
        }
        Ok(())
    }
}

impl Sides {
    fn held_only_by(&self, side: Current, bytes: &Range<usize>) -> Vec<Range<usize>> {
        let stretches = self.current.within(bytes).into_iter();
        let held = stretches.filter(|(_, current)| *current == side);
        held.map(|(stretch, _)| stretch).collect()
    }

    fn copy_to_cl(&mut self, core: &Core, bytes: &Range<usize>) -> Result<()> {
        let _scope = core.meter.scope(Category::DataSet);
        let between = &mut self.between.host_mut()?[bytes.clone()];
        let stream = &core.stream;
        let from = self.hip.on(stream)?.slice(bytes.clone())?;
        from.copy_to_slice(between)?;
        self.cl.write_part(core, bytes.start, between)?;
        self.current.set(bytes, Current::Both);
        Ok(())
    }

    fn copy_to_hip(&mut self, core: &Core, bytes: &Range<usize>) -> Result<()> {
        let _scope = core.meter.scope(Category::DataSet);
        let between = &mut self.between.host_mut()?[bytes.clone()];
        self.cl.read_part(core, bytes.start, between)?;
        let mut to = self.hip.on_mut(&core.stream)?;
        to.slice_mut(bytes.clone())?.copy_from_slice(between)?;
        self.current.set(bytes, Current::Both);
        Ok(())
    }

    fn read_hip(&self, core: &Core, bytes: &Range<usize>, data: &mut [u8]) -> Result<()> {
        let from = self.hip.on(&core.stream)?.slice(bytes.clone())?;
        Ok(from.copy_to_slice(data)?)
    }
}
