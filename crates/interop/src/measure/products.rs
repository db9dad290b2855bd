use super::median;
use crate::{Bridge, Result};
use num_complex::Complex;
use platform::Platform;
use rocblas::{Handle, Matrix, MatrixMut, Op};
use std::time::Instant;

/// Rows of the matrices: enough work to hide what a call costs.
const ON_HOST: usize = 512;
const ON_A_CARD: usize = 2048;
const REPEATS: usize = 7;

/// What rocBLAS computes at best on this device, in 10^9 operations a second: a square `cgemm`, of which each
/// complex multiplication and addition counts as 8 operations; median.
///
/// # Errors
/// There is no rocBLAS, or an allocation or a call fails.
pub fn arithmetic(bridge: &Bridge) -> Result<f64> {
    let size = match bridge.report().platform {
        Platform::Host => ON_HOST,
        _ => ON_A_CARD,
    };
    let (device, stream) = (bridge.hip_device(), bridge.stream()?);
    let handle = Handle::new(&bridge.blas()?, &stream)?;
    // zeros would need less power than numbers do
    let numbers: Vec<_> = (0..size * size)
        .map(|i| Complex::new((i % 17) as f32 - 8.0, (i % 13) as f32 - 6.0))
        .collect();
    let a = device.alloc_from(&stream, &numbers)?;
    let mut c = device.alloc::<Complex<f32>>(size * size)?;
    let (one, zero) = (Complex::new(1.0, 0.0), Complex::new(0.0, 0.0));
    let mut rates = Vec::with_capacity(REPEATS);
    for repeat in 0..=REPEATS {
        stream.synchronize()?;
        let start = Instant::now();
        handle.gemm(
            Op::None,
            Op::None,
            one,
            Matrix::new(a.on(&stream)?, size, size, size)?,
            Matrix::new(a.on(&stream)?, size, size, size)?,
            zero,
            MatrixMut::new(c.on_mut(&stream)?, size, size, size)?,
        )?;
        stream.synchronize()?;
        // the first call loads what the library needs
        if repeat > 0 {
            rates.push(8.0 * (size as f64).powi(3) / start.elapsed().as_secs_f64() / 1e9);
        }
    }
    Ok(median(&mut rates))
}
