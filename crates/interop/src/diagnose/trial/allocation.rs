use platform::Selection;

use super::{Extent, Step, on_each_pair};
use crate::bridge::open::{Libraries, Pair};
use crate::diagnose::allocation::{self, Memory};
use crate::diagnose::measure;
use crate::{Allocation, Error, Options, Result, Whereabouts};

/// What was found about the memory that one call allocates.
///
/// As with a [`Trial`](super::Trial), memory that a device cannot reach may take the process along: on an unknown
/// machine, try each call in a process of its own.
#[derive(Clone, Debug)]
pub struct AllocationTrial {
    /// The call.
    pub allocation: Allocation,
    /// Where its memory lies, or why the call returned none.
    pub whereabouts: Result<Whereabouts, String>,
    /// 10^9 bytes a second, read and written, of an OpenCL kernel that copies within such memory, if that was asked for;
    /// or why it cannot.
    pub opencl_gb_s: Result<Option<f64>, String>,
    /// The same of a HIP kernel.
    pub hip_gb_s: Result<Option<f64>, String>,
}

impl AllocationTrial {
    /// Tries only `allocation` on the devices that `options` describes; its `route`, `grade` and `policy` play no part.
    /// `observe` is called before each step.
    ///
    /// # Errors
    /// If OpenCL or HIP is missing, no two devices pair, or the probe's kernels do not compile. It is no error if the
    /// call returns no memory, or if an API cannot use it.
    pub fn run(
        selection: &Selection,
        options: &Options,
        allocation: Allocation,
        extent: Extent,
        mut observe: impl FnMut(Step),
    ) -> Result<Self> {
        observe(Step::Pair);
        let libraries = Libraries::load(selection)?;
        on_each_pair(
            &libraries,
            options,
            |pair| one(&libraries, pair, options, (allocation, extent), &mut observe),
            |trial| trial.whereabouts.is_ok(),
        )
    }
}

fn one(
    libraries: &Libraries<'_>,
    pair: Pair,
    options: &Options,
    (allocation, extent): (Allocation, Extent),
    observe: &mut impl FnMut(Step),
) -> Result<AllocationTrial> {
    observe(Step::Allocate);
    let ready = libraries.ready(pair, options)?;
    let core = &*ready.core;
    let bytes = measure::brief_bytes(core.platform);
    let memory = || Memory::allocate(core, allocation, bytes);
    let (from, to) = match memory().and_then(|from| Ok((from, memory()?))) {
        Ok(both) => both,
        Err(error) => {
            let none = || Err("there is no memory to use".to_owned());
            return Ok(AllocationTrial {
                allocation,
                whereabouts: Err(told(error)),
                opencl_gb_s: none(),
                hip_gb_s: none(),
            });
        }
    };
    observe(Step::Locate);
    let whereabouts = from.locate(core).map_err(told);
    let mut rate = |by_hip, step| {
        observe(step);
        allocation::use_by(core, &ready.probe, (&from, &to), by_hip, extent).map_err(told)
    };
    Ok(AllocationTrial {
        allocation,
        whereabouts,
        opencl_gb_s: rate(false, Step::UseByOpenCl),
        hip_gb_s: rate(true, Step::UseByHip),
    })
}

/// The reason without the route whose rules were checked: no route was taken here.
fn told(error: Error) -> String {
    match error {
        Error::Unsupported { reason, .. } => reason,
        Error::PatternMismatch {
            writer,
            reader,
            mismatches,
            words,
            ..
        } => format!("{mismatches} of {words} words written by {writer} were read differently by {reader}"),
        other => other.to_string(),
    }
}
