use std::ffi::c_void;
use std::ptr;
use std::time::{Duration, Instant};

use hip_sys::hipError_t;

use super::{median, on_stream, pace, quantile};
use crate::{Bridge, Error, Result, StreamArg, StreamKernel};

const SAMPLES: usize = 200;
const WARM_UP: usize = 10;
/// Kernels that are queued before the wait.
const QUEUED: usize = 64;
/// Calls in one sample of a call's cost: few enough that the device's queue never fills.
const BURST: usize = 32;
/// Samples of a call's cost.
const CALLS: usize = 1000;

/// The cost of an empty kernel in one API, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchCost {
    /// One kernel and the wait for it, the median sample.
    pub waited_us: f64,
    /// The 99th percentile.
    pub waited_p99_us: f64,
    /// One of 64 kernels queued before the wait, the median sample.
    pub queued_us: f64,
    /// The 99th percentile.
    pub queued_p99_us: f64,
}

/// The cost of an empty OpenCL kernel on a HIP stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamLaunchCost {
    /// The kernel, and the wait for it.
    pub launch: LaunchCost,
    /// The launch call alone. `None` on the host platform, where OpenCL's runtime launches the kernel.
    pub call: Option<CallCost>,
}

/// The cost of a launch call for its thread, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallCost {
    /// [`StreamKernel::launch`](crate::StreamKernel::launch), the median sample.
    pub ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
    /// `hipModuleLaunchKernel` of the same code, called directly in turns with it, the median sample.
    pub raw_ns: f64,
    /// The median difference between a sample of one and the next of the other.
    pub added_ns: f64,
}

/// Measures launches of OpenCL, then of HIP.
///
/// # Errors
/// If an allocation or a launch fails.
pub fn launch(bridge: &Bridge) -> Result<(LaunchCost, LaunchCost)> {
    let (queue, stream) = (bridge.queue()?, bridge.stream()?);
    let mut buffer = bridge.alloc::<u32>(1024)?;
    let opencl = {
        let guard = buffer.cl_mut(&queue)?;
        let kernel = &bridge.probe().cl().nothing;
        cost(
            || {
                // SAFETY: probe_nothing takes one buffer and touches nothing.
                unsafe { kernel.launch(&queue, clmgr::NdRange::d1(1), &[guard.arg()]) }?;
                Ok(())
            },
            || Ok(queue.finish()?),
        )?
    };
    let mut guard = buffer.hip_mut(&stream)?;
    let slice = guard.slice_mut();
    let kernel = &bridge.probe().hip().nothing;
    let config = hip::LaunchConfig::linear(1, 1)?;
    let hip = cost(
        || {
            // SAFETY: probe_nothing takes one pointer and touches nothing.
            unsafe { kernel.launch(&stream, config, &[&slice]) }?;
            Ok(())
        },
        || Ok(stream.synchronize()?),
    )?;
    Ok((opencl, hip))
}

/// Measures launches of an OpenCL kernel on a HIP stream.
///
/// # Errors
/// As [`Bridge::stream_program`], or if an allocation or a launch fails.
pub fn launch_on_stream(bridge: &Bridge) -> Result<StreamLaunchCost> {
    let stream = bridge.stream()?;
    let kernel = on_stream(bridge, "probe_nothing")?;
    let mut buffer = bridge.hip_device().alloc::<u32>(1024)?;
    let slice: StreamArg<'_> = buffer.on_mut(&stream)?.into();
    let launch = || {
        // SAFETY: probe_nothing takes one buffer and touches nothing.
        unsafe { kernel.launch(&stream, clmgr::NdRange::d1(1), &[slice]) }
    };
    Ok(StreamLaunchCost {
        launch: cost(launch, || Ok(stream.synchronize()?))?,
        call: call_cost(&kernel, &stream, slice)?,
    })
}

fn call_cost(kernel: &StreamKernel, stream: &hip::Stream, slice: StreamArg<'_>) -> Result<Option<CallCost>> {
    let (Some((function, entries)), Some(address)) = (kernel.loaded(), slice.address()) else {
        return Ok(None);
    };
    let runtime = stream.device().runtime();
    let Some(raw) = runtime.api().hipModuleLaunchKernel else {
        return Ok(None);
    };
    // Behind the buffer come values that OpenCL's runtime would pass; the kernel reads none of them.
    let mut values = vec![0_u64; entries];
    values[0] = address as u64;
    let mut parameters: Vec<*mut c_void> = values.iter_mut().map(|value| ptr::from_mut(value).cast()).collect();
    let range = clmgr::NdRange::d1(1);
    let mut burst = |through_layer: bool| -> Result<f64> {
        let start = Instant::now();
        for _ in 0..BURST {
            if through_layer {
                // SAFETY: probe_nothing takes one buffer and touches nothing.
                unsafe { kernel.launch(stream, range, &[slice]) }?;
                continue;
            }
            // SAFETY: the same kernel with as many parameters as its code has, on a stream of its device.
            let code = unsafe {
                raw(
                    function.raw(),
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    0,
                    stream.raw(),
                    parameters.as_mut_ptr(),
                    ptr::null_mut(),
                )
            };
            if code != hipError_t::hipSuccess {
                return Err(Error::Hip(hip::Error::Launch {
                    function: function.name().to_owned(),
                    reason: format!("hipModuleLaunchKernel: {code:?}"),
                }));
            }
        }
        let elapsed = start.elapsed();
        stream.synchronize()?;
        Ok(elapsed.as_secs_f64() * 1e9 / BURST as f64)
    };
    let (mut ours, mut raws, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for counts in pace::samples(WARM_UP, CALLS) {
        let (layer, raw) = (burst(true)?, burst(false)?);
        if counts {
            ours.push(layer);
            raws.push(raw);
            added.push(layer - raw);
        }
    }
    let ns = median(&mut ours);
    Ok(Some(CallCost {
        ns,
        p99_ns: quantile(&ours, 0.99),
        raw_ns: median(&mut raws),
        added_ns: median(&mut added),
    }))
}

fn cost(mut launch: impl FnMut() -> Result<()>, mut wait: impl FnMut() -> Result<()>) -> Result<LaunchCost> {
    let (mut waited, mut queued) = (Vec::new(), Vec::new());
    for counts in pace::samples(WARM_UP, SAMPLES) {
        let start = Instant::now();
        launch()?;
        wait()?;
        let one = start.elapsed();
        let start = Instant::now();
        (0..QUEUED).try_for_each(|_| launch())?;
        wait()?;
        let many = start.elapsed() / QUEUED as u32;
        if counts {
            let us = |time: Duration| time.as_secs_f64() * 1e6;
            waited.push(us(one));
            queued.push(us(many));
        }
    }
    let (waited_us, queued_us) = (median(&mut waited), median(&mut queued));
    Ok(LaunchCost {
        waited_us,
        waited_p99_us: quantile(&waited, 0.99),
        queued_us,
        queued_p99_us: quantile(&queued, 0.99),
    })
}
