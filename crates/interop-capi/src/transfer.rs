//! Bytes of buffers from and to the host, fills and copies.

use std::ffi::c_void;

use clmgr::Event;

use crate::buffer::{BufferReader, BufferWriter, hipcl_buffer, not_null};
use crate::call::{Out, call, optional_out, slice, slice_mut};
use crate::event::{EventObject, hipcl_event};
use crate::failure::Failure;
use crate::handle::Object;
use crate::queue::{QueueObject, hipcl_queue};
use crate::status::hipcl_status;

/// Fills the whole buffer from host memory, after all work that uses it. Returns when the bytes have arrived. Counted as
/// input.
///
/// @param buffer  A buffer.
/// @param data    The bytes.
/// @param bytes   Their number: the buffer's length.
///
/// Errors: HIPCL_ERROR_BUSY while an access is open, HIPCL_ERROR_ARGUMENT for another length than the buffer's,
/// HIPCL_ERROR_READ_ONLY, HIPCL_ERROR_HANDOFF, and what the drivers refuse.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_upload(buffer: hipcl_buffer, data: *const c_void, bytes: usize) -> hipcl_status {
    call("hipcl_buffer_upload", || {
        let mut memory = BufferWriter::of(buffer, "buffer")?;
        same_length(bytes, memory.len())?;
        // SAFETY: the C caller's bytes.
        let data = unsafe { slice::<u8>(data.cast(), bytes, "data") }?;
        Ok(memory.upload(data)?)
    })
}

/// Copies the whole buffer to host memory, after all work that writes it. Returns when the bytes have arrived. Counted
/// as result.
///
/// @param buffer  A buffer.
/// @param data    Receives the bytes.
/// @param bytes   Their number: the buffer's length.
///
/// Errors: HIPCL_ERROR_BUSY while an access for writing is open, HIPCL_ERROR_ARGUMENT for another length than the
/// buffer's, HIPCL_ERROR_HANDOFF, and what the drivers refuse.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_download(buffer: hipcl_buffer, data: *mut c_void, bytes: usize) -> hipcl_status {
    call("hipcl_buffer_download", || {
        let memory = BufferReader::of(buffer, "buffer")?;
        same_length(bytes, memory.len())?;
        // SAFETY: the C caller's memory.
        let data = unsafe { slice_mut(data, bytes, "data") }?;
        Ok(memory.download(data)?)
    })
}

/// Fills a part of the buffer from host memory, after all work that uses the buffer. Returns when the bytes have arrived.
/// Counted as input.
///
/// @param buffer  A buffer.
/// @param offset  Where the part begins, in bytes.
/// @param data    The bytes.
/// @param bytes   Their number, at least 1.
///
/// Errors: HIPCL_ERROR_ARGUMENT for a part that is empty or not within the buffer, otherwise as hipcl_buffer_upload().
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_upload_at(
    buffer: hipcl_buffer,
    offset: usize,
    data: *const c_void,
    bytes: usize,
) -> hipcl_status {
    call("hipcl_buffer_upload_at", || {
        let mut memory = BufferWriter::of(buffer, "buffer")?;
        check_part(offset, bytes, memory.len())?;
        // SAFETY: the C caller's bytes.
        let data = unsafe { slice::<u8>(data.cast(), bytes, "data") }?;
        Ok(memory.upload_at(offset, data)?)
    })
}

/// Copies a part of the buffer to host memory, after all work that writes the buffer. Returns when the bytes have arrived.
/// Counted as result.
///
/// @param buffer  A buffer.
/// @param offset  Where the part begins, in bytes.
/// @param data    Receives the bytes.
/// @param bytes   Their number, at least 1.
///
/// Errors: HIPCL_ERROR_ARGUMENT for a part that is empty or not within the buffer, otherwise as hipcl_buffer_download().
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_download_at(
    buffer: hipcl_buffer,
    offset: usize,
    data: *mut c_void,
    bytes: usize,
) -> hipcl_status {
    call("hipcl_buffer_download_at", || {
        let memory = BufferReader::of(buffer, "buffer")?;
        check_part(offset, bytes, memory.len())?;
        // SAFETY: the C caller's memory.
        let data = unsafe { slice_mut(data, bytes, "data") }?;
        Ok(memory.download_at(offset, data)?)
    })
}

/// Enqueues a copy from host memory to a part of the buffer and returns without waiting for it. It runs after all earlier
/// work that uses the buffer, on either side, and before all later work. Counted as input.
///
/// Nothing changes the host memory before the copy has ended: wait for the event, or for the queue. So it is if the call
/// fails with HIPCL_ERROR_OPENCL, too: wait for the queue.
///
/// @param buffer  A buffer.
/// @param queue   A queue of its bridge.
/// @param offset  Where the part begins, in bytes.
/// @param data    The bytes.
/// @param bytes   Their number, at least 1.
/// @param event   Receives the event of the copy, which the caller destroys with hipcl_event_destroy(). May be null.
///
/// Errors: HIPCL_ERROR_ARGUMENT for a part that is empty or not within the buffer, and for a queue of another context;
/// HIPCL_ERROR_BUSY while an access is open, HIPCL_ERROR_READ_ONLY, HIPCL_ERROR_HANDOFF, HIPCL_ERROR_NOT_SUPPORTED for
/// memory that is HIP's, which OpenCL's copies do not know: use hipcl_buffer_upload_at().
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_upload_on_queue(
    buffer: hipcl_buffer,
    queue: hipcl_queue,
    offset: usize,
    data: *const c_void,
    bytes: usize,
    event: *mut hipcl_event,
) -> hipcl_status {
    call("hipcl_buffer_upload_on_queue", || {
        // SAFETY: null or the C caller's place for a handle.
        let place = unsafe { optional_out(event, "event") }?;
        let queue = QueueObject::of(queue, "queue")?;
        let mut memory = BufferWriter::of(buffer, "buffer")?;
        check_part(offset, bytes, memory.len())?;
        not_null(data.is_null(), "data")?;
        // SAFETY: the C caller's bytes, which stay until the event has ended by the header's demand.
        let event = unsafe { memory.upload_async(&queue.0, offset, data.cast(), bytes) }?;
        publish(place, event)
    })
}

/// Enqueues a copy from a part of the buffer to host memory and returns without waiting for it. It runs after all earlier
/// work that writes the buffer, on either side, and before all later writers. Counted as result.
///
/// Nothing uses the host memory before the copy has ended: wait for the event, or for the queue. So it is if the call
/// fails with HIPCL_ERROR_OPENCL, too: wait for the queue. That earlier work failed is told by the next access to the
/// buffer, or by hipcl_buffer_download().
///
/// @param buffer  A buffer.
/// @param queue   A queue of its bridge.
/// @param offset  Where the part begins, in bytes.
/// @param data    Receives the bytes.
/// @param bytes   Their number, at least 1.
/// @param event   Receives the event of the copy, which the caller destroys with hipcl_event_destroy(). May be null.
///
/// Errors: as hipcl_buffer_upload_on_queue(), but HIPCL_ERROR_BUSY only while an access for writing is open; for memory
/// that is HIP's use hipcl_buffer_download_at().
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_download_on_queue(
    buffer: hipcl_buffer,
    queue: hipcl_queue,
    offset: usize,
    data: *mut c_void,
    bytes: usize,
    event: *mut hipcl_event,
) -> hipcl_status {
    call("hipcl_buffer_download_on_queue", || {
        // SAFETY: null or the C caller's place for a handle.
        let place = unsafe { optional_out(event, "event") }?;
        let queue = QueueObject::of(queue, "queue")?;
        let memory = BufferReader::of(buffer, "buffer")?;
        check_part(offset, bytes, memory.len())?;
        not_null(data.is_null(), "data")?;
        // SAFETY: the C caller's memory, which is left alone until the event has ended by the header's demand.
        let event = unsafe { memory.download_async(&queue.0, offset, data.cast(), bytes) }?;
        publish(place, event)
    })
}

/// Enqueues a kernel that writes a pattern again and again, and returns without waiting for it. It is ordered as
/// hipcl_buffer_upload_on_queue(), and works with memory of every route. It moves no data, and is not counted.
///
/// @param buffer         A buffer.
/// @param queue          A queue of its bridge.
/// @param offset         Where the part begins, in bytes.
/// @param bytes          Its length in bytes: a multiple of `pattern_bytes`, at least 1.
/// @param pattern        The pattern, which is copied.
/// @param pattern_bytes  Its length in bytes: 1, 2, 4, 8 or 16.
/// @param event          Receives the event, which the caller destroys with hipcl_event_destroy(). May be null.
///
/// Errors: HIPCL_ERROR_ARGUMENT for a part or a pattern that does not fit, otherwise as hipcl_buffer_upload_on_queue().
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_fill_on_queue(
    buffer: hipcl_buffer,
    queue: hipcl_queue,
    offset: usize,
    bytes: usize,
    pattern: *const c_void,
    pattern_bytes: usize,
    event: *mut hipcl_event,
) -> hipcl_status {
    call("hipcl_buffer_fill_on_queue", || {
        // SAFETY: null or the C caller's place for a handle.
        let place = unsafe { optional_out(event, "event") }?;
        let queue = QueueObject::of(queue, "queue")?;
        let mut memory = BufferWriter::of(buffer, "buffer")?;
        check_part(offset, bytes, memory.len())?;
        if !matches!(pattern_bytes, 1 | 2 | 4 | 8 | 16) {
            return Err(Failure::argument(format!(
                "`pattern_bytes` is {pattern_bytes}; use 1, 2, 4, 8 or 16"
            )));
        }
        // SAFETY: the C caller's bytes.
        let pattern = unsafe { slice::<u8>(pattern.cast(), pattern_bytes, "pattern") }?;
        publish(place, memory.fill(&queue.0, offset..offset + bytes, pattern)?)
    })
}

/// Enqueues a kernel that copies a part of one buffer to another, and returns without waiting for it. It runs after all
/// earlier work that uses the target or writes the source, and before all later work that conflicts. It works with memory
/// of every route. Counted as a copy of the data set.
///
/// @param target         The buffer to write, another one than the source.
/// @param target_offset  Where the bytes go, in bytes.
/// @param source         The buffer to read, of the same bridge.
/// @param source_offset  Where they come from, in bytes.
/// @param bytes          Their number, at least 1.
/// @param queue          A queue of the bridge.
/// @param event          Receives the event, which the caller destroys with hipcl_event_destroy(). May be null.
///
/// Errors: HIPCL_ERROR_BUSY if the two are one buffer, HIPCL_ERROR_ARGUMENT for a part that does not fit and for two buffers
/// over the same memory, otherwise as hipcl_buffer_upload_on_queue() for the target and
/// hipcl_buffer_download_on_queue() for the source.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_buffer_copy_on_queue(
    target: hipcl_buffer,
    target_offset: usize,
    source: hipcl_buffer,
    source_offset: usize,
    bytes: usize,
    queue: hipcl_queue,
    event: *mut hipcl_event,
) -> hipcl_status {
    call("hipcl_buffer_copy_on_queue", || {
        // SAFETY: null or the C caller's place for a handle.
        let place = unsafe { optional_out(event, "event") }?;
        let queue = QueueObject::of(queue, "queue")?;
        let from = BufferReader::of(source, "source")?;
        let mut to = BufferWriter::of(target, "target")?;
        check_part(source_offset, bytes, from.len())?;
        check_part(target_offset, bytes, to.len())?;
        let range = source_offset..source_offset + bytes;
        publish(place, to.copy_from(&queue.0, target_offset, &from, range)?)
    })
}

fn publish(place: Option<Out<hipcl_event>>, event: Event) -> Result<(), Failure> {
    match place {
        Some(place) => place.publish(EventObject(event)),
        None => Ok(()),
    }
}

fn same_length(given: usize, expected: usize) -> Result<(), Failure> {
    match given == expected {
        true => Ok(()),
        false => Err(Failure::argument(format!(
            "`bytes` is {given}; the buffer has {expected} bytes"
        ))),
    }
}

fn check_part(offset: usize, bytes: usize, len: usize) -> Result<(), Failure> {
    match offset.checked_add(bytes) {
        _ if bytes == 0 => Err(Failure::argument("`bytes` is 0; pass a part of at least 1 byte")),
        Some(end) if end <= len => Ok(()),
        _ => Err(Failure::argument(format!(
            "{bytes} bytes from {offset} on are not within the buffer, which has {len} bytes"
        ))),
    }
}
