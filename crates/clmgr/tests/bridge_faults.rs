//! Copies between contexts before drivers that fail, keep copies or can't be trusted: thin drivers in front of the real
//! one.

mod common;

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use clmgr::opencl_sys::{
    self as sys, cl_bool, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem,
    cl_mem_flags, cl_svm_mem_flags, cl_uint,
};
use clmgr::{
    Api, BridgeRoute, BufferBridge, Context, DeviceKind, Error, Manager, Queue, RegularBuffer, SvmBuffer,
    SvmCapabilities,
};
use common::Last;

fn load(hook: impl Fn(&mut Api)) -> Manager {
    // SAFETY: the tests' functions refuse, or pass on what they are given.
    unsafe { Manager::load_with(hook) }.unwrap_or_else(|error| panic!("{error}"))
}

/// Two contexts of the first device, with a queue each.
fn two_of_one(manager: &Manager) -> ((Context, Queue), (Context, Queue)) {
    let device = manager.devices().remove(0);
    let open = || {
        let context = Context::new(&device).unwrap();
        let queue = context.queue().unwrap();
        (context, queue)
    };
    (open(), open())
}

fn counting(len: usize) -> Vec<u32> {
    (0..len as u32).map(|n| n.wrapping_mul(0x9E37_79B9)).collect()
}

/// A processor that says it is a GPU, and counts the contexts made on it.
mod as_gpu {
    use super::*;

    pub static REAL: Last<Api> = Last::none();
    pub static CONTEXTS: AtomicUsize = AtomicUsize::new(0);

    pub unsafe extern "C" fn device_info(
        device: cl_device_id,
        what: cl_uint,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let real = REAL.get().clGetDeviceInfo.unwrap();
        // SAFETY: the caller's arguments.
        let code = unsafe { real(device, what, size, value, needed) };
        if code == 0 && what == sys::CL_DEVICE_TYPE && !value.is_null() {
            // SAFETY: the answer is a `cl_device_type`, for which the caller gave room.
            unsafe { *value.cast::<u64>() = sys::CL_DEVICE_TYPE_GPU };
        }
        code
    }

    pub unsafe extern "C" fn create_context(
        properties: *const sys::cl_context_properties,
        count: cl_uint,
        devices: *const cl_device_id,
        notify: Option<unsafe extern "C" fn(*const std::ffi::c_char, *const c_void, usize, *mut c_void)>,
        data: *mut c_void,
        code: *mut cl_int,
    ) -> cl_context {
        CONTEXTS.fetch_add(1, Ordering::SeqCst);
        let real = REAL.get().clCreateContext.unwrap();
        // SAFETY: the caller's arguments.
        unsafe { real(properties, count, devices, notify, data, code) }
    }
}

#[test]
fn a_card_that_might_fault_is_not_tried_unasked_and_once_if_asked() {
    let manager = load(|api| {
        as_gpu::REAL.set(*api);
        api.clGetDeviceInfo = Some(as_gpu::device_info);
        api.clCreateContext = Some(as_gpu::create_context);
    });
    let ((_here, from), (_there, to)) = two_of_one(&manager);
    assert_eq!(manager.devices()[0].kind(), DeviceKind::Gpu);
    let made = || as_gpu::CONTEXTS.load(Ordering::SeqCst);
    let before = made();
    let bridge = BufferBridge::new(&from, &to).unwrap();
    assert_eq!(bridge.route(), BridgeRoute::Staging);
    let text = bridge.explain();
    assert!(text.contains("with_trial"), "{text}");
    assert_eq!(made(), before, "something was tried");
    // SAFETY: it is a processor.
    let tried = unsafe { BufferBridge::with_trial(&from, &to) }.unwrap();
    assert_eq!(made(), before + 2, "the trial has contexts of its own");
    // What was found out is known to all, and cost once.
    let known = BufferBridge::new(&from, &to).unwrap();
    assert_eq!(known.route(), tried.route());
    assert!(!known.explain().contains("with_trial"), "{}", known.explain());
    assert_eq!(made(), before + 2);
}

/// A driver that takes any argument, and lets kernels see what each buffer was first filled with.
mod keeps_copies {
    use super::*;

    pub static REAL: Last<Api> = Last::none();
    static FIRST: Mutex<Option<HashMap<usize, Vec<u8>>>> = Mutex::new(None);
    static ARGUMENTS: Mutex<Option<HashMap<(usize, cl_uint), u64>>> = Mutex::new(None);
    pub static COPIES: AtomicUsize = AtomicUsize::new(0);

    pub unsafe extern "C" fn write(
        queue: cl_command_queue,
        memory: cl_mem,
        blocking: cl_bool,
        offset: usize,
        size: usize,
        from: *const c_void,
        waits: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        // SAFETY: the caller's memory of this size.
        let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) }.to_vec();
        let mut first = FIRST.lock().unwrap();
        first.get_or_insert_default().entry(memory.addr()).or_insert(bytes);
        drop(first);
        let real = REAL.get().clEnqueueWriteBuffer.unwrap();
        // SAFETY: the caller's arguments.
        unsafe { real(queue, memory, blocking, offset, size, from, waits, list, event) }
    }

    pub unsafe extern "C" fn set_argument(
        kernel: cl_kernel,
        index: cl_uint,
        size: usize,
        value: *const c_void,
    ) -> cl_int {
        assert_eq!(size, 8, "the kernels take objects and offsets");
        // SAFETY: the caller gives this many bytes.
        let value = unsafe { value.cast::<u64>().read_unaligned() };
        let mut arguments = ARGUMENTS.lock().unwrap();
        arguments.get_or_insert_default().insert((kernel.addr(), index), value);
        0
    }

    pub unsafe extern "C" fn launch(
        queue: cl_command_queue,
        kernel: cl_kernel,
        _: cl_uint,
        _: *const usize,
        global: *const usize,
        _: *const usize,
        waits: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        COPIES.fetch_add(1, Ordering::SeqCst);
        let real = REAL.get();
        let mut name = [0_u8; 16];
        let info = real.clGetKernelInfo.unwrap();
        // SAFETY: there is room for the kernel's name.
        let code = unsafe {
            info(
                kernel,
                sys::CL_KERNEL_FUNCTION_NAME,
                name.len(),
                name.as_mut_ptr().cast(),
                std::ptr::null_mut(),
            )
        };
        assert_eq!(code, 0);
        let unit = match &name[..8] {
            b"copy_16\0" => 16,
            b"copy_4\0\0" | b"copy_4\0\x01" => 4,
            _ => 1,
        };
        let arguments = ARGUMENTS.lock().unwrap();
        let argument = |index| arguments.as_ref().unwrap()[&(kernel.addr(), index)] as usize;
        let (source, source_at) = (argument(0), argument(1) * unit);
        let (target, target_at) = (argument(2), argument(3) * unit);
        // SAFETY: the caller gives one dimension.
        let bytes = unsafe { *global } * unit;
        let first = FIRST.lock().unwrap();
        // The trial writes its pattern 16 bytes into the buffer.
        let kept = &first.as_ref().unwrap()[&source][source_at - 16..][..bytes];
        let write = real.clEnqueueWriteBuffer.unwrap();
        // SAFETY: the objects are alive; the bytes stay until this blocking call returns.
        unsafe {
            write(
                queue,
                std::ptr::with_exposed_provenance_mut(target),
                sys::CL_TRUE,
                target_at,
                bytes,
                kept.as_ptr().cast(),
                waits,
                list,
                event,
            )
        }
    }
}

#[test]
fn a_driver_that_keeps_a_copy_of_the_other_buffer_is_found_out_by_the_second_pattern() {
    let manager = load(|api| {
        keeps_copies::REAL.set(*api);
        api.clEnqueueWriteBuffer = Some(keeps_copies::write);
        api.clSetKernelArg = Some(keeps_copies::set_argument);
        api.clEnqueueNDRangeKernel = Some(keeps_copies::launch);
    });
    let ((_here, from), (_there, to)) = two_of_one(&manager);
    // SAFETY: `keeps_copies` runs no kernel of the driver on the other context's buffer.
    let bridge = unsafe { BufferBridge::with_trial(&from, &to) }.unwrap();
    let text = bridge.explain();
    assert_eq!(bridge.route(), BridgeRoute::Staging, "{text}");
    assert!(text.contains("a pattern did not arrive"), "{text}");
    // Two kernels for each pattern: the first one arrived.
    assert_eq!(keeps_copies::COPIES.load(Ordering::SeqCst), 4);
}

/// A driver whose waits fail on demand, and that notes which pinned buffers are released.
mod fails_waits {
    use super::*;

    pub static REAL: Last<Api> = Last::none();
    pub static FAILS: AtomicBool = AtomicBool::new(false);
    /// Those not released.
    pub static PINNED: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

    pub unsafe extern "C" fn create(
        context: cl_context,
        flags: cl_mem_flags,
        size: usize,
        host: *mut c_void,
        code: *mut cl_int,
    ) -> cl_mem {
        let real = REAL.get().clCreateBuffer.unwrap();
        // SAFETY: the caller's arguments.
        let memory = unsafe { real(context, flags, size, host, code) };
        if flags & sys::CL_MEM_ALLOC_HOST_PTR != 0 {
            let mut pinned = PINNED.lock().unwrap();
            pinned.get_or_insert_default().insert(memory.addr());
        }
        memory
    }

    pub unsafe extern "C" fn release(memory: cl_mem) -> cl_int {
        if let Some(pinned) = PINNED.lock().unwrap().as_mut() {
            pinned.remove(&memory.addr());
        }
        // SAFETY: the caller's reference.
        unsafe { REAL.get().clReleaseMemObject.unwrap()(memory) }
    }

    pub unsafe extern "C" fn wait(count: cl_uint, events: *const cl_event) -> cl_int {
        if FAILS.load(Ordering::SeqCst) {
            return sys::CL_OUT_OF_RESOURCES;
        }
        // SAFETY: the caller's arguments.
        unsafe { REAL.get().clWaitForEvents.unwrap()(count, events) }
    }

    pub fn pinned() -> usize {
        PINNED.lock().unwrap().as_ref().map_or(0, HashSet::len)
    }
}

#[test]
fn memory_of_a_copy_of_unknown_end_is_never_freed() {
    let manager = load(|api| {
        fails_waits::REAL.set(*api);
        api.clCreateBuffer = Some(fails_waits::create);
        api.clReleaseMemObject = Some(fails_waits::release);
        api.clWaitForEvents = Some(fails_waits::wait);
    });
    let ((here, from), (there, to)) = two_of_one(&manager);
    let mut source = RegularBuffer::<u32>::new(&here, 1000).unwrap();
    source.write(&from, &counting(1000)).unwrap();
    let mut target = RegularBuffer::<u32>::new(&there, 1000).unwrap();
    for (fails, left) in [(false, 0), (true, 2)] {
        let bridge = BufferBridge::staged(&from, &to, 512).unwrap();
        let copy = bridge.copy_async(&source, 0, &mut target, 0, 1000).unwrap();
        assert_eq!(fails_waits::pinned(), 2);
        fails_waits::FAILS.store(fails, Ordering::SeqCst);
        let ended = copy.wait();
        fails_waits::FAILS.store(false, Ordering::SeqCst);
        assert_eq!(ended.is_err(), fails, "{ended:?}");
        drop(bridge);
        to.finish().unwrap();
        from.finish().unwrap();
        assert_eq!(fails_waits::pinned(), left, "fails: {fails}");
    }
}

/// A driver that gives no shared virtual memory on demand.
mod lacks_svm {
    use super::*;

    pub static REAL: Last<Api> = Last::none();
    pub static FAILS: AtomicBool = AtomicBool::new(false);

    pub unsafe extern "C" fn allocate(
        context: cl_context,
        flags: cl_svm_mem_flags,
        size: usize,
        alignment: cl_uint,
    ) -> *mut c_void {
        if FAILS.load(Ordering::SeqCst) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's arguments.
        unsafe { REAL.get().clSVMAlloc.unwrap()(context, flags, size, alignment) }
    }
}

#[test]
fn want_of_memory_during_a_trial_is_no_verdict() {
    let manager = load(|api| {
        lacks_svm::REAL.set(*api);
        if api.clSVMAlloc.is_some() {
            api.clSVMAlloc = Some(lacks_svm::allocate);
        }
    });
    let ((here, from), (there, to)) = two_of_one(&manager);
    let device = here.device();
    if device.kind() != DeviceKind::Cpu || !device.svm().contains(SvmCapabilities::COARSE) {
        common::skipped("copies of shared virtual memory between contexts are tried on processors");
        return;
    }
    let bridge = BufferBridge::new(&from, &to).unwrap();
    let mut source = SvmBuffer::<u32>::coarse(&here, 1000).unwrap();
    source.write(&from, &counting(1000)).unwrap();
    let mut target = SvmBuffer::<u32>::coarse(&there, 1000).unwrap();
    lacks_svm::FAILS.store(true, Ordering::SeqCst);
    let refused = bridge.try_copy_svm(&source, &mut target);
    lacks_svm::FAILS.store(false, Ordering::SeqCst);
    assert!(matches!(refused, Err(Error::NotSupported { .. })));
    bridge.try_copy_svm(&source, &mut target).unwrap();
    let mut got = vec![0; 1000];
    target.read(&to, &mut got).unwrap();
    assert_eq!(got, counting(1000));
}
