//! An OpenCL library that knows `cl_mem` only, clFFT, makes spectra of all channels in place on memory whose covariance rocBLAS
//! then computes, without a copy between the two. clFFT is used as it is packaged (Debian: `libclfft2`).
//!
//! `cargo xtask setup --clfft` fetches clFFT without root; `HIPCL_CLFFT` names another library than `libclFFT.so.2`. Then:
//! `cargo run -p hipcl-interop --example 16_clfft`

use std::error::Error;
use std::ffi::{OsString, c_int, c_void};
use std::ptr::{null, null_mut};

use clmgr::opencl_sys::{cl_command_queue, cl_context, cl_mem};
use interop::{Bridge, Options, Route};
use num_complex::Complex;
use rocblas::{Handle, Matrix, Op};

type C32 = Complex<f32>;

const SAMPLES: usize = 256;
const CHANNELS: usize = 8;

/// What the example uses of `clFFT.h`.
struct ClFft(libloading::Library);

type Plan = usize;

#[repr(C)]
#[derive(Default)]
struct Setup {
    major: u32,
    minor: u32,
    patch: u32,
    debug_flags: u64,
}

const CLFFT_1D: c_int = 1;
const CLFFT_SINGLE: c_int = 1;
const CLFFT_COMPLEX_INTERLEAVED: c_int = 1;
const CLFFT_INPLACE: c_int = 1;
const CLFFT_FORWARD: c_int = -1;

/// Calls a function of the library, of this type.
macro_rules! clfft {
    ($library:expr, $name:literal: $type:ty, $($argument:expr),*) => {{
        // SAFETY: the type is that of the library's header.
        let function = unsafe { $library.0.get::<$type>($name.as_bytes()) }?;
        // SAFETY: the arguments are alive, and what the header asks for.
        match unsafe { function($($argument),*) } {
            0 => Ok(()),
            code => Err(format!("{} failed: {code}", $name)),
        }
    }};
}

impl ClFft {
    /// `None`, and says so, if clFFT is not installed.
    fn load() -> Result<Option<Self>, Box<dyn Error>> {
        let name = std::env::var_os("HIPCL_CLFFT").filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| OsString::from("libclFFT.so.2"));
        // SAFETY: clFFT's initialisers only prepare the library.
        let library = match unsafe { libloading::Library::new(&name) } {
            Ok(library) => Self(library),
            Err(error) => {
                println!("skipped: {error}; install clFFT (Debian: libclfft2), or set HIPCL_CLFFT to the library");
                return Ok(None);
            }
        };
        let mut setup = Setup::default();
        let (major, minor, patch) = (&mut setup.major, &mut setup.minor, &mut setup.patch);
        clfft!(library, "clfftGetVersion": unsafe extern "C" fn(*mut u32, *mut u32, *mut u32) -> c_int, major, minor, patch)?;
        clfft!(library, "clfftSetup": unsafe extern "C" fn(*const Setup) -> c_int, &setup)?;
        Ok(Some(library))
    }

    /// A plan for `batch` complex rows of `len` numbers, in place.
    fn plan(
        &self,
        context: cl_context,
        queue: cl_command_queue,
        len: usize,
        batch: usize,
    ) -> Result<Plan, Box<dyn Error>> {
        type Create = unsafe extern "C" fn(*mut Plan, cl_context, c_int, *const usize) -> c_int;
        type Bake = unsafe extern "C" fn(Plan, u32, *const cl_command_queue, *const c_void, *mut c_void) -> c_int;
        let mut plan = 0;
        clfft!(self, "clfftCreateDefaultPlan": Create, &mut plan, context, CLFFT_1D, &len)?;
        clfft!(self, "clfftSetPlanPrecision": unsafe extern "C" fn(Plan, c_int) -> c_int, plan, CLFFT_SINGLE)?;
        let both = CLFFT_COMPLEX_INTERLEAVED;
        clfft!(self, "clfftSetLayout": unsafe extern "C" fn(Plan, c_int, c_int) -> c_int, plan, both, both)?;
        clfft!(self, "clfftSetResultLocation": unsafe extern "C" fn(Plan, c_int) -> c_int, plan, CLFFT_INPLACE)?;
        clfft!(self, "clfftSetPlanBatchSize": unsafe extern "C" fn(Plan, usize) -> c_int, plan, batch)?;
        clfft!(self, "clfftBakePlan": Bake, plan, 1, &queue, null(), null_mut())?;
        Ok(plan)
    }

    /// # Safety
    /// Until the transform has ended, `rows` is alive, and nothing but earlier and later work of the queue uses it.
    unsafe fn forward(&self, plan: Plan, queue: cl_command_queue, rows: cl_mem) -> Result<(), Box<dyn Error>> {
        type Enqueue = unsafe extern "C" fn(
            Plan,
            c_int,
            u32,
            *const cl_command_queue,
            u32,
            *const c_void,
            *mut c_void,
            *const cl_mem,
            *const cl_mem,
            cl_mem,
        ) -> c_int;
        let (none, no_event) = (null(), null_mut());
        clfft!(self, "clfftEnqueueTransform": Enqueue,
            plan, CLFFT_FORWARD, 1, &queue, 0, none, no_event, &rows, null(), null_mut())?;
        Ok(())
    }

    fn end(self, mut plan: Plan) -> Result<(), Box<dyn Error>> {
        clfft!(self, "clfftDestroyPlan": unsafe extern "C" fn(*mut Plan) -> c_int, &mut plan)?;
        clfft!(self, "clfftTeardown": unsafe extern "C" fn() -> c_int,)?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let bridge = Bridge::open(&platform::select()?, &Options::default())?;
    let Some(fft) = ClFft::load()? else { return Ok(()) };
    // The library takes buffer objects, which not all routes have.
    let route = bridge
        .permitted()
        .iter()
        .find(|route| [Route::GpuVa, Route::HipPointer].contains(route));
    let Some(&route) = route else {
        println!("skipped: no route with buffer objects works here");
        return Ok(());
    };
    let (queue, stream) = (bridge.queue()?, bridge.stream()?);
    let mut x = bridge.alloc_on::<C32>(route, SAMPLES * CHANNELS)?;
    let mut r = bridge.alloc::<C32>(CHANNELS * CHANNELS)?;
    x.upload(&samples())?;
    let before = bridge.meter().snapshot();

    // What clFFT enqueues while the guard lives comes after earlier work on the memory, and before its next user.
    let plan = fft.plan(bridge.cl_context().raw(), queue.raw(), SAMPLES, CHANNELS)?;
    {
        let guard = x.cl_mut(&queue)?;
        let clmgr::Arg::Mem(rows) = guard.arg() else {
            return Err("the route has buffer objects".into());
        };
        // SAFETY: the guard's object, on the guard's queue.
        unsafe { fft.forward(plan, queue.raw(), rows) }?;
    }
    let blas = Handle::new(&bridge.blas()?, &stream)?;
    let one = C32::new(1.0, 0.0);
    let input = || Matrix::new(&x, SAMPLES, CHANNELS, SAMPLES);
    let output = Matrix::new(&mut r, CHANNELS, CHANNELS, CHANNELS);
    blas.gemm(
        Op::ConjTranspose,
        Op::None,
        one,
        input(),
        input(),
        C32::default(),
        output,
    )?;

    let copied = bridge.meter().snapshot().since(&before).data_set;
    let mut found = vec![C32::default(); CHANNELS * CHANNELS];
    r.download(&mut found)?;
    let worst = difference(&found);
    println!("largest relative error {worst:.1e}, copies of the data set {copied} bytes");
    fft.end(plan)?;
    match worst < 1e-5 && copied == 0 {
        true => Ok(()),
        false => Err("the covariance is wrong, or data was copied".into()),
    }
}

/// A tone in each channel, and another one that all share.
fn samples() -> Vec<C32> {
    let turn = std::f64::consts::TAU / SAMPLES as f64;
    let sample = |place: usize| {
        let (channel, i) = (place / SAMPLES, place % SAMPLES);
        let tone = |amplitude, line: usize| Complex::from_polar(amplitude, turn * (line * i) as f64);
        let sum = tone(1.0, 3 + 5 * channel) + tone(0.5, 100);
        C32::new(sum.re as f32, sum.im as f32)
    };
    (0..SAMPLES * CHANNELS).map(sample).collect()
}

/// A tone of amplitude a is one line of a * SAMPLES: 1 + 0.25 on the diagonal, 0.25 beside it.
fn difference(found: &[C32]) -> f64 {
    let whole = 1.25 * (SAMPLES * SAMPLES) as f64;
    let off = |(place, value): (usize, &C32)| {
        let expected = if place % (CHANNELS + 1) == 0 {
            whole
        } else {
            whole / 5.0
        };
        Complex::new(f64::from(value.re) - expected, value.im.into()).norm() / whole
    };
    found.iter().enumerate().map(off).fold(0.0, f64::max)
}
