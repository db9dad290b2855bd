//! Exportable HIP memory that OpenCL imports by file descriptor.
//!
//! The way where the two APIs are two contexts on the GPU: the driver maps the same pages into
//! both. OpenCL must take such memory over before its commands use it, and hand it back before the
//! other side does (`cl_khr_external_memory`, acquire and release).

use std::any::Any;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use clmgr::{BufferAccess, Event, HandleKind, ImportedBuffer, Queue};
use parking_lot::Mutex;

use super::{Backing, Exported, Outgoing, PeerAccess, outgoing};
use crate::access::{Space, Span};
use crate::core::Core;
use crate::values::{Access, Carrier};
use crate::{Error, Residency, Result, Route};

pub(crate) struct ExternalFd {
    // Dropped before the memory that it imports.
    cl: Mutex<ClSide>,
    cl_mem: usize,
    // In the order of the drops.
    _memory: hip::DeviceBuffer<u8>,
    _import: Option<hip::ExternalMemory>,
    _owner: Option<Box<dyn Any + Send + Sync>>,
    /// HIP allocated it, rather than imported it.
    is_allocated: bool,
    address: usize,
    bytes: usize,
    /// By which other imports of memory of other code are known.
    file: Option<Span>,
    /// `None` for memory of another process, which alone may share it.
    exporter: Option<hip::Exporter>,
    /// Of HIP's virtual memory; `None` for that of other APIs, which HIP maps for one device.
    access: Option<hip::VirtualAccess>,
}

struct ClSide {
    import: ImportedBuffer<u8>,
    /// The queue that took the memory over.
    held_by: Option<Queue>,
    /// Other queues that received it since.
    others: Vec<Queue>,
    /// Ends with the last hand-back of the memory, unless the next side is known to wait for it.
    handed_back: Option<Event>,
    /// Since it was taken over.
    written: bool,
    /// Queues have received it for reading since, and may get more work under those guards.
    has_readers: bool,
}

impl ClSide {
    /// Enqueues the release, after all OpenCL work.
    fn hand_back(&mut self) -> Result<()> {
        if let Some(holder) = &self.held_by {
            for other in &self.others {
                holder.wait_for_queue(other)?;
            }
        }
        if let Some(event) = self.import.hand_over()? {
            self.handed_back = Some(event);
        }
        Ok(())
    }

    /// The memory is handed back, for HIP to use it so. What HIP only reads is taken over again for the guards of
    /// OpenCL readers: both sides may read at once what neither has written since.
    ///
    /// A reader on another thread may launch between the two commands, and its kernel then reads memory that is handed
    /// back. OpenCL leaves that undefined; both sides only read, and no driver is known to mind.
    fn was_handed_back(&mut self, access: Access) -> Result<()> {
        let (holder, others) = (self.held_by.take(), std::mem::take(&mut self.others));
        self.written = false;
        self.has_readers &= access == Access::Read;
        if let Some(holder) = holder
            && self.has_readers
        {
            self.import.take_over(&holder)?;
            self.handed_back = None;
            for other in &others {
                other.wait_for_queue(&holder)?;
            }
            (self.held_by, self.others) = (Some(holder), others);
        }
        Ok(())
    }
}

impl ExternalFd {
    pub(crate) fn allocate(core: &Core, bytes: usize) -> Result<Self> {
        // Before anything is allocated: a full device is not the reason where OpenCL imports nothing.
        let device = core.context.device();
        device.check_memory_import(HandleKind::OPAQUE_FD)?;
        check_limit(core, bytes)?;
        let memory = core.hip_device.virtual_memory(bytes)?;
        // SAFETY: only OpenCL's import sees it, whose uses the record of uses orders.
        let fd = unsafe { memory.export() }?;
        let exporter = Some(memory.exporter());
        // SAFETY: the descriptor is the memory's.
        unsafe { Self::of_hip(core, memory, fd, exporter, bytes) }
    }

    /// HIP's virtual memory of another process.
    ///
    /// # Safety
    /// As [`hip::Device::import_virtual_memory`].
    pub(crate) unsafe fn import(core: &Core, fd: OwnedFd, bytes: usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        let memory = unsafe { core.hip_device.import_virtual_memory(fd.as_fd(), bytes) }?;
        // SAFETY: the descriptor is the memory's.
        unsafe { Self::of_hip(core, memory, fd, None, bytes) }
    }

    /// # Safety
    /// `fd` is of `memory`, which has at least `bytes` bytes.
    unsafe fn of_hip(
        core: &Core,
        memory: hip::VirtualMemory,
        fd: OwnedFd,
        exporter: Option<hip::Exporter>,
        bytes: usize,
    ) -> Result<Self> {
        // SAFETY: the descriptor is that of memory of at least as many bytes.
        let cl = unsafe { import_to_cl(core, fd, bytes) }?;
        Ok(Self {
            exporter,
            access: Some(memory.access()),
            ..Self::over(core, cl, memory.into_buffer::<u8>()?, bytes)?
        })
    }

    /// Memory of other code, from its first byte on. An opaque descriptor does not say whose it is: it is HIP virtual
    /// memory, or another API's.
    ///
    /// # Safety
    /// The memory has `bytes` bytes.
    pub(crate) unsafe fn adopted(core: &Core, fd: OwnedFd, bytes: usize) -> Result<Self> {
        let route = Route::ExternalFd;
        let file = Space::of_file(fd.as_fd()).map(|space| Span { space, range: 0..bytes });
        // SAFETY: the caller's promise, here and below.
        let import = match unsafe { Self::import(core, duplicate(&fd)?, bytes) } {
            Ok(import) => import,
            // OpenCL's part would be refused the other way too.
            Err(refused @ Error::Cl(_)) => return Err(refused),
            Err(as_hips) => {
                let memory = Exported {
                    fd,
                    bytes,
                    route,
                    dedicated: false,
                    owner: None,
                };
                // SAFETY: see above.
                unsafe { Self::of(core, memory, bytes) }.map_err(|as_others| Error::Failed {
                    tried: vec![
                        (route, format!("as HIP virtual memory: {as_hips}")),
                        (route, format!("as memory of another API: {as_others}")),
                    ],
                })?
            }
        };
        Ok(Self {
            is_allocated: false,
            file,
            ..import
        })
    }

    /// The first `bytes` bytes of memory that neither API allocated, imported by both.
    ///
    /// # Safety
    /// The memory has as many bytes as it says, which are no fewer.
    pub(crate) unsafe fn of(core: &Core, memory: Exported, bytes: usize) -> Result<Self> {
        let fd = duplicate(&memory.fd)?;
        // SAFETY: the caller's promise, here and below.
        let import = unsafe { memory.import_to_hip(core) }?;
        // SAFETY: the backing's user is admitted before it uses the memory.
        let buffer = unsafe { import.buffer::<u8>(0, bytes) }?;
        // SAFETY: see above.
        let cl = unsafe { import_to_cl(core, fd, bytes) }?;
        Ok(Self {
            _import: Some(import),
            _owner: memory.owner,
            is_allocated: false,
            ..Self::over(core, cl, buffer, bytes)?
        })
    }

    fn over(core: &Core, import: ImportedBuffer<u8>, mut memory: hip::DeviceBuffer<u8>, bytes: usize) -> Result<Self> {
        let cl_mem = import.raw().expose_provenance();
        let address = memory.on_mut(&core.stream)?.as_mut_ptr().expose_provenance();
        Ok(Self {
            cl: Mutex::new(ClSide {
                import,
                held_by: None,
                others: Vec::new(),
                handed_back: None,
                written: false,
                has_readers: false,
            }),
            cl_mem,
            _memory: memory,
            _import: None,
            _owner: None,
            is_allocated: true,
            address,
            bytes,
            file: None,
            exporter: None,
            access: None,
        })
    }
}

fn duplicate(fd: &OwnedFd) -> Result<OwnedFd> {
    fd.try_clone().map_err(|error| Error::Unsupported {
        route: Route::ExternalFd,
        reason: format!("cannot duplicate the file descriptor: {error}"),
    })
}

/// # Safety
/// The memory has as many bytes.
unsafe fn import_to_cl(core: &Core, fd: OwnedFd, bytes: usize) -> Result<ImportedBuffer<u8>> {
    check_limit(core, bytes)?;
    let (kind, access) = (HandleKind::OPAQUE_FD, BufferAccess::default());
    // SAFETY: the caller's promise.
    Ok(unsafe { ImportedBuffer::import(&core.context, kind, fd, bytes, access) }?)
}

/// Refuses memory whose import would end the process.
fn check_limit(core: &Core, bytes: usize) -> Result<()> {
    check_below((core.platform.facts().import_limit)(), bytes)
}

fn check_below(limit: Option<usize>, bytes: usize) -> Result<()> {
    match limit {
        Some(limit) if bytes > limit => Err(Error::Unsupported {
            route: Route::ExternalFd,
            reason: format!(
                "OpenCL's driver ends the process when it imports more than {limit} bytes on this machine, and {bytes} \
                 were requested; divide the data among several buffers"
            ),
        }),
        _ => Ok(()),
    }
}

impl Backing for ExternalFd {
    fn route(&self) -> Route {
        Route::ExternalFd
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn hip_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    fn is_known_to_hip(&self) -> bool {
        true
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        clmgr::Arg::Mem(std::ptr::with_exposed_provenance_mut(self.cl_mem))
    }

    fn cl_address(&self) -> Option<usize> {
        None
    }

    fn spans(&self) -> Vec<Span> {
        let address = Span::at(self.address, self.bytes);
        let object = std::ptr::with_exposed_provenance_mut(self.cl_mem);
        let object = Span::of_object(object, 0..self.bytes);
        [address, object].into_iter().chain(self.file.clone()).collect()
    }

    /// HIP allocates such memory on the device and nowhere else (`hipMemLocationTypeDevice`). For memory that others
    /// allocated this is unknown.
    fn residency(&self, _core: &Core) -> Residency {
        match self.is_allocated {
            true => Residency::Vram,
            false => Residency::Unknown,
        }
    }

    /// The release must have ended before HIP starts.
    fn needs_host(&self) -> bool {
        true
    }

    /// Memory that OpenCL has acquired must not be accessed outside it, none of it (OpenCL,
    /// `clEnqueueReleaseExternalMemObjectsKHR`).
    fn is_handed_whole(&self) -> bool {
        true
    }

    fn bring_to_cl(&self, _core: &Core, queue: &Queue, access: Access, _bytes: &Range<usize>) -> Result<()> {
        let side = &mut *self.cl.lock();
        match &side.held_by {
            None => {
                if let Some(event) = &side.handed_back {
                    queue.wait_for(event)?;
                    side.handed_back = None;
                }
                side.import.take_over(queue)?;
                side.held_by = Some(queue.clone());
            }
            Some(other) if other == queue => {}
            // The memory is the context's; this queue comes after the one that took it over.
            Some(other) => {
                queue.wait_for_queue(other)?;
                if !side.others.contains(queue) {
                    side.others.push(queue.clone());
                }
            }
        }
        match access {
            Access::Read => side.has_readers = true,
            Access::Write => (side.written, side.has_readers) = (true, false),
        }
        Ok(())
    }

    fn leaves_by_queue(&self) -> bool {
        true
    }

    fn leave_cl(&self, access: Access) -> Result<()> {
        let side = &mut *self.cl.lock();
        // Both sides may read at once what neither has written since.
        if !side.written && access == Access::Read {
            return Ok(());
        }
        side.hand_back()?;
        if let Some(event) = &side.handed_back {
            // The hand-off that follows may be from any queue that had the memory.
            for other in &side.others {
                other.wait_for(event)?;
            }
        }
        side.was_handed_back(access)
    }

    fn bring_to_hip(&self, _core: &Core, access: Access, _bytes: &Range<usize>) -> Result<()> {
        let side = &mut *self.cl.lock();
        if side.written || access == Access::Write {
            side.hand_back()?;
            if let Some(event) = &side.handed_back {
                event.wait()?;
                side.handed_back = None;
            }
            side.was_handed_back(access)?;
        }
        Ok(())
    }

    fn peer_access(&self) -> PeerAccess<'_> {
        self.access.as_ref().map_or(PeerAccess::None, PeerAccess::Mapped)
    }

    fn outgoing(&self, _core: &Core, carrier: Carrier) -> Result<Outgoing> {
        match (carrier, &self.exporter) {
            (Carrier::HipFd, Some(exporter)) => Outgoing::hip_fd(exporter),
            (Carrier::HipFd, None) => Err(outgoing::refused(
                carrier,
                "the memory belongs to other code; only its owner may share it".into(),
            )),
            _ => Err(outgoing::refused(
                carrier,
                "HIP virtual memory can be shared only by its own file descriptor".into(),
            )),
        }
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        let side = self.cl.get_mut();
        side.hand_back()?;
        // A guard takes over anew and hands back at its end.
        let acquired = side.import.acquire(&core.queue);
        let written = acquired.and_then(|mut memory| memory.write_at(&core.queue, begin, data));
        side.was_handed_back(Access::Write)?;
        written?;
        Ok(core.queue.drain()?)
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        let side = &mut *self.cl.lock();
        side.hand_back()?;
        let acquired = side.import.acquire(&core.queue);
        let read = acquired.and_then(|memory| memory.read_at(&core.queue, begin, data));
        side.was_handed_back(Access::Read)?;
        read?;
        Ok(core.queue.drain()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_whose_import_would_end_the_process_is_refused() {
        for (limit, bytes, taken) in [
            (None, usize::MAX, true),
            (Some(511), 511, true),
            (Some(511), 512, false),
            (Some(511), usize::MAX, false),
        ] {
            let checked = check_below(limit, bytes);
            assert_eq!(checked.is_ok(), taken, "{limit:?} {bytes}");
            assert!(checked.err().is_none_or(|error| error.is_about_route()));
        }
    }
}
