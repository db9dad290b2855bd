use super::{median, quantile};
use crate::{Bridge, Result};
use std::time::{Duration, Instant};

const SAMPLES: usize = 200;
const WARM_UP: usize = 10;
/// Kernels that are queued before the wait.
const QUEUED: usize = 64;

/// What an empty kernel costs one API, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchCost {
    /// One kernel and the wait for it, the middle sample.
    pub waited_us: f64,
    /// The sample that 99 of 100 do not exceed.
    pub waited_p99_us: f64,
    /// One of 64 that are queued before the wait, the middle sample.
    pub queued_us: f64,
    /// The sample that 99 of 100 do not exceed.
    pub queued_p99_us: f64,
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

fn cost(
    mut launch: impl FnMut() -> Result<()>,
    mut wait: impl FnMut() -> Result<()>,
) -> Result<LaunchCost> {
    let (mut waited, mut queued) = (Vec::new(), Vec::new());
    for sample in 0..WARM_UP + SAMPLES {
        let start = Instant::now();
        launch()?;
        wait()?;
        let one = start.elapsed();
        let start = Instant::now();
        (0..QUEUED).try_for_each(|_| launch())?;
        wait()?;
        let many = start.elapsed() / QUEUED as u32;
        if sample >= WARM_UP {
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
