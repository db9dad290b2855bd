//! Complex transforms by cuFFT. Signatures: `cufft.h`.

use std::ffi::{c_int, c_uint};

use hip_sys::hipStream_t;

use super::{Error, Result, function, make_current};

mod library {
    use crate::cuda::library::Opened;
    use crate::peer::{Error, Result};

    pub(super) const TITLE: &str = "cuFFT";

    pub(super) fn opened() -> Result<&'static Opened> {
        crate::cuda::opened_cufft().map_err(|cause| Error(cause.to_owned()))
    }
}

/// `CUFFT_C2C`.
const COMPLEX: c_uint = 0x29;
/// `CUFFT_FORWARD`.
const FORWARD: c_int = -1;
type Complex = [f32; 2];

function!(library: cufftPlanMany(
    plan: *mut c_int, rank: c_int, len: *mut c_int,
    in_embed: *mut c_int, in_stride: c_int, in_distance: c_int,
    out_embed: *mut c_int, out_stride: c_int, out_distance: c_int, kind: c_uint, batch: c_int,
));
function!(library: cufftSetStream(plan: c_int, stream: hipStream_t));
function!(library: cufftExecC2C(plan: c_int, from: *mut Complex, to: *mut Complex, direction: c_int));
function!(library: cufftDestroy(plan: c_int));

/// A plan of forward transforms, one row behind the other, on one stream.
#[derive(Debug)]
pub struct Cufft(c_int);

impl Cufft {
    /// Plans `batch` transforms of `len` numbers.
    ///
    /// # Errors
    /// No cuFFT, a size beyond 32 bits, or it refuses.
    ///
    /// # Safety
    /// The stream is alive for as long as the plan is.
    pub unsafe fn new(len: usize, batch: usize, stream: hipStream_t) -> Result<Self> {
        make_current()?;
        let whole = |value: usize| c_int::try_from(value).map_err(|_| Error(format!("{value} is beyond 32 bits")));
        let (mut len, batch) = (whole(len)?, whole(batch)?);
        let mut plan = 0;
        let none = std::ptr::null_mut();
        // SAFETY: writes one plan; no embedding means dense rows.
        unsafe { cufftPlanMany(&mut plan, 1, &mut len, none, 1, len, none, 1, len, COMPLEX, batch) }?;
        let plan = Self(plan);
        // SAFETY: a live plan, and a stream that lives by the caller's promise.
        unsafe { cufftSetStream(plan.0, stream) }?;
        Ok(plan)
    }

    /// Queues the transforms.
    ///
    /// # Errors
    /// cuFFT refuses.
    ///
    /// # Safety
    /// Both addresses are the device's and hold the plan's data, equal for a transform in place, and nothing else uses
    /// `to` until the stream has done the work.
    pub unsafe fn forward(&self, from: *mut Complex, to: *mut Complex) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { cufftExecC2C(self.0, from, to, FORWARD) }
    }
}

impl Drop for Cufft {
    fn drop(&mut self) {
        // SAFETY: a live plan that nothing uses any more.
        let _ = unsafe { cufftDestroy(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Reports that the running test cannot run here, also in the file that `HIPCL_SKIP_LOG` names.
    fn skipped(reason: &str) {
        let thread = std::thread::current();
        let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
        eprint!("skipped: {line}");
        if let Some(log) = std::env::var_os("HIPCL_SKIP_LOG") {
            let log = std::fs::File::options().append(true).create(true).open(log);
            let mut log = log.expect("the skip log opens");
            log.write_all(line.as_bytes()).expect("the skip log takes a line");
        }
    }

    #[test]
    fn without_nvidias_libraries_the_error_says_which_one_is_missing() {
        if crate::cuda::opened_driver().is_ok() {
            skipped("the CUDA driver is present, so no NVIDIA library has to be missing");
            return;
        }
        // SAFETY: no stream is used where there is no device.
        let error = unsafe { Cufft::new(64, 1, std::ptr::null_mut()) }
            .expect_err("there is no GPU")
            .to_string();
        assert!(!error.contains('\n') && !error.is_empty(), "{error}");
    }
}
