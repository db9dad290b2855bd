//! The zero diagonal elements that rocSOLVER's potri finds and cuSOLVER's does not look for.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};

use hip_sys::hipFunction_t;
use parking_lot::Mutex;
use rocblas_sys::rocblas_int;

use super::scalar::Scalar;
use crate::blas::handle::Handle;
use crate::blas::scratch::Scratch;
use crate::blas::{Result, from_hip};
use crate::cuda::driver::Driver;
use crate::memory::address;

/// In the driver's own language: it needs no compiler on the machine.
const KERNEL: &str = concat!(include_str!("diagonal.ptx"), "\0");
const THREADS: c_uint = 128;

/// A function of a module that stays loaded.
struct Loaded(hipFunction_t);
// SAFETY: a handle that belongs to no thread ("the CUDA driver API is thread-safe").
unsafe impl Send for Loaded {}

/// Where the first zero is, counted from 1, or 0: written in stream order to memory of the returned value.
///
/// # Safety
/// `a` is a matrix of `n` rows and columns in valid device memory.
pub(super) unsafe fn first_zero<T: Scalar>(
    handle: &Handle,
    n: rocblas_int,
    a: *const T,
    lda: rocblas_int,
) -> Result<Scratch<rocblas_int>> {
    let driver = handle.begin()?;
    let function = function(driver, handle.device().ordinal)?;
    let found = Scratch::<rocblas_int>::new(handle, 1)?;
    let mut matrix = address(a);
    let mut step = (i64::from(lda) + 1).unsigned_abs() * size_of::<T>() as u64;
    let mut n = n.unsigned_abs();
    let mut words = (size_of::<T>() / 4) as u32;
    // The word with the sign is each of a single number, and every second of a double one.
    let mut even: u32 = if T::DOUBLE { u32::MAX } else { u32::MAX >> 1 };
    let mut out = address(found.at());
    let mut arguments: [*mut c_void; 6] = [
        (&raw mut matrix).cast(),
        (&raw mut step).cast(),
        (&raw mut n).cast(),
        (&raw mut words).cast(),
        (&raw mut even).cast(),
        (&raw mut out).cast(),
    ];
    let stream = handle.stream();
    // SAFETY: the kernel takes these arguments, which are read before the call returns; it reads the diagonal and
    // writes one number.
    unsafe {
        driver.cuLaunchKernel(
            function,
            1,
            1,
            1,
            THREADS,
            1,
            1,
            0,
            stream,
            arguments.as_mut_ptr(),
            std::ptr::null_mut(),
        )
    }
    .map_err(from_hip)?;
    Ok(found)
}

/// The kernel on the device that is current.
fn function(driver: &Driver, ordinal: c_int) -> Result<hipFunction_t> {
    static FUNCTIONS: Mutex<BTreeMap<c_int, Loaded>> = Mutex::new(BTreeMap::new());
    let mut functions = FUNCTIONS.lock();
    if let Some(function) = functions.get(&ordinal) {
        return Ok(function.0);
    }
    let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: each writes one handle to the address given; the text ends with a zero.
    unsafe {
        driver
            .cuModuleLoadData(&mut module, KERNEL.as_ptr().cast())
            .and_then(|()| driver.cuModuleGetFunction(&mut function, module, c"first_zero".as_ptr()))
    }
    .map_err(from_hip)?;
    functions.insert(ordinal, Loaded(function));
    Ok(function)
}
