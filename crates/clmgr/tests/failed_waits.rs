//! Memory that could not be unmapped, or whose use could not be waited for, is not freed: a driver in front of the real
//! one fails the calls.

mod common;

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::OnceLock;

use clmgr::opencl_sys::{CL_OUT_OF_RESOURCES, cl_command_queue, cl_context, cl_event, cl_int, cl_mem, cl_uint};
use clmgr::{Api, BoxLayout, Context, HostPtrBuffer, Manager, Queue, SvmBuffer, SvmCapabilities};

static REAL: OnceLock<Api> = OnceLock::new();

// Each test's own.
thread_local! {
    /// How many of the next calls that unmap fail.
    static UNMAPS_TO_FAIL: Cell<u32> = const { Cell::new(0) };
    static UNMAPS: Cell<u32> = const { Cell::new(0) };
    static WAITS_TO_FAIL: Cell<u32> = const { Cell::new(0) };
    static WAITS: Cell<u32> = const { Cell::new(0) };
    static FREES: Cell<u32> = const { Cell::new(0) };
    static RELEASES: Cell<u32> = const { Cell::new(0) };
}

/// Counts a call; whether it is to fail.
fn fails(calls: &'static std::thread::LocalKey<Cell<u32>>, left: &'static std::thread::LocalKey<Cell<u32>>) -> bool {
    calls.set(calls.get() + 1);
    let failures = left.get();
    left.set(failures.saturating_sub(1));
    failures > 0
}

fn real() -> &'static Api {
    REAL.get().unwrap()
}

unsafe extern "C" fn unmap_svm(
    queue: cl_command_queue,
    memory: *mut c_void,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    if fails(&UNMAPS, &UNMAPS_TO_FAIL) {
        return CL_OUT_OF_RESOURCES;
    }
    // SAFETY: the caller's arguments.
    unsafe { real().clEnqueueSVMUnmap.unwrap()(queue, memory, waits, list, event) }
}

unsafe extern "C" fn unmap_object(
    queue: cl_command_queue,
    object: cl_mem,
    memory: *mut c_void,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    if fails(&UNMAPS, &UNMAPS_TO_FAIL) {
        return CL_OUT_OF_RESOURCES;
    }
    // SAFETY: the caller's arguments.
    unsafe { real().clEnqueueUnmapMemObject.unwrap()(queue, object, memory, waits, list, event) }
}

unsafe extern "C" fn finish(queue: cl_command_queue) -> cl_int {
    // SAFETY: the caller's queue. It is waited for in any case, so that nothing runs when memory is freed.
    let code = unsafe { real().clFinish.unwrap()(queue) };
    match fails(&WAITS, &WAITS_TO_FAIL) {
        true => CL_OUT_OF_RESOURCES,
        false => code,
    }
}

unsafe extern "C" fn free_svm(context: cl_context, memory: *mut c_void) {
    FREES.set(FREES.get() + 1);
    // SAFETY: the caller's arguments.
    unsafe { real().clSVMFree.unwrap()(context, memory) }
}

unsafe extern "C" fn release_object(object: cl_mem) -> cl_int {
    RELEASES.set(RELEASES.get() + 1);
    // SAFETY: the caller's reference.
    unsafe { real().clReleaseMemObject.unwrap()(object) }
}

fn queue() -> (Context, Queue) {
    let fail = |api: &mut Api| {
        let _ = REAL.set(*api);
        api.clEnqueueSVMUnmap = Some(unmap_svm);
        api.clEnqueueUnmapMemObject = Some(unmap_object);
        api.clFinish = Some(finish);
        api.clSVMFree = Some(free_svm);
        api.clReleaseMemObject = Some(release_object);
    };
    // SAFETY: the functions pass everything on, or fail.
    let manager = unsafe { Manager::load_with(fail) }.unwrap_or_else(|error| panic!("{error}"));
    let context = Context::new(&manager.devices()[0]).unwrap();
    let queue = context.queue().unwrap();
    (context, queue)
}

#[test]
fn shared_memory_that_could_not_be_unmapped_is_not_freed() {
    let (context, queue) = queue();
    if !common::has(&context, SvmCapabilities::COARSE) {
        return;
    }
    // The guard tries, then the drop.
    for (failures, frees) in [(2, 0), (1, 1), (0, 1)] {
        let buffer = SvmBuffer::<u32>::coarse(&context, 64).unwrap();
        let map = buffer.map(&queue).unwrap();
        UNMAPS_TO_FAIL.set(failures);
        assert_eq!(map.unmap().is_err(), failures > 0);
        FREES.set(0);
        drop(buffer);
        assert_eq!(FREES.get(), frees, "{failures} failures");
        assert_eq!(queue.finish().is_err(), failures > 1);
    }
}

#[test]
fn a_buffer_whose_map_did_not_end_ends_it_before_its_next_use() {
    let (context, queue) = queue();
    let mut buffer = HostPtrBuffer::<u32>::new(&context, 64).unwrap();
    UNMAPS_TO_FAIL.set(2);
    let mut map = buffer.map_mut(&queue).unwrap();
    map[0] = 7;
    map.unmap().unwrap_err();
    let mut words = [0; 64];
    buffer.read(&queue, &mut words).unwrap_err();
    UNMAPS.set(0);
    buffer.read(&queue, &mut words).unwrap();
    assert_eq!((UNMAPS.get(), words[0]), (1, 7));
    drop(buffer);
    assert_eq!(UNMAPS.get(), 1);
}

#[test]
fn a_part_that_could_not_be_unmapped_is_not_released() {
    let (context, queue) = queue();
    for (failures, releases) in [(3, 1), (1, 2)] {
        let align = context.device().sub_buffer_alignment();
        let buffer = HostPtrBuffer::<u8>::new(&context, 2 * align).unwrap();
        let part = buffer.part(align..2 * align).unwrap();
        let map = part.map(&queue).unwrap();
        UNMAPS_TO_FAIL.set(failures);
        RELEASES.set(0);
        drop(map);
        drop(part);
        // The buffer tries too, and keeps its pages; OpenCL keeps the object for the part.
        drop(buffer);
        UNMAPS_TO_FAIL.set(0);
        assert_eq!(RELEASES.get(), releases, "{failures} failures");
        queue.finish().unwrap_err();
    }
}

#[test]
fn a_write_that_could_not_be_waited_for_is_waited_for_when_its_memory_is_dropped() {
    let (context, queue) = queue();
    let write = |buffer: &mut HostPtrBuffer<u32>| buffer.write(&queue, &[1; 64]);
    let write_box = |buffer: &mut HostPtrBuffer<u32>| {
        let extent = [8, 8, 1];
        let layout = BoxLayout::dense(extent);
        buffer.write_box(&queue, extent, layout, &[1; 64], layout)
    };
    type Write<'a> = &'a dyn Fn(&mut HostPtrBuffer<u32>) -> clmgr::Result<()>;
    let writes: [Write<'_>; 2] = [&write, &write_box];
    for write in writes {
        let mut buffer = HostPtrBuffer::new(&context, 64).unwrap();
        WAITS_TO_FAIL.set(1);
        write(&mut buffer).unwrap_err();
        WAITS.set(0);
        drop(buffer);
        assert_eq!(WAITS.get(), 1, "the pages were freed without a wait");
    }
}
