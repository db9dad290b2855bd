//! Samples arrive in packets; while one block is received and uploaded, the one before it is worked on.
//!
//! The sender is a thread behind a socket, in the place of a network. OpenCL shifts each block in
//! frequency, HIP takes its power, and the result is compared with the processor's.
//!
//! `cargo run -p hipcl-interop --example 09_double_buffer`

use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use interop::pipeline::Summary;
use interop::{Bridge, Options, Pipeline, Slot};
use num_complex::Complex;

type Sample = Complex<f32>;

const SAMPLES: usize = 1 << 18;
const BLOCKS: u64 = 24;
/// A packet never holds a whole block.
const PACKET: usize = 8192;
const CYCLES_PER_SAMPLE: f32 = 1.0 / 64.0;

/// What the sender sends as the sample `place` of block `block`.
fn sample(block: u64, place: usize) -> Sample {
    let value = (place % 1000) as f32 * 1e-3;
    Sample::new(block as f32 * 0.125 + value, 0.5 - value)
}

fn send(mut socket: UnixStream) -> std::io::Result<()> {
    for block in 0..BLOCKS {
        let samples: Vec<Sample> = (0..SAMPLES).map(|place| sample(block, place)).collect();
        for packet in bytemuck::cast_slice::<Sample, u8>(&samples).chunks(PACKET) {
            socket.write_all(packet)?;
        }
    }
    Ok(())
}

/// Puts packets together to blocks; ends with the sender.
fn receive(mut socket: UnixStream) -> impl Iterator<Item = std::io::Result<Vec<Sample>>> + Send {
    std::iter::from_fn(move || {
        let mut block = vec![Sample::default(); SAMPLES];
        let bytes = bytemuck::cast_slice_mut::<Sample, u8>(&mut block);
        match socket.read(&mut bytes[..1]) {
            Ok(0) => None,
            Ok(_) => Some(socket.read_exact(&mut bytes[1..]).map(|()| block)),
            Err(error) => Some(Err(error)),
        }
    })
}

fn check(block: u64, powers: &[Sample]) -> Result<(), Box<dyn Error>> {
    for (place, found) in powers.iter().enumerate() {
        // A turn in the plane keeps the power.
        let expected = sample(block, place).norm_sqr();
        if (found.re - expected).abs() > 1e-4 * expected.max(1.0) || found.im != 0.0 {
            return Err(format!("block {block}, sample {place}: {found}, not {expected}").into());
        }
    }
    Ok(())
}

fn run(bridge: &Bridge, slots: usize) -> Result<Summary, Box<dyn Error>> {
    let shift = bridge
        .programs()
        .get(include_str!("../kernels/samples.cl"), "")?
        .kernel("shift")?;
    let power = hip::rtc::Program::new(include_str!("../kernels/samples.hip"))
        .name("samples.hip")
        .compile(bridge.hip_device())?
        .function("power")?;
    let mut pipeline = Pipeline::new(bridge.slots::<Sample>(slots, SAMPLES)?)
        .stage("opencl: shift", move |slot: &mut Slot<Sample>, _| {
            let guard = slot.data.cl_mut(&slot.queue)?;
            let args = [guard.arg(), clmgr::Arg::scalar(&CYCLES_PER_SAMPLE)];
            // SAFETY: `shift` takes a buffer of as many samples as there are work-items, and a float.
            unsafe { shift.launch(&slot.queue, clmgr::NdRange::d1(SAMPLES), &args) }?;
            Ok::<_, Box<dyn Error + Send + Sync>>(slot.queue.finish()?)
        })
        .stage("hip: power", move |slot: &mut Slot<Sample>, _| {
            let mut guard = slot.data.hip_mut(&slot.stream)?;
            let config = hip::LaunchConfig::linear(SAMPLES, 256)?;
            let count = SAMPLES as u32;
            // SAFETY: `power` takes a pointer and a count and stays below the count.
            unsafe { power.launch(&slot.stream, config, &[&guard.slice_mut(), &count]) }?;
            Ok(slot.stream.synchronize()?)
        });
    let (sender, receiver) = UnixStream::pair()?;
    let sending = std::thread::spawn(move || send(sender));
    let mut first_wrong = None;
    let summary = pipeline.run(
        &mut receive(receiver),
        |slot, block| Ok(slot.data.upload(&block?)?),
        |slot| {
            let mut powers = vec![Sample::default(); SAMPLES];
            slot.data.download(&mut powers)?;
            Ok(powers)
        },
        |block, powers| {
            let outcome = powers.map_err(Into::into).and_then(|powers| check(block, &powers));
            first_wrong = first_wrong.take().or(outcome.err());
        },
    )?;
    sending.join().map_err(|_| "the sender panicked")??;
    match first_wrong {
        Some(wrong) => Err(wrong),
        None if summary.blocks == BLOCKS => Ok(summary),
        None => Err(format!("{} of {BLOCKS} blocks arrived", summary.blocks).into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let bridge = Bridge::open(&platform::select()?, &Options::default())?;
    bridge.warm_up()?;
    for slots in [1, 2] {
        let summary = run(&bridge, slots)?;
        println!("{slots} slots, every sample right\n{summary}\n");
    }
    Ok(())
}
