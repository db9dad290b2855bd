//! The order of users when guards live across other grants.

#[path = "../common/mod.rs"]
mod common;
mod guards;
mod model;

use std::sync::mpsc;
use std::time::Duration;

use interop::{Bridge, Grade, Options};

const CL: &str = "
__kernel void step(__global uint *x, uint k)
{
    size_t i = get_global_id(0);
    uint v = x[i];
    /* Long enough that a missing wait shows. */
    for (uint n = 0; n < 64; ++n)
        v = v * 1664525u + k;
    x[i] = v;
}
__kernel void sum(__global const uint *x, __global uint *total)
{
    atomic_add((volatile __global uint *)total, x[get_global_id(0)]);
}";

const HIP: &str = r#"
extern "C" __global__ void step(unsigned int *x, unsigned int k, unsigned int len)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= len)
        return;
    unsigned int v = x[i];
    for (unsigned int n = 0; n < 64; ++n)
        v = v * 22695477u + k;
    x[i] = v;
}
extern "C" __global__ void sum(const unsigned int *x, unsigned int *total, unsigned int len)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < len)
        atomicAdd(total, x[i]);
}"#;

/// Parts begin at multiples of this, which every device accepts for a sub-buffer.
pub(crate) const GRAIN: usize = 64;
pub(crate) const GRAINS: usize = 16;
pub(crate) const LEN: usize = GRAIN * GRAINS;

pub(crate) fn model_cl(x: &mut [u32], k: u32) {
    model_step(x, 1_664_525, k);
}

pub(crate) fn model_hip(x: &mut [u32], k: u32) {
    model_step(x, 22_695_477, k);
}

fn model_step(x: &mut [u32], factor: u32, k: u32) {
    for v in x {
        for _ in 0..64 {
            *v = v.wrapping_mul(factor).wrapping_add(k);
        }
    }
}

pub(crate) struct Rig {
    pub(crate) bridge: Bridge,
    cl_step: clmgr::Kernel,
    cl_sum: clmgr::Kernel,
    hip_step: hip::Function,
    hip_sum: hip::Function,
    pub(crate) queues: [clmgr::Queue; 3],
    pub(crate) streams: [hip::Stream; 3],
}

impl Rig {
    pub(crate) fn open(grade: Grade, limit: Duration) -> Self {
        let options = Options {
            grade: Some(grade),
            handoff_limit: Some(limit),
            ..Options::default()
        };
        let bridge = Bridge::open(&common::selection(), &options)
            .expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
        let program = bridge.programs().get(CL, "").expect("OpenCL kernels");
        let module = hip::rtc::Program::new(HIP)
            .name("ledger.hip")
            .compile(bridge.hip_device())
            .expect("HIP kernels");
        Self {
            cl_step: program.kernel("step").expect("step"),
            cl_sum: program.kernel("sum").expect("sum"),
            hip_step: module.function("step").expect("step"),
            hip_sum: module.function("sum").expect("sum"),
            queues: [(); 3].map(|()| bridge.queue().expect("a queue")),
            streams: [(); 3].map(|()| bridge.stream().expect("a stream")),
            bridge,
        }
    }

    pub(crate) fn cl_step(&self, queue: &clmgr::Queue, x: clmgr::Arg<'_>, len: usize, k: u32) {
        let (range, args) = (clmgr::NdRange::d1(len), [x, clmgr::Arg::scalar(&k)]);
        // SAFETY: `step` takes a buffer of at least `len` words and a uint.
        unsafe { self.cl_step.launch(queue, range, &args) }.expect("a launch");
    }

    pub(crate) fn hip_step(&self, stream: &hip::Stream, x: hip::DeviceSliceMut<'_, u32>, k: u32) {
        let len = x.len() as u32;
        let config = hip::LaunchConfig::linear(x.len(), 64).expect("a grid");
        // SAFETY: `step` takes a pointer to `len` words and two numbers, and stays below `len`.
        unsafe { self.hip_step.launch(stream, config, &[&x, &k, &len]) }.expect("a launch");
    }

    /// Adds up the words, into a counter that is read later.
    pub(crate) fn cl_sum(&self, queue: &clmgr::Queue, x: clmgr::Arg<'_>, len: usize) -> Sum {
        let context = self.bridge.cl_context();
        let mut total = clmgr::RegularBuffer::<u32>::new(context, 1).expect("a counter");
        // Not through the queue, which may be blocked.
        let idle = self.bridge.main_queue();
        total.write(idle, &[0]).expect("a counter");
        // SAFETY: `sum` takes a buffer of as many words as work-items, and a counter.
        unsafe { self.cl_sum.launch(queue, clmgr::NdRange::d1(len), &[x, total.arg()]) }.expect("a launch");
        Sum::Cl(total, queue.clone())
    }

    /// Like [`cl_sum`](Self::cl_sum).
    pub(crate) fn hip_sum(&self, stream: &hip::Stream, x: hip::DeviceSlice<'_, u32>) -> Sum {
        let total = stream.device().alloc_zeroed::<u32>(1);
        let mut total = total.expect("a counter");
        let config = hip::LaunchConfig::linear(x.len(), 64).expect("a grid");
        let (counter, len) = (total.on_mut(stream).expect("a counter"), x.len() as u32);
        // SAFETY: `sum` takes a pointer to `len` words, a counter and `len`.
        unsafe { self.hip_sum.launch(stream, config, &[&x, &counter, &len]) }.expect("a launch");
        Sum::Hip(total, stream.clone())
    }
}

/// The sum that a kernel computes.
pub(crate) enum Sum {
    Cl(clmgr::RegularBuffer<u32>, clmgr::Queue),
    Hip(hip::DeviceBuffer<u32>, hip::Stream),
}

impl Sum {
    pub(crate) fn read(self) -> u32 {
        let mut total = [0];
        match self {
            Self::Cl(buffer, queue) => buffer.read(&queue, &mut total).expect("the counter"),
            Self::Hip(buffer, stream) => buffer.copy_to_slice(&stream, &mut total).expect("the counter"),
        }
        total[0]
    }
}

/// Work given to the stream from now on waits until the sender is used or dropped.
pub(crate) fn hold(stream: &hip::Stream) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel();
    stream
        .host_function(move || {
            let _ = held.recv();
        })
        .expect("a host function");
    release
}
