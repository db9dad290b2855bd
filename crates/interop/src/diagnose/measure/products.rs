use std::time::{Duration, Instant};

use num_complex::Complex;
use rocblas::{Handle, Matrix, Op};

use super::{median, pace};
use crate::{Bridge, Result};

/// Rows of the matrices: enough work to hide the cost of a call.
const ON_HOST: usize = 512;
const ON_A_CARD: usize = 2048;
/// The initial size on a slow device.
const LEAST: usize = 64;
/// Time budget for the products.
const TIME: Duration = Duration::from_secs(4);
const REPEATS: usize = 7;

/// The best rate of rocBLAS on this device, in 10^9 operations a second: a square `cgemm`, in which each complex
/// multiplication and addition counts as 8 operations; median.
///
/// # Errors
/// There is not a rocBLAS, or an allocation or a call fails.
pub fn arithmetic(bridge: &Bridge) -> Result<f64> {
    let most = match bridge.report().platform.facts().is_model {
        true => ON_HOST,
        false => ON_A_CARD,
    };
    let (device, stream) = (bridge.hip_device(), bridge.stream()?);
    let handle = Handle::new(&bridge.blas()?, &stream)?;
    // zeros would need less power than numbers do
    let numbers: Vec<_> = (0..most * most)
        .map(|i| Complex::new((i % 17) as f32 - 8.0, (i % 13) as f32 - 6.0))
        .collect();
    let a = device.alloc_from(&stream, &numbers)?;
    let mut c = device.alloc::<Complex<f32>>(most * most)?;
    let (one, zero) = (Complex::new(1.0, 0.0), Complex::new(0.0, 0.0));
    let mut product = |size: usize| -> Result<()> {
        handle.gemm(
            Op::None,
            Op::None,
            one,
            Matrix::new(&a, size, size, size),
            Matrix::new(&a, size, size, size),
            zero,
            Matrix::new(&mut c, size, size, size),
        )?;
        Ok(stream.synchronize()?)
    };
    // The work is the third power of the size.
    let size_of = |work: usize| (work as f64).cbrt().round() as usize;
    let work = pace::affordable(TIME, LEAST.pow(3), most.pow(3), REPEATS + 1, |work| {
        product(size_of(work))
    })?;
    let mut rates = Vec::with_capacity(REPEATS);
    for counts in pace::samples(1, REPEATS) {
        let start = Instant::now();
        product(size_of(work))?;
        if counts {
            rates.push(8.0 * work as f64 / start.elapsed().as_secs_f64() / 1e9);
        }
    }
    Ok(median(&mut rates))
}
