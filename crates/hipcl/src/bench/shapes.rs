//! The products of the jobs in each shape that they can have, which is what their jobs choose from.

use hip::DeviceBuffer;
use rocblas::{Fill, Handle, Matrix, Op};

use super::line::{Better, Line};
use super::{Figures, Setup, seconds};
use crate::{C32, Result};

const SAMPLES: usize = 15;
/// Of `gps`: delays, blocks of a sub-interval and as many fine Doppler bins, and sub-intervals on a card and on the
/// host.
const DELAYS: usize = 4000;
const COLUMNS: usize = 5;
const SUB_INTERVALS: [usize; 2] = [1344, 12];
/// How many of them a product takes.
const TOGETHER: [usize; 5] = [1, 2, 3, 6, 12];
/// Of `capon`: elements, segments, and in how many parts of them the sum is made.
const ELEMENTS: usize = 341;
const SEGMENTS: [usize; 2] = [1024, 64];
const PARTS: [usize; 4] = [4, 8, 16, 32];

/// Adds their times to `found`, held against the memory's bandwidth in GB/s and the rate of a large product in GFLOP/s.
pub(super) fn measure(setup: &Setup, gflop_s: f64, found: &mut Figures) -> Result<()> {
    let on_host = setup.bridge.report().platform.facts().is_model;
    let bench = Bench {
        setup,
        stream: setup.bridge.stream()?,
        gb_s: interop::measure::bandwidth_briefly(&setup.bridge)?.limit_gb_s,
        gflop_s,
    };
    bench.fine_doppler(SUB_INTERVALS[usize::from(on_host)], found)?;
    bench.covariance(SEGMENTS[usize::from(on_host)], found)
}

struct Bench<'a> {
    setup: &'a Setup,
    stream: hip::Stream,
    gb_s: f64,
    gflop_s: f64,
}

impl Bench<'_> {
    fn memory(&self, len: usize) -> Result<DeviceBuffer<C32>> {
        let number = |i: usize| C32::new((i % 17) as f32 - 8.0, (i % 13) as f32 - 6.0);
        let numbers: Vec<_> = (0..len).map(number).collect();
        Ok(self.setup.bridge.hip_device().alloc_from(&self.stream, &numbers)?)
    }

    fn line(&self, name: String, times: &[f64], bytes: usize, operations: usize) -> Line {
        let milliseconds = times.iter().map(|time| time * 1e3).collect();
        let limit = (bytes as f64 / self.gb_s).max(operations as f64 / self.gflop_s) / 1e6;
        Line::of(name, "ms", Better::Lower, milliseconds)
            .against(limit, "its bytes or its operations, whichever take longer")
    }

    fn fine_doppler(&self, sub_intervals: usize, found: &mut Figures) -> Result<()> {
        let stream = &self.stream;
        let handle = Handle::new(&self.setup.bridge.blas()?, stream)?;
        let (one, zero) = (C32::new(1.0, 0.0), C32::default());
        let len = DELAYS * COLUMNS * sub_intervals;
        let a = self.memory(len)?;
        let mut c = self.memory(len)?;
        for together in TOGETHER {
            let (columns, count) = (COLUMNS * together, sub_intervals / together);
            let b = self.memory(columns * columns)?;
            let each = DELAYS * columns;
            let times = seconds(SAMPLES, || {
                handle.gemm_strided_batched(
                    Op::None,
                    Op::None,
                    one,
                    Matrix::new(&a, DELAYS, columns, DELAYS).batch(each, count),
                    Matrix::new(&b, columns, columns, columns).batch(0, count),
                    zero,
                    Matrix::new(&mut c, DELAYS, columns, DELAYS).batch(each, count),
                )?;
                Ok(stream.synchronize()?)
            })?;
            let name = format!("cgemm strided batched, {count} of {DELAYS} x {columns} x {columns}");
            let bytes = 2 * len * size_of::<C32>();
            found.lines.push(self.line(name, &times, bytes, 8 * len * COLUMNS));
        }
        Ok(())
    }

    fn covariance(&self, segments: usize, found: &mut Figures) -> Result<()> {
        let stream = &self.stream;
        let handle = Handle::new(&self.setup.bridge.blas()?, stream)?;
        let (n, each) = (ELEMENTS, ELEMENTS * ELEMENTS);
        let z = self.memory(n * segments)?;
        let bytes = (n * segments + each) * size_of::<C32>();
        let operations = 4 * each * segments;
        let mut r = self.memory(each)?;
        let times = seconds(SAMPLES, || {
            handle.herk(
                Fill::Lower,
                Op::None,
                1.0,
                Matrix::new(&z, n, segments, n),
                0.0,
                Matrix::new(&mut r, n, n, n),
            )?;
            Ok(stream.synchronize()?)
        })?;
        let name = format!("cherk, {n} x {segments}");
        found.lines.push(self.line(name, &times, bytes, operations));
        for count in PARTS {
            let columns = segments / count;
            let mut parts = self.memory(each * count)?;
            let (one, zero) = (C32::new(1.0, 0.0), C32::default());
            let times = seconds(SAMPLES, || {
                let part = || Matrix::new(&z, n, columns, n).batch(n * columns, count);
                handle.gemm_strided_batched(
                    Op::None,
                    Op::ConjTranspose,
                    one,
                    part(),
                    part(),
                    zero,
                    Matrix::new(&mut parts, n, n, n).batch(each, count),
                )?;
                Ok(stream.synchronize()?)
            })?;
            let name = format!("the same in {count} parts by cgemm, not added");
            found.lines.push(self.line(name, &times, bytes, operations));
        }
        Ok(())
    }
}
