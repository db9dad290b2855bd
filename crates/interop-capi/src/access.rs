//! Memory given to a queue or a stream, and back.

use std::ffi::c_void;

use clmgr::Arg;
use interop::{ClGuard, ClGuardMut, HipGuard, HipGuardMut, StreamArg};

use crate::buffer::{BufferReader, BufferWriter, Known, Memory, hipcl_buffer};
use crate::call::{Out, call, destroy, one_of};
use crate::failure::Failure;
use crate::handle::{Object, object};
use crate::queue::{QueueObject, StreamObject, hipcl_queue, hipcl_stream};
use crate::status::{HIPCL_ERROR_NOT_SUPPORTED, hipcl_status};
use crate::table::Held;
use crate::values::_cl_mem;

/// What a hipcl_access points to.
pub enum hipcl_access_s {}
/// Permission to use a buffer on one queue or stream, from hipcl_access_begin_queue() or hipcl_access_begin_stream() to
/// hipcl_access_end().
pub type hipcl_access = *mut hipcl_access_s;

/// What an access permits: one of HIPCL_ACCESS_...
pub type hipcl_access_mode = i32;
/// To read. Several accesses for reading may be open at once, on both APIs.
pub const HIPCL_ACCESS_READ: hipcl_access_mode = 1;
/// To read and write. No other access to the buffer is open meanwhile.
pub const HIPCL_ACCESS_WRITE: hipcl_access_mode = 2;

#[derive(Clone, Copy)]
enum Mode {
    Read,
    Write,
}

const MODES: [(hipcl_access_mode, Mode); 2] = [(HIPCL_ACCESS_READ, Mode::Read), (HIPCL_ACCESS_WRITE, Mode::Write)];

/// A guard of the crate `interop` whose borrows are kept alive by what stands beside it.
pub(crate) struct AccessObject {
    // In the order of the drops: the guard first, then what it borrows from.
    guard: Guard,
    _lease: Lease,
    side: Side,
    bytes: usize,
}
object!(AccessObject, hipcl_access_s, Access);

/// The lifetimes are not the true ones: a guard borrows from the lease and the side of its access.
enum Guard {
    Cl(ClGuard<'static, u8>),
    ClMut(ClGuardMut<'static, u8>),
    Hip(HipGuard<'static, u8>),
    HipMut {
        /// HIP's address, which only a device follows.
        address: usize,
        _guard: HipGuardMut<'static, u8>,
    },
}

enum Lease {
    Read { _reader: BufferReader },
    Write { _writer: BufferWriter },
}

enum Side {
    Queue(Held<QueueObject>),
    Stream(Held<StreamObject>),
}

impl AccessObject {
    fn begin(buffer: hipcl_buffer, side: Side, mode: Mode) -> Result<Self, Failure> {
        match mode {
            Mode::Read => {
                let reader = BufferReader::of(buffer, "buffer")?;
                // SAFETY: the guard is dropped before the reader, which stands behind it in the access.
                let memory: &'static Memory = unsafe { reader.extended() };
                let guard = match &side {
                    // SAFETY: as for the memory: the side stands behind the guard, and what it holds does not
                    // move.
                    Side::Queue(queue) => Guard::Cl(memory.cl(unsafe { extended(&queue.0) })?),
                    // SAFETY: as above.
                    Side::Stream(stream) => Guard::Hip(memory.hip(unsafe { extended(&*stream.0) })?),
                };
                Ok(Self {
                    guard,
                    bytes: reader.len(),
                    _lease: Lease::Read { _reader: reader },
                    side,
                })
            }
            Mode::Write => {
                let mut writer = BufferWriter::of(buffer, "buffer")?;
                let bytes = writer.len();
                // SAFETY: the guard is dropped before the writer, which stands behind it in the access and gives no other
                // reference.
                let memory: &'static mut Memory = unsafe { writer.extended() };
                let (guard, facts) = match &side {
                    Side::Queue(queue) => {
                        // SAFETY: as for the memory: the side stands behind the guard, and what it holds does
                        // not move.
                        let guard = memory.cl_mut(unsafe { extended(&queue.0) })?;
                        let facts = guard.facts();
                        (Guard::ClMut(guard), facts)
                    }
                    Side::Stream(stream) => {
                        // SAFETY: as above.
                        let mut guard = memory.hip_mut(unsafe { extended(&*stream.0) })?;
                        let facts = guard.facts();
                        let address = guard.slice_mut().as_mut_ptr().expose_provenance();
                        (Guard::HipMut { address, _guard: guard }, facts)
                    }
                };
                writer.leave(Some(Known { bytes, facts }));
                Ok(Self {
                    guard,
                    _lease: Lease::Write { _writer: writer },
                    side,
                    bytes,
                })
            }
        }
    }

    /// The argument of a kernel on this queue.
    pub(crate) fn on_queue(&self, queue: &clmgr::Queue) -> Result<Arg<'_>, Failure> {
        match (&self.guard, &self.side) {
            (Guard::Cl(guard), Side::Queue(own)) if own.0 == *queue => Ok(guard.arg()),
            (Guard::ClMut(guard), Side::Queue(own)) if own.0 == *queue => Ok(guard.arg()),
            _ => Err(Failure::argument(
                "an access among the arguments is for another queue or for a stream; begin one for this queue",
            )),
        }
    }

    /// The argument of a kernel on this stream.
    pub(crate) fn on_stream(&self, stream: &hip::Stream) -> Result<StreamArg<'_>, Failure> {
        match (&self.guard, &self.side) {
            (Guard::Hip(guard), Side::Stream(own)) if *own.0 == *stream => Ok(guard.slice().into()),
            (Guard::HipMut { address, .. }, Side::Stream(own)) if *own.0 == *stream => {
                let pointer = std::ptr::with_exposed_provenance_mut::<u8>(*address);
                // SAFETY: the guard's own memory, which it holds exclusively and for as long as it lives. Several launches
                // under one access are in order on its one stream.
                let memory = unsafe { hip::DeviceSliceMut::from_raw_parts(pointer, self.bytes, &own.0) };
                Ok(memory.into())
            }
            _ => Err(Failure::argument(
                "an access among the arguments is for another stream or for a queue; begin one for this stream",
            )),
        }
    }

    fn arg(&self) -> Option<Arg<'_>> {
        match &self.guard {
            Guard::Cl(guard) => Some(guard.arg()),
            Guard::ClMut(guard) => Some(guard.arg()),
            Guard::Hip(_) | Guard::HipMut { .. } => None,
        }
    }

    fn pointer(&self) -> Result<*mut c_void, Failure> {
        match (&self.guard, self.arg()) {
            (Guard::Hip(guard), _) => Ok(guard.slice().as_ptr().cast_mut().cast()),
            (Guard::HipMut { address, .. }, _) => Ok(std::ptr::with_exposed_provenance_mut(*address)),
            (_, Some(Arg::Svm(pointer))) => Ok(pointer.cast_mut()),
            _ => Err(Failure::new(
                HIPCL_ERROR_NOT_SUPPORTED,
                "OpenCL has a buffer object here, not a pointer; use hipcl_access_cl_mem",
            )),
        }
    }

    fn cl_mem(&self) -> Result<*mut _cl_mem, Failure> {
        let object = match &self.guard {
            Guard::Cl(guard) => guard.mem_arg()?,
            Guard::ClMut(guard) => guard.mem_arg()?,
            Guard::Hip(_) | Guard::HipMut { .. } => {
                return Err(Failure::argument(
                    "the access is for a HIP stream; use hipcl_access_pointer, or begin one for a queue",
                ));
            }
        };
        match object {
            Arg::Mem(object) => Ok(object.cast()),
            _ => Err(Failure::new(
                HIPCL_ERROR_NOT_SUPPORTED,
                "OpenCL has a pointer here, not a buffer object; use hipcl_access_pointer",
            )),
        }
    }
}

/// A reference for longer than the compiler can see.
///
/// # Safety
/// The value stays alive and in its place for as long as the result is used.
unsafe fn extended<'a, T>(value: &T) -> &'a T {
    // SAFETY: the caller's promise.
    unsafe { &*std::ptr::from_ref(value) }
}

/// Gives a buffer to an OpenCL queue: work that the caller enqueues on the queue while the access is open runs after all
/// earlier work of either API that conflicts with it. With HIPCL_GRADE_HOST the call waits for that work, otherwise it
/// returns at once. Use the memory only on this queue and only until hipcl_access_end(); the work need not have run by
/// then.
///
/// @param buffer  A buffer.
/// @param queue   A queue of the buffer's bridge.
/// @param mode    HIPCL_ACCESS_READ or HIPCL_ACCESS_WRITE.
/// @param access  Receives the access, which the caller ends with hipcl_access_end(), on any thread.
///
/// Errors: HIPCL_ERROR_BUSY while an access that conflicts is open, HIPCL_ERROR_READ_ONLY, HIPCL_ERROR_ARGUMENT for a
/// queue of another context, HIPCL_ERROR_HANDOFF if earlier work failed or did not end in time.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_access_begin_queue(
    buffer: hipcl_buffer,
    queue: hipcl_queue,
    mode: hipcl_access_mode,
    access: *mut hipcl_access,
) -> hipcl_status {
    call("hipcl_access_begin_queue", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(access, "access") }?;
        let mode = one_of(mode, &MODES, "mode", "HIPCL_ACCESS_READ, HIPCL_ACCESS_WRITE")?;
        let side = Side::Queue(QueueObject::of(queue, "queue")?);
        place.publish(AccessObject::begin(buffer, side, mode)?)
    })
}

/// Gives a buffer to a HIP stream, for kernels and libraries that run on it. Otherwise as hipcl_access_begin_queue().
///
/// @param buffer  A buffer.
/// @param stream  A stream of the buffer's bridge.
/// @param mode    HIPCL_ACCESS_READ or HIPCL_ACCESS_WRITE.
/// @param access  Receives the access, which the caller ends with hipcl_access_end(), on any thread.
///
/// Errors: as hipcl_access_begin_queue().
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_access_begin_stream(
    buffer: hipcl_buffer,
    stream: hipcl_stream,
    mode: hipcl_access_mode,
    access: *mut hipcl_access,
) -> hipcl_status {
    call("hipcl_access_begin_stream", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(access, "access") }?;
        let mode = one_of(mode, &MODES, "mode", "HIPCL_ACCESS_READ, HIPCL_ACCESS_WRITE")?;
        let side = Side::Stream(StreamObject::of(stream, "stream")?);
        place.publish(AccessObject::begin(buffer, side, mode)?)
    })
}

/// The memory of an access as an address: HIP's device pointer on a stream; on a queue, where OpenCL has a pointer, the
/// argument of clSetKernelArgSVMPointer().
///
/// @param access   An open access.
/// @param pointer  Receives the address of the buffer's first byte. Invalid after hipcl_access_end().
///
/// Errors: HIPCL_ERROR_NOT_SUPPORTED on a route where OpenCL has a buffer object.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_access_pointer(access: hipcl_access, pointer: *mut *mut c_void) -> hipcl_status {
    call("hipcl_access_pointer", || {
        // SAFETY: the C caller's place for a pointer.
        let place = unsafe { Out::new(pointer, "pointer") }?;
        place.set(AccessObject::of(access, "access")?.pointer()?);
        Ok(())
    })
}

/// The memory of an access on a queue as a buffer object, for clSetKernelArg() and for libraries that take nothing else:
/// the object itself, or a view of shared virtual memory. An object of an access for reading must not be written.
///
/// @param access   An open access on a queue.
/// @param native   Receives the cl_mem. It belongs to the buffer: do not release it. Invalid after hipcl_access_end().
///
/// Errors: HIPCL_ERROR_ARGUMENT for an access on a stream, HIPCL_ERROR_NOT_SUPPORTED on a route where OpenCL has only a
/// pointer.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_access_cl_mem(access: hipcl_access, native: *mut *mut _cl_mem) -> hipcl_status {
    call("hipcl_access_cl_mem", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(native, "native") }?;
        place.set(AccessObject::of(access, "access")?.cl_mem()?);
        Ok(())
    })
}

/// Ends an access. Work that was enqueued under it may still run; the buffer's next user runs after it. If calls on
/// other threads still use the access, it ends with the last of them.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_access_end(access: hipcl_access) -> hipcl_status {
    destroy::<AccessObject>("hipcl_access_end", access, "access")
}
