//! The four kernels: two OpenCL kernels and two HIP kernels. Nothing here waits.

use std::f64::consts::PI;

use clmgr::NdRange;
use hip::{DeviceSliceMut, LaunchConfig};
use interop::Bridge;

use crate::jobs::sides::{Kernel, KernelArg, Sides};
use crate::{C32, Result};

/// The constant that `add` adds.
pub(super) const OFFSET: C32 = C32::new(0.5, -0.25);
const BLOCK: u32 = 256;

/// The factor of the iteration with this number.
pub(super) fn factor(step: usize) -> f32 {
    if step.is_multiple_of(2) { 2.0 } else { 0.5 }
}

/// `x += c`, `x *= e^(i 30 deg)`.
pub(super) struct ClHalf {
    add: Kernel,
    rotate: Kernel,
    range: NdRange,
}

impl ClHalf {
    pub fn new(bridge: &Bridge, sides: &Sides, count: usize) -> Result<Self> {
        let program = sides.program(bridge, include_str!("../../../kernels/note.cl"))?;
        Ok(Self {
            add: program.kernel("add")?,
            rotate: program.kernel("rotate_by")?,
            range: NdRange::d1(count),
        })
    }

    /// # Safety
    /// `x` holds the number of complex samples that this half was made for.
    pub unsafe fn add(&self, sides: &Sides, x: KernelArg<'_>) -> Result<()> {
        let (re, im) = (KernelArg::scalar(&OFFSET.re), KernelArg::scalar(&OFFSET.im));
        // SAFETY: `add` takes a float2 pointer and two floats, and touches one element for each of the range's items;
        // the rest is the caller's promise.
        unsafe { self.add.launch(sides, self.range, [x, re, im]) }
    }

    /// # Safety
    /// As for [`add`](Self::add).
    pub unsafe fn rotate(&self, sides: &Sides, x: KernelArg<'_>) -> Result<()> {
        let (sine, cosine) = (PI / 6.0).sin_cos();
        let (sine, cosine) = (sine as f32, cosine as f32);
        let args = [x, KernelArg::scalar(&cosine), KernelArg::scalar(&sine)];
        // SAFETY: as for `add`.
        unsafe { self.rotate.launch(sides, self.range, args) }
    }
}

/// `x *= s`, `y = |x|^2`.
pub(super) struct HipHalf {
    stream: hip::Stream,
    scale: hip::Function,
    magnitude: hip::Function,
    grid: LaunchConfig,
}

impl HipHalf {
    pub fn new(bridge: &Bridge, stream: &hip::Stream, count: usize) -> Result<Self> {
        let module = hip::rtc::Program::new(include_str!("../../../kernels/note.hip"))
            .name("note.hip")
            .option("-O3")
            .compile(bridge.hip_device())?;
        Ok(Self {
            stream: stream.clone(),
            scale: module.function("scale")?,
            magnitude: module.function("magnitude")?,
            grid: LaunchConfig::linear(count, BLOCK)?,
        })
    }

    /// Of the iteration with the number `step`.
    pub fn scale(&self, x: &mut DeviceSliceMut<'_, C32>, step: usize) -> Result<()> {
        let (factor, count) = (factor(step), x.len() as u64);
        // SAFETY: `scale` takes a complex pointer, a float and the number of elements, below which it stays.
        unsafe { self.scale.launch(&self.stream, self.grid, &[x, &factor, &count]) }?;
        Ok(())
    }

    /// Of as many samples as both have.
    pub fn magnitude(&self, x: &mut DeviceSliceMut<'_, C32>, squared: &mut DeviceSliceMut<'_, f32>) -> Result<()> {
        let count = x.len().min(squared.len()) as u64;
        // SAFETY: `magnitude` takes a complex and a float pointer and the number of elements of both, below which it
        // stays.
        unsafe { self.magnitude.launch(&self.stream, self.grid, &[x, squared, &count]) }?;
        Ok(())
    }
}
