use std::time::Instant;

use crate::{Bridge, FirstCall, Result};

fn twice(calls: &mut Vec<FirstCall>, what: &'static str, mut call: impl FnMut() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    call()?;
    let first = start.elapsed();
    let start = Instant::now();
    call()?;
    calls.push(FirstCall {
        what,
        first,
        again: Some(start.elapsed()),
    });
    Ok(())
}

impl Bridge {
    /// Makes the calls that are slow the first time, so the program's own are not: an allocation, a kernel of each API,
    /// a hand-off each way, and with rocBLAS a handle and a product. Returns the cost of each, those of the bridge's
    /// opening first.
    ///
    /// # Errors
    /// The first call that fails.
    pub fn warm_up(&self) -> Result<Vec<FirstCall>> {
        let mut calls = self.probe().opening().to_vec();
        let (queue, stream) = (self.queue()?, self.stream()?);
        twice(&mut calls, "shared allocation of 1 MiB", || {
            self.alloc::<u8>(1 << 20).map(drop)
        })?;
        let mut buffer = self.alloc::<u32>(1024)?;
        let nothing = &self.probe().cl().nothing;
        twice(&mut calls, "OpenCL kernel", || {
            let guard = buffer.cl_mut(&queue)?;
            // SAFETY: probe_nothing takes one buffer and touches nothing.
            unsafe { nothing.launch(&queue, clmgr::NdRange::d1(1), &[guard.arg()]) }?;
            Ok(queue.finish()?)
        })?;
        let nothing = &self.probe().hip().nothing;
        let config = hip::LaunchConfig::linear(1, 1)?;
        twice(&mut calls, "HIP kernel", || {
            let mut guard = buffer.hip_mut(&stream)?;
            // SAFETY: probe_nothing takes one pointer and touches nothing.
            unsafe { nothing.launch(&stream, config, &[&guard.slice_mut()]) }?;
            Ok(stream.synchronize()?)
        })?;
        twice(&mut calls, "hand-off each way", || {
            drop(buffer.cl_mut(&queue)?);
            drop(buffer.hip_mut(&stream)?);
            queue.finish()?;
            Ok(stream.synchronize()?)
        })?;
        let Ok(library) = self.blas() else {
            return Ok(calls);
        };
        twice(&mut calls, "rocBLAS handle", || {
            rocblas::Handle::new(&library, &stream)?;
            Ok(())
        })?;
        let handle = rocblas::Handle::new(&library, &stream)?;
        const SIZE: usize = 64;
        let one = num_complex::Complex::new(1.0_f32, 0.0);
        let (a, mut c) = (
            self.hip_device().alloc_zeroed(SIZE * SIZE)?,
            self.hip_device().alloc_zeroed(SIZE * SIZE)?,
        );
        twice(&mut calls, "rocBLAS product (cgemm, 64 x 64)", || {
            handle.gemm(
                rocblas::Op::None,
                rocblas::Op::None,
                one,
                rocblas::Matrix::new(&a, SIZE, SIZE, SIZE),
                rocblas::Matrix::new(&a, SIZE, SIZE, SIZE),
                one,
                rocblas::Matrix::new(&mut c, SIZE, SIZE, SIZE),
            )?;
            Ok(stream.synchronize()?)
        })?;
        Ok(calls)
    }
}
