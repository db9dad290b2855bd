//! The four kernels: two OpenCL kernels, for an OpenCL queue and for a HIP stream, and two HIP kernels. Nothing here waits.

use std::f64::consts::PI;

use clmgr::{Arg, NdRange};
use hip::{DeviceSliceMut, LaunchConfig};
use interop::{Bridge, StreamArg, StreamKernel};

use crate::{C32, Result};

/// The constant that `add` adds.
pub(super) const OFFSET: C32 = C32::new(0.5, -0.25);
const BLOCK: u32 = 256;

/// The factor of the iteration with this number.
pub(super) fn factor(step: usize) -> f32 {
    if step.is_multiple_of(2) { 2.0 } else { 0.5 }
}

fn program(bridge: &Bridge) -> Result<clmgr::Program> {
    let source = include_str!("../../../kernels/note.cl");
    Ok(bridge.programs().get(source, "")?)
}

/// What `rotate_by` takes.
fn cosine_and_sine() -> (f32, f32) {
    let (sine, cosine) = (PI / 6.0).sin_cos();
    (cosine as f32, sine as f32)
}

/// `x += c`, `x *= e^(i 30 deg)`.
pub(super) struct ClHalf {
    pub queue: clmgr::Queue,
    add: clmgr::Kernel,
    rotate: clmgr::Kernel,
    range: NdRange,
}

impl ClHalf {
    pub fn new(bridge: &Bridge, count: usize) -> Result<Self> {
        let program = program(bridge)?;
        Ok(Self {
            queue: bridge.queue()?,
            add: program.kernel("add")?,
            rotate: program.kernel("rotate_by")?,
            range: NdRange::d1(count),
        })
    }

    /// # Safety
    /// `x` holds the number of complex samples that this half was made for, and this queue's turn it is.
    pub unsafe fn add(&self, x: Arg<'_>) -> Result<()> {
        let args = [x, Arg::scalar(&OFFSET.re), Arg::scalar(&OFFSET.im)];
        // SAFETY: `add` takes a float2 pointer and two floats, and touches one element for each of the range's items; the rest is
        // the caller's promise.
        unsafe { self.add.launch(&self.queue, self.range, &args) }?;
        Ok(())
    }

    /// # Safety
    /// As for [`add`](Self::add).
    pub unsafe fn rotate(&self, x: Arg<'_>) -> Result<()> {
        let (cosine, sine) = cosine_and_sine();
        let args = [x, Arg::scalar(&cosine), Arg::scalar(&sine)];
        // SAFETY: as for `add`.
        unsafe { self.rotate.launch(&self.queue, self.range, &args) }?;
        Ok(())
    }
}

/// The same two kernels, launched by HIP.
pub(super) struct ClOnStream {
    add: StreamKernel,
    rotate: StreamKernel,
    range: NdRange,
}

impl ClOnStream {
    /// Fails where HIP can't run OpenCL's kernels.
    pub fn new(bridge: &Bridge, count: usize) -> Result<Self> {
        let program = bridge.stream_program(&program(bridge)?)?;
        Ok(Self {
            add: program.kernel("add")?,
            rotate: program.kernel("rotate_by")?,
            range: NdRange::d1(count),
        })
    }

    /// # Safety
    /// `x` holds the number of complex samples that this was made for.
    pub unsafe fn add(&self, stream: &hip::Stream, x: StreamArg<'_>) -> Result<()> {
        let (re, im) = (StreamArg::scalar(&OFFSET.re), StreamArg::scalar(&OFFSET.im));
        // SAFETY: as in `ClHalf`.
        unsafe { self.add.launch(stream, self.range, &[x, re, im]) }?;
        Ok(())
    }

    /// # Safety
    /// As for [`add`](Self::add).
    pub unsafe fn rotate(&self, stream: &hip::Stream, x: StreamArg<'_>) -> Result<()> {
        let (cosine, sine) = cosine_and_sine();
        let args = [x, StreamArg::scalar(&cosine), StreamArg::scalar(&sine)];
        // SAFETY: as in `ClHalf`.
        unsafe { self.rotate.launch(stream, self.range, &args) }?;
        Ok(())
    }
}

/// `x *= s`, `y = |x|^2`.
pub(super) struct HipHalf {
    pub stream: hip::Stream,
    scale: hip::Function,
    magnitude: hip::Function,
    grid: LaunchConfig,
}

impl HipHalf {
    pub fn new(bridge: &Bridge, count: usize) -> Result<Self> {
        let module = hip::rtc::Program::new(include_str!("../../../kernels/note.hip"))
            .name("note.hip")
            .option("-O3")
            .compile(bridge.hip_device())?;
        Ok(Self {
            stream: bridge.stream()?,
            scale: module.function("scale")?,
            magnitude: module.function("magnitude")?,
            grid: LaunchConfig::linear(count, BLOCK)?,
        })
    }

    /// Of the iteration with the number `step`.
    pub fn scale(&self, x: &mut DeviceSliceMut<'_, C32>, step: usize) -> Result<()> {
        let (factor, count) = (factor(step), x.len() as u64);
        // SAFETY: `scale` takes a complex pointer, a float and the number of elements, below which it stays.
        unsafe {
            self.scale
                .launch(&self.stream, self.grid, &[x, &factor, &count])
        }?;
        Ok(())
    }

    /// Of as many samples as both have.
    pub fn magnitude(
        &self,
        x: &mut DeviceSliceMut<'_, C32>,
        squared: &mut DeviceSliceMut<'_, f32>,
    ) -> Result<()> {
        let count = x.len().min(squared.len()) as u64;
        // SAFETY: `magnitude` takes a complex and a float pointer and the number of elements of both, below which it stays.
        unsafe {
            self.magnitude
                .launch(&self.stream, self.grid, &[x, squared, &count])
        }?;
        Ok(())
    }
}
