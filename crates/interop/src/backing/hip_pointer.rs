//! HIP's memory, given to OpenCL's kernels as a raw pointer.
//!
//! AMD's OpenCL passes any pointer through to the kernel (opencl/amdocl/cl_svm.cpp,
//! `clSetKernelArgSVMPointer`), but it does not track memory that it did not allocate: two kernels
//! of one queue that share nothing else may overlap. [`clmgr::Kernel::launch`] sees to that. Only
//! kernels take such a pointer: OpenCL's own copies, fills and maps of it go wrong or crash, so
//! that bytes from and to the host go through HIP.

use std::any::Any;
use std::os::fd::BorrowedFd;

use super::rescue::{read_by_hip_kernel, write_by_kernel};
use super::{Backing, Outgoing, PeerAccess, check_place, outgoing};
use crate::core::Core;
use crate::values::{Carrier, Side};
use crate::{Error, Result, Route};

/// What keeps memory of other code, or this crate's own allocation.
pub(crate) type Owner = Box<dyn Any + Send + Sync>;

pub(crate) struct HipPointer {
    _owner: Owner,
    address: usize,
    bytes: usize,
    kind: Kind,
    /// Of HIP's virtual memory, also of another process.
    access: Option<hip::VirtualAccess>,
}

/// Where the memory came from, which decides how another process may open it.
enum Kind {
    /// `hipMalloc`.
    Malloc,
    /// HIP, for other code: by `hipMalloc`, from a pool or as virtual memory; ROCm does not report which
    /// (hip/driver_types.h, `HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE`: not supported).
    Adopted,
    /// HIP's virtual memory.
    Exportable(hip::Exporter),
    /// Another process, to which it belongs.
    Foreign,
    /// Another runtime of this process: HIP knows where it is and no more, so its kernels take the address and its
    /// copies do not.
    Unowned,
}

impl HipPointer {
    pub(crate) fn allocate(core: &Core, bytes: usize) -> Result<Self> {
        let mut memory = core.hip_device.alloc::<u8>(bytes)?;
        let ptr = memory.on_mut(&core.stream)?.as_mut_ptr();
        check_place(core, Route::HipPointer, ptr, bytes)?;
        Ok(Self {
            address: ptr.expose_provenance(),
            _owner: Box::new(memory),
            bytes,
            kind: Kind::Malloc,
            access: None,
        })
    }

    /// Memory that other processes can open by a descriptor. HIP allocates it on the device and nowhere else
    /// (`hipMemLocationTypeDevice`).
    pub(crate) fn exportable(core: &Core, bytes: usize) -> Result<Self> {
        super::gate(core, Route::HipPointer)?;
        let memory = core.hip_device.virtual_memory(bytes)?;
        let kind = Kind::Exportable(memory.exporter());
        Self::of_virtual(core, memory, bytes, kind)
    }

    /// HIP's virtual memory of another process.
    ///
    /// # Safety
    /// As [`hip::Device::import_virtual_memory`].
    pub(crate) unsafe fn import_fd(core: &Core, fd: BorrowedFd<'_>, bytes: usize) -> Result<Self> {
        super::gate(core, Route::HipPointer)?;
        // SAFETY: the caller's promise.
        let memory = unsafe { core.hip_device.import_virtual_memory(fd, bytes) }?;
        Self::of_virtual(core, memory, bytes, Kind::Foreign)
    }

    fn of_virtual(core: &Core, memory: hip::VirtualMemory, bytes: usize, kind: Kind) -> Result<Self> {
        let access = Some(memory.access());
        let whole = Self::of_buffer(core, memory.into_buffer()?, 0, bytes, kind)?;
        Ok(Self { access, ..whole })
    }

    /// An allocation of another process, from byte `offset` on.
    ///
    /// # Safety
    /// As [`hip::IpcMemory::open`].
    pub(crate) unsafe fn open_ipc(core: &Core, handle: &hip::IpcMemory, offset: usize, bytes: usize) -> Result<Self> {
        super::gate(core, Route::HipPointer)?;
        let end = offset
            .checked_add(bytes)
            .ok_or(Error::TooLarge { len: bytes, element: 1 })?;
        // SAFETY: the caller's promise.
        let memory = unsafe { handle.open::<u8>(&core.hip_device, end) }?;
        Self::of_buffer(core, memory, offset, bytes, Kind::Foreign)
    }

    fn of_buffer(
        core: &Core,
        mut memory: hip::DeviceBuffer<u8>,
        offset: usize,
        bytes: usize,
        kind: Kind,
    ) -> Result<Self> {
        let first = memory.on_mut(&core.stream)?.as_mut_ptr();
        Ok(Self {
            address: first.expose_provenance() + offset,
            _owner: Box::new(memory),
            bytes,
            kind,
            access: None,
        })
    }

    /// Memory that HIP, or another runtime on the same device, allocated for other code.
    ///
    /// # Safety
    /// It is not freed while `owner` lives.
    pub(crate) unsafe fn adopted(core: &Core, ptr: *mut u8, bytes: usize, owner: Owner) -> Result<Self> {
        const ROUTE: Route = Route::HipPointer;
        super::gate(core, ROUTE)?;
        let address = ptr.expose_provenance();
        let Some((base, allocated)) = core.hip_device.allocation_of(ptr.cast())? else {
            return Self::unowned(core, ptr, bytes, owner);
        };
        let base = base.addr();
        if address - base > allocated || bytes > allocated - (address - base) {
            return Err(Error::OutsideAllocation {
                route: ROUTE,
                address,
                bytes,
                base,
                allocated,
            });
        }
        check_place(core, ROUTE, ptr, bytes)?;
        Ok(Self {
            _owner: owner,
            address,
            bytes,
            kind: Kind::Adopted,
            access: None,
        })
    }

    /// HIP says of such memory that it is a device's, and no more (hipamd/src/hip_memory.cpp,
    /// `hipPointerGetAttributes`); the HSA runtime knows whose it is, and how much.
    fn unowned(core: &Core, ptr: *mut u8, bytes: usize, owner: Owner) -> Result<Self> {
        let address = ptr.expose_provenance();
        let unknown = Error::UnknownAddress {
            route: Route::HipPointer,
            address,
        };
        if core.hsa.is_none() {
            return Err(unknown);
        }
        check_place(core, Route::HipPointer, ptr, bytes)?;
        match core.hip.pointer_info(ptr.cast_const().cast())? {
            Some(info) if info.kind == hip::MemoryKind::Device => Ok(Self {
                _owner: owner,
                address,
                bytes,
                kind: Kind::Unowned,
                access: None,
            }),
            _ => Err(unknown),
        }
    }
}

impl Backing for HipPointer {
    fn route(&self) -> Route {
        Route::HipPointer
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn hip_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    fn is_known_to_hip(&self) -> bool {
        !matches!(self.kind, Kind::Unowned)
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        clmgr::Arg::Svm(std::ptr::with_exposed_provenance(self.address))
    }

    fn cl_address(&self) -> Option<usize> {
        Some(self.address)
    }

    fn transfers_by(&self) -> Side {
        Side::Hip
    }

    /// Enabling covers memory of `hipMalloc` (hipamd/src/hip_peer.cpp), and neither pools nor virtual
    /// memory: a kernel of the peer's would fault on theirs.
    fn peer_access(&self) -> PeerAccess<'_> {
        match (&self.kind, &self.access) {
            (_, Some(access)) => PeerAccess::Mapped(access),
            (Kind::Malloc, None) => PeerAccess::Enabled,
            (Kind::Adopted | Kind::Exportable(_) | Kind::Foreign | Kind::Unowned, None) => PeerAccess::None,
        }
    }

    fn outgoing(&self, core: &Core, carrier: Carrier) -> Result<Outgoing> {
        let refused = |reason: &str| Err(outgoing::refused(carrier, reason.into()));
        match (&self.kind, carrier) {
            (Kind::Exportable(exporter), Carrier::HipFd) => Outgoing::hip_fd(exporter),
            // Where the runtime does not share memory of the owner's kind, it says so.
            (Kind::Malloc | Kind::Adopted, Carrier::DmaBuf) => Outgoing::dma_buf(core, self.hip_ptr(), self.bytes),
            // SAFETY: the allocation is this value's or its owner's; the sender of the handle keeps this value until
            // the other process has let go.
            (Kind::Malloc | Kind::Adopted, Carrier::IpcHandle) => unsafe { Outgoing::ipc(core, self.hip_ptr()) },
            (Kind::Malloc | Kind::Adopted, Carrier::HipFd) => refused(
                "memory of hipMalloc or of other code has no file descriptor here; use Bridge::alloc_exportable",
            ),
            (Kind::Exportable(_), _) => refused("HIP virtual memory can be shared only by its own file descriptor"),
            (Kind::Unowned, _) => {
                refused("the memory belongs to another runtime of this process; only its owner may share it")
            }
            (Kind::Foreign, _) => refused("the memory belongs to another process; only its owner may share it"),
        }
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        if !self.is_known_to_hip() {
            return write_by_kernel(core, self, begin, data);
        }
        write_by_hip(core, self, begin, data)
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        if !self.is_known_to_hip() {
            return read_by_hip_kernel(core, self, begin, data);
        }
        read_by_hip(core, self, begin, data)
    }
}

/// Writes bytes from `begin` on to memory that is [known to HIP](Backing::is_known_to_hip); complete when it returns. Its user on the
/// bridge's own stream was admitted as the only one.
pub(super) fn write_by_hip(core: &Core, backing: &mut dyn Backing, begin: usize, data: &[u8]) -> Result<()> {
    let place = backing.hip_ptr().wrapping_add(begin);
    // SAFETY: HIP's own memory, which has as many bytes there and lives until the copy, which is waited for; the stream was
    // admitted to write it.
    let mut slice = unsafe { hip::DeviceSliceMut::from_hip_raw_parts(place, data.len(), &core.stream) };
    Ok(slice.copy_from_slice(data)?)
}

/// Reads bytes, as [`write_by_hip`] writes them. Its user was admitted as a reader.
pub(super) fn read_by_hip(core: &Core, backing: &dyn Backing, begin: usize, data: &mut [u8]) -> Result<()> {
    let place = backing.hip_ptr().wrapping_add(begin);
    // SAFETY: as in `write_by_hip`; the stream was admitted to read it.
    let slice = unsafe { hip::DeviceSlice::from_hip_raw_parts(place, data.len(), &core.stream) };
    Ok(slice.copy_to_slice(data)?)
}
