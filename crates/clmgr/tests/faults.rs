//! Every driver call may fail: then the caller gets an error, nothing panics and nothing leaks.
//!
//! A thin driver stands in front of the real one. It counts references, and makes one call fail.

mod common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clmgr::opencl_sys::{
    cl_bool, cl_command_queue, cl_context, cl_context_properties, cl_device_id, cl_event, cl_function_types as types,
    cl_int, cl_kernel, cl_mem, cl_program, cl_uint,
};
use clmgr::{
    Api, Arg, BoxLayout, BridgeRoute, BufferBridge, BufferStrategy, Context, Error, ExternalBuffer, HostPtrBuffer,
    Kernel, Manager, MemoryPool, NdRange, Needs, Program, Queue, RegularBuffer, Result, SvmBuffer, SvmCapabilities,
    SvmGrain, UserEvent,
};

/// The code of an injected failure, which no driver gives.
const INJECTED: cl_int = -777;

/// Calls that may fail, since the last reset.
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// The number of the call that fails.
static FAILS: AtomicUsize = AtomicUsize::new(usize::MAX);
static FAILED: Mutex<&str> = Mutex::new("");
/// References to objects and allocations.
static LIVE: AtomicI64 = AtomicI64::new(0);

fn fails_now(name: &'static str) -> bool {
    let fails = CALLS.fetch_add(1, Ordering::SeqCst) == FAILS.load(Ordering::SeqCst);
    if fails {
        *FAILED.lock().unwrap() = name;
    }
    fails
}

/// Puts functions in front of those of a table. `code` functions answer with a code, `handle`
/// functions give an object and write a code, `release` functions never fail.
macro_rules! driver {
    ($($kind:ident $name:ident: $ty:ident($($arg:ident: $arg_ty:ty),*);)*) => {
        fn install(api: &mut Api) {
            $({
                static REAL: Mutex<types::$ty> = Mutex::new(None);
                driver!(@$kind $name($($arg: $arg_ty),*));
                if api.$name.is_some() {
                    *REAL.lock().unwrap() = api.$name;
                    api.$name = Some(wrapper);
                }
            })*
        }
    };
    (@code $name:ident($($arg:ident: $arg_ty:ty),*)) => {
        unsafe extern "C" fn wrapper($($arg: $arg_ty),*) -> cl_int {
            if fails_now(stringify!($name)) {
                return INJECTED;
            }
            let real = REAL.lock().unwrap().unwrap();
            // SAFETY: the caller's arguments, for the function they were meant for.
            unsafe { real($($arg),*) }
        }
    };
    (@retain $name:ident($($arg:ident: $arg_ty:ty),*)) => {
        unsafe extern "C" fn wrapper($($arg: $arg_ty),*) -> cl_int {
            if fails_now(stringify!($name)) {
                return INJECTED;
            }
            LIVE.fetch_add(1, Ordering::SeqCst);
            let real = REAL.lock().unwrap().unwrap();
            // SAFETY: the caller's arguments, for the function they were meant for.
            unsafe { real($($arg),*) }
        }
    };
    // The event is the last argument.
    (@enqueue $name:ident($($arg:ident: $arg_ty:ty),*)) => {
        unsafe extern "C" fn wrapper($($arg: $arg_ty,)* event: *mut cl_event) -> cl_int {
            if fails_now(stringify!($name)) {
                return INJECTED;
            }
            let real = REAL.lock().unwrap().unwrap();
            // SAFETY: the caller's arguments, for the function they were meant for.
            let code = unsafe { real($($arg,)* event) };
            if code == 0 && !event.is_null() {
                LIVE.fetch_add(1, Ordering::SeqCst);
            }
            code
        }
    };
    (@handle $name:ident($($arg:ident: $arg_ty:ty),*)) => {
        unsafe extern "C" fn wrapper($($arg: $arg_ty,)* code: *mut cl_int) -> *mut c_void {
            if fails_now(stringify!($name)) {
                // SAFETY: this crate always gives a place for the code.
                unsafe { *code = INJECTED };
                return std::ptr::null_mut();
            }
            let real = REAL.lock().unwrap().unwrap();
            // SAFETY: the caller's arguments, for the function they were meant for.
            let object = unsafe { real($($arg,)* code) };
            if !object.is_null() && stringify!($name) != "clEnqueueMapBuffer" {
                LIVE.fetch_add(1, Ordering::SeqCst);
            }
            object
        }
    };
    (@release $name:ident($($arg:ident: $arg_ty:ty),*)) => {
        unsafe extern "C" fn wrapper($($arg: $arg_ty),*) -> cl_int {
            LIVE.fetch_sub(1, Ordering::SeqCst);
            let real = REAL.lock().unwrap().unwrap();
            // SAFETY: the caller's arguments, for the function they were meant for.
            unsafe { real($($arg),*) }
        }
    };
    (@alloc $name:ident($($arg:ident: $arg_ty:ty),*)) => {
        unsafe extern "C" fn wrapper($($arg: $arg_ty),*) -> *mut c_void {
            if fails_now(stringify!($name)) {
                return std::ptr::null_mut();
            }
            let real = REAL.lock().unwrap().unwrap();
            LIVE.fetch_add(1, Ordering::SeqCst);
            // SAFETY: the caller's arguments, for the function they were meant for.
            unsafe { real($($arg),*) }
        }
    };
    (@free $name:ident($($arg:ident: $arg_ty:ty),*)) => {
        unsafe extern "C" fn wrapper($($arg: $arg_ty),*) {
            LIVE.fetch_sub(1, Ordering::SeqCst);
            let real = REAL.lock().unwrap().unwrap();
            // SAFETY: the caller's arguments, for the function they were meant for.
            unsafe { real($($arg),*) }
        }
    };
}

type Notify = Option<unsafe extern "C" fn(*const i8, *const c_void, usize, *mut c_void)>;
type Built = Option<unsafe extern "C" fn(cl_program, *mut c_void)>;
type Called = Option<unsafe extern "C" fn(cl_event, cl_int, *mut c_void)>;
type List = *const cl_event;

driver! {
    handle clCreateContext: clCreateContext_t(p: *const cl_context_properties, n: cl_uint, d: *const cl_device_id, f: Notify, u: *mut c_void);
    retain clRetainContext: clRetainContext_t(c: cl_context);
    release clReleaseContext: clReleaseContext_t(c: cl_context);
    code clGetContextInfo: clGetContextInfo_t(c: cl_context, w: cl_uint, s: usize, v: *mut c_void, r: *mut usize);
    handle clCreateCommandQueue: clCreateCommandQueue_t(c: cl_context, d: cl_device_id, p: u64);
    retain clRetainCommandQueue: clRetainCommandQueue_t(q: cl_command_queue);
    release clReleaseCommandQueue: clReleaseCommandQueue_t(q: cl_command_queue);
    code clGetCommandQueueInfo: clGetCommandQueueInfo_t(q: cl_command_queue, w: cl_uint, s: usize, v: *mut c_void, r: *mut usize);
    handle clCreateBuffer: clCreateBuffer_t(c: cl_context, f: u64, n: usize, h: *mut c_void);
    handle clCreateSubBuffer: clCreateSubBuffer_t(m: cl_mem, f: u64, k: cl_uint, r: *const c_void);
    retain clRetainMemObject: clRetainMemObject_t(m: cl_mem);
    release clReleaseMemObject: clReleaseMemObject_t(m: cl_mem);
    code clGetMemObjectInfo: clGetMemObjectInfo_t(m: cl_mem, w: cl_uint, s: usize, v: *mut c_void, r: *mut usize);
    handle clCreateProgramWithSource: clCreateProgramWithSource_t(c: cl_context, n: cl_uint, s: *mut *const i8, l: *const usize);
    release clReleaseProgram: clReleaseProgram_t(p: cl_program);
    code clBuildProgram: clBuildProgram_t(p: cl_program, n: cl_uint, d: *const cl_device_id, o: *const i8, f: Built, u: *mut c_void);
    handle clCreateKernel: clCreateKernel_t(p: cl_program, n: *const i8);
    release clReleaseKernel: clReleaseKernel_t(k: cl_kernel);
    code clGetKernelInfo: clGetKernelInfo_t(k: cl_kernel, w: cl_uint, s: usize, v: *mut c_void, r: *mut usize);
    code clSetKernelArg: clSetKernelArg_t(k: cl_kernel, i: cl_uint, s: usize, v: *const c_void);
    code clSetKernelArgSVMPointer: clSetKernelArgSVMPointer_t(k: cl_kernel, i: cl_uint, v: *const c_void);
    enqueue clEnqueueNDRangeKernel: clEnqueueNDRangeKernel_t(q: cl_command_queue, k: cl_kernel, d: cl_uint, o: *const usize, g: *const usize, l: *const usize, n: cl_uint, w: List);
    enqueue clEnqueueReadBuffer: clEnqueueReadBuffer_t(q: cl_command_queue, m: cl_mem, b: cl_bool, o: usize, s: usize, h: *mut c_void, n: cl_uint, w: List);
    enqueue clEnqueueWriteBuffer: clEnqueueWriteBuffer_t(q: cl_command_queue, m: cl_mem, b: cl_bool, o: usize, s: usize, h: *const c_void, n: cl_uint, w: List);
    enqueue clEnqueueFillBuffer: clEnqueueFillBuffer_t(q: cl_command_queue, m: cl_mem, p: *const c_void, ps: usize, o: usize, s: usize, n: cl_uint, w: List);
    enqueue clEnqueueCopyBuffer: clEnqueueCopyBuffer_t(q: cl_command_queue, a: cl_mem, b: cl_mem, ao: usize, bo: usize, s: usize, n: cl_uint, w: List);
    enqueue clEnqueueReadBufferRect: clEnqueueReadBufferRect_t(q: cl_command_queue, m: cl_mem, b: cl_bool, o: *const usize, ho: *const usize, r: *const usize, rp: usize, sp: usize, hrp: usize, hsp: usize, h: *mut c_void, n: cl_uint, w: List);
    handle clEnqueueMapBuffer: clEnqueueMapBuffer_t(q: cl_command_queue, m: cl_mem, b: cl_bool, f: u64, o: usize, s: usize, n: cl_uint, w: List, e: *mut cl_event);
    enqueue clEnqueueUnmapMemObject: clEnqueueUnmapMemObject_t(q: cl_command_queue, m: cl_mem, p: *mut c_void, n: cl_uint, w: List);
    enqueue clEnqueueMarkerWithWaitList: clEnqueueMarkerWithWaitList_t(q: cl_command_queue, n: cl_uint, w: List);
    enqueue clEnqueueBarrierWithWaitList: clEnqueueBarrierWithWaitList_t(q: cl_command_queue, n: cl_uint, w: List);
    code clFlush: clFlush_t(q: cl_command_queue);
    code clFinish: clFinish_t(q: cl_command_queue);
    code clWaitForEvents: clWaitForEvents_t(n: cl_uint, w: List);
    code clGetEventInfo: clGetEventInfo_t(e: cl_event, w: cl_uint, s: usize, v: *mut c_void, r: *mut usize);
    handle clCreateUserEvent: clCreateUserEvent_t(c: cl_context);
    code clSetEventCallback: clSetEventCallback_t(e: cl_event, k: cl_int, f: Called, u: *mut c_void);
    retain clRetainEvent: clRetainEvent_t(e: cl_event);
    release clReleaseEvent: clReleaseEvent_t(e: cl_event);
    alloc clSVMAlloc: clSVMAlloc_t(c: cl_context, f: u64, s: usize, a: cl_uint);
    free clSVMFree: clSVMFree_t(c: cl_context, p: *mut c_void);
    enqueue clEnqueueSVMMemcpy: clEnqueueSVMMemcpy_t(q: cl_command_queue, b: cl_bool, d: *mut c_void, a: *const c_void, s: usize, n: cl_uint, w: List);
    enqueue clEnqueueSVMMemFill: clEnqueueSVMMemFill_t(q: cl_command_queue, d: *mut c_void, p: *const c_void, ps: usize, s: usize, n: cl_uint, w: List);
    enqueue clEnqueueSVMMap: clEnqueueSVMMap_t(q: cl_command_queue, b: cl_bool, f: u64, p: *mut c_void, s: usize, n: cl_uint, w: List);
    enqueue clEnqueueSVMUnmap: clEnqueueSVMUnmap_t(q: cl_command_queue, p: *mut c_void, n: cl_uint, w: List);
}

/// Calls whose failure may leave memory unfreed, since the device may still use it.
const WAITS: [&str; 4] = [
    "clFinish",
    "clWaitForEvents",
    "clEnqueueUnmapMemObject",
    "clEnqueueSVMUnmap",
];

/// The counters are the process's, so that the tests run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The references that were not given back. A callback that holds some may run a little after the
/// finish that ended its command, as on NVIDIA's OpenCL.
fn leaked_since(before: i64) -> i64 {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let leaked = LIVE.load(Ordering::SeqCst) - before;
        if leaked == 0 || Instant::now() > deadline {
            return leaked;
        }
        std::thread::yield_now();
    }
}

/// Runs `work` once for each of its driver calls, with that call failing. The failure must be
/// reported, unless the work can do without that `optional` call. What the queues keep for their
/// commands is released by a finish before the references are counted.
fn with_every_call_failing(queues: &[&Queue], optional: &[&str], work: impl Fn() -> Result<()>) {
    let run = |fails: usize| {
        *FAILED.lock().unwrap() = "";
        CALLS.store(0, Ordering::SeqCst);
        FAILS.store(fails, Ordering::SeqCst);
        let before = LIVE.load(Ordering::SeqCst);
        let result = work();
        FAILS.store(usize::MAX, Ordering::SeqCst);
        let failed = *FAILED.lock().unwrap();
        for queue in queues {
            // It may give an error that a drop kept.
            let _ = queue.finish();
        }
        // Where a wait failed, memory stays with the device.
        let leaked = if WAITS.contains(&failed) {
            0
        } else {
            leaked_since(before)
        };
        (result, failed, leaked)
    };
    let (result, _, leaked) = run(usize::MAX);
    result.unwrap();
    assert_eq!(leaked, 0, "without a failure");
    let calls = CALLS.load(Ordering::SeqCst);
    assert!(calls > 5, "the driver in front is not in use");
    let mut reported = 0;
    for number in 0..calls {
        let (result, failed, leaked) = run(number);
        if failed.is_empty() {
            // Timing can save a wait: then there was one call less.
            continue;
        }
        match result {
            Ok(()) => assert!(
                optional.contains(&failed),
                "call {number}, {failed}: the failure was swallowed"
            ),
            Err(error) => {
                reported += 1;
                let text = error.to_string();
                assert!(!text.contains('\n') && !text.is_empty(), "{text}");
                let known = error.code() == Some(INJECTED)
                    || matches!(error, Error::Command { .. } | Error::Deferred(_))
                    || failed == "clSVMAlloc";
                assert!(known, "call {number}, {failed}: {error}");
            }
        }
        assert_eq!(leaked, 0, "call {number}, {failed}: leaked");
    }
    assert!(reported > 0, "no failure was reported");
}

const SOURCE: &str = "kernel void add(global uint *x, uint value) { x[get_global_id(0)] += value; }";

fn manager() -> Manager {
    // The library is the same for all tests, and its real functions are kept once.
    static MANAGER: Mutex<Option<Manager>> = Mutex::new(None);
    // SAFETY: the functions fail before they do anything, or pass on.
    let load = || unsafe { Manager::load_with(install) }.unwrap();
    MANAGER.lock().unwrap().get_or_insert_with(load).clone()
}

fn open() -> (Context, Queue, Kernel) {
    let context = Context::new(&manager().devices()[0]).unwrap();
    let queue = context.queue().unwrap();
    let kernel = Program::build(&context, SOURCE, "").unwrap().kernel("add").unwrap();
    (context, queue, kernel)
}

#[test]
fn setting_up() {
    let _alone = alone();
    let device = manager().devices().remove(0);
    with_every_call_failing(&[], &[], || {
        let context = Context::new(&device)?;
        let queue = context.queue()?;
        let program = Program::build(&context, SOURCE, "")?;
        let add = program.kernel("add")?;
        let mut buffer = RegularBuffer::<u32>::new(&context, 16)?;
        buffer.write(&queue, &[1; 16])?;
        // SAFETY: the buffer holds 16 elements and is used by this queue alone.
        unsafe { add.launch(&queue, NdRange::d1(16), &[buffer.arg(), Arg::scalar(&1u32)]) }?.wait()?;
        queue.finish()
    });
}

#[test]
fn transfers_parts_and_maps() {
    let _alone = alone();
    let (context, queue, _) = open();
    let step = context.device().sub_buffer_alignment() / 4;
    with_every_call_failing(&[&queue], &[], || {
        let mut one = RegularBuffer::<u32>::new(&context, 2 * step)?;
        let mut two = RegularBuffer::<u32>::new(&context, 2 * step)?;
        one.fill(&queue, 0, 2 * step, 5)?;
        two.copy_from(&queue, 0, &one, 0, step)?;
        two.part_mut(step..2 * step)?.fill(&queue, 6)?;
        let extent = [2, 2, 1];
        let layout = BoxLayout::dense(extent);
        two.read_box(&queue, extent, layout, &mut [0; 4], layout)?;
        two.map_mut(&queue)?[0] = 7;
        let written = two.write_async(&queue, 0, vec![8; 4])?;
        let read = two.read_async(&queue, 0, vec![0; 2 * step])?;
        drop(two);
        drop(written);
        assert_eq!(read.wait()?[..5], [8, 8, 8, 8, 5]);
        queue.finish()
    });
}

#[test]
fn shared_memory() {
    let _alone = alone();
    let (context, queue, add) = open();
    if !common::has(&context, SvmCapabilities::COARSE) {
        return;
    }
    with_every_call_failing(&[&queue], &[], || {
        let mut shared = SvmBuffer::<u32>::coarse(&context, 64)?;
        shared.fill(&queue, 0, 64, 1)?;
        // SAFETY: the memory holds 64 elements and is used by this queue alone.
        unsafe { add.launch(&queue, NdRange::d1(64), &[shared.arg(), Arg::scalar(&1u32)]) }?;
        shared.map_mut(&queue)?[0] = 9;
        // If the drop's unmap failed, only this tells; memory of a discrete device then lacks the 9.
        queue.finish()?;
        let view = shared.view()?;
        let mut regular = RegularBuffer::<u32>::new(&context, 64)?;
        regular.copy_from(&queue, 0, &view, 0, 64)?;
        let data = shared.read_async(&queue, 0, vec![0; 64])?.wait()?;
        assert_eq!(data[..2], [9, 2]);
        queue.finish()
    });
}

#[test]
fn a_wait_that_fails_in_a_drop_is_reported_by_the_next_finish_and_frees_nothing() {
    let _alone = alone();
    let (context, queue, _) = open();
    let drop_with_a_failing_wait = |used: &dyn Fn() -> Box<dyn std::any::Any>| {
        let buffer = used();
        let before = LIVE.load(Ordering::SeqCst);
        CALLS.store(0, Ordering::SeqCst);
        FAILS.store(0, Ordering::SeqCst);
        drop(buffer);
        FAILS.store(usize::MAX, Ordering::SeqCst);
        assert_eq!(*FAILED.lock().unwrap(), "clFinish");
        let error = queue.finish().unwrap_err();
        assert!(matches!(error, Error::Deferred(_)), "{error}");
        assert_eq!(error.code(), Some(INJECTED));
        queue.finish().unwrap();
        before - LIVE.load(Ordering::SeqCst)
    };
    let released = drop_with_a_failing_wait(&|| {
        let buffer = HostPtrBuffer::<u32>::new(&context, 64).unwrap();
        buffer.note_use(&queue);
        Box::new(buffer)
    });
    assert_eq!(released, 1, "the buffer object, whose commands OpenCL knows");
    let svm = context.device().svm();
    for (grain, needed) in [
        (SvmGrain::Coarse, SvmCapabilities::COARSE),
        (SvmGrain::System, SvmCapabilities::FINE_SYSTEM),
    ] {
        if svm.contains(needed) {
            let released = drop_with_a_failing_wait(&|| {
                let buffer = SvmBuffer::<u32>::new(&context, 64, grain).unwrap();
                buffer.note_use(&queue);
                Box::new(buffer)
            });
            assert_eq!(released, 0, "{grain}");
        }
    }
}

#[test]
fn a_view_comes_after_the_end_of_a_map_whose_guard_was_leaked() {
    let _alone = alone();
    let (context, queue, _) = open();
    if !common::has(&context, SvmCapabilities::COARSE) {
        return;
    }
    let mut shared = SvmBuffer::<u32>::coarse(&context, 64).unwrap();
    std::mem::forget(shared.map_mut(&queue).unwrap());
    CALLS.store(0, Ordering::SeqCst);
    FAILS.store(0, Ordering::SeqCst);
    let refused = shared.view().map(drop);
    FAILS.store(usize::MAX, Ordering::SeqCst);
    assert_eq!(*FAILED.lock().unwrap(), "clEnqueueSVMUnmap");
    assert_eq!(refused.unwrap_err().code(), Some(INJECTED));
}

#[test]
fn foreign_objects_and_events() {
    let _alone = alone();
    let (context, queue, _) = open();
    let contexts = manager().external(context.device());
    let owner = RegularBuffer::<u32>::new(&context, 64).unwrap();
    // Whether it is SVM or was imported is not known before OpenCL 2.0 or 3.0.
    let optional = ["clGetMemObjectInfo"];
    with_every_call_failing(&[&queue], &optional, || {
        // SAFETY: the handles are alive, and nothing else uses the buffer.
        let mut buffer = unsafe { ExternalBuffer::<u32>::wrap(&contexts, owner.raw(), Needs::default()) }?;
        // SAFETY: as above.
        let theirs = unsafe { contexts.queue(queue.raw()) }?;
        buffer.write(&theirs, &[1; 64])?;
        let other = context.queue()?;
        theirs.run_before(&other)?;
        let gate = UserEvent::new(&context)?;
        other.wait_for(gate.event())?;
        gate.complete()?;
        let end = other.record()?;
        let (send, receive) = std::sync::mpsc::channel();
        end.on_complete(move |result| send.send(result.is_ok()).unwrap_or(()))?;
        assert!(receive.recv().unwrap());
        other.finish()?;
        queue.finish()
    });
}

#[test]
fn the_pool() {
    let _alone = alone();
    let (context, queue, _) = open();
    let other = context.queue().unwrap();
    with_every_call_failing(&[&queue, &other], &[], || {
        let pool = MemoryPool::new(&context, BufferStrategy::Regular)?;
        let mut first = pool.acquire::<u32>(&queue, 100)?;
        first.write(&queue, &[1; 100])?;
        let copy = first.map(&queue)?[0];
        assert_eq!(copy, 1);
        drop(first);
        let second = pool.acquire::<u32>(&other, 100)?;
        second.read(&other, &mut [0; 100])?;
        drop(second);
        pool.trim(0);
        assert_eq!(pool.stats().lent_bytes, 0);
        other.finish()?;
        queue.finish()
    });
}

#[test]
fn the_bridge() {
    let _alone = alone();
    let (here, from, _) = open();
    let (there, to, _) = open();
    let mut source = RegularBuffer::<u32>::new(&here, 300).unwrap();
    source.write(&from, &[3; 300]).unwrap();
    with_every_call_failing(&[&from, &to], &[], || {
        let mut target = RegularBuffer::<u32>::new(&there, 300)?;
        let bridge = BufferBridge::staged(&from, &to, 512)?;
        bridge.copy(&source, 0, &mut target, 0, 300)?;
        let mut got = [0; 300];
        target.read(&to, &mut got)?;
        assert_eq!(got, [3; 300]);
        drop(bridge);
        from.finish()?;
        to.finish()
    });
}

#[test]
fn the_bridge_without_a_thread_that_waits() {
    let _alone = alone();
    let (here, from, _) = open();
    let (there, to, _) = open();
    let mut source = RegularBuffer::<u32>::new(&here, 1000).unwrap();
    source.write(&from, &[3; 1000]).unwrap();
    with_every_call_failing(&[&from, &to], &[], || {
        let mut target = RegularBuffer::<u32>::new(&there, 1000)?;
        // More pieces than there are places for them: one waits for another's end.
        let bridge = BufferBridge::staged(&from, &to, 512)?;
        bridge.copy_async(&source, 0, &mut target, 0, 1000)?.wait()?;
        let mut got = vec![0; 1000];
        target.read(&to, &mut got)?;
        assert_eq!(got, [3; 1000]);
        drop(bridge);
        from.finish()?;
        to.finish()
    });
}

#[test]
fn the_bridge_by_a_kernel_where_the_driver_takes_another_contexts_buffer() {
    let _alone = alone();
    let (here, from, _) = open();
    let (there, to, _) = open();
    let mut source = RegularBuffer::<u32>::new(&here, 301).unwrap();
    source.write(&from, &[3; 301]).unwrap();
    // The trial is the device's, and made once: not where a call fails.
    let bridge = BufferBridge::new(&from, &to).unwrap();
    if bridge.route() != BridgeRoute::Foreign {
        println!("skipped: {}", bridge.explain());
        return;
    }
    with_every_call_failing(&[&from, &to], &[], || {
        let mut target = RegularBuffer::<u32>::new(&there, 301)?;
        // From an odd place: more kernels than one.
        bridge.copy(&source, 1, &mut target, 0, 300)?;
        bridge.copy_async(&source, 0, &mut target, 0, 301)?.wait()?;
        let mut got = vec![0; 301];
        target.read(&to, &mut got)?;
        assert_eq!(got, [3; 301]);
        from.finish()?;
        to.finish()
    });
}
