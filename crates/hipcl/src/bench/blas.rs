//! Complex products of rocBLAS on shared memory.

use rocblas::{Handle, Matrix, MatrixMut, Op};

use super::line::{Better, Line};
use super::{Found, Ground, per_second, seconds};
use crate::{C32, Result};

const SIZES: [usize; 5] = [64, 128, 256, 512, 1024];
const SAMPLES: usize = 15;

pub(super) fn measure(ground: &Ground) -> Result<Found> {
    let bridge = &ground.bridge;
    let (queue, stream) = (bridge.queue()?, bridge.stream()?);
    let handle = Handle::new(&bridge.blas()?, &stream)?;
    let one = C32::new(1.0, 0.0);
    let mut lines = Vec::new();
    for size in SIZES {
        let elements = size * size;
        let numbers = vec![C32::new(0.5, -0.25); elements];
        let mut a = bridge.alloc::<C32>(elements)?;
        let mut b = bridge.alloc::<C32>(elements)?;
        let mut c = bridge.alloc::<C32>(elements)?;
        a.upload(&numbers)?;
        b.upload(&numbers)?;
        // OpenCL owns it first, as it does in a program that needs the two
        drop(c.cl_mut(&queue)?);
        let times = seconds(SAMPLES, || {
            let (a, b, mut c) = (a.hip(&stream)?, b.hip(&stream)?, c.hip_mut(&stream)?);
            handle.gemm(
                Op::None,
                Op::None,
                one,
                Matrix::new(a.slice(), size, size, size)?,
                Matrix::new(b.slice(), size, size, size)?,
                C32::default(),
                MatrixMut::new(c.slice_mut(), size, size, size)?,
            )?;
            Ok(stream.synchronize()?)
        })?;
        let operations = 8.0 * (elements * size) as f64;
        lines.push(Line::of(
            format!("cgemm, {size} x {size}"),
            "GFLOP/s",
            Better::Higher,
            per_second(operations, &times),
        ));
    }
    let best = lines.iter().map(|line| line.value).fold(0.0, f64::max);
    let against = |line: Line| line.against(best, "the best of these");
    Ok(lines.into_iter().map(against).collect::<Vec<_>>().into())
}
