//! The hot path asks the host's allocator for nothing.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_void;

use common::runtime;
use hip::param::{In, InOut};
use hip::rtc::Program;
use hip::{KernelArg, LaunchConfig};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter left, and nothing to count.
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

/// The platform's own bookkeeping is not this crate's: the calls under test end before they reach it.
fn quiet_platform() -> hip_sys::Api {
    unsafe extern "C" fn launch(
        _: hip_sys::hipFunction_t,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: hip_sys::hipStream_t,
        _: *mut *mut c_void,
        _: *mut *mut c_void,
    ) -> hip_sys::hipError_t {
        hip_sys::hipError_t::hipSuccess
    }
    unsafe extern "C" fn fill(_: *mut c_void, _: i32, _: usize, _: hip_sys::hipStream_t) -> hip_sys::hipError_t {
        hip_sys::hipError_t::hipSuccess
    }
    unsafe extern "C" fn record(_: hip_sys::hipEvent_t, _: hip_sys::hipStream_t) -> hip_sys::hipError_t {
        hip_sys::hipError_t::hipSuccess
    }
    unsafe extern "C" fn wait(_: hip_sys::hipStream_t, _: hip_sys::hipEvent_t, _: u32) -> hip_sys::hipError_t {
        hip_sys::hipError_t::hipSuccess
    }
    hip_sys::Api {
        hipModuleLaunchKernel: Some(launch),
        hipMemsetAsync: Some(fill),
        hipEventRecord: Some(record),
        hipStreamWaitEvent: Some(wait),
        ..common::hip_api()
    }
}

#[test]
fn launches_and_stream_ordered_calls_allocate_nothing() {
    let device = runtime(quiet_platform()).device(0).unwrap();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let source = "extern \"C\" __global__ void k(float *y, const float *x, float a, unsigned n) {}";
    let function = Program::new(source).compile(&device).unwrap().function("k").unwrap();
    // SAFETY: these are the parameters of `k`.
    let kernel = unsafe { function.typed::<(InOut<f32>, In<f32>, f32, u32)>() };
    let x = device.alloc::<f32>(64).unwrap();
    let mut y = device.alloc::<f32>(64).unwrap();
    let config = LaunchConfig::linear(64, 64).unwrap();
    let round = |y: &mut hip::DeviceBuffer<f32>| {
        for stream in [&stream, &other] {
            y.on_mut(stream).unwrap().fill_zero().unwrap();
            let args = (y.on_mut(stream).unwrap(), x.on(stream).unwrap(), 1.0, 64);
            // SAFETY: nothing is launched.
            unsafe { kernel.launch(stream, config, args) }.unwrap();
            let (y, x) = (y.on_mut(stream).unwrap(), x.on(stream).unwrap());
            let args: [&dyn KernelArg; 4] = [&y, &x, &1.0_f32, &64_u32];
            // SAFETY: nothing is launched.
            unsafe { function.launch(stream, config, &args) }.unwrap();
        }
    };
    // The first rounds make an event for each stream that another waits for, and note the streams.
    assert!(allocations_of(|| round(&mut y)) > 0, "the counter counts");
    round(&mut y);
    assert_eq!(
        allocations_of(|| (0..100).for_each(|_| round(&mut y))),
        0,
        "in 100 rounds"
    );
}

#[test]
fn a_long_parameter_list_is_passed_whole() {
    let device = common::device();
    let stream = device.stream().unwrap();
    let names: Vec<String> = (0..40).map(|i| format!("unsigned a{i}")).collect();
    let sum: Vec<String> = (0..40).map(|i| format!("{} * a{i}", i + 1)).collect();
    let source = format!(
        "extern \"C\" __global__ void sum(unsigned *out, {}) {{ *out = {}; }}",
        names.join(", "),
        sum.join(" + ")
    );
    let function = Program::new(&source).compile(&device).unwrap().function("sum").unwrap();
    let mut out = device.alloc_zeroed::<u32>(1).unwrap();
    let slice = out.on_mut(&stream).unwrap();
    let values: Vec<u32> = (0..40).map(|i| i * i).collect();
    let mut args: Vec<&dyn KernelArg> = vec![&slice];
    args.extend(values.iter().map(|value| value as &dyn KernelArg));
    // SAFETY: one pointer and forty numbers, as the kernel has them; it writes one element.
    unsafe { function.launch(&stream, LaunchConfig::linear(1, 1).unwrap(), &args) }.unwrap();
    let mut seen = [0];
    out.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen[0], (0..40_u32).map(|i| (i + 1) * i * i).sum::<u32>());
}
