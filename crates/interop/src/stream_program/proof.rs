//! A program that shows whether OpenCL kernels run correctly on HIP streams.

use clmgr::NdRange;

use super::{StreamArg, Way};
use crate::bridge::probe::pattern;
use crate::{Bridge, Error, Result};

const LEN: usize = 4096;
const GROUP: usize = 64;
const OFFSET: usize = 100;
const SEED: u32 = 0x5EED;

impl Bridge {
    /// Runs a HIP kernel and an OpenCL kernel on one HIP stream, with two local arguments, an offset and constants, and
    /// checks each word of the result. Returns what HIP launched.
    pub(crate) fn prove_one_stream(&self) -> Result<&'static str> {
        let source = include_str!("../../kernels/stream.cl");
        let program = self.programs().get(source, "")?;
        let program = self.stream_program(&program)?;
        let kernel = program.kernel("probe_stream")?;
        let stream = self.stream()?;
        let mut data = self.hip_device().alloc::<u32>(LEN)?;
        {
            let slice = data.on_mut(&stream)?;
            let config = hip::LaunchConfig::linear(LEN, GROUP as u32)?;
            let args: [&dyn hip::KernelArg; 3] = [&slice, &(LEN as u64), &SEED];
            // SAFETY: probe_fill takes a pointer, a 64-bit count and a uint, and stays below the count.
            unsafe { self.probe().hip().fill.launch(&stream, config, &args) }?;
        }
        let room = StreamArg::local(GROUP * size_of::<u32>());
        let range = NdRange::d1_local(LEN, GROUP).with_offset([OFFSET, 0, 0]);
        let args = [data.on_mut(&stream)?.into(), room, room, StreamArg::scalar(&SEED)];
        // SAFETY: the kernel takes LEN words, room for two words a work-item, and a number.
        unsafe { kernel.launch(&stream, range, &args) }?;
        let mut seen = vec![0; LEN];
        data.copy_to_slice(&stream, &mut seen)?;
        let wrong = (0..LEN).filter(|&place| seen[place] != expected(place)).count();
        if wrong > 0 {
            return Err(Error::NotOnStream {
                kernel: "probe_stream".to_owned(),
                reason: format!("{wrong} of {LEN} words were wrong"),
            });
        }
        Ok(match program.0.way {
            Way::Module { .. } => "HIP launches the code that OpenCL compiled",
            Way::Host(_) => "the OpenCL CPU runtime runs them in stream order",
        })
    }
}

/// The word at `place` after both kernels.
fn expected(place: usize) -> u32 {
    let other = place / GROUP * GROUP + GROUP - 1 - place % GROUP;
    let added = (other + OFFSET) as u32 + SEED;
    let factor = [3, 5, 7, 11][other % GROUP % 4];
    pattern(place, SEED)
        .wrapping_add(added.wrapping_mul(factor))
        .wrapping_add(1)
}
