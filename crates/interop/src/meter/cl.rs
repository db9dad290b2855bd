//! The copy calls of OpenCL.
//!
//! Mapping for reading counts as a copy of the mapped range, and unmapping after a mapping for writing as another: on a
//! discrete device they are copies, and counting them everywhere keeps CPU measurements honest. A migration counts too,
//! wherever the memory was. A buffer over host memory (`CL_MEM_USE_HOST_PTR`) counts as no copy: a route's proof
//! decides whether it is used in place.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use clmgr::Api;
use opencl_sys::*;
use parking_lot::Mutex;

use super::ledger::{Copied, Ledger};
use super::slots::{self, Call, Lease, Outcome, Slot, counted_table};

impl Outcome for cl_int {
    const MISSING: Self = CL_INVALID_OPERATION;

    fn is_success(&self) -> bool {
        *self == CL_SUCCESS
    }
}

/// A mapping call returns the address, a call that creates an object its handle.
impl Outcome for *mut c_void {
    const MISSING: Self = std::ptr::null_mut();

    fn is_success(&self) -> bool {
        !self.is_null()
    }
}

impl Outcome for () {
    const MISSING: Self = ();

    fn is_success(&self) -> bool {
        true
    }
}

/// Sizes that a later call does not carry.
#[derive(Default)]
pub(super) struct Sizes {
    /// Bytes mapped for writing, by mapped address.
    mapped: Mutex<HashMap<usize, usize>>,
    /// For shared virtual memory, by its address.
    svm: Mutex<HashMap<usize, usize>>,
}

/// # Safety
/// `region` points to three sizes or is null.
unsafe fn volume(region: *const usize) -> usize {
    if region.is_null() {
        return 0;
    }
    // SAFETY: three sizes, by this function's contract.
    unsafe { std::slice::from_raw_parts(region, 3) }
        .iter()
        .fold(1, |all, size| all.saturating_mul(*size))
}

type FreeFunction = Option<unsafe extern "C" fn(cl_command_queue, cl_uint, *mut *mut c_void, *mut c_void)>;

counted_table! {
    64 slots: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
              32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63;

    copies {
        clEnqueueReadBuffer(queue: cl_command_queue, mem: cl_mem, blocking: cl_bool, offset: usize, bytes: usize, ptr: *mut c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int, |it| it.copied(bytes);
        clEnqueueWriteBuffer(queue: cl_command_queue, mem: cl_mem, blocking: cl_bool, offset: usize, bytes: usize, ptr: *const c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int, |it| it.copied(bytes);
        clEnqueueCopyBuffer(queue: cl_command_queue, from: cl_mem, to: cl_mem, from_offset: usize, to_offset: usize, bytes: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int, |it| it.copied(bytes);
        clEnqueueSVMMemcpy(queue: cl_command_queue, blocking: cl_bool, dst: *mut c_void, src: *const c_void, bytes: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int, |it| it.copied(bytes);
        clEnqueueReadBufferRect(queue: cl_command_queue, mem: cl_mem, blocking: cl_bool, origin: *const usize, host_origin: *const usize, region: *const usize, row: usize, slice: usize, host_row: usize, host_slice: usize, ptr: *mut c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            // SAFETY: OpenCL accepted the call, so the region holds three sizes.
            |it| it.copied(unsafe { volume(region) });
        clEnqueueWriteBufferRect(queue: cl_command_queue, mem: cl_mem, blocking: cl_bool, origin: *const usize, host_origin: *const usize, region: *const usize, row: usize, slice: usize, host_row: usize, host_slice: usize, ptr: *const c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            // SAFETY: OpenCL accepted the call, so the region holds three sizes.
            |it| it.copied(unsafe { volume(region) });
        clEnqueueCopyBufferRect(queue: cl_command_queue, from: cl_mem, to: cl_mem, origin: *const usize, to_origin: *const usize, region: *const usize, row: usize, slice: usize, to_row: usize, to_slice: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            // SAFETY: OpenCL accepted the call, so the region holds three sizes.
            |it| it.copied(unsafe { volume(region) });
        clEnqueueReadImage(queue: cl_command_queue, image: cl_mem, blocking: cl_bool, origin: *const usize, region: *const usize, row: usize, slice: usize, ptr: *mut c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            // SAFETY: OpenCL accepted the call, so the image is one and the region holds three sizes.
            |it| it.copied(unsafe { it.of_region(image, region) });
        clEnqueueWriteImage(queue: cl_command_queue, image: cl_mem, blocking: cl_bool, origin: *const usize, region: *const usize, row: usize, slice: usize, ptr: *const c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            // SAFETY: OpenCL accepted the call, so the image is one and the region holds three sizes.
            |it| it.copied(unsafe { it.of_region(image, region) });
        clEnqueueCopyImage(queue: cl_command_queue, from: cl_mem, to: cl_mem, origin: *const usize, to_origin: *const usize, region: *const usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            // SAFETY: OpenCL accepted the call, so the image is one and the region holds three sizes.
            |it| it.copied(unsafe { it.of_region(from, region) });
        clEnqueueCopyImageToBuffer(queue: cl_command_queue, image: cl_mem, to: cl_mem, origin: *const usize, region: *const usize, offset: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            // SAFETY: OpenCL accepted the call, so the image is one and the region holds three sizes.
            |it| it.copied(unsafe { it.of_region(image, region) });
        clEnqueueCopyBufferToImage(queue: cl_command_queue, from: cl_mem, image: cl_mem, offset: usize, origin: *const usize, region: *const usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            // SAFETY: OpenCL accepted the call, so the image is one and the region holds three sizes.
            |it| it.copied(unsafe { it.of_region(image, region) });
        clEnqueueMigrateMemObjects(queue: cl_command_queue, count: cl_uint, objects: *const cl_mem, flags: cl_mem_migration_flags, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            // SAFETY: OpenCL accepted the call, so there are as many objects.
            |it| it.migrated(flags, || unsafe { it.of_objects(objects, count) });
        clEnqueueSVMMigrateMem(queue: cl_command_queue, count: cl_uint, pointers: *mut *const c_void, sizes: *const usize, flags: cl_mem_migration_flags, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            // SAFETY: OpenCL accepted the call, so there are as many pointers and, if any, sizes.
            |it| it.migrated(flags, || unsafe { it.of_pointers(pointers, sizes, count) });
    }

    watched {
        clEnqueueSVMMap(queue: cl_command_queue, blocking: cl_bool, flags: cl_map_flags, ptr: *mut c_void, bytes: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            |it, call| it.after(call(), || it.mapped(ptr, flags, bytes));
        clEnqueueSVMUnmap(queue: cl_command_queue, ptr: *mut c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            |it, call| it.unmapped(ptr, call);
        clEnqueueMapBuffer(queue: cl_command_queue, mem: cl_mem, blocking: cl_bool, flags: cl_map_flags, offset: usize, bytes: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event, status: *mut cl_int) -> *mut c_void,
            |it, call| { let ptr = call(); it.after(ptr, || it.mapped(ptr, flags, bytes)) };
        clEnqueueMapImage(queue: cl_command_queue, image: cl_mem, blocking: cl_bool, flags: cl_map_flags, origin: *const usize, region: *const usize, row: *mut usize, slice: *mut usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event, status: *mut cl_int) -> *mut c_void,
            // SAFETY: OpenCL accepted the call, so the image is one and the region holds three sizes.
            |it, call| { let ptr = call(); it.after(ptr, || it.mapped(ptr, flags, unsafe { it.of_region(image, region) })) };
        clEnqueueUnmapMemObject(queue: cl_command_queue, mem: cl_mem, ptr: *mut c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
            |it, call| it.unmapped(ptr, call);

        clCreateBuffer(context: cl_context, flags: cl_mem_flags, bytes: usize, ptr: *mut c_void, status: *mut cl_int) -> cl_mem,
            |it, call| it.after(call(), || it.created(flags, || bytes));
        clCreateBufferWithProperties(context: cl_context, properties: *const cl_mem_properties, flags: cl_mem_flags, bytes: usize, ptr: *mut c_void, status: *mut cl_int) -> cl_mem,
            |it, call| it.after(call(), || it.created(flags, || bytes));
        clCreateImage(context: cl_context, flags: cl_mem_flags, format: *const cl_image_format, image: *const cl_image_desc, ptr: *mut c_void, status: *mut cl_int) -> cl_mem,
            |it, call| { let mem = call(); it.after(mem, || it.created(flags, || it.of_object(mem))) };
        clCreateImageWithProperties(context: cl_context, properties: *const cl_mem_properties, flags: cl_mem_flags, format: *const cl_image_format, image: *const cl_image_desc, ptr: *mut c_void, status: *mut cl_int) -> cl_mem,
            |it, call| { let mem = call(); it.after(mem, || it.created(flags, || it.of_object(mem))) };
        clCreateImage2D(context: cl_context, flags: cl_mem_flags, format: *const cl_image_format, width: usize, height: usize, row: usize, ptr: *mut c_void, status: *mut cl_int) -> cl_mem,
            |it, call| { let mem = call(); it.after(mem, || it.created(flags, || it.of_object(mem))) };
        clCreateImage3D(context: cl_context, flags: cl_mem_flags, format: *const cl_image_format, width: usize, height: usize, depth: usize, row: usize, slice: usize, ptr: *mut c_void, status: *mut cl_int) -> cl_mem,
            |it, call| { let mem = call(); it.after(mem, || it.created(flags, || it.of_object(mem))) };

        clSVMAlloc(context: cl_context, flags: cl_svm_mem_flags, bytes: usize, alignment: cl_uint) -> *mut c_void,
            |it, call| { let ptr = call(); it.after(ptr, || { it.ledger.sizes.svm.lock().insert(ptr as usize, bytes); }) };
        clSVMFree(context: cl_context, ptr: *mut c_void) -> (), |it, call| {
            // Before another allocation can reuse the address.
            it.ledger.sizes.svm.lock().remove(&(ptr as usize));
            call()
        };
        clEnqueueSVMFree(queue: cl_command_queue, count: cl_uint, pointers: *mut *mut c_void, free: FreeFunction, data: *mut c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int, |it, call| {
            if !pointers.is_null() {
                for index in 0..count as usize {
                    // SAFETY: the caller promises as many pointers.
                    let ptr = unsafe { pointers.add(index).read_unaligned() };
                    it.ledger.sizes.svm.lock().remove(&(ptr as usize));
                }
            }
            call()
        };
    }

    /// What moves data, or seems to, and is not counted.
    excluded {
        clEnqueueFillBuffer clEnqueueFillImage clEnqueueSVMMemFill: "a fill writes a constant and reads no data";
        clCreateSubBuffer: "a sub-buffer shares the memory of its buffer";
        clCreatePipe: "a pipe begins empty";
        clEnqueueNDRangeKernel clEnqueueTask clEnqueueNativeKernel: "a kernel's memory accesses are its work";
        clGetImageInfo clGetSupportedImageFormats: "a question";
    }
}

impl Call<'_, Api> {
    fn copied(&self, bytes: usize) {
        self.ledger.add(&Copied::now(self.function, bytes));
    }

    fn mapped(&self, ptr: *mut c_void, flags: cl_map_flags, bytes: usize) {
        let is_new = flags & CL_MAP_WRITE_INVALIDATE_REGION != 0;
        if !is_new {
            self.copied(bytes);
        }
        let mut mapped = self.ledger.sizes.mapped.lock();
        if is_new || flags & CL_MAP_WRITE != 0 {
            mapped.insert(ptr as usize, bytes);
        } else {
            // From memory that was released while mapped.
            mapped.remove(&(ptr as usize));
        }
    }

    fn unmapped(&self, ptr: *mut c_void, call: impl FnOnce() -> cl_int) -> cl_int {
        // Before another mapping can reuse the address.
        let written = self.ledger.sizes.mapped.lock().remove(&(ptr as usize));
        let status = call();
        if let Some(bytes) = written {
            if status.is_success() {
                self.copied(bytes);
            } else {
                let mut mapped = self.ledger.sizes.mapped.lock();
                mapped.insert(ptr as usize, bytes);
            }
        }
        status
    }

    fn created(&self, flags: cl_mem_flags, bytes: impl FnOnce() -> usize) {
        if flags & CL_MEM_COPY_HOST_PTR != 0 {
            self.copied(bytes());
        }
    }

    fn migrated(&self, flags: cl_mem_migration_flags, bytes: impl FnOnce() -> usize) {
        if flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED == 0 {
            self.copied(bytes());
        }
    }

    fn of_object(&self, object: cl_mem) -> usize {
        let mut bytes = 0_usize;
        if let Some(ask) = self.table.clGetMemObjectInfo {
            let room = (&raw mut bytes).cast();
            // SAFETY: an object that OpenCL has just made or used; there is room for the size.
            let _ = unsafe { ask(object, CL_MEM_SIZE, size_of::<usize>(), room, std::ptr::null_mut()) };
        }
        bytes
    }

    /// # Safety
    /// `image` is one, and `region` points to three sizes.
    unsafe fn of_region(&self, image: cl_mem, region: *const usize) -> usize {
        let mut element = 0_usize;
        if let Some(ask) = self.table.clGetImageInfo {
            let room = (&raw mut element).cast();
            // SAFETY: an image, by this function's contract; there is room for the size.
            let _ = unsafe {
                ask(
                    image,
                    CL_IMAGE_ELEMENT_SIZE,
                    size_of::<usize>(),
                    room,
                    std::ptr::null_mut(),
                )
            };
        }
        // SAFETY: this function's contract.
        let elements = unsafe { volume(region) };
        // The widest element, if the image does not report it: overcounting beats undercounting.
        elements.saturating_mul(if element == 0 { 16 } else { element })
    }

    /// # Safety
    /// `objects` points to `count` handles.
    unsafe fn of_objects(&self, objects: *const cl_mem, count: cl_uint) -> usize {
        // SAFETY: this function's contract.
        let object = |index| unsafe { objects.add(index).read_unaligned() };
        (0..count as usize)
            .map(|index| self.of_object(object(index)))
            .fold(0, usize::saturating_add)
    }

    /// # Safety
    /// `pointers` points to `count` addresses, and `sizes`, unless it is null, to as many sizes.
    unsafe fn of_pointers(&self, pointers: *const *const c_void, sizes: *const usize, count: cl_uint) -> usize {
        let svm = self.ledger.sizes.svm.lock();
        let bytes = |index| {
            let size = match sizes.is_null() {
                true => 0,
                // SAFETY: this function's contract.
                false => unsafe { sizes.add(index).read_unaligned() },
            };
            // SAFETY: this function's contract.
            let ptr = unsafe { pointers.add(index).read_unaligned() } as usize;
            // 0 means the whole allocation.
            match size {
                0 => svm.get(&ptr).copied().unwrap_or_default(),
                size => size,
            }
        };
        (0..count as usize).map(bytes).fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_that_copies_is_counted_or_excluded_with_a_reason() {
        let moves = |symbol: &str| {
            let words = [
                "Enqueue",
                "CreateBuffer",
                "CreateSubBuffer",
                "Image",
                "Pipe",
                "SVMAlloc",
                "SVMFree",
            ];
            let orders = ["Marker", "Barrier", "WaitForEvents"];
            words.iter().any(|word| symbol.contains(word))
                && !orders.iter().any(|word| symbol.contains(word))
                && symbol != "clGetPipeInfo"
        };
        slots::check_lists(Api::SYMBOLS, COUNTED, EXCLUDED, moves);
    }
}
