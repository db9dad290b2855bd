use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::{median, on_stream, pace, quantile};
use crate::{Bridge, Error, Grade, Result, Shared, StreamArg};

/// The rounds of two kernels in each sample.
const ROUNDS: usize = 8;
const SAMPLES: usize = 100;
const WARM_UP: usize = 5;

/// The cost of passing a buffer from one API to the other, in microseconds.
///
/// `(ping-pong - chain) / 2N`: N rounds of an empty OpenCL kernel and an empty HIP kernel on one buffer, against the
/// mean of 2N such kernels of OpenCL alone and 2N of HIP alone. The three are timed next to each other, sample by
/// sample, so a slow spell of the machine hits all of them; on a busy machine a sample can still be negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandoffCost {
    /// The median sample.
    pub median_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// One empty kernel within a chain of one API: the median over the samples, the mean of both APIs.
    pub kernel_us: f64,
    /// The same rounds written by hand, without guards and tickets: launch and `clFinish`, launch and
    /// `hipStreamSynchronize`. The median sample, with idle queues only.
    pub by_hand_us: Option<f64>,
}

/// Measures the hand-off on the bridge's own route and by its own grade, with idle queues: each round
/// begins when it is queued.
///
/// # Errors
/// If an allocation or a launch fails.
pub fn handoff(bridge: &Bridge) -> Result<HandoffCost> {
    Ping::new(bridge)?.measure(Load::Idle)
}

/// As [`handoff`], with busy queues: all rounds are queued behind a gate, and timed from when it
/// opens. `None` where the calling thread hands over, which cannot queue ahead.
///
/// # Errors
/// As [`handoff`].
pub fn handoff_busy(bridge: &Bridge) -> Result<Option<HandoffCost>> {
    if bridge.grade() == Grade::Host || bridge.route().is_copy() {
        return Ok(None);
    }
    Ping::new(bridge)?.measure(Load::Busy).map(Some)
}

/// The cost of alternating where there is nothing to hand over: HIP and OpenCL kernels on one HIP stream
/// ([`Bridge::stream_program`]), against chains of each.
///
/// # Errors
/// As [`Bridge::stream_program`], or if an allocation or a launch fails.
pub fn handoff_on_stream(bridge: &Bridge) -> Result<HandoffCost> {
    let stream = bridge.stream()?;
    let opencl = on_stream(bridge, "probe_nothing")?;
    let hip = &bridge.probe().hip().nothing;
    let device = bridge.hip_device();
    let (mut for_cl, mut for_hip) = (device.alloc::<u32>(1024)?, device.alloc::<u32>(1024)?);
    let arg: StreamArg<'_> = for_cl.on_mut(&stream)?.into();
    let slice = for_hip.on_mut(&stream)?;
    let (range, config) = (clmgr::NdRange::d1(1), hip::LaunchConfig::linear(1, 1)?);
    let opencl = || {
        // SAFETY: probe_nothing takes one buffer and touches nothing.
        unsafe { opencl.launch(&stream, range, &[arg]) }
    };
    let hip = || {
        // SAFETY: probe_nothing takes one pointer and touches nothing.
        unsafe { hip.launch(&stream, config, &[&slice]) }.map_err(Error::Hip)
    };
    let chain = |kernels: [&dyn Fn() -> Result<()>; 2]| {
        let start = Instant::now();
        (0..ROUNDS).try_for_each(|_| kernels.iter().try_for_each(|launch| launch()))?;
        stream.synchronize()?;
        Ok::<_, Error>(start.elapsed())
    };
    let (mut costs, mut kernels) = (Vec::new(), Vec::new());
    for counts in pace::samples(WARM_UP, SAMPLES) {
        let together = chain([&hip, &opencl])?;
        let alone = (chain([&hip, &hip])? + chain([&opencl, &opencl])?) / 2;
        if counts {
            costs.push(per_kernel(together) - per_kernel(alone));
            kernels.push(per_kernel(alone));
        }
    }
    let median_us = median(&mut costs);
    Ok(HandoffCost {
        median_us,
        p99_us: quantile(&costs, 0.99),
        kernel_us: median(&mut kernels),
        by_hand_us: None,
    })
}

/// Microseconds per kernel of a sample.
fn per_kernel(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6 / (2 * ROUNDS) as f64
}

/// The cost of passing a buffer on, in microseconds, by direction: the median of many samples.
///
/// A kernel of the first API and one of the second, both empty and on one buffer, with a wait at the
/// end, against the mean of two such kernels of the first API alone and two of the second alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectionCost {
    /// From OpenCL to HIP.
    pub opencl_to_hip_us: f64,
    /// From HIP to OpenCL.
    pub hip_to_opencl_us: f64,
}

/// Measures each direction separately, with idle queues, on the bridge's own route and by its own grade.
///
/// # Errors
/// If an allocation or a launch fails.
pub fn handoff_by_direction(bridge: &Bridge) -> Result<DirectionCost> {
    let ping = Ping::new(bridge)?;
    let mut buffer = bridge.alloc::<u32>(1024)?;
    let (mut to_hip, mut to_opencl) = (Vec::new(), Vec::new());
    for counts in pace::samples(WARM_UP, SAMPLES) {
        // The buffer begins on the side of the first kernel.
        ping.cl_kernel(&mut buffer)?;
        let there = ping.two(|| {
            ping.cl_kernel(&mut buffer)?;
            ping.hip_kernel(&mut buffer)
        })?;
        let hip = ping.two(|| {
            ping.hip_kernel(&mut buffer)?;
            ping.hip_kernel(&mut buffer)
        })?;
        let back = ping.two(|| {
            ping.hip_kernel(&mut buffer)?;
            ping.cl_kernel(&mut buffer)
        })?;
        let opencl = ping.two(|| {
            ping.cl_kernel(&mut buffer)?;
            ping.cl_kernel(&mut buffer)
        })?;
        if counts {
            let alone = f64::midpoint(hip, opencl);
            to_hip.push(there - alone);
            to_opencl.push(back - alone);
        }
    }
    Ok(DirectionCost {
        opencl_to_hip_us: median(&mut to_hip),
        hip_to_opencl_us: median(&mut to_opencl),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Idle,
    Busy,
}

/// Opens when dropped.
enum Gate {
    Open,
    Cl(#[allow(dead_code, reason = "its drop opens")] Closed),
    Hip(#[allow(dead_code, reason = "its drop opens")] mpsc::Sender<()>),
}

/// A user event that completes when dropped.
struct Closed(Option<clmgr::UserEvent>);

impl Drop for Closed {
    fn drop(&mut self) {
        // What waits for an event that could not be ended fails by itself.
        let _ = self.0.take().map(clmgr::UserEvent::complete);
    }
}

struct Ping<'a> {
    bridge: &'a Bridge,
    queue: clmgr::Queue,
    stream: hip::Stream,
}

impl<'a> Ping<'a> {
    fn new(bridge: &'a Bridge) -> Result<Self> {
        Ok(Self {
            bridge,
            queue: bridge.queue()?,
            stream: bridge.stream()?,
        })
    }

    fn measure(&self, load: Load) -> Result<HandoffCost> {
        let mut buffer = self.bridge.alloc::<u32>(1024)?;
        let mut bare = match load {
            Load::Idle => Some((self.bridge.alloc::<u32>(1024)?, self.bridge.alloc(1024)?)),
            Load::Busy => None,
        };
        let (mut costs, mut kernels, mut by_hand) = (Vec::new(), Vec::new(), Vec::new());
        for counts in pace::samples(WARM_UP, SAMPLES) {
            let together = self.ping_pong(load, &mut buffer)?;
            let alone = (self.cl_chain(load, &mut buffer)? + self.hip_chain(load, &mut buffer)?) / 2;
            let bare = bare.as_mut().map(|(cl, hip)| self.by_hand(cl, hip));
            let bare = bare.transpose()?;
            if counts {
                by_hand.extend(bare.map(|bare| per_kernel(bare) - per_kernel(alone)));
                costs.push(per_kernel(together) - per_kernel(alone));
                kernels.push(per_kernel(alone));
            }
        }
        let median_us = median(&mut costs);
        Ok(HandoffCost {
            median_us,
            p99_us: quantile(&costs, 0.99),
            kernel_us: median(&mut kernels),
            by_hand_us: (!by_hand.is_empty()).then(|| median(&mut by_hand)),
        })
    }

    /// Microseconds of `kernels` and a wait, on idle queues.
    fn two(&self, kernels: impl FnOnce() -> Result<()>) -> Result<f64> {
        self.settle()?;
        let elapsed = self.time(Gate::Open, kernels)?;
        Ok(elapsed.as_secs_f64() * 1e6)
    }

    /// What a program without this crate would do. The kernels touch nothing, so each API may have a
    /// buffer of its own, which spares the bare rounds any rule about who may use it.
    fn by_hand(&self, cl: &mut Shared<u32>, hip: &mut Shared<u32>) -> Result<Duration> {
        let cl = cl.cl_mut(&self.queue)?;
        let mut hip = hip.hip_mut(&self.stream)?;
        let (arg, slice) = (cl.arg(), hip.slice_mut());
        let (opencl, probe) = (self.bridge.probe().cl(), self.bridge.probe().hip());
        let config = hip::LaunchConfig::linear(1, 1)?;
        self.settle()?;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            // SAFETY: probe_nothing takes one buffer and touches nothing.
            unsafe { opencl.nothing.launch(&self.queue, clmgr::NdRange::d1(1), &[arg]) }?;
            self.queue.finish()?;
            // SAFETY: as above.
            unsafe { probe.nothing.launch(&self.stream, config, &[&slice]) }?;
            self.stream.synchronize()?;
        }
        Ok(start.elapsed())
    }

    /// The guards hand over, as they do for a user.
    fn ping_pong(&self, load: Load, buffer: &mut Shared<u32>) -> Result<Duration> {
        self.settle()?;
        self.time(self.hold_queue(load)?, || {
            for _ in 0..ROUNDS {
                self.cl_kernel(buffer)?;
                self.hip_kernel(buffer)?;
            }
            Ok(())
        })
    }

    fn cl_chain(&self, load: Load, buffer: &mut Shared<u32>) -> Result<Duration> {
        self.cl_kernel(buffer)?;
        self.settle()?;
        self.time(self.hold_queue(load)?, || {
            (0..2 * ROUNDS).try_for_each(|_| self.cl_kernel(buffer))
        })
    }

    fn hip_chain(&self, load: Load, buffer: &mut Shared<u32>) -> Result<Duration> {
        self.hip_kernel(buffer)?;
        self.settle()?;
        self.time(self.hold_stream(load)?, || {
            (0..2 * ROUNDS).try_for_each(|_| self.hip_kernel(buffer))
        })
    }

    /// From the first call with idle queues; from the opening of the gate with busy ones.
    fn time(&self, gate: Gate, queue: impl FnOnce() -> Result<()>) -> Result<Duration> {
        let mut start = Instant::now();
        queue()?;
        if !matches!(gate, Gate::Open) {
            self.queue.flush()?;
            start = Instant::now();
            drop(gate);
        }
        self.settle()?;
        Ok(start.elapsed())
    }

    fn hold_queue(&self, load: Load) -> Result<Gate> {
        if load == Load::Idle {
            return Ok(Gate::Open);
        }
        let event = clmgr::UserEvent::new(self.bridge.cl_context())?;
        let gate = Gate::Cl(Closed(Some(event)));
        if let Gate::Cl(Closed(Some(event))) = &gate {
            self.queue.wait_for(event.event())?;
        }
        Ok(gate)
    }

    fn hold_stream(&self, load: Load) -> Result<Gate> {
        if load == Load::Idle {
            return Ok(Gate::Open);
        }
        let (open, opened) = mpsc::channel();
        self.stream.host_function(move || {
            // The sender is dropped, never used.
            let _: Result<(), _> = opened.recv();
        })?;
        Ok(Gate::Hip(open))
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
