//! The memory pool on a real device: reuse, order between queues, out of memory, leaks.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clmgr::opencl_sys::cl_function_types as types;
use clmgr::{Api, Arg, BufferStrategy, Context, Error, Manager, MemoryPool, NdRange, Program, Queue, SvmCapabilities};

const SOURCE: &str = "
kernel void fill(global uint *x, uint value) { x[get_global_id(0)] = value; }
kernel void spin(global uint *x, uint rounds, uint last) {
    uint state = x[0];
    for (uint i = 0; i < rounds; ++i)
        state = state * 1664525u + 1013904223u + i;
    x[0] = state;
    x[last] = state | 1u;
}";

const ROUNDS: u32 = 30_000_000;

static CALLS: AtomicUsize = AtomicUsize::new(0);
/// How many of the next allocations fail.
static FAIL: AtomicUsize = AtomicUsize::new(0);
/// The counters are the process's, so that tests which read them run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Puts a counter in front of functions of the table.
macro_rules! counted {
    ($api:ident: $($name:ident: $ty:ident($($arg:ident: $arg_ty:ty),*) -> $ret:ty;)*) => {
        $({
            static REAL: Mutex<types::$ty> = Mutex::new(None);
            unsafe extern "C" fn count($($arg: $arg_ty),*) -> $ret {
                CALLS.fetch_add(1, Ordering::SeqCst);
                let real = REAL.lock().unwrap().unwrap();
                // SAFETY: the caller's arguments, for the function they were meant for.
                unsafe { real($($arg),*) }
            }
            if $api.$name.is_some_and(|real| real as usize != count as *const () as usize) {
                *REAL.lock().unwrap() = $api.$name;
                $api.$name = Some(count);
            }
        })*
    };
}

static CREATE: Mutex<types::clCreateBuffer_t> = Mutex::new(None);

unsafe extern "C" fn create_or_fail(
    context: clmgr::opencl_sys::cl_context,
    flags: u64,
    bytes: usize,
    host: *mut std::ffi::c_void,
    code: *mut i32,
) -> clmgr::opencl_sys::cl_mem {
    CALLS.fetch_add(1, Ordering::SeqCst);
    if FAIL
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
        .is_ok()
    {
        // SAFETY: this crate always gives a place for the code.
        unsafe { *code = clmgr::opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE };
        return std::ptr::null_mut();
    }
    let real = CREATE.lock().unwrap().unwrap();
    // SAFETY: the caller's arguments, for the function they were meant for.
    unsafe { real(context, flags, bytes, host, code) }
}

fn watch(api: &mut Api) {
    use std::ffi::c_void;

    use clmgr::opencl_sys::{cl_command_queue, cl_event, cl_mem, cl_uint};
    counted! { api:
        clEnqueueMarkerWithWaitList: clEnqueueMarkerWithWaitList_t(q: cl_command_queue, n: cl_uint, l: *const cl_event, e: *mut cl_event) -> i32;
        clEnqueueBarrierWithWaitList: clEnqueueBarrierWithWaitList_t(q: cl_command_queue, n: cl_uint, l: *const cl_event, e: *mut cl_event) -> i32;
        clFinish: clFinish_t(q: cl_command_queue) -> i32;
        clFlush: clFlush_t(q: cl_command_queue) -> i32;
        clGetEventInfo: clGetEventInfo_t(e: cl_event, what: cl_uint, size: usize, value: *mut c_void, needed: *mut usize) -> i32;
        clReleaseMemObject: clReleaseMemObject_t(m: cl_mem) -> i32;
        clRetainMemObject: clRetainMemObject_t(m: cl_mem) -> i32;
        clGetMemObjectInfo: clGetMemObjectInfo_t(m: cl_mem, what: cl_uint, size: usize, value: *mut c_void, needed: *mut usize) -> i32;
    }
    *CREATE.lock().unwrap() = api.clCreateBuffer;
    api.clCreateBuffer = Some(create_or_fail);
}

fn watched() -> (Context, Queue) {
    // SAFETY: the functions count or refuse, and pass on.
    let manager = unsafe { Manager::load_with(watch) }.unwrap();
    let device = manager.devices().remove(0);
    let context = Context::new(&device).unwrap();
    let queue = context.queue().unwrap();
    (context, queue)
}

/// A long kernel, and its program: NVIDIA's OpenCL waits for the kernel where its program is released.
fn spin(context: &Context, queue: &Queue, arg: Arg<'_>, len: usize) -> (clmgr::Event, Program) {
    let program = Program::build(context, SOURCE, "").unwrap();
    let last = len as u32 - 1;
    let rounds = common::rounds(ROUNDS);
    let args = [arg, Arg::scalar(&rounds), Arg::scalar(&last)];
    // SAFETY: the memory holds `len` elements; the pool orders what comes after.
    let event = unsafe { program.kernel("spin").unwrap().launch(queue, NdRange::d1(1), &args) }.unwrap();
    (event, program)
}

#[test]
fn a_hit_makes_no_driver_call() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (context, queue) = watched();
    let pool = MemoryPool::new(&context, BufferStrategy::Regular).unwrap();
    const HITS: usize = 64;
    let mut lent = Vec::with_capacity(HITS);
    lent.extend((0..HITS).map(|_| pool.acquire::<f32>(&queue, 1000).unwrap()));
    lent.clear();
    let before = CALLS.load(Ordering::SeqCst);
    assert!(before > 0, "the counters are not in use");
    for _ in 0..500 {
        lent.extend((0..HITS).map(|_| pool.acquire::<f32>(&queue, 995).unwrap()));
        lent.clear();
    }
    assert_eq!(CALLS.load(Ordering::SeqCst), before, "a hit called the driver");
    let stats = pool.stats();
    assert_eq!((stats.hits, stats.misses), (500 * HITS as u64, HITS as u64));
}

#[test]
fn the_next_queue_waits_on_the_device_for_the_last_one() {
    for strategy in [BufferStrategy::Regular, BufferStrategy::SvmCoarse] {
        let context = common::context();
        if strategy == BufferStrategy::SvmCoarse && !common::has(&context, SvmCapabilities::COARSE) {
            continue;
        }
        let (one, two) = (context.queue().unwrap(), context.queue().unwrap());
        let pool = MemoryPool::new(&context, strategy).unwrap();
        let mut first = pool.acquire::<u32>(&one, 1000).unwrap();
        first.write(&one, &[0; 1000]).unwrap();
        let (kernel, _program) = spin(&context, &one, first.arg(), 1000);
        drop(first);

        let second = pool.acquire::<u32>(&two, 1000).unwrap();
        assert_eq!((pool.stats().hits, pool.stats().waits), (1, 1));
        let program = Program::build(&context, SOURCE, "").unwrap();
        let args = [second.arg(), Arg::scalar(&7u32)];
        // SAFETY: the memory holds 1000 elements; the pool has ordered the kernel before it.
        unsafe { program.kernel("fill").unwrap().launch(&two, NdRange::d1(1000), &args) }.unwrap();
        let mut data = [0; 1000];
        second.read(&two, &mut data).unwrap();
        assert!(
            kernel.is_complete().unwrap(),
            "{strategy}: used while the first queue ran"
        );
        assert_eq!(data, [7; 1000], "{strategy}");
    }
}

#[test]
fn the_same_queue_does_not_wait() {
    let context = common::context();
    let queue = context.queue().unwrap();
    let pool = MemoryPool::new(&context, BufferStrategy::Regular).unwrap();
    let first = pool.acquire::<u32>(&queue, 1000).unwrap();
    let (kernel, _program) = spin(&context, &queue, first.arg(), 1000);
    drop(first);
    let second = pool.acquire::<u32>(&queue, 1000).unwrap();
    assert!(
        !kernel.is_complete().unwrap(),
        "the acquire waited, or the kernel is too short"
    );
    assert_eq!((pool.stats().hits, pool.stats().waits), (1, 0));
    let mut last = [0; 1000];
    second.read(&queue, &mut last).unwrap();
    assert_eq!(last[999] & 1, 1);
}

#[test]
fn elements_of_another_type_get_the_same_block() {
    let context = common::context();
    let queue = context.queue().unwrap();
    let pool = MemoryPool::new(&context, BufferStrategy::Regular).unwrap();
    let bytes = pool.acquire::<u8>(&queue, 4000).unwrap();
    let handle = format!("{:?}", bytes.arg());
    assert!(bytes.block_bytes() >= 4000);
    drop(bytes);
    let mut wide = pool.acquire::<f64>(&queue, 500).unwrap();
    assert_eq!(format!("{:?}", wide.arg()), handle);
    wide.write(&queue, &[1.5; 500]).unwrap();
    assert_eq!(wide.map(&queue).unwrap()[..], [1.5; 500]);
    wide.map_mut(&queue).unwrap()[0] = 2.5;
    assert!(wide.explain().contains("pool"), "{}", wide.explain());
    // A leaked map is undone before the next one gets the memory.
    std::mem::forget(wide.map_mut(&queue).unwrap());
    drop(wide);
    let mut again = pool.acquire::<u16>(&queue, 2000).unwrap();
    again.write(&queue, &[3; 2000]).unwrap();
    assert_eq!(again.map(&queue).unwrap()[1999], 3);
}

#[test]
fn out_of_memory_frees_what_is_held_and_then_fails() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (context, queue) = watched();
    let pool = MemoryPool::new(&context, BufferStrategy::Regular).unwrap();
    let held: Vec<_> = [1000, 2000, 4000]
        .map(|len| pool.acquire::<u8>(&queue, len).unwrap())
        .into_iter()
        .collect();
    drop(held);
    FAIL.store(1, Ordering::SeqCst);
    let large = pool.acquire::<u8>(&queue, 100_000).unwrap();
    let stats = pool.stats();
    assert_eq!((stats.out_of_memory, stats.held_bytes, stats.freed), (1, 0, 3));
    FAIL.store(usize::MAX, Ordering::SeqCst);
    let error = pool.acquire::<u8>(&queue, 50_000).unwrap_err();
    FAIL.store(0, Ordering::SeqCst);
    assert_eq!(error.code(), Some(clmgr::opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE));
    assert_eq!(pool.stats().failures, 1);
    drop(large);
    assert_eq!(pool.stats().lent_bytes, 0);
    assert!(pool.stats().held_bytes >= 100_000);
    pool.trim(0);
    assert_eq!(pool.stats().held_bytes, 0);
}

#[test]
fn more_than_the_limit_is_not_held() {
    let context = common::context();
    let queue = context.queue().unwrap();
    let pool = MemoryPool::with_limit(&context, BufferStrategy::Regular, 10_000).unwrap();
    let two = [8192, 8192].map(|len| pool.acquire::<u8>(&queue, len).unwrap());
    drop(two);
    assert_eq!((pool.stats().held_bytes, pool.stats().freed), (8192, 1));
}

#[test]
fn bad_requests_are_refused_and_nothing_is_lent() {
    let context = common::context();
    let queue = context.queue().unwrap();
    let pool = MemoryPool::new(&context, BufferStrategy::Regular).unwrap();
    assert!(matches!(pool.acquire::<u32>(&queue, 0), Err(Error::Zero { .. })));
    assert!(matches!(
        pool.acquire::<u32>(&queue, usize::MAX),
        Err(Error::TooLarge { .. })
    ));
    let beyond = usize::try_from(context.device().max_alloc_bytes()).unwrap() + 1;
    assert!(matches!(
        pool.acquire::<u8>(&queue, beyond),
        Err(Error::TooLarge { .. })
    ));
    let other = common::context().queue().unwrap();
    assert!(matches!(
        pool.acquire::<u8>(&other, 8),
        Err(Error::ContextMismatch { .. })
    ));
    for strategy in [BufferStrategy::HostPtr, BufferStrategy::External] {
        assert!(matches!(
            MemoryPool::new(&context, strategy),
            Err(Error::NotSupported { .. })
        ));
    }
    assert_eq!((pool.stats().lent_bytes, pool.stats().held_bytes), (0, 0));
}

#[test]
fn threads_with_their_own_queues_share_a_pool() {
    let context = common::context();
    let pool = MemoryPool::new(&context, BufferStrategy::Regular).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (pool, context) = (pool.clone(), context.clone());
            scope.spawn(move || {
                let queue = context.queue().unwrap();
                for round in 0..50 {
                    let mut lent = pool.acquire::<u32>(&queue, 500).unwrap();
                    let value = thread * 1000 + round;
                    lent.write(&queue, &[value; 500]).unwrap();
                    let mut data = [0; 500];
                    lent.read(&queue, &mut data).unwrap();
                    assert_eq!(data, [value; 500]);
                }
            });
        }
    });
    let stats = pool.stats();
    assert_eq!((stats.hits + stats.misses, stats.lent_bytes), (200, 0));
    assert!(stats.misses <= 4, "{stats}");
}
