//! What the safe layer costs: each call against the same C call, in nanoseconds, on functions that do nothing, so that
//! nothing else is measured. The aim is at most 50 ns.
//!
//! `cargo bench -p hipcl-hip --bench overhead`

use std::ffi::c_void;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use hip::param::{In, InOut};
use hip::{Device, KernelArg, LaunchConfig};
use hip_sys::{hipError_t, hipEvent_t, hipFunction_t, hipStream_t};

unsafe extern "C" fn launch(
    _: hipFunction_t,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: hipStream_t,
    params: *mut *mut c_void,
    _: *mut *mut c_void,
) -> hipError_t {
    black_box(params);
    hipError_t::hipSuccess
}

unsafe extern "C" fn fill(pointer: *mut c_void, _: i32, _: usize, _: hipStream_t) -> hipError_t {
    black_box(pointer);
    hipError_t::hipSuccess
}

unsafe extern "C" fn get_device(device: *mut i32) -> hipError_t {
    // SAFETY: an int's address by the C caller's promise.
    unsafe { device.write(0) };
    hipError_t::hipSuccess
}

unsafe extern "C" fn record(event: hipEvent_t, _: hipStream_t) -> hipError_t {
    black_box(event);
    hipError_t::hipSuccess
}

const ROUNDS: u32 = 200_000;

/// The best of several means, in nanoseconds.
fn measure(mut work: impl FnMut()) -> f64 {
    (0..20)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..ROUNDS {
                work();
            }
            begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        })
        .fold(f64::INFINITY, f64::min)
}

fn device() -> Device {
    let api = hip_sys::Api {
        hipModuleLaunchKernel: Some(launch),
        hipMemsetAsync: Some(fill),
        hipGetDevice: Some(get_device),
        hipEventRecord: Some(record),
        ..hip_host::hip_api()
    };
    let rtc = Some(Arc::new(hip_host::rtc_api()));
    // SAFETY: the host platform's functions; those replaced do nothing.
    let runtime = unsafe { hip::Runtime::from_tables(Arc::new(api), rtc) }.unwrap();
    runtime.device(0).unwrap()
}

fn main() {
    let device = device();
    let stream = device.stream().unwrap();
    let source = "extern \"C\" __global__ void k(float *y, const float *x, float a, unsigned n) {}";
    let module = hip::rtc::Program::new(source).compile(&device).unwrap();
    let function = module.function("k").unwrap();
    // SAFETY: these are the parameters of `k`.
    let kernel = unsafe { function.typed::<(InOut<f32>, In<f32>, f32, u32)>() };
    let x = device.alloc::<f32>(64).unwrap();
    let mut y = device.alloc::<f32>(64).unwrap();
    let config = LaunchConfig::linear(64, 64).unwrap();
    let api = device.runtime().api();
    let event = device.event().unwrap();

    let raw_launch = measure(|| {
        let (mut a, mut b, mut c, mut d) = (1_usize, 2_usize, 3.0_f32, 64_u32);
        let mut params: [*mut c_void; 4] = [
            (&raw mut a).cast(),
            (&raw mut b).cast(),
            (&raw mut c).cast(),
            (&raw mut d).cast(),
        ];
        let null = std::ptr::null_mut();
        // SAFETY: does nothing.
        let code = unsafe {
            api.hipModuleLaunchKernel.unwrap()(
                null,
                1,
                1,
                1,
                64,
                1,
                1,
                0,
                stream.raw(),
                params.as_mut_ptr(),
                null.cast(),
            )
        };
        let _ = black_box(code);
    });
    let (y_slice, x_slice) = (y.on_mut(&stream).unwrap(), x.on(&stream).unwrap());
    let untyped = measure(|| {
        let args: [&dyn KernelArg; 4] = [&y_slice, &x_slice, &3.0_f32, &64_u32];
        // SAFETY: does nothing.
        unsafe { function.launch(&stream, config, &args) }.unwrap();
    });
    let with_slices = measure(|| {
        let args = (y.on_mut(&stream).unwrap(), x.on(&stream).unwrap(), 3.0, 64);
        // SAFETY: does nothing.
        unsafe { kernel.launch(&stream, config, args) }.unwrap();
    });
    let raw_fill = measure(|| {
        // SAFETY: does nothing.
        let code = unsafe { api.hipMemsetAsync.unwrap()(std::ptr::null_mut(), 0, 256, stream.raw()) };
        let _ = black_box(code);
    });
    let mut slice = y.on_mut(&stream).unwrap();
    let filled = measure(|| slice.fill_zero().unwrap());
    let raw_record = measure(|| {
        // SAFETY: does nothing.
        let _ = black_box(unsafe { api.hipEventRecord.unwrap()(event.raw(), stream.raw()) });
    });
    let recorded = measure(|| event.record_on(&stream).unwrap());
    println!("call | safe, ns | C, ns | more, ns");
    for (call, safe, raw) in [
        ("Function::launch, 4 arguments", untyped, raw_launch),
        ("Kernel::launch with both slices taken anew", with_slices, raw_launch),
        ("DeviceSliceMut::fill_zero", filled, raw_fill),
        ("Event::record_on", recorded, raw_record),
    ] {
        println!("{call} | {safe:.1} | {raw:.1} | {:.1}", safe - raw);
    }
}
