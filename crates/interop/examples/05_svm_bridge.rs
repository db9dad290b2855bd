//! OpenCL transforms, rocBLAS multiplies, on one buffer in coarse shared virtual memory.
//!
//! Three steps: allocate once; let OpenCL write the spectra of eight antennas; let rocBLAS make their
//! covariance of the same bytes. No byte of the data set is copied, which is counted, and the result
//! is compared with one in double precision.
//!
//! `cargo run -p hipcl-interop --example 05_svm_bridge`

use std::error::Error;
use std::f64::consts::TAU;

use clmgr_fft::{Direction, Plan};
use interop::{Bridge, Options, Route};
use num_complex::Complex;
use rocblas::{Handle, Matrix, Op};

type C32 = Complex<f32>;
type C64 = Complex<f64>;

const ANTENNAS: usize = 8;
const SAMPLES: usize = 480;

fn main() -> Result<(), Box<dyn Error>> {
    let selection = platform::select()?;
    let options = Options {
        route: Some(Route::SvmCoarse),
        ..Options::default()
    };
    let bridge = match Bridge::open(&selection, &options) {
        Err(error) if error.is_impossible() => {
            println!("skipped: {error}");
            return Ok(());
        }
        opened => opened?,
    };
    println!("{} on {}", bridge.route(), bridge.report().hip_device);

    // Step 1: one allocation. One column of samples for each antenna.
    let mut data = bridge.alloc::<C32>(ANTENNAS * SAMPLES)?;
    let (cl, hip) = data.addresses().ok_or("both APIs have an address here")?;
    println!("OpenCL sees it at {cl:#x}, HIP at {hip:#x}");
    if cl != hip {
        return Err("shared virtual memory has one address".into());
    }
    let signal = signal();
    data.upload(&signal)?;
    let mut covariance = bridge.alloc::<C32>(ANTENNAS * ANTENNAS)?;

    let queue = bridge.queue()?;
    let stream = bridge.stream()?;
    let handle = Handle::new(&bridge.blas()?, &stream)?;
    let plan = Plan::new(bridge.cl_context(), bridge.programs(), SAMPLES, ANTENNAS)?;
    let before = bridge.meter().snapshot();

    // Step 2: OpenCL, in place.
    // The plan's first use uploads its twiddle factors, which are not part of the data set.
    bridge.meter().count_as(interop::Category::Control, || {
        let guard = data.cl_mut(&queue)?;
        // SAFETY: the buffer holds ANTENNAS blocks of SAMPLES numbers, as the plan says, and the
        // guard may write it.
        unsafe { plan.enqueue(&queue, Direction::Forward, guard.arg(), guard.arg()) }?;
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;

    // Step 3: rocBLAS, C = S^H * S / SAMPLES. The call waits for what OpenCL has queued.
    let spectra = Matrix::new(&data, SAMPLES, ANTENNAS, SAMPLES);
    let output = Matrix::new(&mut covariance, ANTENNAS, ANTENNAS, ANTENNAS);
    let scale = C32::new(1.0 / SAMPLES as f32, 0.0);
    let (adjoint, zero) = (Op::ConjTranspose, C32::default());
    handle.gemm(adjoint, Op::None, scale, spectra, spectra, zero, output)?;

    let mut found = vec![zero; ANTENNAS * ANTENNAS];
    covariance.download(&mut found)?;
    let copied = bridge.meter().snapshot().since(&before).data_set;
    println!("{copied} bytes of the data set were copied");
    if copied != 0 {
        return Err("nothing should be copied".into());
    }
    let off = difference(&found, &reference(&signal));
    println!("greatest difference from the reference: {off:.2e} of its greatest entry");
    match off < 1e-5 {
        true => Ok(()),
        false => Err("the covariance is wrong".into()),
    }
}

/// Two sources, which each antenna hears a little later, and something like noise.
fn signal() -> Vec<C32> {
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24) - 0.5
    };
    let place = |antenna: usize, sample: usize| {
        let (antenna, time) = (antenna as f64, sample as f64 / SAMPLES as f64);
        let one = C64::from_polar(1.0, TAU * (37.0 * time + 0.21 * antenna));
        let two = C64::from_polar(0.5, TAU * (-91.0 * time + 0.37 * antenna));
        one + two
    };
    (0..ANTENNAS * SAMPLES)
        .map(|i| place(i / SAMPLES, i % SAMPLES) + C64::new(noise(), noise()))
        .map(|v| C32::new(v.re as f32, v.im as f32))
        .collect()
}

/// The same from the definitions, in double precision.
fn reference(signal: &[C32]) -> Vec<C64> {
    let turns: Vec<C64> = (0..SAMPLES)
        .map(|i| C64::from_polar(1.0, -TAU * i as f64 / SAMPLES as f64))
        .collect();
    let spectrum = |column: &[C32]| -> Vec<C64> {
        let bin = |k: usize| {
            let terms = column.iter().enumerate();
            terms
                .map(|(t, v)| C64::new(v.re.into(), v.im.into()) * turns[k * t % SAMPLES])
                .sum()
        };
        (0..SAMPLES).map(bin).collect()
    };
    let spectra: Vec<Vec<C64>> = signal.chunks(SAMPLES).map(spectrum).collect();
    let entry = |i: usize, j: usize| -> C64 {
        let pairs = spectra[i].iter().zip(&spectra[j]);
        pairs.map(|(a, b)| a.conj() * b).sum::<C64>() / SAMPLES as f64
    };
    (0..ANTENNAS * ANTENNAS)
        .map(|place| entry(place % ANTENNAS, place / ANTENNAS))
        .collect()
}

fn difference(found: &[C32], expected: &[C64]) -> f64 {
    let greatest = expected.iter().map(|v| v.norm()).fold(0.0, f64::max);
    let pairs = found.iter().zip(expected);
    pairs
        .map(|(a, b)| (C64::new(a.re.into(), a.im.into()) - b).norm() / greatest)
        .fold(0.0, f64::max)
}
