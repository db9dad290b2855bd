//! A whole job as one HIP graph: copy in, OpenCL kernel, FFT, HIP kernel, copy out. Captured once, run for every block.
//!
//! `cargo run -p hipcl-interop --example 14_graph`

use std::error::Error;

use clmgr::{C32, NdRange};
use clmgr_fft::{Direction, Plan};
use hip::LaunchConfig;
use interop::{Bridge, Options};

/// Samples of a block.
const LEN: usize = 4096;
const BLOCKS: usize = 20;

/// Hann's window.
const WINDOW: &str = "
    kernel void window(global float2 *x) {
        uint i = get_global_id(0);
        x[i] *= 0.5f - 0.5f * cospi(2.0f * i / get_global_size(0));
    }";

const POWER: &str = r#"
    extern "C" __global__ void power(const float2 *x, float *p) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        p[i] = x[i].x * x[i].x + x[i].y * x[i].y;
    }"#;

fn main() -> Result<(), Box<dyn Error>> {
    let platform = platform::select()?;
    let bridge = Bridge::open(&platform, &Options::default())?;
    let (device, stream) = (bridge.hip_device(), bridge.stream()?);
    let window = bridge.programs().get(WINDOW, "")?;
    let window = bridge.stream_program(&window)?.kernel("window")?;
    let plan = Plan::new(bridge.cl_context(), bridge.programs(), LEN, 1)?;
    let fft = bridge.stream_fft(&plan)?;
    // Tables are copied from the host, which a capture cannot record.
    fft.prepare(Direction::Forward)?;
    let power = hip::rtc::Program::new(POWER).compile(device)?.function("power")?;

    let mut samples = device.alloc_pinned::<C32>(LEN)?;
    let mut spectrum = device.alloc_pinned::<f32>(LEN)?;
    let (mut x, mut p) = (device.alloc::<C32>(LEN)?, device.alloc::<f32>(LEN)?);

    let graph = stream.capture_told(
        |_| Ok::<(), interop::Error>(()),
        |stream| {
            let mut x = x.on_mut(stream)?;
            let p = p.on_mut(stream)?;
            x.copy_from(samples.on(stream)?)?;
            // SAFETY: the kernel takes a complex pointer and touches LEN elements.
            unsafe { window.launch(stream, NdRange::d1(LEN), &[x.reborrow().into()])? };
            fft.enqueue_in_place(stream, Direction::Forward, x.reborrow())?;
            let config = LaunchConfig::linear(LEN, 256)?;
            // SAFETY: the kernel takes a complex and a float pointer and touches LEN elements of each.
            unsafe { power.launch(stream, config, &[&x, &p])? };
            spectrum.on_mut(stream)?.copy_from(p.as_slice())?;
            Ok(())
        },
    )?;
    println!("one graph of {} nodes", graph.node_count()?);
    let graph = graph.instantiate()?;

    for block in 0..BLOCKS {
        let bin = 37 + 113 * block;
        for (time, sample) in samples.host_mut()?.iter_mut().enumerate() {
            let turns = (time * bin % LEN) as f32 / LEN as f32;
            *sample = C32::from_polar(1.0, std::f32::consts::TAU * turns);
        }
        {
            let (data, result) = (samples.on(&stream)?, spectrum.on_mut(&stream)?);
            let (x, p) = (x.on_mut(&stream)?, p.on_mut(&stream)?);
            // SAFETY: these are all the memory that the graph does not own.
            unsafe { graph.launch(&stream, &[&data, &x, &p, &result])? };
        }
        stream.synchronize()?;
        let powers = spectrum.host()?;
        let peak = (0..LEN).max_by(|&a, &b| powers[a].total_cmp(&powers[b]));
        if peak != Some(bin) {
            return Err(format!("block {block}: the peak is at {peak:?}, not at {bin}").into());
        }
    }
    println!("{BLOCKS} blocks, one call each: every tone found");
    Ok(())
}
