use super::{median, quantile};
use crate::{Bridge, Result, Shared};
use std::time::{Duration, Instant};

/// Each sample is this many rounds of two kernels.
const ROUNDS: usize = 8;
const SAMPLES: usize = 100;
const WARM_UP: usize = 5;

/// The cost of passing a buffer from one API to the other, in microseconds.
///
/// `(ping-pong - chain) / 2N`: N rounds of an empty OpenCL kernel and an empty HIP kernel on one
/// buffer, against the mean of 2N such kernels of OpenCL alone and 2N of HIP alone. The three are
/// timed next to each other, sample by sample, so that a slow spell of the machine hits all of
/// them; on a busy machine a sample can still come out below zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandoffCost {
    /// The middle sample.
    pub median_us: f64,
    /// The sample that 99 of 100 do not exceed.
    pub p99_us: f64,
    /// One empty kernel within a chain of one API: the middle over the samples, the mean of both
    /// APIs.
    pub kernel_us: f64,
}

/// Measures the hand-off on the bridge's own route, with idle queues.
///
/// # Errors
/// If an allocation or a launch fails.
pub fn handoff(bridge: &Bridge) -> Result<HandoffCost> {
    let ping = Ping {
        bridge,
        queue: bridge.queue()?,
        stream: bridge.stream()?,
    };
    let mut buffer = bridge.alloc::<u32>(1024)?;
    let (mut costs, mut kernels) = (Vec::new(), Vec::new());
    for sample in 0..WARM_UP + SAMPLES {
        let together = ping.ping_pong(&mut buffer)?;
        let alone = (ping.cl_chain(&mut buffer)? + ping.hip_chain(&mut buffer)?) / 2;
        if sample >= WARM_UP {
            let per_kernel = |time: Duration| time.as_secs_f64() * 1e6 / (2 * ROUNDS) as f64;
            costs.push(per_kernel(together) - per_kernel(alone));
            kernels.push(per_kernel(alone));
        }
    }
    let median_us = median(&mut costs);
    Ok(HandoffCost {
        median_us,
        p99_us: quantile(&costs, 0.99),
        kernel_us: median(&mut kernels),
    })
}

struct Ping<'a> {
    bridge: &'a Bridge,
    queue: clmgr::Queue,
    stream: hip::Stream,
}

impl Ping<'_> {
    /// The guards do the waiting, as they do for a user.
    fn ping_pong(&self, buffer: &mut Shared<u32>) -> Result<Duration> {
        self.settle()?;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            self.cl_kernel(buffer)?;
            self.hip_kernel(buffer)?;
        }
        self.settle()?;
        Ok(start.elapsed())
    }

    fn cl_chain(&self, buffer: &mut Shared<u32>) -> Result<Duration> {
        self.cl_kernel(buffer)?;
        self.settle()?;
        let start = Instant::now();
        for _ in 0..2 * ROUNDS {
            self.cl_kernel(buffer)?;
        }
        self.queue.finish()?;
        Ok(start.elapsed())
    }

    fn hip_chain(&self, buffer: &mut Shared<u32>) -> Result<Duration> {
        self.hip_kernel(buffer)?;
        self.settle()?;
        let start = Instant::now();
        for _ in 0..2 * ROUNDS {
            self.hip_kernel(buffer)?;
        }
        self.stream.synchronize()?;
        Ok(start.elapsed())
    }

    fn settle(&self) -> Result<()> {
        self.queue.finish()?;
        Ok(self.stream.synchronize()?)
    }

    fn cl_kernel(&self, buffer: &mut Shared<u32>) -> Result<()> {
        let guard = buffer.cl_mut(&self.queue)?;
        let kernel = &self.bridge.probe().cl().nothing;
        // SAFETY: probe_nothing takes one buffer and touches nothing.
        unsafe { kernel.launch(&self.queue, clmgr::NdRange::d1(1), &[guard.arg()]) }?;
        Ok(())
    }

    fn hip_kernel(&self, buffer: &mut Shared<u32>) -> Result<()> {
        let mut guard = buffer.hip_mut(&self.stream)?;
        let kernel = &self.bridge.probe().hip().nothing;
        let config = hip::LaunchConfig::linear(1, 1)?;
        // SAFETY: probe_nothing takes one pointer and touches nothing.
        unsafe { kernel.launch(&self.stream, config, &[&guard.slice_mut()]) }?;
        Ok(())
    }
}
