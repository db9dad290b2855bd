//! As much of the CUDA driver interface as the tests need, from `libcuda.so.1`.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

use libloading::os::unix::Library;

/// `CUmemLocation` with `CU_MEM_LOCATION_TYPE_DEVICE`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Location {
    kind: c_uint,
    id: c_int,
}

/// `CUmemAllocationProp`.
#[repr(C)]
struct AllocationProp {
    kind: c_uint,
    handle_types: c_uint,
    location: Location,
    win32: *mut c_void,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[repr(C)]
struct AccessDesc {
    location: Location,
    flags: c_uint,
}

/// `CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC`.
#[repr(C)]
struct SemaphoreDesc {
    kind: c_uint,
    handle: SemaphoreHandle,
    flags: c_uint,
    reserved: [c_uint; 16],
}

/// Its union, as large and as aligned as the pair of pointers in it.
#[repr(C, align(8))]
struct SemaphoreHandle {
    fd: c_int,
    rest: [c_uint; 3],
}

/// `CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS`, all zero for a binary semaphore.
type WaitParams = [u64; 18];

const POSIX_FD: c_uint = 1;
const PINNED: c_uint = 1;
const DEVICE: c_uint = 1;
const READ_WRITE: c_uint = 3;
const OPAQUE_FD: c_uint = 1;

type Code = c_int;
type Address = u64;

macro_rules! functions {
    ($($field:ident = $name:literal: fn($($arg:ty),*);)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($arg),*) -> Code,)*
            _library: Library,
        }

        impl Functions {
            fn load() -> Result<Self, String> {
                // SAFETY: NVIDIA's driver library does nothing on load that concerns others.
                let library = unsafe { Library::new("libcuda.so.1") }
                    .map_err(|error| error.to_string())?;
                Ok(Self {
                    $(
                        // SAFETY: the header `cuda.h` gives this name this signature.
                        $field: *unsafe { library.get($name) }.map_err(|error| error.to_string())?,
                    )*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    init = b"cuInit\0": fn(c_uint);
    device = b"cuDeviceGet\0": fn(*mut c_int, c_int);
    uuid = b"cuDeviceGetUuid\0": fn(*mut [u8; 16], c_int);
    retain = b"cuDevicePrimaryCtxRetain\0": fn(*mut *mut c_void, c_int);
    set_current = b"cuCtxSetCurrent\0": fn(*mut c_void);
    granularity = b"cuMemGetAllocationGranularity\0": fn(*mut usize, *const AllocationProp, c_uint);
    create = b"cuMemCreate\0": fn(*mut u64, usize, *const AllocationProp, u64);
    release = b"cuMemRelease\0": fn(u64);
    reserve = b"cuMemAddressReserve\0": fn(*mut Address, usize, usize, Address, u64);
    free_address = b"cuMemAddressFree\0": fn(Address, usize);
    map = b"cuMemMap\0": fn(Address, usize, usize, u64, u64);
    unmap = b"cuMemUnmap\0": fn(Address, usize);
    set_access = b"cuMemSetAccess\0": fn(Address, usize, *const AccessDesc, usize);
    export = b"cuMemExportToShareableHandle\0": fn(*mut c_void, u64, c_uint, u64);
    write = b"cuMemcpyHtoD_v2\0": fn(Address, *const c_void, usize);
    read = b"cuMemcpyDtoH_v2\0": fn(*mut c_void, Address, usize);
    read_async = b"cuMemcpyDtoHAsync_v2\0": fn(*mut c_void, Address, usize, *mut c_void);
    create_stream = b"cuStreamCreate\0": fn(*mut *mut c_void, c_uint);
    wait_stream = b"cuStreamSynchronize\0": fn(*mut c_void);
    destroy_stream = b"cuStreamDestroy_v2\0": fn(*mut c_void);
    import_semaphore = b"cuImportExternalSemaphore\0": fn(*mut *mut c_void, *const SemaphoreDesc);
    destroy_semaphore = b"cuDestroyExternalSemaphore\0": fn(*mut c_void);
    wait_semaphores = b"cuWaitExternalSemaphoresAsync\0": fn(*const *mut c_void, *const WaitParams, c_uint, *mut c_void);
}

fn check(call: &str, code: Code) -> Result<(), String> {
    match code {
        0 => Ok(()),
        code => Err(format!("{call} answered {code}")),
    }
}

/// The first device, with its primary context current on the thread that opened it.
pub struct Cuda {
    functions: Arc<Functions>,
    device: c_int,
    uuid: [u8; 16],
}

/// Memory of the device that can be exported, mapped for the device.
pub struct Memory {
    functions: Arc<Functions>,
    handle: u64,
    address: Address,
    bytes: usize,
}

/// A semaphore of another API.
pub struct Imported {
    functions: Arc<Functions>,
    raw: *mut c_void,
}

impl Cuda {
    pub fn open() -> Result<Self, String> {
        let functions = Functions::load()?;
        let (mut device, mut uuid) = (0, [0u8; 16]);
        let mut context = std::ptr::null_mut();
        // SAFETY: the places are valid; the context stays retained for the process.
        unsafe {
            check("cuInit", (functions.init)(0))?;
            check("cuDeviceGet", (functions.device)(&raw mut device, 0))?;
            check("cuDeviceGetUuid", (functions.uuid)(&raw mut uuid, device))?;
            let retained = (functions.retain)(&raw mut context, device);
            check("cuDevicePrimaryCtxRetain", retained)?;
            check("cuCtxSetCurrent", (functions.set_current)(context))?;
        }
        Ok(Self {
            functions: Arc::new(functions),
            device,
            uuid,
        })
    }

    pub fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// Memory for at least this many bytes.
    pub fn exportable(&self, bytes: usize) -> Result<Memory, String> {
        let functions = &self.functions;
        let location = Location {
            kind: DEVICE,
            id: self.device,
        };
        let wanted = AllocationProp {
            kind: PINNED,
            handle_types: POSIX_FD,
            location,
            win32: std::ptr::null_mut(),
            flags: [0; 8],
        };
        let (mut step, mut handle, mut address) = (0, 0, 0);
        // SAFETY: the places are valid, and the properties describe memory of this device.
        unsafe {
            let code = (functions.granularity)(&raw mut step, &raw const wanted, 0);
            check("cuMemGetAllocationGranularity", code)?;
            let bytes = bytes.next_multiple_of(step);
            let code = (functions.create)(&raw mut handle, bytes, &raw const wanted, 0);
            check("cuMemCreate", code)?;
            let code = (functions.reserve)(&raw mut address, bytes, 0, 0, 0);
            check("cuMemAddressReserve", code)?;
            check("cuMemMap", (functions.map)(address, bytes, 0, handle, 0))?;
            let access = AccessDesc {
                location,
                flags: READ_WRITE,
            };
            let code = (functions.set_access)(address, bytes, &raw const access, 1);
            check("cuMemSetAccess", code)?;
            Ok(Memory {
                functions: functions.clone(),
                handle,
                address,
                bytes,
            })
        }
    }

    /// The semaphore of a descriptor, which CUDA owns from then on.
    pub fn import_semaphore(&self, fd: OwnedFd) -> Result<Imported, String> {
        let wanted = SemaphoreDesc {
            kind: OPAQUE_FD,
            handle: SemaphoreHandle {
                fd: fd.into_raw_fd(),
                rest: [0; 3],
            },
            flags: 0,
            reserved: [0; 16],
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the place is valid, and the descriptor is a semaphore's.
        let code = unsafe { (self.functions.import_semaphore)(&raw mut raw, &raw const wanted) };
        check("cuImportExternalSemaphore", code)?;
        Ok(Imported {
            functions: self.functions.clone(),
            raw,
        })
    }

    /// Reads the memory on a stream of its own, behind a wait for the semaphore.
    pub fn read_after(&self, semaphore: &Imported, memory: &Memory, len: usize) -> Result<Vec<u32>, String> {
        assert!(len * 4 <= memory.bytes);
        let functions = &self.functions;
        let mut stream = std::ptr::null_mut();
        let mut out = vec![0u32; len];
        let params: WaitParams = [0; 18];
        // SAFETY: the places are valid; `out` outlives the stream's work, which is waited for.
        unsafe {
            let code = (functions.create_stream)(&raw mut stream, 1);
            check("cuStreamCreate", code)?;
            let list = [semaphore.raw];
            let waited = (functions.wait_semaphores)(list.as_ptr(), &raw const params, 1, stream);
            let read = (functions.read_async)(out.as_mut_ptr().cast(), memory.address, len * 4, stream);
            let ended = (functions.wait_stream)(stream);
            (functions.destroy_stream)(stream);
            check("cuWaitExternalSemaphoresAsync", waited)?;
            check("cuMemcpyDtoHAsync", read)?;
            check("cuStreamSynchronize", ended)?;
        }
        Ok(out)
    }
}

impl Memory {
    pub fn export(&self) -> Result<OwnedFd, String> {
        let mut fd: c_int = -1;
        // SAFETY: the place holds a descriptor, which this type of handle is.
        let code = unsafe { (self.functions.export)((&raw mut fd).cast(), self.handle, POSIX_FD, 0) };
        check("cuMemExportToShareableHandle", code)?;
        // SAFETY: CUDA gave the descriptor to its caller.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    pub fn write(&self, data: &[u32]) -> Result<(), String> {
        assert!(size_of_val(data) <= self.bytes);
        let source = data.as_ptr().cast();
        // SAFETY: the memory holds as many bytes, and the call waits.
        let code = unsafe { (self.functions.write)(self.address, source, size_of_val(data)) };
        check("cuMemcpyHtoD", code)
    }

    pub fn read(&self, len: usize) -> Result<Vec<u32>, String> {
        assert!(len * 4 <= self.bytes);
        let mut out = vec![0u32; len];
        // SAFETY: the memory holds as many bytes, and the call waits.
        let code = unsafe { (self.functions.read)(out.as_mut_ptr().cast(), self.address, len * 4) };
        check("cuMemcpyDtoH", code)?;
        Ok(out)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the tests have waited for what used the memory; each step undoes one of its making.
        unsafe {
            (self.functions.unmap)(self.address, self.bytes);
            (self.functions.free_address)(self.address, self.bytes);
            (self.functions.release)(self.handle);
        }
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        // SAFETY: the tests have waited for what used the semaphore.
        unsafe { (self.functions.destroy_semaphore)(self.raw) };
    }
}

#[test]
fn the_structures_have_the_sizes_of_cudas_header() {
    assert_eq!(size_of::<AllocationProp>(), 32);
    assert_eq!(size_of::<AccessDesc>(), 12);
    assert_eq!(size_of::<SemaphoreDesc>(), 96);
    assert_eq!(size_of::<WaitParams>(), 144);
}
