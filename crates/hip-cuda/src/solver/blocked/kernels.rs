//! The kernels of `cholesky.hip`, compiled when a device first needs them.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::fmt::Debug;

use hip_sys::hipFunction_t;
use parking_lot::Mutex;
use rocblas_sys::rocblas_status as Status;

use super::super::Scalar;
use super::steps::TILE;
use crate::blas::handle::Handle;
use crate::blas::{Result, from_hip};
use crate::cuda::driver::Driver;
use crate::{log, rtc};

const SOURCE: &CStr = crate::cuda::c_name(concat!(include_str!("../../../kernels/cholesky.hip"), "\0"));
/// Threads of a block: rows of a tile, and columns at a time.
const BLOCK: (c_uint, c_uint) = (TILE as c_uint, 8);
/// CU_STREAM_CAPTURE_MODE_RELAXED
const RELAXED: c_uint = 2;

/// Functions of a module that stays loaded.
#[derive(Clone, Copy)]
pub(in crate::solver) struct Kernels {
    pub(super) pack: hipFunction_t,
    pub(super) unpack: hipFunction_t,
    pub(super) factor_tile: hipFunction_t,
    pub(super) invert_tiles: hipFunction_t,
    pub(super) first_zeros: hipFunction_t,
}

// SAFETY: handles that belong to no thread ("the CUDA driver API is thread-safe").
unsafe impl Send for Kernels {}

impl Kernels {
    /// Those for this type on the handle's device, which this makes current; `None` if they cannot be compiled or
    /// loaded here.
    pub(super) fn of<T: Scalar>(handle: &Handle) -> Result<Option<Self>> {
        static KNOWN: Mutex<BTreeMap<(c_int, usize, bool), Option<Kernels>>> = Mutex::new(BTreeMap::new());
        let driver = handle.begin()?;
        let mut known = KNOWN.lock();
        let key = (handle.device().ordinal, size_of::<T>(), T::DOUBLE);
        if let Some(kernels) = known.get(&key) {
            return Ok(*kernels);
        }
        let architecture = handle.device().architecture().map_err(from_hip)?;
        let unusable = |error: &dyn Debug| {
            log::driver("rocsolver", format_args!("cholesky.hip: {error:?}"));
        };
        let kernels = match code::<T>(&architecture) {
            Err(error) => {
                unusable(&error);
                None
            }
            Ok(code) => match Self::load(driver, &code) {
                // There may be memory for it another time.
                Err(Status::rocblas_status_memory_error) => {
                    return Err(Status::rocblas_status_memory_error);
                }
                // NVRTC may be newer than the driver.
                Err(error) => {
                    unusable(&error);
                    None
                }
                Ok(kernels) => Some(kernels),
            },
        };
        known.insert(key, kernels);
        Ok(kernels)
    }

    fn load(driver: &Driver, code: &[u8]) -> Result<Self> {
        let mut module = std::ptr::null_mut();
        // A load synchronises, which another thread's capture would not survive otherwise. It touches no captured
        // stream.
        let mut mode = RELAXED;
        // SAFETY: exchanges the thread's mode with the number given, which is a mode.
        unsafe { driver.cuThreadExchangeStreamCaptureMode(&mut mode) }.map_err(from_hip)?;
        // SAFETY: writes one handle to the address given; the code is NVRTC's for this device.
        let loaded = unsafe { driver.cuModuleLoadData(&mut module, code.as_ptr().cast()) };
        let find = |name: &CStr| {
            let mut function = std::ptr::null_mut();
            // SAFETY: writes one handle to the address given; the module is loaded, and the name ends with a zero.
            unsafe {
                driver.cuModuleGetFunction(&mut function, module, name.as_ptr())?;
                match driver.cuFuncLoad(function) {
                    // A driver before CUDA 12.4 cannot be told to.
                    Ok(()) | Err(crate::error::UNSUPPORTED) => Ok(function),
                    Err(code) => Err(code),
                }
            }
        };
        let found = loaded.and_then(|()| {
            Ok(Self {
                pack: find(c"pack")?,
                unpack: find(c"unpack")?,
                factor_tile: find(c"factor_tile")?,
                invert_tiles: find(c"invert_tiles")?,
                first_zeros: find(c"first_zeros")?,
            })
        });
        if found.is_err() && !module.is_null() {
            // SAFETY: the module was loaded, and nothing of it is used. That it stays if this fails is all that there
            // is to say.
            let _ = unsafe { driver.cuModuleUnload(module) };
        }
        // SAFETY: as above, with what it answered.
        unsafe { driver.cuThreadExchangeStreamCaptureMode(&mut mode) }.map_err(from_hip)?;
        found.map_err(from_hip)
    }
}

fn code<T: Scalar>(architecture: &str) -> std::result::Result<Vec<u8>, hip_sys::hiprtcResult> {
    let (number, bytes) = match T::DOUBLE {
        true => (c"-DNUMBER=double", 8),
        false => (c"-DNUMBER=float", 4),
    };
    let parts = match size_of::<T>() / bytes {
        1 => c"-DPARTS=1",
        _ => c"-DPARTS=2",
    };
    let architecture = CString::new(format!("--gpu-architecture={architecture}"));
    let architecture = architecture.map_err(|_| hip_sys::hiprtcResult::HIPRTC_ERROR_INVALID_INPUT)?;
    let options = [number, parts, c"--std=c++17", architecture.as_c_str()];
    rtc::machine_code(SOURCE, c"cholesky.hip", &options)
}

/// A number that a kernel takes.
pub(super) trait Word {}
impl Word for u64 {}
impl Word for i64 {}
impl Word for c_int {}

/// A launch in stream order.
pub(super) struct Launch<'a> {
    handle: &'a Handle,
    function: hipFunction_t,
    grid: (c_uint, c_uint, c_uint),
}

impl<'a> Launch<'a> {
    pub(super) const fn new(handle: &'a Handle, function: hipFunction_t, grid: (c_uint, c_uint, c_uint)) -> Self {
        Self { handle, function, grid }
    }

    /// # Safety
    /// The arguments are the function's in number and size, and what they name is valid device memory.
    pub(super) unsafe fn with(&self, arguments: &[&dyn Word]) -> Result {
        let driver = self.handle.begin()?;
        let mut places: Vec<*mut c_void> = arguments
            .iter()
            .map(|argument| std::ptr::from_ref(*argument).cast::<c_void>().cast_mut())
            .collect();
        let (x, y, z) = self.grid;
        // SAFETY: the caller's promise; the arguments are read before the call returns.
        unsafe {
            driver.cuLaunchKernel(
                self.function,
                x,
                y,
                z,
                BLOCK.0,
                BLOCK.1,
                1,
                0,
                self.handle.stream(),
                places.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
        .map_err(from_hip)
    }
}
