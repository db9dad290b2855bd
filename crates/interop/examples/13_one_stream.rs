//! One stream: an OpenCL FFT, a product by rocBLAS and an OpenCL kernel, in order, on HIP's memory. No copy and no
//! hand-off.
//!
//! `cargo run -p hipcl-interop --example 13_one_stream`

use std::error::Error;

use clmgr::{C32, NdRange};
use clmgr_fft::{Direction, Plan};
use interop::{Bridge, Options, StreamArg};
use rocblas::{Handle, Matrix, Op};

const CHANNELS: usize = 8;
const SNAPSHOTS: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let platform = platform::select()?;
    let bridge = Bridge::open(&platform, &Options::default())?;
    let (device, stream) = (bridge.hip_device(), bridge.stream()?);
    let blas = Handle::new(&bridge.blas()?, &stream)?;
    let plan = Plan::new(bridge.cl_context(), bridge.programs(), SNAPSHOTS, CHANNELS)?;
    let fft = bridge.stream_fft(&plan)?;
    let divide = "kernel void divide(global float2 *r, float by) { r[get_global_id(0)] /= by; }";
    let divide = bridge.programs().get(divide, "")?;
    let divide = bridge.stream_program(&divide)?.kernel("divide")?;

    let samples: Vec<C32> = (0..CHANNELS * SNAPSHOTS).map(sample).collect();
    let mut x = device.alloc_from(&stream, &samples)?;
    let mut r = device.alloc_zeroed::<C32>(CHANNELS * CHANNELS)?;

    // The spectrum of each channel, a column of X.
    fft.enqueue_in_place(&stream, Direction::Forward, x.on_mut(&stream)?)?;
    // R = X^H X.
    let columns = Matrix::new(&x, SNAPSHOTS, CHANNELS, SNAPSHOTS);
    let result = Matrix::new(&mut r, CHANNELS, CHANNELS, CHANNELS);
    let (one, zero) = (C32::new(1.0, 0.0), C32::new(0.0, 0.0));
    blas.gemm(Op::ConjTranspose, Op::None, one, columns, columns, zero, result)?;
    // R / N^2, the covariance of the channels.
    let by = (SNAPSHOTS * SNAPSHOTS) as f32;
    let range = NdRange::d1(CHANNELS * CHANNELS);
    // SAFETY: the kernel takes a complex pointer and a number, and touches each element of R.
    unsafe { divide.launch(&stream, range, &[r.on_mut(&stream)?.into(), StreamArg::scalar(&by)])? };

    let mut covariance = vec![C32::default(); CHANNELS * CHANNELS];
    r.copy_to_slice(&stream, &mut covariance)?;
    let error = difference(&samples, &covariance);
    println!("an FFT, a product and a kernel in one stream: the covariance is right to {error:.1e}");
    if error > 1e-5 {
        return Err(format!("it is wrong by {error}").into());
    }
    Ok(())
}

/// A tone that each channel sees with another phase, and some noise.
fn sample(index: usize) -> C32 {
    let (channel, time) = (index / SNAPSHOTS, index % SNAPSHOTS);
    let phase = 0.3 * time as f32 + 0.7 * channel as f32;
    let noise = (index.wrapping_mul(0x9E37_79B9) >> 9 & 0xFFFF) as f32 / 65_536.0 - 0.5;
    C32::new(phase.cos() + noise, phase.sin() - noise)
}

/// How far this is from the covariance of the samples themselves, which Parseval's theorem says it is.
fn difference(samples: &[C32], covariance: &[C32]) -> f32 {
    let mut worst = 0.0_f32;
    for (column, b) in samples.chunks(SNAPSHOTS).enumerate() {
        for (row, a) in samples.chunks(SNAPSHOTS).enumerate() {
            let sum: C32 = a.iter().zip(b).map(|(a, b)| a.conj() * b).sum();
            let expected = sum / SNAPSHOTS as f32;
            worst = worst.max((covariance[column * CHANNELS + row] - expected).norm());
        }
    }
    worst
}
