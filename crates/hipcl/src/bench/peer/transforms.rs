//! Transforms on the processor: rustfft, and FFTW where the machine has it. Both on one thread.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use libloading::Library;
use parking_lot::Mutex;
use rustfft::{Fft, FftPlanner};

use super::library::{function, open};
use super::{Peer, Transform};
use crate::{C32, Result};

pub(super) struct RustFft {
    plan: Arc<dyn Fft<f32>>,
    scratch: Mutex<Vec<C32>>,
}

impl RustFft {
    pub(super) fn new(len: usize) -> Self {
        let plan = FftPlanner::new().plan_fft_forward(len);
        let scratch = vec![C32::default(); plan.get_outofplace_scratch_len()];
        Self {
            plan,
            scratch: Mutex::new(scratch),
        }
    }
}

impl Peer<Transform> for RustFft {
    fn name(&self) -> String {
        "rustfft, one thread".to_owned()
    }

    unsafe fn run(&self, work: &Transform) -> Result<()> {
        let all = work.len * work.batch;
        // SAFETY: the caller's promise: addresses of the process's own on the host platform, which nothing else uses;
        // rustfft uses its input as scratch memory.
        let (from, to) = unsafe {
            (
                std::slice::from_raw_parts_mut(work.from, all),
                std::slice::from_raw_parts_mut(work.to, all),
            )
        };
        self.plan
            .process_outofplace_with_scratch(from, to, &mut self.scratch.lock());
        Ok(())
    }
}

const FORWARD: c_int = -1;
/// `FFTW_MEASURE | FFTW_UNALIGNED`: tried out, and for any address.
const FLAGS: c_uint = 1 << 1;

type Plan = *mut c_void;
type Many = unsafe extern "C" fn(
    c_int,
    *const c_int,
    c_int,
    *mut C32,
    *const c_int,
    c_int,
    c_int,
    *mut C32,
    *const c_int,
    c_int,
    c_int,
    c_int,
    c_uint,
) -> Plan;

pub(super) struct Fftw {
    plan: Plan,
    execute: unsafe extern "C" fn(Plan, *mut C32, *mut C32),
    destroy: unsafe extern "C" fn(Plan),
    #[allow(dead_code, reason = "the functions live in it")]
    library: Library,
}

impl Fftw {
    /// Plans on memory of its own, which planning overwrites.
    pub(super) fn find(len: usize, batch: usize) -> std::result::Result<Self, String> {
        let library = open("FFTW", &["libfftw3f.so.3", "libfftw3f.so"])?;
        let whole = |value: usize| c_int::try_from(value).map_err(|_| format!("FFTW: {value} exceeds 32 bits"));
        let (len, batch) = (whole(len)?, whole(batch)?);
        let all = len as usize * batch as usize;
        let (mut from, mut to) = (vec![C32::default(); all], vec![C32::default(); all]);
        // SAFETY: the types are those of fftw3.h, the functions are kept beside their library, both arrays hold the
        // data.
        unsafe {
            let many: Many = function(&library, c"fftwf_plan_many_dft")?;
            let execute = function(&library, c"fftwf_execute_dft")?;
            let destroy = function(&library, c"fftwf_destroy_plan")?;
            let none = std::ptr::null();
            let plan = many(
                1,
                &len,
                batch,
                from.as_mut_ptr(),
                none,
                1,
                len,
                to.as_mut_ptr(),
                none,
                1,
                len,
                FORWARD,
                FLAGS,
            );
            if plan.is_null() {
                return Err(format!("FFTW creates no plan for {len} x {batch}"));
            }
            Ok(Self {
                plan,
                execute,
                destroy,
                library,
            })
        }
    }
}

impl Peer<Transform> for Fftw {
    fn name(&self) -> String {
        "FFTW, one thread".to_owned()
    }

    unsafe fn run(&self, work: &Transform) -> Result<()> {
        // SAFETY: the caller's promise; the plan takes any address.
        unsafe { (self.execute)(self.plan, work.from, work.to) };
        Ok(())
    }
}

impl Drop for Fftw {
    fn drop(&mut self) {
        // SAFETY: a plan that nothing uses any more.
        unsafe { (self.destroy)(self.plan) };
    }
}
