//! A job on your own data: samples of an antenna array from a file, an OpenCL kernel, an FFT, a matrix product, a plot.
//!
//! The book's chapter "Your own job in an hour" explains it step by step.
//!
//! `cargo run -p hipcl-interop --example 17_your_own_job -- SAMPLES.cf32 CHANNELS PICTURE.svg`. Without arguments it first writes
//! a file of its own: eight antennas and a tone from 20 degrees.

use std::error::Error;
use std::f32::consts::{PI, TAU};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clmgr::{C32, NdRange};
use clmgr_fft::{Direction, Plan};
use interop::{Bridge, Options, StreamArg};
use rocblas::{Handle, Matrix, Op};

// ANCHOR: kernel
/// Tapers each channel, so that a strong tone does not hide a weak one far from it.
const WINDOW: &str = "
kernel void window(global float2 *x, uint samples) {
    size_t i = get_global_id(0);
    float phase = 6.2831853f * (float)(i % samples) / (float)samples;
    x[i] *= 0.5f - 0.5f * cos(phase);
}";
// ANCHOR_END: kernel

/// One for each degree from -90 to 90.
const BEAMS: usize = 181;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let made = std::env::temp_dir().join(format!("your-own-job-{}.cf32", std::process::id()));
    let (input, channels, picture) = match &arguments[..] {
        [] => {
            fs::write(&made, example_samples())?;
            (made.clone(), 8, None)
        }
        [picture] => {
            fs::write(&made, example_samples())?;
            (made.clone(), 8, Some(PathBuf::from(picture)))
        }
        [input, channels, picture] => (input.into(), channels.parse()?, Some(PathBuf::from(picture))),
        _ => return Err("usage: 17_your_own_job [[SAMPLES.cf32 CHANNELS] PICTURE.svg]".into()),
    };
    let read = read_samples(&input, channels);
    if input == made {
        fs::remove_file(&made)?;
    }
    let (samples, len) = read?;

    let (bin, power) = strongest(&samples, channels, len)?;
    let beam = (0..BEAMS).max_by(|&a, &b| power[a].total_cmp(&power[b])).unwrap_or(0);
    println!("strongest in bin {bin} of {len}, from {} degrees", degrees(beam));
    if let Some(picture) = picture {
        fs::write(picture, plot(&power))?;
    } else if !(19..=21).contains(&degrees(beam)) {
        return Err("the tone comes from 20 degrees".into());
    }
    Ok(())
}

// ANCHOR: read
/// The samples of a file, one channel after the other, and how many each channel has. A sample is two `f32`, little
/// endian: real part, imaginary part.
fn read_samples(file: &Path, channels: usize) -> Result<(Vec<C32>, usize), Box<dyn Error>> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let (numbers, rest) = bytes.as_chunks::<8>();
    if channels == 0 || numbers.is_empty() || !rest.is_empty() || numbers.len() % channels != 0 {
        return Err(format!("{}: not {channels} channels of complex samples", file.display()).into());
    }
    let number = |at: &[u8; 8]| {
        let [a, b, c, d, e, f, g, h] = *at;
        C32::new(f32::from_le_bytes([a, b, c, d]), f32::from_le_bytes([e, f, g, h]))
    };
    Ok((numbers.iter().map(number).collect(), numbers.len() / channels))
}
// ANCHOR_END: read

/// The strongest frequency, and its power in each direction.
fn strongest(samples: &[C32], channels: usize, len: usize) -> Result<(usize, Vec<f32>), Box<dyn Error>> {
    // ANCHOR: open
    let bridge = Bridge::open(&platform::select()?, &Options::default())?;
    let (device, stream) = (bridge.hip_device(), bridge.stream()?);
    let mut x = device.alloc_from(&stream, samples)?; // len x channels, column-major
    let weights = device.alloc_from(&stream, &steering(channels))?; // channels x BEAMS
    let mut y = device.alloc_zeroed::<C32>(len * BEAMS)?; // len x BEAMS
    // ANCHOR_END: open

    // ANCHOR: window
    let program = bridge.programs().get(WINDOW, "")?; // compiled by OpenCL
    let window = bridge.stream_program(&program)?.kernel("window")?; // launched by HIP
    let row = u32::try_from(len)?;
    let range = NdRange::d1(channels * len);
    // SAFETY: the kernel takes a complex pointer and a number, and touches each sample once.
    unsafe { window.launch(&stream, range, &[x.on_mut(&stream)?.into(), StreamArg::scalar(&row)])? };
    // ANCHOR_END: window

    // ANCHOR: fft
    let plan = Plan::new(bridge.cl_context(), bridge.programs(), len, channels)?;
    let fft = bridge.stream_fft(&plan)?;
    fft.enqueue_in_place(&stream, Direction::Forward, x.on_mut(&stream)?)?;
    // ANCHOR_END: fft

    // ANCHOR: beams
    let blas = Handle::new(&bridge.blas()?, &stream)?;
    let spectra = Matrix::new(&x, len, channels, len);
    let weights = Matrix::new(&weights, channels, BEAMS, channels);
    let beams = Matrix::new(&mut y, len, BEAMS, len);
    let (one, zero) = (C32::new(1.0, 0.0), C32::default());
    blas.gemm(Op::None, Op::None, one, spectra, weights, zero, beams)?;
    // ANCHOR_END: beams

    // ANCHOR: result
    let mut found = vec![C32::default(); len * BEAMS];
    y.copy_to_slice(&stream, &mut found)?; // waits for all of the above
    let power = |bin: usize, beam: usize| found[beam * len + bin].norm_sqr();
    let most = |bin: usize| (0..BEAMS).map(|beam| power(bin, beam)).fold(0.0, f32::max);
    let bin = (0..len).max_by(|&a, &b| most(a).total_cmp(&most(b))).unwrap_or(0);
    Ok((bin, (0..BEAMS).map(|beam| power(bin, beam)).collect()))
    // ANCHOR_END: result
}

// ANCHOR: steering
fn degrees(beam: usize) -> i32 {
    beam as i32 - 90
}

/// What aligns the antennas, half a wavelength apart, for each direction: channels x BEAMS, column-major.
fn steering(channels: usize) -> Vec<C32> {
    let weight = |i: usize| {
        let (channel, beam) = (i % channels, i / channels);
        C32::from_polar(1.0, -PI * channel as f32 * (degrees(beam) as f32).to_radians().sin())
    };
    (0..channels * BEAMS).map(weight).collect()
}
// ANCHOR_END: steering

// ANCHOR: plot
/// Power over direction as an SVG, in decibels below the maximum.
fn plot(power: &[f32]) -> String {
    let most = power.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let mut points = String::new();
    for (beam, power) in power.iter().enumerate() {
        let decibel = 10.0 * (power / most).max(1e-4).log10(); // 0 to -40
        let _ = write!(points, "{},{:.1} ", 60 + 3 * beam, 20.0 - 6.0 * decibel);
    }
    let mut grid = String::new();
    for decibel in [0, -10, -20, -30, -40] {
        let y = 20 - 6 * decibel;
        let _ = write!(
            grid,
            "<path d='M60 {y}H600'/><text x='52' y='{}' text-anchor='end'>{decibel} dB</text>",
            y + 5
        );
    }
    for angle in [-90, -45, 0, 45, 90] {
        let x = 60 + 3 * (angle + 90);
        let _ = write!(
            grid,
            "<path d='M{x} 20V260'/><text x='{x}' y='282' text-anchor='middle'>{angle}°</text>"
        );
    }
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 640 300' font-family='sans-serif' font-size='14'>\
         <rect width='640' height='300' rx='8' fill='#fbfbf8'/><g stroke='#c8c8c0' fill='none'>{grid}</g>\
         <polyline points='{points}' fill='none' stroke='#0b5cad' stroke-width='2'/></svg>\n"
    )
    .replace("<text", "<text stroke='none' fill='#333'")
}
// ANCHOR_END: plot

/// Eight channels of 1024 samples: a tone that comes from 20 degrees, and noise.
fn example_samples() -> Vec<u8> {
    let (channels, len) = (8, 1024);
    let step = PI * 20.0_f32.to_radians().sin();
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    let mut bytes = Vec::new();
    for i in 0..channels * len {
        let (channel, time) = (i / len, i % len);
        let tone = C32::from_polar(1.0, TAU * 0.1 * time as f32 + step * channel as f32);
        bytes.extend((tone.re + noise()).to_le_bytes());
        bytes.extend((tone.im + noise()).to_le_bytes());
    }
    bytes
}
