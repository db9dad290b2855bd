//! Device memory behind a file descriptor that other code, or another process, exported.
//!
//! AMD's OpenCL imports no descriptors. The address of the HIP import is valid in its kernels too,
//! since a process has one address space per GPU.

use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::Backing;
use super::hip_pointer::{read_by_hip, write_by_hip};
use crate::access::{Space, Span};
use crate::core::Core;
use crate::values::Side;
use crate::{Result, Route};

/// Memory of other code.
pub(crate) struct Exported {
    pub(crate) fd: OwnedFd,
    /// What to import: all of it where its owner said how much there is.
    pub(crate) bytes: usize,
    /// What its buffers are said to be.
    pub(crate) route: Route,
    /// Whether it was allocated for one resource of its owner's alone.
    pub(crate) dedicated: bool,
    /// Kept for as long as the import.
    pub(crate) owner: Option<Box<dyn Any + Send + Sync>>,
}

impl Exported {
    /// # Safety
    /// The memory has as many bytes as this says.
    pub(super) unsafe fn import_to_hip(&self, core: &Core) -> Result<hip::ExternalMemory> {
        let (device, fd): (_, BorrowedFd<'_>) = (&core.hip_device, self.fd.as_fd());
        // SAFETY: the caller's promise.
        Ok(unsafe {
            match self.dedicated {
                true => device.import_dedicated_memory(fd, self.bytes)?,
                false => device.import_memory(fd, self.bytes)?,
            }
        })
    }
}

pub(crate) struct Imported {
    // In the order of the drops: both releases of the import.
    _buffer: hip::DeviceBuffer<u8>,
    _import: hip::ExternalMemory,
    _owner: Option<Box<dyn Any + Send + Sync>>,
    route: Route,
    address: usize,
    bytes: usize,
    file: Option<Span>,
}

impl Imported {
    /// # Safety
    /// The memory behind `fd` has at least `offset + bytes` bytes.
    pub(crate) unsafe fn new(core: &Core, fd: OwnedFd, offset: usize, bytes: usize) -> Result<Self> {
        let end = offset
            .checked_add(bytes)
            .ok_or(crate::Error::TooLarge { len: bytes, element: 1 })?;
        let memory = Exported {
            fd,
            bytes: end,
            route: Route::DmaBuf,
            dedicated: false,
            owner: None,
        };
        // SAFETY: the caller's promise.
        unsafe { Self::of(core, memory, offset, bytes) }
    }

    /// `bytes` bytes from `offset` on.
    ///
    /// # Safety
    /// The memory has as many bytes as it says.
    pub(crate) unsafe fn of(core: &Core, memory: Exported, offset: usize, bytes: usize) -> Result<Self> {
        super::gate(core, Route::HipPointer)?;
        // From the start: see `hip::Device::import_memory`.
        // SAFETY: the caller's promise.
        let import = unsafe { memory.import_to_hip(core) }?;
        // SAFETY: the backing's user is admitted before it uses the memory.
        let mut buffer = unsafe { import.buffer::<u8>(offset, bytes) }?;
        let address = buffer.on_mut(&core.stream)?.as_mut_ptr().expose_provenance();
        Ok(Self {
            _buffer: buffer,
            _import: import,
            route: memory.route,
            address,
            bytes,
            file: Space::of_file(memory.fd.as_fd()).map(|space| Span {
                space,
                range: offset..offset + bytes,
            }),
            _owner: memory.owner,
        })
    }
}

impl Backing for Imported {
    fn route(&self) -> Route {
        self.route
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
        clmgr::Arg::Svm(std::ptr::with_exposed_provenance(self.address))
    }

    fn cl_address(&self) -> Option<usize> {
        Some(self.address)
    }

    fn spans(&self) -> Vec<Span> {
        let address = Span::at(self.address, self.bytes);
        [address].into_iter().chain(self.file.clone()).collect()
    }

    fn transfers_by(&self) -> Side {
        Side::Hip
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        write_by_hip(core, self, begin, data)
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        read_by_hip(core, self, begin, data)
    }
}
