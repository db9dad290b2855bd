//! Shared memory.

use std::ffi::{c_int, c_void};
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clmgr::SvmGrain;
use interop::{MemoryFacts, Shared};

use crate::bridge::{BridgeObject, hipcl_bridge};
use crate::call::{Out, VersionedOut, call, one_of, versioned};
use crate::failure::Failure;
use crate::handle::{Object, object};
use crate::lend::{Lend, Reader, Writer};
use crate::status::{HIPCL_ERROR_BUSY, hipcl_status};
use crate::values::{
    _cl_mem, grade_number, hipcl_grade, hipcl_residency, hipcl_route, residency_number, route, route_number,
};

/// What a hipcl_buffer points to.
pub enum hipcl_buffer_s {}
/// One allocation that OpenCL and HIP both see.
pub type hipcl_buffer = *mut hipcl_buffer_s;

/// The memory of a buffer, in bytes.
pub(crate) type Memory = Shared<u8>;

/// An open access for writing leaves what is known about the memory, because other calls cannot ask the memory then.
pub(crate) type BufferObject = Lend<Memory, Option<Known>>;
pub(crate) type BufferReader = Reader<Memory, Option<Known>>;
pub(crate) type BufferWriter = Writer<Memory, Option<Known>>;
object!(BufferObject, hipcl_buffer_s, Buffer);

/// What is known about a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub(crate) bytes: usize,
    pub(crate) facts: MemoryFacts,
}

/// The granularity of shared virtual memory: one of HIPCL_SVM_...
pub type hipcl_svm = i32;
/// clSVMAlloc without CL_MEM_SVM_FINE_GRAIN_BUFFER.
pub const HIPCL_SVM_COARSE: hipcl_svm = 1;
/// clSVMAlloc with CL_MEM_SVM_FINE_GRAIN_BUFFER.
pub const HIPCL_SVM_FINE: hipcl_svm = 2;

const GRAINS: [(hipcl_svm, SvmGrain); 2] = [(HIPCL_SVM_COARSE, SvmGrain::Coarse), (HIPCL_SVM_FINE, SvmGrain::Fine)];

/// What is known about a buffer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipcl_buffer_info {
    /// sizeof of this structure, set by the caller before the call.
    pub struct_size: usize,
    /// Its length in bytes.
    pub bytes: usize,
    /// The address that OpenCL kernels use, 0 if it is not known. For information; an access gives the argument.
    pub opencl_address: u64,
    /// The address that HIP uses, 0 if OpenCL's is not known. Equal to OpenCL's on a route that guarantees one address.
    pub hip_address: u64,
    /// The route of the memory.
    pub route: hipcl_route,
    /// Where the bytes lie.
    pub residency: hipcl_residency,
    /// How a change of side is ordered.
    pub grade: hipcl_grade,
    /// 1 if a change of side copies the data, else 0.
    pub is_copy: i32,
}

versioned! {
    hipcl_buffer_info 48;
}

/// Allocates memory on the best permitted route. Fresh memory holds unspecified values.
///
/// @param bridge  A bridge.
/// @param bytes   Its length in bytes, at least 1.
/// @param buffer  Receives the buffer, which the caller destroys with hipcl_buffer_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT for 0 bytes or more than the address space, HIPCL_ERROR_OUT_OF_MEMORY,
/// HIPCL_ERROR_FAILED with a reason for each route if several are permitted and none has the memory.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_create(
    bridge: hipcl_bridge,
    bytes: usize,
    buffer: *mut hipcl_buffer,
) -> hipcl_status {
    call("hipcl_buffer_create", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(buffer, "buffer") }?;
        place.publish(BufferObject::new(BridgeObject::of(bridge, "bridge")?.0.alloc(bytes)?))
    })
}

/// Allocates memory on exactly this route, proven or not.
///
/// @param bridge  A bridge.
/// @param route   A route; HIPCL_ROUTE_AUTO as hipcl_buffer_create().
/// @param bytes   Its length in bytes, at least 1.
/// @param buffer  Receives the buffer, which the caller destroys with hipcl_buffer_destroy().
///
/// Errors: as hipcl_buffer_create(), and HIPCL_ERROR_NOT_SUPPORTED if the route is not possible here.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_create_on(
    bridge: hipcl_bridge,
    route: hipcl_route,
    bytes: usize,
    buffer: *mut hipcl_buffer,
) -> hipcl_status {
    call("hipcl_buffer_create_on", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(buffer, "buffer") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        place.publish(BufferObject::new(match self::route(route, "route")? {
            Some(route) => bridge.0.alloc_on(route, bytes)?,
            None => bridge.0.alloc(bytes)?,
        }))
    })
}

/// Allocates memory that hipcl_buffer_export_fd() can export on every platform: HIP's virtual memory.
///
/// @param bridge  A bridge.
/// @param bytes   Its length in bytes, at least 1.
/// @param buffer  Receives the buffer, which the caller destroys with hipcl_buffer_destroy().
///
/// Errors: as hipcl_buffer_create_on().
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_create_exportable(
    bridge: hipcl_bridge,
    bytes: usize,
    buffer: *mut hipcl_buffer,
) -> hipcl_status {
    call("hipcl_buffer_create_exportable", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(buffer, "buffer") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        place.publish(BufferObject::new(bridge.0.alloc_exportable(bytes)?))
    })
}

/// Takes a cl_mem that the caller created in the bridge's context. It is retained until the buffer is destroyed; the
/// caller's own reference stays the caller's. While an access to the buffer is open, or work that was enqueued under one
/// runs, no other work uses the memory, except that several may read.
///
/// @param bridge  A bridge.
/// @param native  A living cl_mem, a buffer or a part of one.
/// @param route   HIPCL_ROUTE_AUTO, or exactly HIPCL_ROUTE_GPU_VA, HIPCL_ROUTE_DMA_BUF or HIPCL_ROUTE_STAGING.
/// @param buffer  Receives the buffer, which the caller destroys with hipcl_buffer_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT for null and for an object of another context, HIPCL_ERROR_NOT_SUPPORTED with a reason
/// for each route, HIPCL_ERROR_OPENCL for a handle that is no buffer.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_adopt_cl_mem(
    bridge: hipcl_bridge,
    native: *mut _cl_mem,
    route: hipcl_route,
    buffer: *mut hipcl_buffer,
) -> hipcl_status {
    call("hipcl_buffer_adopt_cl_mem", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(buffer, "buffer") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        let route = self::route(route, "route")?;
        not_null(native.is_null(), "native")?;
        // SAFETY: the C caller's living object, used as the header says.
        let memory = unsafe { bridge.0.adopt_cl_mem(native.cast(), route) }?;
        place.publish(BufferObject::new(memory))
    })
}

/// Takes shared virtual memory that the caller allocated with clSVMAlloc in the bridge's context. Other uses of it as for
/// hipcl_buffer_adopt_cl_mem().
///
/// @param bridge   A bridge.
/// @param pointer  The first byte, in memory from clSVMAlloc.
/// @param bytes    The length in bytes, at least 1.
/// @param grain    HIPCL_SVM_COARSE or HIPCL_SVM_FINE, as it was allocated.
/// @param release  Called once with `user` when the library no longer uses the memory, on whatever thread that is; null
///                 if the caller frees the memory after hipcl_buffer_destroy(). Not called if this function fails. It
///                 must not call this library. An exception that leaves it ends the process.
/// @param user     Passed to `release`.
/// @param buffer   Receives the buffer, which the caller destroys with hipcl_buffer_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT for null, for memory that the runtime does not know or knows elsewhere.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_adopt_svm(
    bridge: hipcl_bridge,
    pointer: *mut c_void,
    bytes: usize,
    grain: hipcl_svm,
    release: Option<unsafe extern "C-unwind" fn(user: *mut c_void)>,
    user: *mut c_void,
    buffer: *mut hipcl_buffer,
) -> hipcl_status {
    call("hipcl_buffer_adopt_svm", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(buffer, "buffer") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        let grain = one_of(grain, &GRAINS, "grain", "HIPCL_SVM_COARSE, HIPCL_SVM_FINE")?;
        not_null(pointer.is_null(), "pointer")?;
        let (owner, armed) = Owner::new(release, user);
        // SAFETY: memory of clSVMAlloc by the header's demand, which lives until its owner is dropped.
        let memory = unsafe { bridge.0.adopt_svm(pointer.cast::<u8>(), bytes, grain, owner) }?;
        place.publish(BufferObject::new(memory))?;
        armed.store(true, Ordering::Release);
        Ok(())
    })
}

/// Takes device memory that the caller allocated with HIP. Other uses of it as for hipcl_buffer_adopt_cl_mem().
///
/// @param bridge   A bridge.
/// @param pointer  The first byte.
/// @param bytes    The length in bytes, at least 1.
/// @param release  As for hipcl_buffer_adopt_svm().
/// @param user     Passed to `release`.
/// @param buffer   Receives the buffer, which the caller destroys with hipcl_buffer_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT for null and for memory that is not the bridge's device's, HIPCL_ERROR_NOT_SUPPORTED
/// where OpenCL cannot take a HIP pointer.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_adopt_hip(
    bridge: hipcl_bridge,
    pointer: *mut c_void,
    bytes: usize,
    release: Option<unsafe extern "C-unwind" fn(user: *mut c_void)>,
    user: *mut c_void,
    buffer: *mut hipcl_buffer,
) -> hipcl_status {
    call("hipcl_buffer_adopt_hip", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(buffer, "buffer") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        not_null(pointer.is_null(), "pointer")?;
        let (owner, armed) = Owner::new(release, user);
        // SAFETY: device memory by the header's demand, which lives until its owner is dropped.
        let memory = unsafe { bridge.0.adopt_hip(pointer.cast::<u8>(), bytes, owner) }?;
        place.publish(BufferObject::new(memory))?;
        armed.store(true, Ordering::Release);
        Ok(())
    })
}

/// Takes device memory behind a file descriptor: a dma-buf, or a descriptor that HIP or CUDA virtual memory or Vulkan
/// exported. It has at least `offset + bytes` bytes; where OpenCL imports a descriptor that is not HIP virtual memory
/// (NVIDIA), exactly `bytes`, and `offset` is 0. No other buffer of this process shows the same memory, and other processes
/// use it in turns.
///
/// @param bridge  A bridge.
/// @param fd      The descriptor. The library duplicates it; the caller's own stays the caller's.
/// @param offset  Where the buffer begins in the descriptor's memory, in bytes.
/// @param bytes   The length in bytes, at least 1.
/// @param buffer  Receives the buffer, which the caller destroys with hipcl_buffer_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT for a negative descriptor, HIPCL_ERROR_SYSTEM for one that is not open, HIPCL_ERROR_HIP
/// if HIP cannot import it (HIPCL_ERROR_OUT_OF_MEMORY if HIP gives that for its reason, as ROCm does for a descriptor that
/// is no memory), HIPCL_ERROR_NOT_SUPPORTED where OpenCL cannot reach the import.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_adopt_fd(
    bridge: hipcl_bridge,
    fd: c_int,
    offset: usize,
    bytes: usize,
    buffer: *mut hipcl_buffer,
) -> hipcl_status {
    call("hipcl_buffer_adopt_fd", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(buffer, "buffer") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        if fd < 0 {
            return Err(Failure::argument(format!("`fd` is {fd}; pass an open descriptor")));
        }
        // SAFETY: not -1; if the caller's number is of no open descriptor, the duplication below is all that fails.
        let own = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?;
        // SAFETY: memory of this size that no other buffer shows, by the header's demand.
        let memory = unsafe { bridge.0.adopt_fd::<u8>(own, offset, bytes) }?;
        place.publish(BufferObject::new(memory))
    })
}

/// Destroys a buffer. Waits for all work that was enqueued under its accesses, then frees the memory or gives it back
/// to its owner, before the call returns.
///
/// Errors: HIPCL_ERROR_BUSY while an access to it is open; the buffer is unchanged then. HIPCL_ERROR_HANDLE,
/// HIPCL_ERROR_STALE_HANDLE. Any other error is that of work which failed or did not end within the hand-off limit: the
/// buffer is destroyed then, but its memory is kept for ever, because a device may still use it. `release` is not called,
/// and the caller must neither free nor reuse adopted memory.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn hipcl_buffer_destroy(buffer: hipcl_buffer) -> hipcl_status {
    call("hipcl_buffer_destroy", || {
        let memory = BufferObject::take(buffer, "buffer")?.into_inner();
        memory.close().map_err(|error| {
            let mut failure = Failure::from(error);
            failure.text += "; a device may still use the memory, which is kept: neither free nor reuse it";
            failure
        })
    })
}

/// What is known about a buffer.
///
/// @param buffer  A buffer.
/// @param info    Receives it. Its `struct_size` is set.
///
/// Errors: HIPCL_ERROR_BUSY while a call on another thread writes the buffer.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_get_info(buffer: hipcl_buffer, info: *mut hipcl_buffer_info) -> hipcl_status {
    call("hipcl_buffer_get_info", || {
        // SAFETY: the C caller's place for the structure.
        let place = unsafe { VersionedOut::new(info, "info") }?;
        let Known { bytes, facts } = known(buffer)?;
        let (opencl, hip) = facts.addresses.unwrap_or_default();
        place.set(hipcl_buffer_info {
            struct_size: size_of::<hipcl_buffer_info>(),
            bytes,
            opencl_address: opencl as u64,
            hip_address: hip as u64,
            route: route_number(facts.route),
            residency: residency_number(facts.residency),
            grade: grade_number(facts.grade),
            is_copy: facts.route.is_copy().into(),
        });
        Ok(())
    })
}

fn known(buffer: hipcl_buffer) -> Result<Known, Failure> {
    let failure = match BufferReader::of(buffer, "buffer") {
        Ok(memory) => {
            return Ok(Known {
                bytes: memory.len(),
                facts: memory.facts(),
            });
        }
        Err(failure) => failure,
    };
    let note = match failure.status {
        HIPCL_ERROR_BUSY => BufferObject::of(buffer, "buffer")?.note(),
        _ => None,
    };
    note.ok_or(failure)
}

/// Exports the memory as a plain file descriptor, for another library, or for another process that receives it over a
/// Unix socket. Waits for all work that uses the buffer. A descriptor of hipcl_buffer_create_exportable() keeps the memory
/// alive after the buffer; with any other one, the buffer outlives every use of the descriptor. While an access to the
/// buffer is open, or work that was enqueued under one runs, nothing writes the memory through the descriptor.
///
/// @param buffer  A buffer; hipcl_buffer_create_exportable() makes one that can be exported on every platform.
/// @param fd      Receives the descriptor, which the caller closes; -1 if the call fails.
/// @param offset  Receives where the buffer begins in the descriptor's memory, in bytes.
/// @param bytes   Receives the buffer's length in bytes.
///
/// Errors: HIPCL_ERROR_BUSY while an access is open, HIPCL_ERROR_NOT_SUPPORTED with a reason for each kind of
/// descriptor, HIPCL_ERROR_READ_ONLY.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_export_fd(
    buffer: hipcl_buffer,
    fd: *mut c_int,
    offset: *mut usize,
    bytes: *mut usize,
) -> hipcl_status {
    call("hipcl_buffer_export_fd", || {
        // SAFETY: the C caller's place for an int.
        let mut fd = unsafe { Out::new(fd, "fd") }?;
        // 0 would be somebody's descriptor.
        fd.preset(-1);
        // SAFETY: the C caller's places for two sizes.
        let (offset, bytes) = unsafe { (Out::new(offset, "offset")?, Out::new(bytes, "bytes")?) };
        let mut memory = BufferWriter::of(buffer, "buffer")?;
        // SAFETY: the header demands of the C caller what this demands.
        let exported = unsafe { memory.export_fd() }?;
        fd.set(exported.fd.into_raw_fd());
        offset.set(exported.offset);
        bytes.set(exported.bytes);
        Ok(())
    })
}

pub(crate) fn not_null(is_null: bool, argument: &str) -> Result<(), Failure> {
    match is_null {
        true => Err(Failure::argument(format!("`{argument}` is null"))),
        false => Ok(()),
    }
}

/// Tells the C caller when its memory is no longer used.
struct Owner {
    release: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    user: *mut c_void,
    /// False until the caller has the buffer: a call that fails leaves the memory to it.
    armed: Arc<AtomicBool>,
}

// SAFETY: the pointer is only passed to the caller's function, which takes it on any thread by the header's demand.
unsafe impl Send for Owner {}
// SAFETY: nothing is done through a shared reference.
unsafe impl Sync for Owner {}

impl Owner {
    fn new(release: Option<unsafe extern "C-unwind" fn(*mut c_void)>, user: *mut c_void) -> (Self, Arc<AtomicBool>) {
        let armed = Arc::new(AtomicBool::new(false));
        let owner = Self {
            release,
            user,
            armed: Arc::clone(&armed),
        };
        (owner, armed)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(release) = self.release
            && self.armed.load(Ordering::Acquire)
        {
            // SAFETY: the caller's function with the caller's pointer, once.
            unsafe { call_back(release, self.user) };
        }
    }
}

/// Calls the caller's function. An exception that leaves it ends the process here: no frame of `extern "C"` lets one through.
unsafe extern "C" fn call_back(function: unsafe extern "C-unwind" fn(*mut c_void), user: *mut c_void) {
    // SAFETY: as the caller of this function promises.
    unsafe { function(user) };
}
